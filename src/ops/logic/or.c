/* or: at least one of two masks, or the bits of integers: a | b. */
#include "op/point.h"

FV_POINT2(whole, int64_t, int64_t, x | y)
FV_POINT2(natural, uint64_t, uint64_t, x | y)
FV_POINT2(flag, uint8_t, uint8_t, x | y)

static const fv_input inputs[] = {
    { "a", FV_KIND_NONE, .doc = "image or number" },
    { "b", FV_KIND_NONE, .doc = "image or number; axes of images are matched by name" },
    FV_INPUT_END,
};

const fv_op FV_OP(or) = {
    .name = "or",
    .sign = "|",
    .family = "logic",
    .brief = "true where at least one of two masks is true: a | b",
    .version = 1,
    .also = "logical_or, bitwise_or, imor",
    .doc = "Masks give a mask. Integers are combined bit by bit, in the smallest type that holds both.",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_bits,
    .point = { [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "(a < 40) | (a > 150) |> write(\"outside.png\")",
    .see = "and not where",
};
