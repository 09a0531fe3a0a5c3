/* What minimum_filter and maximum_filter share. Who includes it defines GREATEST first; there is one such file for each
 * operator, so it has no guard. */
#include "kernels/extrema.h"
#include "op/window.h"

typedef struct { fv_numbers size; fv_choice mode; double cval; } extreme;

static const fv_param params[] = {
    FV_PARAM(extreme, size, .def = "3", .min = 1, .unit = "px",
             .doc = "edge of the box, one number or one per spatial axis"),
    FV_PARAM(extreme, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what lies outside the image"),
    FV_PARAM(extreme, cval, .def = "0", .doc = "the value outside for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    FV_TRY(fv_window_real(i->in[0], error));
    FV_TRY(fv_window_axes(i->in[0], axis, &n, error));
    return fv_window_sizes(&((extreme *)i->params)->size, n, FV_EXTREMA_MAX_SIZE, error);
}

static fv_extrema extrema(const fv_need *n) {
    const extreme *p = n->params;
    return (fv_extrema){ .box = fv_box_new(&n->in[0]->image, p->size.value, (fv_border)p->mode.index, p->cval),
                         .greatest = GREATEST };
}

FV_EXTREMA_PASSES
