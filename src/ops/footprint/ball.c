/* ball: all voxels within a distance, over every spatial axis. */
#include "op/op.h"

typedef struct {
    double radius;
} ball;

static const fv_param params[] = {
    FV_PARAM(ball, radius, .min = 0, .max = 16384, .unit = "px", .doc = "largest distance from the middle voxel"),
    FV_PARAM_END,
};

static fv_status value(const void *parameters, fv_footprint *out, fv_error *error) {
    (void)error;
    *out = (fv_footprint){ .shape = FV_FOOTPRINT_BALL, .radius = ((const ball *)parameters)->radius };
    return FV_OK;
}

const fv_op FV_OP(ball) = {
    .name = "ball",
    .family = "footprint",
    .brief = "a round footprint over all spatial axes",
    .also = "sphere",
    .version = 1,
    .params = params,
    .params_size = sizeof(ball),
    .result = FV_KIND_FOOTPRINT,
    .value = value,
    .doc = "A voxel belongs to it if the sum of its squared offsets is at most radius squared, as in "
           "skimage.morphology.ball. On a plane it is a disk. The radius need not be a whole number.",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> erode(ball(4)) |> write(\"eroded.png\")",
    .see = "disk box cross pattern erode dilate",
};
