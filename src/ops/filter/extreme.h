/* What minimum_filter and maximum_filter share. Who includes it defines GREATEST first; there is one such file for each
 * operator, so it has no guard. */
#include "kernels/extrema.h"
#include "op/window.h"

typedef struct {
    fv_numbers size;
    fv_choice  mode;
    double     cval;
} extreme;

static const fv_param params[] = {
    FV_PARAM(extreme, size, .def = "3", .min = 1, .unit = "px", .doc = "edge of the box, one number or one per spatial axis"),
    FV_PARAM(extreme, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what the filter assumes outside the image"),
    FV_PARAM(extreme, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    int axis[FV_MAX_DIMS], n;
    FV_TRY(fv__window_real(i->in[0], error));
    FV_TRY(fv__window_axes(i->in[0], axis, &n, error));
    return fv__window_sizes(&((extreme *)i->params)->size, n, FV_EXTREMA_MAX_SIZE, error);
}

/* A box sees nothing new beyond twice the image: what lies further out are the same voxels again. */
static void cut_to_image(fv_box *box, const fv_image_type *image) {
    for (int k = 0; k < box->naxes; k++) {
        int64_t most = 2 * image->shape[box->axis[k]], after = FV_MIN(box->size[k] - 1 - box->before[k], most);
        box->before[k] = FV_MIN(box->before[k], most);
        box->size[k] = box->before[k] + 1 + after;
    }
}

static fv_extrema extrema(const fv_need *n) {
    const extreme *p = n->params;
    fv_extrema     e = { .box = fv__box_new(&n->in[0]->image, p->size.value, (fv_border)p->mode.index, p->cval),
                         .greatest = GREATEST };
    cut_to_image(&e.box, &n->in[0]->image);
    return e;
}

FV_EXTREMA_PASSES
