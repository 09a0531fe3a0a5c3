/* percentile: the value that a share of a box lies below, as scipy.ndimage.percentile_filter. */
#include "kernels/rank.h"

typedef struct {
    double     percentile;
    fv_numbers size;
    fv_choice  mode;
    double     cval;
} percentile;

static const fv_param params[] = {
    FV_PARAM(percentile, percentile, .min = -100, .max = 100, .unit = "%",
             .doc = "share of the box below the result: 0 is the smallest value, 50 the median, 100 the largest; negative "
                    "counts from above"),
    FV_PARAM(percentile, size, .def = "3", .min = 1, .unit = "px", .doc = "edge of the box, one number or one per spatial axis"),
    FV_PARAM(percentile, mode, .def = "reflect", .choices = FV_BORDER_CHOICES,
             .doc = "what the filter assumes outside the "
                    "image"),
    FV_PARAM(percentile, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) { return fv__rank_infer(i, &((percentile *)i->params)->size, error); }

/* As scipy counts: of n voxels the one with int(n * share) before it. */
static int64_t place(const percentile *p) {
    double  share = p->percentile < 0 ? p->percentile + 100 : p->percentile;
    int64_t voxels = fv__rank_voxels(&p->size);
    return share == 100 ? voxels - 1 : (int64_t)((double)voxels * share / 100);
}

static fv_rank filter(const fv_need *n) {
    const percentile *p = n->params;
    return (fv_rank){ .box = fv__box_new(&n->in[0]->image, p->size.value, (fv_border)p->mode.index, p->cval), .rank = place(p) };
}

FV_RANK_PASSES

const fv_op FV_OP(percentile) = {
    .name = "percentile",
    .family = "filter",
    .brief = "the value below which a share of a box lies",
    .also = "percentile_filter",
    .doc = "percentile(a, 50, size) is the median. A value of the box is taken; two are never averaged. A box of even size "
           "reaches one voxel further towards lower indices than towards higher ones. Nan counts as larger than every "
           "number. The type of the image is kept.",
    .citation = "scipy.ndimage.percentile_filter",
    .example = "phantom(\"cells\", [200, 200]) |> percentile(20, size = 9) |> write(\"low.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(percentile),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "median rank quantile",
};
