/* The center of mass of a frame, for frame_centers (an image) and center_of_mass (a table). */
#ifndef FV_FRAME_CENTER_H
#define FV_FRAME_CENTER_H

#include "op/kernels.h"
#include "op/op.h"

enum { FRAMES, MASK };
static const fv_input inputs[] = {
    { "frames", FV_KIND_IMAGE, .doc = "real image; of each plane y x the center is found" },
    { "mask", FV_KIND_IMAGE, .optional = true, .doc = "pixels that count, axes y x; 0: one that does not, such as a hot one" },
    FV_INPUT_END,
};
enum { Y, X, COUNTS, NUMBERS };

static inline fv_status fv__frame_center_check(const fv_infer *i, fv_error *error) {
    const fv_image_type *f = &i->in[FRAMES]->image, *m = &i->in[MASK]->image;
    int                  last = f->ndim - 1;
    if (f->ndim < 2 || fv_dtype_is_complex(f->dtype))
        return fv_fail(error, FV_ERROR_USAGE, "frames must be real with the axes frame y x");
    if (i->in[MASK]->kind == FV_KIND_IMAGE && (m->ndim != 2 || memcmp(m->shape, f->shape + last - 1, 2 * sizeof *m->shape) != 0))
        return fv_fail(error, FV_ERROR_USAGE, "mask must have the %lld x %lld pixels of a frame", (long long)f->shape[last - 1],
                       (long long)f->shape[last]);
    return FV_OK;
}

/* Whole frames, of the places along the other axes that the region has. */
static inline void fv__frame_center_need(const fv_need *n, fv_region *in) {
    const fv_image_type *f = &n->in[FRAMES]->image;
    in[FRAMES] = fv__region_whole(f);
    for (int d = 0; d < f->ndim - 2; d++) {
        in[FRAMES].start[d] = n->region.start[d];
        in[FRAMES].size[d] = n->region.size[d];
    }
    if (n->in[MASK]->kind == FV_KIND_IMAGE) in[MASK] = fv__region_whole(&n->in[MASK]->image);
}

static inline size_t fv__frame_center_scratch(const fv_need *n) {
    const fv_image_type *f = &n->in[FRAMES]->image;
    return (size_t)(2 * f->shape[f->ndim - 1]) * sizeof(double);
}

/* Of the frame that has the pixel `at`. */
static inline void fv__frame_center(const fv_run *r, int64_t *at, double *value) {
    const fv_block *frames = r->in[FRAMES], *mask = r->in[MASK];
    int             last = frames->region.ndim - 1;
    int64_t         height = frames->region.size[last - 1], width = frames->region.size[last];
    double         *row = r->scratch, *good = row + width, sum[NUMBERS] = { 0 };
    for (int64_t y = 0; y < height; y++) {
        double all = 0, along = 0;
        at[last - 1] = y;
        at[last] = 0;
        fv__kernels_current()->convert(row, FV_FLOAT64, fv__block_at(frames, at), frames->dtype, width);
        if (mask) fv__kernels_current()->convert(good, FV_FLOAT64, fv__block_at(mask, (int64_t[]){ y, 0 }), mask->dtype, width);
        for (int64_t x = 0; x < width; x++) {
            if ((mask && good[x] == 0) || !(fabs(row[x]) < INFINITY)) continue;
            all += row[x];
            along += row[x] * (double)x;
        }
        sum[Y] += all * (double)y;
        sum[X] += along;
        sum[COUNTS] += all;
    }
    value[Y] = sum[COUNTS] > 0 ? sum[Y] / sum[COUNTS] : (double)NAN;
    value[X] = sum[COUNTS] > 0 ? sum[X] / sum[COUNTS] : (double)NAN;
    value[COUNTS] = sum[COUNTS];
}

#endif
