/* yen: the threshold with the greatest correlation of both classes. */
#include "base/math.h"
#include "kernels/levels.h"
#include <stdlib.h>

/* In float32 and in the order of scikit-image, so that near ties fall alike. */
static int64_t split(const fv__levels *l) {
    float  *squares_above = fv__alloc((size_t)l->count * sizeof *squares_above), sum = 0, below = 0, squares_below = 0;
    float   best = -INFINITY;
    double  total = 0;
    int64_t index = 0;
    for (int64_t i = 0; i < l->count; i++) total += (double)l->counts[i];
    for (int64_t i = l->count - 1; i >= 0; i--) {
        float share = (float)l->counts[i] / (float)total;
        squares_above[i] = sum += share * share;
    }
    for (int64_t i = 0; i + 1 < l->count; i++) {
        float share = (float)l->counts[i] / (float)total;
        below += share;
        squares_below += share * share;
        float product = below * (1 - below);
        float criterion = (float)fv__ln((double)(1 / (squares_below * squares_above[i + 1]) * (product * product)));
        if (criterion > best) best = criterion, index = i;
    }
    free(squares_above);
    return index;
}

static const fv__method method = { .bins = 256, .split = split, .heights = true };

FV_LEVELS_PASSES

const fv_op FV_OP(yen) = {
    .name = "yen",
    .family = "threshold",
    .brief = "a threshold by the correlation of both classes (Yen)",
    .version = 2,
    .also = "threshold_yen",
    .doc = "Equal to skimage.filters.threshold_yen. " FV_LEVELS_DOC,
    .citation = "J. C. Yen, F. J. Chang, S. Chang, A new criterion for automatic multilevel thresholding, IEEE Trans. Image "
                "Process. 4, 1995",
    .inputs = fv__levels_inputs,
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "yen(a)\n"
               "write(a > yen(a), \"cells.png\")",
    .see = "otsu li triangle isodata local hysteresis greater",
};

const fv_estimator FV_ESTIMATOR(yen) = FV_LEVELS_ESTIMATOR;
