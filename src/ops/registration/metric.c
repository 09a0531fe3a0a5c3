/* How much two images differ under a transform, and how that changes with it; see fitting.h. */
#include "base/math.h"
#include "ops/registration/between_voxels.h"
#include "ops/registration/fitting.h"

enum { LANES = 8, ROWS = FV_FIT_MOST + 3, TRIANGLE = FV_FIT_MOST * (FV_FIT_MOST + 1) / 2 };

int fv__fit_parameters(const fv_fit *f) {
    int turns = f->n == 2 ? 1 : 3;
    return f->n + (f->kind == FV_FIT_SHIFT        ? 0
                   : f->kind == FV_FIT_RIGID      ? turns
                   : f->kind == FV_FIT_SIMILARITY ? turns + 1
                                                  : f->n * f->n);
}

void fv__fit_lay_out(fv_fit *f, int64_t voxels, fv_scratch *pieces) {
    int64_t floats = (int64_t)sizeof(float), bins = f->metric == FV_FIT_MUTUAL_INFORMATION ? f->bins : 0;
    f->moving = fv__scratch_take(pieces, voxels * floats);
    f->value = fv__scratch_take(pieces, f->room * floats);
    for (int c = 0; c < 3; c++) f->place[c] = fv__scratch_take(pieces, f->room * floats);
    f->bin = fv__scratch_take(pieces, f->room);
    f->rows = fv__scratch_take(pieces, (ROWS + 1) * FV_FIT_STRIP * floats);
    f->joint = fv__scratch_take(pieces, bins * bins * (int64_t)sizeof(double));
    f->slope = fv__scratch_take(pieces, bins * bins * FV_FIT_MOST * (int64_t)sizeof(double));
    f->spread = fv__scratch_take(pieces, bins * TRIANGLE * (int64_t)sizeof(double));
}

/* ---------------------------------------------------------------- values between voxels */

/* The transform in single precision: from places to voxels, and from the slope along voxels to that in space. */
typedef struct {
    float turn[9], to[12], back[9];
} path;

static path path_of(const fv_fit *f) {
    path p;
    for (int r = 0; r < 3; r++) {
        double shift = f->voxels[r * 4 + 3];
        for (int c = 0; c < 3; c++) {
            double sum = 0;
            for (int i = 0; i < 3; i++) sum += f->voxels[r * 4 + i] * f->matrix[i * 3 + c];
            shift += f->voxels[r * 4 + c] * f->target[c];
            p.to[r * 4 + c] = (float)sum;
            p.back[r * 3 + c] = (float)f->voxels[c * 4 + r];
            p.turn[r * 3 + c] = (float)f->matrix[r * 3 + c];
        }
        p.to[r * 4 + 3] = (float)shift;
    }
    return p;
}

/* How the value changes with each parameter: g is its slope in space, v the turned place about the centre. */
static inline void derive(const fv_fit *f, const float g[3], const float v[3], float *rows, int64_t i) {
    float share = (float)(1 / f->radius);
    int   k = 0;
#define ROW(x) rows[k++ * FV_FIT_STRIP + i] = (x)
    if (f->kind == FV_FIT_RIGID || f->kind == FV_FIT_SIMILARITY) {
        if (f->n == 3) {
            ROW((v[1] * g[2] - v[2] * g[1]) * share);
            ROW((v[2] * g[0] - v[0] * g[2]) * share);
        }
        ROW((v[0] * g[1] - v[1] * g[0]) * share);
        if (f->kind == FV_FIT_SIMILARITY) ROW((v[0] * g[0] + v[1] * g[1] + v[2] * g[2]) * share);
    }
    if (f->kind == FV_FIT_AFFINE)
        for (int r = 0; r < f->n; r++)
            for (int c = 0; c < f->n; c++) ROW(g[r] * v[c] * share);
    for (int c = 0; c < f->n; c++) ROW(g[c]);
#undef ROW
}

/* Rows of a strip: derivatives, value of the moving and of the fixed image, one. Samples outside are left out; which of them are
 * there goes to index. Gives their number. */
static int64_t fill_strip(const fv_fit *f, const path *p, int64_t first, int64_t n, int32_t *index) {
    int     nparams = fv__fit_parameters(f);
    int64_t count = 0;
    for (int64_t i = first; i < first + n; i++) {
        float at[3] = { f->place[0][i], f->place[1][i], f->place[2][i] }, q[3], v[3], slope[3], g[3], value;
        for (int c = 0; c < 3; c++)
            q[c] = ((p->to[c * 4] * at[0] + p->to[c * 4 + 1] * at[1]) + p->to[c * 4 + 2] * at[2]) + p->to[c * 4 + 3];
        if (!fv__look(f->moving, f->size, f->n, q, &value, slope)) continue;
        for (int c = 0; c < 3; c++) {
            v[c] = (p->turn[c * 3] * at[0] + p->turn[c * 3 + 1] * at[1]) + p->turn[c * 3 + 2] * at[2];
            g[c] = (p->back[c * 3] * slope[0] + p->back[c * 3 + 1] * slope[1]) + p->back[c * 3 + 2] * slope[2];
        }
        derive(f, g, v, f->rows, count);
        f->rows[nparams * FV_FIT_STRIP + count] = value;
        f->rows[(nparams + 1) * FV_FIT_STRIP + count] = f->value[i];
        f->rows[(nparams + 2) * FV_FIT_STRIP + count] = 1;
        index[count++] = (int32_t)(i - first);
    }
    return count;
}

/* ---------------------------------------------------------------- sums of products */

/* Adds up the products of every two rows. */
static void add_products(const float *rows, int nrows, int64_t n, double products[ROWS][ROWS][LANES]) {
    for (int a = 0; a < nrows; a++)
        for (int b = 0; b <= a; b++) {
            const float *x = rows + a * FV_FIT_STRIP, *y = rows + b * FV_FIT_STRIP;
            double      *sum = products[a][b];
            for (int64_t i = 0; i < n; i += LANES)
                for (int l = 0; l < LANES; l++) sum[l] += (double)(x[i + l] * y[i + l]);
        }
}

static double add_lanes(const double *lane) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static void gather_products(const fv_fit *f, const path *p, fv_fit_terms *t, double sum[ROWS][ROWS]) {
    int     nrows = fv__fit_parameters(f) + 3;
    double  products[ROWS][ROWS][LANES];
    int32_t index[FV_FIT_STRIP];
    memset(products, 0, sizeof products);
    for (int64_t first = 0; first < f->count; first += FV_FIT_STRIP) {
        int64_t n = fill_strip(f, p, first, FV_MIN(FV_FIT_STRIP, f->count - first), index),
                whole = (n + LANES - 1) / LANES * LANES;
        for (int r = 0; r < nrows; r++)
            for (int64_t i = n; i < whole; i++) f->rows[r * FV_FIT_STRIP + i] = 0;
        add_products(f->rows, nrows, whole, products);
        t->inside += n;
    }
    for (int a = 0; a < nrows; a++)
        for (int b = 0; b <= a; b++) sum[a][b] = sum[b][a] = add_lanes(products[a][b]);
}

static void mean_squares(int k, double sum[ROWS][ROWS], fv_fit_terms *t) {
    int    moving = k, fixed = k + 1;
    double share = 1 / (double)t->inside;
    t->cost = (sum[moving][moving] - 2 * sum[moving][fixed] + sum[fixed][fixed]) * share;
    for (int a = 0; a < k; a++) {
        t->gradient[a] = 2 * (sum[moving][a] - sum[fixed][a]) * share;
        for (int b = 0; b < k; b++) t->curvature[a][b] = 2 * sum[a][b] * share;
    }
}

/* One minus the square of the correlation: what is left of the fixed image by the best line in values of the moving one. */
static void correlation(int k, double sum[ROWS][ROWS], fv_fit_terms *t) {
    int    moving = k, fixed = k + 1, one = k + 2;
    double about[ROWS][ROWS];
    for (int a = 0; a < one; a++)
        for (int b = 0; b < one; b++) about[a][b] = sum[a][b] - sum[a][one] * sum[b][one] / sum[one][one];
    double mm = about[moving][moving], ff = about[fixed][fixed], mf = about[moving][fixed];
    if (!(mm > 0 && ff > 0)) {
        t->cost = INFINITY;
        return;
    }
    double line = mf / mm;
    t->cost = 1 - mf * mf / (mm * ff);
    for (int a = 0; a < k; a++) {
        t->gradient[a] = -2 * line / ff * (about[fixed][a] - line * about[moving][a]);
        for (int b = 0; b < k; b++)
            t->curvature[a][b] = 2 * line * line / ff * (about[a][b] - about[moving][a] * about[moving][b] / mm);
    }
}

/* ---------------------------------------------------------------- mutual information */

static void count_strip(const fv_fit *f, int k, int64_t first, int64_t n, const int32_t *index) {
    float low = (float)f->low, share = (float)(1 / f->width);
    for (int64_t i = 0; i < n; i++) {
        float   u = fv__parzen_place(f->rows[k * FV_FIT_STRIP + i], low, share, f->bins);
        int     bin = (int)u, fixed = f->bin[first + index[i]];
        double  weight[4], change[4], derivative[FV_FIT_MOST];
        double *joint = f->joint + fixed * f->bins + bin - 1, *spread = f->spread + fixed * TRIANGLE;
        double *slope = f->slope + (fixed * f->bins + bin - 1) * FV_FIT_MOST;
        fv__parzen(u - (float)bin, weight, change);
        for (int a = 0; a < k; a++) derivative[a] = (double)f->rows[a * FV_FIT_STRIP + i];
        for (int j = 0; j < 4; j++) {
            joint[j] += weight[j];
            for (int a = 0; a < k; a++) slope[j * FV_FIT_MOST + a] += change[j] * derivative[a];
        }
        for (int a = 0, at = 0; a < k; a++)
            for (int b = 0; b <= a; b++) spread[at++] += derivative[a] * derivative[b];
    }
}

/* The curvature is that of the entropy of the moving image where the fixed one has the same value, as if the values there were
 * normally distributed: it is never negative. */
static void information(const fv_fit *f, int k, fv_fit_terms *t) {
    int    bins = f->bins;
    double moving[FV_FIT_BINS] = { 0 }, share = 1 / (double)t->inside;
    for (int i = 0; i < bins * bins; i++) moving[i % bins] += f->joint[i] * share;
    t->cost = 0;
    for (int r = 0; r < bins; r++) {
        const double *joint = f->joint + r * bins, *spread = f->spread + r * TRIANGLE;
        double        fixed = 0, weight = share / FV_MAX(fv__joint_variance(joint, bins), 1.0 / 12);
        for (int m = 0; m < bins; m++) fixed += joint[m] * share;
        for (int m = 0; m < bins; m++) {
            double both = joint[m] * share;
            if (!(both > 1e-16)) continue;
            double given = fv__ln(both / moving[m]);
            t->cost -= both * (given - fv__ln(fixed));
            for (int a = 0; a < k; a++) t->gradient[a] -= f->slope[(r * bins + m) * FV_FIT_MOST + a] * share * given / f->width;
        }
        for (int a = 0, at = 0; a < k; a++)
            for (int b = 0; b <= a; b++, at++) {
                t->curvature[a][b] += spread[at] * weight / (f->width * f->width);
                t->curvature[b][a] = t->curvature[a][b];
            }
    }
}

static void gather_counts(const fv_fit *f, const path *p, fv_fit_terms *t) {
    int     k = fv__fit_parameters(f);
    size_t  bins = (size_t)f->bins;
    int32_t index[FV_FIT_STRIP];
    memset(f->joint, 0, bins * bins * sizeof *f->joint);
    memset(f->slope, 0, bins * bins * FV_FIT_MOST * sizeof *f->slope);
    memset(f->spread, 0, bins * TRIANGLE * sizeof *f->spread);
    for (int64_t first = 0; first < f->count; first += FV_FIT_STRIP) {
        int64_t n = fill_strip(f, p, first, FV_MIN(FV_FIT_STRIP, f->count - first), index);
        count_strip(f, k, first, n, index);
        t->inside += n;
    }
}

void fv__fit_measure(const fv_fit *f, fv_fit_terms *t) {
    int    k = fv__fit_parameters(f);
    path   p = path_of(f);
    double sum[ROWS][ROWS];
    *t = (fv_fit_terms){ .cost = INFINITY };
    if (f->metric == FV_FIT_MUTUAL_INFORMATION)
        gather_counts(f, &p, t);
    else
        gather_products(f, &p, t, sum);
    if (t->inside < FV_MAX(f->count / 20, 4 * k)) return;
    if (f->metric == FV_FIT_MUTUAL_INFORMATION)
        information(f, k, t);
    else if (f->metric == FV_FIT_CORRELATION)
        correlation(k, sum, t);
    else
        mean_squares(k, sum, t);
}
