/* erode and dilate against their definition; the footprints that they take. */
#include "support/apply.h"
#include "support/test.h"

typedef struct {
    int64_t offset[FV_MAX_DIMS];
} neighbour;

/* All offsets of a footprint on an image, straight from the definition. */
static neighbour *neighbours(const char *text, const fv_image_type *type, int64_t *count) {
    int         spatial[FV_MAX_DIMS], n = fv_image_type_spatial(type, spatial);
    bool        box = !strncmp(text, "box", 3), disk = !strncmp(text, "disk", 4);
    double      radius = !strncmp(text, "cross", 5) ? 1 : atof(strchr(text, '(') + 1);
    int64_t     half[FV_MAX_DIMS] = { 0 }, capacity = 1;
    const char *p = strchr(text, '(') + 1;
    for (int i = 0; i < n; i++) {
        bool along = !disk || type->axis[spatial[i]][0] != 'z';
        half[spatial[i]] = box ? atoll(p) / 2 : along ? (int64_t)radius : 0;
        if (box && strchr(p, ',')) p = strchr(p, ',') + 1;
        capacity *= 2 * half[spatial[i]] + 1;
    }
    neighbour *list = malloc((size_t)capacity * sizeof *list);
    fv_region  around = { .ndim = type->ndim };
    for (int d = 0; d < type->ndim; d++) around.start[d] = -half[d], around.size[d] = 2 * half[d] + 1;
    fv_rows rows;
    *count = 0;
    for (fv__rows_begin(&rows, &around); fv__rows_next(&rows);)
        for (int64_t x = 0; x < around.size[type->ndim - 1]; x++) {
            neighbour one;
            double    sum = 0;
            memcpy(one.offset, rows.position, sizeof one.offset);
            one.offset[type->ndim - 1] += x;
            for (int d = 0; d < type->ndim; d++) sum += (double)(one.offset[d] * one.offset[d]);
            if (box || sum <= radius * radius) list[(*count)++] = one;
        }
    return list;
}

static uint8_t brute(const test_image *image, const int64_t *at, const neighbour *list, int64_t count, bool dilate) {
    const fv_image_type *type = &image->type.image;
    for (int64_t k = 0; k < count; k++) {
        int64_t index = 0;
        bool    inside = true;
        for (int d = 0; d < type->ndim; d++) {
            int64_t p = at[d] + list[k].offset[d];
            inside = inside && p >= 0 && p < type->shape[d];
            index = index * type->shape[d] + p;
        }
        if (inside && ((uint8_t *)image->data)[index] == dilate) return dilate;
    }
    return !dilate;
}

/* Sparse seeds, so that large footprints leave something to see. */
static void fill(test_image *image, uint64_t seed, uint64_t one_in, bool sparse_value) {
    int64_t n = fv_image_type_voxels(&image->type.image);
    for (int64_t i = 0; i < n; i++) ((uint8_t *)image->data)[i] = test_random(&seed) % one_in ? !sparse_value : sparse_value;
}

static void compare(const char *footprint, int ndim, const int64_t *shape, const char *axes, uint64_t one_in) {
    for (int dilate = 0; dilate < 2; dilate++) {
        test_image  image = test_image_new(FV_BOOL, ndim, shape);
        test_output out;
        fv_error    error = { 0 };
        char        params[64], message[256];
        for (int d = 0; axes && d < ndim; d++) snprintf(image.type.image.axis[d], 8, "%c", axes[d]);
        fill(&image, 3 + (uint64_t)dilate, one_in, dilate);
        snprintf(params, sizeof params, "footprint=%s", footprint);
        CHECK_MESSAGE(test_apply(dilate ? "dilate" : "erode", params, (test_image *[]){ &image }, 1, NULL, 0, &out, &error) ==
                          FV_OK,
                      "%s", error.message);
        int64_t    count, i = 0;
        neighbour *list = neighbours(footprint, &image.type.image, &count);
        fv_region  whole = fv__region_whole(&image.type.image);
        fv_rows    rows;
        for (fv__rows_begin(&rows, &whole); fv__rows_next(&rows);)
            for (int64_t x = 0; x < shape[ndim - 1]; x++, i++) {
                rows.position[ndim - 1] = x;
                CHECK_MESSAGE(((uint8_t *)out.data)[i] == brute(&image, rows.position, list, count, dilate),
                              "%s %s differs at voxel %lld", dilate ? "dilate" : "erode", footprint, (long long)i);
            }
        CHECK_MESSAGE(test_conforms(dilate ? "dilate" : "erode", params, (test_image *[]){ &image }, 1, 8, message), "%s: %s",
                      footprint, message);
        free(list);
        test_output_free(&out);
        test_image_free(&image);
    }
}

TEST(balls_of_all_lane_widths_equal_the_definition) {
    compare("ball(1)", 3, (int64_t[]){ 9, 11, 13 }, NULL, 20);
    compare("ball(2.5)", 3, (int64_t[]){ 12, 9, 70 }, NULL, 40);
    compare("ball(4)", 3, (int64_t[]){ 20, 21, 40 }, NULL, 200);
    compare("ball(12)", 3, (int64_t[]){ 30, 28, 33 }, NULL, 4000);
    compare("ball(15.9)", 2, (int64_t[]){ 60, 150 }, NULL, 2000);
    compare("ball(16)", 2, (int64_t[]){ 60, 150 }, NULL, 2000);
    compare("ball(40)", 2, (int64_t[]){ 100, 130 }, NULL, 6000);
    compare("ball(300)", 2, (int64_t[]){ 3, 400 }, NULL, 600);
    compare("ball(0)", 3, (int64_t[]){ 4, 5, 6 }, NULL, 2);
}

TEST(boxes_equal_the_definition) {
    compare("box(3)", 3, (int64_t[]){ 9, 11, 13 }, NULL, 30);
    compare("box(1,5,3)", 3, (int64_t[]){ 9, 11, 70 }, NULL, 30);
    compare("box(7,1,1)", 3, (int64_t[]){ 19, 5, 33 }, NULL, 10);
    compare("box(11)", 2, (int64_t[]){ 40, 150 }, NULL, 300);
    compare("box(33)", 1, (int64_t[]){ 500 }, NULL, 60);
    compare("box(1)", 2, (int64_t[]){ 5, 6 }, NULL, 2);
    compare("box(99)", 2, (int64_t[]){ 5, 6 }, NULL, 30);
}

TEST(disks_act_slice_by_slice_and_crosses_on_faces) {
    compare("disk(3)", 3, (int64_t[]){ 4, 30, 41 }, NULL, 100);
    compare("cross()", 3, (int64_t[]){ 7, 8, 9 }, NULL, 10);
    compare("cross()", 1, (int64_t[]){ 90 }, NULL, 10);
    compare("ball(3)", 1, (int64_t[]){ 90 }, NULL, 20);
}

TEST(axes_other_than_space_are_independent) {
    compare("ball(2)", 4, (int64_t[]){ 3, 7, 8, 9 }, "czyx", 60);
    compare("ball(3)", 3, (int64_t[]){ 20, 21, 3 }, "yxc", 60);
    compare("box(3,5)", 3, (int64_t[]){ 20, 21, 3 }, "yxc", 60);
    compare("ball(3)", 4, (int64_t[]){ 9, 8, 3, 21 }, "zycx", 100);
    compare("box(3)", 4, (int64_t[]){ 9, 8, 3, 21 }, "zycx", 100);
    compare("disk(2)", 3, (int64_t[]){ 12, 13, 5 }, "xyz", 30);
    compare("ball(2)", 2, (int64_t[]){ 40, 3 }, "xc", 30);
}

TEST(empty_full_and_one_voxel_images_keep_their_border_rules) {
    test_image one = test_image_new(FV_BOOL, 3, (int64_t[]){ 1, 1, 1 }),
               full = test_image_new(FV_BOOL, 3, (int64_t[]){ 5, 6, 7 });
    test_output out;
    fv_error    error = { 0 };
    *(uint8_t *)one.data = 1;
    CHECK(test_apply("erode", "footprint=ball(9)", (test_image *[]){ &one }, 1, NULL, 0, &out, &error) == FV_OK &&
          *(uint8_t *)out.data == 1);
    test_output_free(&out);
    CHECK(test_apply("dilate", "footprint=box(9)", (test_image *[]){ &full }, 1, NULL, 0, &out, &error) == FV_OK);
    for (int i = 0; i < 210; i++) CHECK(!((uint8_t *)out.data)[i]);
    test_output_free(&out);
    memset(full.data, 1, 210);
    CHECK(test_apply("erode", "footprint=box(9)", (test_image *[]){ &full }, 1, NULL, 0, &out, &error) == FV_OK);
    for (int i = 0; i < 210; i++) CHECK(((uint8_t *)out.data)[i] == 1);
    test_output_free(&out);
    test_image_free(&one);
    test_image_free(&full);
}

static void rejects(const char *op, const char *params, test_image *image, const char *word) {
    test_output out;
    fv_error    error = { 0 };
    CHECK_MESSAGE(test_apply(op, params, (test_image *[]){ image }, 1, NULL, 0, &out, &error) == FV_ERROR_USAGE,
                  "%s was accepted", params);
    CHECK_MESSAGE(strstr(error.message, word), "message is: %s", error.message);
}

TEST(bad_input_is_named) {
    test_image grey = test_image_new(FV_COMPLEX64, 2, (int64_t[]){ 4, 4 }),
               volume = test_image_new(FV_BOOL, 3, (int64_t[]){ 4, 4, 4 });
    test_image spectrum = test_image_new(FV_BOOL, 1, (int64_t[]){ 4 });
    rejects("erode", "", &grey, "complex numbers have no order");
    rejects("dilate", "footprint=box(3,5)", &volume, "give one, or 3");
    rejects("dilate", "footprint=box(4)", &volume, "must be odd");
    rejects("erode", "footprint=disk(2)", &spectrum, "no y and x axis");
    snprintf(spectrum.type.image.axis[0], 8, "angle");
    rejects("erode", "", &spectrum, "no spatial axis");
    test_image_free(&grey);
    test_image_free(&volume);
    test_image_free(&spectrum);
}

TEST(box_takes_odd_whole_sizes_only) {
    const fv_op *op = fv__op_find("box");
    fv_error     error = { 0 };
    fv_footprint footprint;
    fv_numbers   size = { 3, { 3, 5, 7 } };
    CHECK(op->value(&size, &footprint, &error) == FV_OK && footprint.ndim == 3 && footprint.size[2] == 7);
    size = (fv_numbers){ 1, { 4 } };
    CHECK(op->value(&size, &footprint, &error) == FV_ERROR_USAGE && strstr(error.message, "size = 4: must be an odd"));
    size = (fv_numbers){ 1, { 2.5 } };
    CHECK(op->value(&size, &footprint, &error) == FV_ERROR_USAGE && strstr(error.message, "size = 2.5"));
    size = (fv_numbers){ 0 };
    CHECK(op->value(&size, &footprint, &error) == FV_ERROR_USAGE);
}

TEST(ball_disk_and_cross_carry_their_shape) {
    fv_footprint footprint;
    double       radius = 2.5;
    CHECK(fv__op_find("ball")->value(&radius, &footprint, NULL) == FV_OK && footprint.shape == FV_FOOTPRINT_BALL &&
          footprint.radius == 2.5);
    CHECK(fv__op_find("disk")->value(&radius, &footprint, NULL) == FV_OK && footprint.shape == FV_FOOTPRINT_DISK &&
          footprint.radius == 2.5);
    CHECK(fv__op_find("cross")->value("", &footprint, NULL) == FV_OK && footprint.shape == FV_FOOTPRINT_CROSS);
}

TEST_MAIN
