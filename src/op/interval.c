/* Estimates of reductions from some of their chunks. */
#include "op/interval.h"
#include "base/math.h"
#include "base/take.h"
#include "op/moments.h"
#include "op/random.h"
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- Student's t */

/* M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions, 26.2.23 (absolute error below 4.5e-4). */
static double normal(double p) {
    double t = sqrt(-2 * fv__ln(1 - p));
    return t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

/* 26.7.5 of the same. */
double fv__student(double p, double n) {
    double z = normal(p), s = z * z;
    double g1 = z * (s + 1) / 4, g2 = z * (3 + s * (16 + s * 5)) / 96, g3 = z * (-15 + s * (17 + s * (19 + s * 3))) / 384,
           g4 = z * (-945 + s * (-1920 + s * (1482 + s * (776 + s * 79)))) / 92160;
    return z + (g1 + (g2 + (g3 + g4 / n) / n) / n) / n;
}

/* ---------------------------------------------------------------- ratios */

enum { REPLICATES = 999, MOST_RESAMPLED = 1024, MOST_OF_ALL = 16 * MOST_RESAMPLED };

typedef struct ratio {
    double value, deviation; /* of the estimate, as if the population were infinite */
    double informative;
} ratio;

/* pick NULL: all of them. */
static ratio ratio_of(const double *x, const double *y, const int32_t *pick, int64_t n) {
    double sum_x = 0, sum_y = 0, squares = 0, fourth = 0;
    for (int64_t i = 0; i < n; i++) {
        sum_x += x[pick ? pick[i] : i];
        sum_y += y[pick ? pick[i] : i];
    }
    double value = sum_y / sum_x;
    for (int64_t i = 0; i < n; i++) {
        double d = y[pick ? pick[i] : i] - value * x[pick ? pick[i] : i];
        squares += d * d;
        fourth += d * d * d * d;
    }
    double deviation = sqrt(squares / (double)(n - 1) * (double)n) / fabs(sum_x);
    return (ratio){ value, deviation, fourth > 0 ? squares * squares / fourth : 0 };
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Studentised deviations of resampled ratios, below and above which (1 - confidence) / 2 of them lie. A resample without any
 * variation lies infinitely far out. */
static void bootstrap_t(const fv_sample *s, const double *x, const double *y, ratio all, int32_t *pick, double *t, double *low,
                        double *high) {
    int64_t n = s->seen;
    for (int64_t b = 0; b < REPLICATES; b++) {
        uint64_t hash = fv__place_hash(s->seed, 1, n, b, 0);
        for (int64_t i = 0; i < n; i++) pick[i] = (int32_t)(fv__uniform(hash, (uint64_t)i) * (double)n);
        ratio  one = ratio_of(x, y, pick, n);
        double d = one.value - all.value;
        t[b] = one.deviation > 0 ? d / one.deviation : d < 0 ? -1e300 : d > 0 ? 1e300 : 0;
    }
    qsort(t, REPLICATES, sizeof *t, ascending);
    int64_t outside = (int64_t)((1 - s->confidence) / 2 * (REPLICATES + 1));
    outside = FV_MAX(outside, 1);
    *low = t[outside - 1];
    *high = t[REPLICATES - outside];
    double tail = (1 - s->confidence) / 2, least = 1.0 / (REPLICATES + 1);
    if (tail >= least) return;
    double further = fv__student(1 - tail, (double)(n - 1)) / fv__student(1 - least, (double)(n - 1)); /* than replicates reach */
    *low *= further;
    *high *= further;
}

/* A sample ends where its interval is narrow enough, so rather where chance has made its deviation too small: the wider by what
 * the square of the deviation varies itself, relatively, (kurtosis - 1) / n (F. J. Anscombe, Sequential estimation, J. R. Stat.
 * Soc. B 15, 1953). */
static double price_of_choice(int64_t n, double informative) { return FV_MAX(1 / informative - 1 / (double)n, 0); }

static fv_status estimate_plain(const fv_sample *s, const double *x, const double *y, fv_interval *e, fv_error *error) {
    int64_t n = s->seen;
    ratio   all = ratio_of(x, y, NULL, n);
    double  rest = s->inexact ? 1 : sqrt(1 - (double)n / (double)s->population), below = 0, above = 0;
    e->value = all.value;
    e->low = e->high = NAN;
    e->informative = all.informative;
    snprintf(e->method, sizeof e->method, "too few");
    if (n < FV_LEAST_SAMPLE || !(all.deviation > 0)) return FV_OK;
    below = above = fv__student((1 + s->confidence) / 2, (double)(n - 1));
    bool resampled = n <= MOST_RESAMPLED && n * s->intervals <= MOST_OF_ALL;
    if (resampled) {
        int32_t *pick;
        double  *t, lowest, highest;
        FV_TRY(FV_TAKE(pick, (size_t)n * sizeof *pick, error));
        if (FV_TAKE(t, REPLICATES * sizeof *t, error) != FV_OK) {
            free(pick);
            return FV_ERROR_MEMORY;
        }
        bootstrap_t(s, x, y, all, pick, t, &lowest, &highest);
        below = FV_MAX(below, highest); /* a ratio that comes out too high has its truth below it */
        above = FV_MAX(above, -lowest);
        free(pick);
        free(t);
    }
    double half = all.deviation * rest * (s->chosen ? 1 + price_of_choice(n, all.informative) : 1);
    e->low = all.value - below * half;
    e->high = all.value + above * half;
    snprintf(e->method, sizeof e->method, resampled ? "bootstrap-t" : "student");
    return FV_OK;
}

/* ---------------------------------------------------------------- what is known of all chunks makes it narrower
 * Each way turns the columns into others with nearly the same ratio, but less spread. */

/* Regression on what is known of all chunks: of each sum is taken away what its chunk differs by from the mean there, times the
 * slope that all others have. Since that is 0 over all chunks, the sums still estimate the same, with less spread. The slope of
 * the others, and not of all, because a chunk that makes the slope would look as if it were explained by it. */
static void take_control(const fv_sample *s, double *x, double *y, double *room) {
    (void)room;
    int64_t n = s->seen;
    double  own = ratio_of(x, y, NULL, n).value, known = ratio_of(x, s->control, NULL, n).value, both = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double w = s->control[i] - known * x[i];
        both += (y[i] - own * x[i]) * w;
        squares += w * w;
    }
    for (int64_t i = 0; i < n; i++) {
        double w = s->control[i] - known * x[i], rest = squares - w * w;
        if (rest > 0) y[i] -= (both - (y[i] - own * x[i]) * w) / rest * s->control[i];
    }
}

/* Each stratum counts as much as it has chunks, however many of these were seen, and only what chunks differ by from the others
 * of their stratum is left as spread (Cochran, section 5A.9, stratification after the selection of the sample, and 6.10, one
 * ratio of all strata). A chunk is compared with the others of its stratum and not with all, because it has made their mean. */
static void take_strata(const fv_sample *s, double *x, double *y, double *room) {
    int64_t        n = s->seen;
    const int32_t *at = s->stratum;
    double        *seen = room, *mean = seen + s->strata, *weight = mean + s->strata, sum_x = 0, sum_y = 0;
    double         part = (double)n / (double)s->population;
    memset(room, 0, (size_t)(3 * s->strata) * sizeof *room);
    for (int64_t i = 0; i < n; i++) seen[at[i]]++;
    for (int h = 0; h < s->strata; h++) weight[h] = (double)s->of_stratum[h] / seen[h] * part;
    for (int64_t i = 0; i < n; i++) {
        sum_x += weight[at[i]] * x[i];
        sum_y += weight[at[i]] * y[i];
    }
    double value = sum_y / sum_x;
    for (int64_t i = 0; i < n; i++) mean[at[i]] += (y[i] - value * x[i]) / seen[at[i]];
    for (int64_t i = 0; i < n; i++) {
        double rest = sqrt((1 - seen[at[i]] / (double)s->of_stratum[at[i]]) / (1 - part));
        double apart = (y[i] - value * x[i] - mean[at[i]]) * seen[at[i]] / (seen[at[i]] - 1) * rest;
        x[i] *= weight[at[i]];
        y[i] = value * x[i] + weight[at[i]] * apart;
    }
}

static double width_of(const fv_interval *e) { return isnan(e->high - e->low) ? INFINITY : e->high - e->low; }

/* Another way counts only if it is clearly better: of two widths that chance makes different, the less is too small. */
typedef void turning(const fv_sample *s, double *x, double *y, double *room); /* as many numbers as chunks were seen */

static fv_status try_way(const fv_sample *s, turning *turn, const char *method, const double *x, const double *y, fv_interval *e,
                         fv_error *error) {
    const double clearly = 0.8;
    fv_interval  other = *e;
    size_t       size = (size_t)s->seen * sizeof *x;
    double      *columns;
    FV_TRY(FV_TAKE(columns, 3 * size, error));
    memcpy(columns, x, size);
    memcpy(columns + s->seen, y, size);
    turn(s, columns, columns + s->seen, columns + 2 * s->seen);
    fv_status status = estimate_plain(s, columns, columns + s->seen, &other, error);
    free(columns);
    if (status != FV_OK || !(width_of(&other) < clearly * width_of(e))) return status;
    *e = other;
    snprintf(e->method, sizeof e->method, "%s", method);
    return FV_OK;
}

fv_status fv__estimate_ratio(const fv_sample *s, const double *x, const double *y, fv_interval *e, fv_error *error) {
    FV_TRY(estimate_plain(s, x, y, e, error));
    if (isnan(e->low)) return FV_OK;
    if (s->stratum) FV_TRY(try_way(s, take_strata, "stratified", x, y, e, error));
    if (s->control) FV_TRY(try_way(s, take_control, "control variate", x, y, e, error));
    return FV_OK;
}

/* ---------------------------------------------------------------- quantiles */

/* Places and values of the interval when the quantile lies at `part`. */
typedef struct around {
    double below, above;
} around;

/* By how many times the sample would have to be larger to be good enough there. Beyond the least and the greatest value nothing
 * is known. */
static double times_larger(const fv_sample *s, const fv_ranked *r, double part, around by) {
    double low = part - by.below, high = part + by.above;
    if (!(low > 0 && high < 1)) return INFINITY;
    double value = r->at(r, part), half = FV_MAX(value - r->at(r, low), r->at(r, high) - value);
    double wanted = fv__sampling_wanted(s->chosen, value);
    return wanted > 0 ? half * half / (wanted * wanted) : INFINITY;
}

/* An interval of a quantile is as wide as values lie apart there, and what is asked for may be a part of the value. So where the
 * quantile comes out at dense or large values by chance, the sample ends rather, far before it would have ended at another place
 * of its interval, say when it is R times as large. Between these sizes, the estimate has 1 + ln(R) (z^2 - 1) / 2 times the
 * chance of a single look to lie z deviations away at one time (D. Siegmund, Sequential Analysis, 1985, chapter IV), with z
 * about 2.3. */
static double price_of_place(const fv_sample *s, const fv_ranked *r, double part, around by) {
    const double rate = 2;
    if (!s->chosen) return 1;
    double ends = FV_MAX(times_larger(s, r, part - by.below, by), times_larger(s, r, part + by.above, by));
    double larger = FV_MIN(FV_MAX(ends, 1), (double)s->population / (double)s->seen);
    double doubt = (1 - s->confidence) / 2, freedom = (double)(s->seen - 1);
    return fv__student(1 - doubt / (1 + rate * fv__ln(larger)), freedom) / fv__student(1 - doubt, freedom);
}

bool fv__interval_parts(const fv_sample *s, const fv_ranked *r, double part, fv_interval *e, double *below, double *above) {
    around by = { e->value - e->low, e->high - e->value };
    bool   known = part - by.below > 0 && part + by.above < 1;
    double price = known ? price_of_place(s, r, part, by) : 1;
    *below = part - price * by.below;
    *above = part + price * by.above;
    known = known && *below > 0 && *above < 1;
    if (!known) {
        e->low = e->high = NAN;
        snprintf(e->method, sizeof e->method, "too few");
    } else if (!strcmp(e->method, "bootstrap-t") || !strcmp(e->method, "student"))
        snprintf(e->method, sizeof e->method, "woodruff");
    return known;
}

/* ---------------------------------------------------------------- moments */

typedef struct columns { /* by chunk */
    double *voxels, *sum, *squares;
} columns;

static void release(columns *c) {
    free(c->voxels);
    *c = (columns){ 0 };
}

static fv_status read_columns(fv_sample *s, bool counted, columns *c, fv_error *error) {
    FV_TRY(FV_TAKE(c->voxels, (size_t)(3 * s->seen) * sizeof *c->voxels, error));
    c->sum = c->voxels + s->seen;
    c->squares = c->sum + s->seen;
    for (int64_t i = 0; i < s->seen; i++) {
        const void *data;
        size_t      size;
        fv_status   status = s->partial(s, i, &data, &size, &c->voxels[i], error);
        if (status != FV_OK) {
            release(c);
            return status;
        }
        int64_t count = 0;
        if (counted) memcpy(&count, data, sizeof count);
        const fv_moments *m = data;
        c->sum[i] = counted ? (double)count : fv__sum_value(&m->sum.sum);
        c->squares[i] = counted ? 0 : fv__sum_value(&m->squares.sum);
    }
    return FV_OK;
}

void fv__interval_scale(fv_interval *e, double factor) {
    e->value *= factor;
    e->low *= factor;
    e->high *= factor;
}

void fv__interval_root(fv_interval *e) {
    e->value = sqrt(FV_MAX(e->value, 0));
    if (e->low < 0) e->low = 0;
    e->low = sqrt(e->low);
    e->high = sqrt(e->high);
}

static fv_status of_sums(fv_sample *s, bool counted, double factor, fv_interval *e, fv_error *error) {
    columns c;
    FV_TRY(read_columns(s, counted, &c, error));
    fv_status status = fv__estimate_ratio(s, c.voxels, c.sum, e, error);
    fv__interval_scale(e, factor);
    release(&c);
    return status;
}

fv_status fv__estimate_mean(fv_sample *s, fv_interval *e, fv_error *error) { return of_sums(s, false, 1, e, error); }
fv_status fv__estimate_sum(fv_sample *s, fv_interval *e, fv_error *error) { return of_sums(s, false, s->voxels, e, error); }
fv_status fv__estimate_count(fv_sample *s, fv_interval *e, fv_error *error) {
    FV_TRY(of_sums(s, true, s->voxels, e, error));
    e->low = FV_MAX(e->low, 0);
    e->high = FV_MIN(e->high, s->voxels);
    return FV_OK;
}

/* The mean of squared distances from the sample's mean, which is a ratio as well. */
fv_status fv__estimate_var(fv_sample *s, fv_interval *e, fv_error *error) {
    columns c;
    FV_TRY(read_columns(s, false, &c, error));
    double mean = ratio_of(c.voxels, c.sum, NULL, s->seen).value;
    for (int64_t i = 0; i < s->seen; i++) c.squares[i] += mean * (mean * c.voxels[i] - 2 * c.sum[i]);
    fv_status status = fv__estimate_ratio(s, c.voxels, c.squares, e, error);
    e->value = FV_MAX(e->value, 0);
    if (e->low < 0) e->low = 0;
    release(&c);
    return status;
}

fv_status fv__estimate_std(fv_sample *s, fv_interval *e, fv_error *error) {
    FV_TRY(fv__estimate_var(s, e, error));
    fv__interval_root(e);
    return FV_OK;
}

/* ---------------------------------------------------------------- anything that is merged */

enum { GROUPS = 32, RESAMPLES = 199 };

/* The operator's own finish, of one partial. */
typedef struct evaluation {
    fv_finish       base;
    const fv_bytes *partial;
    fv_scalar       value;
} evaluation;

static size_t merged_size(fv_finish *f, int64_t i) {
    (void)i;
    return ((evaluation *)f)->partial->size;
}

static fv_status merged(fv_finish *f, int64_t i, const void **data, fv_error *error) {
    (void)i;
    (void)error;
    *data = ((evaluation *)f)->partial->data;
    return FV_OK;
}

static fv_status take(fv_finish *f, int64_t index, const void *data, size_t size, fv_error *error) {
    evaluation *e = (evaluation *)f;
    if (index || size != sizeof e->value) return fv_fail(error, FV_ERROR_INTERNAL, "its first pass gives no number");
    memcpy(&e->value, data, size);
    return FV_OK;
}

static fv_status evaluate(const fv_group_way *way, const fv_sample *s, const fv_bytes *partial, double *value, fv_error *error) {
    (void)way;
    evaluation e = { .base = { .params = s->params,
                               .ninputs = 1,
                               .in = { s->in[0] },
                               .out = s->out,
                               .npartials = 1,
                               .size = merged_size,
                               .partial = merged,
                               .put = take },
                     .partial = partial };
    FV_TRY(s->op->passes[0].finish(&e.base, error));
    *value = fv__scalar_number(&e.value);
    return FV_OK;
}

/* ---- partials that are combined as they are */

typedef struct combination {
    fv_group_way base;
    const void  *params;
    void (*combine)(const void *params, fv_bytes *into, const void *partial, size_t size);
} combination;

static fv_status merge(const fv_group_way *way, fv_bytes *into, const void *data, size_t size, fv_error *error) {
    const combination *c = (const combination *)way;
    if (into->size)
        c->combine(c->params, into, data, size);
    else {
        FV_TRY(fv__bytes_need(into, size, error));
        fv__bytes_append(into, data, size);
    }
    return FV_OK;
}

static fv_status make_groups(fv_sample *s, const fv_group_way *way, int groups, fv_bytes *group, fv_bytes *all, fv_error *error) {
    for (int64_t i = 0; i < s->seen; i++) {
        const void *data;
        size_t      size;
        double      voxels;
        FV_TRY(s->partial(s, i, &data, &size, &voxels, error));
        FV_TRY(way->add(way, &group[i % groups], data, size, error));
    }
    for (int g = 0; g < groups; g++) FV_TRY(way->join(way, all, group[g].data, group[g].size, error));
    return FV_OK;
}

/* Square root of the mean square distance of resampled values from that of the whole sample. */
static fv_status spread(const fv_sample *s, const fv_group_way *way, int groups, const fv_bytes *group, double value,
                        double *deviation, fv_error *error) {
    fv_bytes  mixed = { 0 };
    fv_status status = FV_OK;
    double    squares = 0;
    for (int64_t b = 0; b < RESAMPLES && status == FV_OK; b++) {
        uint64_t hash = fv__place_hash(s->seed, 2, s->seen, b, 0);
        double   one = 0;
        fv__bytes_clear(&mixed);
        for (int g = 0; g < groups && status == FV_OK; g++) {
            const fv_bytes *from = &group[(int)(fv__uniform(hash, (uint64_t)g) * groups)];
            status = way->join(way, &mixed, from->data, from->size, error);
        }
        if (status == FV_OK) status = way->value(way, s, &mixed, &one, error);
        squares += (one - value) * (one - value);
    }
    fv__bytes_release(&mixed);
    *deviation = sqrt(squares / RESAMPLES * groups / (groups - 1));
    return status;
}

/* Where the value lies if chunks that were not seen hold more extreme values. */
static fv_status reach_further(fv_sample *s, const fv_group_way *way, fv_bytes *all, fv_interval *e, fv_error *error) {
    double further;
    FV_TRY(way->stretch(way, s, all, error));
    FV_TRY(way->value(way, s, all, &further, error));
    *(further < e->value ? &e->low : &e->high) += further - e->value;
    return FV_OK;
}

fv_status fv__estimate_groups_by(fv_sample *s, const fv_group_way *way, double step, fv_interval *e, fv_error *error) {
    int       groups = (int)FV_MIN(s->seen, GROUPS);
    fv_bytes  group[GROUPS] = { 0 }, all = { 0 };
    double    deviation = 0;
    fv_status status = make_groups(s, way, groups, group, &all, error);
    e->low = e->high = NAN;
    e->informative = groups;
    snprintf(e->method, sizeof e->method, "too few");
    if (status == FV_OK) status = way->value(way, s, &all, &e->value, error);
    if (status == FV_OK && s->seen >= FV_LEAST_SAMPLE) {
        status = spread(s, way, groups, group, e->value, &deviation, error);
        double rest = sqrt(1 - (double)s->seen / (double)s->population);
        double half = fv__student((1 + s->confidence) / 2, groups - 1) * deviation * rest + step;
        e->low = e->value - half;
        e->high = e->value + half;
        snprintf(e->method, sizeof e->method, "bootstrap");
        if (status == FV_OK && way->stretch) status = reach_further(s, way, &all, e, error);
    }
    for (int g = 0; g < groups; g++) fv__bytes_release(&group[g]);
    fv__bytes_release(&all);
    return status;
}

static combination combination_of(const fv_sample *s, fv_group_stretch *stretch) {
    return (combination){ .base = { .add = merge, .join = merge, .value = evaluate, .stretch = stretch },
                          .params = s->params,
                          .combine = s->op->passes[0].combine };
}

fv_status fv__estimate_merged(fv_sample *s, double *value, fv_error *error) {
    combination c = combination_of(s, NULL);
    fv_bytes    group = { 0 }, all = { 0 };
    fv_status   status = make_groups(s, &c.base, 1, &group, &all, error);
    if (status == FV_OK) status = evaluate(&c.base, s, &all, value, error);
    fv__bytes_release(&group);
    fv__bytes_release(&all);
    return status;
}

fv_status fv__estimate_groups(fv_sample *s, double step, fv_group_stretch *stretch, fv_interval *e, fv_error *error) {
    combination c = combination_of(s, stretch);
    return fv__estimate_groups_by(s, &c.base, step, e, error);
}
