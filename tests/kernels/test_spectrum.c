/* Fourier transforms, compared with the sum that defines them. */
#include "base/math.h"
#include "kernels/spectrum.h"
#include "support/test.h"
#include <stdlib.h>

enum { MOST = 8 * 8 * 8 * 16 };

static fv_spectrum prepared(int64_t n) {
    fv_spectrum s;
    FV_ISA_NAME(fv__spectrum_prepare)(&s, n, aligned_alloc(64, (size_t)FV_ISA_NAME(fv__spectrum_bytes)(n)));
    return s;
}

static void fill(double *data, int64_t count) {
    uint64_t state = 1;
    for (int64_t i = 0; i < 2 * count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        data[i] = (double)(state >> 40) / (double)(1 << 23) - 1;
    }
}

/* The largest difference from the sum, for `count` lines. */
static double difference(const double *in, const double *out, int64_t n, int64_t count, int64_t line, int64_t step,
                         bool inverse) {
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < n; k++) {
            double re = 0, im = 0;
            for (int64_t j = 0; j < n; j++) {
                double        angle = 0x1.921fb54442d18p+2 * (double)(j * k % n) / (double)n * (inverse ? 1 : -1);
                const double *x = in + 2 * (i * line + j * step);
                re += x[0] * cos(angle) - x[1] * sin(angle);
                im += x[0] * sin(angle) + x[1] * cos(angle);
            }
            const double *y = out + 2 * (i * line + k * step);
            most = fmax(most, fmax(fabs(y[0] - re), fabs(y[1] - im)));
        }
    return most;
}

static void check_lines(int64_t n, int64_t count, int64_t line, int64_t step) {
    static double in[2 * MOST], out[2 * MOST];
    fv_spectrum   s = prepared(n);
    for (int inverse = 0; inverse < 2; inverse++) {
        fill(in, MOST);
        memcpy(out, in, sizeof in);
        FV_ISA_NAME(fv__spectrum_lines)(&s, out, count, line, step, inverse);
        double most = difference(in, out, n, count, line, step, inverse);
        CHECK_MESSAGE(most < 1e-13 * (double)n, "%lld lines of %lld numbers, inverse %d: %g off", (long long)count, (long long)n,
                      inverse, most);
    }
    free(s.memory);
}

TEST(any_length_is_the_sum_that_defines_it) {
    for (int64_t n = 1; n <= 72; n++) check_lines(n, 1, n, 1);
    int64_t longer[] = { 81, 97, 105, 125, 127, 128, 210, 243, 251, 256, 343, 360 };
    for (size_t i = 0; i < sizeof longer / sizeof *longer; i++) check_lines(longer[i], 1, longer[i], 1);
}

TEST(several_lines_lie_in_any_order) {
    for (int64_t count = 2; count <= 19; count++) {
        check_lines(12, count, 12, 1); /* one after another */
        check_lines(16, count, 1, 19); /* interleaved */
        check_lines(11, count, 1, 23);
    }
}

TEST(lines_do_not_depend_on_those_beside_them) {
    int64_t lengths[] = { 64, 60, 67 };
    for (int i = 0; i < 3; i++) {
        int64_t     n = lengths[i];
        double      all[2 * 11 * 67], one[2 * 67];
        fv_spectrum s = prepared(n);
        fill(all, 11 * n);
        memcpy(one, all + 2 * 9 * n, (size_t)(2 * n) * sizeof *one);
        FV_ISA_NAME(fv__spectrum_lines)(&s, all, 11, n, 1, false);
        FV_ISA_NAME(fv__spectrum_lines)(&s, one, 1, n, 1, false);
        CHECK_MESSAGE(!memcmp(one, all + 2 * 9 * n, (size_t)(2 * n) * sizeof *one), "%lld numbers have other bits", (long long)n);
        free(s.memory);
    }
}

TEST(volume_and_back_is_the_volume) {
    int64_t       shape[] = { 6, 7, 13 }, count = 6 * 7 * 13;
    static double in[2 * 6 * 7 * 13], out[2 * 6 * 7 * 13];
    fv_spectrum   axes[3];
    double        most = 0;
    for (int d = 0; d < 3; d++) axes[d] = prepared(shape[d]);
    fill(in, count);
    memcpy(out, in, sizeof in);
    FV_ISA_NAME(fv__spectrum_image)(axes, 3, out, false);
    double mean[2] = { 0 };
    for (int64_t i = 0; i < 2 * count; i++) mean[i % 2] += in[i];
    CHECK_MESSAGE(fabs(out[0] - mean[0]) + fabs(out[1] - mean[1]) < 1e-12, "the sum is %g, not %g", out[0], mean[0]);
    FV_ISA_NAME(fv__spectrum_image)(axes, 3, out, true);
    for (int64_t i = 0; i < 2 * count; i++) most = fmax(most, fabs(out[i] / (double)count - in[i]));
    CHECK_MESSAGE(most < 1e-14, "%g off", most);
    for (int d = 0; d < 3; d++) free(axes[d].memory);
}

TEST(wave_in_a_volume_has_one_frequency) {
    int64_t       shape[] = { 4, 9, 10 }, at[] = { 3, 2, 7 };
    static double data[2 * 4 * 9 * 10];
    fv_spectrum   axes[3];
    double       *p = data, most = 0;
    for (int d = 0; d < 3; d++) axes[d] = prepared(shape[d]);
    for (int64_t z = 0; z < 4; z++)
        for (int64_t y = 0; y < 9; y++)
            for (int64_t x = 0; x < 10; x++, p += 2) {
                double turns = (double)(z * at[0]) / 4 + (double)(y * at[1]) / 9 + (double)(x * at[2]) / 10;
                p[0] = cos(0x1.921fb54442d18p+2 * turns);
                p[1] = sin(0x1.921fb54442d18p+2 * turns);
            }
    FV_ISA_NAME(fv__spectrum_image)(axes, 3, data, false);
    int64_t peak = (at[0] * 9 + at[1]) * 10 + at[2];
    for (int64_t i = 0; i < 4 * 9 * 10; i++) most = fmax(most, fabs(data[2 * i] - (i == peak ? 360 : 0)) + fabs(data[2 * i + 1]));
    CHECK_MESSAGE(most < 1e-11, "%g off", most);
    for (int d = 0; d < 3; d++) free(axes[d].memory);
}

TEST(two_real_lines_are_split) {
    enum { N = 15 };
    double      a[2 * N] = { 0 }, b[2 * N] = { 0 }, both[2 * N], most = 0;
    fv_spectrum s = prepared(N);
    fill(both, N);
    for (int k = 0; k < N; k++) {
        a[2 * k] = both[2 * k];
        b[2 * k] = both[2 * k + 1];
    }
    FV_ISA_NAME(fv__spectrum_lines)(&s, a, 1, N, 1, false);
    FV_ISA_NAME(fv__spectrum_lines)(&s, b, 1, N, 1, false);
    FV_ISA_NAME(fv__spectrum_lines)(&s, both, 1, N, 1, false);
    for (int k = 0; k < N; k++) {
        double u[2], v[2];
        fv__spectrum_split(both + 2 * k, both + 2 * ((N - k) % N), u, v);
        for (int part = 0; part < 2; part++) most = fmax(most, fabs(u[part] - a[2 * k + part]) + fabs(v[part] - b[2 * k + part]));
    }
    CHECK_MESSAGE(most < 1e-13, "%g off", most);
    free(s.memory);
}

/* Half of the logarithm of the amplitude, and a weight that differs between frequencies. */
static void weigh(const void *context, const int64_t *at, int count, double *re, double *im) {
    const int64_t *shape = context;
    for (int i = 0; i < count; i++) {
        double size = sqrt(re[i] * re[i] + im[i] * im[i]), by = size > 0 ? 1 / sqrt(size) : 0;
        for (int d = 0; d < 3 && shape[d]; d++) {
            int64_t k = at[d] + (shape[d + 1] ? 0 : i);
            by /= 1 + (double)FV_MIN(k, shape[d] - k);
        }
        re[i] *= by;
        im[i] *= by;
    }
}

/* The product of spectra that are computed whole, weighted alike. */
static void correlate_whole(const fv_spectrum *axes, const int64_t *shape, int ndim, int64_t all, double *data) {
    static double copy[2 * MOST];
    FV_ISA_NAME(fv__spectrum_image)(axes, ndim, data, false);
    memcpy(copy, data, (size_t)(2 * all) * sizeof *copy);
    for (int64_t i = 0; i < all; i++) {
        int64_t at[3], left = i, opposite = 0, step = 1;
        for (int d = ndim - 1; d >= 0; d--) {
            at[d] = left % shape[d];
            left /= shape[d];
            opposite += (shape[d] - at[d]) % shape[d] * step;
            step *= shape[d];
        }
        double a[2], b[2], *to = data + 2 * i;
        fv__spectrum_split(copy + 2 * i, copy + 2 * opposite, a, b);
        to[0] = a[0] * b[0] + a[1] * b[1];
        to[1] = a[1] * b[0] - a[0] * b[1];
        weigh(shape, at, 1, to, to + 1);
    }
    FV_ISA_NAME(fv__spectrum_image)(axes, ndim, data, true);
}

TEST(a_correlation_is_the_product_of_whole_spectra) {
    static double in[2 * MOST], whole[2 * MOST];
    int64_t       shapes[][4] = { { 16, 20 }, { 5, 7 },    { 36, 35 },    { 33, 64 },   { 11, 13 },  { 1, 4 },     { 4, 1 },
                                  { 2, 2 },   { 8, 8, 8 }, { 12, 10, 9 }, { 7, 11, 6 }, { 3, 1, 2 }, { 2, 17, 38 } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t    *shape = shapes[i], all = 1, nx = 1;
        int         ndim = 0;
        fv_spectrum axes[3];
        double      most = 0, largest = 0;
        for (; shape[ndim]; ndim++) {
            axes[ndim] = prepared(shape[ndim]);
            all *= nx = shape[ndim];
        }
        fill(in, all);
        memcpy(whole, in, sizeof in);
        fv_spectrum_correlation both = { axes, ndim, in, weigh, shape };
        FV_ISA_NAME(fv__spectrum_correlate)(&both);
        correlate_whole(axes, shape, ndim, all, whole);
        for (int64_t k = 0; k < all; k++) {
            most = fmax(most, fabs(in[2 * (k / nx) * nx + k % nx] - whole[2 * k]));
            largest = fmax(largest, fabs(whole[2 * k]));
        }
        CHECK_MESSAGE(most < 1e-12 * largest, "shape %zu: %g off, of %g", i, most, largest);
        for (int d = 0; d < ndim; d++) free(axes[d].memory);
    }
}

TEST_MAIN
