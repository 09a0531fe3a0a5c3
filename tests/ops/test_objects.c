/* fill_holes, remove_small and clear_border: any lattice gives the whole image's objects. */
#include "support/apply.h"
#include "support/test.h"

static void fill(test_image *image, uint64_t seed, int percent) {
    int64_t n = fv_image_type_voxels(&image->type.image);
    size_t  size = fv_dtype_size(image->type.image.dtype);
    for (int64_t i = 0; i < n; i++)
        ((uint8_t *)image->data)[i * (int64_t)size] =
            (uint8_t)((int)(test_random(&seed) % 100) < percent ? (size > 1 ? 1 + test_random(&seed) % 40 : 1) : 0);
}

static void check(const char *op, const char *params, int ndim, const int64_t *shape, const char *axes, fv_dtype dtype) {
    static const int percents[] = { 0, 20, 45, 70, 100 };
    for (int p = 0; p < FV_COUNT(percents); p++) {
        test_image image = test_image_new(dtype, ndim, shape);
        char       message[256];
        for (int d = 0; axes && d < ndim; d++) snprintf(image.type.image.axis[d], 8, "%c", axes[d]);
        fill(&image, 5, percents[p]);
        CHECK_MESSAGE(test_conforms(op, params, (test_image *[]){ &image }, 1, 8, message), "%s %s, %d %%: %s", op, params,
                      percents[p], message);
        test_image_free(&image);
    }
}

TEST(every_lattice_gives_the_same_objects) {
    int64_t volume[] = { 7, 9, 70 }, plane[] = { 33, 40 }, line[] = { 90 };
    check("fill_holes", "", 3, volume, NULL, FV_BOOL);
    check("fill_holes", "connectivity=2", 2, plane, NULL, FV_BOOL);
    check("remove_small", "min_size=4", 3, volume, NULL, FV_BOOL);
    check("remove_small", "min_size=4; connectivity=3", 3, volume, NULL, FV_BOOL);
    check("remove_small", "min_size=3", 1, line, NULL, FV_BOOL);
    check("remove_small", "min_size=20", 2, plane, NULL, FV_INT16);
    check("clear_border", "", 2, plane, NULL, FV_BOOL);
    check("clear_border", "buffer_size=2; connectivity=1", 3, volume, NULL, FV_BOOL);
    check("clear_border", "buffer_size=1", 2, plane, NULL, FV_INT64);
}

TEST(other_axes_are_independent) {
    check("fill_holes", "", 3, (int64_t[]){ 14, 15, 3 }, "yxc", FV_BOOL);
    check("remove_small", "min_size=4", 4, (int64_t[]){ 3, 5, 6, 7 }, "tzyx", FV_BOOL);
    check("clear_border", "", 4, (int64_t[]){ 5, 3, 6, 7 }, "zcyx", FV_BOOL);
    check("clear_border", "", 3, (int64_t[]){ 14, 15, 3 }, "yxc", FV_INT16);
}

/* A hole in one channel does not see the border of another. */
TEST(a_hole_is_closed_in_its_own_plane) {
    test_image  image = test_image_new(FV_BOOL, 3, (int64_t[]){ 2, 5, 5 });
    test_output out;
    fv_error    error = { 0 };
    uint8_t    *in = image.data;
    strcpy(image.type.image.axis[0], "c");
    for (int y = 1; y < 4; y++)
        for (int x = 1; x < 4; x++) in[y * 5 + x] = 1;
    in[12] = 0;
    CHECK(test_apply("fill_holes", "", (test_image *[]){ &image }, 1, NULL, 0, &out, &error) == FV_OK);
    CHECK(((uint8_t *)out.data)[12] == 1 && ((uint8_t *)out.data)[0] == 0 && ((uint8_t *)out.data)[37] == 0);
    test_output_free(&out);
    test_image_free(&image);
}

TEST(labels_beyond_the_signed_range_are_an_error) {
    test_image  image = test_image_new(FV_UINT64, 1, (int64_t[]){ 3 });
    test_output out;
    fv_error    error = { 0 };
    ((uint64_t *)image.data)[1] = UINT64_MAX;
    CHECK_INT(test_apply("remove_small", "", (test_image *[]){ &image }, 1, NULL, 0, &out, &error), FV_ERROR_INPUT);
    CHECK_MESSAGE(strstr(error.message, "18446744073709551615"), "%s", error.message);
    test_image_free(&image);
}

TEST_MAIN
