/* divide: quotient of two images or numbers: a / b. */
#include "op/point.h"

FV_POINT2(real32, float, float, x / y)
FV_POINT2(real64, double, double, x / y)

static const fv_input inputs[] = {
    { "a", FV_KIND_NONE, .doc = "image or number" },
    { "b", FV_KIND_NONE, .doc = "image or number; axes of images are matched by name" },
    FV_INPUT_END,
};

const fv_op FV_OP(divide) = {
    .name = "divide",
    .sign = "/",
    .family = "arithmetic",
    .brief = "divide an image or number by another: a / b",
    .version = 1,
    .also = "imdivide, np.divide",
    .doc = FV_DOC_ARITHMETIC " Division by zero gives infinity or nan.",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "a / gaussian(a, 15) |> write(\"even.tif\")",
    .see = "multiply remainder flatfield",
};
