/* gaussian_laplace: the Laplacian of the smoothed image, as scipy.ndimage.gaussian_laplace. */
#include "kernels/bell.h"
#include "kernels/terms.h"
#include "op/window.h"

typedef struct { fv_numbers sigma; fv_choice mode; double cval, truncate; } gaussian_laplace;

static const fv_param params[] = {
    FV_PARAM(gaussian_laplace, sigma, .min = 0, .above = true, .max = 1e4, .unit = "px",
             .doc = "standard deviation, one number or one per spatial axis"),
    FV_PARAM(gaussian_laplace, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what lies outside the image"),
    FV_PARAM(gaussian_laplace, cval, .def = "0", .doc = "the value outside for mode \"constant\""),
    FV_PARAM(gaussian_laplace, truncate, .def = "4", .min = 0, .max = 1e3,
             .doc = "cut the kernel at this many standard deviations"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    gaussian_laplace *p = i->params;
    int               axis[FV_MAX_DIMS], n;
    FV_TRY(fv_window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv_bell_check(&p->sigma, p->truncate, n, "sigma", error));
    i->out->image.dtype = fv_separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static int64_t size(const void *params_, int term, int k) {
    (void)term;
    const gaussian_laplace *p = params_;
    return 2 * fv_bell_radius(p->sigma.value[k], p->truncate) + 1;
}

/* Term k is the second derivative along axis k. */
static void weights(const void *params_, int term, int k, double *weight) {
    const gaussian_laplace *p = params_;
    fv_bell_weights(p->sigma.value[k], size(p, term, k) / 2, term == k ? 2 : 0, weight);
}

static fv_terms terms(const fv_need *n) {
    const gaussian_laplace *p = n->params;
    return (fv_terms){ .params = p, .border = (fv_border)p->mode.index, .cval = p->cval, .count = p->sigma.count, .size = size,
                       .weights = weights };
}

FV_TERMS_PASSES

const fv_op FV_OP(gaussian_laplace) = {
    .name = "gaussian_laplace", .family = "filter", .brief = "Laplacian of the smoothed image",
    .doc = "The sum of the second derivatives of a Gaussian along each spatial axis: strongly negative in bright blobs of radius "
           "sigma times the root of the number of axes, positive in dark ones. A not-a-number or infinity spoils every voxel "
           "whose kernel reaches it. The result is float32, or float64 for float64 and 32 or 64-bit integers.",
    .citation = "scipy.ndimage.gaussian_laplace; Marr and Hildreth, Theory of edge detection, Proc. R. Soc. B 207, 1980",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian_laplace(4) |> write(\"blobs.tif\")",
    .version = 1, .inputs = inputs, .params = params, .params_size = sizeof(gaussian_laplace), .result = FV_KIND_IMAGE,
    .infer = infer, .passes = passes, .cost = cost,
};
