/* Exact sums in wide fixed-point numbers.
 *
 * Invariants:
 * 1. |word[i]| < (pending + 1) * 2^32, and pending < LIMIT, so that a word never overflows.
 * 2. Every finite value added is a multiple of 2^lowest.
 *
 * Method: small superaccumulators (R. M. Neal, Fast exact summation using small and large superaccumulators, 2015). */
#include "base/exact_sum.h"
#include <assert.h>
#include <math.h>

#define LIMIT ((int64_t)1 << 30)

static const struct {
    int words, lowest;
} kinds[] = {
    [FV_SUM_FLOAT32] = { 10, -149 },  [FV_SUM_FLOAT32_SQUARES] = { 19, -298 },
    [FV_SUM_FLOAT64] = { 67, -1074 }, [FV_SUM_FLOAT64_SQUARES] = { 133, -2148 },
    [FV_SUM_INTEGER] = { 7, 0 },
};

size_t fv__sum_size(fv_sum_kind kind) { return sizeof(fv_sum) + (size_t)kinds[kind].words * sizeof(int64_t); }

void fv__sum_init(fv_sum *sum, fv_sum_kind kind) {
    memset(sum, 0, fv__sum_size(kind));
    sum->words = kinds[kind].words;
    sum->lowest = kinds[kind].lowest;
}

/* ---------------------------------------------------------------- adding */

/* Moves carries up: all words but the last become 0 ... 2^32 - 1, the last keeps the sign. */
static void carry(fv_sum *sum) {
    for (int i = 0; i < sum->words - 1; i++) {
        int64_t up = sum->word[i] >> 32;
        sum->word[i] &= 0xffffffff;
        sum->word[i + 1] += up;
    }
    sum->pending = 0;
}

/* Adds magnitude * 2^exponent. */
static void add_scaled(fv_sum *sum, bool negative, unsigned __int128 magnitude, int exponent) {
    int offset = exponent - sum->lowest;
    if (offset < 0) { /* then these low bits are zero, by invariant 2 */
        magnitude = offset > -128 ? magnitude >> -offset : 0;
        offset = 0;
    }
    int      shift = offset & 31;
    int64_t *word = sum->word + (offset >> 5), sign = negative ? -1 : 1;
    uint64_t up = 0;
    for (; magnitude || up; magnitude >>= 32) {
        assert(word < sum->word + sum->words);
        uint64_t piece = ((uint64_t)(uint32_t)magnitude << shift) + up;
        *word++ += sign * (int64_t)(uint32_t)piece;
        up = piece >> 32;
    }
    if (++sum->pending == LIMIT) carry(sum);
}

static bool add_special(fv_sum *sum, double value) {
    if (isfinite(value)) return false;
    if (value != value)
        sum->nans++;
    else if (value > 0)
        sum->positive_infinities++;
    else
        sum->negative_infinities++;
    return true;
}

typedef struct {
    uint64_t mantissa;
    int      exponent;
    bool     negative;
} parts;

static parts split(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int      field = (int)(bits >> 52 & 0x7ff);
    uint64_t fraction = bits & 0xfffffffffffff;
    return (parts){ field ? fraction | (uint64_t)1 << 52 : fraction, FV_MAX(field, 1) - 1075, bits >> 63 };
}

void fv__sum_add(fv_sum *sum, double value) {
    if (add_special(sum, value)) return;
    parts p = split(value);
    add_scaled(sum, p.negative, p.mantissa, p.exponent);
}

void fv__sum_add_square(fv_sum *squares, double value) {
    if (add_special(squares, fabs(value))) return;
    parts p = split(value);
    add_scaled(squares, false, (unsigned __int128)p.mantissa * p.mantissa, 2 * p.exponent);
}

void fv__sum_add_integer(fv_sum *sum, bool negative, unsigned __int128 magnitude) { add_scaled(sum, negative, magnitude, 0); }

void fv__sum_merge(fv_sum *into, const fv_sum *from) {
    assert(into->words == from->words && into->lowest == from->lowest);
    carry(into);
    for (int i = 0; i < into->words; i++) into->word[i] += from->word[i];
    into->pending = from->pending + 1;
    if (into->pending >= LIMIT) carry(into);
    into->nans += from->nans;
    into->positive_infinities += from->positive_infinities;
    into->negative_infinities += from->negative_infinities;
}

/* ---------------------------------------------------------------- results: natural numbers of 32-bit limbs */

enum { LIMBS = 144 }; /* (67 + 1) * 2 of a square, 4 for the fraction of a quotient */
typedef struct {
    bool     negative, inexact; /* inexact: something not zero was cut off below the last limb */
    int      count, exponent;   /* the last bit is worth 2^exponent */
    uint32_t limb[LIMBS];
} number;

static void number_from(number *to, const fv_sum *sum) {
    fv_sum_any copy;
    memcpy(&copy, sum, sizeof(fv_sum) + (size_t)sum->words * sizeof(int64_t));
    carry(&copy.sum);
    int64_t top = copy.sum.word[sum->words - 1];
    *to = (number){ .negative = top < 0, .count = sum->words + 1, .exponent = sum->lowest };
    for (int i = 0; i < sum->words; i++) to->limb[i] = (uint32_t)copy.sum.word[i];
    to->limb[sum->words] = (uint32_t)(top >> 32);
    uint64_t up = 1;
    for (int i = 0; to->negative && i < to->count; i++) {
        up += (uint32_t)~to->limb[i];
        to->limb[i] = (uint32_t)up;
        up >>= 32;
    }
}

static void number_scale(number *a, uint64_t factor) { /* a *= factor */
    unsigned __int128 up = 0;
    a->limb[a->count] = a->limb[a->count + 1] = 0;
    a->count += 2;
    for (int i = 0; i < a->count; i++) {
        up += (unsigned __int128)a->limb[i] * factor;
        a->limb[i] = (uint32_t)up;
        up >>= 32;
    }
}

static void number_square(number *to, const number *a) {
    *to = (number){ .count = 2 * a->count, .exponent = 2 * a->exponent };
    for (int i = 0; i < a->count; i++) {
        uint64_t up = 0;
        for (int j = 0; j < a->count; j++) {
            up += (uint64_t)a->limb[i] * a->limb[j] + to->limb[i + j];
            to->limb[i + j] = (uint32_t)up;
            up >>= 32;
        }
        to->limb[i + a->count] = (uint32_t)up;
    }
}

static void number_subtract(number *a, const number *b) { /* a -= b, where b <= a and exponents agree */
    int64_t borrow = 0;
    a->count = FV_MAX(a->count, b->count); /* limbs above the count are zero */
    for (int i = 0; i < a->count; i++) {
        borrow += (int64_t)a->limb[i] - b->limb[i];
        a->limb[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
}

static void number_divide(number *a, uint64_t divisor) {
    unsigned __int128 rest = 0;
    for (int i = a->count - 1; i >= 0; i--) {
        rest = rest << 32 | a->limb[i];
        a->limb[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    a->inexact = a->inexact || rest != 0;
}

/* Appends n zero limbs below, so that a quotient keeps enough digits. */
static void number_extend(number *a, int n) {
    memmove(a->limb + n, a->limb, (size_t)a->count * sizeof *a->limb);
    memset(a->limb, 0, (size_t)n * sizeof *a->limb);
    a->count += n;
    a->exponent -= 32 * n;
}

static bool number_bit(const number *a, int position) {
    return position >= 0 && position < 32 * a->count && a->limb[position >> 5] >> (position & 31) & 1;
}

static bool number_any_below(const number *a, int position) {
    bool any = a->inexact;
    for (int i = 0; i < a->count && 32 * i < position; i++) {
        int bits = FV_MIN(position - 32 * i, 32);
        any = any || (bits == 32 ? a->limb[i] : a->limb[i] & ((1u << bits) - 1));
    }
    return any;
}

static double number_round(const number *a) { /* to nearest, ties to even, with subnormals */
    int top = a->count - 1;
    while (top >= 0 && !a->limb[top]) top--;
    if (top < 0) return 0;
    int      highest = 32 * top + 31 - __builtin_clz(a->limb[top]);
    int      unit = FV_MAX(highest + a->exponent - 52, -1074), position = unit - a->exponent;
    uint64_t mantissa = 0;
    for (int bit = FV_MAX(highest, position); bit >= position; bit--) mantissa = mantissa << 1 | number_bit(a, bit);
    if (number_bit(a, position - 1) && ((mantissa & 1) || number_any_below(a, position - 1))) mantissa++;
    double value = ldexp((double)mantissa, unit);
    return a->negative ? -value : value;
}

static bool special_value(const fv_sum *sum, double *value) {
    *value = sum->nans || (sum->positive_infinities && sum->negative_infinities) ? NAN
             : sum->positive_infinities                                          ? INFINITY
             : sum->negative_infinities                                          ? -INFINITY
                                                                                 : 0;
    return *value != 0;
}

double fv__sum_value(const fv_sum *sum) {
    double value;
    if (special_value(sum, &value)) return value;
    number a;
    number_from(&a, sum);
    return number_round(&a);
}

void fv__sum_value2(const fv_sum *sum, double *high, double *low) {
    *high = fv__sum_value(sum);
    *low = 0;
    if (!isfinite(*high)) return;
    fv_sum_any rest;
    memcpy(&rest, sum, sizeof(fv_sum) + (size_t)sum->words * sizeof(int64_t));
    carry(&rest.sum);
    parts p = split(*high);
    add_scaled(&rest.sum, !p.negative, p.mantissa, p.exponent);
    *low = fv__sum_value(&rest.sum);
}

/* Sums of integers are mostly small; the quotient of two numbers that a double holds exactly is rounded once by the processor. */
#define MOST_EXACT ((int64_t)1 << 53)

static bool small_integer(const fv_sum *sum, int64_t *value) {
    if (sum->lowest != 0 || sum->word[1] >= MOST_EXACT >> 34 || sum->word[1] <= -(MOST_EXACT >> 34)) return false;
    for (int i = 2; i < sum->words; i++)
        if (sum->word[i]) return false;
    *value = sum->word[0] + sum->word[1] * ((int64_t)1 << 32);
    return *value <= MOST_EXACT && *value >= -MOST_EXACT;
}

double fv__sum_mean(const fv_sum *sum, int64_t count) {
    double  value;
    int64_t small;
    if (count <= 0) return NAN;
    if (special_value(sum, &value)) return value;
    if (count <= MOST_EXACT && small_integer(sum, &small)) return (double)small / (double)count;
    number a;
    number_from(&a, sum);
    number_extend(&a, 4);
    number_divide(&a, (uint64_t)count);
    return number_round(&a);
}

double fv__sum_variance(const fv_sum *sum, const fv_sum *squares, int64_t count) {
    double value;
    if (count <= 0 || special_value(sum, &value) || special_value(squares, &value)) return NAN;
    int64_t s, q;
    if (count <= 1 << 26 && small_integer(sum, &s) && small_integer(squares, &q)) {
        __int128 spread = (__int128)q * count - (__int128)s * s;
        if (spread <= MOST_EXACT) return (double)spread / ((double)count * (double)count);
    }
    number a, b, square;
    number_from(&a, squares);
    number_from(&b, sum);
    number_scale(&a, (uint64_t)count);
    number_square(&square, &b);
    number_subtract(&a, &square); /* count * squares >= sum^2, by Cauchy and Schwarz */
    number_extend(&a, 4);
    number_divide(&a, (uint64_t)count);
    number_divide(&a, (uint64_t)count);
    return number_round(&a);
}

static bool number_natural(const number *a, uint64_t *value) {
    for (int i = 2; i < a->count; i++)
        if (a->limb[i]) return false;
    *value = (uint64_t)a->limb[1] << 32 | a->limb[0];
    return true;
}

bool fv__sum_integer_value(const fv_sum *sum, int64_t *value) {
    number   a;
    uint64_t natural;
    number_from(&a, sum);
    if (!number_natural(&a, &natural) || natural > (uint64_t)INT64_MAX + a.negative) return false;
    *value = (int64_t)(a.negative ? 0 - natural : natural);
    return true;
}

bool fv__sum_natural_value(const fv_sum *sum, uint64_t *value) {
    number a;
    number_from(&a, sum);
    return number_natural(&a, value) && (!a.negative || !*value);
}
