/* sauvola: a threshold for every voxel from mean and deviation around it, as skimage.filters.threshold_sauvola. */
#include "kernels/local_moments.h"
#include "kernels/separable.h"
#include "op/window.h"

typedef struct {
    fv_numbers window_size;
    double     k;
    fv_numbers r;
} sauvola;

static const fv_param params[] = {
    FV_PARAM(sauvola, window_size, .def = "15", .min = 1, .unit = "px",
             .doc = "edge of the box, an odd number: one for all spatial axes, or one for each"),
    FV_PARAM(sauvola, k, .def = "0.2", .doc = "how much a small deviation lowers the threshold"),
    FV_PARAM(sauvola, r, .def = "", .min = 0, .above = true,
             .doc = "largest standard deviation that is expected; left out: half the range of the image's type (1 for floats)"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image with uneven lighting, such as a page of text" },
                                   FV_INPUT_END };

static double half_range(fv_dtype dtype) {
    if (dtype == FV_BOOL) return 0.5;
    if (fv_dtype_is_float(dtype)) return 1;
    return (ldexp(1, 8 * (int)fv_dtype_size(dtype)) - 1) / 2;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    sauvola *p = i->params;
    int      axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_real(i->in[0], error));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv__window_odd(&p->window_size, n, FV_SEPARABLE_MAX_TAPS, "window_size", error));
    if (p->r.count > 1) return fv_fail(error, FV_ERROR_USAGE, "r: one number is needed, %d are given", p->r.count);
    if (!p->r.count) p->r = (fv_numbers){ 1, { half_range(i->in[0]->image.dtype) } };
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static void emit(const void *params_, int64_t n, const double *mean, const double *variance, double *result) {
    const sauvola *p = params_;
    for (int64_t i = 0; i < n; i++) result[i] = mean[i] * (1 + p->k * (sqrt(variance[i]) / p->r.value[0] - 1));
}

static fv_local_moments moments(const fv_need *n) {
    const sauvola *p = n->params;
    return (fv_local_moments){ .box = fv__box_new(&n->in[0]->image, p->window_size.value, FV_BORDER_MIRROR, 0),
                               .params = p,
                               .emit = emit };
}

FV_LOCAL_MOMENTS_PASSES

const fv_op FV_OP(sauvola) = {
    .name = "sauvola",
    .family = "threshold",
    .brief = "a separate threshold for every voxel, from the mean and deviation around it",
    .also = "threshold_sauvola",
    .doc = "mean * (1 + k * (deviation / r - 1)) over a box; the image is mirrored at its border. Compare the image with it: "
           "a > sauvola(a). Nan and infinity spread to every voxel that the filter reaches from there. The result is "
           "float32; it is float64 for images of float64 and of 32 or 64-bit integers.",
    .citation = "J. Sauvola, M. Pietikainen, Adaptive document image binarization, Pattern Recognition 33, 2000; "
                "skimage.filters.threshold_sauvola",
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "write(a > sauvola(a, 61), \"cells.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(sauvola),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "local otsu variance",
};
