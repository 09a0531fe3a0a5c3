/* Boxes of an image that lies uncompressed in a file (NPY, raw, NIfTI, MRC): read and written by region, in either order of
 * axes and either byte order.
 */
#ifndef FV_DENSE_H
#define FV_DENSE_H

#include "image/region.h"

typedef struct fv_dense {
    int64_t  offset;  /* of the first voxel in the file */
    fv_dtype dtype;   /* of the block; the file holds the same, but for `half` */
    bool     swapped; /* the other byte order */
    bool     half;    /* the file holds float16 and dtype is FV_FLOAT32; only for reading */
    bool     fortran; /* the first axis is contiguous in the file */
    int      ndim;
    int64_t  shape[FV_MAX_DIMS];
} fv_dense;

/* Bytes that fv__dense_read needs beyond the block, at most. */
#define FV_DENSE_MEMORY ((int64_t)1 << 20)

/* n elements of 1, 2, 4, 8 or 16 bytes; steps count elements. */
void  fv__copy_strided(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n, size_t size);
float fv__half_widen(uint16_t half); /* float16 to float32, exactly */

int64_t fv__dense_bytes(const fv_dense *dense); /* of all voxels in the file; -1 on overflow */

/* Whole trailing axes, as many as make a box of about that many bytes: it lies in one run in the file. */
void fv__dense_piece(const fv_image_type *type, int64_t bytes, int64_t piece[FV_MAX_DIMS]);
/* Turns the byte order of n elements in place; complex ones part by part. */
void fv__swap_elements(fv_dtype dtype, void *data, int64_t n);

/* Thread-safe on one descriptor. Bytes of a bool other than 0 become 1. */
fv_status fv__dense_read(const fv_dense *dense, int fd, const char *path, const fv_block *block, fv_error *error);
/* Native byte order and last axis contiguous only. */
fv_status fv__dense_write(const fv_dense *dense, int fd, const char *path, const fv_block *block, fv_error *error);

#endif
