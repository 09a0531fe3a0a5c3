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
    .name = "divide", .family = "arithmetic", .brief = "quotient of two images or numbers: a / b", .version = 1,
    .doc = FV_DOC_ARITHMETIC " Division by zero gives inf or nan.",
    .inputs = inputs, .result = FV_KIND_NONE, .infer = fv_infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .example = "ones([64, 64]) / 255 |> write(\"small.npy\")",
};
