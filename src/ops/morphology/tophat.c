/* tophat: bright structures narrower than the footprint. */
#include "op/op.h"

typedef struct {
    fv_footprint footprint;
} tophat;

static const fv_param params[] = {
    FV_PARAM(tophat, footprint, .def = "cross()",
             .doc = "structuring element: box(n), ball(r), disk(r), cross() or pattern([...])"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool or grey image" }, FV_INPUT_END };

const fv_op FV_OP(tophat) = {
    .name = "tophat",
    .family = "morphology",
    .brief = "bright structures that are narrower than the footprint",
    .version = 1,
    .also = "white_tophat, imtophat",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(tophat),
    .result = FV_KIND_IMAGE,
    .expands = "excess(image, open(image, footprint))",
    .doc = "The image minus its opening, as skimage.morphology.white_tophat. The type of the image is kept; a difference "
           "that does not fit into a signed integer type becomes its largest value. Nan counts as larger than every number, "
           "and a difference with nan is nan. Equal infinities differ by 0.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) |> tophat(disk(15)) |> write(\"tophat.png\")",
    .see = "bottomhat open subtract",
};
