/* gradient: how much the values differ within the footprint. */
#include "op/op.h"

typedef struct { fv_footprint footprint; } gradient;

static const fv_param params[] = {
    FV_PARAM(gradient, footprint, .def = "cross()",
             .doc = "structuring element: box(n), ball(r), disk(r), cross() or pattern([...])"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool or grey image" }, FV_INPUT_END };

const fv_op FV_OP(gradient) = {
    .name = "gradient", .family = "morphology", .brief = "how much the values differ within the footprint", .version = 1,
    .inputs = inputs, .params = params, .params_size = sizeof(gradient), .result = FV_KIND_IMAGE,
    .expands = "excess(dilate(image, footprint), erode(image, footprint))",
    .doc = "The dilation minus the erosion, as scipy.ndimage.morphological_gradient: strong at edges, 0 where the image is flat. "
           "The type stays; signed integers whose difference does not fit stop at their greatest value. "
           "Not-a-numbers count as larger than all numbers and make the difference one; equal infinities differ by 0.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) |> gradient(disk(5)) |> write(\"gradient.png\")",
};
