/* isfinite: where a value is neither infinite nor nan. */
#include "op/point.h"

FV_POINT1(real32, uint8_t, float, fabsf(x) < INFINITY)
FV_POINT1(real64, uint8_t, double, fabs(x) < INFINITY)

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

const fv_op FV_OP(isfinite) = {
    .name = "isfinite",
    .family = "logic",
    .brief = "true where a value is neither infinite nor nan",
    .version = 1,
    .also = "np.isfinite",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_test,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .example = "isfinite(log(phantom(\"cells\", [200, 200]) - 60)) |> write(\"mask.png\")",
    .see = "isnan isinf where",
};
