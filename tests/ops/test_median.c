/* median. */
#include "support/apply.h"
#include "support/test.h"
#include "support/window.h"

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Compares with sorting every box; false with a message. Values must be exact in double. */
static bool equals_sorting(test_image *in, const int64_t *size, fv_border border, double cval, char message[256]) {
    char        params[128];
    test_output out;
    fv_error    error = { 0 };
    test_window w = test_window_new(in, size, border, cval);
    int         used = snprintf(params, sizeof params, "size=[%lld", (long long)size[0]);
    for (int k = 1; k < w.naxes; k++) used += snprintf(params + used, sizeof params - (size_t)used, ",%lld", (long long)size[k]);
    snprintf(params + used, sizeof params - (size_t)used, "]; mode=%s; cval=%g", test_borders[border], cval);
    if (test_apply("median", params, (test_image *[]){ in }, 1, NULL, 0, &out, &error) != FV_OK) {
        snprintf(message, 256, "%.200s", error.message);
        return false;
    }
    int64_t count = test_window_count(&w), n = fv_image_type_voxels(&in->type.image);
    double *value = fv__alloc((size_t)count * 8);
    bool    same = out.type.image.dtype == in->type.image.dtype;
    for (int64_t i = 0; i < n && same; i++) {
        test_window_values(&w, in, i, value);
        qsort(value, (size_t)count, sizeof *value, ascending);
        double result = test_number(out.type.image.dtype, out.data, i);
        same = result == value[count / 2];
        if (!same)
            snprintf(message, 256, "%s %s: voxel %lld is %g, not %g", fv_dtype_name(in->type.image.dtype), params, (long long)i,
                     result, value[count / 2]);
    }
    free(value);
    test_output_free(&out);
    return same;
}

/* Sizes for every method: networks compiled and interpreted, histograms, ordinal numbers. */
static const int64_t flat_sizes[][2] = {
    { 1, 1 }, { 3, 3 }, { 5, 5 },  { 7, 7 },  { 9, 9 },   { 1, 3 },   { 3, 1 },  { 2, 2 },
    { 4, 4 }, { 3, 8 }, { 1, 20 }, { 13, 1 }, { 11, 13 }, { 17, 18 }, { 1, 70 }, { 40, 30 }
};

TEST(median_equals_sorting_for_every_dtype_and_method) {
    for (fv_dtype d = FV_BOOL; d <= FV_FLOAT64; d++)
        for (int i = 0; i < FV_COUNT(flat_sizes); i++) {
            char       message[256];
            test_image in = test_image_new(d, 2, (int64_t[]){ 22, 71 });
            test_image_random(&in, 3);
            CHECK_MESSAGE(equals_sorting(&in, flat_sizes[i], FV_BORDER_REFLECT, 0, message), "%s", message);
            test_image_free(&in);
        }
}

TEST(median_equals_sorting_in_three_dimensions) {
    static const int64_t  sizes[][3] = { { 3, 3, 3 }, { 5, 5, 5 }, { 1, 5, 5 }, { 3, 1, 1 },
                                         { 2, 3, 4 }, { 5, 1, 9 }, { 7, 7, 7 }, { 4, 9, 11 } };
    static const fv_dtype dtypes[] = { FV_UINT8, FV_INT16, FV_FLOAT32, FV_FLOAT64 };
    for (int i = 0; i < FV_COUNT(sizes); i++)
        for (int d = 0; d < FV_COUNT(dtypes); d++) {
            char       message[256];
            test_image in = test_image_new(dtypes[d], 3, (int64_t[]){ 7, 9, 37 });
            test_image_random(&in, 4);
            CHECK_MESSAGE(equals_sorting(&in, sizes[i], FV_BORDER_REFLECT, 0, message), "%s", message);
            test_image_free(&in);
        }
}

TEST(median_equals_sorting_in_every_mode_and_for_small_images) {
    static const int64_t shapes[][3] = { { 1, 1, 1 }, { 1, 1, 7 }, { 2, 3, 2 }, { 4, 12, 40 } };
    static const int64_t sizes[][3] = { { 3, 3, 3 }, { 1, 7, 7 }, { 2, 4, 6 }, { 5, 5, 5 }, { 9, 7, 11 } };
    for (int b = 0; test_borders[b]; b++)
        for (int i = 0; i < FV_COUNT(shapes); i++)
            for (int s = 0; s < FV_COUNT(sizes); s++)
                for (int d = 0; d < 3; d++) {
                    char       message[256];
                    test_image in = test_image_new(d == 0 ? FV_UINT8 : d == 1 ? FV_INT8 : FV_FLOAT32, 3, shapes[i]);
                    test_image_random(&in, 5);
                    CHECK_MESSAGE(equals_sorting(&in, sizes[s], (fv_border)b, 17, message), "shape %d: %s", i, message);
                    test_image_free(&in);
                }
}

TEST(median_takes_a_single_axis_and_leaves_channels_apart) {
    char       message[256];
    test_image line = test_image_new(FV_UINT16, 1, (int64_t[]){ 300 }),
               colour = test_image_new(FV_UINT8, 3, (int64_t[]){ 19, 30, 3 });
    static const char axes[3][2] = { "y", "x", "c" };
    for (int d = 0; d < 3; d++) memcpy(colour.type.image.axis[d], axes[d], 2);
    test_image_random(&line, 1);
    test_image_random(&colour, 2);
    CHECK_MESSAGE(equals_sorting(&line, (int64_t[]){ 5 }, FV_BORDER_REFLECT, 0, message), "%s", message);
    CHECK_MESSAGE(equals_sorting(&line, (int64_t[]){ 101 }, FV_BORDER_WRAP, 0, message), "%s", message);
    CHECK_MESSAGE(equals_sorting(&colour, (int64_t[]){ 5, 5 }, FV_BORDER_REFLECT, 0, message), "%s", message);
    CHECK_MESSAGE(equals_sorting(&colour, (int64_t[]){ 19, 21 }, FV_BORDER_MIRROR, 0, message), "%s", message);
    CHECK_MESSAGE(test_conforms("median", "size=[3,21]", (test_image *[]){ &colour }, 1, 6, message), "%s", message);
    test_image_free(&line);
    test_image_free(&colour);
}

TEST(median_orders_negative_floats_infinities_and_nan) {
    for (int s = 0; s < 2; s++) {
        test_image in = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 1, 15 });
        float     *v = in.data;
        for (int i = 0; i < 15; i++) v[i] = (float)(i - 7);
        v[0] = -INFINITY;
        v[13] = NAN;
        v[14] = INFINITY;
        test_output out;
        fv_error    error = { 0 };
        CHECK_INT(test_apply("median", s ? "size=[1,15]; mode=wrap" : "size=[1,3]; mode=wrap", (test_image *[]){ &in }, 1, NULL,
                             0, &out, &error),
                  FV_OK);
        if (s)
            CHECK(((float *)out.data)[4] == 0);
        else
            CHECK(((float *)out.data)[1] == -6 && ((float *)out.data)[13] == INFINITY && ((float *)out.data)[14] == INFINITY);
        test_output_free(&out);
        test_image_free(&in);
    }
}

TEST(median_of_large_boxes_takes_many_tiles) {
    char       message[256];
    test_image in = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 330, 300 });
    test_image_random(&in, 8);
    CHECK_MESSAGE(test_conforms("median", "size=25", (test_image *[]){ &in }, 1, 2, message), "%s", message);
    test_image_free(&in);
    in = test_image_new(FV_UINT8, 2, (int64_t[]){ 40, 1200 });
    test_image_random(&in, 8);
    CHECK_MESSAGE(equals_sorting(&in, (int64_t[]){ 13, 13 }, FV_BORDER_REFLECT, 0, message), "%s", message);
    test_image_free(&in);
}

TEST(median_does_not_depend_on_the_lattice) {
    static const char *const sizes[] = { "size=3", "size=5", "size=[2,3,6]", "size=[3,12,8]", "size=[9,7,11]" };
    static const fv_dtype    dtypes[] = { FV_UINT8, FV_UINT16, FV_INT8, FV_FLOAT32, FV_INT64 };
    for (int s = 0; s < FV_COUNT(sizes); s++)
        for (int b = 0; test_borders[b]; b++)
            for (int d = 0; d < FV_COUNT(dtypes); d++) {
                char       params[128], message[256];
                test_image in = test_image_new(dtypes[d], 3, (int64_t[]){ 9, 14, 40 });
                test_image_random(&in, 11);
                snprintf(params, sizeof params, "%s; mode=%s; cval=3", sizes[s], test_borders[b]);
                CHECK_MESSAGE(test_conforms("median", params, (test_image *[]){ &in }, 1, 3, message), "%s %s: %s",
                              fv_dtype_name(dtypes[d]), params, message);
                test_image_free(&in);
            }
}

TEST(median_has_the_same_bits_on_every_instruction_set) {
    for (fv_dtype d = FV_BOOL; d <= FV_FLOAT64; d++)
        for (int i = 0; i < FV_COUNT(flat_sizes); i++) {
            char       params[64], message[256];
            test_image in = test_image_new(d, 2, (int64_t[]){ 31, 97 });
            test_image_random(&in, 13);
            snprintf(params, sizeof params, "size=[%d,%d]", (int)flat_sizes[i][0], (int)flat_sizes[i][1]);
            CHECK_MESSAGE(test_same_on_every_isa("median", params, (test_image *[]){ &in }, 1, message), "%s %s: %s",
                          fv_dtype_name(d), params, message);
            test_image_free(&in);
        }
}

TEST(median_rejects_bad_sizes_and_complex_images) {
    test_image in = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 8, 8 }),
               complex = test_image_new(FV_COMPLEX64, 2, (int64_t[]){ 8, 8 });
    test_output              out;
    fv_error                 error = { 0 };
    static const char *const cases[][2] = { { "size=0", "size = 0" },
                                            { "size=2.5", "size = 2.5" },
                                            { "size=[3,3,3]", "size has 3 numbers" },
                                            { "size=2000", "4000000 voxels" },
                                            { "mode=grid", "mode = \"grid\"" } };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        CHECK_INT(test_apply("median", cases[i][0], (test_image *[]){ &in }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
        CHECK_MESSAGE(strstr(error.message, cases[i][1]), "%s: %s", cases[i][0], error.message);
    }
    CHECK_INT(test_apply("median", "size=3", (test_image *[]){ &complex }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "complex"));
    test_image_free(&in);
    test_image_free(&complex);
}

TEST_MAIN
