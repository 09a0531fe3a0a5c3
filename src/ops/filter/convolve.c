/* convolve: weighted sums over a box of any weights, as scipy.ndimage.convolve. */
#include "kernels/correlate.h"
#include "kernels/separable.h"
#include "op/kernels.h"
#include "op/scratch.h"
#include "op/window.h"

typedef struct {
    fv_numbers kernel, shape;
    fv_choice  mode;
    double     cval;
} convolve;

static const fv_param params[] = {
    FV_PARAM(convolve, kernel, .def = "", .doc = "the weights as a list, row by row; [0, 1, 0, 1, -4, 1, 0, 1, 0] is 3 x 3"),
    FV_PARAM(convolve, shape, .def = "", .min = 1,
             .doc = "sizes of the list along the spatial axes; left out: the same along each axis"),
    FV_PARAM(convolve, mode, .def = "reflect", .choices = FV_BORDER_CHOICES,
             .doc = "what the filter assumes outside the "
                    "image"),
    FV_PARAM(convolve, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to filter" },
    { "weights", FV_KIND_IMAGE, .optional = true, .doc = "image of the weights, with as many axes as the image has in space" },
    FV_INPUT_END,
};

enum { MOST_WEIGHTS = 1 << 20 };

/* The sizes of a list whose shape is not given: its n-th root along each axis. */
static bool root_shape(convolve *p, int n) {
    for (int edge = 1; edge <= p->kernel.count; edge++) {
        int product = 1;
        for (int k = 0; k < n; k++) product *= edge;
        if (product != p->kernel.count) continue;
        p->shape.count = n;
        for (int k = 0; k < n; k++) p->shape.value[k] = edge;
        return true;
    }
    return false;
}

static fv_status check_list(convolve *p, int n, fv_error *error) {
    double product = 1;
    if (!p->kernel.count)
        return fv_fail(error, FV_ERROR_USAGE, "weights are missing: give a list of numbers or an image of them");
    if (!p->shape.count && !root_shape(p, n))
        return fv_fail(error, FV_ERROR_USAGE, "kernel has %d numbers, which is no %s: give its shape", p->kernel.count,
                       n == 2 ? "square" : "cube");
    FV_TRY(fv__numbers_spread(&p->shape, n, "shape", error));
    for (int k = 0; k < n; k++) product *= p->shape.value[k];
    if (product != p->kernel.count)
        return fv_fail(error, FV_ERROR_USAGE, "kernel has %d numbers; its shape holds %g", p->kernel.count, product);
    return FV_OK;
}

/* The shape becomes a parameter, so that all that follows looks the same for lists and images. */
static fv_status check_image(convolve *p, const fv_image_type *weights, int n, fv_error *error) {
    double product = 1;
    if (p->kernel.count || p->shape.count)
        return fv_fail(error, FV_ERROR_USAGE, "weights are given as an image and as a list; one of them is possible");
    if (weights->ndim != n)
        return fv_fail(error, FV_ERROR_USAGE, "weights have %d axes; they need %d, as many as the image has in space",
                       weights->ndim, n);
    if (fv_dtype_is_complex(weights->dtype)) return fv_fail(error, FV_ERROR_USAGE, "weights are complex; they must be real");
    p->shape.count = n;
    for (int k = 0; k < n; k++) product *= p->shape.value[k] = (double)weights->shape[k];
    if (product > MOST_WEIGHTS)
        return fv_fail(error, FV_ERROR_USAGE, "weights has %.0f voxels; at most %d are possible", product, MOST_WEIGHTS);
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_real(i->in[0], error));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    if (i->in[1]->kind == FV_KIND_IMAGE)
        FV_TRY(check_image(i->params, &i->in[1]->image, n, error));
    else
        FV_TRY(check_list(i->params, n, error));
    i->out->image.dtype = fv__separable_type(i->in[0]->image.dtype);
    return FV_OK;
}

/* A convolution turns the weights round, so an even box reaches further ahead than back. */
static fv_box window(const fv_need *n) {
    const convolve *p = n->params;
    fv_box          box = fv__box_new(&n->in[0]->image, p->shape.value, (fv_border)p->mode.index, p->cval);
    for (int k = 0; k < box.naxes; k++) box.before[k] = (box.size[k] - 1) / 2;
    return box;
}

static int64_t count(const fv_need *n) {
    int64_t product = 1;
    for (int k = 0; k < ((const convolve *)n->params)->shape.count; k++)
        product *= (int64_t)((const convolve *)n->params)->shape.value[k];
    return product;
}

static void need(const fv_need *n, fv_region *in) {
    fv_box box = window(n);
    in[0] = fv__box_need(&box, &n->in[0]->image, &n->region);
    if (n->in[1]->kind == FV_KIND_IMAGE) in[1] = fv__region_whole(&n->in[1]->image);
}

static size_t lay_out(const fv_need *n, void *memory, double **weights, void **rest) {
    fv_scratch pieces = { memory, 0 };
    fv_box     box = window(n);
    *weights = fv__scratch_take(&pieces, count(n) * 8);
    *rest = fv__scratch_take(&pieces, (int64_t)fv__correlate_scratch(&box, n));
    return pieces.used;
}

static size_t scratch(const fv_need *n) {
    double *weights;
    void   *rest;
    return lay_out(n, NULL, &weights, &rest);
}

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

/* The weights turned round along every axis, which is the list read backwards. */
static void turned_weights(const fv_run *r, double *weights) {
    const convolve *p = r->need.params;
    int64_t         all = count(&r->need), at = 0;
    memcpy(weights, p->kernel.value, (size_t)p->kernel.count * sizeof *weights);
    if (r->in[1]) {
        int64_t n = r->in[1]->region.size[r->in[1]->region.ndim - 1];
        fv_rows rows;
        for (fv__rows_begin(&rows, &r->in[1]->region); fv__rows_next(&rows); at += n)
            FV_PASTE(fv_kernels_, FV_ISA)
                .convert(weights + at, FV_FLOAT64, fv__block_at(r->in[1], rows.position), r->in[1]->dtype, n);
    }
    for (int64_t i = 0; i < all / 2; i++) {
        double swap = weights[i];
        weights[i] = weights[all - 1 - i];
        weights[all - 1 - i] = swap;
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv_run  part = *r;
    fv_box  box = window(&r->need);
    double *weights;
    lay_out(&r->need, r->scratch, &weights, &part.scratch);
    turned_weights(r, weights);
    fv__correlate_run(&box, weights, &part);
    return FV_OK;
}

static double cost(const fv_need *n) {
    return 0.5 + (double)count(n) * (fv__separable_type(n->in[0]->image.dtype) == FV_FLOAT32 ? 0.03 : 0.06);
}

static const fv_pass passes[] = { { .need = need, .scratch = scratch, .run = run }, FV_PASS_END };

const fv_op FV_OP(convolve) = {
    .name = "convolve",
    .family = "filter",
    .brief = "weighted sum over a box",
    .also = "conv2, convn, imfilter, filter2D, correlate, ndimage.convolve",
    .doc = "As scipy.ndimage.convolve: the box of weights is mirrored along every axis. The weights are a list, or an image "
           "(which the pipeline may also compute). Weights of 0 are left out, so nan under them does no harm. The result is "
           "float32; it is float64 for images of float64 and of 32 or 64-bit integers. (scipy keeps the type.)\n"
           "The time grows with the number of weights. gaussian, uniform and other filters that work axis by axis are faster.",
    .citation = "scipy.ndimage.convolve",
    .example = "phantom(\"cells\", [200, 200]) |> convolve([0, 1, 0, 1, -4, 1, 0, 1, 0]) |> write(\"laplace.tif\")",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(convolve),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "gaussian uniform laplace",
};
