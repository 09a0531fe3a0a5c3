/* greater_equal: where a is greater than or equal to b: a >= b. */
#include "op/point.h"

FV_POINT_COMPARISON(>=)

static const fv_input inputs[] = {
    { "a", FV_KIND_NONE, .doc = "image or number" },
    { "b", FV_KIND_NONE, .doc = "image or number; axes of images are matched by name" },
    FV_INPUT_END,
};

const fv_op FV_OP(greater_equal) = {
    .name = "greater_equal",
    .sign = ">=",
    .family = "comparison",
    .brief = "true where a is larger than or equals b: a >= b",
    .version = 1,
    .doc = FV_DOC_COMPARISON,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_comparison,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural },
    .example = "phantom(\"cells\", [200, 200]) >= 100 |> write(\"mask.png\")",
    .see = "equal not_equal greater less less_equal otsu",
};
