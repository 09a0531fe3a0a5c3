/* Elementary functions: error against long double libm, special values as in C99. That every
 * instruction set gives the same bits is tested with the operators that use them. */
#include "base/base.h"
#include "base/math.h"
#include "support/test.h"
#include <float.h>

static uint64_t state = 5;

/* Distance of a result from the exact value, in units of the last place of a double near it. */
static double ulps(double got, long double exact) {
    if (isnan(got) || isnan(exact)) return isnan(got) && isnan(exact) ? 0 : 1e30;
    if (isinf(got) || fabsl(exact) > DBL_MAX) return got == (double)exact ? 0 : 1e30;
    int         exponent;
    long double unit;
    frexpl(exact, &exponent);
    unit = ldexpl(1, FV_MAX(exponent - 53, -1074));
    return (double)(fabsl((long double)got - exact) / unit);
}

static double uniform(double low, double high) { return low + (high - low) * ((double)(test_random(&state) >> 11) * 0x1p-53); }
static double any_bits(void) { return fv__from_bits(test_random(&state)); }

#define SWEEP(function, reference, bound, argument)                                                                              \
    do {                                                                                                                         \
        double worst = 0, at = 0;                                                                                                \
        for (int i = 0; i < 300000; i++) {                                                                                       \
            double x = (argument), error = ulps(function(x), reference((long double)x));                                         \
            if (error > worst) worst = error, at = x;                                                                            \
        }                                                                                                                        \
        CHECK_MESSAGE(worst <= (bound), "%s: %.3f ulp at %a, bound %g", #function, worst, at, (double)(bound));                  \
    } while (0)

TEST(exp_is_within_0_9_ulp) {
    SWEEP(fv__exp, expl, 0.9, uniform(-708, 709.7));
    SWEEP(fv__exp, expl, 0.9, uniform(-1, 1));
    SWEEP(fv__exp, expl, 0.9, uniform(-745.2, -708)); /* subnormal results */
    SWEEP(fv__exp, expl, 0.9, any_bits());
}

TEST(log_is_within_0_9_ulp) {
    SWEEP(fv__ln, logl, 0.9, fabs(any_bits()));
    SWEEP(fv__ln, logl, 0.9, uniform(0.5, 2));
    SWEEP(fv__ln, logl, 0.9, 1 + uniform(-1e-6, 1e-6));
    SWEEP(fv__ln, logl, 0.9, uniform(0, 0x1p-1022));
}

TEST(log2_and_log10_are_within_0_6_ulp) {
    SWEEP(fv__log2, log2l, 0.6, fabs(any_bits()));
    SWEEP(fv__log2, log2l, 0.6, uniform(0.5, 2));
    SWEEP(fv__log10, log10l, 0.6, fabs(any_bits()));
    SWEEP(fv__log10, log10l, 0.6, uniform(0.5, 2));
    SWEEP(fv__log10, log10l, 0.6, uniform(0, 0x1p-1022));
    for (int i = 0; i < 300000; i++) {
        float x = i & 1 ? (float)uniform(0, 100) : (float)ldexp(uniform(1, 2), (int)uniform(-140, 127));
        CHECK(fabsl(fv__log2f(x) - log2l(x)) <= 0.5001 * 0x1p-23 * fabsl(log2l(x)));
        CHECK(fabsl(fv__log10f(x) - log10l(x)) <= 0.5001 * 0x1p-23 * fabsl(log10l(x)));
    }
    for (int k = -1074; k < 1024; k++) CHECK(fv__log2(ldexp(1, k)) == k);
    for (int k = 0; k <= 22; k++)
        CHECK((double)k == fv__log10(strtod((char[]){ '1', 'e', (char)('0' + k / 10), (char)('0' + k % 10), 0 }, NULL)));
}

static double power_error(double x, double y) { return ulps(fv__pow(x, y), powl(x, y)); }

TEST(pow_is_within_0_9_ulp) {
    double worst = 0, wx = 0, wy = 0;
    for (int i = 0; i < 1000000; i++) {
        double x = i % 3 == 0 ? uniform(0, 4) : i % 3 == 1 ? fabs(any_bits()) : 1 + uniform(-1e-3, 1e-3);
        double y = i % 3 == 0 ? uniform(-300, 300) : i % 3 == 1 ? uniform(-3, 3) : uniform(-7e5, 7e5);
        double error = power_error(x, y);
        if (error > worst) worst = error, wx = x, wy = y;
    }
    CHECK_MESSAGE(worst <= 0.9, "pow: %.3f ulp at %a, %a", worst, wx, wy);
    for (int i = 0; i < 100000; i++) {
        double x = any_bits(), y = any_bits();
        CHECK_MESSAGE(power_error(x, y) <= 0.9, "pow(%a, %a) is %a, not %La", x, y, fv__pow(x, y), powl(x, y));
        y = (double)(int)uniform(-20, 20);
        x = uniform(-50, 50);
        CHECK_MESSAGE(power_error(x, y) <= 0.9, "pow(%a, %a) is %a, not %La", x, y, fv__pow(x, y), powl(x, y));
        CHECK(fv__powf((float)x, (float)y) == (float)powl((float)x, (float)y));
    }
}

TEST(sin_cos_and_tan_are_accurate_for_all_arguments) {
    SWEEP(fv__sin, sinl, 0.8, uniform(-10, 10));
    SWEEP(fv__sin, sinl, 0.8, uniform(-1e6, 1e6));
    SWEEP(fv__cos, cosl, 0.8, uniform(-10, 10));
    SWEEP(fv__cos, cosl, 0.8, uniform(-1e6, 1e6));
    SWEEP(fv__tan, tanl, 1.0, uniform(-10, 10));
    SWEEP(fv__tan, tanl, 1.0, uniform(-1e6, 1e6));
    /* long double functions of the x87 kind reduce exactly in glibc; multiples of pi/2 are the hard cases */
    SWEEP(fv__sin, sinl, 0.8, (double)(uniform(0, 600000) - fmod(uniform(0, 600000), 1)) * M_PI_2);
    SWEEP(fv__sin, sinl, 0.8, uniform(-1e15, 1e15));
    SWEEP(fv__cos, cosl, 0.8, uniform(-1e300, 1e300));
    SWEEP(fv__sin, sinl, 0.8, any_bits());
    SWEEP(fv__cos, cosl, 0.8, any_bits());
    SWEEP(fv__tan, tanl, 1.0, any_bits());
    CHECK(ulps(fv__sin(0x1.6ac5b262ca1ffp849), sinl(0x1.6ac5b262ca1ffp849L)) < 1); /* nearest double to a multiple of pi/2 */
    CHECK(ulps(fv__cos(0x1.6ac5b262ca1ffp849), cosl(0x1.6ac5b262ca1ffp849L)) < 1);
}

TEST(atan_atan2_and_tanh_are_accurate) {
    SWEEP(fv__atan, atanl, 0.9, uniform(-10, 10));
    SWEEP(fv__atan, atanl, 0.9, any_bits());
    SWEEP(fv__tanh, tanhl, 1.0, uniform(-25, 25));
    SWEEP(fv__tanh, tanhl, 1.0, uniform(-1, 1));
    SWEEP(fv__tanh, tanhl, 1.0, any_bits());
    double worst = 0, wx = 0, wy = 0;
    for (int i = 0; i < 500000; i++) {
        double x = i & 1 ? any_bits() : uniform(-3, 3), y = i & 1 ? any_bits() : uniform(-3, 3);
        double error = ulps(fv__atan2(y, x), atan2l(y, x));
        if (error > worst) worst = error, wx = x, wy = y;
    }
    CHECK_MESSAGE(worst <= 0.9, "atan2: %.3f ulp at %a, %a", worst, wy, wx);
}

static bool same(double a, double b) { return isnan(a) ? isnan(b) : fv__bits(a) == fv__bits(b); }

TEST(special_values_follow_c99) {
    static const double special[] = { 0.0,    -0.0,       1,           -1,         0.5,      -0.5,      2,
                                      -2,     3,          -3,          1e300,      -1e300,   0x1p-1074, -0x1p-1074,
                                      0x1p53, 0x1p53 + 2, -0x1p60,     DBL_MAX,    -DBL_MAX, INFINITY,  -INFINITY,
                                      NAN,    0x1p-1022,  1 + 0x1p-52, 1 - 0x1p-53 };
    for (int i = 0; i < FV_COUNT(special); i++) {
        double x = special[i];
        CHECK_MESSAGE(isfinite(x) || same(fv__exp(x), exp(x)), "exp(%g)", x);
        CHECK_MESSAGE((isfinite(x) && x > 0) || same(fv__ln(x), log(x)), "log(%g)", x);
        CHECK_MESSAGE((isfinite(x) && x > 0) || same(fv__log2(x), log2(x)), "log2(%g)", x);
        CHECK_MESSAGE((isfinite(x) && x > 0) || same(fv__log10(x), log10(x)), "log10(%g)", x);
        CHECK_MESSAGE((isfinite(x) && x != 0) || same(fv__sin(x), sin(x)), "sin(%g)", x);
        CHECK_MESSAGE((isfinite(x) && x != 0) || same(fv__cos(x), cos(x)), "cos(%g)", x);
        CHECK_MESSAGE((isfinite(x) && x != 0) || same(fv__tan(x), tan(x)), "tan(%g)", x);
        CHECK_MESSAGE((isfinite(x) && x != 0) || same(fv__tanh(x), tanh(x)), "tanh(%g)", x);
        CHECK_MESSAGE((isfinite(x) && x != 0) || same(fv__atan(x), atan(x)), "atan(%g)", x);
        for (int j = 0; j < FV_COUNT(special); j++) {
            double y = special[j], p = pow(x, y);
            if (p == 0 || p == 1 || !isfinite(p))
                CHECK_MESSAGE(same(fv__pow(x, y), p), "pow(%g, %g) is %g, not %g", x, y, fv__pow(x, y), p);
            CHECK_MESSAGE(ulps(fv__pow(x, y), powl(x, y)) <= 0.9, "pow(%g, %g) is %g, not %g", x, y, fv__pow(x, y), p);
            double a = atan2(x, y);
            CHECK_MESSAGE(signbit(fv__atan2(x, y)) == signbit(a) || isnan(a), "sign of atan2(%g, %g)", x, y);
            CHECK_MESSAGE(ulps(fv__atan2(x, y), atan2l(x, y)) <= 0.9, "atan2(%g, %g) is %g, not %g", x, y, fv__atan2(x, y), a);
        }
    }
    CHECK(fv__exp(0) == 1 && fv__exp(-800) == 0 && fv__exp(709.79) == INFINITY && fv__ln(1) == 0);
}

TEST_MAIN
