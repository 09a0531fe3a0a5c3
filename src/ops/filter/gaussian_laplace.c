/* gaussian_laplace: the Laplacian of the smoothed image, as scipy.ndimage.gaussian_laplace. */
#define ORDER 2
#define MAGNITUDE false
#include "ops/filter/gaussian_derivatives.h"

const fv_op FV_OP(gaussian_laplace) = {
    .name = "gaussian_laplace", .family = "filter", .brief = "Laplacian of the smoothed image",
    .doc = "The sum of the second derivatives of a Gaussian along each spatial axis: strongly negative in bright blobs of radius "
           "sigma times the root of the number of axes, positive in dark ones. A not-a-number or infinity spoils every voxel "
           "whose kernel reaches it. The result is float32, or float64 for float64 and 32 or 64-bit integers.",
    .citation = "scipy.ndimage.gaussian_laplace; Marr and Hildreth, Theory of edge detection, Proc. R. Soc. B 207, 1980",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian_laplace(4) |> write(\"blobs.tif\")",
    .version = 1, .inputs = inputs, .params = params, .params_size = sizeof(derivatives), .result = FV_KIND_IMAGE,
    .infer = infer, .passes = passes, .cost = cost,
};
