/* otsu: the threshold that best separates two classes of values. */
#include "op/bins.h"
#include "op/survey.h"
#include <stdlib.h>

enum { BINS = 256, MOST_VALUES = 1 << 20 };

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image with dark and bright parts" },
    FV_INPUT_END,
};

static fv_dtype result_type(fv_dtype dtype) { return dtype == FV_BOOL ? FV_FLOAT64 : fv_scalar_type(dtype); }

static fv_status infer(fv_infer *i, fv_error *error) { return fv_infer_scalar(i, result_type(i->in[0]->image.dtype), error); }

/* ---------------------------------------------------------------- the threshold */

/* Index of the first greatest between-class variance of count bins, in doubles and in the order of scikit-image, so that ties
 * fall alike. */
static int64_t best_split(const uint64_t *counts, const double *centres, int64_t count) {
    double *above = fv_alloc((size_t)count * 2 * sizeof *above), *mean_above = above + count, weight = 0, sum = 0, best = -1;
    int64_t index = 0;
    for (int64_t i = count - 1; i >= 0; i--) {
        weight += (double)counts[i];
        sum += (double)counts[i] * centres[i];
        above[i] = weight;
        mean_above[i] = sum / weight;
    }
    weight = sum = 0;
    for (int64_t i = 0; i + 1 < count; i++) {
        weight += (double)counts[i];
        sum += (double)counts[i] * centres[i];
        double distance = sum / weight - mean_above[i + 1], variance = weight * above[i + 1] * (distance * distance);
        if (variance > best) best = variance, index = i;
    }
    free(above);
    return index;
}

static fv_status put_number(fv_finish *f, fv_dtype dtype, int64_t offset, double real, fv_error *error) {
    fv_scalar result = { .dtype = result_type(dtype), .integer = offset };
    if (result.dtype == FV_FLOAT64) result.real = real;
    return fv_put_scalar(f, &result, error);
}

/* Bins of equal width; a bool image has only the first and the last one filled. */
static fv_status put_real_split(fv_finish *f, const fv_bins *bins, const uint64_t *counts, fv_error *error) {
    double edges[BINS + 1], centres[BINS];
    fv_bins_edges(bins, edges);
    for (int i = 0; i < BINS; i++) {
        double sum = edges[i] + edges[i + 1];
        centres[i] = bins->single ? (float)sum / 2 : sum / 2;
    }
    return fv_put_real(f, centres[best_split(counts, centres, BINS)], error);
}

/* One bin a value, from low (an int64, or the bits of a uint64) on. */
static fv_status put_whole_split(fv_finish *f, fv_dtype dtype, const fv_tally *tally, uint64_t low, fv_error *error) {
    double *centres = fv_alloc((size_t)FV_MAX(tally->count, 1) * sizeof *centres);
    for (int64_t i = 0; i < tally->count; i++)
        centres[i] = dtype == FV_UINT64 ? (double)(low + (uint64_t)i) : (double)((int64_t)low + i);
    int64_t best = best_split(tally->counts, centres, tally->count);
    free(centres);
    return put_number(f, dtype, (int64_t)(low + (uint64_t)best), 0, error);
}

/* ---------------------------------------------------------------- first pass: all values, or their range */

static fv_status finish_small(fv_finish *f, fv_dtype dtype, fv_error *error) {
    const fv_tally *tally;
    FV_TRY(fv_survey_tally(f, &tally, error));
    if (!tally) return fv_fail(error, FV_ERROR_INPUT, "the image has no voxels");
    int64_t low = tally->first + fv_tally_offset(dtype);
    if (tally->count == 1) return put_number(f, dtype, low, (double)low, error);
    if (dtype != FV_BOOL) return put_whole_split(f, dtype, tally, (uint64_t)low, error);
    uint64_t counts[BINS] = { [0] = tally->counts[0], [BINS - 1] = tally->counts[1] };
    fv_bins  bins;
    fv_bins_init(&bins, dtype, 0, 1, true, BINS);
    return put_real_split(f, &bins, counts, error);
}

/* What the second pass is to do. */
typedef struct { fv_extent extent; fv_bins bins; int64_t keys; bool constant; } survey;

static fv_status finish_survey(fv_finish *f, fv_error *error) {
    fv_dtype dtype = f->in[0]->image.dtype;
    survey   s = { .keys = BINS };
    if (fv_tally_fits(dtype)) return finish_small(f, dtype, error);
    FV_TRY(fv_extent_finish(f, &s.extent, error));
    double low = fv_scalar_number(&s.extent.low), high = fv_scalar_number(&s.extent.high);
    if (fv_dtype_is_float(dtype)) {
        if (!isfinite(low) || !isfinite(high)) return fv_fail(error, FV_ERROR_INPUT, "the image holds nan or infinite values");
        s.constant = low == high;
        if (!s.constant) fv_bins_init(&s.bins, dtype, low, high, true, BINS);
        return f->put(f, 0, &s, sizeof s, error);
    }
    uint64_t span = s.extent.high.natural - s.extent.low.natural; /* also of int64, by two's complement */
    if (span >= MOST_VALUES)
        return fv_fail(error, FV_ERROR_INPUT,
                       "the values reach from %.0f to %.0f; a %s image may span at most %d values: convert it to float32", low,
                       high, fv_dtype_name(dtype), MOST_VALUES);
    s.constant = span == 0;
    s.keys = (int64_t)span + 1;
    return f->put(f, 0, &s, sizeof s, error);
}

/* ---------------------------------------------------------------- second pass: counting */

static int64_t most_keys(const fv_need *n) {
    return fv_survey_counts(n) ? 0 : fv_dtype_is_float(n->in[0]->image.dtype) ? BINS : MOST_VALUES;
}

static size_t scratch_bins(const fv_need *n) { return (size_t)most_keys(n) * sizeof(uint32_t); }
static size_t bound_bins(const fv_need *n) { return sizeof(fv_tally) + (size_t)most_keys(n) * sizeof(uint64_t); }

#define COUNT(TYPE)                                                                    \
    for (int64_t i = 0; i < n; i++) counts[(uint64_t)((const TYPE *)data)[i] - low]++; \
    break;

static void count_values(const fv_block *block, uint64_t low, uint32_t *counts) {
    int64_t n = block->region.ndim ? block->region.size[block->region.ndim - 1] : 1;
    fv_rows rows;
    for (fv_rows_begin(&rows, &block->region); fv_rows_next(&rows);) {
        const void *data = fv_block_at(block, rows.position);
        switch (block->dtype) {
        case FV_UINT32: COUNT(uint32_t)
        case FV_INT32: COUNT(int32_t)
        default: COUNT(int64_t)
        }
    }
}

static fv_status run_bins(fv_run *r, fv_error *error) {
    const survey *s;
    size_t        size;
    if (fv_survey_counts(&r->need)) return FV_OK;
    FV_TRY(r->results->get(r->results, 0, (const void **)&s, &size, error));
    if (s->constant) return FV_OK;
    FV_TRY(fv_tally_check(r->in[0], error));
    uint32_t *counts = r->scratch;
    memset(counts, 0, (size_t)s->keys * sizeof *counts);
    if (fv_dtype_is_float(r->in[0]->dtype)) {
        double edges[BINS + 1];
        fv_bins_edges(&s->bins, edges);
        fv_bins_count(&s->bins, edges, r->in[0], counts);
    } else
        count_values(r->in[0], s->extent.low.natural, counts);
    fv_tally_append(r->partial, counts, 1, s->keys);
    return FV_OK;
}

static fv_status finish_bins(fv_finish *f, fv_error *error) {
    const void     *earlier;
    const fv_tally *tally;
    size_t          size;
    fv_dtype        dtype = f->in[0]->image.dtype;
    FV_TRY(f->results->get(f->results, 0, &earlier, &size, error));
    if (fv_tally_fits(dtype)) return f->put(f, 0, earlier, size, error);
    const survey *s = earlier;
    if (s->constant) return fv_put_scalar(f, &s->extent.low, error);
    FV_TRY(fv_survey_tally(f, &tally, error)); /* its ends hold the least and the greatest value: nothing was trimmed */
    if (fv_dtype_is_float(dtype)) return put_real_split(f, &s->bins, tally->counts, error);
    return put_whole_split(f, dtype, tally, s->extent.low.natural, error);
}

static const fv_pass passes[] = {
    { .name = "survey", .scratch = fv_survey_scratch, .run = fv_survey_run, .bound = fv_survey_bound,
      .combine = fv_survey_combine, .finish = finish_survey },
    { .name = "bins", .need = fv_survey_need_bins, .scratch = scratch_bins, .run = run_bins, .bound = bound_bins,
      .combine = fv_tally_combine, .finish = finish_bins },
    FV_PASS_END,
};

const fv_op FV_OP(otsu) = {
    .name = "otsu", .family = "statistics", .brief = "the threshold that best separates dark from bright", .version = 1,
    .doc = "Equal to skimage.filters.threshold_otsu: one bin a value for integers, 256 bins from the least to the greatest value "
           "otherwise. Values above the threshold are the bright class. An image of one value gives that value.",
    .citation = "N. Otsu, A threshold selection method from gray-level histograms, IEEE Trans. Sys. Man. Cyber. 9, 1979",
    .inputs = inputs, .result = FV_KIND_SCALAR, .infer = infer, .passes = passes,
    .example = "a = phantom(\"cells\", [64, 64])\nwrite(a > otsu(a), \"cells.png\")",
};
