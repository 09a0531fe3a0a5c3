/* uniform. */
#include "support/apply.h"
#include "support/test.h"
#include "support/window.h"

/* Largest difference from the mean over the box in double, relative to the largest input. */
static double deviation(test_image *in, const char *params, const int64_t *size, fv_border border, double cval) {
    test_output out;
    fv_error    error = { 0 };
    if (test_apply("uniform", params, (test_image *[]){ in }, 1, NULL, 0, &out, &error) != FV_OK) return INFINITY;
    test_window w = test_window_new(in, size, border, cval);
    int64_t     count = test_window_count(&w), n = fv_image_type_voxels(&in->type.image);
    double     *value = fv__alloc((size_t)count * 8), scale = fabs(cval), worst = 0;
    for (int64_t i = 0; i < n; i++) scale = FV_MAX(scale, fabs(test_number(in->type.image.dtype, in->data, i)));
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        test_window_values(&w, in, i, value);
        for (int64_t j = 0; j < count; j++) sum += value[j];
        double difference = fabs(sum / (double)count - test_number(out.type.image.dtype, out.data, i)) / scale;
        worst = difference <= worst ? worst : difference; /* a NaN stays */
    }
    free(value);
    test_output_free(&out);
    return worst;
}

TEST(uniform_equals_the_mean_for_every_dtype) {
    for (fv_dtype d = FV_BOOL; d <= FV_FLOAT64; d++) {
        test_image in = test_image_new(d, 2, (int64_t[]){ 23, 41 });
        test_image_random(&in, 3);
        bool   wide = d == FV_UINT32 || d == FV_INT32 || d == FV_UINT64 || d == FV_INT64 || d == FV_FLOAT64;
        double worst = deviation(&in, "size=[5,11]", (int64_t[]){ 5, 11 }, FV_BORDER_REFLECT, 0);
        CHECK_MESSAGE(worst < (wide ? 1e-14 : 1e-6), "%s: off by %g", fv_dtype_name(d), worst);
        test_image_free(&in);
    }
}

TEST(uniform_equals_the_mean_for_odd_and_even_sizes_in_every_mode) {
    static const int64_t sizes[][3] = { { 1, 1, 1 }, { 3, 3, 3 }, { 2, 4, 6 }, { 9, 8, 17 }, { 1, 7, 10 }, { 12, 1, 1 } };
    static const int64_t shapes[][3] = { { 1, 1, 1 }, { 2, 3, 5 }, { 9, 12, 21 }, { 11, 17, 9 } };
    for (int b = 0; test_borders[b]; b++)
        for (int s = 0; s < FV_COUNT(sizes); s++)
            for (int i = 0; i < FV_COUNT(shapes); i++) {
                char       params[128];
                test_image in = test_image_new(i % 2 ? FV_FLOAT32 : FV_UINT8, 3, shapes[i]);
                test_image_random(&in, 5);
                snprintf(params, sizeof params, "size=[%d,%d,%d]; mode=%s; cval=7.5", (int)sizes[s][0], (int)sizes[s][1],
                         (int)sizes[s][2], test_borders[b]);
                double worst = deviation(&in, params, sizes[s], (fv_border)b, 7.5);
                CHECK_MESSAGE(worst < 1e-6, "%s, image %d: off by %g", params, i, worst);
                test_image_free(&in);
            }
}

TEST(uniform_of_bytes_is_correctly_rounded) {
    test_image in = test_image_new(FV_UINT8, 2, (int64_t[]){ 40, 60 });
    test_image_random(&in, 6);
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("uniform", "size=13", (test_image *[]){ &in }, 1, NULL, 0, &out, &error), FV_OK);
    test_window w = test_window_new(&in, (int64_t[]){ 13, 13 }, FV_BORDER_REFLECT, 0);
    for (int64_t i = 0; i < 40 * 60; i++) {
        double value[13 * 13], sum = 0;
        test_window_values(&w, &in, i, value);
        for (int j = 0; j < 13 * 13; j++) sum += value[j];
        CHECK(((float *)out.data)[i] == (float)(sum / (13 * 13)));
    }
    test_output_free(&out);
    test_image_free(&in);
}

TEST(uniform_leaves_channels_apart) {
    test_image        in = test_image_new(FV_UINT8, 3, (int64_t[]){ 21, 30, 3 });
    static const char axes[3][2] = { "y", "x", "c" };
    char              message[256];
    for (int d = 0; d < 3; d++) memcpy(in.type.image.axis[d], axes[d], 2);
    test_image_random(&in, 9);
    CHECK(deviation(&in, "size=[3,10]", (int64_t[]){ 3, 10 }, FV_BORDER_REFLECT, 0) < 1e-6);
    CHECK_MESSAGE(test_conforms("uniform", "size=[3,10]", (test_image *[]){ &in }, 1, 6, message), "%s", message);
    test_image_free(&in);
}

/* Floats round, so a sum that began where the chunk begins would show. */
TEST(uniform_does_not_depend_on_the_lattice) {
    static const char *const sizes[] = { "size=3", "size=[4,9,2]", "size=[10,1,24]", "size=[30,9,12]" };
    for (int s = 0; s < FV_COUNT(sizes); s++)
        for (int b = 0; test_borders[b]; b++)
            for (int wide = 0; wide < 2; wide++) {
                char       params[128], message[256];
                test_image in = test_image_new(wide ? FV_FLOAT64 : FV_FLOAT32, 3, (int64_t[]){ 19, 27, 50 });
                test_image_random(&in, 11);
                snprintf(params, sizeof params, "%s; mode=%s; cval=0.3", sizes[s], test_borders[b]);
                CHECK_MESSAGE(test_conforms("uniform", params, (test_image *[]){ &in }, 1, 6, message), "%s: %s", params,
                              message);
                test_image_free(&in);
            }
}

TEST(uniform_has_the_same_bits_on_every_instruction_set) {
    for (fv_dtype d = FV_BOOL; d <= FV_FLOAT64; d++) {
        char       message[256];
        test_image in = test_image_new(d, 3, (int64_t[]){ 12, 31, 45 });
        test_image_random(&in, 13);
        CHECK_MESSAGE(test_same_on_every_isa("uniform", "size=[3,9,20]", (test_image *[]){ &in }, 1, message), "%s: %s",
                      fv_dtype_name(d), message);
        test_image_free(&in);
    }
}

TEST(uniform_rejects_bad_sizes) {
    test_image               in = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 8, 8 });
    test_output              out;
    static const char *const cases[][2] = { { "size=0", "size = 0" },
                                            { "size=-3", "size = -3" },
                                            { "size=2.5", "size = 2.5" },
                                            { "size=[3,3,3]", "size has 3 numbers" },
                                            { "size=1e9", "size = 1e+09" } };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        fv_error error = { 0 };
        CHECK_INT(test_apply("uniform", cases[i][0], (test_image *[]){ &in }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
        CHECK_MESSAGE(strstr(error.message, cases[i][1]), "%s: %s", cases[i][0], error.message);
    }
    test_image_free(&in);
}

TEST_MAIN
