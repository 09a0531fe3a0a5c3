/* The shift between two images; see phase.h. */
#include "base/math.h"
#include "kernels/phase_correlation.h"
#include "ops/registration/phase.h"

static const double turn = 0x1.921fb54442d18p+2, band = 0.12;
enum { LONG = 512, MARGIN = 16 }; /* an axis that is compared at half its resolution; room before a line of voxels */

void fv__phase_lay_out(fv_phase *p, fv_scratch *pieces) {
    int64_t voxels = 1, all = 1;
    for (int c = 0; c < 3; c++) {
        p->bin[c] = p->size[c] >= LONG ? 2 : 1;
        p->padded[c] = p->size[c] > 1 ? fv__spectrum_direct_length(p->size[c] / p->bin[c]) : 1;
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

/* What becomes one number along an axis: voxels 2 i - 1 to 2 i + 2, which keep little that half the resolution could mistake,
 * unless there is nothing else: see too_fine. */
static const float kernel[2][4] = { { 1 }, { 0.125F, 0.375F, 0.375F, 0.125F } };
static int         taps_of(int bin) { return bin == 2 ? 4 : 1; }
static int64_t     voxel_of(int bin, int64_t i, int tap, int64_t count) {
        return bin == 2 ? FV_MAX(FV_MIN(2 * i - 1 + tap, count - 1), 0) : i;
}

/* The window where the resolution is halved. */
static double taper_at(const fv_phase *p, int c, int64_t i) {
    return p->bin[c] == 2 ? (p->taper[c][2 * i] + p->taper[c][2 * i + 1]) / 2 : p->taper[c][i];
}

/* Row y of plane z, halved along y and z where these are, with the voxels at its ends once more around it. */
static const float *add_rows(const fv_phase *p, const float *image, const fv_overlap *o, bool moving, int64_t z, int64_t y) {
    float  *line = p->line[0] + MARGIN;
    int64_t n = o->count[0];
    memset(line, 0, (size_t)n * sizeof *line);
    for (int k = 0; k < taps_of(p->bin[2]); k++)
        for (int j = 0; j < taps_of(p->bin[1]); j++) {
            float        weight = kernel[p->bin[2] - 1][k] * kernel[p->bin[1] - 1][j];
            const float *row =
                row_of(p, image, o, moving, voxel_of(p->bin[2], z, k, o->count[2]), voxel_of(p->bin[1], y, j, o->count[1]));
            for (int64_t x = 0; x < n; x++) line[x] += weight * row[x];
        }
    line[-1] = line[0];
    line[n] = line[n + 1] = line[n - 1];
    return line;
}

/* One image's part of a row of numbers: every other of `to`. */
static void fill_row(const fv_phase *p, const fv_overlap *o, bool moving, double mean, int64_t z, int64_t y, double *to) {
    const float *image = moving ? p->moving : p->fixed;
    double       high = taper_at(p, 2, z) * taper_at(p, 1, y);
    int64_t      count = o->count[0] / p->bin[0];
    bool         plain = p->bin[0] * p->bin[1] * p->bin[2] == 1;
    const float *row = plain ? row_of(p, image, o, moving, z, y) : add_rows(p, image, o, moving, z, y);
    if (p->bin[0] == 1)
        for (int64_t x = 0; x < count; x++) to[2 * x] = ((double)row[x] - mean) * (high * p->taper[0][x]);
    else
        for (int64_t x = 0; x < count; x++) {
            float value = (row[2 * x - 1] + row[2 * x + 2]) * kernel[1][0] + (row[2 * x] + row[2 * x + 1]) * kernel[1][1];
            to[2 * x] = ((double)value - mean) * (high * taper_at(p, 0, x));
        }
}

/* Moving as real parts and fixed as imaginary ones; nothing around them. */
static void fill_data(const fv_phase *p, const fv_overlap *o) {
    const double mean[2] = { mean_of(p, p->moving, o, true), mean_of(p, p->fixed, o, false) };
    int64_t      count[3];
    for (int c = 0; c < 3; c++) count[c] = o->count[c] / p->bin[c];
    fill_tapers(p, o);
    for (int64_t z = 0; z < p->padded[2]; z++)
        for (int64_t y = 0; y < p->padded[1]; y++) {
            double *row = p->data + 2 * (z * p->padded[1] + y) * p->padded[0];
            int64_t filled = z < count[2] && y < count[1] ? count[0] : 0;
            for (int side = 0; side < 2 && filled; side++) fill_row(p, o, !side, mean[side], z, y, row + side);
            memset(row + 2 * filled, 0, (size_t)(2 * (p->padded[0] - filled)) * sizeof *row);
        }
}

/* ---------------------------------------------------------------- what half the resolution would mistake */

/* Both images with little of their fine detail: the numbers once more halved along axes that were, smoothed along other long
 * ones. Looked at where the window of axes that are halved is 1. */
typedef struct {
    int64_t first[3], count[3];
    int     taps[3];
} coarse;

/* A row of it, of one of the images. */
static void fill_coarse(const fv_phase *p, const coarse *s, int side, int64_t z, int64_t y, float *line) {
    int64_t from = s->first[0] * p->bin[0], before = s->count[0] * p->bin[0] + 4;
    memset(line, 0, (size_t)before * sizeof *line);
    for (int k = 0; k < s->taps[2]; k++)
        for (int j = 0; j < s->taps[1]; j++) {
            float         weight = kernel[s->taps[2] / 4][k] * kernel[s->taps[1] / 4][j];
            int64_t       row = (z * p->bin[2] + k) * p->padded[1] + y * p->bin[1] + j;
            const double *data = p->data + 2 * (row * p->padded[0] + from) + side;
            for (int64_t x = 0; x < FV_MIN(before, p->padded[0] - from); x++) line[x] += weight * (float)data[2 * x];
        }
    for (int64_t x = 0; x < s->count[0] && s->taps[0] == 4; x++) {
        const float *four = line + x * p->bin[0];
        line[x] = (four[0] + four[3]) * kernel[1][0] + (four[1] + four[2]) * kernel[1][1];
    }
}

/* The mean square of the bends a - 2 b + c, times the window's. */
static double mean_square(const float *const row[3], const double *window, double high, int64_t n) {
    double sum = 0;
    for (int64_t x = 0; x < n; x++) {
        double bend = ((double)row[0][x] - 2 * (double)row[1][x] + (double)row[2][x]) * (window ? window[x] * high : 1);
        sum += bend * bend;
    }
    return sum / (double)n;
}

/* Adds the squares of bends along axis c, of the voxels and of what is coarse, in one row of the latter. */
static void add_bends(const fv_phase *p, const fv_overlap *o, const coarse *s, int side, int c, int64_t z, int64_t y,
                      double sum[2]) {
    int64_t      scale[3];
    const float *row[3], *low[3];
    for (int d = 0; d < 3; d++) scale[d] = p->bin[d] * p->bin[d];
    int64_t x = s->first[0] * scale[0], high = y * scale[1], deep = z * scale[2];
    for (int k = 0; k < 3; k++) {
        row[k] = row_of(p, side ? p->fixed : p->moving, o, !side, deep + k * (c == 2), high + k * (c == 1)) + x + k * (c == 0);
        low[k] = c ? p->line[1 + k] : p->line[1] + k;
        if (c || k == 0) fill_coarse(p, s, side, z + k * (c == 2), y + k * (c == 1), p->line[1 + k]);
    }
    int64_t less = 2 * (c == 0);
    sum[0] += mean_square(row, p->taper[0] + x, p->taper[1][high] * p->taper[2][deep], s->count[0] * scale[0] - less);
    sum[1] += mean_square(low, NULL, 1, s->count[0] - less);
}

/* Whether one of the images shows so little below an eighth of a turn a voxel, along an axis that is halved, that what halving
 * folds down may outweigh it: a quarter of what white noise would. Pictures show far more. Bends are compared instead of values,
 * so that light which falls unevenly does not count as a picture. Follows fill_data. */
static bool too_fine(const fv_phase *p, const fv_overlap *o) {
    enum { SMOOTHED = 64, GLANCE = 1 << 16 };
    double least = 0.13; /* of white noise four times this is left, of which axes take their share */
    coarse s;
    for (int c = 0; c < 3; c++) {
        bool halved = p->bin[c] == 2;
        s.taps[c] = halved || o->count[c] >= SMOOTHED ? 4 : 1;
        s.first[c] = halved ? o->count[c] / 32 + 1 : 0;
        s.count[c] = halved ? o->count[c] / 4 - 2 * s.first[c] - 4 : o->count[c] - s.taps[c] + 1;
        if (s.count[c] < (c < p->n ? 3 : 1)) return false;
        least *= halved ? 0.14 : s.taps[c] == 4 ? 0.3125 : 1;
    }
    int64_t rows = s.count[1] * s.count[2], every = FV_MAX(s.count[0] * rows / GLANCE, 1);
    for (int side = 0; side < 2; side++)
        for (int c = 0; c < p->n; c++) {
            double sum[2] = { 0 };
            for (int64_t r = 0; r < rows && p->bin[c] == 2; r += every)
                add_bends(p, o, &s, side, c, s.first[2] + r / s.count[1], s.first[1] + r % s.count[1], sum);
            if (sum[1] < least * sum[0]) return true;
        }
    return false;
}

/* ---------------------------------------------------------------- the spectra */

static void fill_weights(const fv_phase *p) {
    for (int c = 0; c < 3; c++)
        for (int64_t k = 0; k < p->padded[c]; k++) {
            double frequency = (double)(2 * k > p->padded[c] ? k - p->padded[c] : k) / (double)(p->padded[c] * p->bin[c]);
            p->square[c][k] = frequency * frequency;
            p->weight[c][k] = fv__exp(-frequency * frequency / (2 * band * band));
        }
}

static void prepare(fv_phase *p) {
    for (int c = 0; c < p->n; c++) FV_ISA_NAME(fv__spectrum_prepare)(&p->axis[p->n - 1 - c], p->padded[c], p->memory[c]);
    fill_weights(p);
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

/* Its value; 0: there is none. */
static double find_peak(const fv_phase *p, int64_t peak[3]) {
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
    return best;
}

/* From the data; the peak's value. */
static double correlate(const fv_phase *p, const fv_overlap *o, double shift[3]) {
    int64_t                 peak[3], place[3];
    double                  at[3] = { 0 };
    fv_spectrum_correlation both = { p->axis, p->n, p->data, weigh, p };
    FV_ISA_NAME(fv__spectrum_correlate)(&both);
    double value = find_peak(p, peak);
    if (!(value > 0)) return 0;
    fv_correlation whole = { .ndim = p->n, .data = p->data };
    for (int c = 0; c < p->n; c++) {
        whole.shape[p->n - 1 - c] = p->padded[c];
        place[p->n - 1 - c] = 2 * peak[c] > p->padded[c] ? peak[c] - p->padded[c] : peak[c];
    }
    FV_ISA_NAME(fv__correlation_refine)(&whole, place, at);
    for (int c = 0; c < 3; c++) shift[c] = c < p->n ? (double)o->offset[c] + at[p->n - 1 - c] * p->bin[c] : 0;
    return value;
}

/* At full resolution: the middle half of the overlap, for which the memory is enough. wide: that of fixed with the middle of
 * moving and with what lies around it, a quarter of an axis away; the highest peak tells. */
static bool find_fine_shift(fv_phase *p, const fv_overlap *o, bool wide, double shift[3]) {
    const int  bin[3] = { p->bin[0], p->bin[1], p->bin[2] };
    fv_overlap middle = *o;
    int        looks = 1;
    double     best = 0;
    for (int c = 0; c < 3; c++) {
        if (bin[c] != 2) continue;
        middle.start[c] += o->count[c] / 4;
        middle.count[c] /= 2;
        p->bin[c] = 1;
        if (wide) looks *= 3;
    }
    fill_weights(p);
    for (int look = 0; look < looks; look++) {
        int    rest = look;
        double found[3];
        for (int c = 0; c < 3 && wide; c++) {
            if (bin[c] != 2) continue;
            middle.offset[c] = o->offset[c] + (rest % 3 - 1) * (o->count[c] / 4);
            rest /= 3;
        }
        fill_data(p, &middle);
        double value = correlate(p, &middle, found);
        if (!(value > best)) continue;
        best = value;
        memcpy(shift, found, sizeof found);
    }
    memcpy(p->bin, bin, sizeof bin);
    fill_weights(p);
    return best > 0;
}

/* fine: whether half the resolution is too little, as far as known. */
static bool find_shift(fv_phase *p, const int64_t offset[3], bool *fine, double shift[3]) {
    fv_overlap o = overlap_at(p, offset);
    bool       known = *fine;
    if (!known) {
        fill_data(p, &o);
        *fine = p->bin[0] * p->bin[1] * p->bin[2] > 1 && too_fine(p, &o);
    }
    return *fine ? find_fine_shift(p, &o, !known, shift) : correlate(p, &o, shift) > 0;
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
    bool    far = false, fine = false;
    prepare(p);
    if (!find_shift(p, offset, &fine, shift)) return false;
    for (int c = 0; c < 3; c++) {
        double most = (double)p->size[c] * 0.9;
        offset[c] = (int64_t)floor(FV_MAX(FV_MIN(shift[c], most), -most) + 0.5);
        far = far || fabs((double)offset[c]) * 64 > (double)p->size[c];
    }
    if (far && !find_shift(p, offset, &fine, shift)) return false;
    fv__shift_settle(p, shift);
    return true;
}
