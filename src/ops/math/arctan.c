/* arctan: inverse tangent, in radians. */
#include "base/math.h"
#include "op/point.h"

FV_POINT1(real32, float, float, (float)fv__atan(x))
FV_POINT1(real64, double, double, fv__atan(x))

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

static double cost(const fv_need *n) {
    (void)n;
    return 6;
}

const fv_op FV_OP(arctan) = {
    .name = "arctan",
    .family = "math",
    .brief = "inverse tangent, in radians",
    .version = 1,
    .also = "atan, np.arctan",
    .doc = FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "arctan((phantom(\"cells\", [200, 200]) - 100) / 30) |> write(\"soft.tif\")",
    .see = "arctan2 tan tanh",
};
