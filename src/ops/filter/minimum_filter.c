/* minimum_filter: the least value of a box, as scipy.ndimage.minimum_filter. */
#define GREATEST false
#include "ops/filter/extreme.h"

const fv_op FV_OP(minimum_filter) = {
    .name = "minimum_filter", .family = "filter", .brief = "least value of a box",
    .doc = "Named with _filter, because minimum(a, b) compares two images. The cost does not grow with the box. A box of even "
           "size reaches one voxel further back than ahead. Not-a-numbers count as larger than all numbers. The type stays. "
           "Round neighbourhoods: erode(image, ball(r)).",
    .citation = "scipy.ndimage.minimum_filter",
    .example = "phantom(\"cells\", [64, 64]) |> minimum_filter(5) |> write(\"least.png\")",
    .version = 1, .inputs = inputs, .params = params, .params_size = sizeof(extreme), .result = FV_KIND_IMAGE,
    .infer = infer, .passes = passes, .cost = cost,
};
