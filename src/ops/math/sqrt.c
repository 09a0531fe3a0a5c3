/* sqrt: square root. */
#include "op/point.h"

FV_POINT1(real32, float, float, sqrtf(x))
FV_POINT1(real64, double, double, sqrt(x))

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

static double cost(const fv_need *n) {
    (void)n;
    return 2;
}

const fv_op FV_OP(sqrt) = {
    .name = "sqrt",
    .family = "math",
    .brief = "square root",
    .version = 1,
    .also = "np.sqrt",
    .doc = "A negative value gives nan. " FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "sqrt(phantom(\"cells\", [200, 200])) |> write(\"root.tif\")",
    .see = "square power",
};
