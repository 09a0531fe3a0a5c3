/* sin: sine of an angle in radians. */
#define FAST fv__sin_small
#define EXACT fv__sin
#include "ops/math/angle.h"

const fv_op FV_OP(sin) = {
    .name = "sin",
    .family = "math",
    .brief = "sine of an angle in radians",
    .version = 1,
    .doc = FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "sin(gaussian(phantom(\"cells\", [200, 200]), 4) / 5) |> write(\"waves.tif\")",
    .see = "cos tan arctan2",
};
