/* add: sum of two images or numbers: a + b. */
#include "op/point.h"

FV_POINT2(real32, float, float, x + y)
FV_POINT2(real64, double, double, x + y)

/* Whole numbers saturate instead of wrapping. */
static inline int64_t add_whole(int64_t x, int64_t y) {
    int64_t result;
    return __builtin_add_overflow(x, y, &result) ? (x < 0 ? INT64_MIN : INT64_MAX) : result;
}
FV_POINT2(whole, int64_t, int64_t, add_whole(x, y))

static const fv_input inputs[] = {
    { "a", FV_KIND_NONE, .doc = "image or number" },
    { "b", FV_KIND_NONE, .doc = "image or number; axes of images are matched by name" },
    FV_INPUT_END,
};

const fv_op FV_OP(add) = {
    .name = "add",
    .sign = "+",
    .family = "arithmetic",
    .brief = "add two images or numbers: a + b",
    .version = 1,
    .also = "cv2.add, imadd, np.add",
    .doc = FV_DOC_ARITHMETIC,
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_integral,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole },
    .example = "phantom(\"cells\", [200, 200]) + phantom(\"cells\", [200, 200], seed = 2) |> write(\"both.tif\")",
    .see = "subtract multiply divide",
};
