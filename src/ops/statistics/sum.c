/* sum: sum of all values. */
#include "op/moments.h"

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to measure" },
    FV_INPUT_END,
};

static fv_dtype sum_type(fv_dtype dtype) { return dtype == FV_BOOL ? FV_INT64 : fv_scalar_type(dtype); }

static fv_status infer(fv_infer *i, fv_error *error) { return fv_infer_scalar(i, sum_type(i->in[0]->image.dtype), error); }

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    return fv_moments_run(r, false);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const fv_moments *m;
    FV_TRY(fv_finish_partial(f, (const void **)&m, sizeof *m, error));
    if (f->out->dtype == FV_FLOAT64) return fv_put_real(f, m ? fv_sum_value(&m->sum.sum) : 0, error);
    if (f->out->dtype == FV_INT64) return fv_put_whole(f, m ? fv_sum_integer_value(&m->sum.sum) : 0, error);
    return fv_put_scalar(f, &(fv_scalar){ .dtype = FV_UINT64, .natural = m ? fv_sum_natural_value(&m->sum.sum) : 0 }, error);
}

static const fv_pass passes[] = { { .run = run, .combine = fv_moments_combine, .finish = finish }, FV_PASS_END };

const fv_op FV_OP(sum) = {
    .name = "sum", .family = "statistics", .brief = "sum of all values", .version = 1,
    .doc = "A whole number for integers and bool (at most what 64 bits hold), otherwise the exact sum, rounded once. Nan if "
           "a value is nan.",
    .inputs = inputs, .result = FV_KIND_SCALAR, .infer = infer, .passes = passes,
    .example = "sum(phantom(\"cells\", [200, 200]))",
    .see = "mean count project",
};
