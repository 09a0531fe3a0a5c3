/* spline_filter: the coefficients of the cubic spline through the voxels, as scipy.ndimage.spline_filter of order 3. */
#include "kernels/separable.h"
#include "op/axes.h"
#include "ops/geometry/spline.h"

typedef struct {
    fv_choice   mode;
    const char *axes;
} spline_filter;

static const fv_param params[] = {
    FV_PARAM(spline_filter, mode, .def = "mirror", .choices = FV_EXTEND_CHOICES, .doc = FV_EXTEND_DOC),
    FV_PARAM(spline_filter, axes, .def = "", .doc = "axes to filter along, as \"y x\"; left out: all spatial axes"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "any image" }, FV_INPUT_END };

/* The filter is z^|k| times the square root of 3 with z = sqrt(3) - 2, cut where it falls below half a unit in the last place. */
enum { REACH_32 = 14, REACH_64 = 29 };
static const double pole = -0x1.126145e9ecd56p-2, gain = 0x1.bb67ae8584caap+0;

static fv_status infer(fv_infer *i, fv_error *error) {
    const spline_filter *p = i->params;
    const fv_image_type *in = &i->in[0]->image;
    int                  spatial[FV_MAX_DIMS], n, picked[FV_MAX_DIMS], count;
    FV_TRY(fv__window_axes(i->in[0], spatial, &n, error));
    FV_TRY(fv__axes_pick(in, p->axes, picked, &count, error));
    for (int k = 0; k < count; k++) {
        bool found = false;
        for (int j = 0; j < n; j++) found = found || spatial[j] == picked[k];
        if (!found)
            return fv_fail(error, FV_ERROR_USAGE, "axes = \"%s\": %s is no spatial axis of the image", p->axes,
                           in->axis[picked[k]]);
    }
    i->out->image.dtype = fv__separable_type(in->dtype);
    return FV_OK;
}

static void weights(const void *size, int k, double *weight) {
    int64_t reach = ((const int64_t *)size)[k] / 2;
    weight[0] = 1;
    for (int64_t i = 0; i <= reach && reach; i++) {
        double w = gain;
        for (int64_t j = 0; j < i; j++) w *= pole;
        weight[reach - i] = weight[reach + i] = w;
    }
}

static fv_separable separable(const fv_need *n) {
    static const fv_border like[] = { [FV_EXTEND_REFLECT] = FV_BORDER_REFLECT,     [FV_EXTEND_MIRROR] = FV_BORDER_MIRROR,
                                      [FV_EXTEND_NEAREST] = FV_BORDER_REFLECT,     [FV_EXTEND_WRAP] = FV_BORDER_MIRROR,
                                      [FV_EXTEND_CONSTANT] = FV_BORDER_MIRROR,     [FV_EXTEND_GRID_WRAP] = FV_BORDER_WRAP,
                                      [FV_EXTEND_GRID_MIRROR] = FV_BORDER_REFLECT, [FV_EXTEND_GRID_CONSTANT] = FV_BORDER_MIRROR };
    const spline_filter   *p = n->params;
    const fv_image_type   *in = &n->in[0]->image;
    fv_dtype               type = fv__separable_type(in->dtype);
    int                    picked[FV_MAX_DIMS], count;
    int64_t                reach = type == FV_FLOAT64 || type == FV_COMPLEX128 ? REACH_64 : REACH_32;
    const double           one[3] = { 1, 1, 1 };
    fv_separable           s = { .box = fv__box_new(in, one, like[p->mode.index], 0), .weights = weights };
    fv__axes_pick(in, p->axes, picked, &count, NULL);
    for (int k = 0; k < s.box.naxes; k++)
        for (int j = 0; j < count; j++)
            if (s.box.axis[k] == picked[j] && in->shape[picked[j]] > 1) { /* one voxel stays as it is */
                s.box.size[k] = 2 * reach + 1;
                s.box.before[k] = reach;
            }
    return s;
}

static void need(const fv_need *n, fv_region *in) {
    fv_separable s = separable(n);
    in[0] = fv__box_need(&s.box, &n->in[0]->image, &n->region);
}

static size_t scratch(const fv_need *n) {
    fv_separable s = separable(n);
    s.params = s.box.size;
    return fv__separable_scratch(&s, n);
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv_separable s = separable(&r->need);
    s.params = s.box.size;
    fv__separable_run(&s, r);
    return FV_OK;
}

static double cost(const fv_need *n) {
    fv_separable s = separable(n);
    double       sums = 0;
    for (int k = 0; k < s.box.naxes; k++) sums += (double)s.box.size[k];
    return 0.4 + sums * (fv__separable_type(n->in[0]->image.dtype) == FV_FLOAT32 ? 0.03 : 0.06);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(spline_filter) = {
    .name = "spline_filter",
    .family = "geometry",
    .stage = "filter",
    .brief = "coefficients of the cubic spline through the voxels",
    .also = "spline_filter1d, prefilter, bspline coefficients",
    .doc = "What zoom, rotate, shift, affine, resample and warp do to the image themselves for order = 3; give them prefilter = "
           "false to use one result several times. The filter's weights are sqrt(3) * (sqrt(3) - 2)^|k|. They are cut "
           "where they fall below half a unit in the last place of the first one: after 14 voxels on each side for float32 "
           "(0.268^14 < "
           "2^-26), after 29 for float64 (0.268^29 < 2^-55). So a voxel depends on these neighbours alone, and chunks do not "
           "matter. The "
           "result is float32; it is float64 for images of float64 and of 32 or 64-bit integers. Nan spreads as far as the "
           "filter reaches.",
    .citation = "M. Unser, Splines: a perfect fit for signal and image processing, IEEE Signal Processing Magazine 16 (6), 1999; "
                "scipy.ndimage.spline_filter",
    .example = "phantom(\"cells\", [200, 200]) |> spline_filter |> write(\"coefficients.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(spline_filter),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "affine zoom",
};
