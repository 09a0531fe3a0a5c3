/* Transforms of a frame's waves beside what was measured. */
#include "ops/ptychography/measured_waves.h"
#include "kernels/vectors.h"
#include "op/scratch.h"
#include "ops/ptychography/exit_waves.h"
#include "ops/ptychography/near_field.h"

enum { LINES = FV_PLANE_LINES };

size_t fv__measured_lay_out(fv_measured_waves *k, int64_t height, int64_t width, int64_t modes, double near, void *memory) {
    fv_scratch pieces = { memory };
    *k = (fv_measured_waves){ .height = height, .width = width, .modes = modes, .stride = fv__plane_stride(width) };
    k->plane = height * k->stride;
    k->planes = fv__scratch_take(&pieces, modes * k->plane * (int64_t)sizeof(float));
    k->turned = fv__scratch_take(&pieces, modes * width * fv__plane_stride(height) * (int64_t)sizeof(float));
    k->strips = fv__scratch_take(&pieces, modes * width * 2 * LINES * (int64_t)sizeof(float));
    k->size = fv__scratch_take(&pieces, width * LINES * (int64_t)sizeof(float));
    k->by = fv__scratch_take(&pieces, width * LINES * (int64_t)sizeof(float));
    k->given = fv__scratch_take(&pieces, width * LINES * (int64_t)sizeof(float));
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

/* Factors of n numbers: what was measured, by what is there, and by the number of pixels. */
static void find_factors(const fv_measured_waves *k, const float *given, float dim, int64_t n) {
    float whole = 1 / (float)(k->height * k->width);
    float *restrict by = k->by;
    const float *size = k->size;
#pragma GCC ivdep
    for (int64_t x = 0; x < n; x++)
        by[x] = given[x] >= 0 ? given[x] * dim / (size[x] > 1e-20f ? size[x] : 1e-20f) * whole : whole;
}

static void scale_row(const fv_measured_waves *k, const float *given, float dim, int64_t y) {
    int64_t      n = k->width;
    const float *by = k->by;
    find_factors(k, given, dim, n);
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

/* Columns of a strip, of rows that are `row` apart: to[x * LINES + l] is number x of row l; of rows that are not there, -1. */
static void turn_strip(const float *from, int64_t row, int64_t count, int64_t n, float *to) {
    int64_t x = 0;
    for (; count == LINES && x + FV_F32_LANES <= n; x += FV_F32_LANES)
        for (int v = 0; v < LINES; v += FV_F32_LANES) {
            fv_f32v square[FV_F32_LANES];
#pragma GCC unroll 16
            for (int j = 0; j < FV_F32_LANES; j++) square[j] = fv_f32v_load(from + (v + j) * row + x);
            fv_f32v_transpose(square);
#pragma GCC unroll 16
            for (int j = 0; j < FV_F32_LANES; j++) fv_f32v_store(to + (x + j) * LINES + v, square[j]);
        }
    for (; x < n; x++)
        for (int64_t l = 0; l < LINES; l++) to[x * LINES + l] = l < count ? from[l * row + x] : -1;
}

/* Amplitudes of a strip, all modes and the background together. */
static void find_strip_sizes(const fv_measured_waves *k, const fv_measured *m, int64_t first, int64_t count) {
    int64_t n = k->width;
    float *restrict size = k->size;
    if (m->background)
        turn_strip(m->background + first * m->background_row, m->background_row, count, n, size);
    else
        memset(size, 0, (size_t)(n * LINES) * sizeof *size);
    for (int64_t mode = 0; mode < k->modes; mode++) {
        const float *strip = k->strips + mode * n * 2 * LINES;
        for (int64_t x = 0; x < n; x++)
            for (int v = 0; v < LINES; v += FV_F32_LANES) {
                fv_f32v re = fv_f32v_load(strip + 2 * x * LINES + v), im = fv_f32v_load(strip + (2 * x + 1) * LINES + v);
                fv_f32v_store(size + x * LINES + v, fv_f32v_load(size + x * LINES + v) + (re * re + im * im));
            }
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < n * LINES; i++) size[i] = sqrtf(size[i]);
}

static void add_differences(const fv_measured_waves *k, float dim, float left[LINES], float measured[LINES]) {
    const float *given = k->given, *size = k->size;
    for (int64_t x = 0; x < k->width; x++, given += LINES, size += LINES)
#pragma GCC ivdep
        for (int l = 0; l < LINES; l++) {
            left[l] += given[l] >= 0 ? fabsf(given[l] * dim - size[l]) : 0;
            measured[l] += given[l] >= 0 ? given[l] * dim : 0;
        }
}

/* A detector near by is a plane as the object is; far away the strips of a spectrum are compared while they are near. */
void fv__measured_project(const fv_measured_waves *k, const fv_measured *m, double *sums) {
    int64_t turned = k->width * fv__plane_stride(k->height), strip = k->width * 2 * LINES;
    float   left[LINES] = { 0 }, measured[LINES] = { 0 };
    if (k->travel) {
        for (int64_t mode = 0; mode < k->modes; mode++) fv__measured_transform(k, mode, false);
        fv__measured_compare(k, m, true, sums);
        for (int64_t mode = 0; mode < k->modes; mode++) fv__measured_transform(k, mode, true);
        return;
    }
    for (int64_t mode = 0; mode < k->modes; mode++) {
        float *from = k->planes + mode * k->plane, *to = k->turned + mode * turned;
        FV_ISA_NAME(fv__plane_fourier_half)(&k->fourier, 0, from, k->stride, to, fv__plane_stride(k->height), false);
    }
    for (int64_t first = 0; first < k->height; first += LINES) {
        int64_t count = FV_MIN(LINES, k->height - first);
        for (int64_t mode = 0; mode < k->modes; mode++)
            FV_ISA_NAME(fv__plane_fourier_strip)(&k->fourier, k->turned + mode * turned, first, k->strips + mode * strip);
        turn_strip(m->amplitude + first * m->row, m->row, count, k->width, k->given);
        find_strip_sizes(k, m, first, count);
        find_factors(k, k->given, m->by, k->width * LINES);
        if (sums) add_differences(k, m->by, left, measured);
        for (int64_t mode = 0; mode < k->modes; mode++) {
            float *from = k->strips + mode * strip, *to = k->planes + mode * k->plane;
            FV_ISA_NAME(fv__plane_fourier_strip_back)(&k->fourier, from, k->by, first, to, k->stride);
        }
    }
    for (int64_t mode = 0; mode < k->modes; mode++)
        FV_ISA_NAME(fv__plane_fourier_columns_back)(&k->fourier, k->planes + mode * k->plane, k->stride);
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
