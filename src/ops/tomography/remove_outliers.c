/* remove_outliers: bright specks, as stray x-rays leave them on a detector. */
#include "op/op.h"

typedef struct {
    double     threshold;
    fv_numbers size;
} remove_outliers;

static const fv_param params[] = {
    FV_PARAM(remove_outliers, threshold, .min = 0,
             .doc = "a voxel is replaced if it is brighter than the median around it "
                    "by more than this"),
    FV_PARAM(remove_outliers, size, .def = "3", .min = 1, .max = 255, .unit = "px", .doc = "edge of the box of the median"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "projections or any image" }, FV_INPUT_END };

const fv_op FV_OP(remove_outliers) = {
    .name = "remove_outliers",
    .family = "tomography",
    .also = "remove_outlier, remove_zingers, dezinger",
    .stage = "filter",
    .brief = "replace voxels that are much brighter than their surroundings by the local median",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(remove_outliers),
    .result = FV_KIND_IMAGE,
    .expands = "where(convert(image, \"float32\") - median(image, size) > threshold, median(image, size), image)",
    .doc = "As tomopy.remove_outlier. Works along the spatial axes, so each projection is treated by itself.",
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "specks = phantom(\"noise\", [200, 200]) > 0.995\n"
               "remove_outliers(where(specks, 255, a), 60, size = 5) |> write(\"clean.png\")",
    .see = "median flatfield",
};
