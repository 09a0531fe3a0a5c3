/* abs: size without sign. */
#include "op/point.h"

FV_POINT1(real32, float, float, fabsf(x))
FV_POINT1(real64, double, double, fabs(x))
FV_POINT1(whole, int64_t, int64_t, x == INT64_MIN ? INT64_MAX : x < 0 ? -x : x)
FV_POINT1(natural, uint64_t, uint64_t, x)
FV_POINT1(flag, uint8_t, uint8_t, x)

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

const fv_op FV_OP(abs) = {
    .name = "abs",
    .family = "math",
    .brief = "absolute value",
    .version = 1,
    .also = "absolute, fabs, np.abs",
    .doc = "The type of the image is kept. The smallest integer of a signed type, whose absolute value does not fit, becomes "
           "the largest one.",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_keep,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "abs(phantom(\"cells\", [200, 200]) - 128.0) |> write(\"distance-from-grey.tif\")",
    .see = "sign negative",
};
