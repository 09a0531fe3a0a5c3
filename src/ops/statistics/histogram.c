/* histogram: how many values fall in each of equal bins. */
#include "base/take.h"
#include "kernels/bins.h"
#include "op/interval.h"
#include "op/survey.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    int64_t    bins;
    fv_numbers range;
} histogram;

static const fv_param params[] = {
    FV_PARAM(histogram, bins, .def = "256", .min = 1, .max = 1 << 20, .doc = "number of bins"),
    FV_PARAM(histogram, range, .def = "",
             .doc = "[low, high]: values outside are left out; not given: the smallest and largest value of the image"),
    FV_PARAM_END,
};

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to measure" },
    FV_INPUT_END,
};

static const fv_table_type columns = {
    3,
    { { "low", FV_COLUMN_REAL }, { "high", FV_COLUMN_REAL }, { "count", FV_COLUMN_INTEGER } },
};

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_numbers *range = &((const histogram *)i->params)->range;
    FV_TRY(fv__infer_scalar(i, FV_FLOAT64, error));
    if (range->count != 0 && range->count != 2)
        return fv_fail(error, FV_ERROR_USAGE, "range has %d numbers; give two, [low, high]", range->count);
    double low = range->value[0], high = range->value[1];
    if (range->count && !(low <= high && isfinite(low) && isfinite(high)))
        return fv_fail(error, FV_ERROR_USAGE, "range = [%g, %g]: low must not be above high, and both must be finite", low, high);
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = &columns };
    return FV_OK;
}

/* ---------------------------------------------------------------- bins */

/* Where the range is given, values that are not counted one by one are counted in its bins at once. */
static bool bins_at_once(const fv_need *n) { return !fv__survey_counts(n) && ((const histogram *)n->params)->range.count; }

/* Bins over the range asked for, or over the values; an empty range is widened by one half to both sides. */
static fv_bins bins_between(const histogram *p, fv_dtype dtype, double low, double high) {
    bool    own = !p->range.count;
    fv_bins bins;
    if (!own) low = p->range.value[0], high = p->range.value[1];
    if (low == high) low -= 0.5, high += 0.5, own = false;
    fv__bins_init(&bins, dtype, low, high, own, p->bins);
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

/* The tally counts bins, or values of the type. */
static fv_status put_table(fv_finish *f, const fv_bins *bins, const fv_tally *tally, bool by_value, fv_error *error) {
    double   *edges;
    uint64_t *counts;
    FV_TRY(FV_TAKE(edges, (size_t)(bins->count + 1) * sizeof *edges, error));
    if (FV_TAKE_ZEROED(counts, (size_t)bins->count * sizeof *counts, error) != FV_OK) {
        free(edges);
        return FV_ERROR_MEMORY;
    }
    fv__bins_edges(bins, edges);
    for (int64_t k = 0; tally && k < tally->count; k++) {
        int64_t bin = tally->first + k;
        if (by_value) bin = fv_bin_of_double(bins, edges, (double)(bin + fv__tally_offset(f->in[0]->image.dtype)));
        if (bin >= 0) counts[bin] += tally->counts[k];
    }
    fv_status status = put_rows(f, bins, edges, counts, error);
    free(edges);
    free(counts);
    return status;
}

static int64_t bins_of(const fv_need *n) { return ((const histogram *)n->params)->bins; }
static size_t  bound_bins(const fv_need *n) { return sizeof(fv_tally) + (size_t)bins_of(n) * sizeof(uint64_t); }

static size_t scratch_bins(const fv_need *n) {
    return (size_t)(bins_of(n) + 1) * sizeof(double) + (size_t)bins_of(n) * sizeof(uint32_t);
}

static fv_status count_bins(fv_run *r, const fv_bins *bins, fv_error *error) {
    FV_TRY(fv__tally_check(r->in[0], error));
    double   *edges = r->scratch;
    uint32_t *counts = (uint32_t *)(edges + bins->count + 1);
    fv__bins_edges(bins, edges);
    memset(counts, 0, (size_t)bins->count * sizeof *counts);
    fv__bins_count(bins, edges, r->in[0], counts);
    fv__tally_append(r->partial, counts, 1, bins->count);
    return FV_OK;
}

/* ---------------------------------------------------------------- first pass: all values, bins, or the range of values */

static size_t scratch_survey(const fv_need *n) { return bins_at_once(n) ? scratch_bins(n) : fv__survey_scratch(n); }
static size_t bound_survey(const fv_need *n) { return bins_at_once(n) ? bound_bins(n) : fv__survey_bound(n); }

static fv_status run_survey(fv_run *r, fv_error *error) {
    if (!bins_at_once(&r->need)) return fv__survey_run(r, error);
    fv_bins bins = bins_between(r->need.params, r->in[0]->dtype, 0, 0);
    return count_bins(r, &bins, error);
}

static fv_status finish_counts(fv_finish *f, fv_error *error) {
    fv_dtype        dtype = f->in[0]->image.dtype;
    const fv_tally *tally;
    FV_TRY(fv__survey_tally(f, &tally, error));
    double low = tally ? (double)(tally->first + fv__tally_offset(dtype)) : 0,
           high = tally ? low + (double)(tally->count - 1) : 1;
    fv_bins bins = bins_between(f->params, dtype, low, high);
    return put_table(f, &bins, tally, fv__tally_fits(dtype), error);
}

static fv_status finish_survey(fv_finish *f, fv_error *error) {
    fv_dtype dtype = f->in[0]->image.dtype;
    if (fv__tally_fits(dtype) || ((const histogram *)f->params)->range.count) return finish_counts(f, error);
    fv_extent extent;
    FV_TRY(fv__extent_finish(f, &extent, error));
    double low = fv__scalar_number(&extent.low), high = fv__scalar_number(&extent.high);
    if (!isfinite(low) || !isfinite(high))
        return fv_fail(error, FV_ERROR_INPUT,
                       "the image holds nan or infinite values; give a range, as histogram(image, range = [0, 1])");
    fv_bins bins = bins_between(f->params, dtype, low, high);
    return f->put(f, 0, &bins, sizeof bins, error);
}

/* ---------------------------------------------------------------- second pass: counting in bins */

static void need_bins(const fv_need *n, fv_region *in) {
    if (fv__survey_counts(n) || bins_at_once(n)) fv__need_nothing(&in[0]);
}

static size_t scratch_second(const fv_need *n) { return fv__survey_counts(n) || bins_at_once(n) ? 0 : scratch_bins(n); }

static fv_status run_bins(fv_run *r, fv_error *error) {
    const fv_bins *bins;
    size_t         size;
    if (fv__survey_counts(&r->need) || bins_at_once(&r->need)) return FV_OK;
    FV_TRY(r->results->get(r->results, 0, (const void **)&bins, &size, error));
    return count_bins(r, bins, error);
}

static fv_status finish_bins(fv_finish *f, fv_error *error) {
    const void     *earlier;
    const fv_tally *tally;
    size_t          size;
    FV_TRY(f->results->get(f->results, 0, &earlier, &size, error));
    bool at_once = fv__tally_fits(f->in[0]->image.dtype) || ((const histogram *)f->params)->range.count;
    if (at_once) return f->put(f, 0, earlier, size, error);
    FV_TRY(fv__survey_tally(f, &tally, error));
    return put_table(f, earlier, tally, false, error);
}

static const fv_pass passes[] = {
    { .name = "survey",
      .scratch = scratch_survey,
      .run = run_survey,
      .bound = bound_survey,
      .combine = fv__survey_combine,
      .finish = finish_survey },
    { .name = "bins",
      .need = need_bins,
      .scratch = scratch_second,
      .run = run_bins,
      .bound = bound_bins,
      .combine = fv__tally_combine,
      .finish = finish_bins },
    FV_PASS_END,
};

/* ---------------------------------------------------------------- from some of the chunks */

enum { MOST_ESTIMATED = 4096 };

static const char *hindered(const void *params_, const fv_type *const *in) {
    const histogram *p = params_;
    (void)in;
    if (!p->range.count)
        return "its bins reach from the least to the greatest value, which only the whole image tells; give range = [low, high]";
    return p->bins > MOST_ESTIMATED ? "it has more than 4096 bins" : NULL;
}

/* counts: by chunk and bin, of so many bins from the first on. */
static fv_status count_chunks(fv_sample *s, const fv_bins *bins, int64_t first, int64_t band, const double *edges, double *voxels,
                              double *counts, fv_error *error) {
    fv_dtype dtype = s->in[0]->image.dtype;
    for (int64_t i = 0; i < s->seen; i++) {
        const void *data;
        size_t      size;
        FV_TRY(s->partial(s, i, &data, &size, &voxels[i], error));
        const fv_tally *tally = fv__tally_at(data, size, 0);
        for (int64_t k = 0; tally && k < tally->count; k++) {
            int64_t bin = tally->first + k;
            if (fv__tally_fits(dtype)) bin = fv_bin_of_double(bins, edges, (double)(bin + fv__tally_offset(dtype)));
            if (bin >= first && bin < first + band) counts[i * band + bin - first] += (double)tally->counts[k];
        }
    }
    return FV_OK;
}

static fv_status estimate_bin(fv_sample *s, const double *voxels, const double *counts, int64_t nbins, double *of_bin,
                              fv_interval *e, fv_error *error) {
    double sum = 0;
    for (int64_t i = 0; i < s->seen; i++) sum += of_bin[i] = counts[i * nbins];
    if (s->seen < s->population) {
        FV_TRY(fv__estimate_ratio(s, voxels, of_bin, e, error));
        fv__interval_scale(e, s->voxels);
        e->low = FV_MAX(e->low, sum);
        return FV_OK;
    }
    e->value = e->low = e->high = sum;
    snprintf(e->method, sizeof e->method, "exact");
    return FV_OK;
}

enum { MOST_COUNTS = 1 << 22 }; /* of all chunks and bins at once */

static fv_status estimate_rows(fv_sample *s, fv_estimates *e, fv_error *error) {
    const histogram *p = s->params;
    fv_bins          bins = bins_between(p, s->in[0]->image.dtype, 0, 0);
    double          *edges, *voxels, *counts;
    int64_t          band = FV_MIN(FV_MAX(MOST_COUNTS / FV_MAX(s->seen, 1), 1), bins.count);
    size_t           nedges = (size_t)bins.count + 1, n = (size_t)s->seen;
    FV_TRY(FV_TAKE(edges, (nedges + 2 * n + n * (size_t)band) * sizeof *edges, error));
    voxels = edges + nedges;
    counts = voxels + 2 * n;
    s->intervals = bins.count;
    fv__bins_edges(&bins, edges);
    fv__estimates_init(e, bins.count, 2, 1);
    fv_status status = FV_OK;
    for (int64_t k = 0; k < bins.count && status == FV_OK; k++) {
        int64_t place = k % band;
        if (!place) {
            memset(counts, 0, n * (size_t)band * sizeof *counts);
            status = count_chunks(s, &bins, k, band, edges, voxels, counts, error);
        }
        e->plain[2 * k].real = edges[k];
        e->plain[2 * k + 1].real = edges[k + 1];
        if (status == FV_OK) status = estimate_bin(s, voxels, counts + place, band, voxels + n, &e->interval[k], error);
    }
    free(edges);
    return status;
}

static const fv_column_doc column_docs[] = {
    { "low", .doc = "lower edge of the bin" },
    { "high", .doc = "upper edge of the bin" },
    { "count", .doc = "number of voxels in it" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(histogram) = {
    .name = "histogram",
    .family = "statistics",
    .brief = "count how many values fall into each of equally wide bins",
    .also = "hist, imhist, histcounts, np.histogram, calcHist",
    .version = 2,
    .doc = "Equal to numpy.histogram. A value on an edge belongs to the bin above it; the last bin includes its upper edge. "
           "If range is given, nan is left out.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(histogram),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .example = "histogram(phantom(\"cells\", [200, 200]), bins = 8)",
    .see = "quantile otsu min max",
    .columns = column_docs,
};

const fv_estimator FV_ESTIMATOR(histogram) = { .rows = estimate_rows, .plain = 2, .hindered = hindered };
