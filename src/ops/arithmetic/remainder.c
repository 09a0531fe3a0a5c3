/* remainder: remainder of a division: a % b. */
#include "op/point.h"

/* fmod is exact, so it has the same bits everywhere; then the sign of the divisor, as numpy.remainder has it. */
static inline float remainder32(float x, float y) {
    float rest = fmodf(x, y);
    return rest == 0 ? copysignf(0, y) : (y < 0) != (rest < 0) ? rest + y : rest;
}
static inline double remainder64(double x, double y) {
    double rest = fmod(x, y);
    return rest == 0 ? copysign(0, y) : (y < 0) != (rest < 0) ? rest + y : rest;
}
FV_POINT2(real32, float, float, remainder32(x, y))
FV_POINT2(real64, double, double, remainder64(x, y))

static const fv_input inputs[] = {
    { "a", FV_KIND_NONE, .doc = "image or number" },
    { "b", FV_KIND_NONE, .doc = "image or number; axes of images are matched by name" },
    FV_INPUT_END,
};

static double cost(const fv_need *n) {
    (void)n;
    return 20;
}

const fv_op FV_OP(remainder) = {
    .name = "remainder",
    .sign = "%",
    .family = "arithmetic",
    .brief = "remainder of a division: a % b",
    .version = 1,
    .also = "mod, fmod, np.mod",
    .doc = "The result has the sign of the divisor, as in Python and numpy. A divisor of zero gives nan. " FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "gaussian(phantom(\"cells\", [200, 200]), 4) % 20 |> write(\"contours.tif\")",
    .see = "divide floor",
};
