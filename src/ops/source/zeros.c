/* zeros: an image of zeros. */
#include "op/source.h"

typedef struct {
    fv_numbers      shape;
    fv_dtype_choice dtype;
} zeros;

static const fv_param params[] = {
    FV_PARAM_SHAPE(zeros),
    FV_PARAM(zeros, dtype, .def = "uint8", .doc = "element type"),
    FV_PARAM_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const zeros *p = i->params;
    return fv__source_type(&p->shape, (fv_dtype)p->dtype.dtype, 1, FV_MAX_DIMS, i->out, error);
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    static const double nothing[2];
    fv__block_fill(r->out, nothing);
    return FV_OK;
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };
static double        cost(const fv_need *n) { return 0.05 * (double)fv_dtype_size(n->out->image.dtype); }

const fv_op FV_OP(zeros) = {
    .name = "zeros",
    .family = "source",
    .brief = "an image of zeros",
    .also = "np.zeros, zeros_like",
    .version = 1,
    .params = params,
    .params_size = sizeof(zeros),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "zeros([200, 200]) |> write(\"black.png\")",
    .see = "ones phantom",
};
