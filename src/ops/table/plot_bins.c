/* plot: histograms and heat maps. */
#include "base/math.h"
#include "base/take.h"
#include "ops/table/plot.h"
#include <stdlib.h>

enum { LEAST_BINS = 5, MOST_OWN_BINS = 100, SHOWN_BINS = 512, HEATMAP_BINS = 50 };

typedef struct { /* equal bins between two numbers, or between their logarithms */
    double  low, width;
    bool    log;
    int64_t count;
} bins;

static double edge(const bins *b, double i) {
    double at = b->low + i * b->width;
    return b->log ? fv__exp(at) : at;
}

static int64_t bin_of(const bins *b, double number) {
    double at = ((b->log ? fv__ln(number) : number) - b->low) / b->width;
    return at > 0 ? FV_MIN((int64_t)at, b->count - 1) : 0;
}

static bins bins_between(double low, double high, bool log, int64_t count) {
    if (log) low = fv__ln(low), high = fv__ln(high);
    if (low == high) low -= 0.5, high += 0.5;
    return (bins){ low, (high - low) / (double)count, log, count };
}

/* ---------------------------------------------------------------- histogram */

/* The rule of Rice: twice the cube root of the number of values. */
static int64_t usual_bins(int64_t rows) {
    int64_t n = 1;
    while (n * n * n < 8 * rows && n < MOST_OWN_BINS) n++;
    return FV_MAX(n, LEAST_BINS);
}

/* Whole numbers lie in the middle of bins that are some whole numbers wide. */
static bins bins_of_whole(double low, double high, int64_t count) {
    double width = ceil((high - low + 1) / (double)count);
    return (bins){ low - 0.5, width, false, (int64_t)ceil((high - low + 1) / width) };
}

typedef struct {
    bins     bins;
    int64_t *counts; /* by group and bin */
} counting;

static fv_status count_row(void *context, const fv__plot_row *r, fv_error *error) {
    const counting *c = context;
    (void)error;
    c->counts[r->group * c->bins.count + bin_of(&c->bins, r->x)]++;
    return FV_OK;
}

static fv_status put_bin(fv__plot *p, int group, double from, double to, double count, fv_error *error) {
    fv__plot_mark mark = { "bin", group, NAN, count, from, to, NAN, -1, -1 };
    return fv__plot_put(p, &mark, error);
}

fv_status fv__plot_histogram(fv__plot *p, fv_error *error) {
    if (!p->nrows) return FV_OK;
    int64_t  count = p->bins ? p->bins : usual_bins(p->nrows);
    bool     whole = p->type->column[p->x].kind != FV_COLUMN_REAL && !p->log_x && p->high_x - p->low_x < 0x1p50;
    int      ngroups = FV_MAX(p->groups.count, 1);
    counting c = { .bins =
                       whole ? bins_of_whole(p->low_x, p->high_x, count) : bins_between(p->low_x, p->high_x, p->log_x, count) };
    FV_TRY(FV_TAKE_ZEROED(c.counts, (size_t)(ngroups * c.bins.count) * sizeof *c.counts, error));
    fv_status status = fv__plot_each(p, count_row, &c, error);
    for (int64_t i = 0; i < ngroups * c.bins.count && status == FV_OK; i++) {
        double bin = (double)(i % c.bins.count);
        status = put_bin(p, (int)(i / c.bins.count), edge(&c.bins, bin), edge(&c.bins, bin + 1), (double)c.counts[i], error);
    }
    free(c.counts);
    return status;
}

/* ---------------------------------------------------------------- rows that are bins */

typedef struct {
    fv__plot *plot;
    int64_t   together; /* neighbours that are drawn as one */
    struct {
        int64_t taken;
        double  from, to, count;
    } * open; /* by group */
} merging;

static fv_status put_open(merging *m, int group, fv_error *error) {
    if (!m->open[group].taken) return FV_OK;
    m->open[group].taken = 0;
    return put_bin(m->plot, group, m->open[group].from, m->open[group].to, m->open[group].count, error);
}

static fv_status merge_bin(void *context, const fv__plot_row *r, fv_error *error) {
    merging *m = context;
    if (m->open[r->group].taken == m->together || (m->open[r->group].taken && m->open[r->group].to != r->x))
        FV_TRY(put_open(m, r->group, error));
    if (!m->open[r->group].taken) m->open[r->group].from = r->x, m->open[r->group].count = 0;
    m->open[r->group].taken++;
    m->open[r->group].to = r->value;
    m->open[r->group].count += r->y;
    return FV_OK;
}

fv_status fv__plot_bins(fv__plot *p, fv_error *error) {
    int     ngroups = FV_MAX(p->groups.count, 1);
    merging m = { p, FV_MAX((p->nrows / ngroups + SHOWN_BINS - 1) / SHOWN_BINS, 1), NULL };
    FV_TRY(FV_TAKE_ZEROED(m.open, (size_t)ngroups * sizeof *m.open, error));
    fv_status status = fv__plot_each(p, merge_bin, &m, error);
    for (int group = 0; group < ngroups && status == FV_OK; group++) status = put_open(&m, group, error);
    free(m.open);
    return status;
}

/* ---------------------------------------------------------------- heat map */

typedef struct {
    const fv__plot *plot;
    bins            across, up;
    int64_t         wide, high;
    double         *sums;
    int64_t        *counts;
} map;

static fv_status add_row(void *context, const fv__plot_row *r, fv_error *error) {
    const map *m = context;
    int64_t    x = m->plot->named_x ? r->at_x : bin_of(&m->across, r->x), y = m->plot->named_y ? r->at_y : bin_of(&m->up, r->y);
    (void)error;
    m->sums[y * m->wide + x] += r->value;
    m->counts[y * m->wide + x]++;
    return FV_OK;
}

static fv_status put_cell(fv__plot *p, const map *m, int64_t x, int64_t y, fv_error *error) {
    int64_t       i = y * m->wide + x;
    fv__plot_mark mark = { "cell", -1, (double)x, (double)y, 1, 1, 0, p->named_x ? (int)x : -1, p->named_y ? (int)y : -1 };
    if (!p->named_x) mark.x = edge(&m->across, (double)x + 0.5), mark.from = m->across.width;
    if (!p->named_y) mark.y = edge(&m->up, (double)y + 0.5), mark.to = m->up.width;
    mark.value = p->value >= 0 ? m->sums[i] / (double)m->counts[i] : (double)m->counts[i];
    return fv__plot_put(p, &mark, error);
}

fv_status fv__plot_heatmap(fv__plot *p, fv_error *error) {
    if (!p->nrows) return FV_OK;
    int64_t count = p->bins ? p->bins : HEATMAP_BINS;
    map     m = { .plot = p, .wide = p->named_x ? p->across.count : count, .high = p->named_y ? p->up.count : count };
    if (!p->named_x) m.across = bins_between(p->low_x, p->high_x, false, count);
    if (!p->named_y) m.up = bins_between(p->low_y, p->high_y, false, count);
    fv_status status = FV_TAKE_ZEROED(m.sums, (size_t)(m.wide * m.high) * sizeof *m.sums, error);
    if (status == FV_OK) status = FV_TAKE_ZEROED(m.counts, (size_t)(m.wide * m.high) * sizeof *m.counts, error);
    if (status == FV_OK) status = fv__plot_each(p, add_row, &m, error);
    for (int64_t y = 0; y < m.high; y++)
        for (int64_t x = 0; x < m.wide && status == FV_OK; x++)
            if (m.counts[y * m.wide + x]) status = put_cell(p, &m, x, y, error);
    free(m.sums);
    free(m.counts);
    return status;
}
