/* Thresholds from some of the chunks. Images of up to 16 bits have the counts of all values in each chunk's partial. Of others
 * the first pass finds the range, and beside it this keeps a sketch: how a part of the chunk's voxels, chosen at random, spreads
 * over bins between the chunk's own least and greatest value. Sketches are spread over one grid, and resampled in groups of
 * chunks. */
#include "base/math.h"
#include "base/take.h"
#include "kernels/levels.h"
#include "op/interval.h"
#include "op/random.h"
#include <stdio.h>
#include <stdlib.h>

enum { SKETCH = 1024, GRID = 4096, ENOUGH = 1 << 13, LEAST_PART = 16, PIECE = 16, MOST_STRETCHED = 1 << 19, LEAST_HEIGHT = 64 };

/* ---------------------------------------------------------------- the sketch of a chunk */

size_t fv__levels_survey_scratch(const fv_need *n) {
    return fv__survey_counts(n) ? fv__survey_scratch(n) : SKETCH * sizeof(uint32_t);
}

size_t fv__levels_survey_bound(const fv_need *n) {
    return fv__survey_bound(n) + (fv__survey_counts(n) ? 0 : SKETCH * sizeof(uint32_t));
}

#define ADD(TYPE)                                                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                                                            \
        double place = ((double)((const TYPE *)data)[i] - low) * scale;                                                          \
        counts[place > 0 ? (int)FV_MIN(place, SKETCH - 1) : 0]++;                                                                \
    }                                                                                                                            \
    break;

static void add_piece(fv_dtype dtype, const void *data, int64_t n, double low, double scale, uint32_t *counts) {
    switch (dtype) {
    case FV_UINT32: ADD(uint32_t)
    case FV_INT32: ADD(int32_t)
    case FV_UINT64: ADD(uint64_t)
    case FV_INT64: ADD(int64_t)
    case FV_FLOAT32: ADD(float)
    default: ADD(double)
    }
}

/* Short pieces of all rows, one of each `step` pieces that follow each other, chosen by chance, because every tenth one may meet
 * a pattern that comes back every tenth voxel. Each voxel is as likely as any other (where fewer than `step` pieces are left at
 * the end of a row, perhaps none of them is taken), and chunks choose on their own. */
static void sketch(const fv_block *block, const fv_extent *extent, uint32_t *counts) {
    const fv_region *region = &block->region;
    double           low = fv__scalar_number(&extent->low), width = fv__scalar_number(&extent->high) - low;
    double           scale = width > 0 && isfinite((double)SKETCH / width) ? (double)SKETCH / width : 0;
    int64_t          n = region->ndim ? region->size[region->ndim - 1] : 1;
    int64_t          step = FV_MIN(FV_MAX(extent->count / ENOUGH, 1), LEAST_PART), piece = step > 1 ? PIECE : n;
    uint64_t         chunk = 0, chance = 0;
    fv_rows          rows;
    for (int d = 0; d < region->ndim; d++) chunk = fv__place_hash(chunk, 3, region->start[d], d, 0);
    for (fv__rows_begin(&rows, region); fv__rows_next(&rows);) {
        const char *row = fv__block_at(block, rows.position);
        for (int64_t from = 0; from < n; from += piece * step) {
            int64_t at = from + piece * (int64_t)(fv__mix(chunk + ++chance * 0x9e3779b97f4a7c15u) % (uint64_t)step);
            if (at < n)
                add_piece(block->dtype, row + at * (int64_t)fv_dtype_size(block->dtype), FV_MIN(piece, n - at), low, scale,
                          counts);
        }
    }
}

fv_status fv__levels_survey_run(fv_run *r, fv_error *error) {
    FV_TRY(fv__survey_run(r, error));
    if (fv__survey_counts(&r->need)) return FV_OK;
    fv_extent extent;
    uint32_t *counts = r->scratch;
    memcpy(&extent, r->partial->data, sizeof extent);
    memset(counts, 0, SKETCH * sizeof *counts);
    bool known =
        extent.count && !extent.nan && isfinite(fv__scalar_number(&extent.low)) && isfinite(fv__scalar_number(&extent.high));
    if (known) sketch(r->in[0], &extent, counts);
    fv__bytes_append(r->partial, counts, SKETCH * sizeof *counts);
    return FV_OK;
}

/* ---------------------------------------------------------------- sketches on one grid */

typedef struct group { /* some chunks */
    fv_extent extent;
    double    counts[GRID];
} group;

typedef struct way {
    fv_group_way      base;
    const fv__method *method;
    double            low, width; /* of the grid */
    fv_dtype          dtype;
    bool              real; /* levels are bins, and not whole numbers */
    int64_t           bins;
} way;

/* Adds an amount, spread evenly from one place to another, to cells of width 1. */
static void spread(double from, double to, double amount, int64_t cells, double *counts) {
    from = FV_MIN(FV_MAX(from, 0), (double)cells);
    to = FV_MIN(FV_MAX(to, from), (double)cells);
    int64_t first = FV_MIN((int64_t)from, cells - 1), last = FV_MIN((int64_t)to, cells - 1);
    if (first == last) {
        counts[first] += amount;
        return;
    }
    double density = amount / (to - from);
    counts[first] += density * ((double)(first + 1) - from);
    for (int64_t i = first + 1; i < last; i++) counts[i] += density;
    counts[last] += density * (to - (double)last);
}

/* A group to which the first chunk is added. */
static fv_status begin_group(fv_bytes *into, const fv_extent *extent, fv_error *error) {
    if (into->size) {
        fv__extent_merge(&((group *)into->data)->extent, extent);
        return FV_OK;
    }
    FV_TRY(fv__bytes_need(into, sizeof(group), error));
    into->size = sizeof(group);
    memset(into->data, 0, sizeof(group));
    ((group *)into->data)->extent = *extent;
    return FV_OK;
}

/* Counts of all values of a chunk, where they are more than resampling should have to look at. */
static fv_extent extent_of(const fv_tally *tally, fv_dtype dtype) {
    fv_extent extent;
    fv__extent_init(&extent, FV_FLOAT64);
    if (!tally || !tally->count) return extent;
    extent.low.real = (double)(tally->first + fv__tally_offset(dtype));
    extent.high.real = extent.low.real + (double)(tally->count - 1);
    extent.count = (int64_t)fv__tally_total(tally);
    return extent;
}

static fv_status add_tally(const fv_group_way *base, fv_bytes *into, const void *data, size_t size, fv_error *error) {
    const way      *w = (const way *)base;
    const fv_tally *tally = fv__tally_at(data, size, 0);
    fv_extent       extent = extent_of(tally, w->dtype);
    FV_TRY(begin_group(into, &extent, error));
    double *counts = ((group *)into->data)->counts, cell = w->width / GRID;
    for (int64_t k = 0; tally && k < tally->count; k++) {
        int64_t at = (int64_t)((extent.low.real + (double)k - w->low) / cell);
        counts[FV_MIN(FV_MAX(at, 0), GRID - 1)] += (double)tally->counts[k];
    }
    return FV_OK;
}

static fv_status add_chunk(const fv_group_way *base, fv_bytes *into, const void *data, size_t size, fv_error *error) {
    const way *w = (const way *)base;
    fv_extent  extent;
    uint32_t   counts[SKETCH], taken = 0;
    if (size != sizeof extent + sizeof counts) return fv_fail(error, FV_ERROR_INTERNAL, "a chunk has no sketch of its values");
    memcpy(&extent, data, sizeof extent);
    memcpy(counts, (const char *)data + sizeof extent, sizeof counts);
    for (int k = 0; k < SKETCH; k++) taken += counts[k];
    FV_TRY(begin_group(into, &extent, error));
    double low = fv__scalar_number(&extent.low), width = fv__scalar_number(&extent.high) - low, cell = w->width / GRID;
    double weight = taken ? (double)extent.count / (double)taken : 0;
    for (int k = 0; k < SKETCH; k++)
        if (counts[k])
            spread((low + width * k / SKETCH - w->low) / cell, (low + width * (k + 1) / SKETCH - w->low) / cell,
                   weight * counts[k], GRID, ((group *)into->data)->counts);
    return FV_OK;
}

static fv_status add_group(const fv_group_way *base, fv_bytes *into, const void *data, size_t size, fv_error *error) {
    (void)base;
    if (!into->size) {
        FV_TRY(fv__bytes_need(into, size, error));
        fv__bytes_append(into, data, size);
        return FV_OK;
    }
    group       *sum = (group *)into->data;
    const group *one = data;
    fv__extent_merge(&sum->extent, &one->extent);
    for (int k = 0; k < GRID; k++) sum->counts[k] += one->counts[k];
    return FV_OK;
}

/* ---------------------------------------------------------------- the threshold of a grid */

typedef struct capture {
    fv_finish base;
    fv_scalar value;
} capture;

static fv_status take(fv_finish *f, int64_t index, const void *data, size_t size, fv_error *error) {
    capture *c = (capture *)f;
    if (index || size != sizeof c->value) return fv_fail(error, FV_ERROR_INTERNAL, "a threshold is no number");
    memcpy(&c->value, data, size);
    return FV_OK;
}

/* Levels between the least and the greatest value of the group, as the exact threshold has them. */
static fv_status of_levels(const way *w, const group *g, int64_t levels, double *amounts, fv_tally *tally, fv_finish *f,
                           fv_error *error) {
    bool   real = w->real;
    double low = fv__scalar_number(&g->extent.low), high = fv__scalar_number(&g->extent.high), cell = w->width / GRID;
    double from = real ? low : low - 0.5, level = ((real ? high : high + 0.5) - from) / (double)levels;
    for (int64_t k = 0; k < GRID; k++)
        if (g->counts[k] > 0)
            spread((w->low + (double)k * cell - from) / level, (w->low + (double)(k + 1) * cell - from) / level, g->counts[k],
                   levels, amounts);
    tally->count = levels;
    for (int64_t k = 0; k < levels; k++) tally->counts[k] = (uint64_t)(amounts[k] * 16 + 0.5);
    tally->counts[0] = FV_MAX(tally->counts[0], 1);
    tally->counts[levels - 1] = FV_MAX(tally->counts[levels - 1], 1);
    if (!real) return fv__levels_of_values(f, w->method, tally, g->extent.low.natural, error);
    fv_bins bins;
    fv__bins_init(&bins, w->dtype, low, high, true, levels);
    return fv__levels_of_bins(f, w->method, &bins, tally->counts, error);
}

static fv_status value_of(const fv_group_way *base, const fv_sample *s, const fv_bytes *bytes, double *value, fv_error *error) {
    const way   *w = (const way *)base;
    const group *g = (const group *)bytes->data;
    capture      c = { .base = { .params = s->params, .ninputs = 1, .in = { s->in[0] }, .out = s->out, .put = take } };
    int64_t      levels = w->bins;
    double      *amounts;
    fv_tally    *tally;
    if (!w->real) FV_TRY(fv__levels_span(&g->extent, s->in[0]->image.dtype, &levels, error));
    *value = fv__scalar_number(&g->extent.low);
    if (levels == 1 || !(fv__scalar_number(&g->extent.high) > *value)) return FV_OK;
    FV_TRY(FV_TAKE_ZEROED(amounts, (size_t)levels * sizeof *amounts, error));
    fv_status status = FV_TAKE_ZEROED(tally, sizeof *tally + (size_t)levels * sizeof *tally->counts, error);
    if (status == FV_OK) {
        status = of_levels(w, g, levels, amounts, tally, &c.base, error);
        free(tally);
    }
    free(amounts);
    *value = fv__scalar_number(&c.value);
    return status;
}

/* Of all chunks that were seen. */
static fv_status find_range(fv_sample *s, fv_extent *all, fv_error *error) {
    fv__extent_init(all, fv__tally_fits(s->in[0]->image.dtype) ? FV_FLOAT64 : s->in[0]->image.dtype);
    for (int64_t i = 0; i < s->seen; i++) {
        const void *data;
        size_t      size;
        double      voxels;
        fv_extent   one;
        FV_TRY(s->partial(s, i, &data, &size, &voxels, error));
        if (fv__tally_fits(s->in[0]->image.dtype))
            one = extent_of(fv__tally_at(data, size, 0), s->in[0]->image.dtype);
        else
            memcpy(&one, data, sizeof one);
        fv__extent_merge(all, &one);
    }
    if (all->nan || !isfinite(fv__scalar_number(&all->low)) || !isfinite(fv__scalar_number(&all->high)))
        return fv_fail(error, FV_ERROR_INPUT, "the image holds nan or infinite values");
    return FV_OK;
}

/* ---------------------------------------------------------------- values beyond those that were seen */

/* Of the extreme value of each chunk. If that has an exponential tail, its extreme among all chunks lies farther out than among
 * those seen by the deviation of a Gumbel distribution times the logarithm of all / seen (E. J. Gumbel, Statistics of Extremes,
 * 1958); twice that is rarely passed. */
typedef struct tail {
    double sum, squares;
} tail;

static void add_to(tail *t, double x) {
    t->sum += x;
    t->squares += x * x;
}

static double beyond(const tail *t, const fv_sample *s) {
    double n = (double)s->seen, mean = t->sum / n, variance = FV_MAX(t->squares / n - mean * mean, 0);
    return 2 * sqrt(6 * variance) / 3.14159265358979 * fv__ln((double)s->population / n);
}

static fv_status find_tails(fv_sample *s, double middle, double *below, double *above, fv_error *error) {
    fv_dtype dtype = s->in[0]->image.dtype;
    tail     lows = { 0 }, highs = { 0 };
    for (int64_t i = 0; i < s->seen; i++) {
        const void *data;
        size_t      size;
        double      voxels;
        fv_extent   extent;
        FV_TRY(s->partial(s, i, &data, &size, &voxels, error));
        if (fv__tally_fits(dtype)) {
            const fv_tally *tally = fv__tally_at(data, size, 0);
            extent = extent_of(tally, dtype);
        } else
            memcpy(&extent, data, sizeof extent);
        add_to(&lows, extent.count ? fv__scalar_number(&extent.low) - middle : 0);
        add_to(&highs, extent.count ? fv__scalar_number(&extent.high) - middle : 0);
    }
    *below = beyond(&lows, s);
    *above = beyond(&highs, s);
    return FV_OK;
}

static void move(fv_scalar *end, double by, fv_dtype dtype) {
    if (end->dtype == FV_FLOAT64)
        end->real = dtype == FV_FLOAT32 ? (float)(end->real + by) : end->real + by;
    else
        end->natural += (uint64_t)(int64_t)by;
}

static fv_status stretch_sketch(const fv_group_way *base, fv_sample *s, fv_bytes *all, fv_error *error) {
    const way *w = (const way *)base;
    group     *g = (group *)all->data;
    double     below, above;
    FV_TRY(find_tails(s, w->low, &below, &above, error));
    double low = fv__scalar_number(&g->extent.low), high = fv__scalar_number(&g->extent.high);
    if (!w->real) {
        if (high + above - low + below > MOST_STRETCHED) return FV_OK;
        if (low >= 0) below = FV_MIN(below, low); /* it may be unsigned */
    }
    move(&g->extent.low, -below, w->dtype);
    move(&g->extent.high, above, w->dtype);
    return FV_OK;
}

/* One voxel more at each end; not beyond what the type holds. */
static fv_status stretch_tally(const fv_group_way *base, fv_sample *s, fv_bytes *all, fv_error *error) {
    const fv_tally *tally = fv__tally_at(all->data, all->size, 0);
    fv_dtype        dtype = s->in[0]->image.dtype;
    double          below, above;
    if (!tally || !tally->count) return FV_OK;
    int64_t low = tally->first, high = low + tally->count - 1;
    FV_TRY(find_tails(s, (double)(low + fv__tally_offset(dtype)), &below, &above, error));
    int64_t ends[2][3] = { { FV_MAX(low - (int64_t)below, 0), 1, 1 },
                           { FV_MIN(high + (int64_t)above, fv__tally_keys(dtype) - 1), 1, 1 } };
    for (int k = 0; k < 2; k++) FV_TRY(base->join(base, all, ends[k], sizeof ends[k], error));
    return FV_OK;
}

static double seen_voxels(const fv_sample *s) { return s->voxels * (double)s->seen / (double)s->population; }

/* Of many values, resampling looks at bins; the threshold itself is that of all values. */
static fv_status of_many_values(fv_sample *s, way *w, fv_interval *e, fv_error *error) {
    double value;
    FV_TRY(fv__estimate_merged(s, &value, error));
    w->base.add = add_tally;
    w->real = true;
    w->bins = GRID;
    w->dtype = s->in[0]->image.dtype;
    FV_TRY(fv__estimate_groups_by(s, &w->base, w->width / GRID, e, error));
    e->low += value - e->value;
    e->high += value - e->value;
    e->value = value;
    if (w->method->heights && seen_voxels(s) < LEAST_HEIGHT * w->width) {
        e->low = e->high = NAN;
        snprintf(e->method, sizeof e->method, "too few");
    }
    return FV_OK;
}

fv_status fv__levels_estimate(fv_sample *s, const fv__method *method, fv_interval *e, fv_error *error) {
    fv_dtype  dtype = s->in[0]->image.dtype;
    fv_extent all;
    FV_TRY(find_range(s, &all, error));
    double low = fv__scalar_number(&all.low), width = fv__scalar_number(&all.high) - low;
    if (!(width > 0)) { /* chunks of one value say nothing of the others */
        *e = (fv_interval){ .value = low, .low = NAN, .high = NAN };
        snprintf(e->method, sizeof e->method, "too few");
        return FV_OK;
    }
    way w = { .base = { .add = add_chunk, .join = add_group, .value = value_of, .stretch = stretch_sketch },
              .method = method,
              .low = low,
              .width = width,
              .dtype = dtype,
              .real = fv_dtype_is_float(dtype),
              .bins = FV_MIN(fv__levels_bins(method, s->params), GRID) };
    if (fv__tally_fits(dtype) && width > GRID && !method->put) return of_many_values(s, &w, e, error);
    if (fv__tally_fits(dtype)) return fv__estimate_groups(s, 1, stretch_tally, e, error);
    double step = w.real ? width / (double)w.bins : FV_MAX(1, width / SKETCH);
    return fv__estimate_groups_by(s, &w.base, step, e, error);
}

const char *fv__levels_hindered(const void *params, const fv_type *const *in) {
    (void)params;
    return in[0]->image.dtype == FV_BOOL ? "a mask has two values, and its threshold tells nothing" : NULL;
}
