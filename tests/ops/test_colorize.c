/* colorize. */
#include "support/apply.h"
#include "support/test.h"

TEST(equal_labels_share_a_colour_and_zero_is_black) {
    test_image in = test_image_new(FV_INT32, 2, (int64_t[]){ 2, 2000 });
    for (int i = 0; i < 4000; i++) ((int32_t *)in.data)[i] = i % 2000;
    test_output out;
    CHECK(test_apply("colorize", "", (test_image *[]){ &in }, 1, NULL, 0, &out, NULL) == FV_OK);
    const uint8_t *rgb = out.data;
    CHECK(out.type.image.ndim == 3 && out.type.image.shape[2] == 3 && out.type.image.dtype == FV_UINT8);
    CHECK_TEXT(out.type.image.axis[2], "c");
    CHECK(!rgb[0] && !rgb[1] && !rgb[2]);
    CHECK(!memcmp(rgb, rgb + 6000, 6000));
    int seen = 0;
    for (int i = 1; i < 2000; i++) {
        bool fresh = true;
        CHECK_MESSAGE(FV_MAX(FV_MAX(rgb[i * 3], rgb[i * 3 + 1]), rgb[i * 3 + 2]) >= 150, "label %d is too dark", i);
        for (int j = 1; j < i && fresh; j++) fresh = memcmp(rgb + i * 3, rgb + j * 3, 3) != 0;
        seen += fresh;
    }
    CHECK_MESSAGE(seen > 1700, "only %d colours for 1999 labels", seen);
    test_output_free(&out);
    test_image_free(&in);
}

TEST(a_scale_goes_from_low_to_high) {
    test_image in = test_image_new(FV_FLOAT32, 1, (int64_t[]){ 5 }), low = test_scalar(-1), high = test_scalar(3);
    memcpy(in.data, (float[]){ -2, -1, 1, 3, NAN }, 20);
    test_output out;
    CHECK(test_apply("colorize", "map=grey", (test_image *[]){ &in, &low, &high }, 3, NULL, 0, &out, NULL) == FV_OK);
    const uint8_t expected[] = { 0, 0, 128, 255, 0 };
    for (int i = 0; i < 15; i++) CHECK_INT(((uint8_t *)out.data)[i], expected[i / 3]);
    test_output_free(&out);
    CHECK(test_apply("colorize", "map=viridis", (test_image *[]){ &in, &low, &high }, 3, NULL, 0, &out, NULL) == FV_OK);
    CHECK(!memcmp(out.data, (uint8_t[]){ 68, 1, 84, 68, 1, 84 }, 6) &&
          !memcmp((uint8_t *)out.data + 9, (uint8_t[]){ 253, 231, 37 }, 3));
    test_output_free(&out);
    test_image_free(&in);
    in = test_image_new(FV_UINT8, 1, (int64_t[]){ 256 });
    for (int i = 0; i < 256; i++) ((uint8_t *)in.data)[i] = (uint8_t)i;
    CHECK(test_apply("colorize", "map=grey", (test_image *[]){ &in }, 1, NULL, 0, &out, NULL) == FV_OK);
    for (int i = 0; i < 256; i++) CHECK_INT(((uint8_t *)out.data)[i * 3 + 1], i);
    test_output_free(&out);
    test_image_free(&in);
}

TEST(colorize_is_the_same_on_any_lattice_and_instruction_set) {
    static const struct {
        fv_dtype    dtype;
        const char *params;
    } cases[] = {
        { FV_INT32, "" }, { FV_UINT64, "" }, { FV_BOOL, "" }, { FV_FLOAT32, "map=heat" }, { FV_UINT16, "map=viridis" },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        test_image in = test_image_new(cases[i].dtype, 3, (int64_t[]){ 4, 6, 21 });
        char       message[256];
        test_image_random(&in, 8);
        CHECK_MESSAGE(test_conforms("colorize", cases[i].params, (test_image *[]){ &in }, 1, 10, message), "%s", message);
        CHECK_MESSAGE(test_same_on_every_isa("colorize", cases[i].params, (test_image *[]){ &in }, 1, message), "%s", message);
        test_image_free(&in);
    }
}

static bool refused(fv_dtype dtype, int ndim, const char *axis, const char *part) {
    test_image  in = test_image_new(dtype, ndim, (int64_t[]){ 2, 2, 2, 2, 2, 2 });
    test_output out;
    fv_error    error = { 0 };
    snprintf(in.type.image.axis[0], 8, "%s", axis);
    bool ok = test_apply("colorize", "", (test_image *[]){ &in }, 1, NULL, 0, &out, &error) == FV_ERROR_USAGE &&
              strstr(error.message, part);
    if (!ok) printf("# %s\n", error.message);
    test_image_free(&in);
    return ok;
}

TEST(colorize_refuses_what_has_no_colour) {
    CHECK(refused(FV_FLOAT32, 2, "y", "viridis"));
    CHECK(refused(FV_COMPLEX64, 2, "y", "complex64"));
    CHECK(refused(FV_UINT8, 3, "c", "axis c already"));
    CHECK(refused(FV_UINT8, 6, "q", "no room"));
}

TEST_MAIN
