/* Fourier transforms of planes: 16 columns at a time are brought into the nearest cache, transformed there and put back as rows;
 * twice, and both axes are done. */
#include "kernels/plane_fourier.h"
#include "base/math.h"
#include "kernels/vectors.h"
#include "op/scratch.h"

#define REAL float
#define VECTOR fv_f32v
#define LANES FV_F32_LANES
#define R(name) name
#include "kernels/fourier_factors.h"

enum { WIDTH = FV_PLANE_LINES, STEP = 2 * WIDTH };

bool FV_ISA_NAME(fv__plane_fourier_able)(int64_t n) { return n >= 1 && fv__is_direct(n); }

static size_t lay_out(fv_plane_fourier *f, int64_t height, int64_t width, void *memory) {
    fv_scratch pieces = { memory };
    for (int a = 0; a < 2; a++) {
        int64_t n = a ? width : height;
        f->axis[a].n = n;
        f->axis[a].turn = fv__scratch_take(&pieces, 2 * n * (int64_t)sizeof(float));
        f->axis[a].place = fv__scratch_take(&pieces, n * (int64_t)sizeof *f->axis[a].place);
    }
    f->bundle = fv__scratch_take(&pieces, FV_MAX(height, width) * STEP * (int64_t)sizeof(float));
    f->turned = fv__scratch_take(&pieces, width * fv__plane_stride(height) * (int64_t)sizeof(float));
    return pieces.used;
}

int64_t FV_ISA_NAME(fv__plane_fourier_bytes)(int64_t height, int64_t width) {
    fv_plane_fourier f;
    return (int64_t)lay_out(&f, height, width, NULL);
}

void FV_ISA_NAME(fv__plane_fourier_prepare)(fv_plane_fourier *f, int64_t height, int64_t width, void *memory) {
    lay_out(f, height, width, memory);
    for (int a = 0; a < 2; a++) {
        const fv_plane_axis *axis = &f->axis[a];
        for (int64_t k = 0; k < axis->n; k++) {
            double angle = (double)k / (double)axis->n * 0x1.921fb54442d18p+2; /* two pi */
            axis->turn[2 * k] = (float)fv__cos(angle);
            axis->turn[2 * k + 1] = (float)fv__sin(angle);
            axis->place[k] = fv__place_in_time(k, axis->n);
        }
    }
}

/* ---------------------------------------------------------------- the first steps: turns by an eighth need no table */

FV_INLINE void sum_and_difference(complex_vector *a, complex_vector *b) {
    complex_vector d = { a->re - b->re, a->im - b->im };
    a->re = a->re + b->re;
    a->im = a->im + b->im;
    *b = d;
}

/* times i * sign */
FV_INLINE complex_vector quarter_turn(complex_vector v, float sign) {
    return (complex_vector){ v.im * fv_f32v_splat(-sign), v.re * fv_f32v_splat(sign) };
}

/* times (1 + i * sign) / sqrt(2) */
FV_INLINE complex_vector eighth_turn(complex_vector v, float sign) {
    fv_f32v s = fv_f32v_splat(0x1.6a09e6p-1f), t = fv_f32v_splat(sign);
    return (complex_vector){ (v.re - v.im * t) * s, (v.im + v.re * t) * s };
}

/* The transform of numbers 0 2 1 3, in place. */
FV_INLINE void four_numbers(complex_vector *v, float sign) {
    sum_and_difference(&v[0], &v[1]);
    sum_and_difference(&v[2], &v[3]);
    v[3] = quarter_turn(v[3], sign);
    sum_and_difference(&v[0], &v[2]);
    sum_and_difference(&v[1], &v[3]);
}

FV_INLINE void first_four(float *rows, int64_t n, float sign) {
    for (int64_t start = 0; start < n; start += 4)
        for (int v = 0; v < WIDTH; v += LANES) {
            float         *p = rows + start * STEP + v;
            complex_vector a[4];
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) a[j] = number(p + j * STEP, WIDTH);
            four_numbers(a, sign);
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) put_number(p + j * STEP, WIDTH, a[j]);
        }
}

FV_INLINE void first_eight(float *rows, int64_t n, float sign) {
    for (int64_t start = 0; start < n; start += 8)
        for (int v = 0; v < WIDTH; v += LANES) {
            float         *p = rows + start * STEP + v;
            complex_vector a[8];
#pragma GCC unroll 8
            for (int j = 0; j < 8; j++) a[j] = number(p + j * STEP, WIDTH);
            four_numbers(a, sign);
            four_numbers(a + 4, sign);
            a[5] = eighth_turn(a[5], sign);
            a[6] = quarter_turn(a[6], sign);
            a[7] = quarter_turn(eighth_turn(a[7], sign), sign);
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) sum_and_difference(&a[j], &a[4 + j]);
#pragma GCC unroll 8
            for (int j = 0; j < 8; j++) put_number(p + j * STEP, WIDTH, a[j]);
        }
}

FV_INLINE void power_of_two(float *rows, int64_t n, int64_t power, const float *turn, float sign) {
    int64_t half = power;
    while (half >= 16) half /= 4; /* 4 or 8 is left to begin with, unless the power is smaller */
    if (half == 4)
        first_four(rows, n, sign);
    else if (half == 8)
        first_eight(rows, n, sign);
    else
        half = 1;
    for (; 4 * half <= power; half *= 4) fours_in_time(rows, n, half, WIDTH, turn, sign);
    if (2 * half <= power) pairs_in_time(rows, n, half, WIDTH, turn, sign);
}

static void transform(const fv_plane_axis *axis, float *rows, float sign) {
    int64_t size = axis->n & -axis->n;
    power_of_two(rows, axis->n, size, axis->turn, sign);
    odd_factors(rows, axis->n, size, WIDTH, axis->turn, sign);
}

/* ---------------------------------------------------------------- columns in, rows out */

static void gather(const fv_plane_axis *axis, const float *from, int64_t stride, int64_t apart, int64_t count, float *rows) {
    for (int64_t y = 0; y < axis->n; y++, from += stride) {
        float *to = rows + axis->place[y] * STEP;
        if (count == WIDTH)
            for (int v = 0; v < WIDTH; v += LANES) {
                fv_f32v_store(to + v, fv_f32v_load(from + v));
                fv_f32v_store(to + WIDTH + v, fv_f32v_load(from + apart + v));
            }
        else
            for (int64_t l = 0; l < WIDTH; l++) {
                to[l] = l < count ? from[l] : 0;
                to[WIDTH + l] = l < count ? from[apart + l] : 0;
            }
    }
}

/* Number k of line l goes to to[l * stride + k], its imaginary part `apart` behind it. */
static void scatter(const float *rows, int64_t n, int64_t count, float *to, int64_t stride, int64_t apart) {
    int64_t k = 0;
    for (; count == WIDTH && k + LANES <= n; k += LANES)
        for (int part = 0; part < 2; part++)
            for (int v = 0; v < WIDTH; v += LANES) {
                fv_f32v square[LANES];
#pragma GCC unroll 16
                for (int j = 0; j < LANES; j++) square[j] = fv_f32v_load(rows + (k + j) * STEP + part * WIDTH + v);
                fv_f32v_transpose(square);
#pragma GCC unroll 16
                for (int j = 0; j < LANES; j++) fv_f32v_store(to + (v + j) * stride + part * apart + k, square[j]);
            }
    for (; k < n; k++)
        for (int64_t l = 0; l < count; l++) {
            to[l * stride + k] = rows[k * STEP + l];
            to[l * stride + apart + k] = rows[k * STEP + WIDTH + l];
        }
}

/* Number k of line l goes to to[k * stride + l], its imaginary part `apart` behind it. */
static void put_columns(const float *rows, int64_t n, int64_t count, float *to, int64_t stride, int64_t apart) {
    for (int64_t k = 0; k < n; k++, rows += STEP, to += stride)
        if (count == WIDTH)
            for (int v = 0; v < WIDTH; v += LANES) {
                fv_f32v_store(to + v, fv_f32v_load(rows + v));
                fv_f32v_store(to + apart + v, fv_f32v_load(rows + WIDTH + v));
            }
        else
            for (int64_t l = 0; l < count; l++) {
                to[l] = rows[l];
                to[apart + l] = rows[WIDTH + l];
            }
}

/* The columns of a plane are transformed, and become the rows of another. */
static void turn_over(const fv_plane_fourier *f, int axis, const float *from, int64_t from_stride, float *to, int64_t to_stride,
                      float sign) {
    int64_t n = f->axis[axis].n, lines = f->axis[1 - axis].n;
    for (int64_t x = 0; x < lines; x += WIDTH) {
        int64_t count = FV_MIN(WIDTH, lines - x);
        gather(&f->axis[axis], from + x, from_stride, lines, count, f->bundle);
        transform(&f->axis[axis], f->bundle, sign);
        scatter(f->bundle, n, count, to + x * to_stride, to_stride, n);
    }
}

void FV_ISA_NAME(fv__plane_fourier_half)(const fv_plane_fourier *f, int axis, const float *from, int64_t from_stride, float *to,
                                         int64_t to_stride, bool inverse) {
    turn_over(f, axis, from, from_stride, to, to_stride, inverse ? 1 : -1);
}

void FV_ISA_NAME(fv__plane_fourier)(const fv_plane_fourier *f, float *plane, int64_t stride, bool inverse) {
    float   sign = inverse ? 1 : -1;
    int64_t between = fv__plane_stride(f->axis[0].n);
    turn_over(f, 0, plane, stride, f->turned, between, sign);
    turn_over(f, 1, f->turned, between, plane, stride, sign);
}

/* ---------------------------------------------------------------- there and back, strip by strip */

void FV_ISA_NAME(fv__plane_fourier_strip)(const fv_plane_fourier *f, const float *turned, int64_t first, float *strip) {
    int64_t height = f->axis[0].n;
    gather(&f->axis[1], turned + first, fv__plane_stride(height), height, FV_MIN(WIDTH, height - first), strip);
    transform(&f->axis[1], strip, -1);
}

void FV_ISA_NAME(fv__plane_fourier_strip_back)(const fv_plane_fourier *f, const float *strip, const float *by, int64_t first,
                                               float *plane, int64_t stride) {
    int64_t n = f->axis[1].n;
    for (int64_t k = 0; k < n; k++, strip += STEP, by += WIDTH) {
        float *to = f->bundle + f->axis[1].place[k] * STEP;
        for (int v = 0; v < WIDTH; v += LANES) {
            fv_f32v factor = fv_f32v_load(by + v);
            fv_f32v_store(to + v, fv_f32v_load(strip + v) * factor);
            fv_f32v_store(to + WIDTH + v, fv_f32v_load(strip + WIDTH + v) * factor);
        }
    }
    transform(&f->axis[1], f->bundle, 1);
    scatter(f->bundle, n, FV_MIN(WIDTH, f->axis[0].n - first), plane + first * stride, stride, n);
}

void FV_ISA_NAME(fv__plane_fourier_columns_back)(const fv_plane_fourier *f, float *plane, int64_t stride) {
    int64_t width = f->axis[1].n;
    for (int64_t x = 0; x < width; x += WIDTH) {
        int64_t count = FV_MIN(WIDTH, width - x);
        gather(&f->axis[0], plane + x, stride, width, count, f->bundle);
        transform(&f->axis[0], f->bundle, 1);
        put_columns(f->bundle, f->axis[0].n, count, plane + x, stride, width);
    }
}
