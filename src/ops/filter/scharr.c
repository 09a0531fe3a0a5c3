/* scharr: edges of any direction with little dependence on it, as skimage.filters.scharr. */
#include "kernels/terms.h"
#include "op/window.h"

typedef struct {
    fv_numbers axis;
    fv_choice  mode;
    double     cval;
} scharr;

static const fv_param params[] = {
    FV_PARAM(scharr, axis, .def = "",
             .doc = "spatial axis of the slope: 0 is the first, -1 the last (x); left out: the "
                    "strength of edges over all axes"),
    FV_PARAM(scharr, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what the filter assumes outside the image"),
    FV_PARAM(scharr, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    scharr *p = i->params;
    int     axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_real(i->in[0], error));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    if (p->axis.count > 1 || (p->axis.count && p->axis.value[0] != floor(p->axis.value[0])))
        return fv_fail(error, FV_ERROR_USAGE, "axis: one whole number is needed, or none for the magnitude over all axes");
    int64_t chosen = p->axis.count ? (int64_t)p->axis.value[0] : 0;
    FV_TRY(fv__spread_axis(&chosen, n, error));
    p->axis.value[0] = (double)chosen;
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static int64_t size(const void *params_, int term, int k) {
    (void)params_, (void)term, (void)k;
    return 3;
}

/* The slope is along the chosen axis, or in term k along axis k. */
static void weights(const void *params_, int term, int k, double *weight) {
    const scharr *p = params_;
    bool          slope = k == (p->axis.count ? (int)p->axis.value[0] : term);
    weight[0] = slope ? -1 : 3.0 / 16;
    weight[1] = slope ? 0 : 10.0 / 16;
    weight[2] = slope ? 1 : 3.0 / 16;
}

static fv_terms terms(const fv_need *n) {
    const scharr *p = n->params;
    int           axis[FV_MAX_DIMS], naxes = fv_image_type_spatial(&n->in[0]->image, axis);
    return (fv_terms){ .params = p,
                       .border = (fv_border)p->mode.index,
                       .cval = p->cval,
                       .padded = true,
                       .count = p->axis.count ? 1 : naxes,
                       .magnitude = !p->axis.count,
                       .scale = 1 / sqrt((double)naxes),
                       .size = size,
                       .weights = weights };
}

FV_TERMS_PASSES

const fv_op FV_OP(scharr) = {
    .name = "scharr",
    .family = "filter",
    .brief = "strength of edges of any direction, or the slope along one axis",
    .doc = "Weights [-1 0 1] along an axis and [3 10 3] / 16 along the others. Without axis, the result is the square root "
           "of the mean of the squared slopes along all spatial axes. Integer values are taken as they are (scikit-image "
           "first scales them to 0 ... 1). Nan and infinity spread to every voxel that the filter reaches from there. The "
           "result is float32; it is float64 for images of float64 and of 32 or 64-bit integers.",
    .citation = "skimage.filters.scharr; H. Scharr, Optimal operators in digital image processing, Heidelberg, 2000",
    .example = "phantom(\"cells\", [200, 200]) |> scharr() |> write(\"edges.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(scharr),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "sobel prewitt gaussian_gradient_magnitude gradient",
};
