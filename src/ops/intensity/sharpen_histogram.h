/* Sharpens a histogram that a smooth field has blurred: N3 and N4 of magnetic resonance images. */
#ifndef FV_SHARPEN_HISTOGRAM_H
#define FV_SHARPEN_HISTOGRAM_H

#include "base/isa.h"
#include "op/scratch.h"

typedef struct fv__sharpen {
    int64_t bins, size; /* size: a power of two with room around them */
    double *counts;     /* of the bins, from the least value to the greatest */
    double *expected;   /* by bin: the value that is behind the values in it */
    double *turn;       /* of the Fourier transform: cosines, then sines */
    double *blur;       /* transform of the Gaussian; it is real */
    double *a, *b;      /* two complex rows: real parts, then imaginary ones */
} fv__sharpen;

#define fv__sharpen_lay_out FV_ISA_NAME(fv__sharpen_lay_out)
#define fv__sharpen_prepare FV_ISA_NAME(fv__sharpen_prepare)
#define fv__sharpen_run FV_ISA_NAME(fv__sharpen_run)

void fv__sharpen_lay_out(fv__sharpen *s, int64_t bins, fv_scratch *pieces);
void fv__sharpen_prepare(fv__sharpen *s); /* once */
/* Fills expected from counts. low: value of the first bin; step: between bins; width: of the Gaussian at half its height, as a
 * value; noise: of the Wiener filter. */
void fv__sharpen_run(fv__sharpen *s, double low, double step, double width, double noise);

#endif
