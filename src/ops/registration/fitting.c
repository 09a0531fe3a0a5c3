/* The steps of a fit; see fitting.h. */
#include "ops/registration/fitting.h"
#include "base/math.h"

/* Solves a x = b for a symmetric matrix that is positive; false: it is not. */
static bool solve(int n, double a[FV_FIT_MOST][FV_FIT_MOST], const double *b, double *x) {
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            double sum = a[i][j];
            for (int k = 0; k < j; k++) sum -= a[i][k] * a[j][k];
            if (i == j && !(sum > 0)) return false;
            a[i][j] = i == j ? sqrt(sum) : sum / a[j][j];
        }
    for (int i = 0; i < n; i++) {
        x[i] = b[i];
        for (int k = 0; k < i; k++) x[i] -= a[i][k] * x[k];
        x[i] /= a[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) x[i] -= a[k][i] * x[k];
        x[i] /= a[i][i];
    }
    return true;
}

/* The turn about a vector by its length, after Rodrigues. */
static void turn_about(const double w[3], double turn[9]) {
    double angle = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]), s = 1, c = 0.5;
    if (angle > 1e-8) {
        s = fv__sin(angle) / angle;
        c = (1 - fv__cos(angle)) / (angle * angle);
    }
    double cross[9] = { 0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0 };
    for (int r = 0; r < 3; r++)
        for (int k = 0; k < 3; k++) {
            double square = 0;
            for (int i = 0; i < 3; i++) square += cross[r * 3 + i] * cross[i * 3 + k];
            turn[r * 3 + k] = (r == k) + s * cross[r * 3 + k] + c * square;
        }
}

/* The transform after a step from it. */
static void move(fv_fit *f, const double *step) {
    double by[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 }, w[3] = { 0 }, matrix[9];
    int    k = 0;
    if (f->kind == FV_FIT_RIGID || f->kind == FV_FIT_SIMILARITY) {
        for (int c = f->n == 3 ? 0 : 2; c < 3; c++) w[c] = step[k++] / f->radius;
        turn_about(w, by);
        double scale = f->kind == FV_FIT_SIMILARITY ? fv__exp(step[k++] / f->radius) : 1;
        for (int r = 0; r < f->n; r++)
            for (int c = 0; c < f->n; c++) by[r * 3 + c] *= scale;
    }
    if (f->kind == FV_FIT_AFFINE)
        for (int r = 0; r < f->n; r++)
            for (int c = 0; c < f->n; c++) by[r * 3 + c] += step[k++] / f->radius;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) {
            matrix[r * 3 + c] = 0;
            for (int i = 0; i < 3; i++) matrix[r * 3 + c] += by[r * 3 + i] * f->matrix[i * 3 + c];
        }
    memcpy(f->matrix, matrix, sizeof matrix);
    for (int c = 0; c < f->n; c++) f->target[c] += step[k++];
}

/* A step against the gradient, no longer than a few voxels; false: none can be found. */
static bool find_step(const fv_fit *f, const fv_fit_terms *t, double damping, double *step) {
    int    n = fv__fit_parameters(f);
    double a[FV_FIT_MOST][FV_FIT_MOST], against[FV_FIT_MOST], trace = 0, length = 0, most = 4 * f->edge;
    for (int i = 0; i < n; i++) trace += t->curvature[i][i] / n;
    for (int i = 0; i < n; i++) {
        against[i] = -t->gradient[i];
        for (int j = 0; j < n; j++) a[i][j] = t->curvature[i][j];
        a[i][i] += damping * a[i][i] + 1e-9 * trace;
    }
    if (!solve(n, a, against, step)) return false;
    for (int i = 0; i < n; i++) length += step[i] * step[i];
    length = sqrt(length);
    for (int i = 0; i < n && length > most; i++) step[i] *= most / length;
    return isfinite(length);
}

static double length_of(const double *step, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += step[i] * step[i];
    return sqrt(sum);
}

bool fv__fit_run(fv_fit *f) {
    const double enough = 1e-4 * f->edge; /* of a step that nobody would notice */
    double       damping = 1e-3, step[FV_FIT_MOST];
    fv_fit_terms now, then;
    fv__fit_measure(f, &now);
    if (!isfinite(now.cost)) return false;
    for (int i = 0; i < f->iterations && damping < 1e8; i++) {
        fv_fit before = *f;
        if (!find_step(f, &now, damping, step)) {
            damping *= 10;
            continue;
        }
        double length = length_of(step, fv__fit_parameters(f));
        move(f, step);
        fv__fit_measure(f, &then);
        if (then.cost < now.cost) {
            now = then;
            damping = FV_MAX(damping / 5, 1e-7);
        } else {
            memcpy(f->matrix, before.matrix, sizeof f->matrix);
            memcpy(f->target, before.target, sizeof f->target);
            damping *= 8;
        }
        if (length < enough) break;
    }
    return true;
}
