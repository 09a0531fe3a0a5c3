/* Filters of rows by their spectrum: a fast Fourier transform over two bundles of 16 rows that lie innermost, [n][2][16].
 *
 * The response is real, so the rows of the first bundle travel as the real parts and those of the second as the imaginary parts.
 * Rounding mixes them in the last bit: whoever needs the same bits always pairs the same rows. The transform leaves its result in
 * bit-reversed order, the response is kept in that order, and the way back starts from it. Its steps are in fourier_real.h;
 * whoever needs the spectrum itself takes spectrum.h, which has the same ones.
 */
#ifndef FV_FOURIER_H
#define FV_FOURIER_H

#include "base/isa.h"

typedef struct fv_fourier {
    int64_t n;        /* a power of two, at least 2 */
    float  *turn;     /* n floats: cosine and sine of n/2 angles */
    float  *response; /* n floats */
} fv_fourier;

/* Fills turn, and response from what each frequency 0 .. n/2 is multiplied with. */
void FV_ISA_NAME(fv__fourier_prepare)(fv_fourier *f, const double *response);
void FV_ISA_NAME(fv__fourier_filter)(const fv_fourier *f, float *rows);

#endif
