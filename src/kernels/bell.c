/* The one-dimensional Gaussian kernel and its derivatives. */
#include "kernels/bell.h"
#include "base/math.h"

static bool is_none(double sigma) { return sigma <= 1e-15; }

int64_t fv__bell_radius(double sigma, double truncate) { return is_none(sigma) ? 0 : (int64_t)(truncate * sigma + 0.5); }

/* The order-th derivative of exp(-x²/2s²) is a polynomial times it. The polynomial q becomes q' - q x/s² by each derivation. */
static void derive(double *q, int order, double variance) {
    double next[FV_BELL_MAX_ORDER + 1];
    memset(q, 0, (size_t)(order + 1) * sizeof *q);
    q[0] = 1;
    for (int turn = 0; turn < order; turn++) {
        for (int e = 0; e <= order; e++) next[e] = (e < order ? (e + 1) * q[e + 1] : 0) + (e > 0 ? q[e - 1] / -variance : 0);
        memcpy(q, next, (size_t)(order + 1) * sizeof *q);
    }
}

void fv__bell_weights(double sigma, int64_t radius, int order, double *weight) {
    double total = 0, q[FV_BELL_MAX_ORDER + 1];
    if (is_none(sigma)) {
        weight[0] = 1;
        return;
    }
    for (int64_t i = -radius; i <= radius; i++) total += weight[i + radius] = fv__exp(-0.5 / (sigma * sigma) * (double)(i * i));
    for (int64_t i = 0; i <= 2 * radius; i++) weight[i] /= total;
    if (!order) return;
    derive(q, order, sigma * sigma);
    for (int64_t i = -radius; i <= radius; i++) {
        double x = (double)-i, factor = 0; /* a convolution: weights run against the voxels */
        for (int e = order; e >= 0; e--) factor = factor * x + q[e];
        weight[i + radius] *= factor;
    }
}

fv_status fv__bell_check(fv_numbers *sigma, double truncate, int n, const char *name, fv_error *error) {
    FV_TRY(fv__numbers_spread(sigma, n, name, error));
    for (int k = 0; k < n; k++) {
        int64_t radius = fv__bell_radius(sigma->value[k], truncate);
        if (2 * radius + 1 > FV_SEPARABLE_MAX_TAPS)
            return fv_fail(error, FV_ERROR_USAGE,
                           "%s = %g, truncate = %g: the kernel would reach %lld px; at most %d are possible", name,
                           sigma->value[k], truncate, (long long)radius, FV_SEPARABLE_MAX_TAPS / 2 - 1);
    }
    return FV_OK;
}
