/* square: the value times itself. */
#include "op/point.h"

FV_POINT1(real32, float, float, x *x)
FV_POINT1(real64, double, double, x *x)

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

const fv_op FV_OP(square) = {
    .name = "square",
    .family = "math",
    .brief = "the value times itself",
    .version = 1,
    .also = "np.square, sqr",
    .doc = FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .example = "square(phantom(\"cells\", [200, 200]) / 255) |> write(\"square.tif\")",
    .see = "sqrt power",
};
