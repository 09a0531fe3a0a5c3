/* disk: all voxels of a slice within a distance, in each slice. */
#include "op/op.h"

typedef struct {
    double radius;
} disk;

static const fv_param params[] = {
    FV_PARAM(disk, radius, .min = 0, .max = 16384, .unit = "px", .doc = "largest distance from the middle voxel"),
    FV_PARAM_END,
};

static fv_status value(const void *parameters, fv_footprint *out, fv_error *error) {
    (void)error;
    *out = (fv_footprint){ .shape = FV_FOOTPRINT_DISK, .radius = ((const disk *)parameters)->radius };
    return FV_OK;
}

const fv_op FV_OP(disk) = {
    .name = "disk",
    .family = "footprint",
    .brief = "a round footprint in each slice",
    .version = 1,
    .params = params,
    .params_size = sizeof(disk),
    .result = FV_KIND_FOOTPRINT,
    .value = value,
    .doc = "A voxel belongs to it if the sum of its squared offsets along y and x is at most radius squared, as in "
           "skimage.morphology.disk. A volume is treated slice by slice, a series of projections one by one.",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> dilate(disk(3)) |> write(\"dilated.png\")",
    .see = "ball box cross pattern erode dilate",
};
