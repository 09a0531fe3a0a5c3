/* Cutting a sorted list of weighted values into classes. */
#include "kernels/partition.h"
#include "base/base.h"
#include <math.h>
#include <stdlib.h>

/* Sums over the values before index i, of values that are counted from the mean of all, so that nothing large is subtracted. */
typedef struct {
    double *weight, *sum, *square;
} sums;

static double cost_of(const sums *s, int64_t from, int64_t end) {
    double weight = s->weight[end] - s->weight[from], sum = s->sum[end] - s->sum[from];
    return (s->square[end] - s->square[from]) - sum * sum / weight;
}

typedef struct {
    const sums   *s;
    const double *before; /* best cost of one class fewer, by end */
    double       *best;
    int32_t      *cut;
} layer;

/* Ends low ... high, whose last cut lies within from ... to. */
static void fill(const layer *l, int64_t low, int64_t high, int64_t from, int64_t to) {
    if (low > high) return;
    int64_t end = (low + high) / 2, at = from;
    double  best = INFINITY;
    for (int64_t k = from; k <= FV_MIN(to, end - 1); k++) {
        double cost = l->before[k] + cost_of(l->s, k, end);
        if (cost < best) best = cost, at = k;
    }
    l->best[end] = best;
    l->cut[end] = (int32_t)at;
    fill(l, low, end - 1, from, at);
    fill(l, end + 1, high, at, to);
}

static void add_up(const double *value, const double *weight, int64_t n, sums *s) {
    double mean = 0, total = 0;
    for (int64_t i = 0; i < n; i++) total += weight[i], mean += weight[i] * (value[i] - value[0]);
    mean = value[0] + mean / total;
    s->weight[0] = s->sum[0] = s->square[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = value[i] - mean;
        s->weight[i + 1] = s->weight[i] + weight[i];
        s->sum[i + 1] = s->sum[i] + weight[i] * v;
        s->square[i + 1] = s->square[i] + weight[i] * v * v;
    }
}

void fv__partition(const double *value, const double *weight, int64_t n, int classes, int64_t *first, double *mean) {
    size_t   row = (size_t)n + 1;
    double  *memory = fv__alloc(row * 5 * sizeof *memory), *best = memory + 3 * row, *before = memory + 4 * row;
    int32_t *cut = fv__calloc(row * (size_t)classes * sizeof *cut);
    sums     s = { memory, memory + row, memory + 2 * row };
    add_up(value, weight, n, &s);
    for (int64_t end = 1; end <= n; end++) best[end] = cost_of(&s, 0, end);
    for (int c = 1; c < classes; c++) {
        double *kept = before;
        before = best;
        best = kept;
        layer l = { &s, before, best, cut + row * (size_t)c };
        fill(&l, c + 1, n, c, n - 1);
    }
    int64_t end = n;
    for (int c = classes - 1; c >= 0; c--) {
        first[c] = c ? cut[row * (size_t)c + (size_t)end] : 0;
        double total = 0, sum = 0;
        for (int64_t i = first[c]; i < end; i++) total += weight[i], sum += weight[i] * (value[i] - value[first[c]]);
        mean[c] = value[first[c]] + sum / total;
        end = first[c];
    }
    free(memory);
    free(cut);
}
