/* not: the opposite of a mask, or of the bits of integers. */
/* What formats the sources takes "not" for an operator of C++. */
/* clang-format off */
#include "op/point.h"

typedef struct { uint64_t bits; } not; /* the bits of an unsigned element type; set by infer */

FV_POINT1(whole, int64_t, int64_t, ~x)
FV_POINT1(natural, uint64_t, uint64_t, ~x & ((const not *)parameters)->bits)
FV_POINT1(flag, uint8_t, uint8_t, !x)

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "bool or integer image, or value" },
    FV_INPUT_END,
};

static fv_status infer(fv_infer *i, fv_error *error) {
    FV_TRY(fv__infer_bits(i, error));
    if (i->out->kind != FV_KIND_IMAGE || i->compute == FV_BOOL) return FV_OK;
    fv_dtype dtype = i->out->image.dtype;
    if (fv_dtype_is_signed(dtype)) return FV_OK;
    i->compute = FV_UINT64;
    ((not *)i->params)->bits = UINT64_MAX >> (64 - 8 * fv_dtype_size(dtype));
    return FV_OK;
}

const fv_op FV_OP(not) = {
    .name = "not", .sign = "!", .family = "logic", .brief = "turn a mask round: !a", .version = 1,
    .also = "logical_not, bitwise_not",
    .doc = "A mask gives a mask. In integers every bit is changed, and their type is kept.",
    .inputs = inputs, .params_size = sizeof(not), .result = FV_KIND_NONE, .infer = infer,
    .point = { [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "!(phantom(\"cells\", [200, 200]) > 100) |> write(\"background.png\")",
    .see = "and or negative",
};
