/* log: natural logarithm. */
#include "base/math.h"
#include "op/point.h"

FV_POINT1(real32, float, float, (float)fv__ln(x))
FV_POINT1(real64, double, double, fv__ln(x))

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

static double cost(const fv_need *n) {
    (void)n;
    return 3;
}

const fv_op FV_OP(log) = {
    .name = "log",
    .family = "math",
    .brief = "natural logarithm",
    .version = 1,
    .also = "ln, np.log",
    .doc = "Zero gives minus infinity, a negative value gives nan. " FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "log(phantom(\"cells\", [200, 200]) + 1) |> write(\"logarithm.tif\")",
    .see = "log2 log10 exp minus_log",
};
