/* What prewitt and sobel share: the slope along an axis, smoothed across it. Who includes it defines MIDDLE first, the weight of
 * the middle voxel across the slope; there is one such file for each operator, so it has no guard. */
#include "kernels/terms.h"
#include "op/window.h"

typedef struct {
    int64_t   axis;
    fv_choice mode;
    double    cval;
} slope;

static const fv_param params[] = {
    FV_PARAM(slope, axis, .def = "-1", .doc = "spatial axis of the slope: 0 is the first, -1 the last (x)"),
    FV_PARAM(slope, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what the filter assumes outside the image"),
    FV_PARAM(slope, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv__spread_axis(&((slope *)i->params)->axis, n, error));
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static int64_t size(const void *params_, int term, int k) {
    (void)params_, (void)term, (void)k;
    return 3;
}

static void weights(const void *params_, int term, int k, double *weight) {
    (void)term;
    bool along = k == ((const slope *)params_)->axis;
    weight[0] = along ? -1 : 1;
    weight[1] = along ? 0 : MIDDLE;
    weight[2] = 1;
}

static fv_terms terms(const fv_need *n) {
    const slope *p = n->params;
    return (fv_terms){ .params = p,
                       .border = (fv_border)p->mode.index,
                       .cval = p->cval,
                       .padded = true,
                       .count = 1,
                       .size = size,
                       .weights = weights };
}

FV_TERMS_PASSES
