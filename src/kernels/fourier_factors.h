/* Fourier transforms of lengths with the factors 2, 3, 5 and 7: the power of two first (fourier_real.h), then each odd factor
 * joins blocks. Compiled like fourier_real.h, which it includes. */
#include "kernels/fourier_real.h"

enum { FV_MOST_FACTOR = 7 }; /* the largest factor of a direct transform */

/* The factor of the next step, smallest first: 2, 3, 5 or 7; 0: there is none. */
static inline int64_t fv__next_factor(int64_t rest) {
    for (int64_t factor = 2; factor <= FV_MOST_FACTOR; factor++)
        if (rest % factor == 0) return factor;
    return 0;
}

static inline bool fv__is_direct(int64_t n) {
    for (int64_t factor; n > 1; n /= factor)
        if (!(factor = fv__next_factor(n))) return false;
    return true;
}

/* The last step joins as many blocks as its factor says: number k is in block k % factor, at k / factor; and so on inside it. */
static inline int64_t fv__place_in_time(int64_t k, int64_t n) {
    int64_t factors[64] = { 0 }, count = 0, place = 0, size = n;
    for (int64_t rest = n; rest > 1; rest /= factors[count++]) factors[count] = fv__next_factor(rest);
    while (count--) {
        size /= factors[count];
        place += k % factors[count] * size;
        k /= factors[count];
    }
    return place;
}

/* The transform of `factor` numbers, an odd factor: numbers j and factor - j have the same cosines and opposite sines. */
FV_INLINE void R(join_numbers)(int factor, const VECTOR in[][2], VECTOR out[][2], const REAL *turn, int64_t every, REAL sign) {
    int    half = factor / 2;
    VECTOR plus[FV_MOST_FACTOR / 2][2], minus[FV_MOST_FACTOR / 2][2];
    for (int part = 0; part < 2; part++) {
        out[0][part] = in[0][part];
        for (int j = 0; j < half; j++) {
            plus[j][part] = in[j + 1][part] + in[factor - 1 - j][part];
            minus[j][part] = in[j + 1][part] - in[factor - 1 - j][part];
            out[0][part] += plus[j][part];
        }
    }
    for (int q = 1; q <= half; q++) {
        VECTOR even[2] = { in[0][0], in[0][1] }, odd[2] = { { 0 } };
        for (int j = 0; j < half; j++) {
            const REAL *t = turn + 2 * ((j + 1) * q % factor) * every;
            for (int part = 0; part < 2; part++) {
                even[part] += plus[j][part] * R_V(_splat)(t[0]);
                odd[part] += minus[j][part] * R_V(_splat)(t[1] * sign);
            }
        }
        out[q][0] = even[0] - odd[1];
        out[q][1] = even[1] + odd[0];
        out[factor - q][0] = even[0] + odd[1];
        out[factor - q][1] = even[1] - odd[0];
    }
}

/* One step in time that joins `factor` blocks of `size` numbers. */
FV_INLINE void R(join_blocks)(REAL *rows, int64_t n, int factor, int64_t size, int width, const REAL *turn, REAL sign) {
    int64_t every = n / (factor * size);
    for (int64_t start = 0; start < n; start += factor * size)
        for (int64_t k = 0; k < size; k++)
            for (int v = 0; v < width; v += LANES) {
                REAL  *p = rows + (start + k) * 2 * width + v;
                VECTOR in[FV_MOST_FACTOR][2], out[FV_MOST_FACTOR][2];
#pragma GCC unroll 7
                for (int j = 0; j < factor; j++) {
                    VECTOR a = R_V(_load)(p + j * size * 2 * width), b = R_V(_load)(p + j * size * 2 * width + width);
                    VECTOR c = R_V(_splat)(turn[2 * j * k * every]), t = R_V(_splat)(turn[2 * j * k * every + 1] * sign);
                    in[j][0] = a * c - b * t;
                    in[j][1] = b * c + a * t;
                }
                R(join_numbers)(factor, in, out, turn, n / factor, sign);
#pragma GCC unroll 7
                for (int j = 0; j < factor; j++) {
                    R_V(_store)(p + j * size * 2 * width, out[j][0]);
                    R_V(_store)(p + j * size * 2 * width + width, out[j][1]);
                }
            }
}

/* The steps of all odd factors; blocks of `size` numbers, the power of two in n, are done. */
FV_INLINE void R(odd_factors)(REAL *rows, int64_t n, int64_t size, int width, const REAL *turn, REAL sign) {
    for (int64_t factor; size < n; size *= factor) {
        factor = fv__next_factor(n / size);
        switch (factor) {
        case 3: R(join_blocks)(rows, n, 3, size, width, turn, sign); break;
        case 5: R(join_blocks)(rows, n, 5, size, width, turn, sign); break;
        default: R(join_blocks)(rows, n, 7, size, width, turn, sign); break;
        }
    }
}
