/* plot: boxes, violins and bars, one for each place and group. */
#include "base/math.h"
#include "base/take.h"
#include "ops/table/plot.h"
#include <stdlib.h>

enum { HEIGHTS = 96, MOST_TERMS = 800, MOST_OUTLIERS = 300 };

typedef struct {
    int    cell; /* group and place: group * places + place */
    double value;
} entry;

typedef struct {
    const fv__plot *plot;
    entry          *entries;
    int64_t         count;
} entries;

static fv_status keep(void *context, const fv__plot_row *r, fv_error *error) {
    entries *all = context;
    (void)error;
    all->entries[all->count++] = (entry){ r->group * all->plot->across.count + r->at_x, r->y };
    return FV_OK;
}

static int by_cell(const void *a, const void *b) {
    const entry *p = a, *q = b;
    if (p->cell != q->cell) return p->cell < q->cell ? -1 : 1;
    return p->value < q->value ? -1 : p->value > q->value;
}

/* As numpy.quantile: between the two nearest values by their distance. */
static double quantile(const entry *all, int64_t count, double q) {
    double  at = q * (double)(count - 1);
    int64_t i = (int64_t)at;
    return i + 1 < count ? all[i].value + (at - (double)i) * (all[i + 1].value - all[i].value) : all[i].value;
}

static fv__plot_mark mark_of(const fv__plot *p, const char *what, const entry *first) {
    int place = first->cell % p->across.count;
    return (fv__plot_mark){ what, first->cell / p->across.count, place, NAN, NAN, NAN, NAN, place, -1 };
}

/* ---------------------------------------------------------------- boxes */

static fv_status put_box(fv__plot *p, const entry *all, int64_t count, fv_error *error) {
    fv__plot_mark box = mark_of(p, "box", all);
    box.y = quantile(all, count, 0.5);
    box.from = quantile(all, count, 0.25);
    box.to = quantile(all, count, 0.75);
    box.value = (double)count;
    return fv__plot_put(p, &box, error);
}

/* Many that lie close together are one. */
static fv_status put_outliers(fv__plot *p, const entry *all, int64_t from, int64_t to, fv_error *error) {
    double apart = to - from > MOST_OUTLIERS ? (all[to - 1].value - all[from].value) / MOST_OUTLIERS : 0, last = NAN;
    for (int64_t i = from; i < to; i++) {
        if (all[i].value - last < apart) continue;
        fv__plot_mark point = mark_of(p, "point", all);
        point.y = last = all[i].value;
        point.value = 1;
        FV_TRY(fv__plot_put(p, &point, error));
    }
    return FV_OK;
}

/* Whiskers reach the last value within 1.5 times the height of the box, as Tukey has it. */
static fv_status put_boxes(fv__plot *p, const entry *all, int64_t count, fv_error *error) {
    double        low = quantile(all, count, 0.25), high = quantile(all, count, 0.75), reach = 1.5 * (high - low);
    int64_t       first = 0, last = count;
    fv__plot_mark whisker = mark_of(p, "whisker", all);
    while (all[first].value < low - reach) first++;
    while (all[last - 1].value > high + reach) last--;
    whisker.from = all[first].value;
    whisker.to = all[last - 1].value;
    FV_TRY(fv__plot_put(p, &whisker, error));
    FV_TRY(put_box(p, all, count, error));
    FV_TRY(put_outliers(p, all, 0, first, error));
    return put_outliers(p, all, last, count, error);
}

/* ---------------------------------------------------------------- violins */

typedef struct { /* values as the axis has them, many of them as the numbers of a fine histogram */
    double at[MOST_TERMS], weight[MOST_TERMS];
    int    count;
    double low, high, width; /* width: of the bell around each */
} density;

/* Silverman's rule: 0.9 times the smaller of deviation and range of the middle half / 1.34, times n to the power of -1/5. */
static density density_of(const fv__plot *p, const entry *all, int64_t count) {
    density d = { .low = all[0].value, .high = all[count - 1].value };
    double  mean = 0, squares = 0, q1 = quantile(all, count, 0.25), q3 = quantile(all, count, 0.75);
    if (p->log_y) d.low = fv__ln(d.low), d.high = fv__ln(d.high), q1 = fv__ln(q1), q3 = fv__ln(q3);
    d.count = (int)FV_MIN(count, MOST_TERMS);
    for (int64_t i = 0; i < count; i++) {
        double value = p->log_y ? fv__ln(all[i].value) : all[i].value, off = value - mean;
        int    k = count > MOST_TERMS ? (int)((value - d.low) / (d.high - d.low) * MOST_TERMS) : (int)i;
        k = FV_MIN(FV_MAX(k, 0), d.count - 1);
        d.at[k] = count > MOST_TERMS ? d.low + (k + 0.5) * (d.high - d.low) / MOST_TERMS : value;
        d.weight[k]++;
        mean += off / (double)(i + 1);
        squares += off * (value - mean);
    }
    double deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0, middle = (q3 - q1) / 1.34;
    double spread = middle > 0 && middle < deviation ? middle : deviation;
    d.width = 0.9 * spread * fv__exp(-0.2 * fv__ln((double)count));
    return d;
}

static double height_at(const density *d, double at) {
    double sum = 0;
    for (int k = 0; k < d->count; k++) {
        double off = (at - d->at[k]) / d->width;
        if (d->weight[k] > 0 && fabs(off) < 6) sum += d->weight[k] * fv__exp(-0.5 * off * off);
    }
    return sum;
}

static fv_status put_violin(fv__plot *p, const entry *all, int64_t count, fv_error *error) {
    density *d = fv__alloc(sizeof *d);
    double   heights[HEIGHTS], most = 0;
    *d = density_of(p, all, count);
    bool      flat = !(d->width > 0);
    fv_status status = FV_OK;
    for (int i = 0; i < HEIGHTS && !flat; i++) {
        heights[i] = height_at(d, d->low + (d->high - d->low) * i / (HEIGHTS - 1));
        most = FV_MAX(most, heights[i]);
    }
    for (int i = 0; i < HEIGHTS && !flat && status == FV_OK; i++) {
        fv__plot_mark mark = mark_of(p, "density", all);
        double        at = d->low + (d->high - d->low) * i / (HEIGHTS - 1);
        mark.y = p->log_y ? fv__exp(at) : at;
        mark.value = heights[i] / most;
        status = fv__plot_put(p, &mark, error);
    }
    free(d);
    if (status == FV_OK && flat) status = put_outliers(p, all, 0, FV_MIN(count, 1), error);
    return status == FV_OK ? put_box(p, all, count, error) : status;
}

/* ---------------------------------------------------------------- all of them */

fv_status fv__plot_boxes(fv__plot *p, fv_error *error) {
    entries all = { .plot = p };
    FV_TRY(FV_TAKE(all.entries, (size_t)(p->nrows + 1) * sizeof *all.entries, error));
    fv_status status = fv__plot_each(p, keep, &all, error);
    if (status == FV_OK) qsort(all.entries, (size_t)all.count, sizeof *all.entries, by_cell);
    for (int64_t from = 0, to; from < all.count && status == FV_OK; from = to) {
        for (to = from; to < all.count && all.entries[to].cell == all.entries[from].cell;) to++;
        status = p->kind == FV__PLOT_VIOLIN ? put_violin(p, &all.entries[from], to - from, error)
                                            : put_boxes(p, &all.entries[from], to - from, error);
    }
    free(all.entries);
    return status;
}

typedef struct {
    int64_t count;
    double  mean, squares;
} bar;

typedef struct {
    const fv__plot *plot;
    bar            *bars;
} barring;

static fv_status add_to_bar(void *context, const fv__plot_row *r, fv_error *error) {
    const barring *b = context;
    bar           *one = &b->bars[r->group * b->plot->across.count + r->at_x];
    double         off = r->y - one->mean;
    (void)error;
    one->mean += off / (double)++one->count;
    one->squares += off * (r->y - one->mean);
    return FV_OK;
}

fv_status fv__plot_bars(fv__plot *p, fv_error *error) {
    int     count = FV_MAX(p->groups.count, 1) * p->across.count;
    barring b = { .plot = p };
    FV_TRY(FV_TAKE_ZEROED(b.bars, (size_t)(count + 1) * sizeof *b.bars, error));
    fv_status status = fv__plot_each(p, add_to_bar, &b, error);
    for (int i = 0; i < count && status == FV_OK; i++) {
        const bar    *one = &b.bars[i];
        fv__plot_mark mark = mark_of(p, "bar", &(entry){ i, 0 });
        if (!one->count) continue;
        mark.y = p->y >= 0 ? one->mean : (double)one->count;
        mark.value = (double)one->count;
        double deviation = one->count > 1 ? sqrt(one->squares / (double)(one->count - 1)) : 0;
        if (p->y >= 0 && one->count > 1) mark.from = mark.y - deviation, mark.to = mark.y + deviation;
        status = fv__plot_put(p, &mark, error);
    }
    free(b.bars);
    return status;
}
