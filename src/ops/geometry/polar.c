/* polar: unroll an image round a centre: angles down, radii across. */
#include "ops/geometry/rings.h"

FV_RINGS_OPERATOR("polar", false)

const fv_op FV_OP(polar) = {
    .name = "polar",
    .family = "geometry",
    .brief = "unroll an image round a centre: angles down, radii across",
    .also = "warp_polar, linearPolar, warpPolar, imtopolar, cart2pol, polar transform",
    .doc = "The pixel at angle index a and radius index r is the image at the distance r * radius / radii from the centre, in "
           "the direction 360 * a / angles degrees from x towards y. As skimage.transform.warp_polar; the planes of a volume are "
           "unrolled one by one. The axes of the result are called angle and radius: "
           "name_axes gives them the names of space for filters that want these.\n" FV_SPLINE_DOC,
    .citation = "skimage.transform.warp_polar",
    .example = "phantom(\"shepp-logan\", [200, 200]) |> polar |> write(\"polar.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(fv_rings),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .cost = fv__rings_cost,
    .see = "log_polar warp",
};
