/* ones: an image of ones. */
#include "op/kernels.h"
#include "op/source.h"

typedef struct {
    fv_numbers      shape;
    fv_dtype_choice dtype;
} ones;

static const fv_param params[] = {
    FV_PARAM_SHAPE(ones),
    FV_PARAM(ones, dtype, .def = "uint8", .doc = "element type"),
    FV_PARAM_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const ones *p = i->params;
    return fv__source_type(&p->shape, (fv_dtype)p->dtype.dtype, 1, FV_MAX_DIMS, i->out, error);
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    double   element[2] = { 0 }, one = 1;
    fv_dtype dtype = r->out->dtype, part = dtype; /* of a complex number the real part */
    if (dtype == FV_COMPLEX64) part = FV_FLOAT32;
    if (dtype == FV_COMPLEX128) part = FV_FLOAT64;
    fv__kernels_current()->convert(element, part, &one, FV_FLOAT64, 1);
    fv__block_fill(r->out, element);
    return FV_OK;
}

static const fv_pass passes[] = { { .run = run }, FV_PASS_END };
static double        cost(const fv_need *n) { return 0.05 * (double)fv_dtype_size(n->out->image.dtype); }

const fv_op FV_OP(ones) = {
    .name = "ones",
    .family = "source",
    .brief = "an image of ones",
    .also = "np.ones, ones_like",
    .version = 1,
    .params = params,
    .params_size = sizeof(ones),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "ones([200, 200], \"float32\") |> write(\"ones.tif\")",
    .see = "zeros phantom",
};
