/* cross: a voxel and its face neighbours. */
#include "op/op.h"

typedef struct {
    char none;
} cross;

static const fv_param params[] = { FV_PARAM_END };

static fv_status value(const void *parameters, fv_footprint *out, fv_error *error) {
    (void)parameters;
    (void)error;
    *out = (fv_footprint){ .shape = FV_FOOTPRINT_CROSS };
    return FV_OK;
}

const fv_op FV_OP(cross) = {
    .name = "cross",
    .family = "footprint",
    .brief = "a voxel and its face neighbours",
    .version = 1,
    .params = params,
    .params_size = sizeof(cross),
    .result = FV_KIND_FOOTPRINT,
    .value = value,
    .doc = "The footprint that scipy.ndimage and scikit-image use if none is given: generate_binary_structure(ndim, 1).",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> open(cross()) |> write(\"opened.png\")",
    .see = "ball disk box pattern",
};
