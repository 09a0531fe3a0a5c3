/* What the steps of a ptychographic reconstruction share: how frames, waves, sums, object and probe lie in images.
 *
 * Frames are sorted in space and cut into blocks of 16, which depends on their positions only. All sums over frames are made in
 * this order, so no bit depends on chunks, workers or ranks. Images that go from step to step (all float32; M modes):
 *
 * amplitudes  [block][row][16 frames x width]: measured amplitudes; negative where nothing was measured
 * waves       [block][row][16 x M x (re, im) x width], and further rows with the sums of the block
 * sums        these further rows alone: num re, num im, den of the block's box of the object; the last three numbers are the
 *             largest den, what its waves leave unexplained, and what was measured, as sums of amplitudes
 * object      [row][re, im][column]
 * probe       [class x M][row][re, im][column]: one for each class of sub-pixel shifts; the first class is not shifted
 */
#ifndef FV_EXIT_WAVES_H
#define FV_EXIT_WAVES_H

#include "kernels/plane_fourier.h"
#include "kernels/vectors.h"
#include "op/op.h"

enum { FV_WAVES_BLOCK = 16, FV_WAVES_PARTS = 8 }; /* frames of a block; shifts are rounded to 1 / PARTS of a pixel */
enum { FV_SCAN_FRAME, FV_SCAN_Y, FV_SCAN_X, FV_SCAN_CLASS, FV_SCAN_NUMBERS };

/* Parameters of every step. */
typedef struct fv_wave_scan {
    fv_list scan;   /* of each frame in order: its number, row and column of its corner in the object, class of its shift */
    fv_list shifts; /* of each class: rows and columns, below 1 pixel */
} fv_wave_scan;

/* It is the first member of their parameters. */
#define FV_WAVE_SCAN_PARAMS                                                                                                      \
    FV_PARAM(fv_wave_scan, scan,                                                                                                 \
             .doc = "four numbers of each frame, in the order of all sums: frame, row and column of its corner in the object, "  \
                    "class of its shift"),                                                                                       \
        FV_PARAM(fv_wave_scan, shifts, .doc = "two numbers of each class: its shift in rows and columns")

typedef struct fv_waves {
    const double *scan;
    int64_t       frames, blocks, classes, modes, height, width, box_height, box_width, sum_rows;
    int64_t       row; /* floats of a row of waves */
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

static inline const double *fv__wave_frame(const fv_waves *w, int64_t frame) { return w->scan + FV_SCAN_NUMBERS * frame; }

/* Positions, two numbers each, sorted and rounded to classes, into lists of the arena. origin: of the object in positions. */
fv_status fv__waves_sort(const fv_list *positions, fv_arena *arena, fv_wave_scan *at, int64_t origin[2], int64_t extent[2],
                         fv_error *error);

/* Sizes from the images that a step gets: amplitudes and probe. */
fv_status fv__waves_of(const fv_wave_scan *at, const fv_type *amplitudes, const fv_type *probe, fv_waves *w, fv_error *error);
/* Sizes from waves (or sums) and probe. */
fv_status fv__waves_again(const fv_wave_scan *at, const fv_type *waves, const fv_type *probe, fv_waves *w, fv_error *error);
/* The type of waves; sums: of their last rows alone. */
void fv__waves_type(const fv_waves *w, bool sums, fv_image_type *type);
/* The box of the object that `count` blocks cover, and whether the object has it. */
fv_region fv__waves_window(const fv_waves *w, int64_t first, int64_t count);
fv_status fv__waves_fit(const fv_waves *w, const fv_type *object, fv_error *error);

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

/* Adds a wave to the sums of its block: conj(probe) * wave and |probe|^2. sums: num re, num im, den, box_height x box_width each.
 * wave and probe: rows of re, im. den: also add |probe|^2. */
typedef struct fv_wave_rows {
    const float *wave, *probe;
    int64_t      wave_stride, probe_stride, probe_part;
} fv_wave_rows;
/* Fills in the last three numbers. */
void fv__wave_tail(const fv_waves *w, const double left[2], float *sums);
void fv__wave_sums(const fv_waves *w, const fv_wave_rows *rows, int64_t y, int64_t x, float *sums);

#endif
