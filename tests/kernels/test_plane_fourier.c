/* Fourier transforms of planes in single precision, compared with those in double precision. */
#include "kernels/plane_fourier.h"
#include "kernels/spectrum.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>

static float value(int64_t i) {
    uint64_t state = ((uint64_t)i + 1) * 6364136223846793005u;
    state = (state ^ state >> 29) * 1442695040888963407u;
    return (float)(state >> 40) / (float)(1 << 23) - 1;
}

static void fill(float *plane, int64_t height, int64_t width, int64_t stride) {
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < 2 * width; x++) plane[y * stride + x] = value(y * 2 * width + x);
}

static void transform(float *plane, int64_t height, int64_t width, int64_t stride, bool inverse) {
    fv_plane_fourier f;
    void            *memory = aligned_alloc(64, (size_t)FV_ISA_NAME(fv__plane_fourier_bytes)(height, width));
    FV_ISA_NAME(fv__plane_fourier_prepare)(&f, height, width, memory);
    FV_ISA_NAME(fv__plane_fourier)(&f, plane, stride, inverse);
    free(memory);
}

/* The largest difference from the transform in double precision. */
static double difference(const float *plane, int64_t height, int64_t width, int64_t stride, bool inverse) {
    fv_spectrum axes[2];
    double     *data = malloc((size_t)(2 * height * width) * sizeof *data), most = 0;
    for (int a = 0; a < 2; a++) {
        int64_t n = a ? width : height;
        FV_ISA_NAME(fv__spectrum_prepare)(&axes[a], n, aligned_alloc(64, (size_t)FV_ISA_NAME(fv__spectrum_bytes)(n)));
    }
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int part = 0; part < 2; part++)
                data[2 * (y * width + x) + part] = (double)value(y * 2 * width + part * width + x);
    FV_ISA_NAME(fv__spectrum_image)(axes, 2, data, inverse);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int part = 0; part < 2; part++)
                most = fmax(most, fabs((double)plane[y * stride + part * width + x] - data[2 * (y * width + x) + part]));
    for (int a = 0; a < 2; a++) free(axes[a].memory);
    free(data);
    return most;
}

/* Strip by strip there and back, with factors between. */
static void go_and_return(float *plane, int64_t height, int64_t width, int64_t stride, const float *by) {
    fv_plane_fourier f;
    int64_t          lines = FV_PLANE_LINES, between = fv__plane_stride(height);
    void            *memory = aligned_alloc(64, (size_t)FV_ISA_NAME(fv__plane_fourier_bytes)(height, width));
    float           *turned = malloc((size_t)(width * between) * sizeof *turned);
    float           *strip = malloc((size_t)(2 * width * lines) * sizeof *strip),
          *factors = malloc((size_t)(width * lines) * sizeof *factors);
    FV_ISA_NAME(fv__plane_fourier_prepare)(&f, height, width, memory);
    FV_ISA_NAME(fv__plane_fourier_half)(&f, 0, plane, stride, turned, between, false);
    for (int64_t first = 0; first < height; first += lines) {
        for (int64_t x = 0; x < width; x++)
            for (int64_t l = 0; l < lines; l++) factors[x * lines + l] = first + l < height ? by[(first + l) * width + x] : 1;
        FV_ISA_NAME(fv__plane_fourier_strip)(&f, turned, first, strip);
        FV_ISA_NAME(fv__plane_fourier_strip_back)(&f, strip, factors, first, plane, stride);
    }
    FV_ISA_NAME(fv__plane_fourier_columns_back)(&f, plane, stride);
    free(memory);
    free(turned);
    free(strip);
    free(factors);
}

TEST(strips_go_and_return_as_whole_planes_do) {
    int64_t sizes[][2] = { { 1, 1 }, { 5, 16 }, { 16, 5 }, { 12, 20 }, { 60, 105 }, { 128, 128 }, { 49, 64 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t height = sizes[i][0], width = sizes[i][1], stride = 2 * width + 6, n = height * width;
        float  *strips = malloc((size_t)(height * stride) * sizeof *strips),
              *whole = malloc((size_t)(height * stride) * sizeof *whole);
        float *by = malloc((size_t)n * sizeof *by), most = 0;
        for (int64_t k = 0; k < n; k++) by[k] = (1 + value(k + 7)) / (float)n;
        fill(strips, height, width, stride);
        fill(whole, height, width, stride);
        go_and_return(strips, height, width, stride, by);
        transform(whole, height, width, stride, false);
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < 2 * width; x++) whole[y * stride + x] *= by[y * width + x % width];
        transform(whole, height, width, stride, true);
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < 2 * width; x++) most = fmaxf(most, fabsf(strips[y * stride + x] - whole[y * stride + x]));
        CHECK_MESSAGE(most < 4e-6f, "%lld x %lld: %g off", (long long)height, (long long)width, (double)most);
        free(strips);
        free(whole);
        free(by);
    }
}

TEST(planes_are_transformed_as_in_double_precision) {
    int64_t sizes[][2] = { { 1, 1 },  { 2, 3 },    { 4, 8 },     { 5, 16 },   { 12, 20 },  { 16, 32 },
                           { 64, 7 }, { 60, 105 }, { 128, 128 }, { 96, 250 }, { 256, 64 }, { 49, 512 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int inverse = 0; inverse < 2; inverse++) {
            int64_t height = sizes[i][0], width = sizes[i][1], stride = 2 * width + 6;
            float  *plane = malloc((size_t)(height * stride) * sizeof *plane);
            fill(plane, height, width, stride);
            transform(plane, height, width, stride, inverse);
            double most = difference(plane, height, width, stride, inverse), scale = sqrt((double)(height * width));
            CHECK_MESSAGE(most < 2e-6 * scale, "%lld x %lld, inverse %d: %g off", (long long)height, (long long)width, inverse,
                          most);
            free(plane);
        }
}

TEST(lengths_with_other_factors_are_refused) {
    CHECK(FV_ISA_NAME(fv__plane_fourier_able)(210));
    CHECK(!FV_ISA_NAME(fv__plane_fourier_able)(11));
    CHECK(!FV_ISA_NAME(fv__plane_fourier_able)(2 * 13));
    CHECK(!FV_ISA_NAME(fv__plane_fourier_able)(0));
}

TEST_MAIN
