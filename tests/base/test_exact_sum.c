/* Exact sums: against integer arithmetic, in any order, with special values, and their rounding. */
#include "base/exact_sum.h"
#include "support/test.h"
#include <float.h>
#include <math.h>

static uint64_t state = 11;

static double any_double(int low, int high) { /* full mantissa, exponent low ... high - 1 */
    double m = 1 + (double)(test_random(&state) >> 12) * 0x1p-52;
    double v = ldexp(m, low + (int)(test_random(&state) % (uint64_t)(high - low)));
    return test_random(&state) & 1 ? -v : v;
}

static float any_float(int low, int high) { return (float)any_double(low, high); }

static void shuffle(void *array, int64_t n, size_t size) {
    char *a = array, t[16];
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)(test_random(&state) % (uint64_t)(i + 1));
        memcpy(t, a + i * (int64_t)size, size);
        memmove(a + i * (int64_t)size, a + j * (int64_t)size, size);
        memcpy(a + j * (int64_t)size, t, size);
    }
}

static double sum_of(const double *v, int64_t n) {
    fv_sum_float64 s;
    fv__sum_init(&s.sum, FV_SUM_FLOAT64);
    fv__sum_add_doubles(&s.sum, NULL, v, n);
    return fv__sum_value(&s.sum);
}

TEST(sum_agrees_with_128_bit_integers) {
    for (int round = 0; round < 200; round++) {
        double   v[1000];
        __int128 exact = 0;
        int64_t  n = 1 + (int64_t)(test_random(&state) % 1000);
        for (int64_t i = 0; i < n; i++) {
            int64_t integer = (int64_t)test_random(&state) >> (11 + test_random(&state) % 50);
            exact += integer;
            v[i] = ldexp((double)integer, -40);
        }
        CHECK(sum_of(v, n) == ldexp((double)exact, -40));
    }
}

TEST(sum_cancels_the_largest_and_keeps_the_least_double) {
    double v[] = { DBL_MAX, 0x1p-1074, DBL_MAX, -DBL_MAX, 1e-300, -DBL_MAX, -1e-300, 0x1p-1074 };
    CHECK(sum_of(v, FV_COUNT(v)) == 0x1p-1073);
    double w[] = { DBL_MAX, DBL_MAX, -DBL_MAX, -DBL_MAX };
    CHECK(sum_of(w, 2) == INFINITY);
    CHECK(sum_of(w, 4) == 0);
}

TEST(sum_does_not_depend_on_order_or_cuts) {
    enum { N = 5000 };
    static float     v[N];
    static const int ranges[][2] = { { -1, 1 }, { -20, 20 }, { -120, 120 } };
    for (int r = 0; r < FV_COUNT(ranges); r++) {
        for (int i = 0; i < N; i++) v[i] = i % 17 ? any_float(ranges[r][0], ranges[r][1]) : 0;
        fv_sum_float32         whole;
        fv_sum_float32_squares squares;
        fv__sum_init(&whole.sum, FV_SUM_FLOAT32);
        fv__sum_init(&squares.sum, FV_SUM_FLOAT32_SQUARES);
        for (int i = 0; i < N; i++) {
            fv__sum_add(&whole.sum, v[i]);
            fv__sum_add_square(&squares.sum, v[i]);
        }
        double high, low, high2, low2;
        fv__sum_value2(&whole.sum, &high, &low);
        fv__sum_value2(&squares.sum, &high2, &low2);
        for (int round = 0; round < 20; round++) {
            shuffle(v, N, sizeof *v);
            fv_sum_float32         all, part;
            fv_sum_float32_squares all2, part2;
            fv__sum_init(&all.sum, FV_SUM_FLOAT32);
            fv__sum_init(&all2.sum, FV_SUM_FLOAT32_SQUARES);
            for (int64_t done = 0, n; done < N; done += n) {
                n = 1 + (int64_t)(test_random(&state) % 900);
                n = FV_MIN(n, N - done);
                fv__sum_init(&part.sum, FV_SUM_FLOAT32);
                fv__sum_init(&part2.sum, FV_SUM_FLOAT32_SQUARES);
                fv__sum_add_floats(&part.sum, &part2.sum, v + done, n);
                fv__sum_merge(&all.sum, &part.sum);
                fv__sum_merge(&all2.sum, &part2.sum);
            }
            double h, l;
            fv__sum_value2(&all.sum, &h, &l);
            CHECK(h == high && l == low);
            fv__sum_value2(&all2.sum, &h, &l);
            CHECK(h == high2 && l == low2);
            CHECK(fv__sum_variance(&all.sum, &all2.sum, N) == fv__sum_variance(&whole.sum, &squares.sum, N));
        }
    }
}

TEST(arrays_of_doubles_equal_single_additions) {
    enum { N = 3000 };
    static double    v[N];
    static const int ranges[][2] = { { -2, 2 }, { -30, 30 }, { -500, 500 }, { -1074, -1000 }, { 1000, 1024 }, { 1022, 1023 } };
    for (int r = 0; r < FV_COUNT(ranges); r++) {
        fv_sum_float64         one, many;
        fv_sum_float64_squares one2, many2;
        fv__sum_init(&one.sum, FV_SUM_FLOAT64);
        fv__sum_init(&many.sum, FV_SUM_FLOAT64);
        fv__sum_init(&one2.sum, FV_SUM_FLOAT64_SQUARES);
        fv__sum_init(&many2.sum, FV_SUM_FLOAT64_SQUARES);
        for (int i = 0; i < N; i++) {
            v[i] = i % 5 ? any_double(ranges[r][0], ranges[r][1]) : 0;
            fv__sum_add(&one.sum, v[i]);
            fv__sum_add_square(&one2.sum, v[i]);
        }
        fv__sum_add_doubles(&many.sum, &many2.sum, v, N);
        CHECK(fv__sum_value(&one.sum) == fv__sum_value(&many.sum));
        CHECK(fv__sum_mean(&one.sum, N) == fv__sum_mean(&many.sum, N));
        CHECK(fv__sum_variance(&one.sum, &one2.sum, N) == fv__sum_variance(&many.sum, &many2.sum, N));
    }
}

TEST(the_two_parts_hold_more_than_a_double) {
    fv_sum_float64 s;
    double         high, low;
    fv__sum_init(&s.sum, FV_SUM_FLOAT64);
    fv__sum_add(&s.sum, 1);
    fv__sum_add(&s.sum, 0x1p-80);
    fv__sum_value2(&s.sum, &high, &low);
    CHECK(high == 1 && low == 0x1p-80);
    fv__sum_add(&s.sum, -1);
    fv__sum_value2(&s.sum, &high, &low);
    CHECK(high == 0x1p-80 && low == 0);
}

TEST(the_value_is_rounded_to_nearest_even_once) {
    double tie[] = { 1, 0x1p-53 }, above[] = { 1, 0x1p-53, 0x1p-1074 }, odd[] = { 1 + 0x1p-52, 0x1p-53 },
           below[] = { 1, 0x1p-53, -0x1p-1074 };
    CHECK(sum_of(tie, 2) == 1);
    CHECK(sum_of(above, 3) == 1 + 0x1p-52);
    CHECK(sum_of(below, 3) == 1);
    CHECK(sum_of(odd, 2) == 1 + 0x1p-51);
}

TEST(the_mean_is_rounded_once_down_to_subnormals) {
    fv_sum_float64 s;
    fv__sum_init(&s.sum, FV_SUM_FLOAT64);
    fv__sum_add(&s.sum, 1);
    CHECK(fv__sum_mean(&s.sum, 3) == 1.0 / 3);
    CHECK(fv__sum_mean(&s.sum, ((int64_t)1 << 53) - 1) == 1.0 / 0x1.fffffffffffffp52);
    CHECK(isnan(fv__sum_mean(&s.sum, 0)));
    fv__sum_init(&s.sum, FV_SUM_FLOAT64);
    fv__sum_add(&s.sum, -3 * 0x1p-1074);
    CHECK(fv__sum_mean(&s.sum, 2) == -2 * 0x1p-1074);
    CHECK(fv__sum_mean(&s.sum, 7) == 0);
    fv__sum_init(&s.sum, FV_SUM_FLOAT64);
    for (int i = 0; i < 3; i++) fv__sum_add(&s.sum, DBL_MAX);
    CHECK(fv__sum_mean(&s.sum, 3) == DBL_MAX);
}

static double variance_of(const double *v, int64_t n) {
    fv_sum_float64         s;
    fv_sum_float64_squares q;
    fv__sum_init(&s.sum, FV_SUM_FLOAT64);
    fv__sum_init(&q.sum, FV_SUM_FLOAT64_SQUARES);
    fv__sum_add_doubles(&s.sum, &q.sum, v, n);
    return fv__sum_variance(&s.sum, &q.sum, n);
}

TEST(integers_have_the_moments_of_equal_doubles) { /* small ones take a short way */
    for (int round = 0; round < 400; round++) {
        fv_sum_integer s, q;
        double         v[200];
        int64_t        n = 1 + (int64_t)(test_random(&state) % 200);
        int            bits = 1 + (int)(test_random(&state) % 40);
        fv__sum_init(&s.sum, FV_SUM_INTEGER);
        fv__sum_init(&q.sum, FV_SUM_INTEGER);
        for (int64_t i = 0; i < n; i++) {
            uint64_t size = test_random(&state) >> (64 - bits);
            bool     negative = test_random(&state) & 1;
            v[i] = negative ? -(double)size : (double)size;
            fv__sum_add_integer(&s.sum, negative, size);
            fv__sum_add_integer(&q.sum, false, (unsigned __int128)size * size);
        }
        fv_sum_float64 d;
        fv__sum_init(&d.sum, FV_SUM_FLOAT64);
        fv__sum_add_doubles(&d.sum, NULL, v, n);
        CHECK(fv__sum_mean(&s.sum, n) == fv__sum_mean(&d.sum, n));
        CHECK(fv__sum_variance(&s.sum, &q.sum, n) == variance_of(v, n));
    }
}

TEST(the_variance_does_not_cancel) {
    double close[] = { 1e15, 1e15 + 1, 1e15 + 2, 1e15 + 3 }, equal[] = { 1e200, 1e200, 1e200 }, huge[] = { 1e150, -1e150 };
    CHECK(variance_of(close, 4) == 1.25);
    CHECK(variance_of(equal, 3) == 0);
    CHECK(variance_of(huge, 2) == 1e150 * 1e150);
    double tiny[] = { 0x1p-600, -0x1p-600 };
    CHECK(variance_of(tiny, 2) == 0); /* 2^-1200 rounds to zero */
}

TEST(special_values_are_counted) {
    double nan[] = { 1, NAN, INFINITY }, up[] = { 1, INFINITY, INFINITY }, down[] = { -INFINITY, 3 },
           both[] = { INFINITY, -INFINITY };
    CHECK(isnan(sum_of(nan, 3)));
    CHECK(sum_of(up, 3) == INFINITY);
    CHECK(sum_of(down, 2) == -INFINITY);
    CHECK(isnan(sum_of(both, 2)));
    CHECK(isnan(variance_of(up, 3)));
    CHECK(sum_of(NULL, 0) == 0);
    float          values[] = { 1, NAN, -INFINITY, INFINITY, 2 };
    fv_sum_float32 s;
    fv__sum_init(&s.sum, FV_SUM_FLOAT32);
    fv__sum_add_floats(&s.sum, NULL, values, 5);
    CHECK_INT(s.sum.nans, 1);
    CHECK_INT(s.sum.positive_infinities, 1);
    CHECK_INT(s.sum.negative_infinities, 1);
}

TEST(float32_extremes_and_their_squares_fit) {
    float                  v[] = { FLT_MAX, -FLT_MAX, FLT_MAX, 0x1p-149f, 0x1p-149f };
    fv_sum_float32         s;
    fv_sum_float32_squares q;
    fv__sum_init(&s.sum, FV_SUM_FLOAT32);
    fv__sum_init(&q.sum, FV_SUM_FLOAT32_SQUARES);
    fv__sum_add_floats(&s.sum, &q.sum, v, 5);
    double high, low;
    fv__sum_value2(&s.sum, &high, &low);
    CHECK(high == FLT_MAX && low == 0x1p-148);
    fv__sum_value2(&q.sum, &high, &low);
    CHECK(high == 3 * ((double)FLT_MAX * FLT_MAX) && low != 0);
    for (int i = 0; i < 3; i++) fv__sum_add(&q.sum, -(double)FLT_MAX * FLT_MAX);
    CHECK(fv__sum_value(&q.sum) == 0x1p-297);
}

TEST(integers_are_exact_beyond_64_bits) {
    fv_sum_integer s;
    int64_t        integer = 0;
    uint64_t       natural = 0;
    fv__sum_init(&s.sum, FV_SUM_INTEGER);
    fv__sum_add_integer(&s.sum, false, UINT64_MAX);
    CHECK(fv__sum_natural_value(&s.sum, &natural) && natural == UINT64_MAX);
    CHECK(!fv__sum_integer_value(&s.sum, &integer));
    for (int i = 0; i < 3; i++) fv__sum_add_integer(&s.sum, false, UINT64_MAX);
    CHECK(fv__sum_value(&s.sum) == 0x1p66);
    CHECK(!fv__sum_natural_value(&s.sum, &natural));
    CHECK(!fv__sum_integer_value(&s.sum, &integer));
    CHECK(fv__sum_mean(&s.sum, 4) == 0x1p64);
    for (int i = 0; i < 4; i++) fv__sum_add_integer(&s.sum, true, UINT64_MAX);
    CHECK(fv__sum_natural_value(&s.sum, &natural) && natural == 0);
    fv__sum_add_integer(&s.sum, true, (uint64_t)1 << 63);
    CHECK(fv__sum_integer_value(&s.sum, &integer) && integer == INT64_MIN);
    CHECK(!fv__sum_natural_value(&s.sum, &natural));
    fv__sum_add_integer(&s.sum, true, 1);
    CHECK(!fv__sum_integer_value(&s.sum, &integer));
    fv__sum_add_integer(&s.sum, false, ((uint64_t)1 << 63) - 6);
    CHECK(fv__sum_integer_value(&s.sum, &integer));
    CHECK_INT(integer, -7);
}

TEST(a_million_additions_merged_a_million_fold_do_not_overflow) {
    fv_sum_float64 s;
    fv__sum_init(&s.sum, FV_SUM_FLOAT64);
    for (int i = 0; i < 1000; i++) fv__sum_add(&s.sum, 0x1.fffffffffffffp31);
    for (int i = 0; i < 30; i++) {
        fv_sum_float64 copy = s;
        fv__sum_merge(&s.sum, &copy.sum);
    }
    CHECK(fv__sum_value(&s.sum) == 0x1.fffffffffffffp61 * 1000);
}

TEST_MAIN
