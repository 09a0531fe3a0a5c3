/* A probe shifted by parts of a pixel, and back. */
#include "ops/ptychography/probe_classes.h"
#include "base/math.h"
#include "op/scratch.h"

size_t fv__probe_classes_lay_out(fv_probe_classes *c, int64_t height, int64_t width, const fv_list *shifts, void *memory) {
    fv_scratch pieces = { memory };
    *c = (fv_probe_classes){ .height = height, .width = width, .stride = fv__plane_stride(width), .shifts = shifts };
    c->plane = fv__scratch_take(&pieces, height * c->stride * (int64_t)sizeof(float));
    c->spectrum = fv__scratch_take(&pieces, height * c->stride * (int64_t)sizeof(float));
    c->turn[0] = fv__scratch_take(&pieces, 2 * height * (int64_t)sizeof(float));
    c->turn[1] = fv__scratch_take(&pieces, 2 * width * (int64_t)sizeof(float));
    c->memory = fv__scratch_take(&pieces, FV_ISA_NAME(fv__plane_fourier_bytes)(height, width));
    if (memory) FV_ISA_NAME(fv__plane_fourier_prepare)(&c->fourier, height, width, c->memory);
    return pieces.used;
}

/* A shift by s pixels turns frequency k by -s k / n. */
static void prepare_turns(const fv_probe_classes *c, const double shift[2], double sign) {
    for (int a = 0; a < 2; a++) {
        int64_t n = a ? c->width : c->height;
#pragma GCC ivdep
        for (int64_t k = 0; k < n; k++) {
            double cycles = (double)(k < (n + 1) / 2 ? k : k - n) / (double)n * shift[a];
            double angle = -sign * cycles * 0x1.921fb54442d18p+2;
            c->turn[a][k] = (float)fv__cos(angle);
            c->turn[a][n + k] = (float)fv__sin(angle);
        }
    }
}

/* to += from, turned. */
static void turn_rows(const fv_probe_classes *c, const float *from, float *to) {
    int64_t n = c->width;
    for (int64_t y = 0; y < c->height; y++) {
        const float *re = from + y * c->stride, *im = re + n, *cx = c->turn[1], *sx = cx + n;
        float        cy = c->turn[0][y], sy = c->turn[0][c->height + y];
        float *restrict a = to + y * c->stride, *restrict b = a + n;
#pragma GCC ivdep
        for (int64_t x = 0; x < n; x++) {
            float cosine = cx[x] * cy - sx[x] * sy, sine = sx[x] * cy + cx[x] * sy;
            float u = re[x] * cosine - im[x] * sine, v = im[x] * cosine + re[x] * sine;
            a[x] += u;
            b[x] += v;
        }
    }
}

void fv__probe_classes_open(fv_probe_classes *c, const float *probe) {
    int64_t row = 2 * c->width;
    float   whole = 1 / (float)(c->height * c->width);
    for (int64_t y = 0; y < c->height; y++)
        for (int64_t x = 0; x < row; x++) c->spectrum[y * c->stride + x] = probe[y * row + x] * whole;
    FV_ISA_NAME(fv__plane_fourier)(&c->fourier, c->spectrum, c->stride, false);
}

void fv__probe_classes_shift(fv_probe_classes *c, const double shift[2]) {
    prepare_turns(c, shift, 1);
    memset(c->plane, 0, (size_t)(c->height * c->stride) * sizeof *c->plane);
    turn_rows(c, c->spectrum, c->plane);
    FV_ISA_NAME(fv__plane_fourier)(&c->fourier, c->plane, c->stride, true);
}

void fv__probe_classes_fill(fv_probe_classes *c, float *probe, int64_t apart) {
    int64_t row = 2 * c->width;
    if (c->shifts->count <= 2) return;
    fv__probe_classes_open(c, probe);
    for (int64_t k = 1; k < c->shifts->count / 2; k++) {
        fv__probe_classes_shift(c, c->shifts->value + 2 * k);
        for (int64_t y = 0; y < c->height; y++)
            memcpy(probe + k * apart + y * row, c->plane + y * c->stride, (size_t)row * sizeof *probe);
    }
}

void fv__probe_classes_add(fv_probe_classes *c, const double shift[2], float *spectrum) {
    FV_ISA_NAME(fv__plane_fourier)(&c->fourier, c->plane, c->stride, false);
    prepare_turns(c, shift, -1);
    turn_rows(c, c->plane, spectrum);
}
