/* subtract: difference of two images or numbers: a - b. */
#include "op/point.h"

FV_POINT2(real32, float, float, x - y)
FV_POINT2(real64, double, double, x - y)

/* Whole numbers saturate instead of wrapping. */
static inline int64_t sub_whole(int64_t x, int64_t y) {
    int64_t result;
    return __builtin_sub_overflow(x, y, &result) ? (x < 0 ? INT64_MIN : INT64_MAX) : result;
}
FV_POINT2(whole, int64_t, int64_t, sub_whole(x, y))

static const fv_input inputs[] = {
    { "a", FV_KIND_NONE, .doc = "image or number" },
    { "b", FV_KIND_NONE, .doc = "image or number; axes of images are matched by name" },
    FV_INPUT_END,
};

const fv_op FV_OP(subtract) = {
    .name = "subtract",
    .sign = "-",
    .family = "arithmetic",
    .brief = "subtract an image or number from another: a - b",
    .version = 1,
    .also = "cv2.subtract, imsubtract, np.subtract",
    .doc = FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_integral,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole },
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "a - gaussian(a, 15) |> write(\"without-background.tif\")",
    .see = "add excess gaussian",
};
