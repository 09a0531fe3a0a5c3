/* pattern: any structuring element, voxel by voxel. */
#include "op/op.h"

typedef struct {
    fv_list    values;
    fv_numbers shape;
} pattern;

static const fv_param params[] = {
    FV_PARAM(pattern, values, .min = 0, .max = 1,
             .doc = "1 where a voxel belongs to it, row by row; [0, 1, 1, 0, 1, 0, 0, 0, 0] is 3 x 3"),
    FV_PARAM(pattern, shape, .def = "", .min = 1, .max = 255, .unit = "px",
             .doc = "sizes of the list along the spatial axes, odd numbers; left out: the same along each axis"),
    FV_PARAM_END,
};

static fv_status value(const void *parameters, fv_footprint *out, fv_error *error) {
    const pattern *p = parameters;
    int64_t        voxels = 1;
    bool           any = false;
    *out = (fv_footprint){ .shape = FV_FOOTPRINT_PATTERN, .ndim = p->shape.count, .values = p->values };
    for (int64_t i = 0; i < p->values.count; i++) {
        if (p->values.value[i] != 0 && p->values.value[i] != 1)
            return fv_fail(error, FV_ERROR_USAGE, "values hold %g: each must be 0 or 1", p->values.value[i]);
        any = any || p->values.value[i] != 0;
    }
    if (!any) return fv_fail(error, FV_ERROR_USAGE, "values hold no 1: at least one voxel must belong to it");
    if (p->shape.count > 3) return fv_fail(error, FV_ERROR_USAGE, "shape has %d numbers; give at most 3", p->shape.count);
    for (int d = 0; d < p->shape.count; d++) {
        int64_t size = (int64_t)p->shape.value[d];
        if ((double)size != p->shape.value[d] || size % 2 == 0)
            return fv_fail(error, FV_ERROR_USAGE, "shape = %g: must be an odd whole number, so that there is a middle voxel",
                           p->shape.value[d]);
        out->size[d] = size;
        voxels *= size;
    }
    if (p->shape.count && voxels != p->values.count)
        return fv_fail(error, FV_ERROR_USAGE, "values has %lld numbers; shape asks for %lld", (long long)p->values.count,
                       (long long)voxels);
    return FV_OK;
}

const fv_op FV_OP(pattern) = {
    .name = "pattern",
    .family = "footprint",
    .brief = "any footprint, voxel by voxel",
    .version = 1,
    .params = params,
    .params_size = sizeof(pattern),
    .result = FV_KIND_FOOTPRINT,
    .value = value,
    .doc = "As the footprint of scipy.ndimage.grey_erosion, around its middle voxel; for a dilation it is mirrored. The time "
           "grows with the number of voxels: box, ball and disk are faster.",
    .example = "phantom(\"cells\", [200, 200]) |> open(pattern([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], shape = [1, "
               "15])) |> write(\"lines.png\")",
    .see = "ball disk box cross",
};
