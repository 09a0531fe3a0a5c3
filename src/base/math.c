/* The part of base/math.h that needs wide integers: reduction of large angles modulo pi/2. */
#include "base/math.h"

/* 2/pi in binary, first bit worth 1/2. */
static const uint64_t two_over_pi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
};

/* 64 bits of 2/pi from a bit position; zeros before its first bit. */
static uint64_t bits_from(int position) {
    if (position <= -64) return 0;
    if (position < 0) return two_over_pi[0] >> -position;
    int      word = position >> 6, shift = position & 63;
    uint64_t bits = two_over_pi[word] << shift;
    return shift ? bits | two_over_pi[word + 1] >> (64 - shift) : bits;
}

/* M. Payne and R. Hanek, Radian reduction for trigonometric functions, 1983: only the bits of 2/pi that matter for the
 * quadrant and the fraction are multiplied. */
uint64_t fv__trig_reduce(double x, double *r, double *low) {
    if (!(fabs(x) < INFINITY)) {
        *r = *low = x - x;
        return 0;
    }
    uint64_t bits = fv__bits(x);
    int      exponent = (int)(bits >> 52 & 0x7ff) - 1075; /* |x| = mantissa 2^exponent */
    uint64_t mantissa = (bits & 0xfffffffffffff) | (uint64_t)1 << 52;
    /* Three words of 2/pi after the bits whose product is a multiple of 4; their product modulo 2^192, in units of 2^-190 */
    int               start = exponent - 2;
    unsigned __int128 c = (unsigned __int128)mantissa * bits_from(start + 128);
    unsigned __int128 b = (unsigned __int128)mantissa * bits_from(start + 64) + (uint64_t)(c >> 64);
    uint64_t          top = mantissa * bits_from(start) + (uint64_t)(b >> 64);
    uint64_t          quadrant = top >> 62;
    /* The fraction, -1/2 ... 1/2 of a quadrant, in 126 bits */
    unsigned __int128 fraction = ((unsigned __int128)top << 64 | (uint64_t)b) << 2 | (uint64_t)c >> 62;
    int               negative = (int)(fraction >> 127);
    if (negative) {
        fraction = -fraction;
        quadrant++;
    }
    double high = (double)(fraction >> 64 & ~(uint64_t)0x7ff) * 0x1p-64; /* the cut parts convert exactly or nearly */
    double rest = (double)(fraction & (((unsigned __int128)1 << 75) - 1)) * 0x1p-128, error;
    double product = fv__product(high, 0x1.921fb54442d18p+0, &error);
    error += rest * 0x1.921fb54442d18p+0 + high * 0x1.1a62633145c07p-54;
    double sum = product + error, left = (product - sum) + error;
    int    flip = negative != (x < 0);
    *r = flip ? -sum : sum;
    *low = flip ? -left : left;
    return x < 0 ? -quadrant : quadrant;
}
