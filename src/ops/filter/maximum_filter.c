/* maximum_filter: the greatest value of a box, as scipy.ndimage.maximum_filter. */
#define GREATEST true
#include "ops/filter/extreme.h"

const fv_op FV_OP(maximum_filter) = {
    .name = "maximum_filter",
    .family = "filter",
    .brief = "largest value of a box",
    .also = "ordfilt2, max_filter",
    .doc = "Its name ends in _filter because maximum(a, b) compares two images. The time does not grow with the box. A box "
           "of even size reaches one voxel further towards lower indices than towards higher ones. Nan counts as larger than "
           "every number. The type of the image is kept. For round neighbourhoods, use dilate(image, ball(r)).",
    .citation = "scipy.ndimage.maximum_filter",
    .example = "phantom(\"cells\", [200, 200]) |> maximum_filter(7) |> write(\"largest.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(extreme),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "minimum_filter dilate maximum rank",
};
