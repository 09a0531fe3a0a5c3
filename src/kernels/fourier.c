/* Filters of rows by their spectrum. */
#include "kernels/fourier.h"
#include "base/math.h"
#include "kernels/vectors.h"

enum { LANES = 16, STEP = 2 * LANES };

static int64_t reversed(int64_t i, int64_t n) {
    int64_t r = 0;
    for (; n > 1; n >>= 1, i >>= 1) r = r << 1 | (i & 1);
    return r;
}

void FV_ISA_NAME(fv__fourier_prepare)(fv_fourier *f, const double *response) {
    for (int64_t k = 0; k < f->n / 2; k++) {
        double angle = (double)k / (double)f->n * 0x1.921fb54442d18p+2; /* two pi */
        f->turn[2 * k] = (float)fv__cos(angle);
        f->turn[2 * k + 1] = (float)fv__sin(angle);
    }
    for (int64_t k = 0; k < f->n; k++)
        f->response[reversed(k, f->n)] = (float)(response[k <= f->n / 2 ? k : f->n - k] / (double)f->n);
}

/* Decimation in frequency: natural order to reversed. */
static void forward(const fv_fourier *f, float *rows) {
    for (int64_t half = f->n / 2; half >= 1; half /= 2) {
        int64_t every = f->n / 2 / half;
        for (int64_t start = 0; start < f->n; start += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                float  *p = rows + (start + k) * STEP, *q = p + half * STEP;
                fv_f32v c = fv_f32v_splat(f->turn[2 * k * every]), s = fv_f32v_splat(f->turn[2 * k * every + 1]);
#pragma GCC unroll 4
                for (int v = 0; v < LANES; v += FV_F32_LANES) {
                    fv_f32v a = fv_f32v_load(p + v), ai = fv_f32v_load(p + LANES + v);
                    fv_f32v b = fv_f32v_load(q + v), bi = fv_f32v_load(q + LANES + v), d = a - b, di = ai - bi;
                    fv_f32v_store(p + v, a + b);
                    fv_f32v_store(p + LANES + v, ai + bi);
                    fv_f32v_store(q + v, d * c + di * s);
                    fv_f32v_store(q + LANES + v, di * c - d * s);
                }
            }
    }
}

/* Decimation in time: reversed order to natural. */
static void backward(const fv_fourier *f, float *rows) {
    for (int64_t half = 1; half < f->n; half *= 2) {
        int64_t every = f->n / 2 / half;
        for (int64_t start = 0; start < f->n; start += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                float  *p = rows + (start + k) * STEP, *q = p + half * STEP;
                fv_f32v c = fv_f32v_splat(f->turn[2 * k * every]), s = fv_f32v_splat(f->turn[2 * k * every + 1]);
#pragma GCC unroll 4
                for (int v = 0; v < LANES; v += FV_F32_LANES) {
                    fv_f32v a = fv_f32v_load(p + v), ai = fv_f32v_load(p + LANES + v);
                    fv_f32v b = fv_f32v_load(q + v), bi = fv_f32v_load(q + LANES + v), t = b * c - bi * s, ti = bi * c + b * s;
                    fv_f32v_store(p + v, a + t);
                    fv_f32v_store(p + LANES + v, ai + ti);
                    fv_f32v_store(q + v, a - t);
                    fv_f32v_store(q + LANES + v, ai - ti);
                }
            }
    }
}

void FV_ISA_NAME(fv__fourier_filter)(const fv_fourier *f, float *rows) {
    forward(f, rows);
    for (int64_t k = 0; k < f->n; k++)
        for (int l = 0; l < STEP; l++) rows[k * STEP + l] *= f->response[k];
    backward(f, rows);
}
