/* erode: what stays when a footprint must fit inside. */
#define DILATE false
#include "ops/morphology/erosion_op.h"

const fv_op FV_OP(erode) = {
    .name = "erode",
    .family = "morphology",
    .brief = "shrink bright objects: keep voxels whose whole footprint is foreground",
    .also = "binary_erosion, erosion, imerode, grey_erosion",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(erosion),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "For grey images: the smallest value within the footprint, as skimage.morphology.erosion. Because what lies "
           "outside the image never counts, objects are not eroded from the image's border. Nan counts as larger than every "
           "number. The type of the image is kept. Works along the spatial axes; other axes are independent.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> erode(ball(4)) |> write(\"eroded.png\")",
    .see = "dilate open close minimum_filter ball disk box",
};
