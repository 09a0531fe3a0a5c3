/* not_equal: where a is different from b: a != b. */
#include "op/point.h"

FV_POINT_COMPARISON(!=)

static const fv_input inputs[] = {
    { "a", FV_KIND_NONE, .doc = "image or number" },
    { "b", FV_KIND_NONE, .doc = "image or number; axes of images are matched by name" },
    FV_INPUT_END,
};

const fv_op FV_OP(not_equal) = {
    .name = "not_equal",
    .sign = "!=",
    .family = "comparison",
    .brief = "true where a differs from b: a != b",
    .version = 1,
    .doc = FV_DOC_COMPARISON,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_comparison,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural },
    .example = "label(phantom(\"cells\", [200, 200], noise = 0) > 100) != 0 |> write(\"mask.png\")",
    .see = "equal greater greater_equal less less_equal otsu",
};
