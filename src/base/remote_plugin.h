/* What Fovea wants of an HTTP library: one request, one answer. The plug-in fovea-remote.so offers it by way of libcurl. */
#ifndef FV_REMOTE_PLUGIN_H
#define FV_REMOTE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FV_REMOTE_VERSION = 4, FV_REMOTE_TEXT = 256 };

typedef struct fv_remote_call {
    const char *method, *url;
    const char *range;    /* "0-99"; NULL: everything */
    const char *if_match; /* the ETag that it must still have; NULL: any */
    const char *signing;  /* "aws:amz:REGION:s3"; NULL: not signed */
    const char *user;     /* "KEY:SECRET" to sign with */
    const char *token;    /* of a session; NULL: none */
    const void *body;     /* of a PUT; NULL: none, or give has it */
    /* Up to size bytes of the body from an offset; -1: they cannot be had. NULL: there is no body, or body is it. */
    int64_t (*give)(void *context, size_t offset, void *data, size_t size);
    size_t body_size;
    size_t room; /* bytes that the answer must not exceed */
    void  *data; /* where it goes; NULL: to take */
    bool (*take)(void *context, size_t offset, const void *data, size_t size);
    void *context;
    long  patience; /* seconds in which something must arrive */
    /* The answer */
    size_t  size;
    long    status;
    bool    unranged;             /* a range was asked for, and the whole file would have come: nothing was taken */
    int64_t length, first, total; /* Content-Length; first byte and whole size in Content-Range; -1: not said */
    char    etag[FV_REMOTE_TEXT], modified[FV_REMOTE_TEXT];
    char    message[FV_REMOTE_TEXT]; /* why there is no whole answer */
} fv_remote_call;

typedef struct fv_remote_plugin {
    int version;
    /* From any thread. False: no whole answer came. */
    bool (*perform)(fv_remote_call *call);
} fv_remote_plugin;

const fv_remote_plugin *fv_remote_plugin_get(void);

#endif
