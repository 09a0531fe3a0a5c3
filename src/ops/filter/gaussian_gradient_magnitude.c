/* gaussian_gradient_magnitude: how steep the smoothed image is, as scipy.ndimage.gaussian_gradient_magnitude. */
#define ORDER 1
#define MAGNITUDE true
#include "ops/filter/gaussian_derivatives.h"

const fv_op FV_OP(gaussian_gradient_magnitude) = {
    .name = "gaussian_gradient_magnitude",
    .family = "filter",
    .brief = "how steep the smoothed image is: edges of any direction",
    .also = "gradient_magnitude, imgradient",
    .doc = "The square root of the sum of the squared slopes of the smoothed image along each spatial axis. Nan and infinity "
           "spread to every voxel that the filter reaches from there. The result is float32; it is float64 for images of "
           "float64 and of 32 or 64-bit integers.",
    .citation = "scipy.ndimage.gaussian_gradient_magnitude",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian_gradient_magnitude(2) |> write(\"edges.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(derivatives),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "gaussian sobel scharr gradient",
};
