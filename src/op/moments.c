/* Exact count, sum and sum of squares: the part that does not depend on the instruction set. */
#include "op/moments.h"

void fv__moments_init(fv_moments *moments, fv_dtype dtype) {
    memset(moments, 0, sizeof *moments);
    bool single = dtype == FV_FLOAT32, real = single || dtype == FV_FLOAT64;
    fv__sum_init(&moments->sum.sum, single ? FV_SUM_FLOAT32 : real ? FV_SUM_FLOAT64 : FV_SUM_INTEGER);
    fv__sum_init(&moments->squares.sum, single ? FV_SUM_FLOAT32_SQUARES : real ? FV_SUM_FLOAT64_SQUARES : FV_SUM_INTEGER);
}

void fv__moments_combine(const void *params, fv_bytes *into, const void *partial, size_t size) {
    (void)params;
    (void)size;
    fv_moments       *a = (fv_moments *)into->data;
    const fv_moments *b = partial;
    a->count += b->count;
    fv__sum_merge(&a->sum.sum, &b->sum.sum);
    fv__sum_merge(&a->squares.sum, &b->squares.sum);
}
