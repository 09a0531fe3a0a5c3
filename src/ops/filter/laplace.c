/* laplace: the sum of second differences, as scipy.ndimage.laplace. */
#include "kernels/terms.h"
#include "op/window.h"

typedef struct {
    fv_choice mode;
    double    cval;
} laplace;

static const fv_param params[] = {
    FV_PARAM(laplace, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what the filter assumes outside the image"),
    FV_PARAM(laplace, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
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
    return (fv_terms){ .params = p,
                       .border = (fv_border)p->mode.index,
                       .cval = p->cval,
                       .count = fv_image_type_spatial(&n->in[0]->image, axis),
                       .size = size,
                       .weights = weights };
}

FV_TERMS_PASSES

const fv_op FV_OP(laplace) = {
    .name = "laplace",
    .family = "filter",
    .brief = "sum of the second differences along each axis",
    .also = "laplacian, Laplacian, del2",
    .doc = "Along each spatial axis: the two neighbours of a voxel minus twice the voxel, added up. Nan and infinity spread "
           "to every voxel that the filter reaches from there. The result is float32; it is float64 for images of float64 "
           "and of 32 or 64-bit integers. (scipy keeps the type, so that its integers overflow.)",
    .citation = "scipy.ndimage.laplace",
    .example = "phantom(\"cells\", [200, 200]) |> gaussian(2) |> laplace() |> write(\"curvature.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(laplace),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "gaussian_laplace convolve sobel",
};
