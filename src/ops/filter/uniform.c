/* uniform: the mean over a box, as scipy.ndimage.uniform_filter. */
#include "kernels/separable.h"
#include "op/window.h"

typedef struct {
    fv_numbers size;
    fv_choice  mode;
    double     cval;
} uniform;

static const fv_param params[] = {
    FV_PARAM(uniform, size, .def = "3", .min = 1, .unit = "px", .doc = "edge of the box, one number or one per spatial axis"),
    FV_PARAM(uniform, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what the filter assumes outside the image"),
    FV_PARAM(uniform, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to smooth" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    uniform *p = i->params;
    int      axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    FV_TRY(fv__window_sizes(&p->size, n, FV_SEPARABLE_MAX_TAPS, error));
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

static fv_separable separable(const fv_need *n) {
    const uniform *p = n->params;
    return (fv_separable){ .box = fv__box_new(&n->in[0]->image, p->size.value, (fv_border)p->mode.index, p->cval) };
}

static void need(const fv_need *n, fv_region *in) {
    fv_separable s = separable(n);
    in[0] = fv__box_need(&s.box, &n->in[0]->image, &n->region);
}

static size_t scratch(const fv_need *n) {
    fv_separable s = separable(n);
    return fv__separable_scratch(&s, n);
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv_separable s = separable(&r->need);
    fv__separable_run(&s, r);
    return FV_OK;
}

static double cost(const fv_need *n) {
    fv_separable s = separable(n);
    double       sums = 0;
    for (int k = 0; k < s.box.naxes; k++) sums += s.box.size[k] <= 8 ? (double)s.box.size[k] : 8 + (double)s.box.size[k] / 8;
    return 0.4 + sums * (fv__separable_type(n->in[0]->image.dtype) == FV_FLOAT32 ? 0.03 : 0.06);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(uniform) = {
    .name = "uniform",
    .family = "filter",
    .brief = "mean of a box",
    .also = "uniform_filter, mean_filter, box_filter, boxFilter, cv2.blur, box_blur, imboxfilt, average, moving_average",
    .doc = "The sum of the box is divided once, so means of 8-bit images are rounded correctly. A box of even size reaches "
           "one voxel further towards lower indices than towards higher ones. Nan and infinity spread to every voxel that "
           "the filter reaches from there. The result is float32; it is float64 for images of float64 and of 32 or 64-bit "
           "integers. (scipy keeps the type.)",
    .citation = "scipy.ndimage.uniform_filter",
    .example = "phantom(\"cells\", [200, 200]) |> uniform(5) |> write(\"smooth.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(uniform),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "gaussian median variance",
};
