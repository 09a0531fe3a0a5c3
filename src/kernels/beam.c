/* Parallel rays through bundles of 16 slices. */
#include "kernels/beam.h"
#include "base/math.h"
#include "kernels/vectors.h"

enum { TILE = 16, BLOCK = 64, VECTORS = FV_BEAM_LANES / FV_F32_LANES };

/* Where TILE results look in each of BLOCK lines, and how they weigh the two neighbours there. */
typedef struct table {
    int32_t offset[BLOCK][TILE];
    float   low[BLOCK][TILE], high[BLOCK][TILE];
} table;

static int64_t fixed(double v) { return (int64_t)floor(v * 0x1p32 + 0.5); }

void FV_ISA_NAME(fv__beam_prepare)(fv_beam *b, const fv_geometry *g) {
    double my = (double)(b->rows - 1) / 2, mx = (double)(b->width - 1) / 2;
    for (int64_t a = 0; a < b->nangles; a++) {
        double angle = g->angles.value[a], center = (double)(b->columns - 1) / 2;
        if (!g->radians) angle *= 0x1.1df46a2529d39p-6; /* pi / 180 */
        if (g->center.count) center = g->center.value[g->center.count > 1 ? a : 0];
        double         c = fv__cos(angle), s = fv__sin(angle), major = FV_MAX(fabs(c), fabs(s));
        fv_beam_angle *to = &b->angle[a];
        to->upright = fabs(c) >= fabs(s);
        to->inverse = (float)(1 / major);
        to->base = fixed(center - mx * c + my * s);
        to->along_x = fixed(c);
        to->along_y = fixed(-s);
        /* column = center + (x - mx) c - (y - my) s, solved for x of a row or for y of a column */
        double slope = to->upright ? s / c : c / s;
        double per_column = to->upright ? 1 / c : -1 / s;
        double first = to->upright ? mx - center / c - my * slope : my + center / s - mx * slope;
        to->start = fixed(first);
        to->by_column = fixed(per_column);
        to->by_line = fixed(slope);
    }
}

/* One row of the table: places at, at + step, ... on a line of `size` elements that lie `pitch` floats apart. */
FV_INLINE void fill(int32_t *restrict offset, float *restrict low, float *restrict high, int64_t at, int64_t step, int32_t size,
                    int32_t pitch, float inverse) {
    for (int j = 0; j < TILE; j++) {
        uint64_t place = (uint64_t)at + (uint64_t)j * (uint64_t)step;
        int32_t  index = (int32_t)(place >> 32);
        float    f = (float)(int32_t)((uint32_t)place >> 8) * 0x1p-24f;
        index = index < -FV_BEAM_PAD ? -FV_BEAM_PAD : index > size ? size : index;
        float l = 1 - f * inverse, h = 1 - (1 - f) * inverse;
        offset[j] = (index + FV_BEAM_PAD) * pitch;
        low[j] = (l > 0 ? l : 0) * inverse;
        high[j] = (h > 0 ? h : 0) * inverse;
    }
}

/* Two results at once: four sums a vector, so that no addition waits for the one before. open: NULL, or what earlier lines gave,
 * [results][2][16], which is given back: the sums are not complete yet. */
FV_INLINE void sum_pair(const table *t, int lines, const float *const *line, int64_t next, int j, float *to, float *open,
                        bool complete) {
    fv_f32v low[2][VECTORS] = { { { 0 } } }, high[2][VECTORS] = { { { 0 } } };
    for (int p = 0; p < 2 && open; p++)
        for (int v = 0; v < VECTORS; v++) {
            low[p][v] = fv_f32v_load(open + (2 * (j + p)) * FV_BEAM_LANES + v * FV_F32_LANES);
            high[p][v] = fv_f32v_load(open + (2 * (j + p) + 1) * FV_BEAM_LANES + v * FV_F32_LANES);
        }
    for (int k = 0; k < lines; k++) {
#pragma GCC unroll 2
        for (int p = 0; p < 2; p++) {
            const float *from = line[k] + t->offset[k][j + p];
            fv_f32v      wl = fv_f32v_splat(t->low[k][j + p]), wh = fv_f32v_splat(t->high[k][j + p]);
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++) {
                low[p][v] = fv_f32v_fma(wl, fv_f32v_load(from + v * FV_F32_LANES), low[p][v]);
                high[p][v] = fv_f32v_fma(wh, fv_f32v_load(from + next + v * FV_F32_LANES), high[p][v]);
            }
        }
    }
    for (int p = 0; p < 2 && open; p++)
        for (int v = 0; v < VECTORS; v++) {
            fv_f32v none = { 0 };
            fv_f32v_store(open + (2 * (j + p)) * FV_BEAM_LANES + v * FV_F32_LANES, complete ? none : low[p][v]);
            fv_f32v_store(open + (2 * (j + p) + 1) * FV_BEAM_LANES + v * FV_F32_LANES, complete ? none : high[p][v]);
        }
#pragma GCC unroll 2
    for (int p = 0; p < 2 && complete; p++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            float *place = to + (j + p) * FV_BEAM_LANES + v * FV_F32_LANES;
            fv_f32v_store(place, fv_f32v_load(place) + (low[p][v] + high[p][v]));
        }
}

static void sum_tile(const table *t, int lines, const float *const *line, int64_t next, int64_t count, float *to) {
    float last[TILE * FV_BEAM_LANES];
    if (count == TILE) {
        for (int j = 0; j < TILE; j += 2) sum_pair(t, lines, line, next, j, to, NULL, true);
        return;
    }
    memcpy(last, to, (size_t)count * FV_BEAM_LANES * sizeof *to);
    memset(last + count * FV_BEAM_LANES, 0, (size_t)(TILE - count) * FV_BEAM_LANES * sizeof *to);
    for (int j = 0; j < count; j += 2) sum_pair(t, lines, line, next, j, last, NULL, true);
    memcpy(to, last, (size_t)count * FV_BEAM_LANES * sizeof *to);
}

void FV_ISA_NAME(fv__beam_project)(const fv_beam *b, const float *image, int64_t angle, int64_t first, int64_t count, float *to) {
    const fv_beam_angle *a = &b->angle[angle];
    int64_t              row = (b->width + 2 * FV_BEAM_PAD) * FV_BEAM_LANES; /* floats of a row */
    int64_t              nlines = a->upright ? b->rows : b->width, size = a->upright ? b->width : b->rows;
    int64_t              between = a->upright ? row : FV_BEAM_LANES, pitch = a->upright ? FV_BEAM_LANES : row;
    const float         *line[BLOCK], *top = image + FV_BEAM_PAD * between;
    table                t;
    memset(to, 0, (size_t)count * FV_BEAM_LANES * sizeof *to);
    for (int64_t j = 0; j < count; j += TILE)
        for (int64_t k = 0; k < nlines; k += BLOCK) {
            int lines = (int)FV_MIN(BLOCK, nlines - k);
            for (int i = 0; i < lines; i++) {
                line[i] = top + (k + i) * between;
                fill(t.offset[i], t.low[i], t.high[i], a->start + (first + j) * a->by_column + (k + i) * a->by_line, a->by_column,
                     (int32_t)size, (int32_t)pitch, 1);
            }
            sum_tile(&t, lines, line, pitch, FV_MIN(TILE, count - j), to + j * FV_BEAM_LANES);
        }
    for (int64_t i = 0; i < count * FV_BEAM_LANES; i++) to[i] *= a->inverse;
}

/* Where TILE voxels from x on look in `lines` projections from `first` on. */
static void look(const fv_beam *b, fv_beam_weights weights, int64_t first, int lines, int64_t y, int64_t x, table *t) {
    for (int i = 0; i < lines; i++) {
        const fv_beam_angle *a = &b->angle[first + i];
        fill(t->offset[i], t->low[i], t->high[i], a->base + x * a->along_x + y * a->along_y, a->along_x, (int32_t)b->columns,
             FV_BEAM_LANES, weights == FV_BEAM_JOSEPH ? a->inverse : 1);
    }
}

void FV_ISA_NAME(fv__beam_gather)(const fv_beam *b, const float *sinogram, fv_beam_weights weights, int64_t from, int64_t until,
                                  int64_t y, int64_t x, int64_t count, float *to) {
    int64_t      pitch = (b->columns + 2 * FV_BEAM_PAD) * FV_BEAM_LANES;
    const float *line[BLOCK];
    table        t;
    memset(to, 0, (size_t)count * FV_BEAM_LANES * sizeof *to);
    for (int64_t j = 0; j < count; j += TILE)
        for (int64_t k = from; k < until; k += BLOCK) {
            int lines = (int)FV_MIN(BLOCK, until - k);
            for (int i = 0; i < lines; i++) line[i] = sinogram + (k + i) * pitch;
            look(b, weights, k, lines, y, x + j, &t);
            sum_tile(&t, lines, line, FV_BEAM_LANES, FV_MIN(TILE, count - j), to + j * FV_BEAM_LANES);
        }
}

/* The voxels of a tile that are there; those behind the last are summed for nothing. */
static void sum_on(const table *t, int lines, const float *const *line, int64_t count, bool complete, float *open, float *to) {
    float last[TILE * FV_BEAM_LANES], opened[2 * TILE * FV_BEAM_LANES];
    bool  whole = count == TILE;
    if (!whole) {
        memset(last, 0, sizeof last);
        memset(opened, 0, sizeof opened);
        memcpy(last, to, (size_t)count * FV_BEAM_LANES * sizeof *to);
        memcpy(opened, open, (size_t)count * 2 * FV_BEAM_LANES * sizeof *to);
    }
    for (int j = 0; j < count; j += 2)
        sum_pair(t, lines, line, FV_BEAM_LANES, j, whole ? to : last, whole ? open : opened, complete);
    if (whole) return;
    memcpy(to, last, (size_t)count * FV_BEAM_LANES * sizeof *to);
    memcpy(open, opened, (size_t)count * 2 * FV_BEAM_LANES * sizeof *to);
}

void FV_ISA_NAME(fv__beam_gather_on)(const fv_beam *b, const float *sinogram, fv_beam_weights weights, int64_t from,
                                     int64_t until, int64_t y, int64_t x, int64_t count, float *open, float *to) {
    int64_t      pitch = (b->columns + 2 * FV_BEAM_PAD) * FV_BEAM_LANES;
    const float *line[BLOCK];
    table        t;
    for (int64_t j = 0; j < count; j += TILE)
        for (int64_t k = from, end; k < until; k = end) {
            end = FV_MIN(until, (k / BLOCK + 1) * BLOCK);
            int  lines = (int)(end - k);
            bool complete = end % BLOCK == 0 || end == b->nangles;
            for (int i = 0; i < lines; i++) line[i] = sinogram + (k - from + i) * pitch;
            look(b, weights, k, lines, y, x + j, &t);
            sum_on(&t, lines, line, FV_MIN(TILE, count - j), complete, open + 2 * j * FV_BEAM_LANES, to + j * FV_BEAM_LANES);
        }
}

/* ---------------------------------------------------------------- weights alone */

/* What the two neighbours at an offset weigh, leaving out those in the border. */
FV_INLINE float seen(const table *t, int i, int j, int32_t size, int32_t pitch) {
    int32_t at = t->offset[i][j], first = FV_BEAM_PAD * pitch;
    float   low = at >= first && at < first + size * pitch ? t->low[i][j] : 0;
    float   high = at >= first - pitch && at < first + (size - 1) * pitch ? t->high[i][j] : 0;
    return low + high;
}

void FV_ISA_NAME(fv__beam_lengths)(const fv_beam *b, int64_t angle, float *to) {
    const fv_beam_angle *a = &b->angle[angle];
    int64_t              nlines = a->upright ? b->rows : b->width, size = a->upright ? b->width : b->rows;
    table                t;
    for (int64_t j = 0; j < b->columns; j += TILE) {
        float sum[TILE] = { 0 };
        for (int64_t k = 0; k < nlines; k++) {
            fill(t.offset[0], t.low[0], t.high[0], a->start + j * a->by_column + k * a->by_line, a->by_column, (int32_t)size, 1,
                 1);
            for (int i = 0; i < TILE; i++) sum[i] += seen(&t, 0, i, (int32_t)size, 1);
        }
        for (int64_t i = 0; i < TILE && j + i < b->columns; i++) to[j + i] = sum[i] * a->inverse;
    }
}

void FV_ISA_NAME(fv__beam_coverage)(const fv_beam *b, int64_t from, int64_t until, int64_t y, float *to) {
    table t;
    for (int64_t j = 0; j < b->width; j += TILE) {
        float sum[TILE] = { 0 };
        for (int64_t k = from; k < until; k++) {
            const fv_beam_angle *a = &b->angle[k];
            fill(t.offset[0], t.low[0], t.high[0], a->base + j * a->along_x + y * a->along_y, a->along_x, (int32_t)b->columns, 1,
                 a->inverse);
            for (int i = 0; i < TILE; i++) sum[i] += seen(&t, 0, i, (int32_t)b->columns, 1);
        }
        for (int64_t i = 0; i < TILE && j + i < b->width; i++) to[j + i] = sum[i];
    }
}

void FV_ISA_NAME(fv__beam_correct)(const fv_beam *b, const float *sinogram, int64_t angle, int64_t y, const float *step,
                                   float *image) {
    const fv_beam_angle *a = &b->angle[angle];
    const float         *line = sinogram + angle * (b->columns + 2 * FV_BEAM_PAD) * FV_BEAM_LANES;
    float               *row = fv__beam_voxel(b, image, y, 0);
    fv_f32v              steps[VECTORS];
    table                t;
    for (int v = 0; v < VECTORS; v++) steps[v] = fv_f32v_load(step + v * FV_F32_LANES);
    for (int64_t x = 0; x < b->width; x += TILE) {
        fill(t.offset[0], t.low[0], t.high[0], a->base + x * a->along_x + y * a->along_y, a->along_x, (int32_t)b->columns, 1,
             a->inverse);
        for (int j = 0; j < TILE && x + j < b->width; j++) {
            float        cover = seen(&t, 0, j, (int32_t)b->columns, 1);
            fv_f32v      share = fv_f32v_splat(cover > 1e-3f ? 1 / cover : 0);
            fv_f32v      wl = fv_f32v_splat(t.low[0][j]), wh = fv_f32v_splat(t.high[0][j]);
            const float *from = line + t.offset[0][j] * FV_BEAM_LANES;
            float       *to = row + (x + j) * FV_BEAM_LANES;
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++, from += FV_F32_LANES, to += FV_F32_LANES) {
                fv_f32v lacks = wl * fv_f32v_load(from) + wh * fv_f32v_load(from + FV_BEAM_LANES);
                fv_f32v_store(to, fv_f32v_load(to) + steps[v] * (share * lacks));
            }
        }
    }
}

/* ---------------------------------------------------------------- one ray */

float FV_ISA_NAME(fv__beam_trace)(const fv_beam *b, int64_t angle, int64_t ray, fv_beam_trail *trail) {
    const fv_beam_angle *a = &b->angle[angle];
    int32_t row = (int32_t)(b->width + 2 * FV_BEAM_PAD) * FV_BEAM_LANES, nlines = (int32_t)(a->upright ? b->rows : b->width);
    int32_t size = (int32_t)(a->upright ? b->width : b->rows), between = a->upright ? row : FV_BEAM_LANES;
    int32_t next = a->upright ? FV_BEAM_LANES : row;
    float   norm[TILE] = { 0 }, sum = 0;
    trail->nlines = nlines;
    trail->next = next;
    for (int32_t k = 0; k < nlines; k += TILE) {
        int32_t offset[TILE], *to = trail->offset + k;
        float   low[TILE], high[TILE], *l = trail->low + k, *h = trail->high + k;
        fill(offset, low, high, a->start + ray * a->by_column + k * a->by_line, a->by_line, size, 1, 1);
        for (int i = 0; i < TILE; i++) {
            int32_t at = offset[i] - FV_BEAM_PAD;
            l[i] = (at >= 0) & (at < size) & (k + i < nlines) ? low[i] : 0;
            h[i] = (at >= -1) & (at < size - 1) & (k + i < nlines) ? high[i] : 0;
            to[i] = (FV_BEAM_PAD + k + i) * between + offset[i] * next;
            norm[i] += l[i] * l[i] + h[i] * h[i];
        }
    }
    for (int i = 0; i < TILE; i++) sum += norm[i];
    return sum;
}

void FV_ISA_NAME(fv__beam_dot)(const fv_beam_trail *trail, const float *image, float *to) {
    fv_f32v low[VECTORS] = { { 0 } }, high[VECTORS] = { { 0 } };
    for (int64_t k = 0; k < trail->nlines; k++) {
        const float *from = image + trail->offset[k];
        fv_f32v      wl = fv_f32v_splat(trail->low[k]), wh = fv_f32v_splat(trail->high[k]);
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            low[v] = fv_f32v_fma(wl, fv_f32v_load(from + v * FV_F32_LANES), low[v]);
            high[v] = fv_f32v_fma(wh, fv_f32v_load(from + trail->next + v * FV_F32_LANES), high[v]);
        }
    }
    for (int v = 0; v < VECTORS; v++) fv_f32v_store(to + v * FV_F32_LANES, low[v] + high[v]);
}

void FV_ISA_NAME(fv__beam_add)(const fv_beam_trail *trail, const float *amount, float *image) {
    fv_f32v add[VECTORS];
    for (int v = 0; v < VECTORS; v++) add[v] = fv_f32v_load(amount + v * FV_F32_LANES);
    for (int64_t k = 0; k < trail->nlines; k++) {
        float  *to = image + trail->offset[k];
        fv_f32v wl = fv_f32v_splat(trail->low[k]), wh = fv_f32v_splat(trail->high[k]);
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            float *a = to + v * FV_F32_LANES, *c = a + trail->next;
            fv_f32v_store(a, fv_f32v_fma(wl, add[v], fv_f32v_load(a)));
            fv_f32v_store(c, fv_f32v_fma(wh, add[v], fv_f32v_load(c)));
        }
    }
}
