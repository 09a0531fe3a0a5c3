/* minimum_filter: the least value of a box, as scipy.ndimage.minimum_filter. */
#define GREATEST false
#include "ops/filter/extreme.h"

const fv_op FV_OP(minimum_filter) = {
    .name = "minimum_filter",
    .family = "filter",
    .brief = "smallest value of a box",
    .also = "min_filter",
    .doc = "Its name ends in _filter because minimum(a, b) compares two images. The time does not grow with the box. A box "
           "of even size reaches one voxel further towards lower indices than towards higher ones. Nan counts as larger than "
           "every number. The type of the image is kept. For round neighbourhoods, use erode(image, ball(r)).",
    .citation = "scipy.ndimage.minimum_filter",
    .example = "phantom(\"cells\", [200, 200]) |> minimum_filter(7) |> write(\"smallest.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(extreme),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "maximum_filter erode minimum rank",
};
