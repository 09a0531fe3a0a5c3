/* Ways to find the column of the axis of rotation. */
#include "ops/tomography/center_methods.h"
#include "base/math.h"
#include "ops/tomography/spectrum.h"
#include <stdlib.h>

#define TURN 0x1.921fb54442d18p+2

/* ---------------------------------------------------------------- least difference */

/* Mean squared difference of one projection and the other mirrored about column sum / 2. */
static double mismatch(const float *a, const float *b, int64_t rows, int64_t n, int64_t sum) {
    int64_t from = FV_MAX(0, sum - (n - 1)), until = FV_MIN(n, sum + 1);
    double  total = 0;
    for (int64_t z = 0; z < rows; z++) {
        double row = 0;
        for (int64_t x = from; x < until; x++) {
            double d = (double)a[z * n + x] - (double)b[z * n + sum - x];
            row += d * d;
        }
        total += row;
    }
    return total / (double)(rows * (until - from));
}

double FV_ISA_NAME(fv__center_mirror)(const float *a, const float *b, int64_t rows, int64_t n) {
    double  least = INFINITY;
    int64_t best = n - 1;
    for (int64_t sum = n / 2; sum <= n + n / 2 - 2; sum++) { /* at least half of the columns overlap */
        double d = mismatch(a, b, rows, n, sum);
        if (!(d < least)) continue;
        least = d;
        best = sum;
    }
    double before = mismatch(a, b, rows, n, best - 1), after = mismatch(a, b, rows, n, best + 1);
    return ((double)best + fv__summit(before, least, after, 1)) / 2;
}

/* ---------------------------------------------------------------- phase correlation */

/* Adds the cross spectrum of a row and the mirrored other: both real rows go through one transform. */
static void add_cross(const float *a, const float *b, int64_t n, int64_t length, const double *turns, double *line, double *sum) {
    memset(line, 0, (size_t)(2 * length) * sizeof *line);
    for (int64_t x = 0; x < n; x++) {
        line[2 * x] = a[x];
        line[2 * x + 1] = b[n - 1 - x];
    }
    FV_ISA_NAME(fv__spectrum)(line, length, turns, false);
    for (int64_t k = 0; k < length; k++) {
        const double *p = line + 2 * k, *q = line + 2 * ((length - k) % length);
        double        u[2] = { (p[0] + q[0]) / 2, (p[1] - q[1]) / 2 }, v[2] = { (p[1] + q[1]) / 2, (q[0] - p[0]) / 2 };
        sum[2 * k] += u[0] * v[0] + u[1] * v[1];
        sum[2 * k + 1] += u[1] * v[0] - u[0] * v[1];
    }
}

double FV_ISA_NAME(fv__center_phase)(const float *a, const float *b, int64_t rows, int64_t n) {
    int64_t length = fv__spectrum_length(2 * n), best = 0;
    double *turns = fv__calloc((size_t)(5 * length) * sizeof *turns), *line = turns + length, *sum = line + 2 * length;
    FV_ISA_NAME(fv__spectrum_turns)(length, turns);
    for (int64_t z = 0; z < rows; z++) add_cross(a + z * n, b + z * n, n, length, turns, line, sum);
    for (int64_t k = 0; k < length; k++) {
        double size = sqrt(sum[2 * k] * sum[2 * k] + sum[2 * k + 1] * sum[2 * k + 1]),
               f = (double)FV_MIN(k, length - k) / (double)length;
        double soft = fv__exp(-40 * f * f); /* fine detail is noise */
        sum[2 * k] *= size > 0 ? soft / size : 0;
        sum[2 * k + 1] *= size > 0 ? soft / size : 0;
    }
    FV_ISA_NAME(fv__spectrum)(sum, length, turns, true);
    for (int64_t d = -n / 2; d <= n / 2; d++)
        if (sum[2 * ((d + length) % length)] > sum[2 * ((best + length) % length)]) best = d;
    double around[3];
    for (int k = 0; k < 3; k++) around[k] = sum[2 * ((best + k - 1 + length) % length)];
    double shift = (double)best + fv__summit(around[0], around[1], around[2], 1);
    free(turns);
    return ((double)(n - 1) + shift) / 2; /* the mirrored one lies n - 1 - 2 center columns off */
}

/* ---------------------------------------------------------------- Vo's method */

typedef struct wedge {
    int64_t length, turns, frequencies; /* of the transforms along columns and angles; frequencies that are looked at */
    double *value;                      /* [frequencies][turns] complex */
} wedge;

/* Angle j of the half turn, between the two that were measured next to it. */
static void resample(const float *sinogram, const double *angle, int64_t nangles, int64_t n, double at, double *line) {
    int64_t k = 0;
    while (k + 2 < nangles && angle[k + 1] <= at) k++;
    double gap = angle[k + 1] - angle[k], part = gap > 0 ? (at - angle[k]) / gap : 0;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    for (int64_t x = 0; x < n; x++) {
        line[2 * x] = (1 - part) * (double)sinogram[k * n + x] + part * (double)sinogram[(k + 1) * n + x];
        line[2 * x + 1] = 0;
    }
}

static void transform(wedge *w, const float *sinogram, const double *angle, int64_t nangles, int64_t n) {
    int64_t longest = FV_MAX(w->length, w->turns);
    double *turns = fv__calloc((size_t)(3 * longest) * sizeof *turns), *line = turns + longest;
    FV_ISA_NAME(fv__spectrum_turns)(w->length, turns);
    for (int64_t j = 0; j < w->turns / 2; j++) {
        memset(line, 0, (size_t)(2 * w->length) * sizeof *line);
        resample(sinogram, angle, nangles, n, angle[0] + 360 * (double)j / (double)w->turns, line);
        FV_ISA_NAME(fv__spectrum)(line, w->length, turns, false);
        for (int64_t f = 0; f < w->frequencies; f++) memcpy(w->value + 2 * (f * w->turns + j), line + 2 * f, 2 * sizeof *line);
    }
    FV_ISA_NAME(fv__spectrum_turns)(w->turns, turns);
    for (int64_t f = 0; f < w->frequencies; f++) FV_ISA_NAME(fv__spectrum)(w->value + 2 * f * w->turns, w->turns, turns, false);
    free(turns);
}

/* What lies outside the wedge when half a turn is followed by its mirror image about the center: with T the spectrum of the half,
 * that of the whole is T(k, f) + (-1)^k exp(-2 i phi center) conj T(-k, f). */
static double outside(const wedge *w, int64_t n, double center) {
    double  sum = 0;
    int64_t count = 0;
    for (int64_t f = 2; f < w->frequencies; f++) {
        double        phi = TURN * (double)f / (double)w->length, c = fv__cos(2 * phi * center), s = -fv__sin(2 * phi * center);
        int64_t       first = FV_MAX((int64_t)ceil(phi * (double)n / 2), w->turns / 20);
        const double *t = w->value + 2 * f * w->turns;
        for (int64_t k = first; k < w->turns / 2; k++) {
            const double *p = t + 2 * k, *q = t + 2 * (w->turns - k);
            double sign = k % 2 ? -1 : 1, re = p[0] + sign * (c * q[0] + s * q[1]), im = p[1] + sign * (s * q[0] - c * q[1]);
            sum += sqrt(re * re + im * im);
            count++;
        }
    }
    return sum / (double)FV_MAX(count, 1);
}

static double least(const wedge *w, int64_t n, double from, double until, double step) {
    double best = from, value = INFINITY;
    for (int64_t i = 0; from + (double)i * step <= until; i++) {
        double here = outside(w, n, from + (double)i * step);
        if (!(here < value)) continue;
        value = here;
        best = from + (double)i * step;
    }
    return best;
}

double FV_ISA_NAME(fv__center_vo)(const float *sinogram, const double *angle, int64_t nangles, int64_t n) {
    wedge w = { .length = fv__spectrum_length(2 * n), .turns = FV_MAX(fv__spectrum_length(2 * nangles), 64) };
    w.frequencies = FV_MIN((int64_t)((double)(w.turns * w.length) / (2 * TURN / 2 * (double)n)) + 1, w.length / 2);
    w.value = fv__calloc((size_t)(2 * w.frequencies * w.turns) * sizeof *w.value);
    transform(&w, sinogram, angle, nangles, n);
    double center = least(&w, n, (double)(n / 4), (double)(n - n / 4), 0.5);
    center = least(&w, n, center - 0.5, center + 0.5, 0.05);
    center += 0.05 * fv__summit(outside(&w, n, center - 0.05), outside(&w, n, center), outside(&w, n, center + 0.05), 1);
    free(w.value);
    return center;
}
