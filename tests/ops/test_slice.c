/* slice: numpy's meaning, by brute force. */
#include "support/apply.h"
#include "support/test.h"

static test_image numbered(fv_dtype dtype, int ndim, const int64_t *shape) {
    test_image image = test_image_new(dtype, ndim, shape);
    test_image_random(&image, 3);
    return image;
}

/* Indices that start:stop:step takes of n, as Python's slice.indices defines them; missing parts are NAN. */
static int64_t python_indices(int64_t n, double start, double stop, double step, int64_t *index) {
    int64_t d = step == step ? (int64_t)step : 1, count = 0;
    int64_t first = start == start ? (int64_t)start : d > 0 ? 0 : n - 1;
    int64_t end = stop == stop ? (int64_t)stop : d > 0 ? n : -n - 1;
    if (first < 0)
        first = first + n < 0 ? (d < 0 ? -1 : 0) : first + n;
    else if (first >= n)
        first = d < 0 ? n - 1 : n;
    if (end < 0)
        end = end + n < 0 ? (d < 0 ? -1 : 0) : end + n;
    else if (end >= n)
        end = d < 0 ? n - 1 : n;
    for (int64_t i = first; d > 0 ? i < end : i > end; i += d) index[count++] = i;
    return count;
}

static void number_text(double v, char *text) {
    if (v == v)
        sprintf(text, "%g", v);
    else
        strcpy(text, "nan");
}

TEST(slice_takes_what_python_takes) {
    uint64_t state = 11;
    int      taken = 0;
    for (int round = 0; round < 3000; round++) {
        int64_t n = 1 + (int64_t)(test_random(&state) % 9), index[16];
        double  part[3];
        char    text[3][16], params[128];
        for (int k = 0; k < 3; k++) {
            part[k] = (double)(int64_t)(test_random(&state) % 27) - 13;
            if (test_random(&state) % 4 == 0 || (k == 2 && part[k] == 0)) part[k] = NAN;
            number_text(part[k], text[k]);
        }
        snprintf(params, sizeof params, "start=[nan,%s]; stop=[nan,%s]; step=[nan,%s]", text[0], text[1], text[2]);
        test_image  in = numbered(FV_INT16, 2, (int64_t[]){ 3, n });
        test_output out;
        fv_error    error = { 0 };
        int64_t     count = python_indices(n, part[0], part[1], part[2], index);
        fv_status   status = test_apply("slice", params, (test_image *[]){ &in }, 1, NULL, 0, &out, &error);
        CHECK_MESSAGE((status == FV_OK) == (count > 0), "%s of %d: %s", params, (int)n, error.message);
        if (status == FV_OK) {
            CHECK_MESSAGE(out.type.image.shape[1] == count, "%s of %d", params, (int)n);
            for (int64_t y = 0; y < 3; y++)
                for (int64_t x = 0; x < count; x++)
                    CHECK(((int16_t *)out.data)[y * count + x] == ((int16_t *)in.data)[y * n + index[x]]);
            taken++;
        }
        test_output_free(&out);
        test_image_free(&in);
    }
    CHECK(taken > 500);
}

TEST(slice_is_the_same_on_any_lattice_and_type) {
    static const char *const params[] = { "start=[2]; single=[1]",
                                          "start=[nan,4]; stop=[nan,5]; single=[0,1]",
                                          "start=[nan,nan,-1]; single=[0,0,1]",
                                          "start=[1,9,20]; stop=[5,2,nan]; step=[2,-3,-4]",
                                          "start=[0,0]; single=[1,1]",
                                          "" };
    static const fv_dtype    dtypes[] = { FV_UINT8, FV_INT16, FV_FLOAT32, FV_UINT64 };
    for (int t = 0; t < FV_COUNT(dtypes); t++) {
        test_image in = numbered(dtypes[t], 3, (int64_t[]){ 6, 11, 23 });
        for (int i = 0; i < FV_COUNT(params); i++) {
            char message[256];
            CHECK_MESSAGE(test_conforms("slice", params[i], (test_image *[]){ &in }, 1, 8, message), "%s: %s", params[i],
                          message);
            CHECK_MESSAGE(test_same_on_every_isa("slice", params[i], (test_image *[]){ &in }, 1, message), "%s: %s", params[i],
                          message);
        }
        test_image_free(&in);
    }
}

TEST(slice_moves_spacing_origin_and_affine) {
    test_image     in = numbered(FV_UINT8, 3, (int64_t[]){ 10, 20, 30 });
    fv_image_type *type = &in.type.image;
    for (int d = 0; d < 3; d++) {
        type->spacing[d] = d + 1;
        type->origin[d] = 100;
    }
    strcpy(type->unit[2], "millimeter");
    type->has_affine = true;
    memcpy(type->affine, (double[]){ 3, 0, 0, 7, 0, 2, 0, 8, 0, 0, 1, 9 }, sizeof type->affine);
    test_output out;
    CHECK(test_apply("slice", "start=[4,nan,29]; step=[2,nan,-1]", (test_image *[]){ &in }, 1, NULL, 0, &out, NULL) == FV_OK);
    const fv_image_type *o = &out.type.image;
    CHECK(o->spacing[0] == 2 && o->origin[0] == 104 && o->spacing[1] == 2 && o->origin[1] == 100 && o->spacing[2] == 3 &&
          o->origin[2] == 100);
    CHECK(o->has_affine && o->affine[0] == -3 && o->affine[3] == 7 + 29 * 3 && o->affine[10] == 2 && o->affine[11] == 9 + 4);
    test_output_free(&out);
    CHECK(test_apply("slice", "start=[4,nan,3]; single=[1]", (test_image *[]){ &in }, 1, NULL, 0, &out, NULL) == FV_OK);
    CHECK_INT(o->ndim, 2);
    CHECK_TEXT(o->axis[0], "y");
    CHECK_TEXT(o->axis[1], "x");
    CHECK_TEXT(o->unit[1], "millimeter");
    CHECK(o->has_affine && o->affine[3] == 7 + 3 * 3 && o->affine[11] == 9 + 4 && o->origin[1] == 109 && o->shape[1] == 27);
    test_output_free(&out);
    test_image_free(&in);
}

static bool refused(const char *params, const char *part) {
    test_image  in = numbered(FV_UINT8, 2, (int64_t[]){ 4, 5 });
    test_output out;
    fv_error    error = { 0 };
    bool        ok = test_apply("slice", params, (test_image *[]){ &in }, 1, NULL, 0, &out, &error) == FV_ERROR_USAGE &&
              strstr(error.message, part);
    if (!ok) printf("# %s: %s\n", params, error.message);
    test_output_free(&out);
    test_image_free(&in);
    return ok;
}

TEST(slice_refuses_what_selects_nothing) {
    CHECK(refused("start=[4]; single=[1]", "index 4 is outside axis y"));
    CHECK(refused("start=[-5]; single=[1]", "index -5"));
    CHECK(refused("start=[nan]; single=[1]", "outside"));
    CHECK(refused("start=[3]; stop=[2]", "takes nothing"));
    CHECK(refused("step=[0]", "step = 0"));
    CHECK(refused("start=[1.5]", "whole number"));
    CHECK(refused("start=[0,0,0]", "2 axes"));
    CHECK(refused("start=[1,1]; single=[1,1]", "single voxel"));
    CHECK(refused("step=[1e300]", "between"));
}

TEST_MAIN
