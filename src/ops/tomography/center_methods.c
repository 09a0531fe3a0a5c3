/* Ways to find the column of the axis of rotation. */
#include "ops/tomography/center_methods.h"
#include "base/math.h"
#include "base/take.h"
#include "kernels/spectrum.h"
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

enum { TOGETHER = 8 }; /* lines that go through a transform at once */

static fv_spectrum new_spectrum(int64_t length) {
    fv_spectrum spectrum;
    void       *memory = fv__alloc((size_t)FV_ISA_NAME(fv__spectrum_bytes)(length));
    FV_ISA_NAME(fv__spectrum_prepare)(&spectrum, length, memory);
    return spectrum;
}

/* A row as real parts and the mirrored other as imaginary ones: both go through one transform. */
static void load_pair(const float *a, const float *b, int64_t n, double *line) {
    for (int64_t x = 0; x < n; x++) {
        line[2 * x] = a[x];
        line[2 * x + 1] = b[n - 1 - x];
    }
}

static void add_cross(const double *line, int64_t length, double *sum) {
    for (int64_t k = 0; k < length; k++) {
        double u[2], v[2];
        fv__spectrum_split(line + 2 * k, line + 2 * ((length - k) % length), u, v);
        sum[2 * k] += u[0] * v[0] + u[1] * v[1];
        sum[2 * k + 1] += u[1] * v[0] - u[0] * v[1];
    }
}

/* The sum of the cross spectra of all rows. */
static void sum_cross(const float *a, const float *b, int64_t rows, int64_t n, const fv_spectrum *spectrum, double *sum) {
    int64_t length = spectrum->n;
    double *lines = fv__alloc((size_t)(2 * TOGETHER * length) * sizeof *lines);
    for (int64_t z = 0; z < rows; z += TOGETHER) {
        int64_t count = FV_MIN(TOGETHER, rows - z);
        memset(lines, 0, (size_t)(2 * count * length) * sizeof *lines);
        for (int64_t i = 0; i < count; i++) load_pair(a + (z + i) * n, b + (z + i) * n, n, lines + 2 * i * length);
        FV_ISA_NAME(fv__spectrum_lines)(spectrum, lines, count, length, 1, false);
        for (int64_t i = 0; i < count; i++) add_cross(lines + 2 * i * length, length, sum);
    }
    free(lines);
}

double FV_ISA_NAME(fv__center_phase)(const float *a, const float *b, int64_t rows, int64_t n) {
    int64_t     length = fv__spectrum_length(2 * n), best = 0;
    double     *sum = fv__calloc((size_t)(2 * length) * sizeof *sum);
    fv_spectrum spectrum = new_spectrum(length);
    sum_cross(a, b, rows, n, &spectrum, sum);
    for (int64_t k = 0; k < length; k++) {
        double size = sqrt(sum[2 * k] * sum[2 * k] + sum[2 * k + 1] * sum[2 * k + 1]),
               f = (double)FV_MIN(k, length - k) / (double)length;
        double soft = fv__exp(-40 * f * f); /* fine detail is noise */
        sum[2 * k] *= size > 0 ? soft / size : 0;
        sum[2 * k + 1] *= size > 0 ? soft / size : 0;
    }
    FV_ISA_NAME(fv__spectrum_lines)(&spectrum, sum, 1, length, 1, true);
    for (int64_t d = -n / 2; d <= n / 2; d++)
        if (sum[2 * ((d + length) % length)] > sum[2 * ((best + length) % length)]) best = d;
    double around[3];
    for (int k = 0; k < 3; k++) around[k] = sum[2 * ((best + k - 1 + length) % length)];
    double shift = (double)best + fv__summit(around[0], around[1], around[2], 1);
    free(spectrum.memory);
    free(sum);
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
    fv_spectrum columns = new_spectrum(w->length), angles = new_spectrum(w->turns);
    double     *lines = fv__alloc((size_t)(2 * TOGETHER * w->length) * sizeof *lines);
    for (int64_t j = 0; j < w->turns / 2; j += TOGETHER) { /* a power of two, at least 32 */
        memset(lines, 0, (size_t)(2 * TOGETHER * w->length) * sizeof *lines);
        for (int64_t i = 0; i < TOGETHER; i++)
            resample(sinogram, angle, nangles, n, angle[0] + 360 * (double)(j + i) / (double)w->turns, lines + 2 * i * w->length);
        FV_ISA_NAME(fv__spectrum_lines)(&columns, lines, TOGETHER, w->length, 1, false);
        for (int64_t f = 0; f < w->frequencies; f++)
            for (int64_t i = 0; i < TOGETHER; i++)
                memcpy(w->value + 2 * (f * w->turns + j + i), lines + 2 * (i * w->length + f), 2 * sizeof *lines);
    }
    FV_ISA_NAME(fv__spectrum_lines)(&angles, w->value, w->frequencies, w->turns, 1, false);
    free(lines);
    free(angles.memory);
    free(columns.memory);
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

fv_status FV_ISA_NAME(fv__center_vo)(const float *sinogram, const double *angle, int64_t nangles, int64_t n, double *found,
                                     fv_error *error) {
    wedge w = { .length = fv__spectrum_length(2 * n), .turns = FV_MAX(fv__spectrum_length(2 * nangles), 64) };
    w.frequencies = FV_MIN((int64_t)((double)(w.turns * w.length) / (2 * TURN / 2 * (double)n)) + 1, w.length / 2);
    FV_TRY(FV_TAKE_ZEROED(w.value, (size_t)(2 * w.frequencies * w.turns) * sizeof *w.value, error));
    transform(&w, sinogram, angle, nangles, n);
    double center = least(&w, n, (double)(n / 4), (double)(n - n / 4), 0.5);
    center = least(&w, n, center - 0.5, center + 0.5, 0.05);
    center += 0.05 * fv__summit(outside(&w, n, center - 0.05), outside(&w, n, center), outside(&w, n, center + 0.05), 1);
    free(w.value);
    *found = center;
    return FV_OK;
}
