/* quantile: the value below which a given part of the values lies. Values are seen as integer keys in the same order; each pass
 * counts 16 more bits of the keys that can still be the two neighbours of the quantile. */
#include "op/interval.h"
#include "op/tally.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    double q;
} quantile;

static const fv_param params[] = {
    FV_PARAM(quantile, q, .min = 0, .max = 1, .doc = "part of the values that lies below; 0.5 gives the median"),
    FV_PARAM_END,
};

static const fv_input inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image to measure" },
    FV_INPUT_END,
};

enum { KEYS = 1 << 16, PASSES = 4 };

static fv_status infer(fv_infer *i, fv_error *error) { return fv__infer_scalar(i, FV_FLOAT64, error); }

/* ---------------------------------------------------------------- keys */

static int key_bits(fv_dtype dtype) { return FV_MAX(8 * (int)fv_dtype_size(dtype), 16); }

static inline uint64_t key32(uint32_t bits) { return bits >> 31 ? (uint32_t)~bits : bits | 0x80000000u; }
static inline uint64_t key64(uint64_t bits) { return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63; }

static double value_of(uint64_t key, fv_dtype dtype) {
    uint32_t narrow = key >> 31 & 1 ? (uint32_t)key & 0x7fffffff : (uint32_t)~key;
    uint64_t wide = key >> 63 ? key & INT64_MAX : ~key;
    float    single;
    double   real;
    switch (dtype) {
    case FV_UINT32: return (double)key;
    case FV_INT32: return (double)key - 0x1p31;
    case FV_UINT64: return (double)key;
    case FV_INT64: return (double)(int64_t)(key ^ (uint64_t)1 << 63);
    case FV_FLOAT32: memcpy(&single, &narrow, sizeof single); return single;
    case FV_FLOAT64: memcpy(&real, &wide, sizeof real); return real;
    default: return (double)((int64_t)key + fv__tally_offset(dtype));
    }
}

/* ---------------------------------------------------------------- what is known after a pass */

typedef struct {
    int64_t  passes; /* made */
    int64_t  count;  /* voxels */
    int      bits;   /* of a key that are known */
    bool     done, nan;
    uint64_t prefix[2]; /* known bits of the two neighbours */
    uint64_t rank[2];   /* of each among the values with these bits */
    double   value;
} state;

static fv_status earlier(fv_results *results, state *s, fv_error *error) {
    const void *data;
    size_t      size;
    *s = (state){ 0 };
    if (!results) return FV_OK;
    FV_TRY(results->get(results, 0, &data, &size, error));
    memcpy(s, data, sizeof *s);
    return FV_OK;
}

/* ---------------------------------------------------------------- counting */

static void need_second(const fv_need *n, fv_region *in) {
    if (key_bits(n->in[0]->image.dtype) < 32) fv__need_nothing(&in[0]);
}

static void need_third(const fv_need *n, fv_region *in) {
    if (key_bits(n->in[0]->image.dtype) < 64) fv__need_nothing(&in[0]);
}

static size_t scratch(const fv_need *n) {
    return fv__tally_fits(n->in[0]->image.dtype) ? fv__tally_scratch(n->in[0]->image.dtype) : 2 * KEYS * sizeof(uint32_t);
}

static size_t bound(const fv_need *n) {
    (void)n;
    return 3 * sizeof(fv_tally) + (2 * KEYS + 1) * sizeof(uint64_t);
}

/* The next 16 bits of the keys that begin with one of the two prefixes; other keys are not counted. Nan is counted in the first
 * pass only. */
typedef struct {
    uint32_t *counts[2], nans;
    uint64_t  prefix[2];
    int       shift;
    bool      two;
} counter;

static inline void count_key(counter *c, uint64_t key) {
    uint64_t upper = key >> c->shift >> 16, place = key >> c->shift & (KEYS - 1);
    if (upper == c->prefix[0]) c->counts[0][place]++;
    if (c->two && upper == c->prefix[1]) c->counts[1][place]++;
}

#define EACH(TYPE, KEY)                                                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                                                            \
        TYPE x = ((const TYPE *)data)[i];                                                                                        \
        count_key(c, KEY);                                                                                                       \
    }                                                                                                                            \
    break;

static void count_row(counter *c, const void *data, fv_dtype dtype, int64_t n) {
    switch (dtype) {
    case FV_UINT32: EACH(uint32_t, x)
    case FV_INT32: EACH(uint32_t, x ^ 0x80000000u)
    case FV_UINT64: EACH(uint64_t, x)
    case FV_INT64: EACH(uint64_t, x ^ (uint64_t)1 << 63)
    case FV_FLOAT32:
        for (int64_t i = 0; i < n; i++) c->nans += ((const float *)data)[i] != ((const float *)data)[i];
        EACH(uint32_t, key32(x))
    default:
        for (int64_t i = 0; i < n; i++) c->nans += ((const double *)data)[i] != ((const double *)data)[i];
        EACH(uint64_t, key64(x))
    }
}

static fv_status run(fv_run *r, fv_error *error) {
    const fv_block *block = r->in[0];
    fv_dtype        dtype = r->need.in[0]->image.dtype;
    state           s;
    FV_TRY(earlier(r->results, &s, error));
    if (s.done) return FV_OK;
    if (fv__tally_fits(dtype)) return fv__tally_run(r, error);
    FV_TRY(fv__tally_check(block, error));
    counter c = { .counts = { r->scratch, (uint32_t *)r->scratch + KEYS },
                  .prefix = { s.prefix[0], s.prefix[1] },
                  .two = s.prefix[0] != s.prefix[1],
                  .shift = key_bits(dtype) - s.bits - 16 };
    int64_t n = block->region.ndim ? block->region.size[block->region.ndim - 1] : 1;
    fv_rows rows;
    memset(r->scratch, 0, 2 * KEYS * sizeof(uint32_t));
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);)
        count_row(&c, fv__block_at(block, rows.position), dtype, n);
    fv__tally_append(r->partial, c.counts[0], 1, KEYS);
    if (c.two)
        fv__tally_append(r->partial, c.counts[1], 1, KEYS);
    else
        fv__tally_append(r->partial, c.counts[0], 1, 0);
    fv__tally_append(r->partial, &c.nans, 1, 1);
    return FV_OK;
}

/* ---------------------------------------------------------------- from counts to the quantile */

/* Linear interpolation in the way of numpy, which takes the difference in the image's type (and has nan between infinities). */
static double between(double a, double b, double t, fv_dtype dtype) {
    if (a == b) return a;
    double difference = dtype == FV_FLOAT32 ? (float)((float)b - (float)a) : b - a;
    return t >= 0.5 ? b - difference * (1 - t) : a + difference * t;
}

static double position(const state *s, const quantile *p) { return (double)(s->count - 1) * p->q; }

static void begin(state *s, const quantile *p, const fv_tally *tally, const fv_tally *nans) {
    s->count = (int64_t)fv__tally_total(tally);
    s->nan = nans && fv__tally_total(nans) > 0;
    s->rank[0] = (uint64_t)FV_MIN((int64_t)floor(position(s, p)), s->count - 1);
    s->rank[1] = (uint64_t)FV_MIN((int64_t)s->rank[0] + 1, s->count - 1);
}

/* Finds the key that holds the value of a rank; the rank becomes that among its equals. */
static void descend(const fv_tally *tally, uint64_t *prefix, uint64_t *rank) {
    int64_t k = 0;
    while (k + 1 < tally->count && *rank >= tally->counts[k]) *rank -= tally->counts[k++];
    *prefix = *prefix << 16 | (uint64_t)(tally->first + k);
}

static void narrow(state *s, const quantile *p, fv_dtype dtype, const void *partial, size_t size) {
    const fv_tally *one = fv__tally_at(partial, size, 0);
    const fv_tally *two = s->prefix[0] != s->prefix[1] ? fv__tally_at(partial, size, 1) : one;
    if (s->bits == 0) begin(s, p, one, fv__tally_at(partial, size, 2));
    descend(one, &s->prefix[0], &s->rank[0]);
    descend(two, &s->prefix[1], &s->rank[1]);
    s->bits += 16;
    s->done = s->nan || s->bits >= key_bits(dtype);
    if (!s->done) return;
    double t = position(s, p), lower = value_of(s->prefix[0], dtype), upper = value_of(s->prefix[1], dtype);
    s->value = s->nan ? NAN : between(lower, upper, t - floor(t), dtype);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const void *partial;
    state       s;
    FV_TRY(earlier(f->results, &s, error));
    if (!s.done && (!f->npartials || !f->size(f, 0))) s.done = true, s.value = NAN; /* no voxels */
    if (!s.done) {
        FV_TRY(f->partial(f, 0, &partial, error));
        narrow(&s, f->params, f->in[0]->image.dtype, partial, f->size(f, 0));
    }
    s.passes++;
    return s.passes == PASSES ? fv__put_real(f, s.value, error) : f->put(f, 0, &s, sizeof s, error);
}

/* ---------------------------------------------------------------- from some of the chunks */

/* A place in a tally: so many counts lie before a key, and this part of its own. */
typedef struct place {
    int64_t key;
    double  part;
} place;

static place place_of(const fv_tally *tally, double rank) {
    int64_t k = 0;
    for (; k + 1 < tally->count && rank >= (double)tally->counts[k]; k++) rank -= (double)tally->counts[k];
    double part = tally->counts[k] ? rank / (double)tally->counts[k] : 0;
    return (place){ tally->first + k, FV_MIN(FV_MAX(part, 0), 1) };
}

static double counts_before(const fv_tally *tally, place at) {
    double before = 0;
    for (int64_t k = 0; k < tally->count && tally->first + k <= at.key; k++)
        before += tally->first + k < at.key ? (double)tally->counts[k] : at.part * (double)tally->counts[k];
    return before;
}

/* The value at a part of the keys that begin with the first 16 bits; of an image of at most 16 bits there is only one. */
static double value_at(place at, fv_dtype dtype) {
    int shift = key_bits(dtype) - 16;
    if (!shift) return value_of((uint64_t)at.key, dtype);
    double least = value_of((uint64_t)at.key << shift, dtype), most = value_of((((uint64_t)at.key + 1) << shift) - 1, dtype);
    return least + at.part * (most - least);
}

static fv_status merge_all(fv_sample *s, fv_bytes *all, fv_error *error) {
    for (int64_t i = 0; i < s->seen; i++) {
        const void *data;
        size_t      size;
        double      voxels;
        FV_TRY(s->partial(s, i, &data, &size, &voxels, error));
        if (i == 0)
            fv__bytes_append(all, data, size);
        else
            fv__tally_combine(s->params, all, data, size);
    }
    return FV_OK;
}

/* The part of all values that lies before a place, chunk by chunk. */
static fv_status parts_before(fv_sample *s, place at, double *x, double *y, fv_error *error) {
    for (int64_t i = 0; i < s->seen; i++) {
        const void *data;
        size_t      size;
        FV_TRY(s->partial(s, i, &data, &size, &x[i], error));
        y[i] = counts_before(fv__tally_at(data, size, 0), at);
    }
    return FV_OK;
}

typedef struct ranked {
    fv_ranked       base;
    const fv_tally *tally;
    double          total;
    fv_dtype        dtype;
} ranked;

static double at_part(const fv_ranked *base, double part) {
    const ranked *r = (const ranked *)base;
    place         at = place_of(r->tally, part * r->total);
    return value_at(at, r->dtype) + (key_bits(r->dtype) == 16 ? at.part - 0.5 : 0);
}

static void bring_back(const fv_sample *s, const fv_tally *tally, double part, double total, fv_interval *e) {
    fv_dtype dtype = s->in[0]->image.dtype;
    ranked   r = { .base.at = at_part, .tally = tally, .total = total, .dtype = dtype };
    double   below, above;
    if (fv__interval_parts(s, &r.base, part, e, &below, &above)) {
        e->low = value_at((place){ place_of(tally, below * total).key, 0 }, dtype);
        e->high = value_at((place){ place_of(tally, above * total).key, 1 }, dtype);
    }
    e->value = value_at(place_of(tally, part * total), dtype);
}

/* What is known of all chunks may tell that another part of the image lies below a place than of the sample. The quantile is then
 * where so much of the sample lies below that it is q of the image (J. N. K. Rao, J. G. Kovar, H. J. Mantel, On estimating
 * distribution functions and quantiles from survey data using auxiliary information, Biometrika 77, 1990). */
static fv_status estimate_of(fv_sample *s, const fv_bytes *all, double *columns, fv_interval *e, fv_error *error) {
    const fv_tally *tally = fv__tally_at(all->data, all->size, 0), *nans = fv__tally_at(all->data, all->size, 2);
    double          total = (double)fv__tally_total(tally), *x = columns, *y = columns + s->seen;
    double          q = ((const quantile *)s->params)->q, part = q;
    fv_sample       by_value = *s; /* the part below a value differs from stratum to stratum more than its mean does */
    by_value.stratum = NULL;
    for (int step = 0; step < 2; step++) {
        double in_x = 0, in_y = 0;
        FV_TRY(parts_before(s, place_of(tally, part * total), x, y, error));
        FV_TRY(fv__estimate_ratio(&by_value, x, y, e, error));
        for (int64_t i = 0; i < s->seen; i++) in_x += x[i], in_y += y[i];
        part = FV_MIN(FV_MAX(q - (e->value - in_y / in_x), 0), 1);
        if (!step && fabs(part - q) < 1e-9) break;
    }
    bring_back(s, tally, part, total, e);
    if (nans && fv__tally_total(nans)) e->value = e->low = e->high = NAN;
    return FV_OK;
}

static fv_status estimate(fv_sample *s, fv_interval *e, fv_error *error) {
    fv_bytes  all = { 0 };
    double   *columns = fv__alloc((size_t)(2 * s->seen) * sizeof *columns);
    fv_status status = merge_all(s, &all, error);
    if (status == FV_OK) status = estimate_of(s, &all, columns, e, error);
    free(columns);
    fv__bytes_release(&all);
    return status;
}

#define PASS .scratch = scratch, .run = run, .bound = bound, .combine = fv__tally_combine, .finish = finish
static const fv_pass passes[] = {
    { .name = "first 16 bits", PASS },
    { .name = "32 bits", .need = need_second, PASS },
    { .name = "48 bits", .need = need_third, PASS },
    { .name = "64 bits", .need = need_third, PASS },
    FV_PASS_END,
};

const fv_op FV_OP(quantile) = {
    .name = "quantile",
    .family = "statistics",
    .brief = "the value below which a given part of the values lies",
    .version = 1,
    .also = "prctile, np.percentile, np.quantile",
    .doc = "Exact, with linear interpolation between neighbours, as numpy.quantile. quantile(image, 0.5) is the median. Nan "
           "if a value is nan. Images of 8 and 16 bits are read once, those of 32 bits twice, those of 64 bits four times.",
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(quantile),
    .result = FV_KIND_SCALAR,
    .infer = infer,
    .passes = passes,
    .example = "quantile(phantom(\"cells\", [200, 200]), 0.9)",
    .see = "percentile histogram mean",
};

const fv_estimator FV_ESTIMATOR(quantile) = { .estimate = estimate, .method = "Woodruff", .control = FV_CONTROL_RANK };
