/* arctan2: angle of the point (x, y), in radians. */
#include "base/math.h"
#include "op/point.h"

FV_POINT2(real32, float, float, (float)fv__atan2(x, y))
FV_POINT2(real64, double, double, fv__atan2(x, y))

static const fv_input inputs[] = {
    { "y", FV_KIND_NONE, .doc = "image or number" },
    { "x", FV_KIND_NONE, .doc = "image or number; axes of images are matched by name" },
    FV_INPUT_END,
};

static double cost(const fv_need *n) {
    (void)n;
    return 8;
}

const fv_op FV_OP(arctan2) = {
    .name = "arctan2",
    .family = "math",
    .brief = "angle of the point (x, y), in radians",
    .version = 1,
    .also = "atan2, np.arctan2",
    .doc = "From -pi to pi, in the right quadrant. " FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "a = gaussian(phantom(\"cells\", [200, 200]), 3)\n"
               "arctan2(sobel(a, 0), sobel(a, 1)) |> write(\"direction.tif\")",
    .see = "arctan sobel",
};
