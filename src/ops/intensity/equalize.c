/* equalize: every brightness as frequent as any other, as skimage.exposure.equalize_hist. */
#include "kernels/separable.h"
#include "ops/intensity/curve.h"
#include <stdlib.h>

typedef struct {
    int64_t   bins;
    fv_choice method;
} equalize;

enum { CDF, CDF64, RANK };
enum { MOST_BINS = 1 << 16 };

static const fv_param params[] = {
    FV_PARAM(equalize, bins, .def = "256", .min = 2, .max = MOST_BINS,
             .doc = "number of bins for floating-point images; integers are counted value by value"),
    FV_PARAM(equalize, method, .def = "cdf", .choices = "cdf|cdf64|rank",
             .doc =
                 "what a value becomes: cdf: the part of all values that are not above it; cdf64: the same as float64; rank: its "
                 "place in the order of all values, counted from 1, as float64 (equal values share the mean of their places)"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to equalize" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    const equalize *p = i->params;
    fv_dtype        dtype = i->in[0]->image.dtype;
    if (fv_dtype_is_complex(dtype)) return fv_fail(error, FV_ERROR_USAGE, "image is %s: it must be real", fv_dtype_name(dtype));
    i->out->image.dtype = p->method.index == CDF ? fv__separable_type(dtype) : FV_FLOAT64;
    return FV_OK;
}

static int64_t choose_bins(const void *params_) { return ((const equalize *)params_)->bins; }

/* What each level becomes. */
static double *cumulate(const fv__levels *l, int kind) {
    double  *y = fv__alloc((size_t)l->count * sizeof *y);
    uint64_t total = 0, below = 0;
    for (int64_t i = 0; i < l->count; i++) total += l->counts[i];
    for (int64_t i = 0; i < l->count; i++) {
        uint64_t upto = below + l->counts[i];
        y[i] = kind == RANK ? (double)below + ((double)l->counts[i] + 1) / 2 : (double)upto / (double)total;
        if (kind == CDF && l->single) y[i] = (float)y[i];
        below = upto;
    }
    return y;
}

static fv_status put(fv_finish *f, const fv__levels *l, fv_error *error) {
    double   *y = cumulate(l, ((const equalize *)l->params)->method.index);
    fv__curve head = { .count = l->count, .whole = l->whole, .low = l->low };
    head.nearest = ((const equalize *)l->params)->method.index != CDF; /* the level of the bin itself */
    if (!l->whole && l->count > 1) head.step = (l->centres[l->count - 1] - l->centres[0]) / (double)(l->count - 1);
    fv_status status = fv__curve_put(f, &head, l->centres, y, error);
    free(y);
    return status;
}

static const fv__method method = { .bins = MOST_BINS, .choose_bins = choose_bins, .put = put };

FV_LEVELS_FUNCTIONS

static fv_status apply(fv_run *r, fv_error *error) { return fv__curve_apply(r, 0, error); }

static const fv_pass passes[] = {
    FV_LEVELS_SURVEY,
    FV_LEVELS_BINS,
    { .name = "apply", .scratch = fv__curve_scratch, .run = apply },
    FV_PASS_END,
};

static double cost(const fv_need *n) { return fv_dtype_is_float(n->in[0]->image.dtype) ? 6 : 2; }

const fv_op FV_OP(equalize) = {
    .name = "equalize",
    .family = "intensity",
    .brief = "spread the brightness so that each is equally frequent",
    .version = 1,
    .also = "equalize_hist, histeq, equalizeHist",
    .doc = "Each value becomes the part of all values that are not above it, from 0 to 1, as skimage.exposure.equalize_hist. "
           "Between the centres of the bins of a floating-point image, straight lines are drawn. If all values are equal, the "
           "result is 1; nan and infinity are refused. The result is float32; it is float64 for images of float64 and of 32 "
           "or 64-bit integers. method = \"rank\" is scipy.stats.rankdata of an integer image.",
    .citation = "skimage.exposure.equalize_hist",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(equalize),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .example = "equalize(phantom(\"cells\", [200, 200])) * 255 |> convert(\"uint8\") |> write(\"equal.png\")",
    .see = "clahe match_histogram normalize histogram",
};
