/* mean: mean of all values. */
#include "op/interval.h"
#include "op/moments.h"

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to measure" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) { return fv__infer_scalar(i, FV_FLOAT64, error); }

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    return fv__moments_run(r, false);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const fv_moments *m;
    FV_TRY(fv__finish_partial(f, (const void **)&m, sizeof *m, error));
    return fv__put_real(f, m ? fv__sum_mean(&m->sum.sum, m->count) : NAN, error);
}

static const fv_pass passes[] = { { .run = run, .combine = fv__moments_combine, .finish = finish }, FV_PASS_END };

const fv_op FV_OP(mean) = {
    .name = "mean",
    .family = "statistics",
    .brief = "mean of all values",
    .version = 1,
    .also = "nanmean, np.mean, mean2",
    .doc = "The exact sum is divided and rounded once. Nan if a value is nan.",
    .inputs = inputs,
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .example = "mean(phantom(\"cells\", [200, 200]))",
    .see = "std sum quantile measure",
};

const fv_estimator FV_ESTIMATOR(mean) = { .estimate = fv__estimate_mean, .control = FV_CONTROL_SUM };
