/* otsu: the threshold that best separates two classes of values. */
#include "kernels/levels.h"
#include <stdlib.h>

/* Index of the first greatest between-class variance, in doubles and in the order of scikit-image, so that ties fall alike. */
static int64_t split(const fv__levels *l) {
    double *above = fv__alloc((size_t)l->count * 2 * sizeof *above), *mean_above = above + l->count;
    double  weight = 0, sum = 0, best = -1;
    int64_t index = 0;
    for (int64_t i = l->count - 1; i >= 0; i--) {
        weight += (double)l->counts[i];
        sum += (double)l->counts[i] * l->centres[i];
        above[i] = weight;
        mean_above[i] = sum / weight;
    }
    weight = sum = 0;
    for (int64_t i = 0; i + 1 < l->count; i++) {
        weight += (double)l->counts[i];
        sum += (double)l->counts[i] * l->centres[i];
        double distance = sum / weight - mean_above[i + 1], variance = weight * above[i + 1] * (distance * distance);
        if (variance > best) best = variance, index = i;
    }
    free(above);
    return index;
}

static const fv__method method = { .bins = 256, .split = split };

FV_LEVELS_PASSES

const fv_op FV_OP(otsu) = {
    .name = "otsu",
    .family = "threshold",
    .brief = "the threshold that best separates dark from bright (Otsu)",
    .version = 2,
    .also = "threshold_otsu, graythresh, otsuthresh",
    .doc = "Equal to skimage.filters.threshold_otsu. " FV_LEVELS_DOC,
    .citation = "N. Otsu, A threshold selection method from gray-level histograms, IEEE Trans. Sys. Man. Cyber. 9, 1979",
    .inputs = fv__levels_inputs,
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "otsu(a)\n"
               "write(a > otsu(a), \"cells.png\")",
    .see = "li yen triangle isodata local hysteresis greater",
};

const fv_estimator FV_ESTIMATOR(otsu) = FV_LEVELS_ESTIMATOR;
