/* montage: every voxel in its place. */
#include "support/apply.h"
#include "support/test.h"

TEST(montage_lays_slices_left_to_right_and_top_to_bottom) {
    for (int columns = 0; columns <= 8; columns++) {
        test_image in = test_image_new(FV_UINT16, 3, (int64_t[]){ 7, 4, 5 });
        test_image_random(&in, 2);
        char params[32];
        snprintf(params, sizeof params, "columns=%d", columns);
        test_output out;
        CHECK(test_apply("montage", params, (test_image *[]){ &in }, 1, NULL, 0, &out, NULL) == FV_OK);
        int wide = columns ? FV_MIN(columns, 7) : 3, high = (7 + wide - 1) / wide;
        CHECK_INT(out.type.image.ndim, 2);
        CHECK_INT(out.type.image.shape[0], high * 4);
        CHECK_INT(out.type.image.shape[1], wide * 5);
        for (int y = 0; y < high * 4; y++)
            for (int x = 0; x < wide * 5; x++) {
                int slice = y / 4 * wide + x / 5;
                int expected = slice < 7 ? ((uint16_t *)in.data)[(slice * 4 + y % 4) * 5 + x % 5] : 0;
                CHECK_INT(((uint16_t *)out.data)[y * wide * 5 + x], expected);
            }
        test_output_free(&out);
        test_image_free(&in);
    }
}

static test_image coloured(void) {
    test_image image = test_image_new(FV_UINT8, 4, (int64_t[]){ 5, 4, 6, 3 });
    for (int d = 0; d < 4; d++) snprintf(image.type.image.axis[d], 8, "%c", "zyxc"[d]);
    test_image_random(&image, 4);
    return image;
}

TEST(montage_keeps_colours_together) {
    test_image  in = coloured();
    test_output out;
    CHECK(test_apply("montage", "columns=2", (test_image *[]){ &in }, 1, NULL, 0, &out, NULL) == FV_OK);
    CHECK_INT(out.type.image.ndim, 3);
    CHECK_TEXT(out.type.image.axis[2], "c");
    CHECK(out.type.image.shape[0] == 12 && out.type.image.shape[1] == 12 && out.type.image.shape[2] == 3);
    for (int c = 0; c < 3; c++) /* slice 3, y 1, x 2 */
        CHECK_INT(((uint8_t *)out.data)[((4 + 1) * 12 + 6 + 2) * 3 + c], ((uint8_t *)in.data)[((3 * 4 + 1) * 6 + 2) * 3 + c]);
    test_output_free(&out);
    test_image_free(&in);
}

TEST(montage_is_the_same_on_any_lattice_and_instruction_set) {
    test_image grey = test_image_new(FV_FLOAT32, 3, (int64_t[]){ 11, 8, 9 }), colour = coloured();
    char       message[256];
    test_image_random(&grey, 1);
    for (int columns = 0; columns < 5; columns++) {
        char params[32];
        snprintf(params, sizeof params, "columns=%d", columns);
        CHECK_MESSAGE(test_conforms("montage", params, (test_image *[]){ &grey }, 1, 15, message), "%s", message);
        CHECK_MESSAGE(test_conforms("montage", params, (test_image *[]){ &colour }, 1, 15, message), "%s", message);
        CHECK_MESSAGE(test_same_on_every_isa("montage", params, (test_image *[]){ &colour }, 1, message), "%s", message);
    }
    test_image_free(&grey);
    test_image_free(&colour);
}

TEST(montage_refuses_a_plane) {
    test_image  in = test_image_new(FV_UINT8, 2, (int64_t[]){ 3, 3 });
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("montage", "", (test_image *[]){ &in }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "2 axes"));
    test_image_free(&in);
}

TEST_MAIN
