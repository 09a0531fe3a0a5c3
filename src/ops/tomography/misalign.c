/* misalign: projections that are displaced at random, as a stage or a detector that moves would make them. */
#include "op/random.h"
#include "ops/tomography/displace.h"

typedef struct {
    double  amount;
    int64_t seed;
    bool    whole;
} misalign;

static const fv_param params[] = {
    FV_PARAM(misalign, amount, .def = "2", .min = 0, .max = 1000, .unit = "px",
             .doc = "largest displacement in either direction"),
    FV_PARAM(misalign, seed, .def = "1", .doc = "another number gives other displacements"),
    FV_PARAM(misalign, whole, .def = "false", .doc = "displace by whole pixels only"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "projections", FV_KIND_IMAGE, .doc = "axes angle z x, z angle x, or angle x" },
                                   FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_scan scan;
    FV_TRY(fv__shift_axes(&i->in[0]->image, &scan, error));
    i->out->image.dtype = FV_FLOAT32;
    return FV_OK;
}

static void need(const fv_need *n, fv_region *in) {
    fv_scan scan;
    fv__shift_axes(&n->in[0]->image, &scan, NULL);
    fv__shift_need(&scan, &n->in[0]->image, (int64_t)ceil(((const misalign *)n->params)->amount) + 1, &in[0]);
}

static size_t scratch(const fv_need *n) {
    const misalign *p = n->params;
    return (size_t)(n->region.size[n->region.ndim - 1] + 2 * (int64_t)ceil(p->amount) + 2) * sizeof(float);
}

static double displacement(const misalign *p, int64_t angle, uint64_t axis) {
    double d = p->amount * (2 * fv__uniform(fv__place_hash((uint64_t)p->seed, axis, angle, 0, 0), 0) - 1);
    return p->whole ? floor(d + 0.5) : d;
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    const misalign *p = r->need.params;
    fv_scan         scan;
    fv__shift_axes(&r->need.in[0]->image, &scan, NULL);
    for (int64_t k = 0; k < r->out->region.size[scan.angle]; k++) {
        int64_t a = r->out->region.start[scan.angle] + k;
        fv__shift_plane(&scan, r->in[0], r->out, a, -displacement(p, a, 0), -displacement(p, a, 1), r->scratch);
    }
    return FV_OK;
}

static double cost(const fv_need *n) {
    (void)n;
    return 4;
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(misalign) = {
    .name = "misalign",
    .family = "tomography",
    .stage = "simulate",
    .brief = "displace each projection at random, to test align",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(misalign),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .doc = "Each projection is moved along rows and columns by numbers that depend only on seed and on its own number. "
           "Values between pixels are interpolated linearly, and the border is repeated. align undoes it. The result is "
           "float32.",
    .example = "tilts = xray(phantom(\"shepp-logan\", [64, 128, 128]), parallel(range(-60, 60, 3)))\n"
               "misalign(tilts, 8) |> write(\"tilts.tif\")",
    .see = "align expose poisson",
};
