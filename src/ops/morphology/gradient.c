/* gradient: how much the values differ within the footprint. */
#include "op/op.h"

typedef struct {
    fv_footprint footprint;
} gradient;

static const fv_param params[] = {
    FV_PARAM(gradient, footprint, .def = "cross()",
             .doc = "structuring element: box(n), ball(r), disk(r), cross() or pattern([...])"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool or grey image" }, FV_INPUT_END };

const fv_op FV_OP(gradient) = {
    .name = "gradient",
    .family = "morphology",
    .brief = "how much the values differ within the footprint: edges",
    .version = 1,
    .also = "morphological_gradient, morph_gradient",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(gradient),
    .result = FV_KIND_IMAGE,
    .expands = "excess(dilate(image, footprint), erode(image, footprint))",
    .doc = "The dilation minus the erosion, as scipy.ndimage.morphological_gradient: strong at edges, 0 where the image is "
           "flat. The type of the image is kept; a difference that does not fit into a signed integer type becomes its "
           "largest value. Nan counts as larger than every number, and a difference with nan is nan. Equal infinities differ "
           "by 0.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) |> gradient(disk(2)) |> write(\"gradient.png\")",
    .see = "sobel scharr gaussian_gradient_magnitude boundaries",
};
