/* isodata: the threshold half-way between the means of the classes it makes. */
#include "kernels/levels.h"

/* Of float32 images scikit-image rounds every step to float32. */
static double rounded(const fv__levels *l, double x) { return l->single ? (float)x : x; }

/* The first level from which the middle between both means is less than a level away. */
static int64_t split(const fv__levels *l) {
    double total = 0, sum = 0, below = 0, sum_below = 0, width = rounded(l, l->centres[1] - l->centres[0]);
    for (int64_t i = 0; i < l->count; i++) {
        total += (double)l->counts[i];
        sum = rounded(l, sum + rounded(l, (double)l->counts[i] * l->centres[i]));
    }
    for (int64_t i = 0; i + 1 < l->count; i++) {
        below += (double)l->counts[i];
        sum_below = rounded(l, sum_below + rounded(l, (double)l->counts[i] * l->centres[i]));
        double lower = rounded(l, sum_below / below), higher = rounded(l, rounded(l, sum - sum_below) / (total - below));
        double distance = rounded(l, rounded(l, rounded(l, lower + higher) / 2) - l->centres[i]);
        if (distance >= 0 && distance < width) return i;
    }
    return l->count - 2;
}

static const fv__method method = { .bins = 256, .split = split };

FV_LEVELS_PASSES

const fv_op FV_OP(isodata) = {
    .name = "isodata",
    .family = "threshold",
    .brief = "the threshold half-way between the means of dark and bright",
    .also = "threshold_isodata, ij_isodata",
    .version = 2,
    .doc = "Equal to skimage.filters.threshold_isodata; also known as Ridler and Calvard's, or intermeans. If there are "
           "several such thresholds, the smallest is taken. " FV_LEVELS_DOC,
    .citation = "T. W. Ridler, S. Calvard, Picture thresholding using an iterative selection method, IEEE Trans. Sys. Man. "
                "Cyber. 8, 1978",
    .inputs = fv__levels_inputs,
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "isodata(a)\n"
               "write(a > isodata(a), \"cells.png\")",
    .see = "otsu li yen triangle local hysteresis greater",
};

const fv_estimator FV_ESTIMATOR(isodata) = FV_LEVELS_ESTIMATOR;
