/* The correlation of two images and its peaks; see phase_correlation.h. */
#include "kernels/phase_correlation.h"
#include "base/base.h"
#include "base/math.h"
#include "op/scratch.h"
#include <math.h>

enum { REACH = 8, TAPS = 2 * REACH + 1 }; /* voxels around a peak that its values between them come from */
#define PI 0x1.921fb54442d18p+1

static size_t lay_out(fv_correlation *c, void *memory) {
    fv_scratch pieces = { memory };
    int64_t    n = 1;
    for (int d = 0; d < c->ndim; d++) {
        void *tables = fv__scratch_take(&pieces, FV_ISA_NAME(fv__spectrum_bytes)(c->shape[d]));
        if (memory) FV_ISA_NAME(fv__spectrum_prepare)(&c->axis[d], c->shape[d], tables);
        n *= c->shape[d];
    }
    c->data = fv__scratch_take(&pieces, 2 * n * (int64_t)sizeof(double));
    return pieces.used;
}

int64_t FV_ISA_NAME(fv__correlation_bytes)(int ndim, const int64_t *shape) {
    fv_correlation c = { .ndim = ndim };
    for (int d = 0; d < ndim; d++) c.shape[d] = shape[d];
    return (int64_t)lay_out(&c, NULL);
}

void FV_ISA_NAME(fv__correlation_prepare)(fv_correlation *c, int ndim, const int64_t *shape, void *memory) {
    c->ndim = ndim;
    for (int d = 0; d < ndim; d++) c->shape[d] = shape[d];
    lay_out(c, memory);
}

static void weigh_phase(const void *context, const int64_t *at, int count, double *restrict re, double *restrict im) {
    (void)context;
    (void)at;
    for (int i = 0; i < count; i++) {
        double size = sqrt(re[i] * re[i] + im[i] * im[i]), by = 1 / sqrt(size);
        by = size > 0 ? by : 0;
        re[i] *= by;
        im[i] *= by;
    }
}

static void weigh_alike(const void *context, const int64_t *at, int count, double *re, double *im) {
    (void)context, (void)at, (void)count, (void)re, (void)im;
}

void FV_ISA_NAME(fv__correlation_run)(fv_correlation *c, bool phase) {
    fv_spectrum_correlation both = { c->axis, c->ndim, c->data, phase ? weigh_phase : weigh_alike, NULL };
    FV_ISA_NAME(fv__spectrum_correlate)(&both);
}

/* ---------------------------------------------------------------- peaks */

static int64_t wrap(int64_t i, int64_t n) { return (i % n + n) % n; }

/* The row of a shift, whichever it is along the last axis. */
static const double *row_of(const fv_correlation *c, const int64_t *shift) {
    int64_t row = 0;
    for (int d = 0; d < c->ndim - 1; d++) row = row * c->shape[d] + wrap(shift[d], c->shape[d]);
    return c->data + 2 * row * c->shape[c->ndim - 1];
}

/* Whether no neighbour is higher; of equal ones the first counts. */
static bool is_peak(const fv_correlation *c, const int64_t *shift, double height) {
    int64_t near[3], count = 1;
    for (int d = 0; d < c->ndim; d++) count *= 3;
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = k;
        for (int d = c->ndim - 1; d >= 0; d--) {
            near[d] = shift[d] + rest % 3 - 1;
            rest /= 3;
        }
        double other = row_of(c, near)[wrap(near[c->ndim - 1], c->shape[c->ndim - 1])];
        if (other > height || (other == height && k < count / 2)) return false;
    }
    return true;
}

static double highest(const double *row, int64_t n) {
    double most[8];
    for (int l = 0; l < 8; l++) most[l] = -INFINITY;
    int64_t x = 0;
    for (; x + 8 <= n; x += 8)
        for (int l = 0; l < 8; l++) most[l] = row[x + l] > most[l] ? row[x + l] : most[l];
    for (; x < n; x++) most[0] = row[x] > most[0] ? row[x] : most[0];
    for (int l = 1; l < 8; l++) most[0] = most[l] > most[0] ? most[l] : most[0];
    return most[0];
}

int FV_ISA_NAME(fv__correlation_peaks)(const fv_correlation *c, const int64_t *limit, fv_correlation_peak *peaks, int most) {
    int64_t shift[3] = { 0 }, low[3] = { 0 }, high[3] = { 0 };
    int     found = 0, last = c->ndim - 1, d;
    for (d = 0; d < c->ndim; d++) {
        high[d] = FV_MIN(limit[d], (c->shape[d] - 1) / 2);
        shift[d] = low[d] = -FV_MIN(limit[d], c->shape[d] / 2);
    }
    for (d = 0; d >= 0;) {
        const double *row = row_of(c, shift);
        if (found < most || highest(row, c->shape[last]) > peaks[found - 1].height)
            for (shift[last] = low[last]; shift[last] <= high[last]; shift[last]++) {
                double height = row[shift[last] < 0 ? shift[last] + c->shape[last] : shift[last]];
                if ((found == most && !(height > peaks[found - 1].height)) || !is_peak(c, shift, height)) continue;
                int k = found < most ? found++ : found - 1;
                for (; k > 0 && peaks[k - 1].height < height; k--) peaks[k] = peaks[k - 1];
                memcpy(peaks[k].shift, shift, sizeof shift);
                peaks[k].height = height;
            }
        for (d = last - 1; d >= 0 && shift[d] == high[d]; d--) shift[d] = low[d];
        if (d >= 0) shift[d]++;
    }
    return found;
}

/* ---------------------------------------------------------------- between voxels */

/* Weights of the voxels around a place between them: a sine over its argument, ended softly. */
static void kernel(double at, double weight[TAPS]) {
    double sum = 0;
    for (int j = -REACH; j <= REACH; j++) {
        double u = at - j, v = u * PI, soft = fv__cos(v / (2 * (REACH + 1)));
        sum += weight[j + REACH] = fabs(u) < 1e-9 ? 1 : fv__sin(v) / v * soft * soft;
    }
    for (int i = 0; i < TAPS; i++) weight[i] /= sum;
}

/* What the correlation is at peak + at. */
static double between(const fv_correlation *c, const int64_t *peak, const double *at) {
    int     last = c->ndim - 1, deep = c->ndim == 3 ? REACH : 0;
    double  weight[3][TAPS], sum = 0;
    int64_t shift[3] = { 0 };
    for (int d = 0; d < c->ndim; d++) kernel(at[d], weight[d]);
    for (int k = -deep; k <= deep; k++)
        for (int j = -REACH; j <= REACH; j++) {
            if (deep) shift[0] = peak[0] + k;
            shift[last - 1] = peak[last - 1] + j;
            const double *values = row_of(c, shift);
            double        row = 0;
            for (int i = 0; i < TAPS; i++) row += weight[last][i] * values[wrap(peak[last] + i - REACH, c->shape[last])];
            sum += row * weight[last - 1][j + REACH] * (deep ? weight[0][k + REACH] : 1);
        }
    return sum;
}

/* Parabolas along each axis, of half the width each time. */
void FV_ISA_NAME(fv__correlation_refine)(const fv_correlation *c, const int64_t *peak, double *shift) {
    double at[3] = { 0 };
    for (double width = 0.5; width > 5e-4; width /= 2)
        for (int d = c->ndim - 1; d >= 0; d--) {
            double value[3], middle = at[d];
            for (int k = 0; k < 3; k++) {
                at[d] = middle + (k - 1) * width;
                value[k] = between(c, peak, at);
            }
            double bend = value[0] - 2 * value[1] + value[2], step = bend < 0 ? (value[0] - value[2]) / (2 * bend) * width : 0;
            at[d] = middle + FV_MAX(FV_MIN(step, width), -width);
        }
    for (int d = 0; d < c->ndim; d++) shift[d] = (double)peak[d] + at[d];
}
