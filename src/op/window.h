/* Windows of neighbourhood operators: parameters that follow the spatial axes of an image. */
#ifndef FV_WINDOW_H
#define FV_WINDOW_H

#include "op/op.h"

/* The spatial axes of an image that a neighbourhood operator works on: 1 to 3, indices in order. */
static inline fv_status fv__window_axes(const fv_type *type, int axis[FV_MAX_DIMS], int *naxes, fv_error *error) {
    *naxes = fv_image_type_spatial(&type->image, axis);
    if (*naxes < 1 || *naxes > 3)
        return fv_fail(error, FV_ERROR_USAGE,
                       "the image has %d spatial axes; it must have 1 to 3 of z, y and x, or v and u; name_axes names them",
                       *naxes);
    return FV_OK;
}

/* Refuses complex images. */
static inline fv_status fv__window_real(const fv_type *type, fv_error *error) {
    if (fv_dtype_is_complex(type->image.dtype))
        return fv_fail(error, FV_ERROR_USAGE, "image is %s; complex numbers have no order: it must be real",
                       fv_dtype_name(type->image.dtype));
    return FV_OK;
}

/* Spreads sizes over n axes and checks that each is a whole number within 1 ... max. */
static inline fv_status fv__window_sizes(fv_numbers *size, int n, double max, fv_error *error) {
    FV_TRY(fv__numbers_spread(size, n, "size", error));
    for (int k = 0; k < n; k++)
        if (!(size->value[k] >= 1 && size->value[k] <= max) || size->value[k] != floor(size->value[k]))
            return fv_fail(error, FV_ERROR_USAGE, "size = %g: must be a whole number between 1 and %g", size->value[k], max);
    return FV_OK;
}

/* The same for a parameter whose sizes must be odd. */
static inline fv_status fv__window_odd(fv_numbers *size, int n, double max, const char *name, fv_error *error) {
    FV_TRY(fv__numbers_spread(size, n, name, error));
    for (int k = 0; k < n; k++)
        if (!(size->value[k] >= 1 && size->value[k] <= max) || fmod(size->value[k], 2) != 1)
            return fv_fail(error, FV_ERROR_USAGE, "%s = %g: must be an odd whole number between 1 and %g", name, size->value[k],
                           max - 1);
    return FV_OK;
}

#endif
