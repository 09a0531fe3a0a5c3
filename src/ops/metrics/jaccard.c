/* jaccard: overlap of two masks. */
#include "ops/metrics/pair.h"

static const fv_input inputs[] = {
    { "a", FV_KIND_IMAGE, .doc = "a mask, or labels: what is not 0 counts" },
    { "b", FV_KIND_IMAGE, .doc = "another of the same shape" },
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    FV_TRY(fv__pair_check(i, "a", "b", error));
    fv__bytes_printf(text, "x = a != 0\ny = b != 0\ncount(x & y) / count(x | y)");
    return FV_OK;
}

const fv_op FV_OP(jaccard) = {
    .name = "jaccard",
    .family = "metrics",
    .brief = "overlap of two masks: what they share, as a part of what either covers",
    .version = 1,
    .also = "jaccard_score, iou, intersection_over_union",
    .doc = "1 - scipy.spatial.distance.jaccard of all voxels: 1 for equal masks, 0 for masks that share nothing. Nan if both are "
           "empty.",
    .citation =
        "P. Jaccard, The distribution of the flora in the alpine zone, New Phytologist 11, 1912; scipy.spatial.distance.jaccard",
    .inputs = inputs,
    .result = FV_KIND_SCALAR,
    .unroll = unroll,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "jaccard(a > 90, gaussian(a, 2) > 90)",
    .see = "dice hausdorff compare",
};
