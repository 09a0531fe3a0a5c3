/* transpose: the axes of an image in another order, as numpy.transpose. */
#include "kernels/rearrange.h"
#include "op/axes.h"

typedef struct {
    const char *axes;
} transpose;

static const fv_param params[] = {
    FV_PARAM(transpose, axes, .def = "",
             .doc = "all axes in their new order, slowest first, as \"x y z\"; left out: the reverse order"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "any image" }, FV_INPUT_END };

static fv_status order_of(const transpose *p, const fv_image_type *in, int axis[FV_MAX_DIMS], fv_error *error) {
    int count = in->ndim;
    if (p->axes && p->axes[strspn(p->axes, " ")])
        FV_TRY(fv__axes_pick(in, p->axes, axis, &count, error));
    else
        for (int d = 0; d < in->ndim; d++) axis[d] = in->ndim - 1 - d;
    if (count != in->ndim)
        return fv_fail(error, FV_ERROR_USAGE, "axes = \"%s\": %d of the %d axes of the image; all must be named", p->axes, count,
                       in->ndim);
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_image_type *in = &i->in[0]->image;
    fv_image_type       *out = &i->out->image;
    int                  axis[FV_MAX_DIMS];
    FV_TRY(order_of(i->params, in, axis, error));
    for (int d = 0; d < in->ndim; d++) { /* the matrix goes by names, which go along */
        out->shape[d] = in->shape[axis[d]];
        out->spacing[d] = in->spacing[axis[d]];
        out->origin[d] = in->origin[axis[d]];
        memcpy(out->axis[d], in->axis[axis[d]], sizeof out->axis[d]);
        memcpy(out->unit[d], in->unit[axis[d]], sizeof out->unit[d]);
    }
    return FV_OK;
}

static fv_rearrangement rearrangement(const fv_need *n) {
    fv_rearrangement a = { { 0 } };
    order_of(n->params, &n->in[0]->image, a.source, NULL);
    for (int d = 0; d < n->in[0]->image.ndim; d++) a.step[d] = 1;
    return a;
}

static void need(const fv_need *n, fv_region *in) {
    fv_rearrangement a = rearrangement(n);
    in[0] = fv__rearrange_need(&a, &n->region);
}

static fv_status run(fv_run *r, fv_error *error) {
    (void)error;
    fv_rearrangement a = rearrangement(&r->need);
    fv__rearrange_run(&a, r->in[0], r->out);
    return FV_OK;
}

static double        cost(const fv_need *n) { return 0.2 * (double)fv_dtype_size(n->out->image.dtype); }
static const fv_pass passes[] = { { .need = need, .run = run }, FV_PASS_END };

const fv_op FV_OP(transpose) = {
    .name = "transpose",
    .family = "geometry",
    .brief = "put the axes of an image into another order",
    .also = "permute, moveaxis, swapaxes, numpy.transpose, rollaxis",
    .doc = "Names, spacings, units and origins go along with their axes, so that every voxel keeps its place in the world; only "
           "the order in "
           "which voxels are stored changes. To call another axis x, use name_axes; to turn a picture, rotate90.",
    .citation = "numpy.transpose",
    .example = "phantom(\"shepp-logan\", [16, 64, 128]) |> transpose(\"y z x\") |> montage |> rescale(0, 255) |> "
               "convert(\"uint8\") |> write(\"sections.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(transpose),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .moves = true,
    .cost = cost,
    .see = "rotate90 flip name_axes",
};
