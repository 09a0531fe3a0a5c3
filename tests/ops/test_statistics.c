/* Statistics: against brute force in all element types, special values, chunks, instruction sets. */
#include "base/exact_sum.h"
#include "support/apply.h"
#include "support/test.h"
#include <float.h>

static const int64_t shape[] = { 13, 17, 31 };
enum { N = 13 * 17 * 31 };

static long double element(const void *data, fv_dtype dtype, int64_t i) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: return ((const uint8_t *)data)[i];
    case FV_INT8: return ((const int8_t *)data)[i];
    case FV_UINT16: return ((const uint16_t *)data)[i];
    case FV_INT16: return ((const int16_t *)data)[i];
    case FV_UINT32: return ((const uint32_t *)data)[i];
    case FV_INT32: return ((const int32_t *)data)[i];
    case FV_UINT64: return (long double)((const uint64_t *)data)[i];
    case FV_INT64: return ((const int64_t *)data)[i];
    case FV_FLOAT32: return ((const float *)data)[i];
    default: return ((const double *)data)[i];
    }
}

/* Random values; floats also of widely different sizes. */
/* Whole numbers of 64 bits are so small that their sum fits. */
static test_image random_image(fv_dtype dtype, uint64_t seed) {
    test_image image = test_image_new(dtype, 3, shape);
    uint64_t   state = seed;
    test_image_random(&image, seed);
    for (int i = 0; i < N; i++) {
        int power = (int)(test_random(&state) % 60) - 30;
        if (dtype == FV_UINT64) ((uint64_t *)image.data)[i] >>= 16;
        if (dtype == FV_INT64) ((int64_t *)image.data)[i] /= 1 << 16;
        if (dtype == FV_FLOAT32) ((float *)image.data)[i] = ldexpf(((float *)image.data)[i] - 0.5f, i % 3 ? 0 : power);
        if (dtype == FV_FLOAT64) ((double *)image.data)[i] = ldexp(((double *)image.data)[i] - 0.5, i % 3 ? 0 : 4 * power);
    }
    return image;
}

static fv_scalar statistic(const char *op, const char *params, test_image *image) {
    test_output out;
    fv_error    error = { 0 };
    if (test_apply(op, params, &image, 1, NULL, 0, &out, &error) != FV_OK) {
        test_fail(__FILE__, __LINE__, "%s: %s", op, error.message);
        return (fv_scalar){ .dtype = FV_FLOAT64, .real = -12345 };
    }
    fv_scalar scalar = out.scalar;
    if (scalar.dtype != out.type.dtype) test_fail(__FILE__, __LINE__, "%s gives another type than it inferred", op);
    test_output_free(&out);
    return scalar;
}

static double number(const char *op, const char *params, test_image *image) {
    fv_scalar scalar = statistic(op, params, image);
    return fv__scalar_number(&scalar);
}

/* ---------------------------------------------------------------- moments */

TEST(moments_agree_with_brute_force_in_all_types) {
    for (fv_dtype a = 0; a <= FV_FLOAT64; a++) {
        test_image  x = random_image(a, 5);
        long double sum = 0, squares = 0, mean, low = element(x.data, a, 0), high = low;
        int64_t     nonzero = 0;
        for (int i = 0; i < N; i++) {
            long double v = element(x.data, a, i);
            sum += v;
            nonzero += v != 0;
            low = fminl(low, v);
            high = fmaxl(high, v);
        }
        mean = sum / N;
        for (int i = 0; i < N; i++) squares += (element(x.data, a, i) - mean) * (element(x.data, a, i) - mean);
        long double slack = 1e-12;
        if (fabsl(sum) < 0x1p63L || fv_dtype_is_float(a)) CHECK(fabsl(number("sum", "", &x) - sum) <= slack * fabsl(sum));
        CHECK(fabsl(number("mean", "", &x) - mean) <= slack * fabsl(mean));
        CHECK(fabsl(number("var", "", &x) - squares / N) <= slack * squares / N);
        CHECK(fabsl(number("std", "", &x) - sqrtl(squares / N)) <= slack * sqrtl(squares / N));
        CHECK((long double)number("min", "", &x) == (double)low && (long double)number("max", "", &x) == (double)high);
        CHECK(number("count", "", &x) == (double)nonzero);
        test_image_free(&x);
    }
}

TEST(scalar_types_follow_the_image) {
    for (fv_dtype a = 0; a <= FV_FLOAT64; a++) {
        test_image x = random_image(a, 1);
        fv_dtype   whole = fv_dtype_is_float(a) ? FV_FLOAT64 : a == FV_UINT64 ? FV_UINT64 : FV_INT64;
        CHECK_INT(statistic("sum", "", &x).dtype, whole);
        CHECK_INT(statistic("max", "", &x).dtype, a == FV_BOOL ? FV_BOOL : whole);
        CHECK_INT(statistic("mean", "", &x).dtype, FV_FLOAT64);
        CHECK_INT(statistic("count", "", &x).dtype, FV_INT64);
        test_image_free(&x);
    }
}

static bool sum_is_refused(test_image *image) {
    test_output out;
    fv_error    error = { 0 };
    if (test_apply("sum", "", &image, 1, NULL, 0, &out, &error) == FV_OK) {
        test_output_free(&out);
        return false;
    }
    return error.code == FV_ERROR_INPUT && strstr(error.message, fv_dtype_name(image->type.image.dtype)) != NULL;
}

TEST(integer_sums_are_exact_or_refused) {
    test_image x = test_image_new(FV_INT64, 3, shape);
    for (int i = 0; i < N; i++) ((int64_t *)x.data)[i] = i & 1 ? INT64_MAX : -INT64_MAX;
    ((int64_t *)x.data)[N - 1] += 7;
    CHECK_INT(statistic("sum", "", &x).integer, -INT64_MAX + 7);
    for (int i = 0; i < N; i++) ((int64_t *)x.data)[i] = i ? 0 : INT64_MIN;
    CHECK(statistic("sum", "", &x).integer == INT64_MIN);
    for (int i = 0; i < N; i++) ((int64_t *)x.data)[i] = INT64_MIN;
    CHECK(sum_is_refused(&x));
    CHECK(number("mean", "", &x) == (double)INT64_MIN && number("var", "", &x) == 0);
    test_image_free(&x);
    x = test_image_new(FV_UINT64, 3, shape);
    memset(x.data, 0xff, N * 8);
    CHECK(statistic("max", "", &x).natural == UINT64_MAX && sum_is_refused(&x));
    memset(x.data, 0, (N - 1) * 8);
    CHECK(statistic("sum", "", &x).natural == UINT64_MAX);
    test_image_free(&x);
}

TEST(extreme_integers_of_each_type_add_up) {
    static const struct {
        fv_dtype dtype;
        int64_t  low, high;
    } types[] = { { FV_UINT8, 0, UINT8_MAX },         { FV_INT8, INT8_MIN, INT8_MAX }, { FV_UINT16, 0, UINT16_MAX },
                  { FV_INT16, INT16_MIN, INT16_MAX }, { FV_UINT32, 0, UINT32_MAX },    { FV_INT32, INT32_MIN, INT32_MAX } };
    enum { MANY = 300000 };
    for (int t = 0; t < FV_COUNT(types); t++)
        for (int end = 0; end < 2; end++) {
            int64_t    value = end ? types[t].high : types[t].low;
            test_image x = test_image_new(types[t].dtype, 1, (int64_t[]){ MANY });
            for (int64_t i = 0; i < MANY; i++)
                memcpy((char *)x.data + i * (int64_t)fv_dtype_size(types[t].dtype), &value, fv_dtype_size(types[t].dtype));
            CHECK_INT(statistic("sum", "", &x).integer, MANY * value);
            CHECK(number("mean", "", &x) == (double)value && number("var", "", &x) == 0);
            test_image_free(&x);
        }
}

TEST(nan_and_infinity_propagate) {
    for (int t = 0; t < 2; t++) {
        test_image x = random_image(t ? FV_FLOAT64 : FV_FLOAT32, 1);
        for (int special = 0; special < 2; special++) {
            double value = special ? INFINITY : NAN;
            if (t)
                ((double *)x.data)[N / 2] = value;
            else
                ((float *)x.data)[N / 2] = (float)value;
            CHECK(special ? number("sum", "", &x) == INFINITY : isnan(number("sum", "", &x)));
            CHECK(special ? number("mean", "", &x) == INFINITY : isnan(number("mean", "", &x)));
            CHECK(special ? number("max", "", &x) == INFINITY : isnan(number("max", "", &x)));
            CHECK(special ? number("min", "", &x) < 0 : isnan(number("min", "", &x)));
            CHECK(isnan(number("var", "", &x)) && isnan(number("std", "", &x)));
            CHECK(special ? number("quantile", "q=1", &x) == INFINITY : isnan(number("quantile", "q=0.25", &x)));
        }
        test_image_free(&x);
    }
}

TEST(minimum_orders_zeros_and_negatives) {
    test_image x = test_image_new(FV_FLOAT32, 1, (int64_t[]){ 4 });
    memcpy(x.data, (float[]){ 0.0f, -0.0f, 3, 0.0f }, 16);
    CHECK(signbit(number("min", "", &x)) && number("min", "", &x) == 0);
    memcpy(x.data, (float[]){ -1, -3, -2, -INFINITY }, 16);
    CHECK(number("max", "", &x) == -1 && number("min", "", &x) == -INFINITY);
    test_image_free(&x);
}

/* ---------------------------------------------------------------- quantile */

static int by_value(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

TEST(quantiles_agree_with_sorting) {
    static const double parts[] = { 0, 1, 0.5, 0.25, 0.9, 0.333, 0.0001, 0.99999 };
    static double       sorted[N];
    for (fv_dtype a = 0; a <= FV_FLOAT64; a++)
        for (int kind = 0; kind < 2; kind++) {
            test_image x = random_image(a, 9);
            if (kind && a == FV_FLOAT64) /* most values share their upper bits */
                for (int i = 0; i < N; i++) ((double *)x.data)[i] = 1 + ldexp((double)(i * 7919 % 1000), -52);
            if (kind && a == FV_FLOAT32)
                for (int i = 0; i < N; i++) ((float *)x.data)[i] = 1 + ldexpf((float)(i * 7919 % 100), -23);
            for (int i = 0; i < N; i++) sorted[i] = (double)element(x.data, a, i);
            qsort(sorted, N, sizeof *sorted, by_value);
            for (int k = 0; k < FV_COUNT(parts); k++) {
                char   text[40];
                double h = (N - 1) * parts[k], t = h - floor(h), low = sorted[(int)floor(h)],
                       high = sorted[FV_MIN((int)floor(h) + 1, N - 1)];
                double difference = a == FV_FLOAT32 ? (float)((float)high - (float)low) : high - low;
                double expected = t >= 0.5 ? high - difference * (1 - t) : low + difference * t;
                snprintf(text, sizeof text, "q=%.17g", parts[k]);
                CHECK_MESSAGE(number("quantile", text, &x) == expected, "%s quantile %g is %.17g, not %.17g", fv_dtype_name(a),
                              parts[k], number("quantile", text, &x), expected);
            }
            test_image_free(&x);
        }
}

TEST(quantile_rejects_parts_outside_0_to_1) {
    test_image  x = random_image(FV_UINT8, 1);
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("quantile", "q=1.5", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "q = 1.5"));
    test_image_free(&x);
}

/* ---------------------------------------------------------------- histogram */

TEST(histograms_count_every_value_once) {
    for (fv_dtype a = 0; a <= FV_FLOAT64; a++) {
        test_image  x = random_image(a, 4);
        test_output out;
        fv_error    error = { 0 };
        CHECK_INT(test_apply("histogram", "bins=10", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_OK);
        CHECK_INT(out.nrows, 10);
        double  low = number("min", "", &x), high = number("max", "", &x);
        int64_t total = 0;
        CHECK(out.cells[0].real == low && out.cells[28].real == high);
        for (int b = 0; b < 10; b++) {
            double  from = out.cells[3 * b].real, to = out.cells[3 * b + 1].real;
            int64_t count = 0;
            for (int i = 0; i < N; i++) {
                double v = (double)element(x.data, a, i);
                count += v >= from && (b == 9 ? v <= to : v < to);
            }
            CHECK_MESSAGE(out.cells[3 * b + 2].integer == count, "%s bin %d has %lld, not %lld", fv_dtype_name(a), b,
                          (long long)out.cells[3 * b + 2].integer, (long long)count);
            CHECK(b == 0 || out.cells[3 * b].real == out.cells[3 * b - 2].real);
            total += count;
        }
        CHECK_INT(total, N);
        test_output_free(&out);
        test_image_free(&x);
    }
}

TEST(histogram_range_leaves_values_out) {
    test_image  x = test_image_new(FV_FLOAT32, 1, (int64_t[]){ 8 });
    test_output out;
    fv_error    error = { 0 };
    memcpy(x.data, (float[]){ -1, 0, 0.5f, 1, 2, NAN, INFINITY, 0.25f }, 32);
    CHECK_INT(test_apply("histogram", "bins=2; range=[0,1]", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_OK);
    CHECK(out.nrows == 2 && out.cells[2].integer == 2 && out.cells[5].integer == 2);
    test_output_free(&out);
    CHECK_INT(test_apply("histogram", "", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "nan"));
    CHECK_INT(test_apply("histogram", "range=[3,1]", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK_INT(test_apply("histogram", "range=[3]", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    test_image_free(&x);
}

TEST(histogram_of_one_value_widens_its_range) {
    test_image  x = test_image_new(FV_UINT16, 1, (int64_t[]){ 8 });
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("histogram", "bins=4", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_OK);
    CHECK(out.cells[0].real == -0.5 && out.cells[10].real == 0.5 && out.cells[8].integer == 8);
    test_output_free(&out);
    test_image_free(&x);
}

/* ---------------------------------------------------------------- otsu */

/* Between-class variance of a threshold, with thresholds at bin centres. */
static double brute_otsu(const test_image *x, fv_dtype a, double low, double step, int bins) {
    static double counts[1 << 17];
    double        best = -1, threshold = 0;
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < N; i++) {
        int bin = (int)(((double)element(x->data, a, i) - low) / step);
        counts[FV_MIN(bin, bins - 1)]++;
    }
    double offset = fv_dtype_is_float(a) ? 0.5 : 0, weight = 0, sum = 0, all = 0;
    for (int k = 0; k < bins; k++) all += counts[k] * (k + offset);
    for (int k = 0; k + 1 < bins; k++) {
        weight += counts[k];
        sum += counts[k] * (k + offset);
        double d = sum / weight - (all - sum) / (N - weight), variance = weight * (N - weight) * d * d;
        if (variance > best * (1 + 1e-12)) best = variance, threshold = low + (k + offset) * step;
    }
    return threshold;
}

TEST(otsu_agrees_with_brute_force) {
    for (fv_dtype a = FV_UINT8; a <= FV_FLOAT64; a++) {
        test_image x = random_image(a, 4);
        uint64_t   state = 1;
        for (int i = 0; i < N; i++) { /* two bells */
            double v = 0;
            for (int k = 0; k < 6; k++) v += (double)(test_random(&state) >> 40) * 0x1p-24 * 10;
            v = floor((i % 3 ? 20 : 60) + v) - (fv_dtype_is_signed(a) ? 50 : 0);
            int64_t whole = (int64_t)v;
            if (a == FV_FLOAT32)
                ((float *)x.data)[i] = (float)(v / 7);
            else if (a == FV_FLOAT64)
                ((double *)x.data)[i] = v / 7;
            else
                memcpy((char *)x.data + (size_t)i * fv_dtype_size(a), &whole, fv_dtype_size(a));
        }
        double low = number("min", "", &x), high = number("max", "", &x), got = number("otsu", "", &x);
        bool   real = fv_dtype_is_float(a);
        double expected = brute_otsu(&x, a, low, real ? (high - low) / 256 : 1, real ? 256 : (int)(high - low) + 1);
        CHECK_MESSAGE(real ? fabs(got - expected) < 1e-5 : got == expected, "%s: %g, not %g", fv_dtype_name(a), got, expected);
        CHECK_INT(statistic("otsu", "", &x).dtype, real ? FV_FLOAT64 : a == FV_UINT64 ? FV_UINT64 : FV_INT64);
        test_image_free(&x);
    }
}

TEST(otsu_of_one_value_is_that_value) {
    for (fv_dtype a = 0; a <= FV_FLOAT64; a++) {
        test_image x = test_image_new(a, 1, (int64_t[]){ 5 });
        CHECK(number("otsu", "", &x) == 0);
        for (int i = 0; i < 5; i++) {
            int64_t one = 1;
            if (a == FV_FLOAT32)
                ((float *)x.data)[i] = -2.5f;
            else if (a == FV_FLOAT64)
                ((double *)x.data)[i] = -2.5;
            else
                memcpy((char *)x.data + (size_t)i * fv_dtype_size(a), &one, fv_dtype_size(a));
        }
        CHECK(number("otsu", "", &x) == (fv_dtype_is_float(a) ? -2.5 : 1));
        test_image_free(&x);
    }
}

TEST(otsu_names_a_span_that_is_too_wide) {
    test_image  x = test_image_new(FV_INT32, 1, (int64_t[]){ 2 });
    test_output out;
    fv_error    error = { 0 };
    ((int32_t *)x.data)[0] = INT32_MIN;
    ((int32_t *)x.data)[1] = INT32_MAX;
    CHECK_INT(test_apply("otsu", "", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_ERROR_INPUT);
    CHECK(strstr(error.message, "-2147483648") && strstr(error.message, "int32"));
    test_image_free(&x);
}

/* ---------------------------------------------------------------- chunks, instruction sets, complex images */

static const struct {
    const char *op, *params;
} all[] = { { "sum", "" },
            { "mean", "" },
            { "min", "" },
            { "max", "" },
            { "var", "" },
            { "std", "" },
            { "count", "" },
            { "quantile", "q=0.37" },
            { "histogram", "bins=33" },
            { "histogram", "bins=7; range=[0.1,100]" },
            { "otsu", "" } };

TEST(chunks_and_instruction_sets_do_not_change_a_bit) {
    char message[256];
    for (fv_dtype a = 0; a <= FV_FLOAT64; a++)
        for (int k = 0; k < FV_COUNT(all); k++) {
            test_image x = random_image(a, 8);
            if (!strcmp(all[k].op, "otsu") && (fv_dtype_size(a) == 4 || fv_dtype_size(a) == 8) && !fv_dtype_is_float(a))
                for (int i = 0; i < N; i++)
                    memset((char *)x.data + (size_t)i * fv_dtype_size(a) + 2, 0, fv_dtype_size(a) - 2); /* a span of 16 bits */
            CHECK_MESSAGE(test_conforms(all[k].op, all[k].params, (test_image *[]){ &x }, 1, 6, message), "%s of %s: %s",
                          all[k].op, fv_dtype_name(a), message);
            CHECK_MESSAGE(test_same_on_every_isa(all[k].op, all[k].params, (test_image *[]){ &x }, 1, message), "%s of %s: %s",
                          all[k].op, fv_dtype_name(a), message);
            test_image_free(&x);
        }
}

TEST(complex_images_are_refused) {
    test_image  x = test_image_new(FV_COMPLEX64, 1, (int64_t[]){ 5 });
    test_output out;
    for (int k = 0; k < FV_COUNT(all); k++) {
        fv_error error = { 0 };
        CHECK_INT(test_apply(all[k].op, all[k].params, (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
        CHECK(strstr(error.message, "complex64"));
    }
    test_image_free(&x);
}

TEST(images_without_voxels_have_defined_statistics) {
    test_image  x = test_image_new(FV_FLOAT32, 2, (int64_t[]){ 0, 4 });
    test_output out;
    fv_error    error = { 0 };
    CHECK(isnan(number("mean", "", &x)) && isnan(number("std", "", &x)) && number("sum", "", &x) == 0 &&
          number("count", "", &x) == 0);
    CHECK(isnan(number("quantile", "q=0.5", &x)));
    CHECK_INT(test_apply("min", "", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_ERROR_INPUT);
    CHECK_INT(test_apply("otsu", "", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_ERROR_INPUT);
    test_image_free(&x);
}

TEST_MAIN
