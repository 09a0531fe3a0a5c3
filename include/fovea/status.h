/* Status and error values that every Fovea function speaks.
 *
 *     fv_error error = {0};
 *     if (fv_something(..., &error) != FV_OK)
 *         fprintf(stderr, "%s\n", error.message);
 *
 * An error holds no pointers, so it can cross a process or a machine as plain bytes.
 */
#ifndef FOVEA_STATUS_H
#define FOVEA_STATUS_H

#include <fovea/api.h>
#include <stdint.h>

typedef enum fv_status {
    FV_OK = 0,
    FV_ERROR_USAGE,     /* a bad argument, parameter or pipeline text */
    FV_ERROR_INPUT,     /* an input is missing or damaged */
    FV_ERROR_IO,        /* the system refused to read or write */
    FV_ERROR_FULL,      /* no space left for a result */
    FV_ERROR_MEMORY,    /* does not fit the memory bound */
    FV_ERROR_BUSY,      /* another live run owns the output */
    FV_ERROR_CANCELLED, /* stopped on request; can go on */
    FV_ERROR_MISSING,   /* an optional part is not installed */
    FV_ERROR_INTERNAL,  /* our own mistake */
    FV_ERROR_DEVICE,    /* an OpenCL device failed, or cannot hold what it should */
} fv_status;

typedef struct fv_error {
    fv_status code;
    char      op[32];       /* operator, format or command concerned; may be empty */
    char      item[256];    /* input item concerned; may be empty */
    int64_t   chunk;        /* task or chunk number, -1 where none */
    int       rank;         /* worker, -1 where none */
    char      message[768]; /* one plain sentence: the parameter, its value, what is allowed */
} fv_error;

/* Fills *error (which may be NULL) and returns code, so that a function can `return fv_fail(...)`. */
FV_API fv_status fv_fail(fv_error *error, fv_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

FV_API const char *fv_status_name(fv_status status);

#define FV_TRY(expression)                                                                                                       \
    do {                                                                                                                         \
        fv_status fv_try_status = (expression);                                                                                  \
        if (fv_try_status != FV_OK) return fv_try_status;                                                                        \
    } while (0)

#endif
