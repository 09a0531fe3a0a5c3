/* rank: the value at a place of the sorted box, as scipy.ndimage.rank_filter. */
#include "kernels/rank.h"

typedef struct {
    int64_t    rank;
    fv_numbers size;
    fv_choice  mode;
    double     cval;
} rank;

static const fv_param params[] = {
    FV_PARAM(rank, rank, .doc = "place in the sorted box: 0 is the smallest value, -1 the largest"),
    FV_PARAM(rank, size, .def = "3", .min = 1, .unit = "px", .doc = "edge of the box, one number or one per spatial axis"),
    FV_PARAM(rank, mode, .def = "reflect", .choices = FV_BORDER_CHOICES, .doc = "what the filter assumes outside the image"),
    FV_PARAM(rank, cval, .def = "0", .doc = "the value outside the image, for mode \"constant\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "image", FV_KIND_IMAGE, .doc = "image to filter" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    rank   *p = i->params;
    int64_t voxels;
    FV_TRY(fv__rank_infer(i, &p->size, error));
    voxels = fv__rank_voxels(&p->size);
    if (p->rank < -voxels || p->rank >= voxels)
        return fv_fail(error, FV_ERROR_USAGE, "rank = %lld: the box has %lld voxels; 0 to %lld (or -%lld to -1) are possible",
                       (long long)p->rank, (long long)voxels, (long long)voxels - 1, (long long)voxels);
    if (p->rank < 0) p->rank += voxels;
    return FV_OK;
}

static fv_rank filter(const fv_need *n) {
    const rank *p = n->params;
    return (fv_rank){ .box = fv__box_new(&n->in[0]->image, p->size.value, (fv_border)p->mode.index, p->cval), .rank = p->rank };
}

FV_RANK_PASSES

const fv_op FV_OP(rank) = {
    .name = "rank",
    .family = "filter",
    .brief = "the value at one place of a box whose values are sorted",
    .also = "rank_filter",
    .doc = "rank(a, 1, size) is the second smallest value of each box. A box of even size reaches one voxel further towards "
           "lower indices than towards higher ones. Nan counts as larger than every number. The type of the image is kept.",
    .citation = "scipy.ndimage.rank_filter",
    .example = "phantom(\"cells\", [200, 200]) |> rank(-5, size = 7) |> write(\"high.tif\")",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(rank),
    .result = FV_KIND_IMAGE,
    .infer = infer,
    .passes = passes,
    .cost = cost,
    .see = "median percentile minimum_filter",
};
