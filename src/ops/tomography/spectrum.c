/* A plain transform of powers of two. */
#include "ops/tomography/spectrum.h"
#include "base/math.h"

void FV_ISA_NAME(fv__spectrum_turns)(int64_t n, double *turns) {
    for (int64_t k = 0; k < n / 2; k++) {
        double angle = 0x1.921fb54442d18p+2 * (double)k / (double)n;
        turns[2 * k] = fv__cos(angle);
        turns[2 * k + 1] = fv__sin(angle);
    }
}

static void reorder(double *data, int64_t n) {
    for (int64_t i = 1, j = 0; i < n; i++) {
        int64_t bit = n / 2;
        for (; j & bit; bit /= 2) j ^= bit;
        j |= bit;
        if (i >= j) continue;
        for (int c = 0; c < 2; c++) {
            double swap = data[2 * i + c];
            data[2 * i + c] = data[2 * j + c];
            data[2 * j + c] = swap;
        }
    }
}

/* Both parts of a product are sums: of a sum beside a difference some compilers make one fused instruction where the processor
 * has it, although contraction is off, and then processors differ in the last bit. */
void FV_ISA_NAME(fv__spectrum)(double *data, int64_t n, const double *turns, bool inverse) {
    double sign = inverse ? 1 : -1;
    reorder(data, n);
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t start = 0; start < n; start += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                double  c = turns[2 * k * (n / (2 * half))], s = turns[2 * k * (n / (2 * half)) + 1];
                double *low = data + 2 * (start + k), *high = low + 2 * half;
                double  plus = s * sign, minus = s * -sign;
                double  re = high[0] * c + high[1] * minus, im = high[0] * plus + high[1] * c;
                high[0] = low[0] - re;
                high[1] = low[1] - im;
                low[0] += re;
                low[1] += im;
            }
}
