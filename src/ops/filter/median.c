/* median: the middle value of a box, as scipy.ndimage.median_filter. */
#include "kernels/rank_device.h"

typedef struct { fv_numbers size; fv_choice mode; double cval; } median;

static const fv_param params[] = {
    FV_PARAM(median, size, .def = "3", .min = 1, .unit = "px", .doc = "edge of the box, one number or one per spatial axis"),
    FV_PARAM(median, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what lies outside the image"),
    FV_PARAM(median, cval, .def = "0", .doc = "the value outside for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    return fv_rank_infer(i, &((median *)i->params)->size, error);
}

static fv_rank filter(const fv_need *n) {
    const median *p = n->params;
    return (fv_rank){ .box = fv_box_new(&n->in[0]->image, p->size.value, (fv_border)p->mode.index, p->cval),
                      .rank = fv_rank_voxels(&p->size) / 2 };
}

FV_RANK_PASSES
FV_RANK_DEVICE

const fv_op FV_OP(median) = {
    .name = "median",
    .family = "filter",
    .brief = "middle value of a box",
    .doc = "Removes specks and keeps edges. A box of even size reaches one voxel further back than ahead; of an even number of "
           "voxels the upper middle one is taken. Not-a-numbers count as larger than all numbers. The type stays. Boxes only: "
           "scipy's footprint and origin are left out, here and in percentile, rank and uniform.",
    .citation = "scipy.ndimage.median_filter",
    .example = "zeros([64, 64]) |> median(5) |> write(\"calm.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(median),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .device = &device,
};
