/* histogram: how many values fall in each of equal bins. Images of at most 16 bits are counted value by value in one pass; others
 * need their range first. */
#include "op/bins.h"
#include "op/extent.h"
#include "op/tally.h"
#include <stdlib.h>

typedef struct { int64_t bins; fv_numbers range; } histogram;

static const fv_param params[] = {
    FV_PARAM(histogram, bins, .def = "256", .min = 1, .max = 1 << 20, .doc = "number of bins"),
    FV_PARAM(histogram, range, .def = "", .doc = "[low, high]: values outside are left out; the image's own least and greatest value if not given"),
    FV_PARAM_END,
};

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to measure" },
    FV_INPUT_END,
};

static const fv_table_type columns = { 3, { { "low", FV_COLUMN_REAL }, { "high", FV_COLUMN_REAL }, { "count", FV_COLUMN_INTEGER } } };

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_numbers *range = &((const histogram *)i->params)->range;
    FV_TRY(fv_infer_scalar(i, FV_FLOAT64, error));
    if (range->count != 0 && range->count != 2)
        return fv_fail(error, FV_ERROR_USAGE, "range has %d numbers; give two, [low, high]", range->count);
    if (range->count && !(range->value[0] <= range->value[1] && isfinite(range->value[0]) && isfinite(range->value[1])))
        return fv_fail(error, FV_ERROR_USAGE, "range = [%g, %g]: low must not be above high, and both must be finite", range->value[0], range->value[1]);
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = &columns };
    return FV_OK;
}

static bool small(const fv_need *n) { return fv_tally_fits(n->in[0]->image.dtype); }

/* ---------------------------------------------------------------- first pass: all values, or their range */

static void need_survey(const fv_need *n, fv_region *in) {
    if (!small(n) && ((const histogram *)n->params)->range.count) fv_need_nothing(&in[0]);
}

static size_t scratch_survey(const fv_need *n) { return small(n) ? fv_tally_scratch(n->in[0]->image.dtype) : 0; }

static size_t bound_survey(const fv_need *n) {
    return small(n) ? sizeof(fv_tally) + (size_t)fv_tally_keys(n->in[0]->image.dtype) * sizeof(uint64_t) : sizeof(fv_extent);
}

static fv_status run_survey(fv_run *r, fv_error *error) {
    return small(&r->need) ? fv_tally_run(r, error) : fv_extent_run(r, error);
}

static void combine_survey(const void *parameters, fv_bytes *into, const void *partial, size_t size) {
    if (((const fv_extent *)partial)->mark == -1) fv_extent_combine(parameters, into, partial, size);
    else fv_tally_combine(parameters, into, partial, size);
}

/* Bins over the range asked for, or over the values; an empty range is widened by one half to both sides. */
static fv_bins bins_between(const histogram *p, fv_dtype dtype, double low, double high) {
    bool    own = !p->range.count;
    fv_bins bins;
    if (!own) low = p->range.value[0], high = p->range.value[1];
    if (low == high) low -= 0.5, high += 0.5, own = false;
    fv_bins_init(&bins, dtype, low, high, own, p->bins);
    return bins;
}

static fv_status put_rows(fv_finish *f, const fv_bins *bins, const double *edges, const uint64_t *counts, fv_error *error) {
    fv_status status = FV_OK;
    for (int64_t i = 0; i < bins->count && status == FV_OK; i++) {
        fv_cell row[3] = { { .real = edges[i] }, { .real = edges[i + 1] }, { .integer = (int64_t)counts[i] } };
        status = f->put(f, 0, row, sizeof row, error);
    }
    return status;
}

static fv_status put_table(fv_finish *f, const fv_bins *bins, const fv_tally *tally, bool by_value, fv_dtype dtype, fv_error *error) {
    double   *edges = fv_alloc((size_t)(bins->count + 1) * sizeof *edges);
    uint64_t *counts = fv_calloc((size_t)bins->count * sizeof *counts);
    fv_bins_edges(bins, edges);
    for (int64_t k = 0; tally && k < tally->count; k++) {
        int64_t bin = tally->first + k;
        if (by_value) bin = fv_bin_of_double(bins, edges, (double)(bin + fv_tally_offset(dtype)));
        if (bin >= 0) counts[bin] += tally->counts[k];
    }
    fv_status status = put_rows(f, bins, edges, counts, error);
    free(edges);
    free(counts);
    return status;
}

static fv_status finish_survey(fv_finish *f, fv_error *error) {
    const histogram *p = f->params;
    fv_dtype         dtype = f->in[0]->image.dtype;
    const void      *partial = NULL;
    if (fv_tally_fits(dtype)) {
        if (f->npartials) FV_TRY(f->partial(f, 0, &partial, error));
        const fv_tally *tally = partial ? fv_tally_at(partial, f->size(f, 0), 0) : NULL;
        double          low = tally && tally->count ? (double)(tally->first + fv_tally_offset(dtype)) : 0;
        double          high = tally && tally->count ? low + (double)(tally->count - 1) : 1;
        fv_bins         bins = bins_between(p, dtype, low, high);
        return put_table(f, &bins, tally, true, dtype, error);
    }
    double low = 0, high = 1;
    if (!p->range.count) {
        fv_extent extent;
        FV_TRY(fv_extent_finish(f, &extent, error));
        low = fv_scalar_number(&extent.low);
        high = fv_scalar_number(&extent.high);
        if (!isfinite(low) || !isfinite(high))
            return fv_fail(error, FV_ERROR_INPUT, "the image holds nan or infinite values; give a range, as histogram(image, range = [0, 1])");
    }
    fv_bins bins = bins_between(p, dtype, low, high);
    return f->put(f, 0, &bins, sizeof bins, error);
}

/* ---------------------------------------------------------------- second pass: counting in bins */

static void need_bins(const fv_need *n, fv_region *in) {
    if (small(n)) fv_need_nothing(&in[0]);
}

static size_t scratch_bins(const fv_need *n) { return small(n) ? 0 : (2 * (size_t)((const histogram *)n->params)->bins + 1) * sizeof(double); }
static size_t bound_bins(const fv_need *n) { return sizeof(fv_tally) + (size_t)((const histogram *)n->params)->bins * sizeof(uint64_t); }

static fv_status run_bins(fv_run *r, fv_error *error) {
    const fv_bins *bins;
    size_t         size;
    if (small(&r->need)) return FV_OK;
    FV_TRY(r->results->get(r->results, 0, (const void **)&bins, &size, error));
    FV_TRY(fv_tally_check(r->in[0], error));
    double   *edges = r->scratch;
    uint32_t *counts = (uint32_t *)(edges + bins->count + 1);
    fv_bins_edges(bins, edges);
    memset(counts, 0, (size_t)bins->count * sizeof *counts);
    fv_bins_count(bins, edges, r->in[0], counts);
    fv_tally_append(r->partial, counts, 1, bins->count);
    return FV_OK;
}

static fv_status finish_bins(fv_finish *f, fv_error *error) {
    const void *earlier, *partial = NULL;
    size_t      size;
    fv_dtype    dtype = f->in[0]->image.dtype;
    FV_TRY(f->results->get(f->results, 0, &earlier, &size, error));
    if (fv_tally_fits(dtype)) return f->put(f, 0, earlier, size, error);
    if (f->npartials) FV_TRY(f->partial(f, 0, &partial, error));
    return put_table(f, earlier, partial ? fv_tally_at(partial, f->size(f, 0), 0) : NULL, false, dtype, error);
}

static const fv_pass passes[] = {
    { .name = "survey", .need = need_survey, .scratch = scratch_survey, .run = run_survey, .bound = bound_survey, .combine = combine_survey, .finish = finish_survey },
    { .name = "bins", .need = need_bins, .scratch = scratch_bins, .run = run_bins, .bound = bound_bins, .combine = fv_tally_combine, .finish = finish_bins },
    FV_PASS_END,
};

const fv_op FV_OP(histogram) = {
    .name = "histogram", .family = "statistics", .brief = "how many values fall in each of equal bins", .version = 1,
    .doc = "A table of low, high and count, equal to numpy.histogram: a value on an edge belongs to the bin above it, the last bin "
           "includes its upper edge. With a range, nan is left out.",
    .inputs = inputs, .params = params, .params_size = sizeof(histogram), .result = FV_KIND_TABLE, .infer = infer, .passes = passes,
    .example = "histogram(phantom(\"cells\", [64, 64]), bins = 16) |> write(\"histogram.csv\")",
};
