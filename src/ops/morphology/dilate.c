/* dilate: whatever a footprint reaches from the foreground. */
#define DILATE true
#include "ops/morphology/erosion_op.h"

const fv_op FV_OP(dilate) = {
    .name = "dilate",
    .family = "morphology",
    .brief = "set the voxels whose footprint touches the foreground",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(erosion),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "Of grey images: the greatest value within the footprint, as skimage.morphology.dilation. What lies outside the "
           "image never counts. Not-a-numbers count as larger than all numbers. The type stays. "
           "Acts over the spatial axes; other axes are independent.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> dilate(disk(3)) |> write(\"dilated.png\")",
};
