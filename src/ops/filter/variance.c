/* variance: the variance over a box. */
#include "kernels/local_moments.h"
#include "kernels/separable.h"
#include "op/window.h"

typedef struct {
    fv_numbers size;
    fv_choice  mode;
    double     cval;
} variance_params;

static const fv_param params[] = {
    FV_PARAM(variance_params, size, .def = "3", .min = 1, .unit = "px",
             .doc = "edge of the box, one number or one per spatial axis"),
    FV_PARAM(variance_params, mode, .def = "reflect", .choices = FV_BORDER_CHOICES,
             .doc = "what the filter assumes outside "
                    "the image"),
    FV_PARAM(variance_params, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_real(i->in[0], error));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv__window_sizes(&((variance_params *)i->params)->size, n, FV_SEPARABLE_MAX_TAPS, error));
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static void emit(const void *params_, int64_t n, const double *mean, const double *variance, double *result) {
    (void)params_, (void)mean;
    if (result != variance) memcpy(result, variance, (size_t)n * sizeof *result);
}

static fv_local_moments moments(const fv_need *n) {
    const variance_params *p = n->params;
    return (fv_local_moments){ .box = fv__box_new(&n->in[0]->image, p->size.value, (fv_border)p->mode.index, p->cval),
                               .emit = emit };
}

FV_LOCAL_MOMENTS_PASSES

const fv_op FV_OP(variance) = {
    .name = "variance",
    .family = "filter",
    .brief = "variance of a box: a simple measure of texture",
    .also = "variance_filter",
    .doc = "The mean of the squared differences from the mean of the box, divided by the number of voxels as in numpy.var. "
           "(scipy.ndimage.variance is something else: that of labelled regions.) It is computed in double precision without "
           "loss by cancellation, and is 0 where all voxels are equal. Nan and infinity spread to every voxel that the "
           "filter reaches from there. The result is float32; it is float64 for images of float64 and of 32 or 64-bit "
           "integers.",
    .citation = "T. F. Chan, G. H. Golub, R. J. LeVeque, Updating formulae and a pairwise algorithm for computing sample "
                "variances, 1979",
    .example = "phantom(\"cells\", [200, 200]) |> variance(5) |> write(\"texture.tif\")",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(variance_params),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "uniform std sauvola",
};
