/* close: dilation, then erosion. */
#include "op/op.h"

typedef struct {
    fv_footprint footprint;
} close_params;

static const fv_param params[] = {
    FV_PARAM(close_params, footprint, .def = "cross()",
             .doc = "structuring element: box(n), ball(r), disk(r), cross() or pattern([...])"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool or grey image" }, FV_INPUT_END };

const fv_op FV_OP(close) = {
    .name = "close",
    .family = "morphology",
    .brief = "fill dark gaps that are narrower than the footprint",
    .also = "binary_closing, closing, imclose, grey_closing, morph_close",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(close_params),
    .result = FV_KIND_IMAGE,
    .expands = "erode(dilate(image, footprint), footprint)",
    .doc = "A dilation followed by an erosion, as skimage.morphology.closing and binary_closing, except that what lies "
           "outside the image never counts. Nan counts as larger than every number. The type of the image is kept.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> close(disk(5)) |> write(\"closed.png\")",
    .see = "open dilate bottomhat fill_holes",
};
