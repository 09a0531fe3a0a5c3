/* gaussian: smoothing with a Gaussian kernel or its derivatives, as scipy.ndimage.gaussian_filter. */
#include "kernels/bell.h"
#include "kernels/terms_device.h"
#include "op/window.h"

typedef struct {
    fv_numbers sigma, order;
    fv_choice  mode;
    double     cval, truncate;
} gaussian;

static const fv_param params[] = {
    FV_PARAM(gaussian, sigma, .min = 0, .max = 1e4, .unit = "px",
             .doc = "standard deviation, one number or one per spatial axis; 0 leaves an axis alone"),
    FV_PARAM(gaussian, order, .def = "0", .min = 0, .max = FV_BELL_MAX_ORDER,
             .doc = "derivative along each spatial axis, one whole number or one per axis; 0 smooths"),
    FV_PARAM(gaussian, mode, .def = "reflect", .choices = FV_BORDER_CHOICES,
             .doc = "what the filter assumes outside the "
                    "image"),
    FV_PARAM(gaussian, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM(gaussian, truncate, .def = "4", .min = 0, .max = 1e3, .doc = "cut the kernel at this many standard deviations"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to smooth" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    gaussian *p = i->params;
    int       axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv__bell_check(&p->sigma, p->truncate, n, "sigma", error));
    FV_TRY(fv__numbers_spread(&p->order, n, "order", error));
    for (int k = 0; k < n; k++)
        if (p->order.value[k] != floor(p->order.value[k]))
            return fv_fail(error, FV_ERROR_USAGE, "order = %g: must be a whole number between 0 and %d", p->order.value[k],
                           FV_BELL_MAX_ORDER);
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static int64_t size(const void *params_, int term, int k) {
    (void)term;
    const gaussian *p = params_;
    return 2 * fv__bell_radius(p->sigma.value[k], p->truncate) + 1;
}

static void weights(const void *params_, int term, int k, double *weight) {
    const gaussian *p = params_;
    fv__bell_weights(p->sigma.value[k], size(p, term, k) / 2, (int)p->order.value[k], weight);
}

static fv_terms terms(const fv_need *n) {
    const gaussian *p = n->params;
    return (fv_terms){
        .params = p, .border = (fv_border)p->mode.index, .cval = p->cval, .count = 1, .size = size, .weights = weights
    };
}

FV_TERMS_PASSES
FV_TERMS_DEVICE(1e-6)

const fv_op FV_OP(gaussian) = {
    .name = "gaussian",
    .family = "filter",
    .brief = "smooth with a Gaussian, or take derivatives of the smoothed image",
    .also = "gaussian_filter, gaussian_blur, GaussianBlur, imgaussfilt, imgaussfilt3, blur, smooth, gauss",
    .doc = "Each axis is smoothed in turn. The kernel reaches round(truncate * sigma) voxels to either side and sums to 1.\n"
           "order = [0, 1] gives the slope along the second spatial axis, order = 2 the second derivative along every axis.\n"
           "Nan and infinity spread to every voxel that the filter reaches from there. The result is float32; it is float64 "
           "for images of float64 and of 32 or 64-bit integers.",
    .citation = "scipy.ndimage.gaussian_filter",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian(2) |> write(\"smooth.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(gaussian),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .device = &device,
    .see = "median uniform difference_of_gaussians gaussian_gradient_magnitude gaussian_laplace unsharp",
};
