/* clip: limit values to a range. */
#include "op/point.h"

/* Nan stays nan, in the image and in the limits; with limits in the wrong order the upper one wins, as in numpy. */
#define CLIP(TYPE, NAN_LOW, NAN_HIGH)                                                                                            \
    static inline TYPE clip_##TYPE(TYPE x, TYPE low, TYPE high) {                                                                \
        TYPE raised = x < low || (NAN_LOW) ? low : x;                                                                            \
        return raised > high || (NAN_HIGH) ? high : raised;                                                                      \
    }
CLIP(float, low != low, high != high)
CLIP(double, low != low, high != high)
CLIP(int64_t, false, false)
CLIP(uint64_t, false, false)
CLIP(uint8_t, false, false)
FV_POINT3(real32, float, float, clip_float(x, y, z))
FV_POINT3(real64, double, double, clip_double(x, y, z))
FV_POINT3(whole, int64_t, int64_t, clip_int64_t(x, y, z))
FV_POINT3(natural, uint64_t, uint64_t, clip_uint64_t(x, y, z))
FV_POINT3(flag, uint8_t, uint8_t, clip_uint8_t(x, y, z))

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    { "min", FV_KIND_SCALAR, .doc = "smallest value" },
    { "max", FV_KIND_SCALAR, .doc = "largest value" },
    FV_INPUT_END,
};

const fv_op FV_OP(clip) = {
    .name = "clip",
    .family = "math",
    .brief = "limit values to a range",
    .version = 1,
    .also = "clamp, np.clip",
    .doc = "Values below min become min, values above max become max. The type of the image is kept; for an integer image, "
           "the fraction of a limit is cut off.",
    .inputs = inputs,
    .result = FV_KIND_NONE,
    .infer = fv__infer_keep,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64, [FV_INT64] = whole, [FV_UINT64] = natural, [FV_BOOL] = flag },
    .example = "clip(phantom(\"cells\", [200, 200]), 50, 150) |> write(\"clipped.png\")",
    .see = "minimum maximum rescale convert",
};
