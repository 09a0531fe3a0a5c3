/* niblack: a threshold for every voxel from mean and deviation around it, as skimage.filters.threshold_niblack. */
#include "kernels/local_moments.h"
#include "kernels/separable.h"
#include "op/window.h"

typedef struct {
    fv_numbers window_size;
    double     k;
} niblack;

static const fv_param params[] = {
    FV_PARAM(niblack, window_size, .def = "15", .min = 1, .unit = "px",
             .doc = "edge of the box, an odd number: one for all spatial axes, or one for each"),
    FV_PARAM(niblack, k, .def = "0.2", .doc = "how many standard deviations the threshold lies below the mean"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image with uneven lighting, such as a page of text" },
                                   FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    niblack *p = i->params;
    int      axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_real(i->in[0], error));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv__window_odd(&p->window_size, n, FV_SEPARABLE_MAX_TAPS, "window_size", error));
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static void emit(const void *params_, int64_t n, const double *mean, const double *variance, double *result) {
    const niblack *p = params_;
    for (int64_t i = 0; i < n; i++) result[i] = mean[i] - p->k * sqrt(variance[i]);
}

static fv_local_moments moments(const fv_need *n) {
    const niblack *p = n->params;
    return (fv_local_moments){ .box = fv__box_new(&n->in[0]->image, p->window_size.value, FV_BORDER_MIRROR, 0),
                               .params = p,
                               .emit = emit };
}

FV_LOCAL_MOMENTS_PASSES

const fv_op FV_OP(niblack) = {
    .name = "niblack",
    .family = "threshold",
    .brief = "a separate threshold for every voxel: so many deviations below the mean around it",
    .also = "threshold_niblack",
    .doc = "mean - k * deviation over a box; the image is mirrored at its border. Compare the image with it: "
           "a > niblack(a). Nan and infinity spread to every voxel that the filter reaches from there. The result is "
           "float32; it is float64 for images of float64 and of 32 or 64-bit integers.",
    .citation = "W. Niblack, An introduction to digital image processing, Prentice-Hall, 1986; "
                "skimage.filters.threshold_niblack",
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "write(a > niblack(a, 61, k = -0.5), \"cells.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(niblack),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "sauvola local otsu",
};
