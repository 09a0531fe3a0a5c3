/* round: the nearest integer. */
#include "op/point.h"

FV_POINT_COPIES
FV_POINT1(real32, float, float, rintf(x))
FV_POINT1(real64, double, double, rint(x))

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

const fv_op FV_OP(round) = {
    .name = "round",
    .family = "math",
    .brief = "round to the nearest whole number",
    .version = 1,
    .also = "rint, around, np.round",
    .doc = "Halves are rounded to the even neighbour, as in numpy. The type of the image is kept.",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_keep,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "round(phantom(\"cells\", [200, 200]) / 60) |> write(\"steps.tif\")",
    .see = "floor ceil convert",
};
