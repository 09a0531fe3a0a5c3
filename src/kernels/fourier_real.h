/* Steps of the fast Fourier transform, written once and compiled for float (fourier.c) and for double (spectrum.c): REAL, VECTOR,
 * LANES, R(name). They work in place on bundles of lines that lie innermost, [n][2][width]: real parts, then imaginary ones.
 * turn: cosine and sine of k / n turns, for k below n / 2.
 * Two steps are made at once wherever two are left: the numbers between them stay in registers, and their bits are the same.
 * Written out here, because a library chooses its steps by measuring: its last bits would differ between machines. */

#define R_V(name) FV_PASTE(VECTOR, name)

typedef struct complex_vector {
    VECTOR re, im;
} complex_vector;

FV_INLINE complex_vector R(number)(const REAL *p, int width) { return (complex_vector){ R_V(_load)(p), R_V(_load)(p + width) }; }

FV_INLINE void R(put_number)(REAL *p, int width, complex_vector v) {
    R_V(_store)(p, v.re);
    R_V(_store)(p + width, v.im);
}

/* Cosine and sine of an entry of the table, the sine with a sign. */
FV_INLINE complex_vector R(turn_at)(const REAL *turn, int64_t k, REAL sign) {
    return (complex_vector){ R_V(_splat)(turn[2 * k]), R_V(_splat)(turn[2 * k + 1] * sign) };
}

/* The sum of two numbers, and their difference turned. */
FV_INLINE void R(part)(complex_vector *a, complex_vector *b, complex_vector w) {
    VECTOR d = a->re - b->re, di = a->im - b->im;
    a->re = a->re + b->re;
    a->im = a->im + b->im;
    b->re = d * w.re + di * w.im;
    b->im = di * w.re - d * w.im;
}

/* Sum and difference of a number and another one turned. */
FV_INLINE void R(join)(complex_vector *a, complex_vector *b, complex_vector w) {
    VECTOR t = b->re * w.re - b->im * w.im, ti = b->im * w.re + b->re * w.im;
    b->re = a->re - t;
    b->im = a->im - ti;
    a->re = a->re + t;
    a->im = a->im + ti;
}

/* ---------------------------------------------------------------- decimation in frequency: natural order to bit-reversed */

FV_INLINE void R(pairs_in_frequency)(REAL *rows, int64_t n, int64_t half, int width, const REAL *turn) {
    int64_t every = n / 2 / half;
    for (int64_t start = 0; start < n; start += 2 * half)
        for (int64_t k = 0; k < half; k++) {
            REAL          *p = rows + (start + k) * 2 * width, *q = p + half * 2 * width;
            complex_vector w = R(turn_at)(turn, k * every, 1);
#pragma GCC unroll 4
            for (int v = 0; v < width; v += LANES) {
                complex_vector a = R(number)(p + v, width), b = R(number)(q + v, width);
                R(part)(&a, &b, w);
                R(put_number)(p + v, width, a);
                R(put_number)(q + v, width, b);
            }
        }
}

/* The steps of half and of half / 2. */
FV_INLINE void R(fours_in_frequency)(REAL *rows, int64_t n, int64_t half, int width, const REAL *turn) {
    int64_t every = n / 2 / half, quarter = half / 2, apart = quarter * 2 * width;
    for (int64_t start = 0; start < n; start += 2 * half)
        for (int64_t k = 0; k < quarter; k++) {
            REAL          *p = rows + (start + k) * 2 * width;
            complex_vector w0 = R(turn_at)(turn, k * every, 1), w1 = R(turn_at)(turn, (k + quarter) * every, 1),
                           w2 = R(turn_at)(turn, 2 * k * every, 1);
#pragma GCC unroll 4
            for (int v = 0; v < width; v += LANES) {
                complex_vector a = R(number)(p + v, width), b = R(number)(p + apart + v, width),
                               c = R(number)(p + 2 * apart + v, width), d = R(number)(p + 3 * apart + v, width);
                R(part)(&a, &c, w0);
                R(part)(&b, &d, w1);
                R(part)(&a, &b, w2);
                R(part)(&c, &d, w2);
                R(put_number)(p + v, width, a);
                R(put_number)(p + apart + v, width, b);
                R(put_number)(p + 2 * apart + v, width, c);
                R(put_number)(p + 3 * apart + v, width, d);
            }
        }
}

FV_INLINE void R(in_frequency)(REAL *rows, int64_t n, int width, const REAL *turn) {
    int64_t half = n / 2;
    for (; half >= 2; half /= 4) R(fours_in_frequency)(rows, n, half, width, turn);
    if (half == 1) R(pairs_in_frequency)(rows, n, half, width, turn);
}

/* ---------------------------------------------------------------- decimation in time: bit-reversed order to natural */

/* One step: joins blocks of `half` numbers by pairs. sign: 1 of the inverse transform, else -1. */
FV_INLINE void R(pairs_in_time)(REAL *rows, int64_t n, int64_t half, int width, const REAL *turn, REAL sign) {
    int64_t every = n / 2 / half;
    for (int64_t start = 0; start < n; start += 2 * half)
        for (int64_t k = 0; k < half; k++) {
            REAL          *p = rows + (start + k) * 2 * width, *q = p + half * 2 * width;
            complex_vector w = R(turn_at)(turn, k * every, sign);
#pragma GCC unroll 4
            for (int v = 0; v < width; v += LANES) {
                complex_vector a = R(number)(p + v, width), b = R(number)(q + v, width);
                R(join)(&a, &b, w);
                R(put_number)(p + v, width, a);
                R(put_number)(q + v, width, b);
            }
        }
}

/* The steps of half and of 2 * half. */
FV_INLINE void R(fours_in_time)(REAL *rows, int64_t n, int64_t half, int width, const REAL *turn, REAL sign) {
    int64_t every = n / 4 / half, apart = half * 2 * width;
    for (int64_t start = 0; start < n; start += 4 * half)
        for (int64_t k = 0; k < half; k++) {
            REAL          *p = rows + (start + k) * 2 * width;
            complex_vector w0 = R(turn_at)(turn, 2 * k * every, sign), w1 = R(turn_at)(turn, k * every, sign),
                           w2 = R(turn_at)(turn, (k + half) * every, sign);
#pragma GCC unroll 4
            for (int v = 0; v < width; v += LANES) {
                complex_vector a = R(number)(p + v, width), b = R(number)(p + apart + v, width),
                               c = R(number)(p + 2 * apart + v, width), d = R(number)(p + 3 * apart + v, width);
                R(join)(&a, &b, w0);
                R(join)(&c, &d, w0);
                R(join)(&a, &c, w1);
                R(join)(&b, &d, w2);
                R(put_number)(p + v, width, a);
                R(put_number)(p + apart + v, width, b);
                R(put_number)(p + 2 * apart + v, width, c);
                R(put_number)(p + 3 * apart + v, width, d);
            }
        }
}

/* All steps of a power of two. */
FV_INLINE void R(in_time)(REAL *rows, int64_t n, int64_t blocks, int width, const REAL *turn, REAL sign) {
    int64_t half = 1;
    for (; 4 * half <= blocks; half *= 4) R(fours_in_time)(rows, n, half, width, turn, sign);
    if (2 * half <= blocks) R(pairs_in_time)(rows, n, half, width, turn, sign);
}
