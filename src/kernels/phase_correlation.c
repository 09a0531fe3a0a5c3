/* Phase correlation; see phase_correlation.h. */
#include "kernels/phase_correlation.h"
#include "base/base.h"
#include "base/math.h"
#include "op/scratch.h"
#include <math.h>

enum { FINE = 15, TENTHS = 10 }; /* the fine grid: so many places along each axis, so many to a voxel */

static int64_t voxels(int ndim, const int64_t *shape) {
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    return n;
}

static size_t lay_out(fv_phase *p, void *memory) {
    fv_scratch pieces = { memory };
    int64_t    n = voxels(p->ndim, p->shape), longest = FINE, rest = n / p->shape[p->ndim - 1];
    for (int d = 0; d < p->ndim; d++) {
        void *tables = fv__scratch_take(&pieces, FV_ISA_NAME(fv__spectrum_bytes)(p->shape[d]));
        if (memory) FV_ISA_NAME(fv__spectrum_prepare)(&p->axis[d], p->shape[d], tables);
        longest = FV_MAX(longest, p->shape[d]);
    }
    p->data = fv__scratch_take(&pieces, 2 * n * (int64_t)sizeof(double));
    p->cross = fv__scratch_take(&pieces, 2 * n * (int64_t)sizeof(double));
    p->waves = fv__scratch_take(&pieces, 2 * longest * (int64_t)sizeof(double));
    p->half = 2 * FINE * (rest + FINE * longest);
    p->sums = fv__scratch_take(&pieces, 2 * p->half * (int64_t)sizeof(double));
    return pieces.used;
}

int64_t FV_ISA_NAME(fv__phase_bytes)(int ndim, const int64_t *shape) {
    fv_phase p = { .ndim = ndim };
    for (int d = 0; d < ndim; d++) p.shape[d] = shape[d];
    return (int64_t)lay_out(&p, NULL);
}

void FV_ISA_NAME(fv__phase_prepare)(fv_phase *p, int ndim, const int64_t *shape, void *memory) {
    p->ndim = ndim;
    for (int d = 0; d < ndim; d++) p->shape[d] = shape[d];
    lay_out(p, memory);
}

/* The place of the opposite frequency. */
static int64_t opposite(const fv_phase *p, int64_t i) {
    int64_t other = 0, step = 1;
    for (int d = p->ndim - 1; d >= 0; d--) {
        int64_t k = i % p->shape[d];
        other += (k ? p->shape[d] - k : 0) * step;
        step *= p->shape[d];
        i /= p->shape[d];
    }
    return other;
}

static double whiten(double size, double whitening) {
    if (whitening == 0) return 1;
    if (whitening == 1) return 1 / size;
    return whitening == 0.5 ? 1 / sqrt(size) : fv__exp(-whitening * fv__ln(size));
}

void FV_ISA_NAME(fv__phase_correlate)(fv_phase *p, double whitening) {
    int64_t n = voxels(p->ndim, p->shape);
    double  largest = 0;
    FV_ISA_NAME(fv__spectrum_image)(p->axis, p->ndim, p->data, false);
    for (int64_t i = 0; i < n; i++) {
        double a[2], b[2], *to = p->cross + 2 * i;
        fv__spectrum_split(p->data + 2 * i, p->data + 2 * opposite(p, i), a, b);
        to[0] = a[0] * b[0] + a[1] * b[1];
        to[1] = a[1] * b[0] - a[0] * b[1];
        double size = sqrt(to[0] * to[0] + to[1] * to[1]);
        largest = size > largest ? size : largest;
    }
    for (int64_t i = 0; i < n; i++) { /* what is rounding and nothing else has no phase */
        double *to = p->cross + 2 * i, size = sqrt(to[0] * to[0] + to[1] * to[1]);
        double  scale = size > largest * 0x1p-80 ? whiten(size, whitening) : 0;
        p->data[2 * i] = to[0] *= scale;
        p->data[2 * i + 1] = to[1] *= scale;
    }
    FV_ISA_NAME(fv__spectrum_image)(p->axis, p->ndim, p->data, true);
}

static double at(const fv_phase *p, const int64_t *shift) {
    int64_t i = 0;
    for (int d = 0; d < p->ndim; d++) i = i * p->shape[d] + ((shift[d] % p->shape[d]) + p->shape[d]) % p->shape[d];
    return p->data[2 * i];
}

/* Whether no neighbour is higher; of equal ones the first counts. */
static bool is_peak(const fv_phase *p, const int64_t *shift, double height) {
    int64_t near[3], count = 1;
    for (int d = 0; d < p->ndim; d++) count *= 3;
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = k;
        for (int d = p->ndim - 1; d >= 0; d--) {
            near[d] = shift[d] + rest % 3 - 1;
            rest /= 3;
        }
        double other = at(p, near);
        if (other > height || (other == height && k < count / 2)) return false;
    }
    return true;
}

int FV_ISA_NAME(fv__phase_peaks)(const fv_phase *p, const int64_t *limit, fv_phase_peak *peaks, int most) {
    int64_t shift[3] = { 0 }, low[3] = { 0 }, high[3] = { 0 };
    int     found = 0;
    for (int d = 0; d < p->ndim; d++) {
        high[d] = FV_MIN(limit[d], (p->shape[d] - 1) / 2);
        shift[d] = low[d] = -FV_MIN(limit[d], p->shape[d] / 2);
    }
    for (;;) {
        double height = at(p, shift);
        if ((found < most || height > peaks[found - 1].height) && is_peak(p, shift, height)) {
            int k = found < most ? found++ : found - 1;
            for (; k > 0 && peaks[k - 1].height < height; k--) peaks[k] = peaks[k - 1];
            for (int d = 0; d < p->ndim; d++) peaks[k].shift[d] = shift[d];
            peaks[k].height = height;
        }
        int d = p->ndim - 1;
        while (d >= 0 && shift[d] == high[d]) {
            shift[d] = low[d];
            d--;
        }
        if (d < 0) return found;
        shift[d]++;
    }
}

/* Turns of frequency k of an axis at a place: with the sign of the frequency, so that fractions of voxels are right. */
static void make_waves(const fv_phase *p, int d, double place, double *waves) {
    int64_t n = p->shape[d];
    for (int64_t k = 0; k < n; k++) {
        int64_t frequency = k <= n / 2 ? k : k - n;
        double  angle = 0x1.921fb54442d18p+2 * (double)frequency * place / (double)n;
        bool    middle = 2 * k == n; /* has no sign: only its cosine counts */
        waves[2 * k] = fv__cos(angle);
        waves[2 * k + 1] = middle ? 0 : fv__sin(angle);
    }
}

/* Sums over the last axis of from[rows][n], as to[j][rows]: the next axis is then the last. */
static void sum_axis(const double *from, int64_t rows, int64_t n, const double *waves, double *to) {
    for (int64_t r = 0; r < rows; r++) {
        const double *row = from + 2 * r * n;
        double        re[4] = { 0 }, im[4] = { 0 };
        int64_t       k = 0;
        for (; k + 4 <= n; k += 4)
            for (int l = 0; l < 4; l++) {
                const double *v = row + 2 * (k + l), *w = waves + 2 * (k + l);
                re[l] += v[0] * w[0] - v[1] * w[1];
                im[l] += v[0] * w[1] + v[1] * w[0];
            }
        /* One after the other: GCC 12 fuses a difference beside a sum, whatever -ffp-contract says. */
        for (int64_t i = k; i < n; i++) re[0] += row[2 * i] * waves[2 * i] - row[2 * i + 1] * waves[2 * i + 1];
        for (int64_t i = k; i < n; i++) im[0] += row[2 * i] * waves[2 * i + 1] + row[2 * i + 1] * waves[2 * i];
        to[2 * r] = (re[0] + re[1]) + (re[2] + re[3]);
        to[2 * r + 1] = (im[0] + im[1]) + (im[2] + im[3]);
    }
}

/* Where a parabola through three heights, the middle one the highest, has its top. */
static double top_of(double before, double middle, double after) {
    double bend = before - 2 * middle + after;
    return bend < 0 ? (before - after) / (2 * bend) : 0;
}

void FV_ISA_NAME(fv__phase_refine)(const fv_phase *p, const int64_t *peak, double *shift) {
    int64_t       rows = voxels(p->ndim, p->shape), places = 1;
    const double *from = p->cross;
    double       *halves[2] = { p->sums, p->sums + p->half };
    /* The axes one by one from the last: from[places][rows][n] becomes to[places][FINE][rows]. */
    for (int d = p->ndim - 1; d >= 0; d--) {
        double *to = halves[d & 1];
        rows /= p->shape[d];
        for (int64_t j = 0; j < FINE; j++) {
            make_waves(p, d, (double)peak[d] + (double)(j - FINE / 2) / TENTHS, p->waves);
            for (int64_t q = 0; q < places; q++)
                sum_axis(from + 2 * q * rows * p->shape[d], rows, p->shape[d], p->waves, to + 2 * (q * FINE + j) * rows);
        }
        places *= FINE;
        from = to;
    }
    int64_t best = 0, step = 1; /* from[last axis][...][first axis] */
    for (int64_t i = 1; i < places; i++)
        if (from[2 * i] > from[2 * best]) best = i;
    for (int d = 0; d < p->ndim; d++) {
        int64_t j = best / step % FINE;
        double  fraction = 0;
        if (j > 0 && j < FINE - 1) fraction = top_of(from[2 * (best - step)], from[2 * best], from[2 * (best + step)]);
        shift[d] = (double)peak[d] + ((double)(j - FINE / 2) + fraction) / TENTHS;
        step *= FINE;
    }
}
