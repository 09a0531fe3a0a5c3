/* erode: what stays when a footprint must fit inside. */
#include "ops/morphology/erosion.h"

typedef struct { fv_footprint footprint; } erode;

static const fv_param params[] = {
    FV_PARAM(erode, footprint, .def = "cross()",
             .doc = "structuring element: box(n), ball(r), disk(r), cross() or pattern([...])"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool or grey image" }, FV_INPUT_END };

static const fv_footprint *footprint(const void *p) { return &((const erode *)p)->footprint; }

static fv_status infer(fv_infer *i, fv_error *error) { return fv__erosion_infer(i, footprint(i->params), error); }
static void      need(const fv_need *n, fv_region *in) { in[0] = fv__erosion_need(n, footprint(n->params)); }
static size_t    scratch(const fv_need *n) { return fv__erosion_scratch(n, footprint(n->params)); }
static double    cost(const fv_need *n) { return fv__erosion_cost(n, footprint(n->params)); }

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv__erosion_run(r, footprint(r->need.params), false);
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(erode) = {
    .name = "erode",
    .family = "morphology",
    .brief = "keep the voxels around which the whole footprint is foreground",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(erode),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "Of grey images: the least value within the footprint, as skimage.morphology.erosion. What lies outside the image "
           "never counts, so that objects are not eroded from the image's border. Not-a-numbers count as larger than all "
           "numbers. The type stays. Acts over the spatial axes; other axes are independent.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> erode(ball(4)) |> write(\"eroded.png\")",
};
