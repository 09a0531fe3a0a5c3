/* Labels that are measured one plane or time at a time: the axis along which they are taken apart, and types, regions and blocks
 * without it. */
#ifndef FV_PER_AXIS_H
#define FV_PER_AXIS_H

#include "op/axes.h"
#include "op/op.h"

#define FV_DOC_PER                                                                                                               \
    "axis along which the labels are taken apart, such as \"t\" or \"z\": each of its indices is measured by itself, and the "   \
    "table has a row for each index and label; left out: all together"

/* -1: none. */
static inline fv_status fv__per_find(const char *per, const fv_image_type *labels, int *axis, fv_error *error) {
    *axis = -1;
    if (!per || !*per) return FV_OK;
    *axis = fv__axis_find(labels, per);
    if (*axis < 0) return fv_fail(error, FV_ERROR_USAGE, "per = \"%s\": labels has no such axis; fovea info shows its axes", per);
    if (*axis == labels->ndim - 1)
        return fv_fail(error, FV_ERROR_USAGE, "per = \"%s\": the last axis of labels cannot be taken apart", per);
    return FV_OK;
}

static inline int fv__per_axis(const char *per, const fv_image_type *labels) {
    int      axis;
    fv_error error = { 0 };
    return fv__per_find(per, labels, &axis, &error) == FV_OK ? axis : -1;
}

static inline fv_type fv__per_type(const fv_type *labels, int axis) {
    fv_type type = *labels;
    if (axis >= 0) fv__axis_drop(&type.image, axis);
    return type;
}

static inline fv_region fv__per_region(const fv_region *region, int axis) {
    fv_region out = *region;
    if (axis < 0) return out;
    out.ndim--;
    for (int d = axis; d < out.ndim; d++) {
        out.start[d] = region->start[d + 1];
        out.size[d] = region->size[d + 1];
    }
    return out;
}

/* The block at one index of the axis. */
static inline fv_block fv__per_block(const fv_block *block, int axis, int64_t index) {
    fv_block out = *block;
    if (axis < 0) return out;
    int64_t skip = (index - block->region.start[axis]) * block->stride[axis];
    out.region = fv__per_region(&block->region, axis);
    for (int d = axis; d < out.region.ndim; d++) out.stride[d] = block->stride[d + 1];
    out.data = (char *)block->data + skip * (int64_t)fv_dtype_size(block->dtype);
    return out;
}

#endif
