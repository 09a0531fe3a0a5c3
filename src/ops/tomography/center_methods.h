/* Ways to find the column of the axis of rotation. */
#ifndef FV_CENTER_METHODS_H
#define FV_CENTER_METHODS_H

#include "op/op.h"

/* From two projections half a turn apart, each rows x n: where one and the mirrored other differ least (mirror), or where they
 * correlate best by phase (phase). */
double FV_ISA_NAME(fv__center_mirror)(const float *a, const float *b, int64_t rows, int64_t n);
double FV_ISA_NAME(fv__center_phase)(const float *a, const float *b, int64_t rows, int64_t n);
/* From a sinogram angles x n whose angles, in degrees, increase over half a turn: where its continuation by its own mirror image
 * leaves least outside the double wedge of a sinogram's spectrum. */
double FV_ISA_NAME(fv__center_vo)(const float *sinogram, const double *angle, int64_t nangles, int64_t n);

#endif
