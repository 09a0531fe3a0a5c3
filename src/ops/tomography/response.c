/* Filters of filtered back-projection. */
#include "ops/tomography/response.h"
#include "base/math.h"

#define PI 0x1.921fb54442d18p+1

/* The spectrum of the band-limited ramp sampled in space, as Kak and Slaney take it: sampling |f| itself would lower the mean. */
static void ramp(int64_t n, double *cosine, double *out) {
    for (int64_t k = 0; k < n; k++) cosine[k] = fv__cos(2 * PI * (double)k / (double)n);
    for (int64_t k = 0; k <= n / 2; k++) {
        double sum = 0.25;
        for (int64_t i = 1; i < n / 2; i += 2) sum -= 2 * cosine[k * i & (n - 1)] / (PI * PI * (double)i * (double)i);
        out[k] = 2 * sum;
    }
}

/* The middle of a raised cosine as numpy samples it, n points from end to end, so that frequencies k and -k differ a little:
 * their mean is what remains in a real result. */
static double bell(double f, int64_t n) {
    double turn = PI * f * (double)n / (double)(n - 1), half = PI / (double)(n - 1);
    return -(fv__cos(PI + turn + half) + fv__cos(PI - turn + half)) / 2;
}

/* f: frequency from 0 to 1, where 1 is the highest. */
static double window(fv_response kind, double f, int64_t n, double cutoff, double order) {
    switch (kind) {
    case FV_RESPONSE_SHEPP_LOGAN: return f == 0 ? 1 : fv__sin(PI * f / 2) / (PI * f / 2);
    case FV_RESPONSE_COSINE: return fv__cos(PI * f / 2);
    case FV_RESPONSE_HAMMING: return 0.54 + 0.46 * bell(f, n);
    case FV_RESPONSE_HANN: return 0.5 + 0.5 * bell(f, n);
    case FV_RESPONSE_PARZEN: return f < 0.5 ? 1 - 6 * f * f * (1 - f) : 2 * (1 - f) * (1 - f) * (1 - f);
    case FV_RESPONSE_BUTTERWORTH: return 1 / (1 + fv__pow(f / cutoff, 2 * order));
    default: return 1;
    }
}

void fv__response(fv_response kind, int64_t n, double scale, double cutoff, double order, double *table, double *out) {
    if (kind == FV_RESPONSE_NONE)
        for (int64_t k = 0; k <= n / 2; k++) out[k] = 1;
    else
        ramp(n, table, out);
    for (int64_t k = 0; k <= n / 2; k++) out[k] *= window(kind, (double)k / (double)(n / 2), n, cutoff, order) * scale;
}
