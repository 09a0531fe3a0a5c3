/* The steps of a fit of B-splines; see bspline_fit.h. */
#include "ops/registration/bspline_fit.h"
#include "ops/registration/fitting.h"

enum { HALVINGS = 12 };

void fv__bspline_fit_lay_out(fv_bspline_fit *f, fv_scratch *pieces) {
    int64_t number = (int64_t)sizeof(double), numbers = f->grid.n * fv__control_points(&f->grid) * number;
    int64_t voxels = f->room * f->of_fixed[0] * (int64_t)sizeof(float), long_row = f->of_fixed[0] * number;
    int64_t bins = f->metric == FV_FIT_MUTUAL_INFORMATION ? (int64_t)f->bins * f->bins * number : 0;
    f->fixed = fv__scratch_take(pieces, f->of_fixed[0] * f->of_fixed[1] * f->of_fixed[2] * (int64_t)sizeof(float));
    f->moving = fv__scratch_take(pieces, f->of_moving[0] * f->of_moving[1] * f->of_moving[2] * (int64_t)sizeof(float));
    f->row = fv__scratch_take(pieces, f->room * (int64_t)sizeof *f->row);
    f->seen = fv__scratch_take(pieces, voxels);
    for (int c = 0; c < f->grid.n; c++) f->slope[c] = fv__scratch_take(pieces, voxels);
    f->along = fv__scratch_take(pieces, 4 * long_row);
    f->first = fv__scratch_take(pieces, f->of_fixed[0] * (int64_t)sizeof *f->first);
    f->line = fv__scratch_take(pieces, f->grid.size[0] * number);
    for (int c = 0; c < f->grid.n; c++) f->way[c] = fv__scratch_take(pieces, long_row);
    f->joint = fv__scratch_take(pieces, bins);
    f->given = fv__scratch_take(pieces, bins);
    double **const all[] = { &f->control, &f->gradient, &f->diagonal, &f->step, &f->before, &f->gradient_before };
    for (int k = 0; k < FV_COUNT(all); k++) *all[k] = fv__scratch_take(pieces, numbers);
    for (int k = 0; k < FV_BSPLINE_PAIRS; k++) {
        f->moves[k] = fv__scratch_take(pieces, numbers);
        f->turns[k] = fv__scratch_take(pieces, numbers);
    }
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* The weights of control points along x, the same in every row. */
static void fill_weights(const fv_bspline_fit *f) {
    for (int64_t i = 0; i < f->of_fixed[0]; i++) {
        double slope[4], place = 1 + ((double)i + 0.5) * (double)(f->grid.size[0] - 3) / (double)f->of_fixed[0];
        f->first[i] = fv__bspline_weights(place, f->grid.size[0], f->along + 4 * i, slope);
    }
}

/* A control point that little is seen of would go far at the least difference: none is taken to be less curved than a thousandth
 * of the most curved. */
static void settle_diagonal(fv_bspline_fit *f, int64_t n) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++) largest = FV_MAX(largest, f->diagonal[i]);
    for (int64_t i = 0; i < n; i++) f->diagonal[i] = FV_MAX(f->diagonal[i], 1e-3 * largest);
}

/* Against the gradient, as the last `pairs` steps tell; the newest is number last. */
static void find_step(const fv_bspline_fit *f, int64_t n, int pairs, int last) {
    double share[FV_BSPLINE_PAIRS], inner[FV_BSPLINE_PAIRS], scale = 1;
    for (int64_t i = 0; i < n; i++) f->step[i] = -f->gradient[i];
    for (int k = 0; k < pairs; k++) {
        int           j = (last - k + FV_BSPLINE_PAIRS) % FV_BSPLINE_PAIRS;
        const double *move = f->moves[j], *turn = f->turns[j];
        inner[j] = dot(move, turn, n);
        share[j] = dot(move, f->step, n) / inner[j];
        for (int64_t i = 0; i < n; i++) f->step[i] -= share[j] * turn[i];
    }
    if (pairs) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += f->turns[last][i] * f->turns[last][i] / f->diagonal[i];
        scale = inner[last] / sum;
    }
    for (int64_t i = 0; i < n; i++) f->step[i] *= scale / f->diagonal[i];
    for (int k = pairs - 1; k >= 0; k--) {
        int           j = (last - k + FV_BSPLINE_PAIRS) % FV_BSPLINE_PAIRS;
        const double *move = f->moves[j], *turn = f->turns[j];
        double        back = dot(turn, f->step, n) / inner[j];
        for (int64_t i = 0; i < n; i++) f->step[i] += (share[j] - back) * move[i];
    }
}

/* Goes along the step as far as that is better by what the gradient promises, a ten-thousandth of it at least; gives how far, 0:
 * nowhere is. */
static double search(fv_bspline_fit *f, int64_t n, double *cost) {
    double slope = dot(f->gradient, f->step, n), longest = 0, far = 1, most = 2 * f->edge;
    if (!(slope < 0)) return 0;
    for (int64_t i = 0; i < n; i++) longest = FV_MAX(longest, fabs(f->step[i]));
    if (longest > most) far = most / longest;
    memcpy(f->before, f->control, (size_t)n * sizeof(double));
    memcpy(f->gradient_before, f->gradient, (size_t)n * sizeof(double));
    for (int k = 0; k < HALVINGS; k++) {
        for (int64_t i = 0; i < n; i++) f->control[i] = f->before[i] + far * f->step[i];
        double now = fv__bspline_measure(f, false);
        if (now <= *cost + 1e-4 * far * slope) {
            *cost = now;
            return far;
        }
        /* where a parabola through what is known is least, and not too near */
        double least = isfinite(now) ? -slope * far * far / (2 * (now - *cost - slope * far)) : 0;
        far = FV_MIN(FV_MAX(least, 0.1 * far), 0.5 * far);
    }
    memcpy(f->control, f->before, (size_t)n * sizeof(double));
    memcpy(f->gradient, f->gradient_before, (size_t)n * sizeof(double));
    return 0;
}

bool fv__bspline_fit_run(fv_bspline_fit *f) {
    int64_t n = f->grid.n * fv__control_points(&f->grid);
    int     pairs = 0, last = FV_BSPLINE_PAIRS - 1;
    fill_weights(f);
    double cost = fv__bspline_measure(f, true);
    if (!isfinite(cost)) return false;
    settle_diagonal(f, n);
    for (int i = 0; i < f->iterations; i++) {
        find_step(f, n, pairs, last);
        double far = search(f, n, &cost), longest = 0;
        if (far == 0) {
            if (!pairs) break;
            pairs = 0; /* what was known of the curvature is wrong here: begin again */
            continue;
        }
        int next = (last + 1) % FV_BSPLINE_PAIRS;
        for (int64_t k = 0; k < n; k++) {
            f->moves[next][k] = f->control[k] - f->before[k];
            f->turns[next][k] = f->gradient[k] - f->gradient_before[k];
            longest = FV_MAX(longest, fabs(f->moves[next][k]));
        }
        if (dot(f->moves[next], f->turns[next], n) > 0) {
            last = next;
            pairs = FV_MIN(pairs + 1, FV_BSPLINE_PAIRS);
        }
        if (longest < 1e-3 * f->edge) break;
    }
    return true;
}
