/* A probe shifted by parts of a pixel, and back. */
#include "ops/ptychography/probe_classes.h"
#include "base/math.h"
#include "op/scratch.h"

size_t fv__probe_classes_lay_out(fv_probe_classes *c, int64_t height, int64_t width, const fv_list *shifts, void *memory) {
    fv_scratch pieces = { memory };
    *c =
        (fv_probe_classes){ .height = height, .width = width, .stride = fv__plane_stride(width), .shifts = shifts, .ready = NAN };
    c->plane = fv__scratch_take(&pieces, height * c->stride * (int64_t)sizeof(float));
    c->spectrum = fv__scratch_take(&pieces, height * c->stride * (int64_t)sizeof(float));
    c->half = fv__scratch_take(&pieces, width * fv__plane_stride(height) * (int64_t)sizeof(float));
    c->turn[0] = fv__scratch_take(&pieces, 2 * height * (int64_t)sizeof(float));
    c->turn[1] = fv__scratch_take(&pieces, 2 * width * (int64_t)sizeof(float));
    c->memory = fv__scratch_take(&pieces, FV_ISA_NAME(fv__plane_fourier_bytes)(height, width));
    if (memory) FV_ISA_NAME(fv__plane_fourier_prepare)(&c->fourier, height, width, c->memory);
    return pieces.used;
}

/* A shift by s pixels turns frequency k by -s k / n. */
static void prepare_turn(const fv_probe_classes *c, int axis, double shift) {
    int64_t n = axis ? c->width : c->height;
#pragma GCC ivdep
    for (int64_t k = 0; k < n; k++) {
        double cycles = (double)(k < (n + 1) / 2 ? k : k - n) / (double)n * shift;
        double angle = -cycles * 0x1.921fb54442d18p+2;
        c->turn[axis][k] = (float)fv__cos(angle);
        c->turn[axis][n + k] = (float)fv__sin(angle);
    }
}

/* Each row is turned as a whole: to = from, turned. */
static void turn_rows(const fv_probe_classes *c, int axis, const float *from, float *to) {
    int64_t rows = axis ? c->width : c->height, n = axis ? c->height : c->width, stride = fv__plane_stride(n);
    for (int64_t y = 0; y < rows; y++) {
        const float *re = from + y * stride, *im = re + n;
        float        cosine = c->turn[axis][y], sine = c->turn[axis][rows + y];
        float *restrict a = to + y * stride, *restrict b = a + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            a[x] = re[x] * cosine - im[x] * sine;
            b[x] = im[x] * cosine + re[x] * sine;
        }
    }
}

/* Each column is turned as a whole: to = from, turned, or to += from. */
static void turn_columns(const fv_probe_classes *c, int axis, const float *from, float *to, bool add) {
    int64_t rows = axis ? c->height : c->width, n = axis ? c->width : c->height, stride = fv__plane_stride(n);
    for (int64_t y = 0; y < rows; y++) {
        const float *re = from + y * stride, *im = re + n, *cosine = c->turn[axis], *sine = cosine + n;
        float *restrict a = to + y * stride, *restrict b = a + n;
        if (add)
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++) {
                a[x] += re[x] * cosine[x] - im[x] * sine[x];
                b[x] += im[x] * cosine[x] + re[x] * sine[x];
            }
        else
#pragma GCC ivdep
            for (int64_t x = 0; x < n; x++) {
                a[x] = re[x] * cosine[x] - im[x] * sine[x];
                b[x] = im[x] * cosine[x] + re[x] * sine[x];
            }
    }
}

void fv__probe_classes_open(fv_probe_classes *c, const float *probe) {
    int64_t row = 2 * c->width;
    float   whole = 1 / (float)(c->height * c->width);
    for (int64_t y = 0; y < c->height; y++)
        for (int64_t x = 0; x < row; x++) c->spectrum[y * c->stride + x] = probe[y * row + x] * whole;
    FV_ISA_NAME(fv__plane_fourier)(&c->fourier, c->spectrum, c->stride, false);
    c->ready = NAN;
}

void fv__probe_classes_shift(fv_probe_classes *c, const double shift[2]) {
    fv__probe_classes_shift_to(c, shift, c->plane, c->stride);
}

void fv__probe_classes_shift_to(fv_probe_classes *c, const double shift[2], float *to, int64_t stride) {
    int64_t between = fv__plane_stride(c->height);
    if (c->ready != shift[0]) {
        prepare_turn(c, 0, shift[0]);
        turn_rows(c, 0, c->spectrum, c->plane);
        FV_ISA_NAME(fv__plane_fourier_half)(&c->fourier, 0, c->plane, c->stride, c->half, between, true);
        c->ready = shift[0];
    }
    for (int64_t y = 0; y < c->height; y++) /* nobody has used it lately: it comes while rows are turned */
        for (int64_t x = 0; x < 2 * c->width; x += 16) __builtin_prefetch(to + y * stride + x, 1);
    prepare_turn(c, 1, shift[1]);
    turn_rows(c, 1, c->half, c->fourier.turned);
    FV_ISA_NAME(fv__plane_fourier_half)(&c->fourier, 1, c->fourier.turned, between, to, stride, true);
}

void fv__probe_classes_fill(fv_probe_classes *c, float *probe, int64_t apart) {
    int64_t row = 2 * c->width;
    if (c->shifts->count <= 2) return;
    fv__probe_classes_open(c, probe);
    for (int64_t k = fv__probe_classes_next(c, 0); k; k = fv__probe_classes_next(c, k))
        fv__probe_classes_shift_to(c, c->shifts->value + 2 * k, probe + k * apart, row);
}

int64_t fv__probe_classes_next(const fv_probe_classes *c, int64_t class) {
    const double *shift = c->shifts->value;
    int64_t       next = 0;
    for (int64_t k = 1; k < c->shifts->count / 2; k++) {
        bool later = !class || shift[2 * k] > shift[2 * class] || (shift[2 * k] == shift[2 * class] && k > class);
        if (later && (!next || shift[2 * k] < shift[2 * next])) next = k;
    }
    return next;
}

void fv__probe_classes_add_rows(fv_probe_classes *c, double rows, bool first) {
    int64_t between = fv__plane_stride(c->height);
    FV_ISA_NAME(fv__plane_fourier_half)(&c->fourier, 0, c->plane, c->stride, c->fourier.turned, between, false);
    prepare_turn(c, 0, -rows);
    turn_columns(c, 0, c->fourier.turned, c->half, !first);
    c->ready = NAN;
}

void fv__probe_classes_add_columns(fv_probe_classes *c, double columns, float *spectrum) {
    FV_ISA_NAME(fv__plane_fourier_half)(&c->fourier, 1, c->half, fv__plane_stride(c->height), c->plane, c->stride, false);
    prepare_turn(c, 1, -columns);
    turn_columns(c, 1, c->plane, spectrum, true);
}

void fv__probe_classes_add(fv_probe_classes *c, const double shift[2], float *spectrum) {
    fv__probe_classes_add_rows(c, shift[0], true);
    fv__probe_classes_add_columns(c, shift[1], spectrum);
}
