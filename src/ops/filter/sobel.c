/* sobel: the slope along an axis, smoothed across it, as scipy.ndimage.sobel. */
#define MIDDLE 2
#include "ops/filter/slope.h"

const fv_op FV_OP(sobel) = {
    .name = "sobel", .family = "filter", .brief = "slope along an axis, smoothed across it",
    .doc = "Weights [-1 0 1] along the axis and [1 2 1] along the others, not normalised, as in scipy. "
           "With mode constant the image is surrounded by cval once (scipy: anew for each axis). "
           "A not-a-number or infinity spoils every voxel of the boxes around it. "
           "Edges of any direction: sqrt(sobel(a, 0) ** 2 + sobel(a, 1) ** 2). The result is float32, or float64 for "
           "float64 and 32 or 64-bit integers (scipy keeps the type, so that its integers wrap).",
    .citation = "scipy.ndimage.sobel",
    .example = "phantom(\"cells\", [200, 200]) |> sobel() |> write(\"slope.tif\")",
    .version = 1, .inputs = inputs, .params = params, .params_size = sizeof(slope), .result = FV_KIND_IMAGE,
    .infer = infer, .passes = passes, .cost = cost,
};
