/* maximum_filter: the greatest value of a box, as scipy.ndimage.maximum_filter. */
#define GREATEST true
#include "ops/filter/extreme.h"

const fv_op FV_OP(maximum_filter) = {
    .name = "maximum_filter", .family = "filter", .brief = "greatest value of a box",
    .doc = "Named with _filter, because maximum(a, b) compares two images. The cost does not grow with the box. A box of even "
           "size reaches one voxel further back than ahead. Not-a-numbers count as larger than all numbers. The type stays. "
           "Round neighbourhoods: dilate(image, ball(r)).",
    .citation = "scipy.ndimage.maximum_filter",
    .example = "phantom(\"cells\", [64, 64]) |> maximum_filter(5) |> write(\"greatest.png\")",
    .version = 1, .inputs = inputs, .params = params, .params_size = sizeof(extreme), .result = FV_KIND_IMAGE,
    .infer = infer, .passes = passes, .cost = cost,
};
