/* Counting the levels of an image, and the threshold that a method finds in them. */
#include "kernels/levels.h"
#include "op/scratch.h"
#include <stdlib.h>

enum { MOST_VALUES = 1 << 20 };

int64_t fv__levels_bins(const fv__method *method, const void *params) {
    return method->choose_bins ? method->choose_bins(params) : method->bins;
}

static fv_dtype result_type(const fv__method *method, fv_dtype dtype) {
    return method->value || dtype == FV_BOOL ? FV_FLOAT64 : fv__scalar_type(dtype);
}

fv_status fv__levels_infer(fv_infer *i, const fv__method *method, fv_error *error) {
    return fv__infer_scalar(i, result_type(method, i->in[0]->image.dtype), error);
}

/* ---------------------------------------------------------------- the threshold */

/* whole: that of an integer level, an int64 or the bits of a uint64. */
static fv_status put_number(fv_finish *f, const fv__method *method, uint64_t whole, double real, fv_error *error) {
    fv_scalar result = { .dtype = result_type(method, f->in[0]->image.dtype), .natural = whole };
    if (result.dtype == FV_FLOAT64) result.real = real;
    return fv__put_scalar(f, &result, error);
}

/* Bins of equal width; a bool image has only the first and the last one filled. */
fv_status fv__levels_of_bins(fv_finish *f, const fv__method *method, const fv_bins *bins, const uint64_t *counts,
                             fv_error *error) {
    double *edges = fv__alloc((size_t)(2 * bins->count + 1) * sizeof *edges), *centres = edges + bins->count + 1;
    fv__bins_edges(bins, edges);
    for (int64_t i = 0; i < bins->count; i++) {
        double sum = edges[i] + edges[i + 1];
        centres[i] = bins->single ? (float)sum / 2 : sum / 2;
    }
    fv__levels levels = { counts, centres, bins->count, bins->single, .params = f->params };
    fv_status  status = method->put     ? method->put(f, &levels, error)
                        : method->value ? fv__put_real(f, method->value(&levels), error)
                                        : fv__put_real(f, centres[method->split(&levels)], error);
    free(edges);
    return status;
}

/* One level a value, from low (an int64, or the bits of a uint64) on. */
fv_status fv__levels_of_values(fv_finish *f, const fv__method *method, const fv_tally *tally, uint64_t low, fv_error *error) {
    double *centres = fv__alloc((size_t)FV_MAX(tally->count, 1) * sizeof *centres);
    for (int64_t i = 0; i < tally->count; i++)
        centres[i] = f->in[0]->image.dtype == FV_UINT64 ? (double)(low + (uint64_t)i) : (double)((int64_t)low + i);
    fv__levels levels = { tally->counts, centres, tally->count, false, true, low, f->params };
    fv_status  status = method->put     ? method->put(f, &levels, error)
                        : method->value ? put_number(f, method, 0, method->value(&levels), error)
                                        : put_number(f, method, low + (uint64_t)method->split(&levels), 0, error);
    free(centres);
    return status;
}

/* All voxels have one value. */
static fv_status put_constant(fv_finish *f, const fv__method *method, uint64_t whole, double real, fv_error *error) {
    uint64_t   one = 1;
    fv__levels levels = { &one, &real, 1, false, !fv_dtype_is_float(f->in[0]->image.dtype), whole, f->params };
    return method->put ? method->put(f, &levels, error) : put_number(f, method, whole, real, error);
}

/* ---------------------------------------------------------------- first pass: all values, or their range */

static fv_status finish_small(fv_finish *f, const fv__method *method, fv_error *error) {
    fv_dtype        dtype = f->in[0]->image.dtype;
    const fv_tally *tally;
    FV_TRY(fv__survey_tally(f, &tally, error));
    if (!tally) return fv_fail(error, FV_ERROR_INPUT, "the image has no voxels");
    int64_t low = tally->first + fv__tally_offset(dtype);
    if (tally->count == 1) return put_constant(f, method, (uint64_t)low, (double)low, error);
    if (dtype != FV_BOOL || method->put) return fv__levels_of_values(f, method, tally, (uint64_t)low, error);
    uint64_t *counts = fv__alloc((size_t)method->bins * sizeof *counts);
    fv_bins   bins;
    memset(counts, 0, (size_t)method->bins * sizeof *counts);
    counts[0] = tally->counts[0];
    counts[method->bins - 1] = tally->counts[1];
    fv__bins_init(&bins, dtype, 0, 1, true, method->bins);
    fv_status status = fv__levels_of_bins(f, method, &bins, counts, error);
    free(counts);
    return status;
}

/* What the second pass is to do. */
typedef struct {
    fv_extent extent;
    fv_bins   bins;
    int64_t   keys;
    bool      constant;
} survey;

fv_status fv__levels_span(const fv_extent *extent, fv_dtype dtype, int64_t *levels, fv_error *error) {
    uint64_t span = extent->high.natural - extent->low.natural; /* also of int64, by two's complement */
    *levels = (int64_t)span + 1;
    if (span < MOST_VALUES) return FV_OK;
    char least[FV_NUMBER_SIZE], most[FV_NUMBER_SIZE];
    fv__scalar_format(&extent->low, least);
    fv__scalar_format(&extent->high, most);
    return fv_fail(error, FV_ERROR_INPUT,
                   "the values reach from %s to %s; a %s image may span at most %d values: convert it to float32", least, most,
                   fv_dtype_name(dtype), MOST_VALUES);
}

fv_status fv__levels_finish_survey(fv_finish *f, const fv__method *method, fv_error *error) {
    fv_dtype dtype = f->in[0]->image.dtype;
    survey   s = { .keys = fv__levels_bins(method, f->params) };
    if (fv__tally_fits(dtype)) return finish_small(f, method, error);
    FV_TRY(fv__extent_finish(f, &s.extent, error));
    double low = fv__scalar_number(&s.extent.low), high = fv__scalar_number(&s.extent.high);
    if (fv_dtype_is_float(dtype)) {
        if (!isfinite(low) || !isfinite(high)) return fv_fail(error, FV_ERROR_INPUT, "the image holds nan or infinite values");
        s.constant = low == high;
        if (!s.constant) fv__bins_init(&s.bins, dtype, low, high, true, s.keys);
        return f->put(f, 0, &s, sizeof s, error);
    }
    FV_TRY(fv__levels_span(&s.extent, dtype, &s.keys, error));
    s.constant = s.keys == 1;
    return f->put(f, 0, &s, sizeof s, error);
}

/* ---------------------------------------------------------------- second pass: counting */

static int64_t most_keys(const fv_need *n, const fv__method *method) {
    return fv__survey_counts(n) ? 0 : fv_dtype_is_float(n->in[0]->image.dtype) ? fv__levels_bins(method, n->params) : MOST_VALUES;
}

static size_t lay_out(int64_t keys, void *memory, uint32_t **counts, double **edges) {
    fv_scratch pieces = { memory, 0 };
    *counts = fv__scratch_take(&pieces, keys * (int64_t)sizeof **counts);
    *edges = fv__scratch_take(&pieces, (keys + 1) * (int64_t)sizeof **edges);
    return pieces.used;
}

size_t fv__levels_scratch(const fv_need *n, const fv__method *method) {
    uint32_t *counts;
    double   *edges;
    return lay_out(most_keys(n, method), NULL, &counts, &edges);
}

size_t fv__levels_bound(const fv_need *n, const fv__method *method) {
    return sizeof(fv_tally) + (size_t)most_keys(n, method) * sizeof(uint64_t);
}

#define COUNT(TYPE)                                                                                                              \
    for (int64_t i = 0; i < n; i++) counts[(uint64_t)((const TYPE *)data)[i] - low]++;                                           \
    break;

static void count_values(const fv_block *block, uint64_t low, uint32_t *counts) {
    int64_t n = block->region.ndim ? block->region.size[block->region.ndim - 1] : 1;
    fv_rows rows;
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);) {
        const void *data = fv__block_at(block, rows.position);
        switch (block->dtype) {
        case FV_UINT32: COUNT(uint32_t)
        case FV_INT32: COUNT(int32_t)
        default: COUNT(int64_t)
        }
    }
}

fv_status fv__levels_run(fv_run *r, const fv__method *method, fv_error *error) {
    const survey *s;
    size_t        size;
    uint32_t     *counts;
    double       *edges;
    if (fv__survey_counts(&r->need)) return FV_OK;
    FV_TRY(r->results->get(r->results, 0, (const void **)&s, &size, error));
    if (s->constant) return FV_OK;
    FV_TRY(fv__tally_check(r->in[0], error));
    lay_out(most_keys(&r->need, method), r->scratch, &counts, &edges);
    memset(counts, 0, (size_t)s->keys * sizeof *counts);
    if (fv_dtype_is_float(r->in[0]->dtype)) {
        fv__bins_edges(&s->bins, edges);
        fv__bins_count(&s->bins, edges, r->in[0], counts);
    } else
        count_values(r->in[0], s->extent.low.natural, counts);
    fv__tally_append(r->partial, counts, 1, s->keys);
    return FV_OK;
}

fv_status fv__levels_finish(fv_finish *f, const fv__method *method, fv_error *error) {
    const void     *earlier;
    const fv_tally *tally;
    size_t          size;
    fv_dtype        dtype = f->in[0]->image.dtype;
    FV_TRY(f->results->get(f->results, 0, &earlier, &size, error));
    if (fv__tally_fits(dtype)) return f->put(f, 0, earlier, size, error);
    const survey *s = earlier;
    if (s->constant) return put_constant(f, method, s->extent.low.natural, fv__scalar_number(&s->extent.low), error);
    FV_TRY(fv__survey_tally(f, &tally, error)); /* its ends hold the least and the greatest value: nothing was trimmed */
    if (fv_dtype_is_float(dtype)) return fv__levels_of_bins(f, method, &s->bins, tally->counts, error);
    return fv__levels_of_values(f, method, tally, s->extent.low.natural, error);
}
