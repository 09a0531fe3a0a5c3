/* plot: points and lines. */
#include "base/math.h"
#include "base/take.h"
#include "ops/table/plot.h"
#include <stdlib.h>

enum { MOST_POINTS = 4000, WIDE = 300, HIGH = 200, MOST_STEPS = 2000, STEPS = 1000 };

/* ---------------------------------------------------------------- points */

/* A number as a share of the range, 0 to 1. */
static double share(double number, double low, double high, bool log) {
    if (log) number = fv__ln(number / low), high = fv__ln(high / low), low = 0;
    return high > low ? (number - low) / (high - low) : 0.5;
}

static double number_of(double share_of, double low, double high, bool log) {
    return log ? low * fv__exp(share_of * fv__ln(high / low)) : low + share_of * (high - low);
}

static fv_status put_point(void *context, const fv__plot_row *r, fv_error *error) {
    fv__plot     *p = context;
    fv__plot_mark mark = { "point", r->group, r->x, r->y, NAN, NAN, 1, p->named_x ? r->at_x : -1, -1 };
    return fv__plot_put(p, &mark, error);
}

typedef struct {
    const fv__plot *plot;
    double          low_x, high_x;
    int             wide;
    uint32_t       *counts; /* by group, row and column of the grid */
} grid;

static fv_status count_point(void *context, const fv__plot_row *r, fv_error *error) {
    const grid     *g = context;
    const fv__plot *p = g->plot;
    int             x = (int)(share(r->x, g->low_x, g->high_x, p->log_x) * g->wide);
    int             y = (int)(share(r->y, p->low_y, p->high_y, p->log_y) * HIGH);
    (void)error;
    x = FV_MIN(x, g->wide - 1);
    y = FV_MIN(y, HIGH - 1);
    uint32_t *count = &g->counts[((int64_t)r->group * HIGH + y) * g->wide + x];
    *count += *count < UINT32_MAX;
    return FV_OK;
}

/* One mark for all points in a field of the grid, in its middle. */
static fv_status put_field(fv__plot *p, const grid *g, int group, int x, int y, uint32_t count, fv_error *error) {
    fv__plot_mark mark = { "field", group, .from = NAN, .to = NAN, .value = count, .at_x = -1, .at_y = -1 };
    mark.x = number_of((x + 0.5) / g->wide, g->low_x, g->high_x, p->log_x);
    mark.y = number_of((y + 0.5) / HIGH, p->low_y, p->high_y, p->log_y);
    if (p->named_x) mark.at_x = x;
    return fv__plot_put(p, &mark, error);
}

static fv_status put_fields(fv__plot *p, const grid *g, int ngroups, fv_error *error) {
    for (int group = 0; group < ngroups; group++)
        for (int y = 0; y < HIGH; y++)
            for (int x = 0; x < g->wide; x++) {
                uint32_t count = g->counts[((int64_t)group * HIGH + y) * g->wide + x];
                if (count) FV_TRY(put_field(p, g, group, x, y, count, error));
            }
    return FV_OK;
}

fv_status fv__plot_points(fv__plot *p, fv_error *error) {
    int ngroups = FV_MAX(p->groups.count, 1);
    if (p->nrows <= MOST_POINTS) return fv__plot_each(p, put_point, p, error);
    grid g = { .plot = p, .low_x = p->low_x, .high_x = p->high_x, .wide = WIDE };
    if (p->named_x) g.low_x = -0.5, g.high_x = p->across.count - 0.5, g.wide = p->across.count;
    FV_TRY(FV_TAKE_ZEROED(g.counts, (size_t)ngroups * HIGH * (size_t)g.wide * sizeof *g.counts, error));
    fv_status status = fv__plot_each(p, count_point, &g, error);
    if (status == FV_OK) status = put_fields(p, &g, ngroups, error);
    free(g.counts);
    return status;
}

/* ---------------------------------------------------------------- lines */

typedef struct {
    int    group;
    double x, y;
} point;

typedef struct {
    point  *points;
    int64_t count;
} points;

static fv_status keep_point(void *context, const fv__plot_row *r, fv_error *error) {
    points *all = context;
    (void)error;
    all->points[all->count++] = (point){ r->group, r->x, r->y };
    return FV_OK;
}

static int along(const void *a, const void *b) {
    const point *p = a, *q = b;
    if (p->group != q->group) return p->group - q->group;
    if (p->x != q->x) return p->x < q->x ? -1 : 1;
    return p->y < q->y ? -1 : p->y > q->y;
}

/* The mean of the points at one place, and their standard deviation if there are several. */
static fv_status put_mean(fv__plot *p, const point *at, int64_t count, fv_error *error) {
    double        mean = 0, squares = 0;
    fv__plot_mark mark = { "line", at->group, at->x, 0, NAN, NAN, (double)count, p->named_x ? (int)at->x : -1, -1 };
    for (int64_t i = 0; i < count; i++) {
        double off = at[i].y - mean;
        mean += off / (double)(i + 1);
        squares += off * (at[i].y - mean);
    }
    double deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    mark.y = mean;
    if (count > 1 && (!p->log_y || mean > deviation)) mark.from = mean - deviation, mark.to = mean + deviation;
    return fv__plot_put(p, &mark, error);
}

/* Of more places than a picture can show: the lowest and the highest point of each stretch, in their order. */
static fv_status put_stretches(fv__plot *p, const point *all, int64_t count, fv_error *error) {
    for (int64_t from = 0, to; from < count; from = to) {
        int64_t low = from, high = from;
        double  end =
            p->low_x + (floor(share(all[from].x, p->low_x, p->high_x, false) * STEPS) + 1) * (p->high_x - p->low_x) / STEPS;
        for (to = from + 1; to < count && all[to].x < end; to++) {
            if (all[to].y < all[low].y) low = to;
            if (all[to].y > all[high].y) high = to;
        }
        FV_TRY(put_mean(p, &all[FV_MIN(low, high)], 1, error));
        if (low != high) FV_TRY(put_mean(p, &all[FV_MAX(low, high)], 1, error));
    }
    return FV_OK;
}

static fv_status put_line(fv__plot *p, const point *all, int64_t count, fv_error *error) {
    int64_t places = 0;
    for (int64_t i = 0; i < count; i++) places += !i || all[i].x != all[i - 1].x;
    if (places > MOST_STEPS) return put_stretches(p, all, count, error);
    for (int64_t from = 0, to; from < count; from = to) {
        for (to = from; to < count && all[to].x == all[from].x;) to++;
        FV_TRY(put_mean(p, &all[from], to - from, error));
    }
    return FV_OK;
}

fv_status fv__plot_lines(fv__plot *p, fv_error *error) {
    points all = { 0 };
    FV_TRY(FV_TAKE(all.points, (size_t)(p->nrows + 1) * sizeof *all.points, error));
    fv_status status = fv__plot_each(p, keep_point, &all, error);
    if (status == FV_OK) qsort(all.points, (size_t)all.count, sizeof *all.points, along);
    for (int64_t from = 0, to; from < all.count && status == FV_OK; from = to) {
        for (to = from; to < all.count && all.points[to].group == all.points[from].group;) to++;
        status = put_line(p, &all.points[from], to - from, error);
    }
    free(all.points);
    return status;
}
