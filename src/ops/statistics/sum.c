/* sum: sum of all values. */
#include "op/interval.h"
#include "op/moments.h"

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to measure" },
    FV_INPUT_END,
};

static fv_dtype sum_type(fv_dtype dtype) { return dtype == FV_BOOL ? FV_INT64 : fv__scalar_type(dtype); }

static fv_status infer(fv_infer *i, fv_error *error) { return fv__infer_scalar(i, sum_type(i->in[0]->image.dtype), error); }

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    return fv__moments_run(r, false);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const fv_moments *m;
    FV_TRY(fv__finish_partial(f, (const void **)&m, sizeof *m, error));
    if (f->out->dtype == FV_FLOAT64) return fv__put_real(f, m ? fv__sum_value(&m->sum.sum) : 0, error);
    fv_scalar sum = { .dtype = f->out->dtype };
    bool      fits = !m || (sum.dtype == FV_INT64 ? fv__sum_integer_value(&m->sum.sum, &sum.integer)
                                                  : fv__sum_natural_value(&m->sum.sum, &sum.natural));
    if (fits) return fv__put_scalar(f, &sum, error);
    return fv_fail(error, FV_ERROR_INPUT, "the sum is about %.17g, more than %s holds: sum(convert(image, \"float64\")) gives it",
                   fv__sum_value(&m->sum.sum), fv_dtype_name(sum.dtype));
}

static const fv_pass passes[] = { { .run = run, .combine = fv__moments_combine, .finish = finish }, FV_PASS_END };

const fv_op FV_OP(sum) = {
    .name = "sum",
    .family = "statistics",
    .brief = "sum of all values",
    .version = 1,
    .also = "nansum, np.sum",
    .doc = "A whole number for integers and bool, otherwise the exact sum, rounded once. Nan if a value is nan. A sum of "
           "integers that 64 bits do not hold is an error; sum(convert(image, \"float64\")) has no such bound.",
    .inputs = inputs,
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .example = "sum(phantom(\"cells\", [200, 200]))",
    .see = "mean count project",
};

const fv_estimator FV_ESTIMATOR(sum) = { .estimate = fv__estimate_sum, .control = FV_CONTROL_SUM };
