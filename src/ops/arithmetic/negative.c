/* negative: the value with the opposite sign: -a. */
#include "op/point.h"

FV_POINT1(real32, float, float, -x)
FV_POINT1(real64, double, double, -x)
FV_POINT1(whole, int64_t, int64_t, x == INT64_MIN ? INT64_MAX : -x)

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

const fv_op FV_OP(negative) = {
    .name = "negative",
    .sign = "-",
    .family = "arithmetic",
    .brief = "change the sign: -a",
    .version = 1,
    .also = "np.negative",
    .doc = FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_integral,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole },
    .example = "write(-phantom(\"cells\", [200, 200]), \"minus.tif\")",
    .see = "subtract abs not",
};
