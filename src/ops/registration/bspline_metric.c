/* How much two images differ under a B-spline transform, and how that changes with each control point; see bspline_fit.h. */
#include "base/math.h"
#include "ops/registration/between_voxels.h"
#include "ops/registration/bspline_fit.h"
#include "ops/registration/fitting.h"

/* Sums over the voxels that are seen. */
typedef struct {
    int64_t inside;
    double  moving, fixed, moving_moving, fixed_fixed, moving_fixed;
} sums;

/* What a change of the moving image's value costs: slope, and curvature. */
typedef struct {
    double of_moving, of_fixed, one;   /* mean_squares and correlation: a line in both values */
    double curvature;                  /* of all */
    double by_bin[FV_FIT_BINS], share; /* mutual information: curvature by bin of fixed; 1 / voxels */
} prices;

static int64_t points_of(const fv_bspline_fit *f) { return fv__control_points(&f->grid); }

/* The weights of the control points across a row: of y and of z. */
typedef struct {
    int64_t first[2];
    double  weight[2][4];
} across;

static across across_row(const fv_bspline_fit *f, int64_t row) {
    int64_t at[2] = { row % f->of_fixed[1], row / f->of_fixed[1] };
    across  a = { .weight = { { 1 }, { 1 } } };
    for (int k = 0; k < f->grid.n - 1; k++) {
        double slope[4], place = 1 + ((double)at[k] + 0.5) * (double)(f->grid.size[k + 1] - 3) / (double)f->of_fixed[k + 1];
        a.first[k] = fv__bspline_weights(place, f->grid.size[k + 1], a.weight[k], slope);
    }
    return a;
}

/* Displacements along a row. */
static void move_row(const fv_bspline_fit *f, const across *a) {
    int64_t nx = f->grid.size[0], points = points_of(f), n = f->of_fixed[0];
    for (int c = 0; c < f->grid.n; c++) {
        double *line = f->line, *to = f->way[c];
        memset(line, 0, (size_t)nx * sizeof *line);
        for (int k = 0; k < (f->grid.n == 3 ? 4 : 1); k++)
            for (int j = 0; j < 4; j++) {
                const double *from = f->control + c * points + ((a->first[1] + k) * f->grid.size[1] + a->first[0] + j) * nx;
                double        by = a->weight[0][j] * a->weight[1][k];
                for (int64_t i = 0; i < nx; i++) line[i] += by * from[i];
            }
        for (int64_t i = 0; i < n; i++) {
            const double *v = line + f->first[i], *w = f->along + 4 * i;
            to[i] = ((v[0] * w[0] + v[1] * w[1]) + v[2] * w[2]) + v[3] * w[3];
        }
    }
}

/* What `way` has along a row goes to the control points that the displacement came from; squared: with the squares of their
 * weights. */
static void spread_row(const fv_bspline_fit *f, const across *a, bool squared, double *to) {
    int64_t nx = f->grid.size[0], points = points_of(f), n = f->of_fixed[0];
    for (int c = 0; c < f->grid.n; c++) {
        double *line = f->line;
        memset(line, 0, (size_t)nx * sizeof *line);
        for (int64_t i = 0; i < n; i++) {
            double       *v = line + f->first[i], by = f->way[c][i];
            const double *w = f->along + 4 * i;
            for (int k = 0; k < 4; k++) v[k] += by * (squared ? w[k] * w[k] : w[k]);
        }
        for (int k = 0; k < (f->grid.n == 3 ? 4 : 1); k++)
            for (int j = 0; j < 4; j++) {
                double *into = to + c * points + ((a->first[1] + k) * f->grid.size[1] + a->first[0] + j) * nx;
                double  by = a->weight[0][j] * a->weight[1][k];
                if (squared) by *= by;
                for (int64_t i = 0; i < nx; i++) into[i] += by * line[i];
            }
    }
}

/* ---------------------------------------------------------------- what is seen */

static void see_row(const fv_bspline_fit *f, int64_t number, sums *s) {
    int64_t       n = f->of_fixed[0], row = f->row[number], y = row % f->of_fixed[1], z = row / f->of_fixed[1];
    const double *m = f->space, *to = f->voxels;
    const float  *fixed = f->fixed + row * n;
    float        *seen = f->seen + number * n;
    for (int64_t i = 0; i < n; i++) {
        double place[3];
        float  q[3], slope[3];
        for (int c = 0; c < 3; c++)
            place[c] = ((m[c * 4] * (double)i + m[c * 4 + 1] * (double)y) + m[c * 4 + 2] * (double)z) + m[c * 4 + 3] +
                       (c < f->grid.n ? f->way[c][i] : 0);
        for (int c = 0; c < 3; c++)
            q[c] = (float)(((to[c * 4] * place[0] + to[c * 4 + 1] * place[1]) + to[c * 4 + 2] * place[2]) + to[c * 4 + 3]);
        if (!fv__look(f->moving, f->of_moving, f->grid.n, q, &seen[i], slope)) {
            seen[i] = NAN;
            continue;
        }
        for (int c = 0; c < f->grid.n; c++)
            f->slope[c][number * n + i] = ((float)to[c] * slope[0] + (float)to[4 + c] * slope[1]) + (float)to[8 + c] * slope[2];
        double a = (double)seen[i], b = (double)fixed[i];
        s->inside++;
        s->moving += a;
        s->fixed += b;
        s->moving_moving += a * a;
        s->fixed_fixed += b * b;
        s->moving_fixed += a * b;
    }
}

/* ---------------------------------------------------------------- mutual information */

static int bin_of(const fv_bspline_fit *f, float value) {
    double bin = ((double)value - f->fixed_low) / f->fixed_bin;
    return (int)FV_MAX(FV_MIN(bin, f->bins - 1), 0);
}

static void count_row(const fv_bspline_fit *f, int64_t number) {
    int64_t      n = f->of_fixed[0];
    const float *fixed = f->fixed + f->row[number] * n, *seen = f->seen + number * n;
    float        low = (float)f->low, share = (float)(1 / f->width);
    for (int64_t i = 0; i < n; i++) {
        double weight[4], slope[4];
        if (isnan(seen[i])) continue;
        float   u = fv__parzen_place(seen[i], low, share, f->bins);
        double *joint = f->joint + bin_of(f, fixed[i]) * f->bins + (int)u - 1;
        fv__parzen(u - (float)(int)u, weight, slope);
        for (int k = 0; k < 4; k++) joint[k] += weight[k];
    }
}

/* As information() of the linear fit: the curvature takes the values of moving, where fixed has the same, as distributed
 * normally. */
static double price_information(const fv_bspline_fit *f, const sums *s, prices *p) {
    int    bins = f->bins;
    double moving[FV_FIT_BINS] = { 0 }, cost = 0;
    p->share = 1 / (double)s->inside;
    for (int i = 0; i < bins * bins; i++) moving[i % bins] += f->joint[i] * p->share;
    for (int r = 0; r < bins; r++) {
        const double *joint = f->joint + r * bins;
        double        fixed = 0;
        p->by_bin[r] = p->share / FV_MAX(fv__joint_variance(joint, bins), 1.0 / 12) / (f->width * f->width);
        for (int m = 0; m < bins; m++) fixed += joint[m] * p->share;
        for (int m = 0; m < bins; m++) {
            double both = joint[m] * p->share;
            f->given[r * bins + m] = both > 1e-16 ? fv__ln(both / moving[m]) : 0;
            if (both > 1e-16) cost -= both * (f->given[r * bins + m] - fv__ln(fixed));
        }
    }
    return cost;
}

static double price_of_information(const fv_bspline_fit *f, const prices *p, float fixed, float seen) {
    float         u = fv__parzen_place(seen, (float)f->low, (float)(1 / f->width), f->bins);
    const double *given = f->given + bin_of(f, fixed) * f->bins + (int)u - 1;
    double        weight[4], slope[4];
    fv__parzen(u - (float)(int)u, weight, slope);
    double sum = ((slope[0] * given[0] + slope[1] * given[1]) + slope[2] * given[2]) + slope[3] * given[3];
    return -sum * p->share / f->width;
}

/* ---------------------------------------------------------------- the others */

static double price_mean_squares(const sums *s, prices *p) {
    double share = 1 / (double)s->inside;
    *p = (prices){ .of_moving = 2 * share, .of_fixed = -2 * share, .curvature = 2 * share };
    return (s->moving_moving - 2 * s->moving_fixed + s->fixed_fixed) * share;
}

/* One minus the square of the correlation. */
static double price_correlation(const sums *s, prices *p) {
    double n = (double)s->inside, moving = s->moving / n, fixed = s->fixed / n;
    double mm = s->moving_moving - n * moving * moving, ff = s->fixed_fixed - n * fixed * fixed;
    double mf = s->moving_fixed - n * moving * fixed;
    if (!(mm > 0 && ff > 0)) return INFINITY;
    double line = mf / mm, by = -2 * line / ff;
    *p = (prices){ .of_fixed = by, .of_moving = -by * line, .one = by * (line * moving - fixed), .curvature = -by * line };
    return 1 - mf * mf / (mm * ff);
}

/* What a change of each voxel costs, times the slope; curvature: times its square. */
static void price_row(const fv_bspline_fit *f, const prices *p, int64_t number, bool curvature) {
    int64_t      n = f->of_fixed[0];
    const float *fixed = f->fixed + f->row[number] * n, *seen = f->seen + number * n;
    for (int64_t i = 0; i < n; i++) {
        double price = 0;
        bool   inside = !isnan(seen[i]), information = f->metric == FV_FIT_MUTUAL_INFORMATION;
        if (inside && curvature) price = information ? p->by_bin[bin_of(f, fixed[i])] : p->curvature;
        if (inside && !curvature)
            price = information ? price_of_information(f, p, fixed[i], seen[i])
                                : (p->of_moving * (double)seen[i] + p->of_fixed * (double)fixed[i]) + p->one;
        for (int c = 0; c < f->grid.n; c++) {
            double slope = inside ? (double)f->slope[c][number * n + i] : 0;
            f->way[c][i] = curvature ? price * (slope * slope) : price * slope;
        }
    }
}

/* ---------------------------------------------------------------- bending */

/* Adds weight * (sum of numbers times signs)^2 of a few control points; its gradient and curvature too. */
static double bend(const fv_bspline_fit *f, int64_t at, int count, const int64_t *offset, const double *sign, double weight,
                   bool curvature) {
    double sum = 0;
    for (int k = 0; k < count; k++) sum += sign[k] * f->control[at + offset[k]];
    for (int k = 0; k < count; k++) {
        f->gradient[at + offset[k]] += 2 * weight * sum * sign[k];
        if (curvature) f->diagonal[at + offset[k]] += 2 * weight * sign[k] * sign[k];
    }
    return weight * sum * sum;
}

/* The mean square of the second differences of control points, in units of their distance (Rueckert and others, 1999). */
static double bending(const fv_bspline_fit *f, bool curvature) {
    static const double second[3] = { 1, -2, 1 }, mixed[4] = { 1, -1, -1, 1 };
    const int64_t      *size = f->grid.size, step[3] = { 1, size[0], size[0] * size[1] };
    int64_t             points = points_of(f);
    double              length = 0, cost = 0;
    for (int c = 0; c < f->grid.n; c++) {
        const double *m = f->grid.space + c;
        length = FV_MAX(length, sqrt(m[0] * m[0] + m[4] * m[4] + m[8] * m[8]));
    }
    double weight = f->bending / ((double)points * length * length);
    for (int64_t i = 0; i < f->grid.n * points && weight > 0; i++) {
        int64_t at[3] = { i % size[0], i / size[0] % size[1], i / step[2] % size[2] };
        for (int a = 0; a < f->grid.n; a++) {
            int64_t straight[3] = { -step[a], 0, step[a] };
            if (at[a] > 0 && at[a] < size[a] - 1) cost += bend(f, i, 3, straight, second, weight, curvature);
            for (int b = 0; b < a; b++) {
                int64_t corners[4] = { 0, step[a], step[b], step[a] + step[b] };
                if (at[a] < size[a] - 1 && at[b] < size[b] - 1) cost += bend(f, i, 4, corners, mixed, 2 * weight, curvature);
            }
        }
    }
    return cost;
}

/* ---------------------------------------------------------------- all */

double fv__bspline_measure(fv_bspline_fit *f, bool curvature) {
    bool   information = f->metric == FV_FIT_MUTUAL_INFORMATION;
    size_t numbers = (size_t)(f->grid.n * points_of(f)) * sizeof(double);
    sums   s = { 0 };
    prices p = { 0 };
    memset(f->gradient, 0, numbers);
    if (curvature) memset(f->diagonal, 0, numbers);
    if (information) memset(f->joint, 0, (size_t)(f->bins * f->bins) * sizeof *f->joint);
    for (int64_t r = 0; r < f->rows; r++) {
        across a = across_row(f, f->row[r]);
        move_row(f, &a);
        see_row(f, r, &s);
        if (information) count_row(f, r);
    }
    if (s.inside < FV_MAX(f->rows * f->of_fixed[0] / 20, 8)) return INFINITY;
    double cost = information                       ? price_information(f, &s, &p)
                  : f->metric == FV_FIT_CORRELATION ? price_correlation(&s, &p)
                                                    : price_mean_squares(&s, &p);
    if (!isfinite(cost)) return cost;
    for (int64_t r = 0; r < f->rows; r++) {
        across a = across_row(f, f->row[r]);
        price_row(f, &p, r, false);
        spread_row(f, &a, false, f->gradient);
        if (!curvature) continue;
        price_row(f, &p, r, true);
        spread_row(f, &a, true, f->diagonal);
    }
    return cost + bending(f, curvature);
}
