/* Small helpers that operators share. */
#include "op/op.h"

double fv__scalar_number(const fv_scalar *scalar) {
    switch (scalar->dtype) {
    case FV_FLOAT64: return scalar->real;
    case FV_UINT64: return (double)scalar->natural;
    default: return (double)scalar->integer;
    }
}

int fv__scalar_format(const fv_scalar *scalar, char text[FV_NUMBER_SIZE]) {
    switch (scalar->dtype) {
    case FV_FLOAT64: return fv__real_format(scalar->real, text);
    case FV_UINT64: return fv__natural_format(scalar->natural, text);
    default: return fv__integer_format(scalar->integer, text);
    }
}

void fv__pass_need(const fv_pass *pass, const fv_need *n, fv_region *in) {
    bool empty = fv__region_empty(&n->region);
    for (int i = 0; i < FV_MAX_INPUTS; i++) {
        fv_region nothing = { .ndim = i < n->ninputs && n->in[i] ? n->in[i]->image.ndim : n->region.ndim };
        in[i] = empty ? nothing : n->region;
    }
    if (!empty && pass->need) pass->need(n, in);
}

fv_status fv__numbers_spread(fv_numbers *numbers, int n, const char *name, fv_error *error) {
    if (numbers->count == 1)
        for (int i = 1; i < n; i++) numbers->value[i] = numbers->value[0];
    else if (numbers->count != n)
        return fv_fail(error, FV_ERROR_USAGE, "%s has %d numbers; give one, or %d (one per axis)", name, numbers->count, n);
    numbers->count = n;
    return FV_OK;
}
