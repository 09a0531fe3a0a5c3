/* tanh: hyperbolic tangent. */
#include "base/math.h"
#include "op/point.h"

FV_POINT1(real32, float, float, (float)fv__tanh(x))
FV_POINT1(real64, double, double, fv__tanh(x))

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

static double cost(const fv_need *n) {
    (void)n;
    return 6;
}

const fv_op FV_OP(tanh) = {
    .name = "tanh",
    .family = "math",
    .brief = "hyperbolic tangent: squeezes all values into -1 to 1",
    .version = 1,
    .doc = FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "tanh((phantom(\"cells\", [200, 200]) - 100) / 30) |> write(\"soft.tif\")",
    .see = "arctan clip",
};
