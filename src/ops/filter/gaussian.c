/* gaussian: smoothing with a Gaussian kernel, as scipy.ndimage.gaussian_filter. */
#include "base/math.h"
#include "kernels/separable.h"
#include "op/window.h"

typedef struct { fv_numbers sigma; double truncate; fv_choice mode; double cval; } gaussian;

static const fv_param params[] = {
    FV_PARAM(gaussian, sigma, .min = 0, .max = 1e4, .unit = "px",
             .doc = "standard deviation, one number or one per spatial axis; 0 leaves an axis alone"),
    FV_PARAM(gaussian, truncate, .def = "4", .min = 0, .max = 1e3, .doc = "cut the kernel at this many standard deviations"),
    FV_PARAM(gaussian, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what lies outside the image"),
    FV_PARAM(gaussian, cval, .def = "0", .doc = "the value outside for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to smooth" }, FV_INPUT_END };

/* Below this, scipy takes a deviation as none. */
static bool skipped(double sigma) { return sigma <= 1e-15; }
static int64_t radius(const gaussian *p, int k) {
    return skipped(p->sigma.value[k]) ? 0 : (int64_t)(p->truncate * p->sigma.value[k] + 0.5);
}

static fv_status infer(fv_infer *i, fv_error *error) {
    gaussian *p = i->params;
    int       axis[FV_MAX_DIMS], n;
    FV_TRY(fv_window_axes(i->in[0], "gaussian", axis, &n, error));
    FV_TRY(fv_numbers_spread(&p->sigma, n, "sigma", error));
    for (int k = 0; k < n; k++)
        if (2 * radius(p, k) + 1 > FV_SEPARABLE_MAX_TAPS)
            return fv_fail(error, FV_ERROR_USAGE,
                           "sigma = %g, truncate = %g: the kernel would reach %lld px; at most %d are possible",
                           p->sigma.value[k], p->truncate, (long long)radius(p, k), FV_SEPARABLE_MAX_TAPS / 2 - 1);
    i->out->image.dtype = fv_separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static void weights(const void *params_, int k, double *weight) {
    const gaussian *p = params_;
    int64_t         r = radius(p, k);
    double          s = p->sigma.value[k], total = 0;
    if (r == 0) {
        weight[0] = 1;
        return;
    }
    for (int64_t i = -r; i <= r; i++) total += weight[i + r] = fv_exp(-0.5 / (s * s) * (double)(i * i));
    for (int64_t i = 0; i <= 2 * r; i++) weight[i] /= total;
}

static fv_separable separable(const fv_need *n) {
    const gaussian *p = n->params;
    double          size[FV_MAX_DIMS];
    for (int k = 0; k < p->sigma.count; k++) size[k] = (double)(2 * radius(p, k) + 1);
    return (fv_separable){ .box = fv_box_new(&n->in[0]->image, size, (fv_border)p->mode.index, p->cval),
                           .weights = weights,
                           .params = p };
}

static void need(const fv_need *n, fv_region *in) {
    fv_separable s = separable(n);
    in[0] = fv_box_need(&s.box, &n->in[0]->image, &n->region);
}

static size_t scratch(const fv_need *n) {
    fv_separable s = separable(n);
    return fv_separable_scratch(&s, n);
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv_separable s = separable(&r->need);
    fv_separable_run(&s, r);
    return FV_OK;
}

static double cost(const fv_need *n) {
    fv_separable s = separable(n);
    double       taps = 0;
    for (int k = 0; k < s.box.naxes; k++) taps += (double)s.box.size[k];
    return 0.3 + taps * (fv_separable_type(n->in[0]->image.dtype) == FV_FLOAT32 ? 0.03 : 0.06);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(gaussian) = {
    .name = "gaussian", .family = "filter", .brief = "smooth with a Gaussian",
    .doc = "The kernel has radius round(truncate * sigma) and sums to 1; axes are smoothed one after the other, slowest first. "
           "The result is float32, or float64 for float64 and 32 or 64-bit integers.",
    .citation = "scipy.ndimage.gaussian_filter",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian(2) |> write(\"smooth.tif\")",
    .version = 1, .inputs = inputs, .params = params, .params_size = sizeof(gaussian), .result = FV_KIND_IMAGE,
    .infer = infer, .passes = passes, .cost = cost,
};
