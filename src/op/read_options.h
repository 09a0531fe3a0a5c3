/* Options of a reader from the parameters that operators take for them. */
#ifndef FV_READ_OPTIONS_H
#define FV_READ_OPTIONS_H

#include "op/format.h"
#include "op/op.h"

/* All may be left out: no path or an empty one, no shape, dtype -1. */
static inline fv_status fv__read_options_make(const char *path, const fv_numbers *shape, int dtype, int64_t offset,
                                              fv_read_options *options, fv_error *error) {
    *options = (fv_read_options){ .path_inside = path && *path ? path : NULL, .offset = offset };
    if (shape->count > FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "shape has %d axes; at most %d are possible", shape->count, FV_MAX_DIMS);
    options->ndim = shape->count;
    for (int d = 0; d < shape->count; d++) options->shape[d] = (int64_t)shape->value[d];
    options->has_dtype = dtype >= 0;
    if (options->has_dtype) options->dtype = (fv_dtype)dtype;
    return FV_OK;
}

#endif
