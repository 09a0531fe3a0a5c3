/* open: erosion, then dilation. */
#include "op/op.h"

typedef struct {
    fv_footprint footprint;
} open_params;

static const fv_param params[] = {
    FV_PARAM(open_params, footprint, .def = "cross()",
             .doc = "structuring element: box(n), ball(r), disk(r), cross() or pattern([...])"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool or grey image" }, FV_INPUT_END };

const fv_op FV_OP(open) = {
    .name = "open",
    .family = "morphology",
    .brief = "remove bright structures that are narrower than the footprint",
    .also = "binary_opening, opening, imopen, grey_opening, morph_open",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(open_params),
    .result = FV_KIND_IMAGE,
    .expands = "dilate(erode(image, footprint), footprint)",
    .doc = "An erosion followed by a dilation, as skimage.morphology.opening and binary_opening, except that what lies "
           "outside the image never counts. Nan counts as larger than every number. The type of the image is kept.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> open(disk(6)) |> write(\"opened.png\")",
    .see = "close erode tophat remove_small",
};
