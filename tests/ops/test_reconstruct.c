/* reconstruct and its relatives against repeated dilation, on any lattice. */
#include "support/apply.h"
#include "support/test.h"

/* By definition: dilate the seed under the mask until nothing changes. */
static void dilate_until_stable(const fv_image_type *type, uint8_t *now, const uint8_t *mask, int connectivity) {
    int     spatial[FV_MAX_DIMS], n = fv_image_type_spatial(type, spatial);
    int64_t voxels = fv_image_type_voxels(type);
    for (bool changed = true; changed;) {
        changed = false;
        for (int64_t i = 0; i < voxels; i++) {
            int64_t position[FV_MAX_DIMS], rest = i;
            for (int d = type->ndim - 1; d >= 0; d--) position[d] = rest % type->shape[d], rest /= type->shape[d];
            for (int code = 0; code < 27; code++) {
                int64_t near[FV_MAX_DIMS], index = 0;
                int     steps = 0, c = code;
                bool    inside = true;
                memcpy(near, position, sizeof near);
                for (int k = 0; k < 3; k++, c /= 3) {
                    if (c % 3 == 1) continue;
                    steps++;
                    if (k >= n)
                        inside = false;
                    else
                        near[spatial[k]] += c % 3 - 1;
                }
                for (int d = 0; d < type->ndim; d++) {
                    inside = inside && near[d] >= 0 && near[d] < type->shape[d];
                    index = index * type->shape[d] + near[d];
                }
                if (!inside || !steps || steps > connectivity) continue;
                uint8_t raised = now[index] < mask[i] ? now[index] : mask[i];
                if (raised > now[i]) now[i] = raised, changed = true;
            }
        }
    }
}

static void check(int ndim, const int64_t *shape, const char *axes, int connectivity, int values, uint64_t seed_of_random) {
    test_image  seed = test_image_new(FV_UINT8, ndim, shape), mask = test_image_new(FV_UINT8, ndim, shape);
    test_image *inputs[] = { &seed, &mask };
    int64_t     n = fv_image_type_voxels(&mask.type.image);
    char        params[64], message[256];
    for (int i = 0; i < 2; i++)
        for (int d = 0; axes && d < ndim; d++) snprintf(inputs[i]->type.image.axis[d], 8, "%c", axes[d]);
    for (int64_t i = 0; i < n; i++) {
        ((uint8_t *)mask.data)[i] = (uint8_t)(test_random(&seed_of_random) % (uint64_t)values);
        ((uint8_t *)seed.data)[i] = test_random(&seed_of_random) % 30 ? 0 : ((uint8_t *)mask.data)[i];
    }
    test_output out;
    fv_error    error = { 0 };
    snprintf(params, sizeof params, "connectivity=%d", connectivity);
    CHECK_MESSAGE(test_apply("reconstruct", params, inputs, 2, NULL, 0, &out, &error) == FV_OK, "%s", error.message);
    uint8_t *expected = fv__alloc((size_t)n);
    memcpy(expected, seed.data, (size_t)n);
    dilate_until_stable(&mask.type.image, expected, mask.data, connectivity);
    for (int64_t i = 0; i < n; i++) CHECK_INT(((uint8_t *)out.data)[i], expected[i]);
    CHECK_MESSAGE(test_conforms("reconstruct", params, inputs, 2, 12, message), "%s: %s", params, message);
    CHECK_MESSAGE(test_conforms("local_maxima", params, &inputs[1], 1, 6, message), "local_maxima %s: %s", params, message);
    CHECK_MESSAGE(test_conforms("h_minima", "h=3", &inputs[1], 1, 6, message), "h_minima: %s", message);
    free(expected);
    test_output_free(&out);
    test_image_free(&seed);
    test_image_free(&mask);
}

TEST(volumes_planes_and_lines_equal_repeated_dilation_on_any_lattice) {
    for (int connectivity = 1; connectivity <= 3; connectivity++)
        for (int values = 2; values <= 200; values *= 10)
            check(3, (int64_t[]){ 6, 7, 9 }, NULL, connectivity, values, (uint64_t)values);
    check(2, (int64_t[]){ 23, 30 }, NULL, 1, 20, 1);
    check(2, (int64_t[]){ 23, 30 }, NULL, 2, 20, 2);
    check(2, (int64_t[]){ 1, 40 }, NULL, 2, 9, 3);
    check(1, (int64_t[]){ 150 }, NULL, 1, 9, 4);
    check(1, (int64_t[]){ 1 }, NULL, 1, 9, 4);
}

TEST(other_axes_are_independent) {
    check(3, (int64_t[]){ 12, 13, 3 }, "yxc", 2, 20, 5);
    check(4, (int64_t[]){ 3, 4, 5, 6 }, "tzyx", 3, 20, 6);
    check(4, (int64_t[]){ 4, 3, 5, 6 }, "zcyx", 1, 20, 7);
}

/* A wall with one gap: the seed must go round through many chunks. */
TEST(a_seed_finds_its_way_through_a_maze_of_chunks) {
    int64_t     shape[] = { 31, 61 };
    test_image  seed = test_image_new(FV_FLOAT64, 2, shape), mask = test_image_new(FV_FLOAT64, 2, shape);
    test_image *inputs[] = { &seed, &mask };
    char        message[256];
    for (int64_t y = 0; y < 31; y++)
        for (int64_t x = 0; x < 61; x++)
            ((double *)mask.data)[y * 61 + x] = x % 2 && y != (x / 2 % 2 ? 0 : 30) ? -1 : 5 - 0.01 * (double)x;
    for (int64_t i = 0; i < 31 * 61; i++) ((double *)seed.data)[i] = -2;
    ((double *)seed.data)[0] = 9;
    test_output out;
    fv_error    error = { 0 };
    CHECK(test_apply("reconstruct", "", inputs, 2, (int64_t[]){ 4, 4 }, 0x55, &out, &error) == FV_OK);
    CHECK(((double *)out.data)[30 * 61 + 60] == 5 - 0.01 * 60);
    CHECK_MESSAGE(test_conforms("reconstruct", "connectivity=1", inputs, 2, 30, message), "%s", message);
    test_output_free(&out);
    test_image_free(&seed);
    test_image_free(&mask);
}

TEST(every_instruction_set_gives_the_same_bits) {
    test_image image = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 50, 70 });
    char       message[256];
    test_image_random(&image, 3);
    CHECK_MESSAGE(test_same_on_every_isa("h_maxima", "h=0.3", (test_image *[]){ &image }, 1, message), "%s", message);
    test_image_free(&image);
}

TEST_MAIN
