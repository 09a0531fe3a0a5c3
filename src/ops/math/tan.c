/* tan: tangent of an angle in radians. */
#include "base/math.h"
#include "op/point.h"

/* The whole strip with the fast reduction, then the rare large angles again. */
#define KERNEL(NAME, TYPE)                                                                                  \
    static void NAME(const void *params, int64_t n, void *restrict out, const void *const *in) {            \
        (void)params;                                                                                       \
        TYPE *restrict result = out;                                                                        \
        const TYPE *restrict x = in[0];                                                                     \
        for (int64_t i = 0; i < n; i++) result[i] = (TYPE)fv_tan_small(x[i]);                               \
        for (int64_t i = 0; i < n; i++)                                                                     \
            if (fabs((double)x[i]) > FV_TRIG_LIMIT) result[i] = (TYPE)fv_tan(x[i]);                         \
    }
KERNEL(real32, float)
KERNEL(real64, double)

static const fv_input inputs[] = {
    { "image", FV_KIND_NONE, .doc = "image or number" },
    FV_INPUT_END,
};

static double cost(const fv_need *n) {
    (void)n;
    return 4;
}

const fv_op FV_OP(tan) = {
    .name = "tan", .family = "math", .brief = "tangent of an angle in radians", .version = 1,
    .doc = FV_DOC_ARITHMETIC,
    .inputs = inputs, .result = FV_KIND_NONE, .infer = fv_infer_arithmetic,
    .point = { [FV_FLOAT32] = real32, [FV_FLOAT64] = real64 },
    .cost = cost,
    .example = "tan(ones([64, 64])) |> write(\"tan.npy\")",
};
