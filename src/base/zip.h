/* Zip archives: what they hold, and one member of them as a stream. Only deflated and stored members are read. Nothing that the
 * archive claims is believed: places are checked against the file, and a stream ends where its data does. */
#ifndef FV_ZIP_H
#define FV_ZIP_H

#include "base/base.h"

enum { FV_ZIP_LOCAL = 30, FV_ZIP_END64 = 56, FV_ZIP_STORED = 0, FV_ZIP_DEFLATED = 8 };

typedef struct fv_zip_member {
    char    name[256];
    int     method;
    int64_t local, packed, size; /* place of its header in the file, bytes there, bytes of what it holds */
} fv_zip_member;

typedef struct fv_zip { /* a file; all are borrowed */
    int         fd;
    int64_t     size;
    const char *path;
    const char *kind; /* for messages: "an NPZ file" */
} fv_zip;

typedef bool (*fv_zip_visit)(void *context, const fv_zip_member *member); /* false: enough */

fv_status fv__zip_each(const fv_zip *zip, fv_zip_visit visit, void *context, fv_error *error);
/* Where the data of a member begins in the file; it lies within. */
fv_status fv__zip_start(const fv_zip *zip, const fv_zip_member *member, int64_t *start, fv_error *error);

/* A member from its start. */
typedef struct fv_zip_stream fv_zip_stream;
fv_status fv__zip_stream_new(const fv_zip *zip, const fv_zip_member *member, fv_zip_stream **stream, fv_error *error);
/* Up to size bytes; 0: its end. */
fv_status fv__zip_stream_read(fv_zip_stream *stream, void *to, size_t size, size_t *got, fv_error *error);
void      fv__zip_stream_free(fv_zip_stream *stream);

#endif
