/* log_polar: unroll an image round a centre, radii on a logarithmic scale. */
#include "ops/geometry/rings.h"

FV_RINGS_OPERATOR("log_polar", true)

const fv_op FV_OP(log_polar) = {
    .name = "log_polar",
    .family = "geometry",
    .brief = "unroll an image round a centre, radii on a logarithmic scale",
    .also = "warp_polar scaling log, logPolar, Fourier-Mellin",
    .doc = "The pixel at angle index a and radius index r is the image at the distance radius ^ (r / radii) from the centre, in "
           "the direction 360 * a / angles degrees from x towards y. Turning the image moves the result along its angles, "
           "enlarging it along its radii. As skimage.transform.warp_polar; the planes of a volume are unrolled one by one. The "
           "axes of the result are called angle and radius: "
           "name_axes gives them the names of space for filters that want these.\n" FV_SPLINE_DOC,
    .citation = "skimage.transform.warp_polar",
    .example = "phantom(\"shepp-logan\", [200, 200]) |> log_polar |> write(\"log_polar.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(fv_rings),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .cost = fv__rings_cost,
    .see = "polar warp",
};
