/* Counted quanta: inversion for few, transformed rejection (Hormann's PTRS) for many. */
#include "ops/tomography/quanta.h"
#include "base/math.h"
#include "op/random.h"

/* Logarithm of k!, by Stirling's series from 10 on. */
static double log_factorial(double k) {
    double x = k + 1, product = 1;
    for (; x < 10; x += 1) product *= x;
    double inverse = 1 / x, square = inverse * inverse;
    double series = inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
    return (x - 0.5) * fv__ln(x) - x + 0.9189385332046727 + series - fv__ln(product);
}

static double few(double mean, uint64_t hash) {
    double u = fv__uniform(hash, 0), term = fv__exp(-mean), sum = term, k = 0;
    while (u > sum && k < 1000) {
        k += 1;
        term *= mean / k;
        sum += term;
    }
    return k;
}

static double many(double mean, uint64_t hash) {
    double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b, alpha = 1.1239 + 1.1328 / (b - 3.4);
    double sure = 0.9277 - 3.6224 / (b - 2), log_mean = fv__ln(mean);
    for (uint64_t i = 0; i < 1000; i += 2) {
        double u = fv__uniform(hash, i) - 0.5, v = fv__uniform(hash, i + 1), us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= sure) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (fv__ln(v * alpha / (a / (us * us) + b)) <= k * log_mean - mean - log_factorial(k)) return k;
    }
    return floor(mean);
}

void FV_ISA_NAME(fv__quanta_row)(float *values, int64_t n, uint64_t key, int64_t start) {
    for (int64_t i = 0; i < n; i++) {
        double   mean = values[i];
        uint64_t hash = fv__mix(key + (uint64_t)(start + i) * 0x9fb21c651e98df25u);
        if (!(mean > 0))
            values[i] = mean <= 0 ? 0 : values[i];
        else if (mean < 10)
            values[i] = (float)few(mean, hash);
        else if (mean < 1e12)
            values[i] = (float)many(mean, hash);
    }
}

uint64_t FV_ISA_NAME(fv__quanta_key)(int64_t seed, int ndim, const int64_t *at) {
    uint64_t key = fv__mix((uint64_t)seed + 0x51ed270b7a14f0e5u);
    for (int d = 0; d < ndim - 1; d++) key = fv__mix(key + (uint64_t)at[d] * 0xd1342543de82ef95u + (uint64_t)d);
    return key;
}
