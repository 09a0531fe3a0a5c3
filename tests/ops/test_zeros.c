/* zeros. */
#include "support/apply.h"
#include "support/test.h"

TEST(zeros_fills_every_voxel_on_any_lattice) {
    char message[256];
    CHECK_MESSAGE(test_conforms("zeros", "shape=[5,7,9]; dtype=float32", NULL, 0, 10, message), "%s", message);
}

TEST(zeros_rejects_an_empty_axis) {
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("zeros", "shape=[0,3]", NULL, 0, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "shape = 0"));
}

TEST_MAIN
