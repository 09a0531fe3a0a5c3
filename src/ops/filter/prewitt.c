/* prewitt: the slope along an axis, smoothed across it, as scipy.ndimage.prewitt. */
#include "kernels/terms.h"
#include "op/window.h"

typedef struct { int64_t axis; fv_choice mode; double cval; } prewitt;

static const fv_param params[] = {
    FV_PARAM(prewitt, axis, .def = "-1", .doc = "spatial axis of the slope: 0 the first, -1 the last (x)"),
    FV_PARAM(prewitt, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what lies outside the image"),
    FV_PARAM(prewitt, cval, .def = "0", .doc = "the value outside for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    FV_TRY(fv_window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv_spread_axis(&((prewitt *)i->params)->axis, n, error));
    i->out->image.dtype = fv_separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static int64_t size(const void *params_, int term, int k) {
    (void)params_, (void)term, (void)k;
    return 3;
}

static void weights(const void *params_, int term, int k, double *weight) {
    (void)term;
    bool slope = k == ((const prewitt *)params_)->axis;
    weight[0] = slope ? -1 : 1;
    weight[1] = slope ? 0 : 1;
    weight[2] = 1;
}

static fv_terms terms(const fv_need *n) {
    const prewitt *p = n->params;
    return (fv_terms){ .params = p, .border = (fv_border)p->mode.index, .cval = p->cval, .padded = true, .count = 1, .size = size,
                       .weights = weights };
}

FV_TERMS_PASSES

const fv_op FV_OP(prewitt) = {
    .name = "prewitt", .family = "filter", .brief = "slope along an axis, smoothed across it",
    .doc = "Weights [-1 0 1] along the axis and [1 1 1] along the others, not normalised, as in scipy. "
           "With mode constant the image is surrounded by cval once (scipy: anew for each axis). "
           "A not-a-number or infinity spoils every voxel of the boxes around it. "
           "Edges of any direction: sqrt(prewitt(a, 0) ** 2 + prewitt(a, 1) ** 2). The result is float32, or float64 for "
           "float64 and 32 or 64-bit integers (scipy keeps the type, so that its integers wrap).",
    .citation = "scipy.ndimage.prewitt",
    .example = "phantom(\"cells\", [200, 200]) |> prewitt() |> write(\"slope.tif\")",
    .version = 1, .inputs = inputs, .params = params, .params_size = sizeof(prewitt), .result = FV_KIND_IMAGE,
    .infer = infer, .passes = passes, .cost = cost,
};
