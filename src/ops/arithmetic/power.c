/* power: power of two images or numbers: a ** b. */
#include "base/math.h"
#include "op/point.h"

FV_POINT2(real32, float, float, fv__powf(x, y))
FV_POINT2(real64, double, double, fv__pow(x, y))

static const fv_input inputs[] = {
    { "a", FV_KIND_NONE, .doc = "image or number" },
    { "b", FV_KIND_NONE, .doc = "image or number; axes of images are matched by name" },
    FV_INPUT_END,
};

static double cost(const fv_need *n) {
    (void)n;
    return 12;
}

const fv_op FV_OP(power) = {
    .name = "power",
    .sign = "**",
    .family = "arithmetic",
    .brief = "raise an image or number to a power: a ** b",
    .version = 1,
    .also = "pow, np.power",
    .doc = FV_DOC_ARITHMETIC " A negative number to a fractional power gives nan.",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "(phantom(\"cells\", [200, 200]) / 255) ** 3 |> write(\"power.tif\")",
    .see = "square sqrt exp",
};
