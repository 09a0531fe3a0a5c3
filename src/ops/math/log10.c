/* log10: logarithm to base 10. */
#include "base/math.h"
#include "op/point.h"

FV_POINT1(real32, float, float, fv__log10f(x))
FV_POINT1(real64, double, double, fv__log10(x))

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

static double cost(const fv_need *n) {
    (void)n;
    return 4;
}

const fv_op FV_OP(log10) = {
    .name = "log10",
    .family = "math",
    .brief = "logarithm to base 10",
    .version = 1,
    .doc = "Zero gives minus infinity, a negative value gives nan. " FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "log10(phantom(\"cells\", [200, 200]) + 1) |> write(\"logarithm.tif\")",
    .see = "log log2 exp",
};
