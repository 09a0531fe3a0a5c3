/* An image sent through a curve. */
#include "ops/intensity/curve.h"
#include "op/kernels.h"

fv_status fv__curve_put(fv_finish *f, const fv__curve *head, const double *x, const double *y, fv_error *error) {
    size_t bytes = (size_t)head->count * sizeof *y;
    FV_TRY(f->put(f, 0, head, sizeof *head, error));
    FV_TRY(f->put(f, 0, x ? x : y, bytes, error));
    return f->put(f, 0, y, bytes, error);
}

/* A row as 8-byte numbers, and the row that comes out as float64. */
size_t fv__curve_scratch(const fv_need *n) { return (size_t)n->region.size[n->region.ndim - 1] * 16; }

static void look_up(const fv__curve *c, const uint64_t *values, int64_t n, double *to) {
    const double *y = c->xy + c->count;
    for (int64_t i = 0; i < n; i++) to[i] = y[values[i] - c->low];
}

/* The last point that is not above v, which lies between the first and the last one. */
static int64_t point_below(const fv__curve *c, double v) {
    const double *x = c->xy;
    if (c->step > 0) {
        int64_t at = FV_MIN((int64_t)((v - x[0]) / c->step), c->count - 2);
        while (at > 0 && v < x[at]) at--;
        while (at < c->count - 2 && v >= x[at + 1]) at++;
        return at;
    }
    int64_t low = 0, high = c->count - 1;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (v >= x[middle])
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void interpolate(const fv__curve *c, const double *values, int64_t n, double *to) {
    const double *x = c->xy, *y = x + c->count;
    int64_t       last = c->count - 1;
    for (int64_t i = 0; i < n; i++) {
        double v = values[i];
        if (!(v > x[0]))
            to[i] = v == v ? y[0] : v;
        else if (v >= x[last])
            to[i] = y[last];
        else {
            int64_t k = point_below(c, v);
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
    double           *values = r->scratch, *result = values + n;
    fv_rows           rows;
    FV_TRY(r->results->get(r->results, 0, (const void **)&c, &size, error));
    fv_dtype wide = !c->whole ? FV_FLOAT64 : in->dtype == FV_UINT64 ? FV_UINT64 : FV_INT64;
    for (fv__rows_begin(&rows, &out->region); fv__rows_next(&rows);) {
        k->convert(values, wide, fv__block_at(in, rows.position), in->dtype, n);
        if (c->whole)
            look_up(c, (const uint64_t *)values, n, result);
        else
            interpolate(c, values, n, result);
        k->convert(fv__block_at(out, rows.position), out->dtype, result, FV_FLOAT64, n);
    }
    return FV_OK;
}
