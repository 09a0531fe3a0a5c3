/* measure against straightforward sums, on any lattice. */
#include "support/apply.h"
#include "support/test.h"

typedef struct {
    int64_t     label, voxels, sum[FV_MAX_DIMS], low[FV_MAX_DIMS], high[FV_MAX_DIMS];
    long double total, squares, least, most;
} expected;

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
    case FV_FLOAT32: return ((float *)image->data)[i];
    default: return ((double *)image->data)[i];
    }
}

static expected measure_one(const test_image *labels, const test_image *intensity, int64_t label) {
    const fv_image_type *type = &labels->type.image;
    expected             e = { .label = label, .least = INFINITY, .most = -INFINITY };
    for (int d = 0; d < type->ndim; d++) e.low[d] = INT64_MAX, e.high[d] = -1;
    for (int64_t i = 0; i < fv_image_type_voxels(type); i++) {
        if ((int64_t)value_at(labels, i) != label) continue;
        e.voxels++;
        int64_t rest = i;
        for (int d = type->ndim - 1; d >= 0; rest /= type->shape[d--]) {
            int64_t p = rest % type->shape[d];
            e.sum[d] += p;
            e.low[d] = FV_MIN(e.low[d], p);
            e.high[d] = FV_MAX(e.high[d], p);
        }
        if (!intensity) continue;
        long double v = value_at(intensity, i);
        e.total += v;
        e.squares += v * v;
        e.least = v < e.least ? v : e.least;
        e.most = v > e.most ? v : e.most;
    }
    return e;
}

static int column(const fv_table_type *table, const char *name) {
    for (int i = 0; i < table->ncolumns; i++)
        if (!strcmp(table->column[i].name, name)) return i;
    test_fail(__FILE__, __LINE__, "no column %s", name);
    return 0;
}

static double number(const test_output *out, int64_t row, const char *name) {
    const fv_table_type *table = out->type.table;
    int                  c = column(table, name);
    fv_cell              cell = out->cells[row * table->ncolumns + c];
    return table->column[c].kind == FV_COLUMN_INTEGER ? (double)cell.integer : cell.real;
}

static bool near(double a, double b, double scale) { return fabs(a - b) <= 1e-12 * scale; }

static void check_row(const test_output *out, int64_t row, const expected *e, const fv_image_type *type, bool intensity) {
    char name[40];
    CHECK_INT((int64_t)number(out, row, "voxels"), e->voxels);
    for (int d = 0; d < type->ndim; d++) {
        snprintf(name, sizeof name, "centroid_%s", type->axis[d]);
        CHECK_MESSAGE(number(out, row, name) == (double)e->sum[d] / (double)e->voxels, "%s of %lld", name, (long long)e->label);
        snprintf(name, sizeof name, "bbox_min_%s", type->axis[d]);
        CHECK_INT((int64_t)number(out, row, name), e->low[d]);
        snprintf(name, sizeof name, "bbox_max_%s", type->axis[d]);
        CHECK_INT((int64_t)number(out, row, name), e->high[d] + 1);
    }
    if (!intensity) return;
    long double mean = e->total / e->voxels, variance = e->squares / e->voxels - mean * mean;
    double      scale = fabs((double)e->most) + fabs((double)e->least);
    CHECK_MESSAGE(near(number(out, row, "mean"), (double)mean, scale), "mean of %lld is %.17g, not %.17Lg", (long long)e->label,
                  number(out, row, "mean"), mean);
    CHECK(number(out, row, "min") == (double)e->least && number(out, row, "max") == (double)e->most);
    double deviation = number(out, row, "std");
    CHECK_MESSAGE(near(deviation * deviation, (double)variance, scale * scale), "std of %lld is %.17g", (long long)e->label,
                  deviation);
}

static void check(test_image *labels, test_image *intensity, int rounds) {
    test_image *images[] = { labels, intensity };
    test_output out;
    fv_error    error = { 0 };
    char        message[256];
    int         n = intensity ? 2 : 1;
    CHECK_MESSAGE(test_apply("measure", "", images, n, NULL, 0, &out, &error) == FV_OK, "%s", error.message);
    int64_t voxels = 0;
    for (int64_t row = 0; row < out.nrows; row++) {
        int64_t  label = (int64_t)number(&out, row, "label");
        expected e = measure_one(labels, intensity, label);
        CHECK(label != 0 && e.voxels > 0 && (!row || label > (int64_t)number(&out, row - 1, "label")));
        check_row(&out, row, &e, &labels->type.image, intensity != NULL);
        voxels += e.voxels;
    }
    for (int64_t i = 0; i < fv_image_type_voxels(&labels->type.image); i++) voxels -= value_at(labels, i) != 0;
    CHECK_INT(voxels, 0);
    CHECK_MESSAGE(test_conforms("measure", "", images, n, rounds, message), "%s", message);
    test_output_free(&out);
}

/* Stretches of random labels below `count`, a third of them background. */
static void fill(test_image *labels, uint64_t seed, int64_t count, int64_t factor) {
    int64_t n = fv_image_type_voxels(&labels->type.image), left = 0, label = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!left--) {
            left = (int64_t)(test_random(&seed) % 6);
            label = test_random(&seed) % 3 ? (int64_t)(test_random(&seed) % (uint64_t)count) * factor : 0;
        }
        switch (fv_dtype_size(labels->type.image.dtype)) {
        case 1: ((uint8_t *)labels->data)[i] = (uint8_t)label; break;
        case 2: ((uint16_t *)labels->data)[i] = (uint16_t)label; break;
        case 4: ((uint32_t *)labels->data)[i] = (uint32_t)label; break;
        default: ((uint64_t *)labels->data)[i] = (uint64_t)label; break;
        }
    }
}

TEST(shapes_and_places_equal_plain_sums) {
    test_image labels = test_image_new(FV_INT32, 3, (int64_t[]){ 7, 11, 40 });
    fill(&labels, 1, 30, 1);
    check(&labels, NULL, 20);
    fill(&labels, 2, 3000, 1);
    check(&labels, NULL, 10);
    test_image_free(&labels);
    test_image line = test_image_new(FV_INT32, 1, (int64_t[]){ 300 });
    fill(&line, 3, 20, 1);
    check(&line, NULL, 10);
    test_image_free(&line);
}

TEST(labels_of_every_type_and_sign) {
    static const fv_dtype dtypes[] = {
        FV_BOOL, FV_UINT8, FV_INT8, FV_UINT16, FV_INT16, FV_UINT32, FV_INT32, FV_UINT64, FV_INT64
    };
    for (int i = 0; i < FV_COUNT(dtypes); i++) {
        test_image labels = test_image_new(dtypes[i], 2, (int64_t[]){ 12, 50 });
        bool       sign = fv_dtype_is_signed(dtypes[i]);
        fill(&labels, 4, dtypes[i] == FV_BOOL ? 2 : 20, sign ? -3 : 5 - 4 * (dtypes[i] == FV_BOOL));
        check(&labels, NULL, 5);
        test_image_free(&labels);
    }
}

TEST(intensities_of_every_type) {
    static const fv_dtype dtypes[] = { FV_BOOL,  FV_UINT8,  FV_INT8,  FV_UINT16,  FV_INT16,  FV_UINT32,
                                       FV_INT32, FV_UINT64, FV_INT64, FV_FLOAT32, FV_FLOAT64 };
    for (int i = 0; i < FV_COUNT(dtypes); i++) {
        test_image labels = test_image_new(FV_INT32, 3, (int64_t[]){ 6, 30, 50 }),
                   intensity = test_image_new(dtypes[i], 3, (int64_t[]){ 6, 30, 50 });
        test_image_random(&intensity, 9);
        fill(&labels, 5, 40, 1); /* small objects, whose values travel themselves */
        check(&labels, &intensity, 6);
        fill(&labels, 6, 3, 1); /* large ones, whose sums do */
        check(&labels, &intensity, 6);
        test_image_free(&labels);
        test_image_free(&intensity);
    }
}

TEST(axes_other_than_space_are_measured_by_name) {
    test_image labels = test_image_new(FV_INT32, 4, (int64_t[]){ 2, 5, 6, 7 });
    fill(&labels, 7, 12, 1);
    check(&labels, NULL, 10);
    test_image_free(&labels);
}

TEST(more_labels_than_the_table_holds_are_merged) {
    int64_t    n = 60000;
    test_image labels = test_image_new(FV_INT32, 2, (int64_t[]){ 2, n });
    test_image intensity = test_image_new(FV_FLOAT64, 2, (int64_t[]){ 2, n });
    for (int64_t i = 0; i < 2 * n; i++) {
        ((int32_t *)labels.data)[i] = (int32_t)(1 + i % n * 7 % n);
        ((double *)intensity.data)[i] = (double)i;
    }
    test_output out;
    fv_error    error = { 0 };
    CHECK_MESSAGE(test_apply("measure", "", (test_image *[]){ &labels, &intensity }, 2, NULL, 0, &out, &error) == FV_OK, "%s",
                  error.message);
    CHECK_INT(out.nrows, n);
    for (int64_t row = 0; row < n; row++) {
        CHECK_INT((int64_t)number(&out, row, "label"), row + 1);
        CHECK_INT((int64_t)number(&out, row, "voxels"), 2);
        CHECK(number(&out, row, "std") == (double)n / 2);
    }
    test_output_free(&out);
    test_image_free(&labels);
    test_image_free(&intensity);
}

TEST(float_sums_are_exact_whatever_cancels) {
    test_image labels = test_image_new(FV_UINT8, 1, (int64_t[]){ 1000 }),
               intensity = test_image_new(FV_FLOAT64, 1, (int64_t[]){ 1000 });
    double *v = intensity.data;
    memset(labels.data, 1, 1000);
    for (int i = 0; i < 999; i++) v[i] = i % 3 == 0 ? 1e300 : i % 3 == 1 ? 1 : -1e300;
    v[999] = 667;
    test_output out;
    fv_error    error = { 0 };
    char        message[256];
    CHECK(test_apply("measure", "", (test_image *[]){ &labels, &intensity }, 2, NULL, 0, &out, &error) == FV_OK);
    CHECK(number(&out, 0, "mean") == 1 && number(&out, 0, "min") == -1e300 && number(&out, 0, "max") == 1e300);
    CHECK_MESSAGE(test_conforms("measure", "", (test_image *[]){ &labels, &intensity }, 2, 10, message), "%s", message);
    test_output_free(&out);
    v[500] = NAN;
    CHECK(test_apply("measure", "", (test_image *[]){ &labels, &intensity }, 2, NULL, 0, &out, &error) == FV_OK);
    CHECK(isnan(number(&out, 0, "mean")) && isnan(number(&out, 0, "min")) && isnan(number(&out, 0, "std")));
    test_output_free(&out);
    for (int i = 0; i < 1000; i++) v[i] = 0.1;
    CHECK(test_apply("measure", "", (test_image *[]){ &labels, &intensity }, 2, NULL, 0, &out, &error) == FV_OK);
    CHECK(number(&out, 0, "mean") == 0.1 && number(&out, 0, "std") == 0);
    test_output_free(&out);
    test_image_free(&labels);
    test_image_free(&intensity);
}

TEST(volume_follows_the_spacing_of_space) {
    test_image labels = test_image_new(FV_UINT8, 4, (int64_t[]){ 2, 2, 2, 2 });
    memset(labels.data, 3, 16);
    for (int d = 0; d < 4; d++) labels.type.image.spacing[d] = 0.5 + d;
    test_output out;
    fv_error    error = { 0 };
    CHECK(test_apply("measure", "", (test_image *[]){ &labels }, 1, NULL, 0, &out, &error) == FV_OK);
    CHECK(out.nrows == 1 && number(&out, 0, "volume") == 16 * 1.5 * 2.5 * 3.5);
    CHECK_TEXT(out.type.table->column[3].name, "centroid_c");
    test_output_free(&out);
    test_image_free(&labels);
}

TEST(background_only_gives_no_rows) {
    test_image labels = test_image_new(FV_INT32, 3, (int64_t[]){ 3, 4, 5 });
    check(&labels, NULL, 3);
    test_image_free(&labels);
}

static void rejects(test_image *labels, test_image *intensity, const char *word) {
    test_output out;
    fv_error    error = { 0 };
    fv_status   status = test_apply("measure", "", (test_image *[]){ labels, intensity }, 2, NULL, 0, &out, &error);
    CHECK_MESSAGE(status == FV_ERROR_USAGE || status == FV_ERROR_INPUT, "accepted");
    CHECK_MESSAGE(strstr(error.message, word), "message is: %s", error.message);
}

TEST(bad_input_is_named) {
    test_image real = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 4, 4 }),
               labels = test_image_new(FV_INT32, 2, (int64_t[]){ 4, 4 });
    test_image other = test_image_new(FV_UINT8, 2, (int64_t[]){ 4, 5 }),
               complex = test_image_new(FV_COMPLEX64, 2, (int64_t[]){ 4, 4 });
    test_image huge = test_image_new(FV_UINT64, 2, (int64_t[]){ 4, 4 });
    rejects(&real, NULL, "labels is float32");
    rejects(&labels, &other, "x has 4 voxels in labels and 5 in intensity");
    rejects(&labels, &complex, "must be real");
    *(uint64_t *)huge.data = UINT64_MAX;
    rejects(&huge, NULL, "below 2^63");
    test_image_free(&real);
    test_image_free(&labels);
    test_image_free(&other);
    test_image_free(&complex);
    test_image_free(&huge);
}

/* What the planner is told must hold even for the worst labels. */
TEST(partials_keep_their_bound) {
    static const fv_dtype dtypes[] = { FV_UINT8, FV_INT32, FV_UINT64, FV_FLOAT32, FV_FLOAT64 };
    const fv_pass        *pass = fv__op_find("measure")->passes;
    static const struct { const char *properties, *per; } params[] = { { "", "" }, { "all", "" } };
    static const fv_type absent = { .kind = FV_KIND_NONE };
    for (int k = 0; k < FV_COUNT(dtypes) * 6; k++) {
        int64_t    shape[] = { 5, 300, 40 }, n = 5 * 300 * 40;
        test_image labels = test_image_new(FV_INT64, 3, shape), intensity = test_image_new(dtypes[k / 6], 3, shape);
        uint64_t   state = 77;
        for (int64_t i = 0; i < n; i++) /* every voxel, pairs, or a few hundred labels spread over 63 bits */
            ((int64_t *)labels.data)[i] = 1 + (int64_t)((uint64_t)(k % 3 == 0   ? i
                                                                   : k % 3 == 1 ? i % (n / 2)
                                                                                : i % 400) *
                                                            0x5851f42d4c957f2du >>
                                                        1);
        test_image_random(&intensity, test_random(&state));
        fv_region whole = fv__region_whole(&labels.type.image);
        fv_block  blocks[2];
        fv_bytes  partial = { 0 };
        fv_error  error = { 0 };
        fv__block_init(&blocks[0], FV_INT64, &whole, labels.data);
        fv__block_init(&blocks[1], dtypes[k / 6], &whole, intensity.data);
        fv_run r = { .need = { .params = &params[k / 3 % 2],
                               .ninputs = 5,
                               .in = { &labels.type, &intensity.type, &absent, &absent, &absent },
                               .region = whole },
                     .in = { &blocks[0], &blocks[1] },
                     .partial = &partial };
        size_t size = pass->scratch(&r.need);
        r.scratch = fv__buffer_new(size);
        CHECK(pass->run(&r, &error) == FV_OK);
        CHECK_MESSAGE(partial.size <= pass->bound(&r.need), "case %d: %zu bytes, %zu promised", k, partial.size,
                      pass->bound(&r.need));
        fv__buffer_free(r.scratch, size);
        fv__bytes_release(&partial);
        test_image_free(&labels);
        test_image_free(&intensity);
    }
}

TEST_MAIN
