/* dilate: whatever a footprint reaches from the foreground. */
#define DILATE true
#include "ops/morphology/erosion_op.h"

const fv_op FV_OP(dilate) = {
    .name = "dilate",
    .family = "morphology",
    .brief = "grow bright objects: set voxels whose footprint touches the foreground",
    .also = "binary_dilation, dilation, imdilate, grey_dilation",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(erosion),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "For grey images: the largest value within the footprint, as skimage.morphology.dilation. What lies outside the "
           "image never counts. Nan counts as larger than every number. The type of the image is kept. Works along the "
           "spatial axes; other axes are independent.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> dilate(disk(3)) |> write(\"dilated.png\")",
    .see = "erode close open expand_labels maximum_filter ball disk box",
};
