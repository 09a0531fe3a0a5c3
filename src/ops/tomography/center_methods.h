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
fv_status FV_ISA_NAME(fv__center_vo)(const float *sinogram, const double *angle, int64_t nangles, int64_t n, double *found,
                                     fv_error *error);

/* The sinogram of the plane in which a source turns, angles x n; angles in degrees increase over a whole turn. */
typedef struct fv_fan {
    const float  *sinogram;
    const double *angle;
    int64_t       nangles, n;
    double        distance, pitch; /* from source to detector */
} fv_fan;
double FV_ISA_NAME(fv__center_fan)(const fv_fan *fan);

/* Where a parabola through three neighbours has its summit, from the middle one; at most `most` away. */
static inline double fv__summit(double before, double middle, double after, double most) {
    double bend = before - 2 * middle + after, shift = bend != 0 ? 0.5 * (before - after) / bend : 0;
    return fabs(shift) <= most ? shift : 0;
}

#endif
