/* dilate: whatever a footprint reaches from the foreground. */
#include "ops/morphology/erosion.h"

typedef struct { fv_footprint footprint; } dilate;

static const fv_param params[] = {
    FV_PARAM(dilate, footprint, .def = "cross()",
             .doc = "structuring element: box(n), ball(r), disk(r), cross() or pattern([...])"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool or grey image" }, FV_INPUT_END };

static const fv_footprint *footprint(const void *p) { return &((const dilate *)p)->footprint; }

static fv_status infer(fv_infer *i, fv_error *error) { return fv__erosion_infer(i, footprint(i->params), error); }
static void      need(const fv_need *n, fv_region *in) { in[0] = fv__erosion_need(n, footprint(n->params)); }
static size_t    scratch(const fv_need *n) { return fv__erosion_scratch(n, footprint(n->params)); }
static double    cost(const fv_need *n) { return fv__erosion_cost(n, footprint(n->params)); }

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv__erosion_run(r, footprint(r->need.params), true);
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(dilate) = {
    .name = "dilate",
    .family = "morphology",
    .brief = "set the voxels whose footprint touches the foreground",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(dilate),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "Of grey images: the greatest value within the footprint, as skimage.morphology.dilation. What lies outside the "
           "image never counts. Not-a-numbers count as larger than all numbers. The type stays. "
           "Acts over the spatial axes; other axes are independent.",
    .citation = "Serra, Image Analysis and Mathematical Morphology, 1982",
    .example = "phantom(\"cells\", [200, 200]) > 100 |> dilate(disk(3)) |> write(\"dilated.png\")",
};
