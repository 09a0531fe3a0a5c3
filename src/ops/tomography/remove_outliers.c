/* remove_outliers: bright specks, as stray x-rays leave them on a detector. */
#include "op/op.h"

typedef struct {
    double     threshold;
    fv_numbers size;
} remove_outliers;

static const fv_param params[] = {
    FV_PARAM(remove_outliers, threshold, .min = 0, .doc = "how much brighter than the median around it a speck is"),
    FV_PARAM(remove_outliers, size, .def = "3", .min = 1, .max = 255, .unit = "px", .doc = "width of the median"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "projections or any image" }, FV_INPUT_END };

const fv_op FV_OP(remove_outliers) = {
    .name = "remove_outliers",
    .family = "tomography",
    .stage = "filter",
    .brief = "put the local median where a voxel is much brighter",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(remove_outliers),
    .result = FV_KIND_IMAGE,
    .expands = "where(convert(image, \"float32\") - median(image, size) > threshold, median(image, size), image)",
    .doc = "As tomopy.remove_outlier. Acts on the spatial axes, so each projection by itself.",
    .example = "remove_outliers(phantom(\"cells\", [100, 100]), 40) |> write(\"clean.png\")",
};
