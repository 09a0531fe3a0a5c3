/* unsharp: fine structure made stronger, as skimage.filters.unsharp_mask. */
#include "op/op.h"

typedef struct {
    fv_numbers radius;
    double     amount;
} unsharp;

static const fv_param params[] = {
    FV_PARAM(unsharp, radius, .def = "1", .min = 0, .max = 1e4, .unit = "px",
             .doc = "standard deviation of the Gaussian, one number or one per spatial axis"),
    FV_PARAM(unsharp, amount, .def = "1", .doc = "how much of the fine structure is added; a negative amount smooths"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to sharpen" }, FV_INPUT_END };

const fv_op FV_OP(unsharp) = {
    .name = "unsharp",
    .family = "filter",
    .brief = "sharpen by adding back what smoothing takes away",
    .version = 1,
    .also = "unsharp_mask, imsharpen, sharpen",
    .doc = "As skimage.filters.unsharp_mask with preserve_range = True: values are not scaled before and not limited "
           "afterwards. Nan and infinity spread to every voxel that the filter reaches from there.",
    .citation = "skimage.filters.unsharp_mask",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(unsharp),
    .result = FV_KIND_IMAGE,
    .expands = "add(image, (image - gaussian(image, radius)) * amount)",
    .example = "phantom(\"cells\", [200, 200]) |> unsharp(2, 1.5) |> write(\"sharp.tif\")",
    .see = "gaussian difference_of_gaussians",
};
