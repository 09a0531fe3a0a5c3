/* watershed against Kruskal's algorithm on all edges, on any lattice. */
#include "support/apply.h"
#include "support/test.h"

typedef struct {
    double  high, low;
    int64_t a, b;
} edge;

static int by_order(const void *x, const void *y) {
    const edge *a = x, *b = y;
    if (a->high != b->high) return a->high < b->high ? -1 : 1;
    if (a->low != b->low) return a->low < b->low ? -1 : 1;
    if (a->a != b->a) return a->a < b->a ? -1 : 1;
    return a->b < b->b ? -1 : a->b > b->b;
}

static double value_at(const test_image *image, int64_t i) {
    switch (image->type.image.dtype) {
    case FV_BOOL:
    case FV_UINT8: return ((uint8_t *)image->data)[i];
    case FV_INT8: return ((int8_t *)image->data)[i];
    case FV_UINT16: return ((uint16_t *)image->data)[i];
    case FV_INT16: return ((int16_t *)image->data)[i];
    case FV_UINT32: return ((uint32_t *)image->data)[i];
    case FV_INT32: return ((int32_t *)image->data)[i];
    case FV_UINT64: return (double)((uint64_t *)image->data)[i];
    case FV_INT64: return (double)((int64_t *)image->data)[i];
    case FV_FLOAT32: return (double)((float *)image->data)[i];
    default: return ((double *)image->data)[i];
    }
}

static void set_value(test_image *image, int64_t i, int64_t value) {
    size_t size = fv_dtype_size(image->type.image.dtype);
    if (image->type.image.dtype == FV_FLOAT32)
        ((float *)image->data)[i] = (float)value;
    else if (image->type.image.dtype == FV_FLOAT64)
        ((double *)image->data)[i] = (double)value;
    else
        memcpy((char *)image->data + i * (int64_t)size, &value, size); /* little-endian */
}

/* Neighbours behind a voxel; returns how many. */
static int neighbours(const fv_image_type *type, int64_t at, int connectivity, int64_t *list) {
    int     spatial[FV_MAX_DIMS], n = fv_image_type_spatial(type, spatial), count = 0;
    int64_t position[FV_MAX_DIMS], rest = at;
    for (int d = type->ndim - 1; d >= 0; d--) position[d] = rest % type->shape[d], rest /= type->shape[d];
    for (int code = 0; code < 27; code++) {
        int64_t near[FV_MAX_DIMS], index = 0;
        int     steps = 0, c = code;
        bool    inside = true;
        memcpy(near, position, sizeof near);
        for (int i = 0; i < 3; i++, c /= 3) {
            if (c % 3 == 1) continue;
            steps++;
            if (i >= n)
                inside = false;
            else
                near[spatial[i]] += c % 3 - 1;
        }
        for (int d = 0; d < type->ndim; d++) {
            inside = inside && near[d] >= 0 && near[d] < type->shape[d];
            index = index * type->shape[d] + near[d];
        }
        if (inside && steps && steps <= connectivity && index > at) list[count++] = index;
    }
    return count;
}

static int64_t find(int64_t *parent, int64_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

static int32_t *kruskal(const test_image *image, const int32_t *markers, const uint8_t *mask, int connectivity) {
    int64_t  n = fv_image_type_voxels(&image->type.image), count = 0, list[26], *parent = malloc((size_t)n * sizeof *parent);
    edge    *edges = malloc((size_t)n * 13 * sizeof *edges);
    int32_t *label = malloc((size_t)n * sizeof *label);
    for (int64_t i = 0; i < n; i++) {
        parent[i] = i;
        label[i] = !mask || mask[i] ? markers[i] : 0;
        if (mask && !mask[i]) continue;
        for (int k = neighbours(&image->type.image, i, connectivity, list) - 1; k >= 0; k--) {
            if (mask && !mask[list[k]]) continue;
            double a = value_at(image, i), b = value_at(image, list[k]);
            edges[count++] = (edge){ a > b ? a : b, a > b ? b : a, i, list[k] };
        }
    }
    qsort(edges, (size_t)count, sizeof *edges, by_order);
    for (int64_t e = 0; e < count; e++) {
        int64_t a = find(parent, edges[e].a), b = find(parent, edges[e].b);
        if (a == b || (label[a] && label[b])) continue;
        parent[b] = a;
        if (!label[a]) label[a] = label[b];
    }
    int32_t *result = malloc((size_t)n * sizeof *result);
    for (int64_t i = 0; i < n; i++) result[i] = label[find(parent, i)];
    free(parent);
    free(edges);
    free(label);
    return result;
}

typedef struct {
    int         ndim;
    int64_t     shape[4];
    const char *axes;
    fv_dtype    dtype;
    int         values, connectivity;
    bool        masked;
} setup;

static void check(const setup *s, uint64_t seed, int rounds) {
    test_image image = test_image_new(s->dtype, s->ndim, s->shape), markers = test_image_new(FV_INT32, s->ndim, s->shape);
    test_image mask = test_image_new(FV_BOOL, s->ndim, s->shape), *inputs[] = { &image, &markers, &mask };
    int64_t    n = fv_image_type_voxels(&image.type.image);
    char       params[64], message[256];
    for (int i = 0; i < 3; i++)
        for (int d = 0; s->axes && d < s->ndim; d++) snprintf(inputs[i]->type.image.axis[d], 8, "%c", s->axes[d]);
    for (int64_t i = 0; i < n; i++) {
        set_value(&image, i, (int64_t)(test_random(&seed) % (uint64_t)s->values));
        ((int32_t *)markers.data)[i] = test_random(&seed) % 40 ? 0 : 1 + (int32_t)(test_random(&seed) % 9);
        ((uint8_t *)mask.data)[i] = test_random(&seed) % 100 < 75;
    }
    test_output out;
    fv_error    error = { 0 };
    snprintf(params, sizeof params, "connectivity=%d", s->connectivity);
    int given = s->masked ? 3 : 2;
    CHECK_MESSAGE(test_apply("watershed", params, inputs, given, NULL, 0, &out, &error) == FV_OK, "%s", error.message);
    int32_t *expected = kruskal(&image, markers.data, s->masked ? mask.data : NULL, s->connectivity);
    for (int64_t i = 0; i < n; i++)
        CHECK_MESSAGE(((int32_t *)out.data)[i] == expected[i], "%s, %d values: voxel %lld is %d, not %d", params, s->values,
                      (long long)i, ((int32_t *)out.data)[i], expected[i]);
    CHECK_MESSAGE(test_conforms("watershed", params, inputs, given, rounds, message), "%s: %s", params, message);
    snprintf(params, sizeof params, "connectivity=%d; line=true", s->connectivity);
    CHECK_MESSAGE(test_conforms("watershed", params, inputs, given, rounds / 3, message), "%s: %s", params, message);
    free(expected);
    test_output_free(&out);
    for (int i = 0; i < 3; i++) test_image_free(inputs[i]);
}

TEST(volumes_equal_kruskal_on_any_lattice) {
    for (int connectivity = 1; connectivity <= 3; connectivity++)
        for (int values = 2; values <= 200; values *= 10)
            for (int masked = 0; masked < 2; masked++)
                check(&(setup){ 3, { 7, 9, 11 }, NULL, FV_UINT8, values, connectivity, masked }, 3, 12);
}

TEST(planes_and_lines_equal_kruskal) {
    for (int connectivity = 1; connectivity <= 2; connectivity++)
        for (int values = 1; values <= 100; values *= 10)
            check(&(setup){ 2, { 33, 70 }, NULL, FV_UINT8, values, connectivity, values == 10 }, 5, 12);
    check(&(setup){ 2, { 1, 65 }, NULL, FV_UINT8, 9, 1, true }, 6, 6);
    check(&(setup){ 2, { 65, 1 }, NULL, FV_UINT8, 9, 2, false }, 6, 6);
    check(&(setup){ 1, { 200 }, NULL, FV_UINT8, 9, 1, false }, 6, 12);
    check(&(setup){ 1, { 1 }, NULL, FV_UINT8, 9, 1, false }, 6, 1);
}

TEST(every_type_equals_kruskal) {
    static const fv_dtype dtypes[] = { FV_UINT8, FV_INT8,   FV_UINT16, FV_INT16,   FV_UINT32,
                                       FV_INT32, FV_UINT64, FV_INT64,  FV_FLOAT32, FV_FLOAT64 };
    for (int i = 0; i < FV_COUNT(dtypes); i++) check(&(setup){ 2, { 21, 30 }, NULL, dtypes[i], 120, 2, true }, 8, 6);
}

TEST(other_axes_are_independent) {
    check(&(setup){ 3, { 12, 13, 3 }, "yxc", FV_UINT8, 10, 2, true }, 9, 10);
    check(&(setup){ 4, { 3, 5, 6, 7 }, "tzyx", FV_UINT8, 10, 3, false }, 9, 10);
    check(&(setup){ 4, { 5, 3, 6, 7 }, "zcyx", FV_UINT8, 10, 1, true }, 9, 10);
}

/* Values that differ in sign and at the ends of their types; nan is higher than all. */
TEST(values_are_ordered_as_numbers) {
    static const float relief[] = { -1, -3, 5, -INFINITY, -0.0f, 0.0f, NAN, INFINITY, 2, 1 };
    test_image         image = test_image_new(FV_FLOAT32, 1, (int64_t[]){ 10 });
    test_image         markers = test_image_new(FV_UINT8, 1, (int64_t[]){ 10 });
    test_output        out;
    fv_error           error = { 0 };
    memcpy(image.data, relief, sizeof relief);
    ((uint8_t *)markers.data)[0] = 7, ((uint8_t *)markers.data)[5] = 8, ((uint8_t *)markers.data)[9] = 9;
    CHECK(test_apply("watershed", "", (test_image *[]){ &image, &markers }, 2, NULL, 0, &out, &error) == FV_OK);
    CHECK_INT(out.type.image.dtype, FV_UINT8);
    CHECK(!memcmp(out.data, (uint8_t[]){ 7, 7, 8, 8, 8, 8, 8, 9, 9, 9 }, 10));
    test_output_free(&out);
    test_image_free(&image);
    test_image_free(&markers);
}

TEST(a_line_separates_all_basins_and_spares_markers) {
    test_image  image = test_image_new(FV_UINT8, 2, (int64_t[]){ 40, 50 });
    test_image  markers = test_image_new(FV_INT32, 2, (int64_t[]){ 40, 50 });
    test_output out;
    fv_error    error = { 0 };
    int64_t     list[26];
    uint64_t    seed = 4;
    test_image_random(&image, 3);
    for (int64_t i = 0; i < 2000; i++) ((int32_t *)markers.data)[i] = test_random(&seed) % 60 ? 0 : (int32_t)i + 1;
    CHECK(test_apply("watershed", "connectivity=2; line=true", (test_image *[]){ &image, &markers }, 2, NULL, 0, &out, &error) ==
          FV_OK);
    int32_t *label = out.data, *mark = markers.data;
    for (int64_t i = 0; i < 2000; i++) {
        if (mark[i]) CHECK_INT(label[i], mark[i]);
        for (int k = neighbours(&image.type.image, i, 2, list) - 1; k >= 0; k--)
            CHECK(!label[i] || !label[list[k]] || label[i] == label[list[k]] || (mark[i] && mark[list[k]]));
    }
    test_output_free(&out);
    test_image_free(&image);
    test_image_free(&markers);
}

TEST(bad_input_is_named) {
    int64_t     shape[] = { 4, 4 }, other[] = { 4, 5 };
    test_image  image = test_image_new(FV_FLOAT32, 2, shape), markers = test_image_new(FV_INT32, 2, shape);
    test_image  larger = test_image_new(FV_INT32, 2, other);
    test_output out;
    fv_error    error = { 0 };
    struct {
        const char *params;
        test_image *inputs[3];
        int         given;
        const char *says;
    } cases[] = {
        { "", { &image, &larger }, 2, "markers has another shape" },
        { "", { &image, &image }, 2, "markers is float32" },
        { "", { &image, &markers, &larger }, 3, "mask has another shape" },
        { "", { &image, &markers, &markers }, 3, "mask is int32" },
        { "connectivity=3", { &image, &markers }, 2, "connectivity = 3: at most 2" },
        { "connectivity=0", { &image, &markers }, 2, "connectivity" },
    };
    for (int i = 0; i < FV_COUNT(cases); i++) {
        fv_status status = test_apply("watershed", cases[i].params, cases[i].inputs, cases[i].given, NULL, 0, &out, &error);
        CHECK_INT(status, FV_ERROR_USAGE);
        CHECK_MESSAGE(strstr(error.message, cases[i].says), "%s", error.message);
    }
    test_image_free(&image);
    test_image_free(&markers);
    test_image_free(&larger);
}

TEST_MAIN
