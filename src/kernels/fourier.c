/* Filters of rows by their spectrum. */
#include "kernels/fourier.h"
#include "base/math.h"
#include "kernels/vectors.h"

#define REAL float
#define VECTOR fv_f32v
#define LANES FV_F32_LANES
#define R(name) name
#include "kernels/fourier_real.h"

enum { WIDTH = 16, STEP = 2 * WIDTH };

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

void FV_ISA_NAME(fv__fourier_filter)(const fv_fourier *f, float *rows) {
    in_frequency(rows, f->n, WIDTH, f->turn);
    for (int64_t k = 0; k < f->n; k++)
        for (int l = 0; l < STEP; l++) rows[k * STEP + l] *= f->response[k];
    in_time(rows, f->n, f->n, WIDTH, f->turn, 1);
}
