/* ceil: the next integer above. */
#include "op/point.h"

FV_POINT_COPIES
FV_POINT1(real32, float, float, ceilf(x))
FV_POINT1(real64, double, double, ceil(x))

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

const fv_op FV_OP(ceil) = {
    .name = "ceil",
    .family = "math",
    .brief = "round up to the next whole number",
    .version = 1,
    .doc = "The type of the image is kept.",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_keep,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "ceil(phantom(\"cells\", [200, 200]) / 60) |> write(\"steps.tif\")",
    .see = "floor round convert",
};
