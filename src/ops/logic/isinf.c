/* isinf: where a value is infinite. */
#include "op/point.h"

FV_POINT1(real32, uint8_t, float, fabsf(x) == INFINITY)
FV_POINT1(real64, uint8_t, double, fabs(x) == INFINITY)

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

const fv_op FV_OP(isinf) = {
    .name = "isinf",
    .family = "logic",
    .brief = "true where a value is infinite",
    .version = 1,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_test,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .example = "isinf(log(clip(phantom(\"cells\", [200, 200]) - 60, 0, 200))) |> write(\"mask.png\")",
    .see = "isnan isfinite",
};
