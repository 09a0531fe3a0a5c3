/* distance against brute force: near and far zeros, odd spacings, any lattice. */
#include "support/apply.h"
#include "support/test.h"

static double *brute(const test_image *image, const double *spacing) {
    const fv_image_type *type = &image->type.image;
    int64_t              n = fv_image_type_voxels(type);
    int                  spatial[FV_MAX_DIMS], nspatial = fv_image_type_spatial(type, spatial);
    double              *least = malloc((size_t)n * sizeof *least);
    for (int64_t i = 0; i < n; i++) {
        least[i] = INFINITY;
        for (int64_t j = 0; j < n; j++) {
            int64_t a = i, b = j;
            double  sum = 0;
            if (((uint8_t *)image->data)[j]) continue;
            for (int d = type->ndim - 1; d >= 0; a /= type->shape[d], b /= type->shape[d], d--) {
                int64_t off = a % type->shape[d] - b % type->shape[d];
                int     k = 0;
                while (k < nspatial && spatial[k] != d) k++;
                if (k == nspatial && off)
                    sum = INFINITY;
                else if (k < nspatial)
                    sum += (double)(off * off) * spacing[k] * spacing[k];
            }
            least[i] = sum < least[i] ? sum : least[i];
        }
    }
    return least;
}

static void fill(test_image *image, uint64_t seed, uint64_t one_in) {
    int64_t n = fv_image_type_voxels(&image->type.image);
    for (int64_t i = 0; i < n; i++) ((uint8_t *)image->data)[i] = one_in && test_random(&seed) % one_in == 0 ? 0 : 1;
}

static void check(test_image *image, const char *params, const double *spacing, int rounds) {
    test_output out;
    fv_error    error = { 0 };
    char        message[256], squared[128];
    double     *expected = brute(image, spacing);
    int64_t     n = fv_image_type_voxels(&image->type.image);
    snprintf(squared, sizeof squared, "%s; squared=true", params);
    CHECK_MESSAGE(test_apply("distance", params, (test_image *[]){ image }, 1, NULL, 0, &out, &error) == FV_OK, "%s",
                  error.message);
    for (int64_t i = 0; i < n; i++) {
        float found = ((float *)out.data)[i], wanted = (float)sqrt(expected[i]);
        CHECK_MESSAGE(found == wanted || fabsf(found - wanted) <= 1.2e-7f * wanted, "%s: voxel %lld is %.9g, not %.9g", params,
                      (long long)i, found, wanted);
    }
    test_output_free(&out);
    CHECK(test_apply("distance", squared, (test_image *[]){ image }, 1, NULL, 0, &out, &error) == FV_OK);
    for (int64_t i = 0; i < n; i++) {
        double found = ((double *)out.data)[i];
        bool   right = found == expected[i] || fabs(found - expected[i]) <= 1e-7 * expected[i];
        CHECK_MESSAGE(right, "%s: voxel %lld is %.17g, not %.17g", squared, (long long)i, found, expected[i]);
    }
    test_output_free(&out);
    CHECK_MESSAGE(test_conforms("distance", params, (test_image *[]){ image }, 1, rounds, message), "%s: %s", params, message);
    free(expected);
}

static void check_shape(int ndim, const int64_t *shape, const char *axes, uint64_t one_in, const char *params,
                        const double *spacing) {
    test_image image = test_image_new(FV_BOOL, ndim, shape);
    for (int d = 0; axes && d < ndim; d++) snprintf(image.type.image.axis[d], 8, "%c", axes[d]);
    fill(&image, 3, one_in);
    check(&image, params, spacing, 6);
    test_image_free(&image);
}

static const double ones[] = { 1, 1, 1 };

TEST(volumes_planes_and_lines_equal_brute_force_on_any_lattice) {
    static const uint64_t rare[] = { 2, 10, 100, 2000, 0 };
    for (int i = 0; i < FV_COUNT(rare); i++) {
        check_shape(3, (int64_t[]){ 9, 11, 17 }, NULL, rare[i], "", ones);
        check_shape(2, (int64_t[]){ 23, 70 }, NULL, rare[i], "", ones);
        check_shape(1, (int64_t[]){ 300 }, NULL, rare[i], "", ones);
    }
    check_shape(3, (int64_t[]){ 1, 1, 1 }, NULL, 1, "", ones);
    check_shape(3, (int64_t[]){ 1, 1, 1 }, NULL, 0, "", ones);
    check_shape(3, (int64_t[]){ 1, 40, 1 }, NULL, 20, "", ones);
    check_shape(2, (int64_t[]){ 1, 200 }, NULL, 90, "", ones);
    check_shape(2, (int64_t[]){ 200, 1 }, NULL, 90, "", ones);
}

TEST(zeros_further_than_sixteen_bits_reach_are_found) {
    check_shape(1, (int64_t[]){ 1500 }, NULL, 700, "", ones);
    check_shape(2, (int64_t[]){ 3, 900 }, NULL, 900, "", ones);
    check_shape(2, (int64_t[]){ 900, 3 }, NULL, 900, "", ones);
    check_shape(3, (int64_t[]){ 3, 600, 2 }, NULL, 1500, "", ones);
    check_shape(2, (int64_t[]){ 5, 400 }, NULL, 400, "", ones); /* just around 255 */
    test_image image = test_image_new(FV_BOOL, 2, (int64_t[]){ 2, 520 });
    for (int64_t zero = 254; zero < 262; zero++) { /* the step at which near gives up */
        memset(image.data, 1, 1040);
        ((uint8_t *)image.data)[zero] = 0;
        check(&image, "", ones, 2);
    }
    test_image_free(&image);
}

TEST(spacings_in_simple_and_other_ratios) {
    check_shape(3, (int64_t[]){ 8, 9, 40 }, NULL, 60, "sampling=[2.5,1,1]", (double[]){ 2.5, 1, 1 });
    check_shape(3, (int64_t[]){ 8, 9, 40 }, NULL, 60, "sampling=[0.3,0.108,0.108]", (double[]){ 0.3, 0.108, 0.108 });
    check_shape(3, (int64_t[]){ 8, 9, 40 }, NULL, 300, "sampling=[1.7320508,3.14159265,1.41421356]",
                (double[]){ 1.7320508, 3.14159265, 1.41421356 });
    check_shape(2, (int64_t[]){ 30, 60 }, NULL, 60, "sampling=7", (double[]){ 7, 7 });
    check_shape(2, (int64_t[]){ 4, 500 }, NULL, 600, "sampling=[3,0.5]", (double[]){ 3, 0.5 });
    check_shape(1, (int64_t[]){ 200 }, NULL, 60, "sampling=0.1", (double[]){ 0.1 });
}

TEST(other_axes_are_independent) {
    check_shape(3, (int64_t[]){ 14, 15, 3 }, "yxc", 30, "", ones);
    check_shape(4, (int64_t[]){ 3, 5, 8, 9 }, "tzyx", 60, "sampling=[2,1,1]", (double[]){ 2, 1, 1 });
    check_shape(4, (int64_t[]){ 5, 3, 8, 9 }, "zcyx", 60, "", ones);
}

TEST(every_type_has_the_same_background) {
    static const fv_dtype dtypes[] = { FV_UINT8, FV_INT8,   FV_UINT16, FV_INT16,   FV_UINT32,
                                       FV_INT32, FV_UINT64, FV_INT64,  FV_FLOAT32, FV_FLOAT64 };
    test_image            mask = test_image_new(FV_BOOL, 2, (int64_t[]){ 20, 33 });
    test_output           expected, out;
    fv_error              error = { 0 };
    fill(&mask, 5, 20);
    CHECK(test_apply("distance", "", (test_image *[]){ &mask }, 1, NULL, 0, &expected, &error) == FV_OK);
    for (int k = 0; k < FV_COUNT(dtypes); k++) {
        test_image image = test_image_new(dtypes[k], 2, (int64_t[]){ 20, 33 });
        size_t     size = fv_dtype_size(dtypes[k]);
        for (int64_t i = 0; i < 20 * 33; i++) /* the highest byte: -0 must count as zero, nan as foreground */
            ((uint8_t *)image.data)[i * (int64_t)size + (int64_t)size - 1] = ((uint8_t *)mask.data)[i]               ? 0x7f
                                                                             : fv_dtype_is_float(dtypes[k]) && i % 2 ? 0x80
                                                                                                                     : 0;
        if (dtypes[k] == FV_FLOAT32)
            for (int64_t i = 0; i < 20 * 33; i += 3)
                if (((uint8_t *)mask.data)[i]) ((float *)image.data)[i] = NAN;
        CHECK(test_apply("distance", "", (test_image *[]){ &image }, 1, NULL, 0, &out, &error) == FV_OK);
        CHECK_MESSAGE(!memcmp(out.data, expected.data, 20 * 33 * sizeof(float)), "%s", fv_dtype_name(dtypes[k]));
        test_output_free(&out);
        test_image_free(&image);
    }
    test_output_free(&expected);
    test_image_free(&mask);
}

TEST(every_instruction_set_gives_the_same_bits) {
    test_image image = test_image_new(FV_BOOL, 3, (int64_t[]){ 10, 30, 300 });
    char       message[256];
    fill(&image, 9, 3000);
    CHECK_MESSAGE(test_same_on_every_isa("distance", "", (test_image *[]){ &image }, 1, message), "%s", message);
    CHECK_MESSAGE(test_same_on_every_isa("distance", "sampling=[1.7320508,1,2.2360679]", (test_image *[]){ &image }, 1, message),
                  "%s", message);
    test_image_free(&image);
}

TEST(the_spacing_of_the_image_itself_is_used_when_asked) {
    test_image image = test_image_new(FV_BOOL, 2, (int64_t[]){ 12, 20 });
    image.type.image.spacing[0] = 3;
    image.type.image.spacing[1] = 0.25;
    fill(&image, 9, 30);
    check(&image, "physical=true", (double[]){ 3, 0.25 }, 2);
    check(&image, "", ones, 2);
    test_image_free(&image);
}

TEST(bad_parameters_are_named) {
    test_image  image = test_image_new(FV_BOOL, 2, (int64_t[]){ 4, 4 });
    test_image  complex = test_image_new(FV_COMPLEX64, 2, (int64_t[]){ 4, 4 });
    test_output out;
    fv_error    error = { 0 };
    test_image *given[] = { &image }, *wrong[] = { &complex };
    CHECK_INT(test_apply("distance", "sampling=-1", given, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK_MESSAGE(strstr(error.message, "sampling") && strstr(error.message, "-1"), "%s", error.message);
    CHECK_INT(test_apply("distance", "sampling=[1,2,3]", given, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK_MESSAGE(strstr(error.message, "sampling"), "%s", error.message);
    CHECK_INT(test_apply("distance", "sampling=2; physical=true", given, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK_MESSAGE(strstr(error.message, "physical"), "%s", error.message);
    CHECK_INT(test_apply("distance", "", wrong, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK_MESSAGE(strstr(error.message, "complex64"), "%s", error.message);
    test_image_free(&image);
    test_image_free(&complex);
}

TEST_MAIN
