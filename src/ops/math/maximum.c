/* maximum: the larger of two images or numbers. */
#include "op/point.h"

FV_POINT2(real32, float, float, x > y || x != x ? x : y)
FV_POINT2(real64, double, double, x > y || x != x ? x : y)
FV_POINT2(whole, int64_t, int64_t, x > y ? x : y)
FV_POINT2(natural, uint64_t, uint64_t, x > y ? x : y)
FV_POINT2(flag, uint8_t, uint8_t, x > y ? x : y)

static const fv_input inputs[] = {
    { "a", FV_KIND_NONE, .doc = "image or number" },
    { "b", FV_KIND_NONE, .doc = "image or number; axes of images are matched by name" },
    FV_INPUT_END,
};

const fv_op FV_OP(maximum) = {
    .name = "maximum",
    .family = "math",
    .brief = "the larger of two images or numbers, voxel by voxel",
    .version = 1,
    .also = "np.maximum, fmax",
    .doc = "If one of the two is nan, the result is nan, as in numpy. The largest value of a neighbourhood is "
           "maximum_filter, the largest value of an image is max. " FV_DOC_SELECT,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_select,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "maximum(phantom(\"cells\", [200, 200]), phantom(\"cells\", [200, 200], seed = 2)) |> write(\"maximum.png\")",
    .see = "minimum maximum_filter max clip",
};
