/* laplace: the sum of second differences, as scipy.ndimage.laplace. */
#include "kernels/terms.h"
#include "op/window.h"

typedef struct { fv_choice mode; double cval; } laplace;

static const fv_param params[] = {
    FV_PARAM(laplace, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what lies outside the image"),
    FV_PARAM(laplace, cval, .def = "0", .doc = "the value outside for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    FV_TRY(fv_window_axes(i->in[0], axis, &n, error));
    i->out->image.dtype = fv_separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

/* Term k is the second difference along axis k. */
static int64_t size(const void *params_, int term, int k) {
    (void)params_;
    return term == k ? 3 : 1;
}

static void weights(const void *params_, int term, int k, double *weight) {
    (void)params_;
    weight[0] = 1;
    if (term != k) return;
    weight[1] = -2;
    weight[2] = 1;
}

static fv_terms terms(const fv_need *n) {
    const laplace *p = n->params;
    int            axis[FV_MAX_DIMS];
    return (fv_terms){ .params = p, .border = (fv_border)p->mode.index, .cval = p->cval,
                       .count = fv_image_type_spatial(&n->in[0]->image, axis), .size = size, .weights = weights };
}

FV_TERMS_PASSES

const fv_op FV_OP(laplace) = {
    .name = "laplace", .family = "filter", .brief = "sum of the second differences along each axis",
    .doc = "Along each spatial axis a voxel's two neighbours minus twice the voxel, added up. "
           "A not-a-number or infinity spoils every voxel whose kernel reaches it. The result is float32, or float64 "
           "for float64 and 32 or 64-bit integers (scipy keeps the type, so that its integers wrap).",
    .citation = "scipy.ndimage.laplace",
    .example = "phantom(\"cells\", [200, 200]) |> laplace() |> write(\"curvature.tif\")",
    .version = 1, .inputs = inputs, .params = params, .params_size = sizeof(laplace), .result = FV_KIND_IMAGE,
    .infer = infer, .passes = passes, .cost = cost,
};
