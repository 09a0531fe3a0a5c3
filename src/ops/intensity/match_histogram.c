/* match_histogram: an image with the grey values of another, as skimage.exposure.match_histograms. */
#include "kernels/separable.h"
#include "ops/intensity/curve.h"
#include <stdlib.h>

typedef struct {
    bool inverse;
} match;

enum { BINS = 1 << 16 };

static const fv_param params[] = {
    FV_PARAM(match, inverse, .def = "false", .own = true,
             .doc = "the first image is the reference, and the second holds parts of its values, which become the values below "
                    "which these parts lie"),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image whose values are changed" },
    { "reference", FV_KIND_IMAGE, .doc = "image whose histogram it shall have; it may have another shape" },
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    if (((const match *)i->params)->inverse) return FV_OK;
    for (int k = 0; k < 2; k++)
        if (fv_dtype_is_complex(i->in[k]->image.dtype))
            return fv_fail(error, FV_ERROR_USAGE, "%s is %s: it must be real", inputs[k].name,
                           fv_dtype_name(i->in[k]->image.dtype));
    fv__bytes_printf(
        text, "convert(match_histogram(reference, equalize(image, bins = %d, method = \"cdf64\"), inverse = true), \"%s\")", BINS,
        fv_dtype_name(fv__separable_type(i->in[0]->image.dtype)));
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    (void)error;
    *i->out = *i->in[1];
    return FV_OK;
}

/* Only values that occur are points of the curve: no part of the values lies between others. */
static fv_status put(fv_finish *f, const fv__levels *l, fv_error *error) {
    double   *x = fv__alloc((size_t)l->count * 2 * sizeof *x), *y = x + l->count;
    uint64_t  total = 0, below = 0;
    fv__curve head = { 0 };
    for (int64_t i = 0; i < l->count; i++) total += l->counts[i];
    for (int64_t i = 0; i < l->count; i++) {
        if (!l->counts[i]) continue;
        below += l->counts[i];
        x[head.count] = (double)below / (double)total;
        y[head.count++] = l->centres[i];
    }
    fv_status status = fv__curve_put(f, &head, x, y, error);
    free(x);
    return status;
}

static const fv__method method = { .bins = BINS, .put = put };

FV_LEVELS_FUNCTIONS

static void nothing_of(const fv_need *n, fv_region *in, int input) {
    in[input] = (fv_region){ .ndim = n->in[input]->image.ndim };
}
static void need_survey(const fv_need *n, fv_region *in) { nothing_of(n, in, 1); }
static void need_bins(const fv_need *n, fv_region *in) {
    fv__survey_need_bins(n, in);
    nothing_of(n, in, 1);
}
static void      need_apply(const fv_need *n, fv_region *in) { nothing_of(n, in, 0); }
static fv_status apply(fv_run *r, fv_error *error) { return fv__curve_apply(r, 1, error); }

static const fv_pass passes[] = {
    { .name = "survey",
      .need = need_survey,
      .scratch = fv__survey_scratch,
      .run = fv__survey_run,
      .bound = fv__survey_bound,
      .combine = fv__survey_combine,
      .finish = finish_survey },
    { .name = "bins",
      .need = need_bins,
      .scratch = scratch,
      .run = run,
      .bound = bound,
      .combine = fv__tally_combine,
      .finish = finish },
    { .name = "apply", .need = need_apply, .scratch = fv__curve_scratch, .run = apply },
    FV_PASS_END,
};

static double cost(const fv_need *n) { return (void)n, 20; }

const fv_op FV_OP(match_histogram) = {
    .name = "match_histogram",
    .family = "intensity",
    .brief = "give an image the grey values of another",
    .version = 1,
    .also = "match_histograms, imhistmatch, histogram_matching",
    .doc = "The darkest tenth of the image becomes as dark as the darkest tenth of the reference, and so on, as "
           "skimage.exposure.match_histograms. Integers are counted value by value, so that the result is exactly that of "
           "scikit-image; floating-point images in 65536 bins from the smallest to the largest value. Nan and infinity are "
           "refused. The result is float32; it is float64 for images of float64 and of 32 or 64-bit integers.",
    .citation = "skimage.exposure.match_histograms",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(match),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .unroll = unroll,
    .passes = passes,
    .cost = cost,
    .example = "a = phantom(\"cells\", [200, 200], seed = 1)\n"
               "b = gamma(phantom(\"cells\", [200, 200], seed = 2), 0.5)\n"
               "match_histogram(a, b) |> convert(\"uint8\") |> write(\"like-b.png\")",
    .see = "equalize normalize histogram",
};
