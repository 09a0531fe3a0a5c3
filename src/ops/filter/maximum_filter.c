/* maximum_filter: the greatest value of a box, as scipy.ndimage.maximum_filter. */
#include "kernels/extrema.h"
#include "op/window.h"

typedef struct { fv_numbers size; fv_choice mode; double cval; } maximum_filter;

static const fv_param params[] = {
    FV_PARAM(maximum_filter, size, .def = "3", .min = 1, .unit = "px",
             .doc = "edge of the box, one number or one per spatial axis"),
    FV_PARAM(maximum_filter, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what lies outside the image"),
    FV_PARAM(maximum_filter, cval, .def = "0", .doc = "the value outside for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    FV_TRY(fv_window_real(i->in[0], error));
    FV_TRY(fv_window_axes(i->in[0], axis, &n, error));
    return fv_window_sizes(&((maximum_filter *)i->params)->size, n, FV_EXTREMA_MAX_SIZE, error);
}

static fv_extrema extrema(const fv_need *n) {
    const maximum_filter *p = n->params;
    return (fv_extrema){ .box = fv_box_new(&n->in[0]->image, p->size.value, (fv_border)p->mode.index, p->cval),
                         .greatest = true };
}

FV_EXTREMA_PASSES

const fv_op FV_OP(maximum_filter) = {
    .name = "maximum_filter", .family = "filter", .brief = "greatest value of a box",
    .doc = "Named with _filter, because maximum(a, b) compares two images. The cost does not grow with the box. A box of even "
           "size reaches one voxel further back than ahead. Not-a-numbers count as larger than all numbers. The type stays. "
           "Round neighbourhoods: dilate(image, ball(r)).",
    .citation = "scipy.ndimage.maximum_filter",
    .example = "phantom(\"cells\", [64, 64]) |> maximum_filter(5) |> write(\"greatest.png\")",
    .version = 1, .inputs = inputs, .params = params, .params_size = sizeof(maximum_filter), .result = FV_KIND_IMAGE,
    .infer = infer, .passes = passes, .cost = cost,
};
