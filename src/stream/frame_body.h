/* The body of a message: voxels as they are, packed ones, or a small file of a format that images are read from. */
#ifndef FV_FRAME_BODY_H
#define FV_FRAME_BODY_H

#include "base/base.h"
#include <fovea/image.h>

typedef struct fv_body {
    const void          *data; /* of the message; after decoding the voxels */
    size_t               size;
    const char          *codec; /* "" or none, lz4, zstd, blosc */
    const fv_image_type *type;  /* what headers say; NULL: the body tells itself */
    int64_t              most;  /* bytes that it may unpack to */
    void                *made;  /* a buffer for voxels that are not those of the message; the caller frees */
    size_t               room;  /* its size */
} fv_body;

/* type: what it turned out to be. */
fv_status fv__body_decode(fv_body *body, fv_image_type *type, fv_error *error);

/* The header of an NPY file at the start of some bytes: where its voxels begin, its type, and its whole length in *wanted. A type
 * without axes: its voxels do not lie there as they do in memory. FV_ERROR_MISSING: more bytes are needed to tell, at least
 * *wanted. */
fv_status fv__npy_look(const void *data, size_t size, fv_image_type *type, size_t *begin, size_t *wanted, fv_error *error);

#endif
