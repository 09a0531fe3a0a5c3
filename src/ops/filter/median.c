/* median: the middle value of a box, as scipy.ndimage.median_filter. */
#include "kernels/rank_device.h"

typedef struct {
    fv_numbers size;
    fv_choice  mode;
    double     cval;
} median;

static const fv_param params[] = {
    FV_PARAM(median, size, .def = "3", .min = 1, .unit = "px", .doc = "edge of the box, one number or one per spatial axis"),
    FV_PARAM(median, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what the filter assumes outside the image"),
    FV_PARAM(median, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) { return fv__rank_infer(i, &((median *)i->params)->size, error); }

static fv_rank filter(const fv_need *n) {
    const median *p = n->params;
    return (fv_rank){ .box = fv__box_new(&n->in[0]->image, p->size.value, (fv_border)p->mode.index, p->cval),
                      .rank = fv__rank_voxels(&p->size) / 2 };
}

FV_RANK_PASSES
FV_RANK_DEVICE

const fv_op FV_OP(median) = {
    .name = "median",
    .family = "filter",
    .brief = "middle value of a box: removes specks and keeps edges",
    .also = "medfilt, medfilt2, medfilt3, median_filter, medianBlur, median_blur, despeckle",
    .doc = "If a box has an even number of voxels, the upper one of the two middle values is taken. A box of even size "
           "reaches one voxel further towards lower indices than towards higher ones. Nan counts as larger than every "
           "number. The type of the image is kept. Only boxes: the footprint and origin of scipy are left out, here and in "
           "percentile, rank and uniform.",
    .citation = "scipy.ndimage.median_filter",
    .example = "phantom(\"cells\", [200, 200]) |> median(5) |> write(\"calm.png\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(median),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .device = &device,
    .see = "gaussian uniform percentile rank remove_outliers",
};
