/* Fourier transforms in double precision with the same bits everywhere, for finding displacements. Lengths are powers of two.
 * Not kernels/fourier.h, which filters bundles of rows in single precision and never needs the spectrum in order. */
#ifndef FV_SPECTRUM_H
#define FV_SPECTRUM_H

#include "op/op.h"

static inline int64_t fv__spectrum_length(int64_t least) {
    int64_t n = 1;
    while (n < least) n *= 2;
    return n;
}
/* turns[n]: cosines and sines for a transform of length n; at least 2 doubles. */
void FV_ISA_NAME(fv__spectrum_turns)(int64_t n, double *turns);
/* Of n complex numbers (real, imaginary) in place; inverse: without the division by n. */
void FV_ISA_NAME(fv__spectrum)(double *data, int64_t n, const double *turns, bool inverse);

#endif
