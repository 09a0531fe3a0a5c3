/* Rank filters of 8-bit images by column histograms, constant time a voxel.
 *
 * Each column of a tile has a histogram of its part of the box, in 16 coarse bins and 256 fine ones. The box's histogram
 * slides along x by adding one column and taking one away: the coarse bins always, the 16 fine bins under a coarse one only
 * when the result lies there, catching up with the columns missed.
 */
#include "kernels/rank.h"
#include "op/kernels.h"

enum { Z = FV_SIDE_Z, Y = FV_SIDE_Y, X = FV_SIDE_X };
enum { BINS = 16, MAX_COLUMNS = 512 }; /* columns of a tile: histograms fit the second-level cache */

typedef struct histogram {
    uint16_t coarse[BINS], fine[BINS][BINS];
} histogram;

typedef struct job {
    const fv_rank *f;
    fv_side        side[3];
    uint8_t        flip, constant; /* 0x80 makes signed bytes compare as unsigned ones */
    int64_t        width;
    histogram     *column;
    histogram      box;
    int64_t        caught_up[BINS];    /* first column of the box that the fine bins stand for */
    int            coarse, fine[BINS]; /* where the last result was */
    int64_t       *map;
} job;

static size_t lay_out(job *j, const fv_rank *f, const fv_need *need, void *memory) {
    *j = (job){ .f = f };
    fv__box_sides(&f->box, need, j->side);
    const fv_side *x = &j->side[X];
    int64_t all = x->end - x->start, most = FV_MAX(MAX_COLUMNS - x->size, MAX_COLUMNS / 2), tiles = (all + most - 1) / most;
    j->width = (all + tiles - 1) / tiles;
    int64_t columns = j->width + x->size - 1;
    j->column = memory;
    j->map = (int64_t *)(j->column + columns);
    return (size_t)columns * (sizeof *j->column + sizeof *j->map);
}

size_t fv__rank_histogram_scratch(const fv_rank *f, const fv_need *need) {
    job j;
    return lay_out(&j, f, need, NULL);
}

/* Adds (or takes, by = -1) one row of voxels to the columns. */
static void count_row(job *j, const uint8_t *row, int64_t columns, int by) {
    const fv_side *x = &j->side[X];
    for (int64_t c = 0; c < columns; c++) {
        uint8_t v = row && j->map[c] >= 0 ? row[(j->map[c] - x->in_start) * x->in_stride] ^ j->flip : j->constant;
        j->column[c].coarse[v >> 4] += (uint16_t)by;
        j->column[c].fine[v >> 4][v & 15] += (uint16_t)by;
    }
}

/* The rows at y of all planes around z. */
static void count_rows(job *j, const uint8_t *in, int64_t z, int64_t y, int64_t columns, int by) {
    const fv_side *sz = &j->side[Z], *sy = &j->side[Y];
    int64_t        row = fv__side_source(sy, j->f->box.border, y);
    for (int64_t i = 0; i < sz->size; i++) {
        int64_t plane = fv__side_source(sz, j->f->box.border, z - sz->before + i);
        bool    outside = row < 0 || plane < 0;
        count_row(j, outside ? NULL : in + (plane - sz->in_start) * sz->in_stride + (row - sy->in_start) * sy->in_stride, columns,
                  by);
    }
}

/* The bin that holds the element of that rank, from where the last one was: neighbouring results are mostly alike. Takes the
 * elements before it off the rank. */
static int find_bin(const uint16_t *bin, int from, int64_t *rank) {
    int64_t before = 0;
    for (int i = 0; i < BINS; i++) before += i < from ? bin[i] : 0;
    while (before > *rank) before -= bin[--from];
    while (before + bin[from] <= *rank) before += bin[from++];
    *rank -= before;
    return from;
}

/* Brings the fine bins under a coarse one to the box that starts at column x. */
static void catch_up(job *j, int coarse, int64_t x) {
    uint16_t *fine = j->box.fine[coarse];
    int64_t   size = j->side[X].size, since = j->caught_up[coarse];
    if (since < 0 || x - since >= size) {
        memset(fine, 0, sizeof j->box.fine[coarse]);
        for (int64_t c = x; c < x + size; c++)
            for (int i = 0; i < BINS; i++) fine[i] += j->column[c].fine[coarse][i];
    } else
        for (int64_t c = since; c < x; c++)
            for (int i = 0; i < BINS; i++) fine[i] += j->column[c + size].fine[coarse][i] - j->column[c].fine[coarse][i];
    j->caught_up[coarse] = x;
}

static void result_row(job *j, uint8_t *out, int64_t count) {
    int64_t size = j->side[X].size, stride = j->side[X].out_stride;
    memset(j->box.coarse, 0, sizeof j->box.coarse);
    for (int i = 0; i < BINS; i++) j->caught_up[i] = -1;
    for (int64_t c = 0; c < size - 1; c++)
        for (int i = 0; i < BINS; i++) j->box.coarse[i] += j->column[c].coarse[i];
    for (int64_t x = 0; x < count; x++) {
        const uint16_t *added = j->column[x + size - 1].coarse;
        for (int i = 0; i < BINS; i++) j->box.coarse[i] += added[i];
        int64_t rank = j->f->rank;
        int     coarse = j->coarse = find_bin(j->box.coarse, j->coarse, &rank);
        catch_up(j, coarse, x);
        int fine = j->fine[coarse] = find_bin(j->box.fine[coarse], j->fine[coarse], &rank);
        out[x * stride] = (uint8_t)(coarse << 4 | fine) ^ j->flip;
        const uint16_t *taken = j->column[x].coarse;
        for (int i = 0; i < BINS; i++) j->box.coarse[i] -= taken[i];
    }
}

static void channel(job *j, const uint8_t *in, uint8_t *out) {
    const fv_side *sz = &j->side[Z], *sy = &j->side[Y], *sx = &j->side[X];
    for (int64_t z = sz->start; z < sz->end; z++)
        for (int64_t x = sx->start; x < sx->end; x += j->width) {
            int64_t count = FV_MIN(j->width, sx->end - x), columns = count + sx->size - 1;
            for (int64_t c = 0; c < columns; c++) j->map[c] = fv__border_index(j->f->box.border, x - sx->before + c, sx->n);
            memset(j->column, 0, (size_t)columns * sizeof *j->column);
            for (int64_t i = 0; i < sy->size - 1; i++) count_rows(j, in, z, sy->start - sy->before + i, columns, 1);
            for (int64_t y = sy->start; y < sy->end; y++) {
                count_rows(j, in, z, y - sy->before + sy->size - 1, columns, 1);
                result_row(j,
                           out + (z - sz->start) * sz->out_stride + (y - sy->start) * sy->out_stride +
                               (x - sx->start) * sx->out_stride,
                           count);
                count_rows(j, in, z, y - sy->before, columns, -1);
            }
        }
}

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

void fv__rank_histogram_run(const fv_rank *f, const fv_run *r) {
    job j;
    lay_out(&j, f, &r->need, r->scratch);
    fv__box_strides(&f->box, r, 1, j.side);
    FV_PASTE(fv_kernels_, FV_ISA).convert(&j.constant, r->in[0]->dtype, &f->box.cval, FV_FLOAT64, 1);
    j.flip = fv__key_of(r->in[0]->dtype, false) == FV_KEY_FLIP ? 0x80 : 0;
    j.constant ^= j.flip;
    fv_channels c;
    for (fv__channels_begin(&c, &f->box, r); fv__channels_next(&c);) channel(&j, c.in, c.out);
}
