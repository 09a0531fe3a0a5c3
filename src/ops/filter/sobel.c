/* sobel: the slope along an axis, smoothed across it, as scipy.ndimage.sobel. */
#define MIDDLE 2
#include "ops/filter/slope.h"

const fv_op FV_OP(sobel) = {
    .name = "sobel",
    .family = "filter",
    .brief = "slope along one axis, smoothed along the others",
    .doc = "Weights [-1 0 1] along the axis and [1 2 1] along the others, not normalised, as in scipy. With mode "
           "\"constant\" the image is surrounded with cval once (scipy does it anew for each axis).\n"
           "Edges of any direction: sqrt(sobel(a, 0) ** 2 + sobel(a, 1) ** 2).\n"
           "Nan and infinity spread to every voxel that the filter reaches from there. The result is float32; it is float64 "
           "for images of float64 and of 32 or 64-bit integers. (scipy keeps the type, so that its integers overflow.)",
    .citation = "scipy.ndimage.sobel",
    .example = "phantom(\"cells\", [200, 200]) |> sobel() |> write(\"slope.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(slope),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "prewitt scharr gaussian_gradient_magnitude",
};
