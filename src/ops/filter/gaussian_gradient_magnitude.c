/* gaussian_gradient_magnitude: how steep the smoothed image is, as scipy.ndimage.gaussian_gradient_magnitude. */
#include "kernels/bell.h"
#include "kernels/terms.h"
#include "op/window.h"

typedef struct { fv_numbers sigma; fv_choice mode; double cval, truncate; } gradient_magnitude;

static const fv_param params[] = {
    FV_PARAM(gradient_magnitude, sigma, .min = 0, .above = true, .max = 1e4, .unit = "px",
             .doc = "standard deviation, one number or one per spatial axis"),
    FV_PARAM(gradient_magnitude, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what lies outside the image"),
    FV_PARAM(gradient_magnitude, cval, .def = "0", .doc = "the value outside for mode \"constant\""),
    FV_PARAM(gradient_magnitude, truncate, .def = "4", .min = 0, .max = 1e3,
             .doc = "cut the kernel at this many standard deviations"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    gradient_magnitude *p = i->params;
    int                 axis[FV_MAX_DIMS], n;
    FV_TRY(fv_window_real(i->in[0], error));
    FV_TRY(fv_window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv_bell_check(&p->sigma, p->truncate, n, "sigma", error));
    i->out->image.dtype = fv_separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static int64_t size(const void *params_, int term, int k) {
    (void)term;
    const gradient_magnitude *p = params_;
    return 2 * fv_bell_radius(p->sigma.value[k], p->truncate) + 1;
}

/* Term k is the slope along axis k. */
static void weights(const void *params_, int term, int k, double *weight) {
    const gradient_magnitude *p = params_;
    fv_bell_weights(p->sigma.value[k], size(p, term, k) / 2, term == k, weight);
}

static fv_terms terms(const fv_need *n) {
    const gradient_magnitude *p = n->params;
    return (fv_terms){ .params = p, .border = (fv_border)p->mode.index, .cval = p->cval, .count = p->sigma.count,
                       .magnitude = true, .scale = 1, .size = size, .weights = weights };
}

FV_TERMS_PASSES

const fv_op FV_OP(gaussian_gradient_magnitude) = {
    .name = "gaussian_gradient_magnitude", .family = "filter", .brief = "how steep the smoothed image is",
    .doc = "The root of the summed squares of the slopes of the smoothed image along each spatial axis. A not-a-number or "
           "infinity spoils every voxel whose kernel reaches it. "
           "The result is float32, or float64 for float64 and 32 or 64-bit integers.",
    .citation = "scipy.ndimage.gaussian_gradient_magnitude",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian_gradient_magnitude(2) |> write(\"edges.tif\")",
    .version = 1, .inputs = inputs, .params = params, .params_size = sizeof(gradient_magnitude), .result = FV_KIND_IMAGE,
    .infer = infer, .passes = passes, .cost = cost,
};
