/* The operator that erode and dilate are. Who includes it defines DILATE first; there is one such file for each, so it has no
 * guard. */
#include "ops/morphology/erosion.h"

typedef struct {
    fv_footprint footprint;
} erosion;

static const fv_param params[] = {
    FV_PARAM(erosion, footprint, .def = "cross()",
             .doc = "structuring element: box(n), ball(r), disk(r), cross() or pattern([...])"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "bool or grey image" }, FV_INPUT_END };

static const fv_footprint *footprint(const void *p) { return &((const erosion *)p)->footprint; }

static fv_status infer(fv_infer *i, fv_error *error) { return fv__erosion_infer(i, footprint(i->params), error); }
static void      need(const fv_need *n, fv_region *in) { in[0] = fv__erosion_need(n, footprint(n->params)); }
static size_t    scratch(const fv_need *n) { return fv__erosion_scratch(n, footprint(n->params)); }
static double    cost(const fv_need *n) { return fv__erosion_cost(n, footprint(n->params)); }

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv__erosion_run(r, footprint(r->need.params), DILATE);
    return FV_OK;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };
