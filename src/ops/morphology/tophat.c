/* tophat: bright structures narrower than the footprint. */
#include "op/op.h"

typedef struct { fv_footprint footprint; } tophat;

static const fv_param params[] = {
    FV_PARAM(tophat, footprint, .def = "cross()",
             .doc = "structuring element: box(n), ball(r), disk(r), cross() or pattern([...])"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool or grey image" }, FV_INPUT_END };

const fv_op FV_OP(tophat) = {
    .name = "tophat", .family = "morphology", .brief = "bright structures narrower than the footprint", .version = 1,
    .inputs = inputs, .params = params, .params_size = sizeof(tophat), .result = FV_KIND_IMAGE,
    .expands = "excess(image, open(image, footprint))",
    .doc = "The image minus its opening, as skimage.morphology.white_tophat. "
           "The type stays; signed integers whose difference does not fit stop at their greatest value. "
           "Not-a-numbers count as larger than all numbers and make the difference one; equal infinities differ by 0.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) |> tophat(disk(5)) |> write(\"tophat.png\")",
};
