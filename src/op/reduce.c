/* What reductions of an image to a number share. */
#include "op/reduce.h"

fv_status fv__infer_scalar(fv_infer *i, fv_dtype dtype, fv_error *error) {
    if (fv_dtype_is_complex(i->in[0]->image.dtype))
        return fv_fail(error, FV_ERROR_USAGE, "the image is %s; real, integer and bool images are possible",
                       fv_dtype_name(i->in[0]->image.dtype));
    *i->out = (fv_type){ .kind = FV_KIND_SCALAR, .dtype = dtype };
    return FV_OK;
}

fv_dtype fv__scalar_type(fv_dtype dtype) {
    return dtype == FV_BOOL || dtype == FV_UINT64 ? dtype : fv_dtype_is_integer(dtype) ? FV_INT64 : FV_FLOAT64;
}

fv_status fv__finish_partial(fv_finish *f, const void **partial, size_t size, fv_error *error) {
    *partial = NULL;
    if (!f->npartials || !f->size(f, 0)) return FV_OK;
    if (f->size(f, 0) != size) return fv_fail(error, FV_ERROR_INTERNAL, "a partial has %zu bytes, not %zu", f->size(f, 0), size);
    return f->partial(f, 0, partial, error);
}

fv_status fv__put_scalar(fv_finish *f, const fv_scalar *scalar, fv_error *error) {
    fv_scalar clean;
    memset(&clean, 0, sizeof clean); /* also between the fields: equal results are equal bytes */
    clean.dtype = scalar->dtype;
    clean.natural = scalar->natural;
    return f->put(f, 0, &clean, sizeof clean, error);
}

fv_status fv__put_real(fv_finish *f, double value, fv_error *error) {
    return fv__put_scalar(f, &(fv_scalar){ .dtype = FV_FLOAT64, .real = value }, error);
}

fv_status fv__put_whole(fv_finish *f, int64_t value, fv_error *error) {
    return fv__put_scalar(f, &(fv_scalar){ .dtype = FV_INT64, .integer = value }, error);
}

void fv__need_nothing(fv_region *region) {
    for (int d = 0; d < region->ndim; d++) region->size[d] = 0;
}
