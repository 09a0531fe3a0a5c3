/* Boxes of images, lattices of chunks, and blocks: a box with its pixels. */
#ifndef FV_REGION_H
#define FV_REGION_H

#include "base/base.h"
#include <fovea/image.h>

/* ---- regions ---- */
fv_region fv__region_whole(const fv_image_type *type);
int64_t   fv__region_voxels(const fv_region *region);
bool      fv__region_empty(const fv_region *region);
bool      fv__region_equal(const fv_region *a, const fv_region *b);
bool      fv__region_inside(const fv_region *inner, const fv_region *outer);
fv_region fv__region_intersect(const fv_region *a, const fv_region *b); /* may be empty */
fv_region fv__region_bound(const fv_region *a, const fv_region *b);     /* least box around both; an empty one counts nothing */
fv_region fv__region_grow(const fv_region *region, const int64_t *before, const int64_t *after);
fv_region fv__region_clip(const fv_region *region, const int64_t *shape);
void      fv__region_format(const fv_region *region, char *text, size_t size); /* "0:64, 0:400" */

/* ---- lattice: a regular cut of an image into chunks; the last ones may be smaller ---- */
typedef struct fv_lattice {
    int     ndim;
    int64_t shape[FV_MAX_DIMS];
    int64_t chunk[FV_MAX_DIMS];
} fv_lattice;
void fv__lattice_init(fv_lattice *lattice, int ndim, const int64_t *shape, const int64_t *chunk); /* chunk clipped to 1..shape */
int64_t   fv__lattice_count(const fv_lattice *lattice);
int64_t   fv__lattice_count_axis(const fv_lattice *lattice, int axis);
fv_region fv__lattice_chunk(const fv_lattice *lattice, int64_t index);           /* in C order */
int64_t   fv__lattice_index(const fv_lattice *lattice, const int64_t *position); /* chunk that holds a voxel */
/* Least union of whole chunks around a region. */
fv_region fv__lattice_align(const fv_lattice *lattice, const fv_region *region);

/* ---- blocks ----
 * data points at the voxel region.start. Strides count elements; the last axis is contiguous (stride 1). A block may be a
 * window into a larger one, so rows are not adjacent in general: walk it row by row. */
typedef struct fv_block {
    fv_dtype  dtype;
    fv_region region;
    int64_t   stride[FV_MAX_DIMS];
    void     *data;
} fv_block;

/* Dense block over caller's memory of at least voxels * size bytes. */
void fv__block_init(fv_block *block, fv_dtype dtype, const fv_region *region, void *data);
/* The same pixels seen through a smaller region, which must lie inside. */
fv_block fv__block_window(const fv_block *block, const fv_region *region);
/* Address of a voxel given by image coordinates. */
static inline void *fv__block_at(const fv_block *block, const int64_t *position) {
    int64_t offset = 0;
    for (int d = 0; d < block->region.ndim; d++) offset += (position[d] - block->region.start[d]) * block->stride[d];
    return (char *)block->data + offset * (int64_t)fv_dtype_size(block->dtype);
}
bool fv__block_dense(const fv_block *block);
/* Copies the part of from that to covers (to's region must lie inside from's); same dtype. */
void fv__block_copy(const fv_block *to, const fv_block *from);

/* Walks the rows (last axis) of a region in C order:
 *     fv_rows rows; for (fv__rows_begin(&rows, &region); fv__rows_next(&rows);) use(rows.position) */
typedef struct fv_rows {
    fv_region region;
    int64_t   position[FV_MAX_DIMS]; /* first voxel of the row, image coordinates */
    bool      started, done;
} fv_rows;
void fv__rows_begin(fv_rows *rows, const fv_region *region);
bool fv__rows_next(fv_rows *rows);

#endif
