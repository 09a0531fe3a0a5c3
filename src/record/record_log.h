/* The log of a process as it lies in the folder of a run, and the walk over all of them.
 *
 * A task is one slot, and so are a residual and what an operator has spent since the last one. A fact is cut into as many as its
 * text needs; they follow each other in the log, and one that lacks a part is left out.
 */
#ifndef FV_RECORD_LOG_H
#define FV_RECORD_LOG_H

#include "base/slots.h"
#include "record/record.h"

#define FV__RECORD_MAGIC 0x31545646u /* "FVT1" */
enum { FV__TASK = 1, FV__FACT = 2, FV__RESIDUAL = 3, FV__SPENT = 4, FV__FACT_TEXT = 88 };

typedef struct fv__task_slot {
    uint32_t magic, kind;
    fv_hash  key;
    int64_t  item, stage, task;
    double   start, wait, read, compute, write;
    int64_t  bytes_read, bytes_written, memory;
    int32_t  worker, status;
    uint64_t check;
} fv__task_slot;
typedef struct fv__fact_slot {
    uint32_t magic, kind;
    uint64_t number; /* of the fact in its log; all its slots have it */
    uint32_t part, parts;
    uint32_t name, size;          /* length of the name; bytes of text in this slot */
    char     text[FV__FACT_TEXT]; /* name and value, one after the other */
    uint64_t check;
} fv__fact_slot;
typedef struct fv__residual_slot {
    uint32_t    magic, kind;
    fv_residual residual;
    char        unused[24];
    uint64_t    check;
} fv__residual_slot;
typedef struct fv__spent_slot {
    uint32_t magic, kind;
    fv_spent spent;
    char     unused[64];
    uint64_t check;
} fv__spent_slot;
_Static_assert(sizeof(fv__task_slot) == FV_SLOT && sizeof(fv__fact_slot) == FV_SLOT, "they are slots");
_Static_assert(sizeof(fv__residual_slot) == FV_SLOT && sizeof(fv__spent_slot) == FV_SLOT, "they are slots");

/* What is wanted of the logs. */
typedef struct fv__visitor {
    fv_status (*task)(struct fv__visitor *visitor, const char *worker, const fv__task_slot *task, fv_error *error);
    fv_status (*fact)(struct fv__visitor *visitor, const char *name, const char *value, fv_error *error);
    fv_bytes *residuals; /* fv_residual, as they come; NULL: not wanted */
    fv_spent *spent;     /* FV_MOST_SPENT; NULL: not wanted */
    int       nspent;
    uint64_t  number; /* of the fact that is being put together */
    uint32_t  part;   /* that comes next */
    fv_bytes  text;
    void     *context;
} fv__visitor;

/* All logs of a folder, in the order of their names. */
fv_status fv__record_visit(const char *folder, fv__visitor *v, fv_error *error);
/* Sorts by call and iteration, and drops what was said twice: those who go on after a kill say again what they find done. */
int64_t fv__residuals_once(fv_residual *all, int64_t count);

#endif
