/* Point-wise operators: types, values in all element types against plain C, special values, each instruction set. */
#include "support/apply.h"
#include "support/test.h"
#include <float.h>

enum { N = 257 };
static const int64_t shape[] = { N };

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

static test_image random_image(fv_dtype dtype, uint64_t seed) {
    test_image image = test_image_new(dtype, 1, shape);
    test_image_random(&image, seed);
    int64_t n = N;
    if (dtype == FV_FLOAT32)
        for (int64_t i = 0; i < n; i++) ((float *)image.data)[i] = (((float *)image.data)[i] - 0.5f) * 1000;
    if (dtype == FV_FLOAT64)
        for (int64_t i = 0; i < n; i++) ((double *)image.data)[i] = (((double *)image.data)[i] - 0.5) * 1000;
    return image;
}

static test_image whole_scalar(int64_t value) {
    return (test_image){ .type = { .kind = FV_KIND_SCALAR, .dtype = FV_INT64 },
                         .scalar = { .dtype = FV_INT64, .integer = value } };
}

static bool same(long double a, long double b) { return a == b || (a != a && b != b); }

/* ---------------------------------------------------------------- arithmetic */

static float  add32(float x, float y) { return x + y; }
static double add64(double x, double y) { return x + y; }
static float  subtract32(float x, float y) { return x - y; }
static double subtract64(double x, double y) { return x - y; }
static float  multiply32(float x, float y) { return x * y; }
static double multiply64(double x, double y) { return x * y; }
static float  divide32(float x, float y) { return x / y; }
static double divide64(double x, double y) { return x / y; }
static float  remainder32(float x, float y) { return y == 0 ? NAN : (float)(x - y * floorl((long double)x / y)); }
static double remainder64(double x, double y) { return y == 0 ? NAN : (double)(x - y * floorl((long double)x / y)); }

static bool near(long double a, long double b, long double slack) { return same(a, b) || fabsl(a - b) <= slack; }

TEST(arithmetic_promotes_and_computes_in_all_types) {
    static const struct {
        const char *name;
        float (*f32)(float, float);
        double (*f64)(double, double);
        double slack;
    } ops[] = {
        { "add", add32, add64, 0 },
        { "subtract", subtract32, subtract64, 0 },
        { "multiply", multiply32, multiply64, 0 },
        { "divide", divide32, divide64, 0 },
        { "remainder", remainder32, remainder64, 1e-6 },
    };
    for (int o = 0; o < FV_COUNT(ops); o++)
        for (fv_dtype a = 0; a <= FV_FLOAT64; a++)
            for (fv_dtype b = 0; b <= FV_FLOAT64; b++) {
                if (ops[o].slack && (fv_dtype_size(a) == 8 || fv_dtype_size(b) == 8)) continue; /* reference too coarse */
                test_image  x = random_image(a, 1), y = random_image(b, 2);
                test_output out;
                fv_error    error = { 0 };
                CHECK_INT(test_apply(ops[o].name, "", (test_image *[]){ &x, &y }, 2, NULL, 0, &out, &error), FV_OK);
                bool small = (fv_dtype_size(a) <= 2 || a == FV_FLOAT32) && (fv_dtype_size(b) <= 2 || b == FV_FLOAT32);
                CHECK_INT(out.type.image.dtype, small ? FV_FLOAT32 : FV_FLOAT64);
                for (int64_t i = 0; i < N; i++) {
                    long double p = element(x.data, a, i), q = element(y.data, b, i),
                                got = element(out.data, out.type.image.dtype, i);
                    long double expected = small ? ops[o].f32((float)p, (float)q) : ops[o].f64((double)p, (double)q);
                    CHECK_MESSAGE(near(got, expected, ops[o].slack * fabsl(q)), "%s of %s %Lg and %s %Lg is %Lg, not %Lg",
                                  ops[o].name, fv_dtype_name(a), p, fv_dtype_name(b), q, got, expected);
                }
                test_output_free(&out);
                test_image_free(&x);
                test_image_free(&y);
            }
}

/* One operator on one pair of float64 numbers, as images. */
static double on_doubles(const char *op, double a, double b, int ninputs) {
    test_image  x = test_image_new(FV_FLOAT64, 1, (int64_t[]){ 1 }), y = test_image_new(FV_FLOAT64, 1, (int64_t[]){ 1 });
    test_output out;
    fv_error    error = { 0 };
    *(double *)x.data = a;
    *(double *)y.data = b;
    if (test_apply(op, "", (test_image *[]){ &x, &y }, ninputs, NULL, 0, &out, &error) != FV_OK) return 12345;
    double result = out.type.image.dtype == FV_BOOL ? *(uint8_t *)out.data : *(double *)out.data;
    test_output_free(&out);
    test_image_free(&x);
    test_image_free(&y);
    return result;
}

TEST(remainder_has_the_sign_of_the_divisor) {
    CHECK(on_doubles("remainder", 7, 3, 2) == 1 && on_doubles("remainder", -7, 3, 2) == 2);
    CHECK(on_doubles("remainder", 7, -3, 2) == -2 && on_doubles("remainder", -7, -3, 2) == -1);
    CHECK(isnan(on_doubles("remainder", 7, 0, 2)));
    CHECK(signbit(on_doubles("remainder", 6, -3, 2)));
}

TEST(division_by_zero_is_ieee) {
    CHECK(on_doubles("divide", 1, 0, 2) == INFINITY && on_doubles("divide", -1, 0, 2) == -INFINITY &&
          isnan(on_doubles("divide", 0, 0, 2)));
    CHECK(isnan(on_doubles("sqrt", -1, 0, 1)) && on_doubles("log", 0, 0, 1) == -INFINITY && isnan(on_doubles("log", -1, 0, 1)));
    CHECK(on_doubles("power", 0, -1, 2) == INFINITY && isnan(on_doubles("power", -8, 1.0 / 3, 2)) &&
          on_doubles("power", NAN, 0, 2) == 1);
}

TEST(numbers_take_the_type_of_the_image) {
    test_image  x = random_image(FV_UINT8, 1), half = test_scalar(0.1);
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("multiply", "", (test_image *[]){ &half, &x }, 2, NULL, 0, &out, &error), FV_OK);
    CHECK_INT(out.type.image.dtype, FV_FLOAT32);
    for (int i = 0; i < N; i++) CHECK(((float *)out.data)[i] == 0.1f * ((uint8_t *)x.data)[i]);
    test_output_free(&out);
    test_image_free(&x);
}

TEST(metadata_comes_from_the_first_image) {
    test_image  x = random_image(FV_UINT8, 1), y = random_image(FV_UINT8, 1), two = test_scalar(2);
    test_output out;
    fv_error    error = { 0 };
    x.type.image.spacing[0] = 0.25;
    x.type.image.has_affine = true;
    CHECK_INT(test_apply("add", "", (test_image *[]){ &two, &x }, 2, NULL, 0, &out, &error), FV_OK);
    CHECK(out.type.image.spacing[0] == 0.25 && out.type.image.has_affine);
    test_output_free(&out);
    CHECK_INT(test_apply("less", "", (test_image *[]){ &x, &y }, 2, NULL, 0, &out, &error), FV_OK);
    CHECK(out.type.image.spacing[0] == 0.25);
    test_output_free(&out);
    test_image_free(&x);
    test_image_free(&y);
}

TEST(different_shapes_are_both_named) {
    test_image  x = test_image_new(FV_UINT8, 2, (int64_t[]){ 5, 7 }), y = test_image_new(FV_UINT8, 2, (int64_t[]){ 7, 5 });
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("add", "", (test_image *[]){ &x, &y }, 2, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "5 x 7") && strstr(error.message, "7 x 5"));
    x.type.image.dtype = FV_COMPLEX64;
    CHECK_INT(test_apply("abs", "", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "complex64"));
    test_image_free(&x);
    test_image_free(&y);
}

/* ---------------------------------------------------------------- comparison */

static bool compare(const char *name, long double x, long double y) {
    return !strcmp(name, "equal")        ? x == y
           : !strcmp(name, "not_equal")  ? x != y
           : !strcmp(name, "less")       ? x < y
           : !strcmp(name, "less_equal") ? x <= y
           : !strcmp(name, "greater")    ? x > y
                                         : x >= y;
}

static const char *const comparisons[] = { "equal", "not_equal", "less", "less_equal", "greater", "greater_equal" };

TEST(comparisons_are_exact_in_all_types) {
    for (int o = 0; o < FV_COUNT(comparisons); o++)
        for (fv_dtype a = 0; a <= FV_FLOAT64; a++)
            for (fv_dtype b = 0; b <= FV_FLOAT64; b++) {
                test_image  x = random_image(a, 1), y = random_image(b, 2);
                test_output out;
                fv_error    error = { 0 };
                if (a == b) memcpy(y.data, x.data, (N / 2) * fv_dtype_size(a));
                CHECK_INT(test_apply(comparisons[o], "", (test_image *[]){ &x, &y }, 2, NULL, 0, &out, &error), FV_OK);
                CHECK_INT(out.type.image.dtype, FV_BOOL);
                for (int64_t i = 0; i < N; i++) {
                    long double p = element(x.data, a, i), q = element(y.data, b, i);
                    CHECK_MESSAGE(((uint8_t *)out.data)[i] == compare(comparisons[o], p, q), "%s of %s %Lg and %s %Lg",
                                  comparisons[o], fv_dtype_name(a), p, fv_dtype_name(b), q);
                }
                test_output_free(&out);
                test_image_free(&x);
                test_image_free(&y);
            }
}

TEST(integers_compare_exactly_with_fractions_and_large_numbers) {
    static const double numbers[] = { 0.5,          3.7,   3.0000000001, -0.5, 254.99999999999997, 65535.000000001,
                                      2147483647.5, 1e300, -1e300,       3 };
    for (int o = 0; o < FV_COUNT(comparisons); o++)
        for (fv_dtype a = 0; a <= FV_INT32; a++)
            for (int k = 0; k < FV_COUNT(numbers); k++) {
                test_image  x = random_image(a, 1), y = test_scalar(numbers[k]);
                test_output out;
                fv_error    error = { 0 };
                CHECK_INT(test_apply(comparisons[o], "", (test_image *[]){ &x, &y }, 2, NULL, 0, &out, &error), FV_OK);
                for (int64_t i = 0; i < N; i++)
                    CHECK(((uint8_t *)out.data)[i] == compare(comparisons[o], element(x.data, a, i), numbers[k]));
                test_output_free(&out);
                test_image_free(&x);
            }
}

TEST(wide_integers_compare_exactly_with_whole_numbers) {
    static const int64_t numbers[] = { 0, -1, 1, ((int64_t)1 << 53) + 1, (int64_t)1 << 53, INT64_MIN, 5000000000 };
    for (int o = 0; o < FV_COUNT(comparisons); o++)
        for (int k = 0; k < FV_COUNT(numbers); k++) {
            test_image x = test_image_new(FV_INT64, 1, shape), z = test_image_new(FV_UINT64, 1, shape),
                       y = whole_scalar(numbers[k]);
            test_output out, out2;
            fv_error    error = { 0 };
            for (int i = 0; i < N; i++) {
                ((int64_t *)x.data)[i] = ((int64_t)1 << 53) + i - 128;
                ((uint64_t *)z.data)[i] = i < 200 ? (uint64_t)i : UINT64_MAX - (uint64_t)i;
            }
            CHECK_INT(test_apply(comparisons[o], "", (test_image *[]){ &x, &y }, 2, NULL, 0, &out, &error), FV_OK);
            CHECK_INT(test_apply(comparisons[o], "", (test_image *[]){ &z, &y }, 2, NULL, 0, &out2, &error), FV_OK);
            for (int i = 0; i < N; i++) {
                CHECK(((uint8_t *)out.data)[i] == compare(comparisons[o], ((int64_t *)x.data)[i], numbers[k]));
                CHECK(((uint8_t *)out2.data)[i] == compare(comparisons[o], (long double)((uint64_t *)z.data)[i], numbers[k]));
            }
            test_output_free(&out);
            test_output_free(&out2);
            test_image_free(&x);
            test_image_free(&z);
        }
}

TEST(nan_compares_unequal_to_everything) {
    CHECK(on_doubles("equal", NAN, NAN, 2) == 0 && on_doubles("not_equal", NAN, NAN, 2) == 1 &&
          on_doubles("less_equal", NAN, 1, 2) == 0);
}

/* ---------------------------------------------------------------- logic */

TEST(bits_of_integers_and_bools) {
    for (fv_dtype a = 0; a <= FV_INT64; a++) {
        test_image  x = random_image(a, 1), y = random_image(a, 2);
        test_output both, any, not ;
        fv_error    error = { 0 };
        CHECK_INT(test_apply("and", "", (test_image *[]){ &x, &y }, 2, NULL, 0, &both, &error), FV_OK);
        CHECK_INT(test_apply("or", "", (test_image *[]){ &x, &y }, 2, NULL, 0, &any, &error), FV_OK);
        CHECK_INT(test_apply("not", "", (test_image *[]){ &x }, 1, NULL, 0, &not, &error), FV_OK);
        CHECK(both.type.image.dtype == a && any.type.image.dtype == a && not .type.image.dtype == a);
        for (size_t i = 0; i < N * fv_dtype_size(a); i++) {
            uint8_t p = ((uint8_t *)x.data)[i], q = ((uint8_t *)y.data)[i];
            CHECK(((uint8_t *)both.data)[i] == (p & q) && ((uint8_t *)any.data)[i] == (p | q));
            CHECK(((uint8_t *)not .data)[i] == (a == FV_BOOL ? !p : (uint8_t)~p));
        }
        test_output_free(&both);
        test_output_free(&any);
        test_output_free(&not );
        test_image_free(&x);
        test_image_free(&y);
    }
}

TEST(bits_promote_like_numpy_and_refuse_reals) {
    static const fv_dtype cases[][3] = { { FV_UINT8, FV_INT8, FV_INT16 },   { FV_UINT16, FV_INT8, FV_INT32 },
                                         { FV_UINT32, FV_INT16, FV_INT64 }, { FV_UINT8, FV_UINT32, FV_UINT32 },
                                         { FV_BOOL, FV_INT16, FV_INT16 },   { FV_INT32, FV_UINT8, FV_INT32 } };
    test_output           out;
    fv_error              error = { 0 };
    for (int k = 0; k < FV_COUNT(cases); k++) {
        test_image x = random_image(cases[k][0], 1), y = random_image(cases[k][1], 2);
        CHECK_INT(test_apply("and", "", (test_image *[]){ &x, &y }, 2, NULL, 0, &out, &error), FV_OK);
        CHECK_INT(out.type.image.dtype, cases[k][2]);
        for (int i = 0; i < N; i++)
            CHECK(element(out.data, cases[k][2], i) ==
                  (long double)((int64_t)element(x.data, cases[k][0], i) & (int64_t)element(y.data, cases[k][1], i)));
        test_output_free(&out);
        test_image_free(&x);
        test_image_free(&y);
    }
    test_image u = random_image(FV_UINT64, 1), i = random_image(FV_INT8, 1), f = random_image(FV_FLOAT32, 1),
               mask = whole_scalar(-2);
    CHECK_INT(test_apply("or", "", (test_image *[]){ &u, &i }, 2, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK_INT(test_apply("and", "", (test_image *[]){ &f, &i }, 2, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK_INT(test_apply("not", "", (test_image *[]){ &f }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK_INT(test_apply("and", "", (test_image *[]){ &i, &mask }, 2, NULL, 0, &out, &error), FV_OK);
    for (int k = 0; k < N; k++) CHECK(((int8_t *)out.data)[k] == (((int8_t *)i.data)[k] & -2));
    test_output_free(&out);
    test_image_free(&u);
    test_image_free(&i);
    test_image_free(&f);
}

TEST(where_keeps_a_common_type_and_promotes_others) {
    test_image c = random_image(FV_BOOL, 1), a = random_image(FV_UINT16, 2), b = random_image(FV_UINT16, 3),
               f = random_image(FV_INT32, 4);
    test_image  zero = whole_scalar(0), half = test_scalar(0.5);
    test_output out;
    fv_error    error = { 0 };
    const struct {
        test_image *x, *y;
        fv_dtype    dtype;
    } cases[] = { { &a, &b, FV_UINT16 },  { &a, &zero, FV_UINT16 },     { &a, &half, FV_FLOAT32 },
                  { &a, &f, FV_FLOAT64 }, { &zero, &half, FV_FLOAT32 }, { &f, &zero, FV_INT32 } };
    for (int k = 0; k < FV_COUNT(cases); k++) {
        CHECK_INT(test_apply("where", "", (test_image *[]){ &c, cases[k].x, cases[k].y }, 3, NULL, 0, &out, &error), FV_OK);
        CHECK_INT(out.type.image.dtype, cases[k].dtype);
        for (int i = 0; i < N; i++) {
            test_image *from = ((uint8_t *)c.data)[i] ? cases[k].x : cases[k].y;
            long double expected = from->type.kind == FV_KIND_SCALAR ? fv__scalar_number(&from->scalar)
                                                                     : element(from->data, from->type.image.dtype, i);
            CHECK(element(out.data, cases[k].dtype, i) == expected);
        }
        test_output_free(&out);
    }
    CHECK_INT(test_apply("where", "", (test_image *[]){ &a, &b, &b }, 3, NULL, 0, &out, &error), FV_ERROR_USAGE);
    CHECK(strstr(error.message, "condition is uint16"));
    test_image_free(&a);
    test_image_free(&b);
    test_image_free(&c);
    test_image_free(&f);
}

TEST(nan_and_infinity_are_found) {
    CHECK(on_doubles("isnan", NAN, 0, 1) == 1 && on_doubles("isnan", INFINITY, 0, 1) == 0);
    CHECK(on_doubles("isinf", -INFINITY, 0, 1) == 1 && on_doubles("isinf", NAN, 0, 1) == 0 &&
          on_doubles("isinf", DBL_MAX, 0, 1) == 0);
    CHECK(on_doubles("isfinite", DBL_MAX, 0, 1) == 1 && on_doubles("isfinite", NAN, 0, 1) == 0 &&
          on_doubles("isfinite", -INFINITY, 0, 1) == 0);
}

/* ---------------------------------------------------------------- mathematics */

TEST(abs_and_sign_keep_every_type) {
    for (fv_dtype a = 0; a <= FV_FLOAT64; a++) {
        test_image  x = random_image(a, 1);
        test_output size, sign;
        fv_error    error = { 0 };
        if (a == FV_INT8) ((int8_t *)x.data)[0] = INT8_MIN;
        if (a == FV_INT32) ((int32_t *)x.data)[0] = INT32_MIN;
        if (a == FV_INT64) ((int64_t *)x.data)[0] = INT64_MIN;
        CHECK_INT(test_apply("abs", "", (test_image *[]){ &x }, 1, NULL, 0, &size, &error), FV_OK);
        CHECK_INT(test_apply("sign", "", (test_image *[]){ &x }, 1, NULL, 0, &sign, &error), FV_OK);
        CHECK(size.type.image.dtype == a && sign.type.image.dtype == a);
        bool extreme = a == FV_INT8 || a == FV_INT32 || a == FV_INT64;
        for (int i = 0; i < N; i++) {
            long double v = element(x.data, a, i), top = a == FV_INT8 ? INT8_MAX : a == FV_INT32 ? INT32_MAX : INT64_MAX;
            CHECK(element(size.data, a, i) == (extreme && fabsl(v) > top ? top : fabsl(v)));
            CHECK(element(sign.data, a, i) == (v > 0) - (v < 0));
        }
        test_output_free(&size);
        test_output_free(&sign);
        test_image_free(&x);
    }
    CHECK(isnan(on_doubles("sign", NAN, 0, 1)));
}

TEST(rounding_goes_to_even_and_leaves_integers) {
    CHECK(on_doubles("round", 2.5, 0, 1) == 2 && on_doubles("round", 3.5, 0, 1) == 4 && on_doubles("round", -0.5, 0, 1) == 0);
    CHECK(on_doubles("floor", -0.5, 0, 1) == -1 && on_doubles("ceil", -0.5, 0, 1) == 0 &&
          on_doubles("ceil", 1e300, 0, 1) == 1e300);
    test_image  x = random_image(FV_INT64, 1);
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("floor", "", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_OK);
    CHECK(out.type.image.dtype == FV_INT64 && !memcmp(out.data, x.data, N * 8));
    test_output_free(&out);
    test_image_free(&x);
}

TEST(minimum_and_maximum_propagate_nan_and_keep_types) {
    CHECK(isnan(on_doubles("minimum", NAN, 1, 2)) && isnan(on_doubles("minimum", 1, NAN, 2)) &&
          isnan(on_doubles("maximum", 1, NAN, 2)));
    for (fv_dtype a = 0; a <= FV_FLOAT64; a++) {
        test_image  x = random_image(a, 1), y = random_image(a, 2);
        test_output low, high;
        fv_error    error = { 0 };
        CHECK_INT(test_apply("minimum", "", (test_image *[]){ &x, &y }, 2, NULL, 0, &low, &error), FV_OK);
        CHECK_INT(test_apply("maximum", "", (test_image *[]){ &x, &y }, 2, NULL, 0, &high, &error), FV_OK);
        CHECK(low.type.image.dtype == a && high.type.image.dtype == a);
        for (int i = 0; i < N; i++) {
            long double p = element(x.data, a, i), q = element(y.data, a, i);
            CHECK(element(low.data, a, i) == fminl(p, q) && element(high.data, a, i) == fmaxl(p, q));
        }
        test_output_free(&low);
        test_output_free(&high);
        test_image_free(&x);
        test_image_free(&y);
    }
}

TEST(clip_keeps_the_type_and_passes_nan) {
    for (fv_dtype a = 0; a <= FV_FLOAT64; a++) {
        test_image x = random_image(a, 1), low = whole_scalar(a == FV_BOOL ? 0 : 20), high = whole_scalar(a == FV_BOOL ? 1 : 100);
        test_output out;
        fv_error    error = { 0 };
        CHECK_INT(test_apply("clip", "", (test_image *[]){ &x, &low, &high }, 3, NULL, 0, &out, &error), FV_OK);
        CHECK_INT(out.type.image.dtype, a);
        for (int i = 0; i < N; i++) {
            long double v = element(x.data, a, i);
            CHECK(element(out.data, a, i) == (a == FV_BOOL ? v : v < 20 ? 20 : v > 100 ? 100 : v));
        }
        test_output_free(&out);
        test_image_free(&x);
    }
    test_image  x = test_image_new(FV_FLOAT32, 1, (int64_t[]){ 1 }), low = test_scalar(0), high = test_scalar(1);
    test_output out;
    fv_error    error = { 0 };
    *(float *)x.data = NAN;
    CHECK_INT(test_apply("clip", "", (test_image *[]){ &x, &low, &high }, 3, NULL, 0, &out, &error), FV_OK);
    CHECK(isnan(*(float *)out.data));
    test_output_free(&out);
    test_image_free(&x);
}

TEST(functions_agree_with_libm) {
    static const struct {
        const char *name;
        long double (*reference)(long double);
    } functions[] = {
        { "sqrt", sqrtl }, { "exp", expl }, { "log", logl }, { "log2", log2l },   { "log10", log10l },
        { "sin", sinl },   { "cos", cosl }, { "tan", tanl }, { "arctan", atanl }, { "tanh", tanhl },
    };
    for (int o = 0; o < FV_COUNT(functions); o++)
        for (fv_dtype a = 0; a <= FV_FLOAT64; a++) {
            test_image  x = random_image(a, 1);
            test_output out;
            fv_error    error = { 0 };
            if (a == FV_FLOAT32)
                for (int i = 0; i < N; i++) ((float *)x.data)[i] /= 8;
            CHECK_INT(test_apply(functions[o].name, "", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_OK);
            bool small = fv_dtype_size(a) <= 2 || a == FV_FLOAT32;
            CHECK_INT(out.type.image.dtype, small ? FV_FLOAT32 : FV_FLOAT64);
            for (int i = 0; i < N; i++) {
                long double v = element(x.data, a, i), got = element(out.data, out.type.image.dtype, i);
                long double exact = functions[o].reference(small ? v : (double)v),
                            slack = fabsl(exact) * (small ? FLT_EPSILON : DBL_EPSILON);
                if (fabsl(exact) > (small ? (long double)FLT_MAX : DBL_MAX)) exact = exact > 0 ? INFINITY : -INFINITY;
                CHECK_MESSAGE(near(got, exact, slack + FLT_MIN * (small ? 1 : 0)), "%s(%s %La) is %La, not %La",
                              functions[o].name, fv_dtype_name(a), v, got, exact);
            }
            test_output_free(&out);
            test_image_free(&x);
        }
    CHECK(on_doubles("square", 3, 0, 1) == 9 && on_doubles("arctan2", 1, -1, 2) == 3 * M_PI / 4 &&
          on_doubles("negative", 3, 0, 1) == -3);
    CHECK(fabs(on_doubles("sin", 1e22, 0, 1) - -0.8522008497671888) < 1e-15);
}

TEST(convert_truncates_and_saturates) {
    test_image    x = test_image_new(FV_FLOAT32, 1, (int64_t[]){ 8 });
    const float   values[] = { -1.9f, 1.9f, 300, -300, NAN, INFINITY, 0.4f, 254.9f };
    const uint8_t expected[] = { 0, 1, 255, 0, 0, 255, 0, 254 }, truth[] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    test_output   out;
    fv_error      error = { 0 };
    memcpy(x.data, values, sizeof values);
    CHECK_INT(test_apply("convert", "dtype=uint8", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_OK);
    CHECK(out.type.image.dtype == FV_UINT8 && !memcmp(out.data, expected, 8));
    test_output_free(&out);
    CHECK_INT(test_apply("convert", "dtype=bool", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_OK);
    CHECK(out.type.image.dtype == FV_BOOL && !memcmp(out.data, truth, 8));
    test_output_free(&out);
    CHECK_INT(test_apply("convert", "dtype=complex64", (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_ERROR_USAGE);
    test_image_free(&x);
}

TEST(convert_between_all_types_is_exact_where_the_value_fits) {
    for (fv_dtype a = 0; a <= FV_FLOAT64; a++)
        for (fv_dtype b = FV_UINT8; b <= FV_FLOAT64; b++) {
            char        text[40];
            test_image  x = random_image(a, 3);
            test_output out;
            fv_error    error = { 0 };
            snprintf(text, sizeof text, "dtype=%s", fv_dtype_name(b));
            CHECK_INT(test_apply("convert", text, (test_image *[]){ &x }, 1, NULL, 0, &out, &error), FV_OK);
            int         bits = 8 * (int)fv_dtype_size(b);
            long double top = fv_dtype_is_float(b) ? 1e300L : ldexpl(1, bits - fv_dtype_is_signed(b)) - 1,
                        bottom = fv_dtype_is_float(b)    ? -1e300L
                                 : fv_dtype_is_signed(b) ? -top - 1
                                                         : 0;
            for (int i = 0; i < N; i++) {
                long double v = element(x.data, a, i), expected = v > top           ? top
                                                                  : v < bottom      ? bottom
                                                                  : b == FV_FLOAT32 ? (float)v
                                                                  : b == FV_FLOAT64 ? (double)v
                                                                                    : truncl(v);
                CHECK_MESSAGE(element(out.data, b, i) == expected, "%s %Lg to %s", fv_dtype_name(a), v, fv_dtype_name(b));
            }
            test_output_free(&out);
            test_image_free(&x);
        }
}

/* ---------------------------------------------------------------- scalars */

TEST(scalars_give_scalars_and_whole_ones_stay_whole) {
    test_image  seven = whole_scalar(7), two = whole_scalar(2), half = test_scalar(0.5), most = whole_scalar(INT64_MAX);
    test_output out;
    fv_error    error = { 0 };
    CHECK_INT(test_apply("multiply", "", (test_image *[]){ &seven, &two }, 2, NULL, 0, &out, &error), FV_OK);
    CHECK(out.type.kind == FV_KIND_SCALAR && out.type.dtype == FV_INT64 && out.scalar.integer == 14);
    test_output_free(&out);
    CHECK_INT(test_apply("add", "", (test_image *[]){ &most, &two }, 2, NULL, 0, &out, &error), FV_OK);
    CHECK(out.scalar.integer == INT64_MAX);
    test_output_free(&out);
    CHECK_INT(test_apply("divide", "", (test_image *[]){ &seven, &two }, 2, NULL, 0, &out, &error), FV_OK);
    CHECK(out.type.dtype == FV_FLOAT64 && out.scalar.real == 3.5);
    test_output_free(&out);
    CHECK_INT(test_apply("add", "", (test_image *[]){ &seven, &half }, 2, NULL, 0, &out, &error), FV_OK);
    CHECK(out.type.dtype == FV_FLOAT64 && out.scalar.real == 7.5);
    test_output_free(&out);
    CHECK_INT(test_apply("less", "", (test_image *[]){ &half, &two }, 2, NULL, 0, &out, &error), FV_OK);
    CHECK(out.type.dtype == FV_BOOL && out.scalar.integer == 1);
    test_output_free(&out);
    CHECK_INT(test_apply("maximum", "", (test_image *[]){ &seven, &two }, 2, NULL, 0, &out, &error), FV_OK);
    CHECK(out.type.dtype == FV_INT64 && out.scalar.integer == 7);
    test_output_free(&out);
}

/* ---------------------------------------------------------------- instruction sets */

TEST(every_instruction_set_gives_the_same_bits) {
    static const char *const one[] = { "negative", "abs",   "sign",  "sqrt",  "square", "exp",     "log",
                                       "log2",     "log10", "sin",   "cos",   "tan",    "arctan",  "tanh",
                                       "floor",    "ceil",  "round", "isnan", "isinf",  "isfinite" };
    static const char *const two[] = { "add",     "subtract", "multiply", "divide", "remainder", "power",
                                       "arctan2", "minimum",  "maximum",  "equal",  "less",      "greater_equal" };
    static const double      special[] = { 0.0,     -0.0,   1,   -1,   NAN,   INFINITY,     -INFINITY, 1e300,
                                           -1e-300, 1e-320, 0.5, 1e22, -3e38, 2147483648.0, 88.8,      -104 };
    enum { MANY = 20000 };
    char message[256];
    for (int t = 0; t < 2; t++) {
        test_image x = test_image_new(t ? FV_FLOAT64 : FV_FLOAT32, 1, (int64_t[]){ MANY }),
                   y = test_image_new(t ? FV_FLOAT64 : FV_FLOAT32, 1, (int64_t[]){ MANY });
        uint64_t state = 3;
        for (int i = 0; i < MANY; i++) {
            double p =
                i < 512 ? special[i % 16] : ldexp((double)(int64_t)test_random(&state), (int)(test_random(&state) % 40) - 80);
            double q = i < 512 ? special[i / 16 % 16]
                               : ldexp((double)(int64_t)test_random(&state), (int)(test_random(&state) % 10) - 63);
            if (t)
                ((double *)x.data)[i] = p, ((double *)y.data)[i] = q;
            else
                ((float *)x.data)[i] = (float)p, ((float *)y.data)[i] = (float)q;
        }
        for (int o = 0; o < FV_COUNT(one); o++)
            CHECK_MESSAGE(test_same_on_every_isa(one[o], "", (test_image *[]){ &x }, 1, message), "%s: %s", one[o], message);
        for (int o = 0; o < FV_COUNT(two); o++)
            CHECK_MESSAGE(test_same_on_every_isa(two[o], "", (test_image *[]){ &x, &y }, 2, message), "%s: %s", two[o], message);
        test_image_free(&x);
        test_image_free(&y);
    }
}

TEST_MAIN
