/* What gaussian_laplace and gaussian_gradient_magnitude share: derivatives of a Gaussian along each spatial axis, added. Who
 * includes it defines ORDER, that of the derivatives, and MAGNITUDE, true for the root of the sum of their squares, first; there
 * is one such file for each operator, so it has no guard. */
#include "kernels/bell.h"
#include "kernels/terms.h"
#include "op/window.h"

typedef struct {
    fv_numbers sigma;
    fv_choice  mode;
    double     cval, truncate;
} derivatives;

static const fv_param params[] = {
    FV_PARAM(derivatives, sigma, .min = 0, .above = true, .max = 1e4, .unit = "px",
             .doc = "standard deviation, one number or one per spatial axis"),
    FV_PARAM(derivatives, mode, .def = "reflect", .choices = FV_BORDER_CHOICES,
             .doc = "what the filter assumes outside the "
                    "image"),
    FV_PARAM(derivatives, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM(derivatives, truncate, .def = "4", .min = 0, .max = 1e3, .doc = "cut the kernel at this many standard deviations"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    derivatives *p = i->params;
    int          axis[FV_MAX_DIMS], n;
    if (MAGNITUDE) FV_TRY(fv__window_real(i->in[0], error));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv__bell_check(&p->sigma, p->truncate, n, "sigma", error));
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static int64_t size(const void *params_, int term, int k) {
    (void)term;
    const derivatives *p = params_;
    return 2 * fv__bell_radius(p->sigma.value[k], p->truncate) + 1;
}

/* Term k is the derivative along axis k. */
static void weights(const void *params_, int term, int k, double *weight) {
    const derivatives *p = params_;
    fv__bell_weights(p->sigma.value[k], size(p, term, k) / 2, term == k ? ORDER : 0, weight);
}

static fv_terms terms(const fv_need *n) {
    const derivatives *p = n->params;
    return (fv_terms){ .params = p,
                       .border = (fv_border)p->mode.index,
                       .cval = p->cval,
                       .count = p->sigma.count,
                       .magnitude = MAGNITUDE,
                       .scale = 1,
                       .size = size,
                       .weights = weights };
}

FV_TERMS_PASSES
