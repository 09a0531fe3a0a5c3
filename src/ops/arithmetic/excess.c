/* excess: by how much a exceeds b, in their own type. */
#include "op/point.h"

FV_POINT2(real32, float, float, x <= y ? 0 : x - y)
FV_POINT2(real64, double, double, x <= y ? 0 : x - y)
FV_POINT2(natural, uint64_t, uint64_t, x > y ? x - y : 0)
FV_POINT2(flag, uint8_t, uint8_t, x > y)

static inline int64_t difference(int64_t x, int64_t y) {
    uint64_t excess = (uint64_t)x - (uint64_t)y;
    return x <= y ? 0 : excess > INT64_MAX ? INT64_MAX : (int64_t)excess;
}
FV_POINT2(whole, int64_t, int64_t, difference(x, y))

static const fv_input inputs[] = {
    { "a", FV_KIND_NONE, .doc = "image or number" },
    { "b", FV_KIND_NONE, .doc = "image or number; axes of images are matched by name" },
    FV_INPUT_END,
};

const fv_op FV_OP(excess) = {
    .name = "excess",
    .family = "arithmetic",
    .brief = "by how much a is larger than b; 0 where it is not",
    .version = 1,
    .doc = "A difference that cannot overflow: images of one type keep it, and a difference that does not fit into a signed "
           "integer type becomes its largest value. Nan stays nan. Together with a whole number an image keeps its type, and "
           "the number is brought into the type's range. Images of different types give the types of arithmetic.",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_select,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "write(excess(a, 100), \"bright.png\")",
    .see = "subtract clip maximum",
};
