/* gaussian_laplace: the Laplacian of the smoothed image, as scipy.ndimage.gaussian_laplace. */
#define ORDER 2
#define MAGNITUDE false
#include "ops/filter/gaussian_derivatives.h"

const fv_op FV_OP(gaussian_laplace) = {
    .name = "gaussian_laplace",
    .family = "filter",
    .brief = "Laplacian of the smoothed image: negative in bright blobs, positive in dark ones",
    .also = "log_filter, LoG, laplacian_of_gaussian",
    .doc = "The sum of the second derivatives of the smoothed image along each spatial axis. It is strongest in blobs whose "
           "radius is sigma times the square root of the number of axes. Nan and infinity spread to every voxel that the "
           "filter reaches from there. The result is float32; it is float64 for images of float64 and of 32 or 64-bit "
           "integers.",
    .citation = "scipy.ndimage.gaussian_laplace; Marr and Hildreth, Theory of edge detection, Proc. R. Soc. B 207, 1980",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian_laplace(4) |> write(\"blobs.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(derivatives),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "laplace gaussian blobs_log difference_of_gaussians",
};
