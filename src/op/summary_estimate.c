/* Estimates of summaries from some of the units whose rows they are of. */
#include "op/summary_estimate.h"
#include "base/take.h"
#include "op/interval.h"
#include <stdio.h>
#include <stdlib.h>

fv_status fv__summary_units_take(fv__summary_units *u, int64_t count, fv_error *error) {
    FV_TRY(FV_TAKE(u->end, (size_t)(count + 1) * sizeof *u->end, error));
    FV_TRY(FV_TAKE(u->rows, (size_t)(count + 1) * sizeof *u->rows, error));
    return FV_TAKE(u->size, (size_t)(count + 1) * sizeof *u->size, error);
}

void fv__summary_units_release(fv__summary_units *u) {
    free(u->value);
    free(u->end);
    free(u->rows);
    free(u->size);
    *u = (fv__summary_units){ 0 };
}

const char *fv__summary_hindered(fv__summary_function function) {
    if (function == FV__MIN || function == FV__MAX)
        return "what was not seen may hold a larger or smaller one; ask for quantile(volume, 0.99)";
    return function >= FV__COUNT_DISTINCT ? "only count, sum, mean, std, median and quantile follow from a sample" : NULL;
}

int fv__numbers_ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fv__sorted_quantile(const double *sorted, int64_t n, double share) {
    double  at = share * (double)(n - 1);
    int64_t below = (int64_t)floor(at);
    if (!n) return NAN;
    return fv__summary_between(sorted[below], sorted[FV_MIN(below + 1, n - 1)], at - (double)below);
}

static double sum_between(const double *value, int64_t from, int64_t to, double centre, bool squares) {
    double sum = 0;
    for (int64_t k = from; k < to; k++) sum += squares ? (value[k] - centre) * (value[k] - centre) : value[k];
    return sum;
}

static double count_up_to(const double *value, int64_t from, int64_t to, double most) {
    int64_t n = 0;
    for (int64_t k = from; k < to; k++) n += value[k] <= most;
    return (double)n;
}

typedef struct ranked {
    fv_ranked     base;
    const double *sorted;
    int64_t       n;
} ranked;

/* Equal values share the room up to the middle between them and their neighbours. */
static double at_part(const fv_ranked *base, double part) {
    const ranked *r = (const ranked *)base;
    double        rank = FV_MIN(FV_MAX(part, 0), 1) * (double)r->n;
    int64_t       first = FV_MIN((int64_t)rank, r->n - 1), last = first;
    const double *at = r->sorted;
    double        value = at[first];
    while (first > 0 && at[first - 1] == value) first--;
    while (last + 1 < r->n && at[last + 1] == value) last++;
    double low = first ? (at[first - 1] + value) / 2 : value, high = last + 1 < r->n ? (value + at[last + 1]) / 2 : value;
    return low + (high - low) * (rank - (double)first) / (double)(last - first + 1);
}

static void bring_back(const fv_sample *s, const double *sorted, int64_t n, double share, fv_interval *e) {
    ranked r = { .base.at = at_part, .sorted = sorted, .n = n };
    double below, above;
    if (fv__interval_parts(s, &r.base, share, e, &below, &above)) {
        e->low = sorted[(int64_t)floor(below * (double)(n - 1))];
        e->high = sorted[(int64_t)ceil(above * (double)(n - 1))];
    }
    e->value = fv__sorted_quantile(sorted, n, share);
}

static fv_status estimate(const fv_sample *s, fv__summary_function function, int column, double share, const fv__summary_units *u,
                          double whole, double *x, fv_interval *e, fv_error *error) {
    double *y = x + s->seen, *sorted = y + s->seen, centre = 0;
    int64_t all = u->end[s->seen - 1];
    bool    total = function == FV__COUNT || function == FV__SUM, ordered = fv__summary_ordered(function);
    if (function == FV__STD) centre = sum_between(u->value, 0, all, 0, false) / (double)all;
    if (ordered) {
        memcpy(sorted, u->value, (size_t)all * sizeof *sorted);
        qsort(sorted, (size_t)all, sizeof *sorted, fv__numbers_ascending);
        centre = fv__sorted_quantile(sorted, all, share);
    }
    for (int64_t i = 0; i < s->seen; i++) {
        int64_t from = i ? u->end[i - 1] : 0, to = u->end[i];
        int64_t n = column < 0 ? u->rows[i] : to - from;
        x[i] = total ? u->size[i] : (double)n;
        y[i] = function == FV__COUNT ? (double)n
               : ordered             ? count_up_to(u->value, from, to, centre)
                                     : sum_between(u->value, from, to, centre, function == FV__STD);
    }
    fv_sample by_value = *s; /* the part below a value differs from stratum to stratum more than its mean does */
    by_value.stratum = NULL;
    FV_TRY(fv__estimate_ratio(ordered ? &by_value : s, x, y, e, error));
    if (total) fv__interval_scale(e, whole);
    if (function == FV__STD) fv__interval_root(e);
    if (function == FV__COUNT) e->low = FV_MAX(e->low, 0);
    if (ordered && all) bring_back(s, sorted, all, share, e);
    return FV_OK;
}

fv_status fv__estimate_summary(const fv_sample *s, fv__summary_function function, int column, double share,
                               const fv__summary_units *u, double whole, fv_interval *e, fv_error *error) {
    double *room;
    FV_TRY(FV_TAKE(room, (size_t)(2 * s->seen + u->end[s->seen - 1] + 1) * sizeof *room, error));
    fv_status status = estimate(s, function, column, share, u, whole, room, e, error);
    free(room);
    return status;
}
