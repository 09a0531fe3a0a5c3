/* The shift between two images; see phase.h. */
#include "base/math.h"
#include "kernels/phase_correlation.h"
#include "ops/registration/phase.h"

static const double turn = 0x1.921fb54442d18p+2, band = 0.12;

void fv__phase_lay_out(fv_phase *p, fv_scratch *pieces) {
    int64_t voxels = 1, all = 1;
    for (int c = 0; c < 3; c++) {
        p->padded[c] = p->size[c] > 1 ? fv__spectrum_direct_length(p->size[c]) : 1;
        voxels *= p->size[c];
        all *= p->padded[c];
    }
    for (int k = 0; k < 2; k++) p->room[k] = fv__scratch_take(pieces, voxels * (int64_t)sizeof(float));
    p->data = fv__scratch_take(pieces, 2 * all * (int64_t)sizeof(double));
    for (int c = 0; c < 3; c++) {
        p->memory[c] = fv__scratch_take(pieces, FV_ISA_NAME(fv__spectrum_bytes)(p->padded[c]));
        p->square[c] = fv__scratch_take(pieces, p->padded[c] * (int64_t)sizeof(double));
        p->weight[c] = fv__scratch_take(pieces, p->padded[c] * (int64_t)sizeof(double));
    }
    fv__shift_lay_out(p, pieces);
}

void fv__shift_lay_out(fv_phase *p, fv_scratch *pieces) {
    for (int c = 0; c < 3; c++) p->taper[c] = fv__scratch_take(pieces, p->size[c] * (int64_t)sizeof(double));
    for (int k = 0; k < FV_COUNT(p->line); k++) p->line[k] = fv__scratch_take(pieces, (p->size[0] + 64) * (int64_t)sizeof(float));
}

static fv_overlap overlap_at(const fv_phase *p, const int64_t offset[3]) {
    fv_overlap o;
    for (int c = 0; c < 3; c++) {
        o.offset[c] = offset[c];
        o.start[c] = FV_MAX(-offset[c], 0);
        o.count[c] = p->size[c] - (offset[c] < 0 ? -offset[c] : offset[c]);
    }
    return o;
}

/* Rises from the border as a cosine does: Tukey's window, over an eighth of the length, and of a short one over more. */
static void fill_taper(double *taper, int64_t n) {
    double rise = FV_MIN(FV_MAX((double)n / 8, 12), (double)n / 2);
    for (int64_t i = 0; i < n; i++) {
        double from = FV_MIN((double)i, (double)(n - 1 - i)) + 0.5;
        taper[i] = from >= rise ? 1 : 0.5 - 0.5 * fv__cos(turn / 2 * from / rise);
    }
}

static void fill_tapers(const fv_phase *p, const fv_overlap *o) {
    for (int c = 0; c < 3; c++) {
        fill_taper(p->taper[c], o->count[c]);
        if (c >= p->n) p->taper[c][0] = 1;
    }
}

static const float *row_of(const fv_phase *p, const float *image, const fv_overlap *o, bool moving, int64_t z, int64_t y) {
    int64_t at[3] = { o->start[0], o->start[1] + y, o->start[2] + z };
    for (int c = 0; c < 3 && moving; c++) at[c] += o->offset[c];
    return image + (at[2] * p->size[1] + at[1]) * p->size[0] + at[0];
}

/* In so many sums, which a processor makes at once. */
static double mean_of(const fv_phase *p, const float *image, const fv_overlap *o, bool moving) {
    enum { SUMS = 8 };
    double sum[SUMS] = { 0 };
    for (int64_t z = 0; z < o->count[2]; z++)
        for (int64_t y = 0; y < o->count[1]; y++) {
            const float *row = row_of(p, image, o, moving, z, y);
            int64_t      x = 0;
            for (; x + SUMS <= o->count[0]; x += SUMS)
                for (int l = 0; l < SUMS; l++) sum[l] += (double)row[x + l];
            for (; x < o->count[0]; x++) sum[0] += (double)row[x];
        }
    for (int step = SUMS / 2; step > 0; step /= 2)
        for (int l = 0; l < step; l++) sum[l] += sum[l + step];
    return sum[0] / (double)(o->count[0] * o->count[1] * o->count[2]);
}

static void fill_row(const fv_phase *p, const fv_overlap *o, const double mean[2], int64_t z, int64_t y) {
    const float *moving = row_of(p, p->moving, o, true, z, y), *fixed = row_of(p, p->fixed, o, false, z, y);
    double      *to = p->data + 2 * (z * p->padded[1] + y) * p->padded[0], high = p->taper[2][z] * p->taper[1][y];
    int64_t      count = o->count[0];
    for (int64_t x = 0; x < count; x++) {
        double window = high * p->taper[0][x];
        to[2 * x] = ((double)moving[x] - mean[0]) * window;
        to[2 * x + 1] = ((double)fixed[x] - mean[1]) * window;
    }
    memset(to + 2 * count, 0, (size_t)(2 * (p->padded[0] - count)) * sizeof *to);
}

/* Moving as real parts and fixed as imaginary ones; nothing around them. */
static void fill_data(const fv_phase *p, const fv_overlap *o) {
    const double mean[2] = { mean_of(p, p->moving, o, true), mean_of(p, p->fixed, o, false) };
    fill_tapers(p, o);
    for (int64_t z = 0; z < p->padded[2]; z++)
        for (int64_t y = 0; y < p->padded[1]; y++) {
            double *row = p->data + 2 * (z * p->padded[1] + y) * p->padded[0];
            if (z < o->count[2] && y < o->count[1])
                fill_row(p, o, mean, z, y);
            else
                memset(row, 0, (size_t)(2 * p->padded[0]) * sizeof *row);
        }
}

static void prepare(fv_phase *p) {
    for (int c = 0; c < p->n; c++) FV_ISA_NAME(fv__spectrum_prepare)(&p->axis[p->n - 1 - c], p->padded[c], p->memory[c]);
    for (int c = 0; c < 3; c++)
        for (int64_t k = 0; k < p->padded[c]; k++) {
            double frequency = (double)(2 * k > p->padded[c] ? k - p->padded[c] : k) / (double)p->padded[c];
            p->square[c][k] = frequency * frequency;
            p->weight[c][k] = fv__exp(-frequency * frequency / (2 * band * band));
        }
}

/* The product of both spectra, with half of its amplitude's logarithm. */
static void weigh(const void *context, const int64_t *at, int count, double *restrict re, double *restrict im) {
    const fv_phase *p = context;
    int             last = p->n - 1;
    const double   *along = p->square[0] + at[last], *by_x = p->weight[0] + at[last];
    double          square = p->square[1][at[last - 1]], weight = p->weight[1][at[last - 1]];
    if (last > 1) {
        square += p->square[2][at[0]];
        weight *= p->weight[2][at[0]];
    }
    for (int i = 0; i < count; i++) {
        double size = sqrt(re[i] * re[i] + im[i] * im[i]), by = weight * by_x[i] * sqrt((square + along[i]) / size);
        by = size > 0 ? by : 0;
        re[i] *= by;
        im[i] *= by;
    }
}

/* ---------------------------------------------------------------- the peak */

/* A row of the correlation. */
static const double *correlation(const fv_phase *p, int64_t z, int64_t y) {
    return p->data + 2 * (z * p->padded[1] + y) * p->padded[0];
}

static bool find_peak(const fv_phase *p, int64_t peak[3]) {
    double best = 0;
    for (int64_t z = 0; z < p->padded[2]; z++)
        for (int64_t y = 0; y < p->padded[1]; y++) {
            const double *row = correlation(p, z, y);
            double        most = best;
            for (int64_t x = 0; x < p->padded[0]; x++) most = row[x] > most ? row[x] : most;
            if (!(most > best)) continue;
            best = most;
            for (peak[0] = 0; row[peak[0]] != most; peak[0]++) {
            }
            peak[1] = y;
            peak[2] = z;
        }
    return best > 0;
}

static bool find_shift(fv_phase *p, const int64_t offset[3], double shift[3]) {
    fv_overlap o = overlap_at(p, offset);
    int64_t    peak[3], place[3];
    double     at[3] = { 0 };
    fill_data(p, &o);
    fv_spectrum_correlation both = { p->axis, p->n, p->data, weigh, p };
    FV_ISA_NAME(fv__spectrum_correlate)(&both);
    if (!find_peak(p, peak)) return false;
    fv_correlation whole = { .ndim = p->n, .data = p->data };
    for (int c = 0; c < p->n; c++) {
        whole.shape[p->n - 1 - c] = p->padded[c];
        place[p->n - 1 - c] = 2 * peak[c] > p->padded[c] ? peak[c] - p->padded[c] : peak[c];
    }
    FV_ISA_NAME(fv__correlation_refine)(&whole, place, at);
    for (int c = 0; c < 3; c++) shift[c] = c < p->n ? (double)offset[c] + at[p->n - 1 - c] : 0;
    return true;
}

void fv__shift_settle(const fv_phase *p, double shift[3]) {
    int64_t offset[3] = { 0 };
    for (int c = 0; c < p->n; c++) {
        offset[c] = (int64_t)floor(shift[c] + 0.5);
        if (p->size[c] - (offset[c] < 0 ? -offset[c] : offset[c]) < 8) return;
    }
    fv_overlap o = overlap_at(p, offset);
    fill_tapers(p, &o);
    fv__shift_refine(p, &o, shift);
}

bool fv__phase_run(fv_phase *p, double shift[3]) {
    int64_t offset[3] = { 0 };
    bool    far = false;
    prepare(p);
    if (!find_shift(p, offset, shift)) return false;
    for (int c = 0; c < 3; c++) {
        double most = (double)p->size[c] * 0.9;
        offset[c] = (int64_t)floor(FV_MAX(FV_MIN(shift[c], most), -most) + 0.5);
        far = far || fabs((double)offset[c]) * 64 > (double)p->size[c];
    }
    if (far && !find_shift(p, offset, shift)) return false;
    fv__shift_settle(p, shift);
    return true;
}
