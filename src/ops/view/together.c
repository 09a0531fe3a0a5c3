/* together: all items of a collection as one image. The graph gathers them; what is left to do is nothing. */
#include "op/op.h"

static const fv_param params[] = { FV_PARAM_END };
static const fv_input inputs[] = { { "image", FV_KIND_NONE, .doc = "image or scalar of every item" }, FV_INPUT_END };

const fv_op FV_OP(together) = {
    .name = "together",
    .family = "view",
    .brief = "all items of a collection as one image",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = 1,
    .result = FV_KIND_IMAGE,
    .gathers = true,
    .doc = "The image has an axis item before its own, in the order of the items, so that statistics and projections see all of "
           "them: otsu(together(c)) is one threshold for all images, otsu(c) one for each. Scalars become a line with one value "
           "for each item, so that mean(together(max(c))) is a mean over items. Images of different shapes become one line of "
           "all their voxels, for statistics. Spacing, origin and the matrix to the world are kept if all images lie in the same "
           "place, and left out if they do not.",
    .example = "phantom(\"cells\", [200, 200]) |> write(\"cells/a.tif\")",
    .see = "project read group",
};
