/* Least and greatest value: the part that does not depend on the instruction set. */
#include "op/extent.h"

void fv__extent_init(fv_extent *extent, fv_dtype dtype) {
    memset(extent, 0, sizeof *extent);
    extent->mark = -1;
    extent->low.dtype = extent->high.dtype = fv__scalar_type(dtype);
    switch (extent->low.dtype) {
    case FV_UINT64:
        extent->low.natural = UINT64_MAX;
        extent->high.natural = 0;
        break;
    case FV_FLOAT64:
        extent->low.real = INFINITY;
        extent->high.real = -INFINITY;
        break;
    default:
        extent->low.integer = INT64_MAX;
        extent->high.integer = INT64_MIN;
        break;
    }
}

static bool below(const fv_scalar *a, const fv_scalar *b) { /* -0 is below 0, so that the order of chunks does not matter */
    switch (a->dtype) {
    case FV_UINT64: return a->natural < b->natural;
    case FV_FLOAT64: return a->real < b->real || (a->real == b->real && signbit(a->real) && !signbit(b->real));
    default: return a->integer < b->integer;
    }
}

void fv__extent_merge(fv_extent *into, const fv_extent *from) {
    if (below(&from->low, &into->low)) into->low = from->low;
    if (below(&into->high, &from->high)) into->high = from->high;
    into->nan |= from->nan;
    into->count += from->count;
}

void fv__extent_combine(const void *params, fv_bytes *into, const void *partial, size_t size) {
    (void)params;
    (void)size;
    fv__extent_merge((fv_extent *)into->data, partial);
}

fv_status fv__extent_finish(fv_finish *f, fv_extent *extent, fv_error *error) {
    const void *partial = NULL;
    size_t      size = f->npartials ? f->size(f, 0) : 0;
    if (size && size < sizeof *extent) return fv_fail(error, FV_ERROR_INTERNAL, "a partial has only %zu bytes", size);
    if (size) FV_TRY(f->partial(f, 0, &partial, error));
    if (partial) memcpy(extent, partial, sizeof *extent);
    if (!partial || !extent->count) return fv_fail(error, FV_ERROR_INPUT, "the image has no voxels");
    if (extent->nan) extent->low.real = extent->high.real = NAN;
    return FV_OK;
}
