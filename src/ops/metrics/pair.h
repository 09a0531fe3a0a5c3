/* Two images that are compared voxel by voxel: what they must have in common. */
#ifndef FV_PAIR_H
#define FV_PAIR_H

#include "op/promote.h"

static inline fv_status fv__pair_check(const fv_infer *i, const char *a, const char *b, fv_error *error) {
    const char *names[2] = { a, b };
    for (int k = 0; k < 2; k++)
        if (fv_dtype_is_complex(i->in[k]->image.dtype))
            return fv_fail(error, FV_ERROR_USAGE, "%s is %s: it must be real", names[k], fv_dtype_name(i->in[k]->image.dtype));
    return fv__same_shape(&i->in[0]->image, a, &i->in[1]->image, b, error);
}

/* The statement that sets `range`: what is given as data_range (input number `input`), or the range of the integer type of a. */
static inline fv_status fv__pair_range(const fv_infer *i, int input, fv_bytes *text, fv_error *error) {
    fv_dtype dtype = i->in[0]->image.dtype;
    if (i->in[input]->kind == FV_KIND_SCALAR)
        fv__bytes_printf(text, "range = data_range\n");
    else if (fv_dtype_is_float(dtype))
        return fv_fail(error, FV_ERROR_USAGE,
                       "a is %s, and how far its values can reach is not known: give data_range = 1, or data_range = max(a) - "
                       "min(a)",
                       fv_dtype_name(dtype));
    else
        fv__bytes_printf(text, "range = %.17g\n", dtype == FV_BOOL ? 1 : ldexp(1, 8 * (int)fv_dtype_size(dtype)) - 1);
    return FV_OK;
}

#define FV__PAIR_RANGE_INPUT                                                                                                     \
    {                                                                                                                            \
        "data_range", FV_KIND_SCALAR,                                                                                            \
            .optional = true,                                                                                                    \
            .doc = "largest possible value minus the smallest; left out: that of the type of a, which must be an integer one"    \
    }

#endif
