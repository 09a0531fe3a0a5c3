/* The smooth field of N4 by its control points. */
#include "ops/intensity/bias_spline.h"

void fv__bias_shape(const fv__bias *p, const fv_image_type *image, int64_t shape[FV_MAX_DIMS]) {
    int axis[FV_MAX_DIMS], n = fv_image_type_spatial(image, axis);
    memcpy(shape, image->shape, sizeof image->shape);
    for (int k = 0; k < n; k++) shape[axis[k]] = fv__bias_points(p, p->iterations.count - 1);
}

void fv__bias_axis_take(fv__bias_axis *axis, int64_t n, fv_scratch *pieces) {
    axis->n = n;
    axis->first = fv__scratch_take(pieces, n * (int64_t)sizeof *axis->first);
    axis->weight = fv__scratch_take(pieces, n * FV__BIAS_WIDTH * (int64_t)sizeof *axis->weight);
}

void fv__bias_axis_fill(fv__bias_axis *axis, int64_t first, int64_t step, int64_t length, int64_t points) {
    int64_t n = axis->n, elements = points - 3;
    axis->points = points;
    axis->width = points == 1 ? 1 : FV__BIAS_WIDTH;
    for (int64_t i = 0; i < n; i++) {
        axis->first[i] = 0;
        axis->weight[i] = 1;
        if (points == 1) continue;
        double at = (double)((first + i * step) * elements) / (double)FV_MAX(length - 1, 1);
        axis->first[i] = FV_MIN((int64_t)at, elements - 1);
        double f = at - (double)axis->first[i], g = 1 - f;
        axis->weight[i] = g * g * g / 6;
        axis->weight[n + i] = (3 * f * f * f - 6 * f * f + 4) / 6;
        axis->weight[2 * n + i] = (3 * g * g * g - 6 * g * g + 4) / 6;
        axis->weight[3 * n + i] = f * f * f / 6;
    }
}

/* Along one axis, of rows of `inner` numbers that belong to one point. */
static void refine_axis(const double *from, double *to, int64_t outer, int64_t points, int64_t inner) {
    int64_t more = 2 * points - 3;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < more; k++) {
            const double *a = from + (o * points + k / 2) * inner, *b = a + inner, *c = b + inner;
            double       *r = to + (o * more + k) * inner;
            if (k % 2)
                for (int64_t i = 0; i < inner; i++) r[i] = (a[i] + 6 * b[i] + c[i]) / 8;
            else
                for (int64_t i = 0; i < inner; i++) r[i] = (a[i] + b[i]) / 2;
        }
}

void fv__bias_refine(const int64_t points[3], double *lattice, double *room) {
    int64_t size[3] = { points[0], points[1], points[2] };
    for (int k = 2; k >= 0; k--) {
        if (size[k] == 1) continue;
        int64_t outer = k == 0 ? 1 : k == 1 ? size[0] : size[0] * size[1];
        int64_t inner = k == 2 ? 1 : k == 1 ? size[2] : size[1] * size[2];
        refine_axis(lattice, room, outer, size[k], inner);
        size[k] = 2 * size[k] - 3;
        memcpy(lattice, room, (size_t)(size[0] * size[1] * size[2]) * sizeof *lattice);
    }
}

/* to = sum of the rows of n numbers that the voxel depends on. */
static void mix(const fv__bias_axis *axis, int64_t voxel, const double *from, int64_t n, double *to) {
    from += axis->first[voxel] * n;
    for (int64_t i = 0; i < n; i++) to[i] = axis->weight[voxel] * from[i];
    for (int j = 1; j < axis->width; j++) {
        double weight = axis->weight[j * axis->n + voxel];
        for (int64_t i = 0; i < n; i++) to[i] += weight * from[j * n + i];
    }
}

void fv__bias_plane(const fv__bias_axis axis[3], const double *lattice, int64_t z, double *plane) {
    mix(&axis[0], z, lattice, axis[1].points * axis[2].points, plane);
}

void fv__bias_line(const fv__bias_axis axis[3], const double *plane, int64_t y, double *line) {
    mix(&axis[1], y, plane, axis[2].points, line);
}

void fv__bias_row(const fv__bias_axis axis[3], const double *line, double *to) {
    const fv__bias_axis *x = &axis[2];
    const double        *w = x->weight;
    int64_t              n = x->n;
    for (int64_t i = 0, end; i < n; i = end) {
        const double *c = line + x->first[i];
        for (end = i + 1; end < n && x->first[end] == x->first[i];) end++;
        if (x->width == 1)
            for (int64_t k = i; k < end; k++) to[k] = c[0];
        else
            for (int64_t k = i; k < end; k++)
                to[k] = ((w[k] * c[0] + w[n + k] * c[1]) + w[2 * n + k] * c[2]) + w[3 * n + k] * c[3];
    }
}
