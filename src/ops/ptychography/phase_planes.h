/* Operators on the phase of whole planes y x: of a complex image or of one in radians, with a mask of a plane's shape. A plan
 * asks for whole planes (slab); on any other lattice each task looks at the planes that it touches. */
#ifndef FV_PHASE_PLANES_H
#define FV_PHASE_PLANES_H

#include "op/kernels.h"
#include "op/op.h"

enum { FV_PLANES_IMAGE, FV_PLANES_MASK };

static inline fv_status fv__planes_check(const fv_infer *i, const char *op, fv_error *error) {
    const fv_image_type *a = &i->in[FV_PLANES_IMAGE]->image, *m = &i->in[FV_PLANES_MASK]->image;
    if (a->ndim < 2) return fv_fail(error, FV_ERROR_USAGE, "image must have the axes y x");
    const int64_t *plane = a->shape + a->ndim - 2;
    if (!fv_dtype_is_float(a->dtype) && !fv_dtype_is_complex(a->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image has type %s; %s takes a complex image or a phase in radians",
                       fv_dtype_name(a->dtype), op);
    if (i->in[FV_PLANES_MASK]->kind == FV_KIND_IMAGE && (m->ndim != 2 || memcmp(m->shape, plane, 2 * sizeof *plane) != 0))
        return fv_fail(error, FV_ERROR_USAGE, "mask must have the %lld x %lld pixels of a plane", (long long)plane[0],
                       (long long)plane[1]);
    return FV_OK;
}

static inline void fv__planes_need(const fv_need *n, fv_region *in) {
    const fv_image_type *type = &n->in[FV_PLANES_IMAGE]->image;
    for (int d = type->ndim - 2; d < type->ndim; d++) {
        in[FV_PLANES_IMAGE].start[d] = 0;
        in[FV_PLANES_IMAGE].size[d] = type->shape[d];
    }
    if (n->in[FV_PLANES_MASK]->kind == FV_KIND_IMAGE) in[FV_PLANES_MASK] = fv__region_whole(&n->in[FV_PLANES_MASK]->image);
}

static inline void fv__planes_slab(const fv_need *n, int64_t *chunk) {
    const fv_image_type *type = &n->out->image;
    for (int d = 0; d < type->ndim; d++) chunk[d] = d < type->ndim - 2 ? 1 : type->shape[d];
}

/* One pixel of each plane that a region touches: fv__rows_next gives the place of its first. */
static inline fv_region fv__planes_of(const fv_region *region) {
    fv_region planes = *region;
    for (int d = planes.ndim - 2; d < planes.ndim; d++) {
        planes.start[d] = 0;
        planes.size[d] = 1;
    }
    return planes;
}

/* The type of real and imaginary parts, or of real numbers themselves. */
static inline fv_dtype fv__part_type(fv_dtype dtype) {
    return dtype == FV_COMPLEX64 ? FV_FLOAT32 : dtype == FV_COMPLEX128 ? FV_FLOAT64 : dtype;
}

/* n numbers (two for each pixel of a complex image) from column x of row y of the plane at `at` on, in double precision. */
static inline void fv__plane_row(const fv_block *block, int64_t *at, int64_t y, int64_t x, int64_t n, double *to) {
    at[block->region.ndim - 2] = y;
    at[block->region.ndim - 1] = x;
    fv__kernels_current()->convert(to, FV_FLOAT64, fv__block_at(block, at), fv__part_type(block->dtype), n);
}
static inline void fv__plane_row_put(const fv_block *block, int64_t *at, int64_t y, int64_t x, int64_t n, const double *from) {
    at[block->region.ndim - 2] = y;
    at[block->region.ndim - 1] = x;
    fv__kernels_current()->convert(fv__block_at(block, at), fv__part_type(block->dtype), from, FV_FLOAT64, n);
}

#endif
