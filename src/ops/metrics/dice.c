/* dice: overlap of two masks. */
#include "ops/metrics/pair.h"

static const fv_input inputs[] = {
    { "a", FV_KIND_IMAGE, .doc = "a mask, or labels: what is not 0 counts" },
    { "b", FV_KIND_IMAGE, .doc = "another of the same shape" },
    FV_INPUT_END,
};

static fv_status unroll(fv_infer *i, fv_bytes *text, fv_error *error) {
    FV_TRY(fv__pair_check(i, "a", "b", error));
    fv__bytes_printf(text, "x = a != 0\ny = b != 0\n2 * count(x & y) / (count(x) + count(y))");
    return FV_OK;
}

const fv_op FV_OP(dice) = {
    .name = "dice",
    .family = "metrics",
    .brief = "overlap of two masks: twice what they share, as a part of both",
    .version = 1,
    .also = "dice_coefficient, sorensen, f1_score",
    .doc = "1 - scipy.spatial.distance.dice of all voxels: 1 for equal masks, 0 for masks that share nothing. Nan if both are "
           "empty.",
    .citation = "L. R. Dice, Measures of the amount of ecologic association between species, Ecology 26, 1945; "
                "scipy.spatial.distance.dice",
    .inputs = inputs,
    .result = FV_KIND_SCALAR,
    .unroll = unroll,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "dice(a > 90, gaussian(a, 2) > 90)",
    .see = "jaccard hausdorff compare",
};
