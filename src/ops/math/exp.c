/* exp: exponential function. */
#include "base/math.h"
#include "op/point.h"

FV_POINT1(real32, float, float, (float)fv__exp(x))
FV_POINT1(real64, double, double, fv__exp(x))

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

static double cost(const fv_need *n) {
    (void)n;
    return 3;
}

const fv_op FV_OP(exp) = {
    .name = "exp",
    .family = "math",
    .brief = "exponential function",
    .version = 1,
    .also = "np.exp",
    .doc = FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "exp(phantom(\"cells\", [200, 200]) / 60) |> write(\"exponential.tif\")",
    .see = "log power expose",
};
