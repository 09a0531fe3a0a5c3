/* Steps of the fast Fourier transform, written once and compiled for float (fourier.c) and for double (spectrum.c): REAL, VECTOR,
 * LANES, R(name). They work in place on bundles of lines that lie innermost, [n][2][width]: real parts, then imaginary ones.
 * turn: cosine and sine of k / n turns, for k below n / 2.
 * Written out here, because a library chooses its steps by measuring: its last bits would differ between machines. */

/* Decimation in frequency: natural order to bit-reversed, for a power of two. */
FV_INLINE void R(in_frequency)(REAL *rows, int64_t n, int width, const REAL *turn) {
    for (int64_t half = n / 2; half >= 1; half /= 2) {
        int64_t every = n / 2 / half;
        for (int64_t start = 0; start < n; start += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                REAL  *p = rows + (start + k) * 2 * width, *q = p + half * 2 * width;
                VECTOR c = FV_PASTE(VECTOR, _splat)(turn[2 * k * every]), s = FV_PASTE(VECTOR, _splat)(turn[2 * k * every + 1]);
#pragma GCC unroll 4
                for (int v = 0; v < width; v += LANES) {
                    VECTOR a = FV_PASTE(VECTOR, _load)(p + v), ai = FV_PASTE(VECTOR, _load)(p + width + v);
                    VECTOR b = FV_PASTE(VECTOR, _load)(q + v), bi = FV_PASTE(VECTOR, _load)(q + width + v), d = a - b,
                           di = ai - bi;
                    FV_PASTE(VECTOR, _store)(p + v, a + b);
                    FV_PASTE(VECTOR, _store)(p + width + v, ai + bi);
                    FV_PASTE(VECTOR, _store)(q + v, d * c + di * s);
                    FV_PASTE(VECTOR, _store)(q + width + v, di * c - d * s);
                }
            }
    }
}

/* One step of a decimation in time: joins blocks of `half` numbers by pairs. sign: 1 of the inverse transform, else -1. */
FV_INLINE void R(pairs_in_time)(REAL *rows, int64_t n, int64_t half, int width, const REAL *turn, REAL sign) {
    int64_t every = n / 2 / half;
    for (int64_t start = 0; start < n; start += 2 * half)
        for (int64_t k = 0; k < half; k++) {
            REAL  *p = rows + (start + k) * 2 * width, *q = p + half * 2 * width;
            VECTOR c = FV_PASTE(VECTOR, _splat)(turn[2 * k * every]),
                   s = FV_PASTE(VECTOR, _splat)(turn[2 * k * every + 1] * sign);
#pragma GCC unroll 4
            for (int v = 0; v < width; v += LANES) {
                VECTOR a = FV_PASTE(VECTOR, _load)(p + v), ai = FV_PASTE(VECTOR, _load)(p + width + v);
                VECTOR b = FV_PASTE(VECTOR, _load)(q + v), bi = FV_PASTE(VECTOR, _load)(q + width + v);
                VECTOR t = b * c - bi * s, ti = bi * c + b * s;
                FV_PASTE(VECTOR, _store)(p + v, a + t);
                FV_PASTE(VECTOR, _store)(p + width + v, ai + ti);
                FV_PASTE(VECTOR, _store)(q + v, a - t);
                FV_PASTE(VECTOR, _store)(q + width + v, ai - ti);
            }
        }
}

/* Decimation in time: bit-reversed order to natural, for a power of two. */
FV_INLINE void R(in_time)(REAL *rows, int64_t n, int width, const REAL *turn, REAL sign) {
    for (int64_t half = 1; half < n; half *= 2) R(pairs_in_time)(rows, n, half, width, turn, sign);
}
