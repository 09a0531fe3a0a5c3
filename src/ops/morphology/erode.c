/* erode: what stays when a footprint must fit inside. */
#define DILATE false
#include "ops/morphology/erosion_op.h"

const fv_op FV_OP(erode) = {
    .name = "erode",
    .family = "morphology",
    .brief = "keep the voxels around which the whole footprint is foreground",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(erosion),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "Of grey images: the least value within the footprint, as skimage.morphology.erosion. What lies outside the image "
           "never counts, so that objects are not eroded from the image's border. Not-a-numbers count as larger than all "
           "numbers. The type stays. Acts over the spatial axes; other axes are independent.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> erode(ball(4)) |> write(\"eroded.png\")",
};
