/* box: a rectangular structuring element. */
#include "op/op.h"

typedef struct {
    fv_numbers size;
} box;

static const fv_param params[] = {
    FV_PARAM(box, size, .min = 1, .max = 65535, .unit = "px",
             .doc = "width, an odd number: one for all spatial axes, or one "
                    "for each"),
    FV_PARAM_END,
};

static fv_status value(const void *parameters, fv_footprint *out, fv_error *error) {
    const fv_numbers *size = &((const box *)parameters)->size;
    if (size->count < 1 || size->count > FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "size has %d numbers; give one, or one per spatial axis", size->count);
    *out = (fv_footprint){ .shape = FV_FOOTPRINT_BOX, .ndim = size->count };
    for (int d = 0; d < size->count; d++) {
        int64_t width = (int64_t)size->value[d];
        if ((double)width != size->value[d] || width % 2 == 0)
            return fv_fail(error, FV_ERROR_USAGE, "size = %g: must be an odd whole number, so that the box has a middle voxel",
                           size->value[d]);
        out->size[d] = width;
    }
    return FV_OK;
}

const fv_op FV_OP(box) = {
    .name = "box",
    .family = "footprint",
    .brief = "a rectangular footprint",
    .also = "rectangle, strel",
    .version = 1,
    .params = params,
    .params_size = sizeof(box),
    .result = FV_KIND_FOOTPRINT,
    .value = value,
    .doc = "box(3) is 3 voxels wide along every spatial axis. box([3, 5, 5]) is 3 wide along z and 5 along y and x.",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> erode(box(7)) |> write(\"eroded.png\")",
    .see = "ball disk cross pattern",
};
