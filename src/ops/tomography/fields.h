/* Flat and dark fields: images of the detector without the object, once or several times. */
#ifndef FV_FIELDS_H
#define FV_FIELDS_H

#include "op/kernels.h"
#include "op/op.h"

/* Fails unless a field that is given is z x, or n z x, as projections angle z x have it. */
static inline fv_status fv__field_check(const fv_type *field, const fv_image_type *p, const char *name, fv_error *error) {
    int less = field->image.ndim - 2;
    if (field->kind == FV_KIND_NONE) return FV_OK;
    if (less < 0 || less > 1 || field->image.shape[less] != p->shape[1] || field->image.shape[less + 1] != p->shape[2])
        return fv_fail(error, FV_ERROR_USAGE, "%s must be %lld rows of %lld columns, as the projections, once or several times",
                       name, (long long)p->shape[1], (long long)p->shape[2]);
    return fv_dtype_is_complex(field->image.dtype) ? fv_fail(error, FV_ERROR_USAGE, "%s must be real", name) : FV_OK;
}

/* The part of a field that a region of the projections needs. */
static inline fv_region fv__field_need(const fv_type *field, const fv_region *region) {
    fv_region in = fv__region_whole(&field->image);
    for (int d = 0; d < 2; d++) {
        in.start[in.ndim - 2 + d] = region->start[1 + d];
        in.size[in.ndim - 2 + d] = region->size[1 + d];
    }
    return in;
}

/* Mean over the images of a field, one row; without a field 0. */
static inline void fv__field_row(const fv_block *field, int64_t row, int64_t n, float *raw, float *to) {
    int     several = field && field->region.ndim == 3;
    int64_t count = several ? field->region.size[0] : 1;
    memset(to, 0, (size_t)n * sizeof *to);
    for (int64_t k = 0; field && k < count; k++) {
        int64_t at = (several ? k * field->stride[0] : 0) + row * field->stride[several];
        fv__kernels_current()->convert(raw, FV_FLOAT32, (const char *)field->data + at * (int64_t)fv_dtype_size(field->dtype),
                                       field->dtype, n);
        for (int64_t x = 0; x < n; x++) to[x] += raw[x];
    }
    for (int64_t x = 0; x < n; x++) to[x] /= (float)count;
}

/* What flatfield and expose share: the order of their inputs, their typing, the regions they need, their scratch. */
enum { FV__PROJECTIONS, FV__FLAT, FV__DARK, FV__FIELDS };

static inline fv_status fv__fields_infer(fv_infer *i, const fv_input *inputs, fv_error *error) {
    const fv_image_type *p = &i->in[FV__PROJECTIONS]->image;
    if (p->ndim != 3) return fv_fail(error, FV_ERROR_USAGE, "projections have %d axes; needed are angle z x", p->ndim);
    if (fv_dtype_is_complex(p->dtype)) return fv_fail(error, FV_ERROR_USAGE, "projections must be real");
    for (int k = FV__FLAT; k < FV__FIELDS; k++) FV_TRY(fv__field_check(i->in[k], p, inputs[k].name, error));
    i->out->image.dtype = FV_FLOAT32;
    return FV_OK;
}

static inline void fv__fields_need(const fv_need *n, fv_region *in) {
    for (int k = FV__FLAT; k < FV__FIELDS; k++)
        if (n->in[k]->kind == FV_KIND_IMAGE) in[k] = fv__field_need(n->in[k], &n->region);
}

static inline size_t fv__fields_scratch(const fv_need *n) { return (size_t)n->region.size[2] * 3 * sizeof(float) + 192; }

#endif
