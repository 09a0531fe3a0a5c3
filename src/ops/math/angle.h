/* What sin, cos and tan share. Who includes it defines FAST(x), which holds for angles up to FV_TRIG_LIMIT, and EXACT(x) first;
 * there is one such file for each operator, so it has no guard. */
#include "base/math.h"
#include "op/point.h"

/* The whole strip with the fast reduction, then the rare large angles again. */
#define KERNEL(NAME, TYPE)                                                                                                       \
    static void NAME(const void *params, int64_t n, void *restrict out, const void *const *in) {                                 \
        (void)params;                                                                                                            \
        TYPE *restrict result = out;                                                                                             \
        const TYPE *restrict x = in[0];                                                                                          \
        for (int64_t i = 0; i < n; i++) result[i] = (TYPE)FAST(x[i]);                                                            \
        for (int64_t i = 0; i < n; i++)                                                                                          \
            if (fabs((double)x[i]) > FV_TRIG_LIMIT) result[i] = (TYPE)EXACT(x[i]);                                               \
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
