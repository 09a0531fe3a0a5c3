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
