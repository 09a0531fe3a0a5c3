/* resize: an image of another shape, smoothed first where it gets smaller, as skimage.transform.resize. */
#include "ops/geometry/spline.h"

typedef struct {
    fv_spline  spline;
    fv_numbers shape, factor, sigma;
    bool       anti_aliasing, clip;
} resize;

static const fv_param params[] = {
    FV_PARAM(resize, shape, .def = "", .min = 1, .max = 1e12, .unit = "px",
             .doc = "voxels of the result along each spatial axis"),
    FV_PARAM(resize, factor, .def = "", .min = 0, .above = true, .max = 1e6,
             .doc = "instead of shape: voxels of the result for each one of the image, one number or one per spatial axis"),
    FV_PARAM(fv_spline, order, .def = "1", .min = 0, .max = 3,
             .doc = "0: the nearest voxel, 1: linear, 3: a cubic spline through the voxels"),
    FV_PARAM(fv_spline, mode, .def = "mirror", .choices = FV_EXTEND_CHOICES, .doc = FV_EXTEND_DOC),
    FV_PARAM(fv_spline, cval, .def = "0", .doc = "the value outside, for the modes constant and grid-constant"),
    FV_PARAM(resize, anti_aliasing, .def = "true",
             .doc = "smooth along axes that get fewer voxels; never done for order 0 and for bool"),
    FV_PARAM(resize, sigma, .def = "", .min = 0, .max = 1e4, .unit = "px",
             .doc = "standard deviation of that Gaussian, one number or one per spatial axis; left out: (voxels before / voxels "
                    "after - 1) / 2"),
    FV_PARAM(resize, clip, .def = "true", .doc = "for order 3: no value beyond the least and the largest of the image"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to enlarge or reduce" }, FV_INPUT_END };

static fv_status sizes(const fv_mapping *m, const fv_image_type *in, const resize *p, double *size, fv_error *error) {
    fv_numbers wanted = p->shape.count ? p->shape : p->factor;
    if (!p->shape.count == !p->factor.count)
        return fv_fail(error, FV_ERROR_USAGE, "give either shape or factor, %s", p->shape.count ? "not both" : "one of them");
    FV_TRY(fv__numbers_spread(&wanted, m->naxes, p->shape.count ? "shape" : "factor", error));
    for (int k = 0; k < m->naxes; k++)
        size[k] = p->shape.count ? wanted.value[k] : floor((double)in->shape[m->axis[k]] * wanted.value[k] + 0.5);
    fv_image_type type = *in;
    return fv__spline_sizes(m, size, p->shape.count ? "shape" : "factor", &type, error);
}

static void print_list(fv_bytes *text, const double *value, int n) {
    for (int k = 0; k < n; k++) fv__bytes_printf(text, "%s%.17g", k ? ", " : "[", value[k]);
    fv__bytes_printf(text, "]");
}

static const char *smoothing_mode(int mode) {
    static const char *const like[] = {
        [FV_EXTEND_REFLECT] = "reflect",     [FV_EXTEND_MIRROR] = "mirror",         [FV_EXTEND_NEAREST] = "nearest",
        [FV_EXTEND_WRAP] = "wrap",           [FV_EXTEND_CONSTANT] = "constant",     [FV_EXTEND_GRID_WRAP] = "wrap",
        [FV_EXTEND_GRID_MIRROR] = "reflect", [FV_EXTEND_GRID_CONSTANT] = "constant"
    };
    return like[mode];
}

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    const resize        *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    fv_mapping           m;
    fv_numbers           sigma = p->sigma;
    double               size[3], zoom[3];
    bool                 smooth = false;
    FV_TRY(fv__spline_check(&p->spline, i->in[0], &m, error));
    FV_TRY(sizes(&m, in, p, size, error));
    if (sigma.count) FV_TRY(fv__numbers_spread(&sigma, m.naxes, "sigma", error));
    for (int k = 0; k < m.naxes; k++) {
        double before = (double)in->shape[m.axis[k]];
        zoom[k] = size[k] / before;
        if (!sigma.count) sigma.value[k] = FV_MAX((before / size[k] - 1) / 2, 0);
        smooth = smooth || sigma.value[k] > 0;
    }
    bool clip = p->clip && m.order == 3 && !fv_dtype_is_complex(in->dtype);
    smooth = smooth && p->anti_aliasing && m.order && in->dtype != FV_BOOL;
    fv__bytes_printf(text, clip ? "clip(zoom(" : "zoom(");
    if (smooth) {
        fv__bytes_printf(text, "gaussian(image, ");
        print_list(text, sigma.value, m.naxes);
        fv__bytes_printf(text, ", mode = \"%s\", cval = cval)", smoothing_mode(p->spline.mode.index));
    } else
        fv__bytes_printf(text, "image");
    fv__bytes_printf(text, ", ");
    print_list(text, zoom, m.naxes);
    fv__bytes_printf(text, ", order = order, mode = mode, cval = cval, grid_mode = true)%s\n",
                     clip ? ", min(image), max(image))" : "");
    return FV_OK;
}

const fv_op FV_OP(resize) = {
    .name = "resize",
    .family = "geometry",
    .brief = "give an image another shape, without aliasing",
    .also = "skimage.transform.resize, downscale, imresize, imresize3, cv2.resize, thumbnail",
    .doc = "As skimage.transform.resize with preserve_range = True: where an axis gets fewer voxels, the image is smoothed along "
           "it first, so "
           "that fine structure does not turn into false coarse one. The outer borders of the image stay where they are in the "
           "world; "
           "spacing and origin follow. The default mode, mirror, is scikit-image's \"reflect\". Give order = 0 for labels and "
           "masks.\n" FV_SPLINE_DOC,
    .citation = "skimage.transform.resize",
    .example = "phantom(\"cells\", [400, 400]) |> resize(factor = 0.25) |> write(\"small.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(resize),
    .result = FV_KIND_IMAGE,
    .unroll = unroll,
    .see = "zoom resample bin gaussian",
};
