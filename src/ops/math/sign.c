/* sign: -1, 0 or 1 by the sign. */
#include "op/point.h"

FV_POINT1(real32, float, float, x != x ? x : (float)((x > 0) - (x < 0)))
FV_POINT1(real64, double, double, x != x ? x : (double)((x > 0) - (x < 0)))
FV_POINT1(whole, int64_t, int64_t, (x > 0) - (x < 0))
FV_POINT1(natural, uint64_t, uint64_t, x > 0)
FV_POINT1(flag, uint8_t, uint8_t, x)

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

const fv_op FV_OP(sign) = {
    .name = "sign",
    .family = "math",
    .brief = "-1, 0 or 1, depending on the sign",
    .version = 1,
    .doc = "The type of the image is kept. Nan stays nan.",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_keep,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "sign(gaussian(a, 2) - gaussian(a, 10)) |> write(\"sign.tif\")",
    .see = "abs negative",
};
