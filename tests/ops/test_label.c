/* label against a flood fill, on any lattice and any part of the result. */
#include "support/apply.h"
#include "support/test.h"

/* The labelling by its definition: flood from each voxel that a raster scan meets without a label. */
static int64_t *flood(const test_image *image, int connectivity) {
    const fv_image_type *type = &image->type.image;
    int64_t              n = fv_image_type_voxels(type), count = 0, *label = calloc((size_t)n, sizeof *label),
            *stack = malloc((size_t)n * sizeof *stack);
    int                  spatial[FV_MAX_DIMS], nspatial = fv_image_type_spatial(type, spatial);
    size_t               size = fv_dtype_size(type->dtype);
    static const uint8_t zero[16];
    for (int64_t start = 0; start < n; start++) {
        if (label[start] || !memcmp((char *)image->data + start * (int64_t)size, zero, size)) continue;
        int64_t depth = 1;
        stack[0] = start;
        label[start] = ++count;
        while (depth) {
            int64_t at = stack[--depth], position[FV_MAX_DIMS], rest = at;
            for (int d = type->ndim - 1; d >= 0; d--) position[d] = rest % type->shape[d], rest /= type->shape[d];
            for (int code = 0; code < 27; code++) {
                int64_t near[FV_MAX_DIMS], index = 0;
                int     steps = 0, c = code;
                bool    inside = true;
                memcpy(near, position, sizeof near);
                for (int i = 0; i < 3; i++, c /= 3) {
                    int step = c % 3 - 1;
                    if (!step) continue;
                    steps++;
                    if (i >= nspatial)
                        inside = false;
                    else
                        near[spatial[i]] += step;
                }
                for (int d = 0; d < type->ndim; d++) {
                    inside = inside && near[d] >= 0 && near[d] < type->shape[d];
                    index = index * type->shape[d] + near[d];
                }
                if (!inside || steps > connectivity || label[index] ||
                    !memcmp((char *)image->data + index * (int64_t)size, zero, size))
                    continue;
                label[index] = count;
                stack[depth++] = index;
            }
        }
    }
    free(stack);
    return label;
}

static void fill(test_image *image, uint64_t seed, int percent) {
    int64_t n = fv_image_type_voxels(&image->type.image);
    size_t  size = fv_dtype_size(image->type.image.dtype);
    memset(image->data, 0, (size_t)n * size);
    for (int64_t i = 0; i < n; i++)
        if ((int)(test_random(&seed) % 100) < percent) ((uint8_t *)image->data)[i * (int64_t)size + (int64_t)size - 1] = 1;
}

static void check(test_image *image, int connectivity, int rounds) {
    test_output out;
    fv_error    error = { 0 };
    char        params[32], message[256];
    snprintf(params, sizeof params, "connectivity=%d", connectivity);
    CHECK_MESSAGE(test_apply("label", params, (test_image *[]){ image }, 1, NULL, 0, &out, &error) == FV_OK, "%s", error.message);
    CHECK_INT(out.type.image.dtype, FV_INT32);
    int64_t *expected = flood(image, connectivity);
    for (int64_t i = 0; i < fv_image_type_voxels(&image->type.image); i++)
        CHECK_MESSAGE(((int32_t *)out.data)[i] == expected[i], "connectivity %d: voxel %lld is %d, not %lld", connectivity,
                      (long long)i, ((int32_t *)out.data)[i], (long long)expected[i]);
    CHECK_MESSAGE(test_conforms("label", params, (test_image *[]){ image }, 1, rounds, message), "connectivity %d: %s",
                  connectivity, message);
    free(expected);
    test_output_free(&out);
}

static void check_all(fv_dtype dtype, int ndim, const int64_t *shape, const char *axes, int rounds) {
    static const int percents[] = { 3, 15, 30, 50, 70, 95 };
    for (int p = 0; p < FV_COUNT(percents); p++) {
        test_image image = test_image_new(dtype, ndim, shape);
        int        spatial[FV_MAX_DIMS];
        for (int d = 0; axes && d < ndim; d++) snprintf(image.type.image.axis[d], 8, "%c", axes[d]);
        fill(&image, 11 + (uint64_t)p, percents[p]);
        for (int c = 1; c <= fv_image_type_spatial(&image.type.image, spatial); c++) check(&image, c, rounds);
        test_image_free(&image);
    }
}

TEST(volumes_equal_a_flood_fill_on_any_lattice) {
    check_all(FV_BOOL, 3, (int64_t[]){ 7, 9, 11 }, NULL, 20);
    check_all(FV_BOOL, 3, (int64_t[]){ 6, 5, 140 }, NULL, 10);
    check_all(FV_BOOL, 3, (int64_t[]){ 2, 3, 64 }, NULL, 10);
}

TEST(planes_and_lines_equal_a_flood_fill) {
    check_all(FV_BOOL, 2, (int64_t[]){ 33, 130 }, NULL, 15);
    check_all(FV_BOOL, 2, (int64_t[]){ 1, 65 }, NULL, 5);
    check_all(FV_BOOL, 2, (int64_t[]){ 65, 1 }, NULL, 5);
    check_all(FV_BOOL, 1, (int64_t[]){ 200 }, NULL, 10);
    check_all(FV_BOOL, 1, (int64_t[]){ 1 }, NULL, 2);
}

TEST(channels_and_times_never_connect_and_count_on) {
    check_all(FV_BOOL, 4, (int64_t[]){ 3, 5, 6, 7 }, "czyx", 15);
    check_all(FV_BOOL, 3, (int64_t[]){ 12, 13, 3 }, "yxc", 15);
    check_all(FV_BOOL, 4, (int64_t[]){ 5, 3, 6, 7 }, "zcyx", 10);
    check_all(FV_BOOL, 5, (int64_t[]){ 2, 4, 5, 6, 2 }, "tzyxc", 10);
    check_all(FV_BOOL, 2, (int64_t[]){ 40, 3 }, "xc", 10);
    check_all(FV_BOOL, 3, (int64_t[]){ 8, 9, 10 }, "xyz", 5);
}

TEST(integers_of_every_width_count_as_foreground_when_not_zero) {
    static const fv_dtype dtypes[] = { FV_UINT8, FV_INT8, FV_UINT16, FV_INT16, FV_UINT32, FV_INT32, FV_UINT64, FV_INT64 };
    for (int i = 0; i < FV_COUNT(dtypes); i++) check_all(dtypes[i], 2, (int64_t[]){ 9, 70 }, NULL, 2);
}

TEST(empty_full_and_checkered_images) {
    test_image image = test_image_new(FV_BOOL, 3, (int64_t[]){ 8, 9, 70 });
    for (int c = 1; c <= 3; c++) check(&image, c, 5);
    for (int64_t i = 0; i < 8 * 9 * 70; i++) ((uint8_t *)image.data)[i] = (uint8_t)((i % 70 + i / 70 % 9 + i / 630) & 1);
    for (int c = 1; c <= 3; c++) check(&image, c, 5);
    memset(image.data, 1, 8 * 9 * 70);
    for (int c = 1; c <= 3; c++) check(&image, c, 5);
    test_image_free(&image);
}

/* A comb: teeth that only meet at the far end, across many chunks. */
TEST(components_that_wind_through_many_chunks_are_one) {
    test_image image = test_image_new(FV_BOOL, 2, (int64_t[]){ 64, 200 });
    for (int64_t y = 0; y < 64; y++)
        for (int64_t x = 0; x < 200; x++)
            ((uint8_t *)image.data)[y * 200 + x] =
                x % 4 == 0 || (x % 4 != 2 && y == (x / 4 % 2 ? 0 : 63)) || (x % 4 == 2 && y == (x / 4 % 2 ? 0 : 63));
    check(&image, 1, 40);
    check(&image, 2, 40);
    test_image_free(&image);
}

/* ---- the two passes by hand, so that the second can be asked for regions that are not chunks ---- */

typedef struct {
    fv_finish  finish;
    fv_results results;
    fv_bytes  *partial, *result;
    int64_t    nresults;
} by_hand;

static fv_status read_partial(fv_finish *f, int64_t i, size_t offset, void *data, size_t size, fv_error *error) {
    (void)error;
    memcpy(data, ((by_hand *)f)->partial[i].data + offset, size);
    return FV_OK;
}
static fv_status put_result(fv_finish *f, int64_t index, const void *data, size_t size, fv_error *error) {
    by_hand *h = (by_hand *)f;
    if (index >= h->nresults) return fv_fail(error, FV_ERROR_INTERNAL, "more results than chunks");
    fv__bytes_append(&h->result[index], data, size);
    return FV_OK;
}
static fv_status get_result(fv_results *results, int64_t index, const void **data, size_t *size, fv_error *error) {
    (void)error;
    by_hand *h = (by_hand *)((char *)results - offsetof(by_hand, results));
    *data = h->result[index].data;
    *size = h->result[index].size;
    return FV_OK;
}

static fv_status run_pass(const fv_pass *pass, fv_run *r, const fv_block *whole, fv_error *error) {
    fv_region in = r->need.region;
    pass->need(&r->need, &in);
    fv_block block = fv__block_window(whole, &in);
    r->in[0] = &block;
    size_t size = pass->scratch(&r->need);
    r->scratch = fv__buffer_new(size);
    fv_status status = pass->run(r, error);
    fv__buffer_free(r->scratch, size);
    return status;
}

TEST(any_region_of_the_result_is_filled_exactly) {
    int64_t        shape[] = { 20, 22, 90 }, connectivity = 3;
    const fv_pass *passes = fv__op_find("label")->passes;
    test_image     image = test_image_new(FV_BOOL, 3, shape);
    fv_type        type = image.type;
    fv_error       error = { 0 };
    fv_lattice     lattice;
    fv_block       whole;
    fv_region      all = fv__region_whole(&image.type.image);
    uint64_t       random = 5;
    fill(&image, 3, 12);
    type.image.dtype = FV_INT32;
    int64_t *expected = flood(&image, 3);
    fv__lattice_init(&lattice, 3, shape, (int64_t[]){ 7, 8, 33 });
    fv__block_init(&whole, FV_BOOL, &all, image.data);
    int64_t n = fv__lattice_count(&lattice);
    by_hand h = { .partial = calloc((size_t)n, sizeof(fv_bytes)), .result = calloc((size_t)n, sizeof(fv_bytes)), .nresults = n };
    h.finish = (fv_finish){ .params = &connectivity,
                            .ninputs = 1,
                            .in = { &image.type },
                            .out = &type,
                            .lattice = &lattice,
                            .npartials = n,
                            .read = read_partial,
                            .put = put_result };
    h.results.get = get_result;
    fv_need need = { .params = &connectivity, .ninputs = 1, .in = { &image.type }, .out = &type, .lattice = &lattice };
    for (int64_t c = 0; c < n; c++) {
        fv_run r = { .need = need, .chunk = c, .partial = &h.partial[c] };
        r.need.region = fv__lattice_chunk(&lattice, c);
        CHECK_MESSAGE(run_pass(&passes[0], &r, &whole, &error) == FV_OK, "%s", error.message);
        CHECK(h.partial[c].size <= passes[0].bound(&r.need));
    }
    CHECK_MESSAGE(passes[0].finish(&h.finish, &error) == FV_OK, "%s", error.message);
    int32_t *labels = malloc(sizeof *labels * 20 * 22 * 90);
    for (int round = 0; round < 60; round++) {
        fv_run   r = { .need = need, .chunk = -1, .results = &h.results };
        fv_block out;
        r.need.region = all;
        for (int d = 0; d < 3; d++) {
            r.need.region.start[d] = (int64_t)(test_random(&random) % (uint64_t)shape[d]);
            r.need.region.size[d] = 1 + (int64_t)(test_random(&random) % (uint64_t)(shape[d] - r.need.region.start[d]));
        }
        fv__block_init(&out, FV_INT32, &r.need.region, labels);
        r.out = &out;
        memset(labels, 0x77, sizeof *labels * (size_t)fv__region_voxels(&r.need.region));
        CHECK_MESSAGE(run_pass(&passes[1], &r, &whole, &error) == FV_OK, "%s", error.message);
        fv_rows rows;
        int64_t i = 0;
        for (fv__rows_begin(&rows, &r.need.region); fv__rows_next(&rows);)
            for (int64_t x = 0; x < r.need.region.size[2]; x++, i++)
                CHECK_INT(labels[i], expected[(rows.position[0] * 22 + rows.position[1]) * 90 + rows.position[2] + x]);
    }
    for (int64_t c = 0; c < n; c++) {
        fv__bytes_release(&h.partial[c]);
        fv__bytes_release(&h.result[c]);
    }
    free(h.partial);
    free(h.result);
    free(labels);
    free(expected);
    test_image_free(&image);
}

TEST(more_labels_than_one_batch_still_reach_their_chunks) {
    test_image image = test_image_new(FV_BOOL, 2, (int64_t[]){ 1500, 1600 });
    for (int64_t i = 0; i < 1500 * 1600; i++) ((uint8_t *)image.data)[i] = (uint8_t)((i % 1600 + i / 1600) & 1);
    test_output out;
    fv_error    error = { 0 };
    CHECK_MESSAGE(test_apply("label", "", (test_image *[]){ &image }, 1, (int64_t[]){ 1000, 300 }, 0x55, &out, &error) == FV_OK,
                  "%s", error.message);
    int32_t next = 0;
    for (int64_t i = 0; i < 1500 * 1600; i++) CHECK_INT(((int32_t *)out.data)[i], ((uint8_t *)image.data)[i] ? ++next : 0);
    test_output_free(&out);
    test_image_free(&image);
}

TEST(bad_input_is_named) {
    test_image image = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 4, 4 }), mask = test_image_new(FV_BOOL, 2, (int64_t[]){ 4, 4 });
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("label", "", (test_image *[]){ &image }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK_MESSAGE(strstr(error.message, "image > 0 makes one"), "%s", error.message);
    CHECK_INT(test_apply("label", "connectivity=3", (test_image *[]){ &mask }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK_MESSAGE(strstr(error.message, "connectivity = 3: at most 2"), "%s", error.message);
    CHECK_INT(test_apply("label", "connectivity=0", (test_image *[]){ &mask }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK_MESSAGE(strstr(error.message, "connectivity = 0"), "%s", error.message);
    test_image_free(&image);
    test_image_free(&mask);
}

TEST(large_images_get_wide_labels) {
    fv_type  in = { .kind = FV_KIND_IMAGE }, out;
    int64_t  connectivity = 1;
    fv_infer infer = { .params = &connectivity, .params_size = sizeof connectivity, .ninputs = 1, .in = { &in }, .out = &out };
    fv_image_type_init(&in.image, FV_BOOL, 3, (int64_t[]){ 2048, 1024, 1024 });
    out = in;
    CHECK(fv__op_find("label")->infer(&infer, NULL) == FV_OK && out.image.dtype == FV_INT64);
    in.image.shape[0] = 2047;
    out = in;
    CHECK(fv__op_find("label")->infer(&infer, NULL) == FV_OK && out.image.dtype == FV_INT32);
}

TEST_MAIN
