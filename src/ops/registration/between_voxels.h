/* What metrics of registration share: values of the moving image between its voxels, and windows of mutual information. */
#ifndef FV_BETWEEN_VOXELS_H
#define FV_BETWEEN_VOXELS_H

#include "base/base.h"

/* Value and slope between eight voxels of an image of size x, y, z (n of them are more than one). Half a voxel outside still
 * counts, with the value at the border: otherwise the least motion would lose whole planes, of a thin volume many of its voxels.
 * false: it lies outside. */
static inline bool fv__look(const float *image, const int64_t size[3], int n, const float q[3], float *value, float slope[3]) {
    int64_t at[3], next[3], step = 1;
    float   part[3];
    bool    flat[3];
    for (int c = 0; c < 3; c++) {
        float last = (float)(size[c] - 1), place = c < n ? q[c] : 0;
        if (!(place >= -0.5f && place <= last + 0.5f)) return false;
        flat[c] = place < 0 || place > last;
        place = place < 0 ? 0 : place > last ? last : place;
        int64_t low = FV_MIN((int64_t)place, FV_MAX(size[c] - 2, 0));
        part[c] = place - (float)low;
        at[c] = low * step;
        next[c] = size[c] > 1 ? step : 0;
        step *= size[c];
    }
    const float *v = image + at[0] + at[1] + at[2];
    float        a[2][2], da[2][2];
    for (int k = 0; k < 2; k++)
        for (int j = 0; j < 2; j++) {
            const float *from = v + k * next[2] + j * next[1];
            da[k][j] = from[next[0]] - from[0];
            a[k][j] = from[0] + part[0] * da[k][j];
        }
    float b0 = a[0][0] + part[1] * (a[0][1] - a[0][0]), b1 = a[1][0] + part[1] * (a[1][1] - a[1][0]);
    float d0 = da[0][0] + part[1] * (da[0][1] - da[0][0]), d1 = da[1][0] + part[1] * (da[1][1] - da[1][0]);
    float e0 = a[0][1] - a[0][0], e1 = a[1][1] - a[1][0];
    *value = b0 + part[2] * (b1 - b0);
    slope[0] = d0 + part[2] * (d1 - d0);
    slope[1] = e0 + part[2] * (e1 - e0);
    slope[2] = b1 - b0;
    for (int c = 0; c < 3; c++)
        if (flat[c]) slope[c] = 0;
    return true;
}

/* A value is spread over four bins by a cubic B-spline (Mattes and others, 2003): its place among the bins of the moving image,
 * the weights of those from the one before on, and how these change. */
static inline float fv__parzen_place(float value, float low, float share, int bins) {
    float u = (value - low) * share + 1.5f, most = (float)(bins - 3);
    return u < 1 ? 1 : u > most ? most : u;
}
static inline void fv__parzen(float u, double weight[4], double slope[4]) {
    double t = (double)u, s = 1 - t;
    weight[0] = s * s * s / 6;
    weight[1] = (4 - 6 * t * t + 3 * t * t * t) / 6;
    weight[2] = (4 - 6 * s * s + 3 * s * s * s) / 6;
    weight[3] = t * t * t / 6;
    slope[0] = -s * s / 2;
    slope[1] = (3 * t * t - 4 * t) / 2;
    slope[2] = (4 * s - 3 * s * s) / 2;
    slope[3] = t * t / 2;
}

/* How far the values of the moving image lie apart where the fixed one has the same, in bins, from its row of the histogram. */
static inline double fv__joint_variance(const double *joint, int bins) {
    double sum = 0, first = 0, second = 0;
    for (int m = 0; m < bins; m++) {
        sum += joint[m];
        first += joint[m] * m;
        second += joint[m] * m * m;
    }
    return sum > 0 ? second / sum - first / sum * (first / sum) : 1;
}

#endif
