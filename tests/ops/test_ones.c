/* ones. */
#include "support/apply.h"
#include "support/test.h"

TEST(ones_fills_every_voxel_of_every_type) {
    char message[256], params[64];
    for (int d = 0; d < FV_DTYPES; d++) {
        snprintf(params, sizeof params, "shape=[5,7,9]; dtype=%s", fv_dtype_name((fv_dtype)d));
        CHECK_MESSAGE(test_conforms("ones", params, NULL, 0, 5, message), "%s: %s", params, message);
    }
}

TEST(ones_are_one) {
    test_output out;
    CHECK(test_apply("ones", "shape=[3,4]; dtype=float32", NULL, 0, NULL, 0, &out, NULL) == FV_OK);
    for (int i = 0; i < 12; i++) CHECK(((float *)out.data)[i] == 1);
    test_output_free(&out);
    CHECK(test_apply("ones", "shape=[3,4]; dtype=complex128", NULL, 0, NULL, 0, &out, NULL) == FV_OK);
    for (int i = 0; i < 24; i++) CHECK(((double *)out.data)[i] == !(i % 2));
    test_output_free(&out);
}

TEST(ones_rejects_a_broken_axis) {
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("ones", "shape=[2.5,3]", NULL, 0, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "whole number"));
}

TEST_MAIN
