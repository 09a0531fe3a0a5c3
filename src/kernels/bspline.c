/* Cubic B-splines over control points; see bspline.h. */
#include "kernels/bspline.h"
#include "base/base.h"
#include <math.h>
#include <string.h>

enum { BAND = 7 }; /* of the equations along an axis: three numbers on each side */

int64_t fv__bspline_weights(double at, int64_t size, double weight[4], double slope[4]) {
    double  inside = FV_MIN(FV_MAX(at, 1), (double)(size - 2)), beyond = at - inside;
    int64_t cell = FV_MIN((int64_t)inside, size - 3);
    double  t = inside - (double)cell, s = 1 - t;
    weight[0] = s * s * s / 6;
    weight[1] = (4 - 6 * t * t + 3 * t * t * t) / 6;
    weight[2] = (4 - 6 * s * s + 3 * s * s * s) / 6;
    weight[3] = t * t * t / 6;
    slope[0] = -s * s / 2;
    slope[1] = (3 * t * t - 4 * t) / 2;
    slope[2] = (4 * s - 3 * s * s) / 2;
    slope[3] = t * t / 2;
    for (int k = 0; k < 4 && beyond != 0; k++) weight[k] += beyond * slope[k]; /* straight on */
    return cell - 1;
}

/* Sum over the control points around first, with a weight for each along x, y, z. */
static double sum_around(const fv_control_grid *g, const double *control, const int64_t first[3], double *const weight[3]) {
    double sum = 0;
    for (int k = 0; k < (g->n == 3 ? 4 : 1); k++)
        for (int j = 0; j < 4; j++) {
            const double *row = control + ((first[2] + k) * g->size[1] + first[1] + j) * g->size[0] + first[0];
            double along = ((row[0] * weight[0][0] + row[1] * weight[0][1]) + row[2] * weight[0][2]) + row[3] * weight[0][3];
            sum += along * (weight[1][j] * weight[2][k]);
        }
    return sum;
}

static void weights_at(const fv_control_grid *g, const double at[3], int64_t first[3], double weight[3][4], double slope[3][4]) {
    first[2] = 0;
    for (int k = 0; k < 4; k++) {
        weight[2][k] = k == 0;
        slope[2][k] = 0;
    }
    for (int c = 0; c < g->n; c++) first[c] = fv__bspline_weights(at[c], g->size[c], weight[c], slope[c]);
}

void fv__bspline_at(const fv_control_grid *g, const double *control, const double place[3], double moved[3], double slope[9]) {
    double  at[3], weight[3][4], change[3][4], along[3];
    int64_t first[3], points = fv__control_points(g);
    for (int c = 0; c < 3; c++) {
        const double *m = g->cells + c * 4;
        at[c] = ((m[0] * place[0] + m[1] * place[1]) + m[2] * place[2]) + m[3];
    }
    weights_at(g, at, first, weight, change);
    for (int r = 0; r < 3; r++) {
        double *of[3] = { weight[0], weight[1], weight[2] };
        moved[r] = r < g->n ? sum_around(g, control + r * points, first, of) : 0;
        if (!slope) continue;
        for (int a = 0; a < 3; a++) {
            double *turned[3] = { weight[0], weight[1], weight[2] };
            turned[a] = change[a];
            along[a] = r < g->n && a < g->n ? sum_around(g, control + r * points, first, turned) : 0;
        }
        for (int c = 0; c < 3; c++)
            slope[r * 3 + c] = (along[0] * g->cells[c] + along[1] * g->cells[4 + c]) + along[2] * g->cells[8 + c];
    }
}

/* Sums over the control points that lie across an axis, at each control point along it from `low` on: [component][point]. */
static void gather_line(const fv_control_grid *g, const double *control, const double base[3], int along, int64_t low,
                        int64_t count, double *line) {
    int64_t stride[3] = { 1, g->size[0], g->size[0] * g->size[1] }, points = fv__control_points(g), first[3];
    double  weight[3][4], slope[3][4];
    int     a = along == 0 ? 1 : 0, b = along == 2 ? 1 : 2;
    weights_at(g, base, first, weight, slope);
    for (int r = 0; r < g->n; r++, line += count) {
        memset(line, 0, (size_t)count * sizeof *line);
        for (int k = 0; k < (b < g->n ? 4 : 1); k++)
            for (int j = 0; j < 4; j++) {
                const double *from =
                    control + r * points + (first[a] + j) * stride[a] + (first[b] + k) * stride[b] + low * stride[along];
                double by = weight[a][j] * weight[b][k];
                for (int64_t i = 0; i < count; i++) line[i] += by * from[i * stride[along]];
            }
    }
}

static void straight_row(const fv_control_grid *g, const double *control, const double base[3], double step, int along,
                         int64_t first, int64_t n, double *line, double *const moved[3]) {
    double  weight[4], slope[4], ends[2] = { base[along] + (double)first * step, base[along] + (double)(first + n - 1) * step };
    int64_t low = fv__bspline_weights(FV_MIN(ends[0], ends[1]), g->size[along], weight, slope);
    int64_t count = fv__bspline_weights(FV_MAX(ends[0], ends[1]), g->size[along], weight, slope) + 4 - low;
    gather_line(g, control, base, along, low, count, line);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = fv__bspline_weights(base[along] + (double)(first + i) * step, g->size[along], weight, slope) - low;
        for (int r = 0; r < g->n; r++) {
            const double *v = line + r * count + at;
            moved[r][i] = ((v[0] * weight[0] + v[1] * weight[1]) + v[2] * weight[2]) + v[3] * weight[3];
        }
    }
}

void fv__bspline_row(const fv_control_grid *g, const double *control, const double base[3], const double step[3], int64_t first,
                     int64_t n, double *line, double *const moved[3]) {
    int along = -1, several = 0;
    for (int c = 0; c < g->n; c++)
        if (step[c] != 0) {
            along = c;
            several++;
        }
    if (several == 1) {
        straight_row(g, control, base, step[along], along, first, n, line, moved);
        return;
    }
    int64_t points = fv__control_points(g);
    for (int64_t i = 0; i < n; i++) {
        double  at[3], weight[3][4], slope[3][4], *of[3] = { weight[0], weight[1], weight[2] };
        int64_t around[3];
        for (int c = 0; c < 3; c++) at[c] = base[c] + (double)(first + i) * step[c];
        weights_at(g, at, around, weight, slope);
        for (int r = 0; r < g->n; r++) moved[r][i] = sum_around(g, control + r * points, around, of);
    }
}

/* ---------------------------------------------------------------- control points from displacements */

/* The equations of one axis, eliminated: band[i][3 + d] is the number of row i, column i + d. Splines at places in order make a
 * matrix that needs no exchange of rows (de Boor, A Practical Guide to Splines, 1978). */
static void factor(int64_t size, double (*band)[BAND]) {
    for (int64_t i = 0; i < size; i++) {
        double  weight[4], slope[4];
        int64_t first = fv__bspline_weights(fv__bspline_site(i, size), size, weight, slope);
        memset(band[i], 0, sizeof band[i]);
        for (int k = 0; k < 4; k++) {
            int64_t at = first + k - i + 3;
            if (at >= 0 && at < BAND) band[i][at] = weight[k];
        }
    }
    for (int64_t j = 0; j < size; j++)
        for (int64_t i = j + 1; i < FV_MIN(j + 4, size); i++) {
            double by = band[i][j - i + 3] /= band[j][3];
            for (int64_t c = j + 1; c < FV_MIN(j + 4, size); c++) band[i][c - i + 3] -= by * band[j][c - j + 3];
        }
}

static void solve_line(int64_t size, double (*const band)[BAND], double *x, int64_t stride) {
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = FV_MAX(i - 3, 0); j < i; j++) x[i * stride] -= band[i][j - i + 3] * x[j * stride];
    for (int64_t i = size - 1; i >= 0; i--) {
        for (int64_t j = i + 1; j < FV_MIN(i + 4, size); j++) x[i * stride] -= band[i][j - i + 3] * x[j * stride];
        x[i * stride] /= band[i][3];
    }
}

int64_t fv__bspline_solve_bytes(const fv_control_grid *g) {
    return FV_MAX(FV_MAX(g->size[0], g->size[1]), g->size[2]) * BAND * (int64_t)sizeof(double);
}

void fv__bspline_solve(const fv_control_grid *g, double *control, void *memory) {
    double(*band)[BAND] = memory;
    int64_t stride[3] = { 1, g->size[0], g->size[0] * g->size[1] }, points = fv__control_points(g);
    for (int c = 0; c < g->n; c++) {
        factor(g->size[c], band);
        for (int64_t i = 0; i < g->n * points; i++)
            if (i / stride[c] % g->size[c] == 0) solve_line(g->size[c], band, control + i, stride[c]);
    }
}
