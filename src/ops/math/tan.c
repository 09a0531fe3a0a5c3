/* tan: tangent of an angle in radians. */
#define FAST fv__tan_small
#define EXACT fv__tan
#include "ops/math/angle.h"

const fv_op FV_OP(tan) = {
    .name = "tan",
    .family = "math",
    .brief = "tangent of an angle in radians",
    .version = 1,
    .doc = FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "tan(phantom(\"cells\", [200, 200]) / 200) |> write(\"tangent.tif\")",
    .see = "sin cos arctan",
};
