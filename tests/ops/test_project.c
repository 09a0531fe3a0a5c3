/* project: against a plain loop over the lines. */
#include "op/kernels.h"
#include "support/apply.h"
#include "support/test.h"

static const char *const methods[] = { "max", "min", "mean", "sum" };

static double value(const void *data, fv_dtype dtype, int64_t i) {
    double v;
    fv__kernels_current()->convert(&v, FV_FLOAT64, (const char *)data + i * (int64_t)fv_dtype_size(dtype), dtype, 1);
    return v;
}

/* A value with so many bits that a few of them add up exactly. */
static _Float128 wide_value(const void *data, fv_dtype dtype, int64_t i) {
    if (dtype == FV_UINT64) return ((const uint64_t *)data)[i];
    if (dtype == FV_INT64) return ((const int64_t *)data)[i];
    return value(data, dtype, i);
}

/* The method over depth values that lie step apart, as a number of the output's type. */
static double brute(const test_image *in, int64_t first, int64_t depth, int64_t step, int method, fv_dtype out) {
    double    result = value(in->data, in->type.image.dtype, first);
    _Float128 sum = 0;
    for (int64_t k = 0; k < depth; k++) {
        double v = value(in->data, in->type.image.dtype, first + k * step);
        sum += wide_value(in->data, in->type.image.dtype, first + k * step);
        if (method == 0 ? v > result : v < result) result = v;
    }
    if (method >= 2) result = method == 3 ? (double)sum : (double)sum / (double)depth;
    return out == FV_FLOAT32 ? (float)result : result;
}

TEST(project_equals_a_plain_loop_on_every_axis_and_type) {
    const int64_t shape[] = { 5, 7, 9 }, step[] = { 63, 9, 1 };
    for (int dtype = 0; dtype <= FV_FLOAT64; dtype++)
        for (int method = 0; method < 4; method++)
            for (int axis = 0; axis < 3; axis++) {
                char params[64];
                snprintf(params, sizeof params, "axis=%c; method=%s", "zyx"[axis], methods[method]);
                test_image in = test_image_new((fv_dtype)dtype, 3, shape);
                test_image_random(&in, (uint64_t)dtype + 1);
                test_output out;
                CHECK(test_apply("project", params, (test_image *[]){ &in }, 1, NULL, 0, &out, NULL) == FV_OK);
                const fv_image_type *o = &out.type.image;
                CHECK_INT(fv_image_type_voxels(o), 315 / shape[axis]);
                for (int64_t i = 0; i < fv_image_type_voxels(o); i++) {
                    int64_t first = i / step[axis] * step[axis] * shape[axis] + i % step[axis];
                    double  expected = brute(&in, first, shape[axis], step[axis], method, o->dtype),
                           got = value(out.data, o->dtype, i);
                    CHECK_MESSAGE(got == expected, "%s %s voxel %d: %.17g, not %.17g", fv_dtype_name((fv_dtype)dtype), params,
                                  (int)i, got, expected);
                }
                test_output_free(&out);
                test_image_free(&in);
            }
}

TEST(project_gives_the_documented_types) {
    test_image in = test_image_new(FV_UINT16, 2, (int64_t[]){ 3, 4 }), wide = test_image_new(FV_INT32, 2, (int64_t[]){ 3, 4 });
    static const fv_dtype expected[] = {
        FV_UINT16, FV_UINT16, FV_FLOAT32, FV_FLOAT64, FV_INT32, FV_INT32, FV_FLOAT64, FV_FLOAT64
    };
    for (int i = 0; i < 8; i++) {
        char params[64];
        snprintf(params, sizeof params, "axis=y; method=%s", methods[i % 4]);
        test_output out;
        CHECK(test_apply("project", params, (test_image *[]){ i < 4 ? &in : &wide }, 1, NULL, 0, &out, NULL) == FV_OK);
        CHECK_INT(out.type.image.dtype, expected[i]);
        CHECK_TEXT(out.type.image.axis[0], "x");
        test_output_free(&out);
    }
    test_image_free(&in);
    test_image_free(&wide);
}

TEST(project_is_the_same_on_any_lattice_and_instruction_set) {
    for (int method = 0; method < 4; method++)
        for (int axis = 0; axis < 3; axis++) {
            char params[64], message[256];
            snprintf(params, sizeof params, "axis=%c; method=%s", "zyx"[axis], methods[method]);
            test_image in = test_image_new(FV_FLOAT32, 3, (int64_t[]){ 15, 17, 39 });
            test_image_random(&in, 5);
            CHECK_MESSAGE(test_conforms("project", params, (test_image *[]){ &in }, 1, 6, message), "%s: %s", params, message);
            CHECK_MESSAGE(test_same_on_every_isa("project", params, (test_image *[]){ &in }, 1, message), "%s: %s", params,
                          message);
            test_image_free(&in);
        }
}

TEST(a_nan_on_the_line_shows) {
    for (int axis = 0; axis < 2; axis++)
        for (int at = 0; at < 3; at++) {
            test_image in = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 3, 3 });
            ((float *)in.data)[axis ? at : at * 3] = NAN;
            test_output out;
            CHECK(test_apply("project", axis ? "axis=x; method=min" : "axis=y", (test_image *[]){ &in }, 1, NULL, 0, &out,
                             NULL) == FV_OK);
            CHECK(((float *)out.data)[0] != ((float *)out.data)[0] && ((float *)out.data)[1] == 0);
            test_output_free(&out);
            test_image_free(&in);
        }
}

static bool refused(test_image *in, const char *params, const char *part) {
    test_output out;
    fv_error    error = { 0 };
    bool        ok = test_apply("project", params, (test_image *[]){ in }, 1, NULL, 0, &out, &error) == FV_ERROR_USAGE &&
              strstr(error.message, part);
    if (!ok) printf("# %s: %s\n", params, error.message);
    return ok;
}

TEST(project_refuses_what_it_cannot_do) {
    test_image plane = test_image_new(FV_UINT8, 2, (int64_t[]){ 3, 3 }), line = test_image_new(FV_UINT8, 1, (int64_t[]){ 3 });
    test_image complex = test_image_new(FV_COMPLEX64, 2, (int64_t[]){ 3, 3 });
    CHECK(refused(&plane, "", "axes y x"));
    CHECK(refused(&line, "axis=x", "no other axis"));
    CHECK(refused(&complex, "axis=x", "complex64"));
    CHECK(refused(&plane, "method=mode", "max|min|mean|sum|std|median"));
    test_image_free(&plane);
    test_image_free(&line);
    test_image_free(&complex);
}

TEST_MAIN
