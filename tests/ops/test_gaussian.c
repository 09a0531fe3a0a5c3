/* gaussian. */
#include "support/apply.h"
#include "support/test.h"
#include "support/window.h"

/* Largest difference from the sum over the whole n-dimensional kernel in double, relative to the largest input. */
static double deviation(test_image *in, const char *params, const double *sigma, double truncate, fv_border border, double cval) {
    test_output out;
    fv_error    error = { 0 };
    if (test_apply("gaussian", params, (test_image *[]){ in }, 1, NULL, 0, &out, &error) != FV_OK) return INFINITY;
    int64_t size[3], n = fv_image_type_voxels(&in->type.image);
    for (int k = 0; k < 3; k++) size[k] = 2 * (int64_t)(truncate * sigma[k] + 0.5) + 1;
    test_window w = test_window_new(in, size, border, cval);
    int64_t     count = test_window_count(&w);
    double     *weight = fv__alloc((size_t)count * 8), *value = fv__alloc((size_t)count * 8), total = 0, scale = fabs(cval),
           worst = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i;
        double  exponent = 0;
        for (int k = w.naxes - 1; k >= 0; k--) {
            double x = (double)(rest % size[k] - size[k] / 2);
            rest /= size[k];
            if (sigma[k] > 0) exponent += x * x / (2 * sigma[k] * sigma[k]);
        }
        total += weight[i] = exp(-exponent);
    }
    for (int64_t i = 0; i < n; i++) scale = FV_MAX(scale, fabs(test_number(in->type.image.dtype, in->data, i)));
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        test_window_values(&w, in, i, value);
        for (int64_t j = 0; j < count; j++) sum += weight[j] / total * value[j];
        double difference = fabs(sum - test_number(out.type.image.dtype, out.data, i)) / scale;
        worst = difference <= worst ? worst : difference; /* a NaN stays */
    }
    free(weight);
    free(value);
    test_output_free(&out);
    return worst;
}

TEST(gaussian_equals_the_direct_sum_for_every_dtype) {
    for (fv_dtype d = FV_BOOL; d <= FV_FLOAT64; d++) {
        test_image in = test_image_new(d, 2, (int64_t[]){ 23, 41 });
        test_image_random(&in, 3);
        bool   wide = d == FV_UINT32 || d == FV_INT32 || d == FV_UINT64 || d == FV_INT64 || d == FV_FLOAT64;
        double worst = deviation(&in, "sigma=1.5", (double[]){ 1.5, 1.5, 0 }, 4, FV_BORDER_REFLECT, 0);
        CHECK_MESSAGE(worst < (wide ? 1e-14 : 1e-6), "%s: off by %g", fv_dtype_name(d), worst);
        test_image_free(&in);
    }
}

TEST(gaussian_equals_the_direct_sum_for_every_mode_and_size) {
    static const int64_t shapes[][3] = { { 1, 1, 1 },  { 1, 1, 9 },   { 2, 3, 5 },  { 1, 40, 3 },
                                         { 9, 1, 17 }, { 7, 20, 33 }, { 19, 18, 8 } };
    for (int b = 0; test_borders[b]; b++)
        for (int i = 0; i < FV_COUNT(shapes); i++) {
            char       params[128];
            test_image in = test_image_new(i % 2 ? FV_FLOAT32 : FV_UINT8, 3, shapes[i]);
            test_image_random(&in, 5);
            snprintf(params, sizeof params, "sigma=[0.6,1.2,2]; mode=%s; cval=0.75; truncate=3", test_borders[b]);
            double worst = deviation(&in, params, (double[]){ 0.6, 1.2, 2 }, 3, (fv_border)b, 0.75);
            CHECK_MESSAGE(worst < 1e-6, "%s, %lld x %lld x %lld: off by %g", test_borders[b], (long long)shapes[i][0],
                          (long long)shapes[i][1], (long long)shapes[i][2], worst);
            test_image_free(&in);
        }
}

TEST(gaussian_takes_one_and_two_axes_and_any_kernel_longer_than_the_image) {
    test_image line = test_image_new(FV_FLOAT32, 1, (int64_t[]){ 50 }),
               small = test_image_new(FV_FLOAT64, 2, (int64_t[]){ 4, 3 });
    test_image_random(&line, 1);
    test_image_random(&small, 2);
    CHECK(deviation(&line, "sigma=3", (double[]){ 3, 0, 0 }, 4, FV_BORDER_REFLECT, 0) < 1e-6);
    for (int b = 0; test_borders[b]; b++) {
        char params[64];
        snprintf(params, sizeof params, "sigma=6; mode=%s", test_borders[b]);
        double worst = deviation(&small, params, (double[]){ 6, 6, 0 }, 4, (fv_border)b, 0);
        CHECK_MESSAGE(worst < 1e-14, "%s: off by %g", test_borders[b], worst);
    }
    test_image_free(&line);
    test_image_free(&small);
}

TEST(gaussian_leaves_channels_apart_first_or_last) {
    for (int last = 0; last < 2; last++) {
        test_image        in = test_image_new(FV_UINT16, 3, last ? (int64_t[]){ 21, 30, 3 } : (int64_t[]){ 3, 21, 30 });
        static const char axes[2][3][2] = { { "c", "y", "x" }, { "y", "x", "c" } };
        for (int d = 0; d < 3; d++) memcpy(in.type.image.axis[d], axes[last][d], 2);
        test_image_random(&in, 9);
        double worst = deviation(&in, "sigma=[1,2]", (double[]){ 1, 2, 0 }, 4, FV_BORDER_REFLECT, 0);
        CHECK_MESSAGE(worst < 1e-6, "channel axis %s: off by %g", last ? "last" : "first", worst);
        char message[256];
        CHECK_MESSAGE(test_conforms("gaussian", "sigma=[1,2]", (test_image *[]){ &in }, 1, 6, message), "%s", message);
        test_image_free(&in);
    }
}

TEST(gaussian_of_a_complex_image_smooths_both_parts) {
    test_image in = test_image_new(FV_COMPLEX64, 2, (int64_t[]){ 12, 19 }),
               re = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 12, 19 });
    test_image_random(&re, 4);
    for (int i = 0; i < 12 * 19; i++) {
        ((float *)in.data)[2 * i] = ((float *)re.data)[i];
        ((float *)in.data)[2 * i + 1] = -2 * ((float *)re.data)[i];
    }
    test_output out, expected;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("gaussian", "sigma=1", (test_image *[]){ &in }, 1, NULL, 0, &out, &error), FV_OK);
    CHECK_INT(test_apply("gaussian", "sigma=1", (test_image *[]){ &re }, 1, NULL, 0, &expected, &error), FV_OK);
    CHECK_INT(out.type.image.dtype, FV_COMPLEX64);
    for (int i = 0; i < 12 * 19; i++) {
        CHECK(((float *)out.data)[2 * i] == ((float *)expected.data)[i]);
        CHECK(((float *)out.data)[2 * i + 1] == -2 * ((float *)expected.data)[i]);
    }
    test_output_free(&out);
    test_output_free(&expected);
    test_image_free(&in);
    test_image_free(&re);
}

TEST(gaussian_with_sigma_zero_is_the_image_itself) {
    test_image in = test_image_new(FV_FLOAT32, 3, (int64_t[]){ 3, 11, 13 });
    test_image_random(&in, 8);
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("gaussian", "sigma=0", (test_image *[]){ &in }, 1, NULL, 0, &out, &error), FV_OK);
    CHECK(!memcmp(in.data, out.data, 3 * 11 * 13 * 4));
    test_output_free(&out);
    test_image_free(&in);
}

TEST(gaussian_does_not_depend_on_the_lattice) {
    static const struct {
        fv_dtype    dtype;
        int         ndim;
        int64_t     shape[3];
        const char *params;
    } cases[] = {
        { FV_FLOAT32, 2, { 60, 700 }, "sigma=3" },        { FV_UINT8, 2, { 37, 90 }, "sigma=[1,4]" },
        { FV_FLOAT64, 2, { 50, 50 }, "sigma=9" },         { FV_FLOAT32, 3, { 20, 33, 47 }, "sigma=[2,1,3]" },
        { FV_INT16, 3, { 20, 33, 47 }, "sigma=[1,0,2]" }, { FV_UINT64, 3, { 9, 12, 21 }, "sigma=1" },
    };
    for (int i = 0; i < FV_COUNT(cases); i++)
        for (int b = 0; test_borders[b]; b++) {
            char       params[128], message[256];
            test_image in = test_image_new(cases[i].dtype, cases[i].ndim, cases[i].shape);
            test_image_random(&in, 11);
            snprintf(params, sizeof params, "%s; mode=%s; cval=3", cases[i].params, test_borders[b]);
            CHECK_MESSAGE(test_conforms("gaussian", params, (test_image *[]){ &in }, 1, 6, message), "case %d, %s: %s", i,
                          test_borders[b], message);
            test_image_free(&in);
        }
}

TEST(gaussian_has_the_same_bits_on_every_instruction_set) {
    for (fv_dtype d = FV_BOOL; d <= FV_COMPLEX128; d++) {
        char       message[256];
        test_image in = test_image_new(d, 3, (int64_t[]){ 12, 31, 45 });
        test_image_random(&in, 13);
        CHECK_MESSAGE(test_same_on_every_isa("gaussian", "sigma=[1,2,3]", (test_image *[]){ &in }, 1, message), "%s: %s",
                      fv_dtype_name(d), message);
        test_image_free(&in);
    }
}

/* Sums that round in the last place, underflow or overflow tell a fused multiply-add from a rounded one. */
TEST(gaussian_has_the_same_bits_for_extreme_floats) {
    char       message[256];
    test_image in = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 64, 64 });
    uint64_t   state = 1;
    for (int i = 0; i < 64 * 64; i++) {
        uint64_t r = test_random(&state);
        ((float *)in.data)[i] = ldexpf((float)(int32_t)r, (int)(r >> 32) % 120 - 110);
    }
    CHECK_MESSAGE(test_same_on_every_isa("gaussian", "sigma=1.3", (test_image *[]){ &in }, 1, message), "%s", message);
    test_image_free(&in);
}

TEST(gaussian_rejects_bad_parameters_by_name) {
    test_image               in = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 8, 8 });
    test_output              out;
    static const char *const cases[][2] = { { "sigma=-1", "sigma = -1" },
                                            { "sigma=[1,2,3]", "sigma has 3 numbers" },
                                            { "sigma=2; truncate=-1", "truncate = -1" },
                                            { "sigma=2; mode=grid", "mode = \"grid\"" },
                                            { "sigma=9999; truncate=100", "the kernel would reach" } };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        fv_error error = { 0 };
        CHECK_INT(test_apply("gaussian", cases[i][0], (test_image *[]){ &in }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
        CHECK_MESSAGE(strstr(error.message, cases[i][1]), "%s: %s", cases[i][0], error.message);
    }
    test_image_free(&in);
}

TEST(gaussian_rejects_an_image_without_spatial_axes) {
    test_image  in = test_image_new(FV_FLOAT32, 1, (int64_t[]){ 8 });
    test_output out;
    fv_error    error = { 0 };
    memcpy(in.type.image.axis[0], "c", 2);
    CHECK_INT(test_apply("gaussian", "sigma=1", (test_image *[]){ &in }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "spatial axes"));
    test_image_free(&in);
}

TEST_MAIN
