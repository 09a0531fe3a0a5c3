/* Elementary functions with the same bits on every processor: only + - * /, comparisons and integer operations on the
 * bits, in a fixed order, without fused multiply-add and without tables, so that a loop over them vectorises in each
 * instruction set. libm is not used because its results change with the processor.
 *
 *     for (int64_t i = 0; i < n; i++) out[i] = fv__exp(in[i]);
 *
 * Special values as in C99, annex F. Errors stated in units of the last place (ulp) are bounds found by test_math.c. A float
 * result is the double result rounded: (float)fv__exp(x).
 *
 * Sine, cosine and tangent branch to an exact reduction outside +-FV_TRIG_LIMIT, which stops vectorisation: a kernel calls
 * the _small function on a whole strip and then repairs the few arguments beyond the limit.
 *
 * Polynomials are Chebyshev interpolants (err: largest absolute error of the term they stand for); products that must be
 * exact use Dekker's splitting (T. J. Dekker, A floating-point technique for extending the available precision, 1971).
 */
#ifndef FV_MATH_H
#define FV_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t fv__bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline double fv__from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* The upper 26 bits of the mantissa: products of two such numbers are exact. */
static inline double fv__upper(double x) { return fv__from_bits(fv__bits(x) & 0xfffffffff8000000u); }
/* high + low = a * b but for 2^-105 of it. */
static inline double fv__product(double a, double b, double *low) {
    double ah = fv__upper(a), al = a - ah, bh = fv__upper(b), bl = b - bh, high = a * b;
    *low = ((ah * bh - high) + ah * bl + al * bh) + al * bl;
    return high;
}
static inline double fv__with_sign(double size, double sign) {
    return fv__from_bits((fv__bits(size) & INT64_MAX) | (fv__bits(sign) & ~(uint64_t)INT64_MAX));
}
/* (top + top_rest) / (bottom + bottom_rest) = result + *low. */
static inline double fv__quotient(double top, double top_rest, double bottom, double bottom_rest, double *low) {
    double quotient = top / bottom, error, product = fv__product(quotient, bottom, &error);
    *low = (((top - product) - error) + (top_rest - quotient * bottom_rest)) / bottom;
    return quotient;
}
#define FV__ROUND 0x1.8p52 /* x + FV__ROUND - FV__ROUND is x rounded to an integer, which is also in the sum's low bits */

/* ---------------------------------------------------------------- exponential */

/* x + extra = k ln 2 + r, |r| <= 0.347; exp(r) - 1 = result + *rest; k also as an integer. */
static inline double fv__exp_reduced(double x, double extra, uint64_t *k_bits, double *k, double *rest) {
    double shifted = x * 0x1.71547652b82fep+0 + FV__ROUND;
    *k = shifted - FV__ROUND;
    *k_bits = fv__bits(shifted) - fv__bits(FV__ROUND);
    double high = x - *k * 0x1.62e42feep-1, low = *k * 0x1.a39ef35793c76p-33 - extra;
    double r = high - low, tail = (high - r) - low;
    double p = 0x1.1f7340dbc337ep-29; /* err 2^-61 */
    p = p * r + 0x1.af4e554377204p-26;
    p = p * r + 0x1.27e4db46cddd1p-22;
    p = p * r + 0x1.71de01fdbf9cap-19;
    p = p * r + 0x1.a01a01a6e1e2ap-16;
    p = p * r + 0x1.a01a01abf85abp-13;
    p = p * r + 0x1.6c16c16c162c3p-10;
    p = p * r + 0x1.11111111100bep-7;
    p = p * r + 0x1.5555555555556p-5;
    p = p * r + 0x1.5555555555557p-3;
    p = p * r + 0.5;
    tail += r * r * p;
    double result = r + tail;
    *rest = (r - result) + tail;
    return result;
}

/* exp(x + extra) for any x, where extra is much smaller. */
static inline double fv__exp_extra(double x, double extra) {
    double   clipped = x < -746 ? -746 : x > 710 ? 710 : x, k, rest;
    uint64_t k_bits;
    double   y = 1 + fv__exp_reduced(clipped, extra, &k_bits, &k, &rest);
    /* 2^k in two factors, so that subnormal results are rounded once and 2^1024 is not needed */
    uint64_t half = fv__bits(k * 0.5 + FV__ROUND) - fv__bits(FV__ROUND);
    return y * fv__from_bits((half + 1023) << 52) * fv__from_bits((k_bits - half + 1023) << 52);
}

static inline double fv__exp(double x) { return fv__exp_extra(x, 0); } /* 0.9 ulp */

/* ---------------------------------------------------------------- logarithms */

/* x = 2^k m, sqrt(1/2) <= m < sqrt(2); for positive finite x. */
static inline double fv__log_split(double x, double *k) {
    const uint64_t root_half = 0x3fe6a09e667f3bcdu, one = 0x3ff0000000000000u, mantissa = 0x000fffffffffffffu;
    int            subnormal = x < 0x1p-1022;
    uint64_t       bits = fv__bits(subnormal ? x * 0x1p54 : x) + (one - root_half);
    *k = fv__from_bits(0x4330000000000000u | bits >> 52) - (subnormal ? 0x1p52 + 1023 + 54 : 0x1p52 + 1023);
    return fv__from_bits((bits & mantissa) + root_half);
}

static inline double fv__log_special(double x, double result) {
    result = x == INFINITY ? INFINITY : result;
    result = x == 0 ? -INFINITY : result;
    result = x < 0 ? (double)NAN : result;
    return x != x ? x : result;
}

static inline double fv__ln(double x) { /* natural logarithm, 0.9 ulp; fv__log writes messages */
    double k, f = fv__log_split(x, &k) - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double p = 0x1.0c0aff044a970p-3; /* log(1 + f) = 2 atanh(s); err 2^-59 */
    p = p * z + 0x1.0fbde0f4ad17bp-3;
    p = p * z + 0x1.3b1c3c1c81c8fp-3;
    p = p * z + 0x1.745cf8e4bba1bp-3;
    p = p * z + 0x1.c71c7201a55d7p-3;
    p = p * z + 0x1.2492492476a1ap-2;
    p = p * z + 0x1.9999999999a39p-2;
    p = p * z + 0x1.5555555555555p-1;
    double tail = s * (half + z * p) + k * 0x1.a39ef35793c76p-33; /* 2s = f - s f, and s f = half - s half */
    return fv__log_special(x, k * 0x1.62e42feep-1 + (f - (half - tail)));
}

/* log(m) = high + low with about 66 good bits, for m as fv__log_split gives it. */
static inline double fv__log_accurate(double m, double *low) {
    double f = m - 1, g = m + 1, inverse = 1 / g, s = f * inverse;
    double sh = fv__upper(s), sl = s - sh, gh = fv__upper(g), gl = (g - gh) + (m - (g - 1));
    double s_low = (((f - sh * gh) - sh * gl) - sl * g) * inverse; /* s + s_low = f / g */
    double z = s * s, zh = fv__upper(z), z_low = ((sh * sh - z) + 2 * sh * sl) + sl * sl + 2 * s * s_low;
    double p = 0x1.e03a7acf07f85p-5; /* atanh(s) = s (1 + z/3 + z^2 p); err 2^-66 */
    p = p * z + 0x1.df7ba1f4809c3p-5;
    p = p * z + 0x1.1118cd67251c5p-4;
    p = p * z + 0x1.3b1395b82701ep-4;
    p = p * z + 0x1.745d177ad436ap-4;
    p = p * z + 0x1.c71c71c6ea5acp-4;
    p = p * z + 0x1.2492492492522p-3;
    p = p * z + 0x1.999999999999ap-3;
    double third = zh * 0x1.555555p-2; /* exact; the rest of z/3 is in below */
    double below = zh * 0x1.5555555555555p-28 + ((z - zh) + z_low) * 0x1.5555555555555p-2 + z * z * p;
    double u = third + below, u_low = (third - u) + below, v_low, v = fv__product(s, u, &v_low);
    double high = s + v;
    *low = 2 * (((s - high) + v) + (v_low + s * u_low + s_low * (1 + u)));
    return 2 * high;
}

static inline double fv__log2(double x) { /* 0.6 ulp; exact for powers of two */
    double k, low, high = fv__log_accurate(fv__log_split(x, &k), &low), upper = fv__upper(high);
    double main = upper * 0x1.715476p+0, rest = upper * 0x1.4ae0bf85ddf44p-26 + ((high - upper) + low) * 0x1.71547652b82fep+0;
    double sum = k + main;
    return fv__log_special(x, sum + (((k - sum) + main) + rest));
}

static inline double fv__log10(double x) { /* 0.6 ulp; exact for powers of ten */
    double k, low, high = fv__log_accurate(fv__log_split(x, &k), &low), upper = fv__upper(high);
    double main = upper * 0x1.bcb7b1p-2, rest = upper * 0x1.49b9438ca9aaep-28 + ((high - upper) + low) * 0x1.bcb7b1526e50ep-2;
    double scaled = k * 0x1.34413509f78p-2, sum = scaled + main;
    return fv__log_special(x, sum + (((scaled - sum) + main) + (rest + k * 0x1.fef311f12b358p-46)));
}

/* ---------------------------------------------------------------- power */

static inline double fv__pow_special(double x, double y, double size) {
    double ax = fabs(x), ay = fabs(y), half = ay * 0.5;
    int    whole = ay >= 0x1p52 || (ay + 0x1p52) - 0x1p52 == ay;
    int    odd = whole && ay < 0x1p53 && (half + 0x1p52) - 0x1p52 != half;
    double result = odd ? fv__with_sign(size, x) : size;
    result = x < 0 && !whole && ax != INFINITY ? (double)NAN : result;
    result = ax == 1 && ay == INFINITY ? 1 : result;
    result = x != x ? x : y != y ? y : result;
    return x == 1 || y == 0 ? 1 : result;
}

static inline double fv__pow(double x, double y) { /* 0.9 ulp */
    double ax = fabs(x), k, low, high = fv__log_accurate(fv__log_split(ax, &k), &low);
    double scaled = k * 0x1.62e42fefa38p-1, sum = scaled + high;
    double rest = ((scaled - sum) + high) + (low + k * 0x1.ef35793c7673p-45);
    double error, product = fv__product(sum, y, &error);
    double extra = fabs(product) < 746 ? error + rest * y : 0;
    double edge = ax == 0 ? -y : y; /* infinite logarithms; only the sign counts */
    product = ax == 0 || ax == INFINITY ? (edge > 0 ? INFINITY : -INFINITY) : product;
    return fv__pow_special(x, y, fv__exp_extra(product, extra));
}

/* For float arguments: cheaper, rounded to float, 0.5001 float ulp. */
static inline float fv__log2f(float x) { return (float)(fv__ln(x) * 0x1.71547652b82fep+0); }
static inline float fv__log10f(float x) { return (float)(fv__ln(x) * 0x1.bcb7b1526e50ep-2); }
static inline float fv__powf(float x, float y) {
    double product = fv__ln(fabs((double)x)) * y;
    return (float)fv__pow_special(x, y, fv__exp(product));
}

/* ---------------------------------------------------------------- sine, cosine, tangent */

#define FV_TRIG_LIMIT 0x1p20
/* For larger arguments: r + low = x - k pi/2, |r| <= pi/4; returns k modulo 4. NaN for infinities and NaN. */
uint64_t fv__trig_reduce(double x, double *r, double *low);

static inline uint64_t fv__trig_reduce_small(double x, double *r, double *low) {
    double shifted = x * 0x1.45f306dc9c883p-1 + FV__ROUND, k = shifted - FV__ROUND;
    double t = x - k * 0x1.921fb544p+0, w = k * 0x1.0b4611a6p-34; /* both exact */
    double d = t - w, back = t - d, error = (t - (d + back)) + (back - w) - k * 0x1.3198a2e037073p-69;
    *r = d + error;
    *low = (d - *r) + error;
    return fv__bits(shifted);
}

/* sin(r + low) = result + *rest, |r| <= pi/4; err 2^-57 */
static inline double fv__sin_reduced(double r, double low, double *rest) {
    double z = r * r, p = -0x1.ab16f5caa198ap-41;
    p = p * z + 0x1.61217d9252c03p-33;
    p = p * z - 0x1.ae645410e937bp-26;
    p = p * z + 0x1.71de3a545f836p-19;
    p = p * z - 0x1.a01a01a01992fp-13;
    p = p * z + 0x1.1111111111110p-7;
    p = p * z - 0x1.5555555555555p-3;
    double tail = r * z * p + low * (1 - 0.5 * z), sine = r + tail;
    *rest = (r - sine) + tail;
    return sine;
}

static inline double fv__cos_reduced(double r, double low, double *rest) { /* err 2^-60 */
    double z = r * r, half = 0.5 * z, w = 1 - half, p = -0x1.907cd8ff5ede7p-37;
    p = p * z + 0x1.1eeb67d026ec6p-29;
    p = p * z - 0x1.27e4fa16cc2d1p-22;
    p = p * z + 0x1.a01a019f4ddfdp-16;
    p = p * z - 0x1.6c16c16c16963p-10;
    p = p * z + 0x1.5555555555555p-5;
    double tail = ((1 - w) - half) + (z * z * p - r * low), cosine = w + tail;
    *rest = (w - cosine) + tail;
    return cosine;
}

static inline double fv__sin_quadrant(double r, double low, uint64_t quadrant) {
    double unused, s = fv__sin_reduced(r, low, &unused), c = fv__cos_reduced(r, low, &unused);
    return fv__from_bits(fv__bits(quadrant & 1 ? c : s) ^ (quadrant & 2) << 62);
}

static inline double fv__tan_quadrant(double r, double low, uint64_t quadrant) {
    double s_rest, c_rest, s = fv__sin_reduced(r, low, &s_rest), c = fv__cos_reduced(r, low, &c_rest);
    int    swap = quadrant & 1;
    double top = swap ? -c : s, top_rest = swap ? -c_rest : s_rest, bottom = swap ? s : c, bottom_rest = swap ? s_rest : c_rest;
    return fv__quotient(top, top_rest, bottom, bottom_rest, &s_rest) + s_rest;
}

static inline double fv__sin_small(double x) { /* 0.8 ulp */
    double   r, low;
    uint64_t quadrant = fv__trig_reduce_small(x, &r, &low);
    return x == 0 ? x : fv__sin_quadrant(r, low, quadrant);
}
static inline double fv__cos_small(double x) { /* 0.8 ulp */
    double   r, low;
    uint64_t quadrant = fv__trig_reduce_small(x, &r, &low);
    return fv__sin_quadrant(r, low, quadrant + 1);
}
static inline double fv__tan_small(double x) { /* 1.0 ulp */
    double   r, low;
    uint64_t quadrant = fv__trig_reduce_small(x, &r, &low);
    return x == 0 ? x : fv__tan_quadrant(r, low, quadrant);
}

static inline double fv__sin(double x) {
    double r, low;
    if (fabs(x) <= FV_TRIG_LIMIT) return fv__sin_small(x);
    uint64_t quadrant = fv__trig_reduce(x, &r, &low);
    return fv__sin_quadrant(r, low, quadrant);
}
static inline double fv__cos(double x) {
    double r, low;
    if (fabs(x) <= FV_TRIG_LIMIT) return fv__cos_small(x);
    uint64_t quadrant = fv__trig_reduce(x, &r, &low);
    return fv__sin_quadrant(r, low, quadrant + 1);
}
static inline double fv__tan(double x) {
    double r, low;
    if (fabs(x) <= FV_TRIG_LIMIT) return fv__tan_small(x);
    uint64_t quadrant = fv__trig_reduce(x, &r, &low);
    return fv__tan_quadrant(r, low, quadrant);
}

/* ---------------------------------------------------------------- inverse tangent */

static inline double fv__atan_reduced(double t) { /* atan(t) - t for |t| <= tan(pi/8); err 2^-58 */
    double z = t * t, p = 0x1.0a997ba33c1dbp-6;
    p = p * z - 0x1.1b1992aa413c9p-5;
    p = p * z + 0x1.74d3a7b43351ap-5;
    p = p * z - 0x1.ac7858539e493p-5;
    p = p * z + 0x1.e199c62156609p-5;
    p = p * z - 0x1.110e84aa36d9dp-4;
    p = p * z + 0x1.3b1392a9c2d8bp-4;
    p = p * z - 0x1.745d165c497f3p-4;
    p = p * z + 0x1.c71c71c2fc236p-4;
    p = p * z - 0x1.249249248d739p-3;
    p = p * z + 0x1.9999999999952p-3;
    p = p * z - 0x1.5555555555555p-2;
    return t * z * p;
}

/* Angle of the point (b, a) with a, b >= 0 of moderate size, measured from the other side if left. */
static inline double fv__angle(double a, double b, int left) {
    const double tan_pi_8 = 0x1.a827999fcef32p-2;
    int          low = a <= b * tan_pi_8, high = b <= a * tan_pi_8;
    double       difference = a - b, d = a - difference, d_rest = (a - (difference + d)) + (d - b);
    double       sum = a + b, e = sum - a, e_rest = (a - (sum - e)) + (b - e);
    double       top = low ? a : high ? -b : difference, top_rest = low | high ? 0 : d_rest;
    double       bottom = low ? b : high ? a : sum, bottom_rest = low | high ? 0 : e_rest;
    double       t_low, t = fv__quotient(top, top_rest, bottom, bottom_rest, &t_low);
    t_low = fabs(top) > 0x1p-900 ? t_low : 0; /* below, the splitting underflows, and t is exact enough */
    double base = left ? 0x1.2d97c7f3321d2p+1 : 0x1.921fb54442d18p-1, end = left ? 0x1.921fb54442d18p+1 : 0;
    double rest = left ? 0x1.a79394c9e8a0ap-54 : 0x1.1a62633145c07p-55, end_rest = left ? 0x1.1a62633145c07p-53 : 0;
    base = high ? 0x1.921fb54442d18p+0 : low ? end : base;
    rest = high ? 0x1.1a62633145c07p-54 : low ? end_rest : rest;
    double tail = t_low + fv__atan_reduced(t), side = left ? -1 : 1;
    return base + (side * t + (side * tail + rest));
}

static inline double fv__atan(double x) { /* 0.9 ulp */
    double a = fabs(x);
    return fv__with_sign(a > 0x1p900 ? 0x1.921fb54442d18p+0 : fv__angle(a, 1, 0), x);
}

static inline double fv__atan2(double y, double x) { /* 0.9 ulp */
    double a = fabs(y), b = fabs(x), most = a > b ? a : b;
    double scale = most > 0x1p1000 ? 0x1p-100 : most < 0x1p-900 ? 0x1p120 : 1;
    int    far = a == INFINITY, wide = b == INFINITY; /* an infinity outweighs a number; two are the diagonal */
    a = (far ? 0x1p600 : wide ? a * 0 : a) * scale;
    b = wide ? 0x1p600 : far ? b * 0 : b;
    b = b * scale + (most == 0 ? 1 : 0); /* the origin: along the axis */
    return fv__with_sign(fv__angle(a, b, fv__bits(x) >> 63 != 0), y);
}

/* ---------------------------------------------------------------- hyperbolic tangent */

static inline double fv__tanh(double x) { /* 1.0 ulp */
    double   a = fabs(x), k, rest, low, twice = a > 22 ? 44 : 2 * a;
    uint64_t k_bits;
    double   y = fv__exp_reduced(twice, 0, &k_bits, &k, &rest), power = fv__from_bits((k_bits + 1023) << 52);
    double   e = (power - 1) + power * y; /* exp(2a) - 1 = e + rest */
    rest = (power * y - (e - (power - 1))) + power * rest;
    double sum = 2 + e, two = sum - e, sum_rest = (2 - two) + (e - (sum - two)) + rest;
    double tangent = fv__quotient(e, rest, sum, sum_rest, &low);
    tangent += tangent > 0x1p-500 ? low : 0; /* below, the splitting underflows, and the quotient is exact enough */
    return fv__with_sign(a < 1 ? tangent : 1 - 2 / sum, x);
}

#endif
