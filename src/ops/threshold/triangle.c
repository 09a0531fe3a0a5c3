/* triangle: the threshold at the foot of the histogram's peak. */
#include "kernels/levels.h"

/* The level farthest below the line from the peak to the far end of the longer tail. */
static int64_t split(const fv__levels *l) {
    int64_t peak = 0, last = l->count - 1;
    for (int64_t i = 1; i < l->count; i++)
        if (l->counts[i] > l->counts[peak]) peak = i;
    bool    flip = peak < last - peak; /* the tail is on the right: look from that side */
    int64_t width = flip ? last - peak : peak, index = 0;
    double  height = (double)l->counts[peak], norm = sqrt(height * height + (double)width * (double)width), best = -INFINITY;
    for (int64_t x = 0; x < width; x++) {
        double count = (double)l->counts[flip ? last - x : x];
        double length = height / norm * (double)x - (double)width / norm * count;
        if (length > best) best = length, index = x;
    }
    return flip ? last - index : index;
}

static const fv__method method = { .bins = 256, .split = split, .heights = true };

FV_LEVELS_PASSES

const fv_op FV_OP(triangle) = {
    .name = "triangle",
    .family = "threshold",
    .brief = "a threshold at the foot of the histogram's peak",
    .version = 2,
    .also = "threshold_triangle",
    .doc = "Equal to skimage.filters.threshold_triangle. For images in which one class is a single strong peak and the other "
           "a long tail. " FV_LEVELS_DOC,
    .citation = "G. W. Zack, W. E. Rogers, S. A. Latt, Automatic measurement of sister chromatid exchange frequency, J. "
                "Histochem. Cytochem. 25, 1977",
    .inputs = fv__levels_inputs,
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "triangle(a)\n"
               "write(a > triangle(a), \"cells.png\")",
    .see = "otsu li yen isodata local hysteresis greater",
};

const fv_estimator FV_ESTIMATOR(triangle) = FV_LEVELS_ESTIMATOR;
