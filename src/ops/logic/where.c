/* where: a where the condition holds, b elsewhere. */
#include "op/point.h"

FV_POINT3(real32, float, float, x ? y : z)
FV_POINT3(real64, double, double, x ? y : z)
FV_POINT3(whole, int64_t, int64_t, x ? y : z)
FV_POINT3(natural, uint64_t, uint64_t, x ? y : z)
FV_POINT3(flag, uint8_t, uint8_t, x ? y : z)

static const fv_input inputs[] = {
    { "condition", FV_KIND_NONE, .doc = "bool image or value" },
    { "a", FV_KIND_NONE, .doc = "image or number taken where the condition holds" },
    { "b", FV_KIND_NONE, .doc = "image or number taken elsewhere" },
    FV_INPUT_END,
};

const fv_op FV_OP(where) = {
    .name = "where",
    .family = "logic",
    .brief = "a where the condition holds, b elsewhere",
    .version = 1,
    .also = "np.where, ifelse",
    .doc = "Axes of images are matched by name: a mask y x serves each colour of y x c and each time of t y x. " FV_DOC_SELECT
           " Two numbers give float32.",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_where,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "write(where(a > 100, a, 0), \"bright.png\")",
    .see = "choose and maximum",
};
