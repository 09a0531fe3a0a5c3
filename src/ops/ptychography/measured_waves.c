/* Transforms of a frame's waves beside what was measured. */
#include "ops/ptychography/measured_waves.h"
#include "op/scratch.h"
#include "ops/ptychography/exit_waves.h"
#include "ops/ptychography/near_field.h"

size_t fv__measured_lay_out(fv_measured_waves *k, int64_t height, int64_t width, int64_t modes, double near, void *memory) {
    fv_scratch pieces = { memory };
    *k = (fv_measured_waves){ .height = height, .width = width, .modes = modes, .stride = fv__plane_stride(width) };
    k->plane = height * k->stride;
    k->planes = fv__scratch_take(&pieces, modes * k->plane * (int64_t)sizeof(float));
    k->size = fv__scratch_take(&pieces, width * (int64_t)sizeof(float));
    k->by = fv__scratch_take(&pieces, width * (int64_t)sizeof(float));
    k->memory = fv__scratch_take(&pieces, FV_ISA_NAME(fv__plane_fourier_bytes)(height, width));
    k->travel = near != 0 ? fv__scratch_take(&pieces, 2 * height * width * (int64_t)sizeof(float)) : NULL;
    if (memory) FV_ISA_NAME(fv__plane_fourier_prepare)(&k->fourier, height, width, k->memory);
    if (memory && near != 0) fv__near_fill(height, width, near, 1 / sqrt((double)(height * width)), k->travel);
    return pieces.used;
}

void fv__measured_travel(const fv_measured_waves *k, float *plane, bool back) {
    FV_ISA_NAME(fv__plane_fourier)(&k->fourier, plane, k->stride, false);
    fv__near_turn(k->height, k->width, k->travel, plane, k->stride, back);
    FV_ISA_NAME(fv__plane_fourier)(&k->fourier, plane, k->stride, true);
}

/* Amplitudes of row y, all modes and the background together. */
static void find_sizes(const fv_measured_waves *k, const fv_measured *measured, int64_t y) {
    int64_t n = k->width;
    float *restrict size = k->size;
    if (measured->background)
        memcpy(size, measured->background + y * measured->background_row, (size_t)n * sizeof *size);
    else
        memset(size, 0, (size_t)n * sizeof *size);
    for (int64_t m = 0; m < k->modes; m++) {
        const float *re = k->planes + m * k->plane + y * k->stride, *im = re + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) size[x] += re[x] * re[x] + im[x] * im[x];
    }
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++) size[x] = sqrtf(size[x]);
}

static void scale_row(const fv_measured_waves *k, const float *given, float dim, int64_t y) {
    int64_t n = k->width;
    float   whole = 1 / (float)(k->height * n);
    float *restrict by = k->by;
    const float *size = k->size;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++)
        by[x] = given[x] >= 0 ? given[x] * dim / (size[x] > 1e-20f ? size[x] : 1e-20f) * whole : whole;
    for (int64_t m = 0; m < k->modes; m++) {
        float *restrict re = k->planes + m * k->plane + y * k->stride, *restrict im = re + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            re[x] *= by[x];
            im[x] *= by[x];
        }
    }
}

void fv__measured_compare(const fv_measured_waves *k, const fv_measured *m, bool scale, double *sums) {
    int64_t n = k->width;
    float   left[FV_WAVE_LANES] = { 0 }, measured[FV_WAVE_LANES] = { 0 };
    for (int64_t y = 0; y < k->height; y++) {
        const float *a = m->amplitude + y * m->row;
        find_sizes(k, m, y);
        if (scale) scale_row(k, a, m->by, y);
        if (!sums) continue;
        float *restrict away = k->by;
        const float *size = k->size;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) away[x] = a[x] >= 0 ? fabsf(a[x] * m->by - size[x]) : 0;
        fv__lanes_add(away, n, left);
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) away[x] = a[x] >= 0 ? a[x] * m->by : 0;
        fv__lanes_add(away, n, measured);
    }
    if (!sums) return;
    sums[0] += fv__lanes_sum(left);
    sums[1] += fv__lanes_sum(measured);
}

double fv__measured_light(const fv_measured_waves *k, const fv_measured *m) {
    float measured[FV_WAVE_LANES] = { 0 }, waves[FV_WAVE_LANES] = { 0 };
    for (int64_t y = 0; y < k->height; y++) {
        const float *a = m->amplitude + y * m->row, *size = k->size;
        float *restrict square = k->by;
        find_sizes(k, m, y);
#pragma GCC ivdep
        for (int64_t x = 0; x < k->width; x++) square[x] = a[x] >= 0 ? a[x] * a[x] : 0;
        fv__lanes_add(square, k->width, measured);
#pragma GCC ivdep
        for (int64_t x = 0; x < k->width; x++) square[x] = a[x] >= 0 ? size[x] * size[x] : 0;
        fv__lanes_add(square, k->width, waves);
    }
    double of = fv__lanes_sum(waves);
    return of > 0 ? FV_MAX(0.05, FV_MIN(20, sqrt(fv__lanes_sum(measured) / of))) : 1;
}

void fv__measured_ratios(const fv_measured_waves *k, const fv_measured *m, float *to) {
    int64_t n = k->width;
    for (int64_t y = 0; y < k->height; y++) {
        const float *a = m->amplitude + y * m->row, *size = k->size;
        float *restrict sum = to + 2 * y * n, *restrict count = sum + n;
        find_sizes(k, m, y);
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            sum[x] += a[x] >= 0 ? a[x] * m->by / (size[x] > 1e-20f ? size[x] : 1e-20f) : 0;
            count[x] += a[x] >= 0 ? 1 : 0;
        }
    }
}
