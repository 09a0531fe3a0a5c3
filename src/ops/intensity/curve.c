/* An image sent through a curve. */
#include "ops/intensity/curve.h"
#include "op/kernels.h"
#include "op/scratch.h"

fv_status fv__curve_put(fv_finish *f, const fv__curve *head, const double *x, const double *y, fv_error *error) {
    size_t bytes = (size_t)head->count * sizeof *y;
    FV_TRY(f->put(f, 0, head, sizeof *head, error));
    FV_TRY(f->put(f, 0, x ? x : y, bytes, error));
    return f->put(f, 0, y, bytes, error);
}

/* Where points of uneven distances are looked for: x is cut into even parts, and first[k] is the last point that is not above
 * those in part k. */
enum { PARTS = 1 << 14 };

typedef struct {
    double  *values, *result; /* a row as 8-byte numbers, and the row that comes out as float64 */
    double   parts;           /* to the unit of x */
    int32_t *first;
} work;

static size_t lay_out(const fv_need *n, void *scratch, work *w) {
    fv_scratch pieces = { scratch, 0 };
    int64_t    row = n->region.size[n->region.ndim - 1] * 8;
    w->values = fv__scratch_take(&pieces, row);
    w->result = fv__scratch_take(&pieces, row);
    w->first = fv__scratch_take(&pieces, (PARTS + 2) * (int64_t)sizeof *w->first);
    return pieces.used;
}

size_t fv__curve_scratch(const fv_need *n) {
    work w;
    return lay_out(n, NULL, &w);
}

/* Grows with v. */
static int64_t part_of(const work *w, const fv__curve *c, double v) { return (int64_t)((v - c->xy[0]) * w->parts); }

static void fill_parts(const fv__curve *c, work *w) {
    double  length = c->xy[c->count - 1] - c->xy[0];
    int64_t k = 0;
    w->parts = length > 0 ? PARTS / length : 0;
    if (!(w->parts < INFINITY)) w->parts = 0;
    for (int64_t part = 0; part <= PARTS + 1; part++) {
        while (k + 1 < c->count && part_of(w, c, c->xy[k + 1]) < part) k++;
        w->first[part] = (int32_t)k;
    }
}

static void look_up(const fv__curve *c, const uint64_t *values, int64_t n, double *to) {
    const double *y = c->xy + c->count;
    for (int64_t i = 0; i < n; i++) to[i] = y[values[i] - c->low];
}

/* The last point that is not above v, which lies between the first and the last one. */
static int64_t point_below(const fv__curve *c, const work *w, double v) {
    const double *x = c->xy;
    if (c->step > 0) {
        int64_t at = FV_MIN((int64_t)((v - x[0]) / c->step), c->count - 2);
        while (at > 0 && v < x[at]) at--;
        while (at < c->count - 2 && v >= x[at + 1]) at++;
        return at;
    }
    int64_t part = part_of(w, c, v), low = w->first[part], high = FV_MIN((int64_t)w->first[part + 1] + 1, c->count - 1);
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (v >= x[middle])
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void interpolate(const fv__curve *c, const work *w, const double *values, int64_t n, double *to) {
    const double *x = c->xy, *y = x + c->count;
    int64_t       last = c->count - 1;
    for (int64_t i = 0; i < n; i++) {
        double v = values[i];
        if (!(v > x[0]))
            to[i] = v == v ? y[0] : v;
        else if (v >= x[last])
            to[i] = y[last];
        else {
            int64_t k = point_below(c, w, v);
            if (c->nearest)
                to[i] = y[v - x[k] < x[k + 1] - v ? k : k + 1];
            else
                to[i] = (y[k + 1] - y[k]) / (x[k + 1] - x[k]) * (v - x[k]) + y[k];
        }
    }
}

fv_status fv__curve_apply(fv_run *r, int input, fv_error *error) {
    const fv_kernels *k = fv__kernels_current();
    const fv_block   *in = r->in[input], *out = r->out;
    const fv__curve  *c;
    size_t            size;
    int64_t           n = out->region.size[out->region.ndim - 1];
    work              w = { 0 };
    fv_rows           rows;
    FV_TRY(r->results->get(r->results, 0, (const void **)&c, &size, error));
    lay_out(&r->need, r->scratch, &w);
    if (!c->whole && !(c->step > 0) && c->count) fill_parts(c, &w);
    fv_dtype wide = !c->whole ? FV_FLOAT64 : in->dtype == FV_UINT64 ? FV_UINT64 : FV_INT64;
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        k->convert(w.values, wide, fv__block_at(in, rows.position), in->dtype, n);
        if (c->whole)
            look_up(c, (const uint64_t *)w.values, n, w.result);
        else
            interpolate(c, &w, w.values, n, w.result);
        k->convert(fv__block_at(out, rows.position), out->dtype, w.result, FV_FLOAT64, n);
    }
    return FV_OK;
}
