/* bottomhat: dark structures narrower than the footprint. */
#include "op/op.h"

typedef struct {
    fv_footprint footprint;
} bottomhat;

static const fv_param params[] = {
    FV_PARAM(bottomhat, footprint, .def = "cross()",
             .doc = "structuring element: box(n), ball(r), disk(r), cross() or pattern([...])"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool or grey image" }, FV_INPUT_END };

const fv_op FV_OP(bottomhat) = {
    .name = "bottomhat",
    .family = "morphology",
    .brief = "dark structures that are narrower than the footprint",
    .version = 1,
    .also = "black_tophat, bothat, imbothat, blackhat",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(bottomhat),
    .result = FV_KIND_IMAGE,
    .expands = "excess(close(image, footprint), image)",
    .doc = "The closing minus the image, as skimage.morphology.black_tophat. The type of the image is kept; a difference "
           "that does not fit into a signed integer type becomes its largest value. Nan counts as larger than every number, "
           "and a difference with nan is nan. Equal infinities differ by 0.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) |> bottomhat(disk(5)) |> write(\"bottomhat.png\")",
    .see = "tophat close",
};
