/* What the steps of a ptychographic reconstruction share: how frames, waves, sums, object and probe lie in images.
 *
 * Frames are sorted in space and cut into blocks of B, which depends on their positions only. All sums over frames are made in
 * this order, so no bit depends on chunks, workers or ranks. Images that go from step to step (all float32; M modes):
 *
 * amplitudes  [block][B frames x row][column]: measured amplitudes; negative where nothing was measured
 * waves       [block][B frames x M x row][re, im x column], and further rows with the sums of the block
 * sums        these further rows alone: of each row of the block's box of the object num re, num im, den; the last three
 *             numbers are the largest den, what its waves leave unexplained, and what was measured, as sums of amplitudes
 * object      [row][re, im][column]
 * probe       [class x M][row][re, im][column]: one for each class of sub-pixel shifts; the first class is not shifted
 */
#ifndef FV_EXIT_WAVES_H
#define FV_EXIT_WAVES_H

#include "kernels/plane_fourier.h"
#include "kernels/vectors.h"
#include "op/op.h"

enum { FV_WAVES_PARTS = 64, FV_WAVES_MODES = 16 };     /* at most: parts of a pixel that shifts are rounded to, and modes */
enum { FV_WAVES_BLOCK = 64, FV_WAVES_LONGEST = 1024 }; /* frames of a block: about so many, and at most */
enum { FV_SCAN_FRAME, FV_SCAN_Y, FV_SCAN_X, FV_SCAN_CLASS, FV_SCAN_NUMBERS };

/* Parameters of every step. */
typedef struct fv_wave_scan {
    fv_list scan;   /* of each frame in order: its number, row and column of its corner in the object, class of its shift */
    fv_list shifts; /* of each class: rows and columns, below 1 pixel */
    int64_t block;  /* frames of a block */
    int64_t margin; /* pixels by which frames may be moved; then shifts are all places of a grid */
} fv_wave_scan;

/* It is the first member of their parameters. */
#define FV_WAVE_SCAN_PARAMS                                                                                                      \
    FV_PARAM(fv_wave_scan, scan,                                                                                                 \
             .doc = "four numbers of each frame, in the order of all sums: frame, row and column of its corner in the object, "  \
                    "class of its shift"),                                                                                       \
        FV_PARAM(fv_wave_scan, shifts, .doc = "two numbers of each class: its shift in rows and columns"),                       \
        FV_PARAM(fv_wave_scan, block, .def = "16", .min = 1, .max = FV_WAVES_LONGEST, .doc = "frames of a block"),               \
        FV_PARAM(fv_wave_scan, margin, .def = "0", .min = 0, .max = 64, .unit = "px",                                            \
                 .doc = "how far states may move frames; shifts are then those of a grid, row by row")

typedef struct fv_waves {
    const double *scan, *given; /* where frames are, and where they were said to be, by which blocks are cut */
    int64_t       frames, block, margin, blocks, classes, modes, height, width, box_height, box_width;
    int64_t       row, wave_rows, sum_rows; /* floats of a row of waves; rows of a block's waves and of its sums */
} fv_waves;

/* Where the box of a block lies in the object. */
typedef struct fv_wave_box {
    int64_t y, x, height, width, frames; /* of the object that the block's frames cover; how many frames it has */
} fv_wave_box;

#define fv__waves_find FV_ISA_NAME(fv__waves_find)
#define fv__waves_box FV_ISA_NAME(fv__waves_box)
#define fv__waves_sort FV_ISA_NAME(fv__waves_sort)
#define fv__waves_of FV_ISA_NAME(fv__waves_of)
#define fv__waves_type FV_ISA_NAME(fv__waves_type)
#define fv__waves_window FV_ISA_NAME(fv__waves_window)
#define fv__waves_fit FV_ISA_NAME(fv__waves_fit)
#define fv__waves_again FV_ISA_NAME(fv__waves_again)
#define fv__wave_tail FV_ISA_NAME(fv__wave_tail)
#define fv__wave_sums FV_ISA_NAME(fv__wave_sums)

/* Sizes, and whether the scan fits. modes: of the probe. */
fv_status   fv__waves_find(const fv_wave_scan *at, int64_t height, int64_t width, int64_t modes, fv_waves *w, fv_error *error);
fv_wave_box fv__waves_box(const fv_waves *w, int64_t block);

/* Parts of a pixel whose grid has so many classes. */
static inline int64_t       fv__wave_parts(int64_t classes) { return (int64_t)(sqrt((double)classes) + 0.5); }
static inline const double *fv__wave_frame(const fv_waves *w, int64_t frame) { return w->scan + FV_SCAN_NUMBERS * frame; }

/* By how much a frame lies beside whole pixels. */
static inline const double *fv__wave_shift(const fv_waves *w, const fv_list *shifts, int64_t frame) {
    return shifts->value + 2 * (int64_t)fv__wave_frame(w, frame)[FV_SCAN_CLASS];
}

/* The frames of a block by shifts of columns, then of rows, then in order; how many there are. */
static inline int64_t fv__waves_by_shift(const fv_waves *w, const fv_list *shifts, int64_t block, int64_t *order) {
    int64_t n = 0, end = FV_MIN(w->frames, (block + 1) * w->block);
    for (int64_t f = block * w->block; f < end; f++) {
        int64_t i = n++;
        for (order[i] = f; i > 0; i--) {
            const double *a = fv__wave_shift(w, shifts, order[i - 1]), *b = fv__wave_shift(w, shifts, order[i]);
            if (a[1] < b[1] || (a[1] == b[1] && a[0] <= b[0])) break;
            order[i] = order[i - 1];
            order[i - 1] = f;
        }
    }
    return n;
}

/* Positions, two numbers each, sorted and rounded to 1 / parts of a pixel, into lists of the arena. origin: of the object in
 * positions. */
typedef struct fv_wave_cut {
    int64_t block, parts;
    bool    by_class; /* frames of a block that are of one class lie together */
    int64_t groups; /* into which they will be cut, each all over the object and of few classes; 1: one block beside the other */
} fv_wave_cut;
/* Frames of a group: as many blocks in each as are needed. */
static inline int64_t fv__waves_group(int64_t frames, int64_t groups, int64_t block) {
    int64_t each = (frames + groups - 1) / groups;
    return (each + block - 1) / block * block;
}
fv_status fv__waves_sort(const fv_list *positions, fv_wave_cut cut, fv_arena *arena, fv_wave_scan *at, int64_t origin[2],
                         int64_t extent[2], fv_error *error);

/* Sizes from the images that a step gets: amplitudes and probe. */
fv_status fv__waves_of(const fv_wave_scan *at, const fv_type *amplitudes, const fv_type *probe, fv_waves *w, fv_error *error);
/* Sizes from waves and probe; sums: the sums behind waves, alone or behind what ptycho_pie or ptycho_errors gives, are enough. */
fv_status fv__waves_again(const fv_wave_scan *at, const fv_type *waves, bool sums, const fv_type *probe, fv_waves *w,
                          fv_error *error);
/* The type of waves; sums: of their last rows alone. */
void fv__waves_type(const fv_waves *w, bool sums, fv_image_type *type);
/* The box of the object that `count` blocks cover, and whether the object has it. */
fv_region fv__waves_window(const fv_waves *w, int64_t first, int64_t count);
fv_status fv__waves_fit(const fv_waves *w, const fv_type *object, fv_error *error);

/* A plane of the first axis of an input, from its first needed row on: rows `row` apart; of a probe the imaginary parts of a row
 * are `part` behind the real ones. */
typedef struct fv_wave_plane {
    const float *data;
    int64_t      row, part;
} fv_wave_plane;
static inline fv_wave_plane fv__wave_plane(const fv_run *r, int input, int64_t plane) {
    const fv_block *block = r->in[input];
    const float    *data = (float *)block->data + (plane - block->region.start[0]) * block->stride[0];
    return (fv_wave_plane){ data, block->stride[1], block->stride[2] };
}

/* Waves come from far away: what is a few rows on is fetched while a row is worked on. Nothing is read, so it may lie beyond the
 * end. */
enum { FV_WAVE_AHEAD = 4 };
static inline void fv__wave_fetch(const float *row, int64_t apart, int64_t n) {
    uintptr_t at = (uintptr_t)row + (uintptr_t)(FV_WAVE_AHEAD * apart) * sizeof *row;
    for (int64_t i = 0; i < n * (int64_t)sizeof *row; i += 64) __builtin_prefetch((const char *)at + i);
}

/* Sums of a row in 16 lanes, whatever the instruction set: the same bits everywhere. */
enum { FV_WAVE_LANES = 16 };
static inline void fv__lanes_add(const float *row, int64_t n, float lanes[FV_WAVE_LANES]) {
    int64_t x = 0;
    for (; x + FV_WAVE_LANES <= n; x += FV_WAVE_LANES)
        for (int v = 0; v < FV_WAVE_LANES; v += FV_F32_LANES)
            fv_f32v_store(lanes + v, fv_f32v_load(lanes + v) + fv_f32v_load(row + x + v));
    for (; x < n; x++) lanes[x % FV_WAVE_LANES] += row[x];
}
static inline double fv__lanes_sum(const float lanes[FV_WAVE_LANES]) {
    double sum = 0;
    for (int l = 0; l < FV_WAVE_LANES; l++) sum += (double)lanes[l];
    return sum;
}

/* The largest of n numbers that are not negative. */
static inline float fv__lanes_most(const float *values, int64_t n) {
    float   lanes[FV_WAVE_LANES] = { 0 }, most = 0;
    int64_t i = 0;
    for (; i + FV_WAVE_LANES <= n; i += FV_WAVE_LANES)
#pragma GCC ivdep
        for (int v = 0; v < FV_WAVE_LANES; v++) lanes[v] = values[i + v] > lanes[v] ? values[i + v] : lanes[v];
    for (; i < n; i++) most = FV_MAX(most, values[i]);
    for (int v = 0; v < FV_WAVE_LANES; v++) most = FV_MAX(most, lanes[v]);
    return most;
}

/* Where in the sums of a block the row y of its box begins, from column x on. */
static inline int64_t fv__wave_sums_at(const fv_waves *w, int64_t y, int64_t x) { return 3 * y * w->box_width + x; }

/* Adds a wave to the sums of its block: conj(probe) * wave and |probe|^2. wave: rows of re, im. */
typedef struct fv_wave_rows {
    const float  *wave;
    int64_t       wave_stride;
    fv_wave_plane probe;
} fv_wave_rows;
/* Fills in the last three numbers. */
void fv__wave_tail(const fv_waves *w, const double left[2], float *sums);
void fv__wave_sums(const fv_waves *w, const fv_wave_rows *rows, int64_t y, int64_t x, float *sums);
/* One row of it: p, q parts of the probe, a, b of the wave; re: where its sums begin. */
static inline void fv__wave_sums_row(const fv_waves *w, const float *p, const float *q, const float *a, const float *b,
                                     float *restrict re) {
    int64_t n = w->width;
    float *restrict im = re + w->box_width, *restrict den = im + w->box_width;
#pragma GCC ivdep
    for (int64_t k = 0; k < n; k++) {
        re[k] += p[k] * a[k] + q[k] * b[k];
        im[k] += p[k] * b[k] - q[k] * a[k];
        den[k] += p[k] * p[k] + q[k] * q[k];
    }
}

#endif
