/* gaussian_gradient_magnitude: how steep the smoothed image is, as scipy.ndimage.gaussian_gradient_magnitude. */
#define ORDER 1
#define MAGNITUDE true
#include "ops/filter/gaussian_derivatives.h"

const fv_op FV_OP(gaussian_gradient_magnitude) = {
    .name = "gaussian_gradient_magnitude", .family = "filter", .brief = "how steep the smoothed image is",
    .doc = "The root of the summed squares of the slopes of the smoothed image along each spatial axis. A not-a-number or "
           "infinity spoils every voxel whose kernel reaches it. "
           "The result is float32, or float64 for float64 and 32 or 64-bit integers.",
    .citation = "scipy.ndimage.gaussian_gradient_magnitude",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian_gradient_magnitude(2) |> write(\"edges.tif\")",
    .version = 1, .inputs = inputs, .params = params, .params_size = sizeof(derivatives), .result = FV_KIND_IMAGE,
    .infer = infer, .passes = passes, .cost = cost,
};
