/* isnan: where a value is not a number (nan). */
#include "op/point.h"

FV_POINT1(real32, uint8_t, float, x != x)
FV_POINT1(real64, uint8_t, double, x != x)

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

const fv_op FV_OP(isnan) = {
    .name = "isnan",
    .family = "logic",
    .brief = "true where a value is nan (not a number)",
    .version = 1,
    .also = "np.isnan",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_test,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .example = "isnan(sqrt(phantom(\"cells\", [200, 200]) - 100.0)) |> write(\"mask.png\")",
    .see = "isfinite isinf where",
};
