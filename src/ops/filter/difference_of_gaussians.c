/* difference_of_gaussians: structures between two sizes, as skimage.filters.difference_of_gaussians. */
#include "kernels/bell.h"
#include "kernels/terms.h"
#include "op/window.h"

typedef struct {
    fv_numbers low_sigma, high_sigma;
    fv_choice  mode;
    double     cval, truncate;
} difference;

static const fv_param params[] = {
    FV_PARAM(difference, low_sigma, .min = 0, .max = 1e4, .unit = "px",
             .doc = "standard deviation of the narrow Gaussian, one number or one per spatial axis"),
    FV_PARAM(difference, high_sigma, .def = "", .min = 0, .max = 1e4, .unit = "px",
             .doc = "standard deviation of the wide Gaussian; 1.6 times the narrow one if left out"),
    FV_PARAM(difference, mode, .def = "nearest", .choices = FV_BORDER_CHOICES,
             .doc = "what the filter assumes outside the "
                    "image"),
    FV_PARAM(difference, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM(difference, truncate, .def = "4", .min = 0, .max = 1e3, .doc = "cut the kernels at this many standard deviations"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    difference *p = i->params;
    int         axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv__numbers_spread(&p->low_sigma, n, "low_sigma", error));
    if (!p->high_sigma.count)
        for (int k = 0; k < n; k++) p->high_sigma.value[p->high_sigma.count++] = 1.6 * p->low_sigma.value[k];
    FV_TRY(fv__bell_check(&p->low_sigma, p->truncate, n, "low_sigma", error));
    FV_TRY(fv__bell_check(&p->high_sigma, p->truncate, n, "high_sigma", error));
    for (int k = 0; k < n; k++)
        if (p->high_sigma.value[k] < p->low_sigma.value[k])
            return fv_fail(error, FV_ERROR_USAGE, "high_sigma = %g: must be at least low_sigma = %g along each axis",
                           p->high_sigma.value[k], p->low_sigma.value[k]);
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static double sigma(const difference *p, int term, int k) { return (term ? p->high_sigma : p->low_sigma).value[k]; }

static int64_t size(const void *params_, int term, int k) {
    const difference *p = params_;
    return 2 * fv__bell_radius(sigma(p, term, k), p->truncate) + 1;
}

/* The wide one is taken off: its weights along the last axis are negative. */
static void weights(const void *params_, int term, int k, double *weight) {
    const difference *p = params_;
    int64_t           n = size(p, term, k);
    fv__bell_weights(sigma(p, term, k), n / 2, 0, weight);
    for (int64_t i = 0; i < n && term && k == p->low_sigma.count - 1; i++) weight[i] = -weight[i];
}

static fv_terms terms(const fv_need *n) {
    const difference *p = n->params;
    return (fv_terms){
        .params = p, .border = (fv_border)p->mode.index, .cval = p->cval, .count = 2, .size = size, .weights = weights
    };
}

FV_TERMS_PASSES

const fv_op FV_OP(difference_of_gaussians) = {
    .name = "difference_of_gaussians",
    .family = "filter",
    .brief = "keep structures between two sizes",
    .also = "dog, DoG",
    .doc = "The image smoothed with the narrow Gaussian minus the image smoothed with the wide one. Integer values are taken "
           "as they are (scikit-image first scales them to 0 ... 1). Nan and infinity spread to every voxel that the filter "
           "reaches from there. The result is float32; it is float64 for images of float64 and of 32 or 64-bit integers.",
    .citation = "skimage.filters.difference_of_gaussians; Marr and Hildreth, Theory of edge detection, Proc. R. Soc. B 207, 1980",
    .example = "phantom(\"cells\", [200, 200]) |> difference_of_gaussians(2, 8) |> write(\"band.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(difference),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "gaussian gaussian_laplace blobs_dog",
};
