/* li: the threshold with the least cross entropy between the image and its two classes. */
#include "base/math.h"
#include "kernels/levels.h"

/* Li and Tam's iteration on values counted from the least one; it ends where it moves by no more than half a level. */
static double value(const fv__levels *l) {
    double low = l->centres[0], tolerance = (l->centres[1] - low) / 2, total = 0, sum = 0, last;
    for (int64_t i = 0; i < l->count; i++) {
        total += (double)l->counts[i];
        sum += (double)l->counts[i] * (l->centres[i] - low);
    }
    double next = sum / total;
    do {
        double below = 0, sum_below = 0;
        last = next;
        for (int64_t i = 0; i < l->count && !(l->centres[i] - low > last); i++) {
            below += (double)l->counts[i];
            sum_below += (double)l->counts[i] * (l->centres[i] - low);
        }
        double dark = sum_below / below, bright = (sum - sum_below) / (total - below);
        next = dark > 0 ? (dark - bright) / (fv__ln(dark) - fv__ln(bright)) : 0;
    } while (fabs(next - last) > tolerance);
    return next + low;
}

static const fv__method method = { .bins = 1 << 16, .value = value };

FV_LEVELS_PASSES

const fv_op FV_OP(li) = {
    .name = "li",
    .family = "threshold",
    .brief = "a threshold of minimum cross entropy (Li)",
    .version = 2,
    .also = "threshold_li",
    .doc = "Equal to skimage.filters.threshold_li for integers. Floating-point images are counted in 65536 bins from the "
           "smallest to the largest value, and the iteration ends when the threshold moves by less than half a bin "
           "(scikit-image: by half the smallest difference of two voxels). Values above the threshold are the bright class. "
           "If all values are equal, the result is that value; nan and infinity are refused.",
    .citation = "C. H. Li, P. K. S. Tam, An iterative algorithm for minimum cross entropy thresholding, Pattern Recognition "
                "Letters 18, 1998",
    .inputs = fv__levels_inputs,
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "li(a)\n"
               "write(a > li(a), \"cells.png\")",
    .see = "otsu yen triangle isodata local hysteresis greater",
};

const fv_estimator FV_ESTIMATOR(li) = FV_LEVELS_ESTIMATOR;
