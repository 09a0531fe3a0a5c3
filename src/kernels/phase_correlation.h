/* How far one image is displaced against another: the correlation of both in two or three dimensions, its peaks, and where these
 * are to a fraction of a voxel.
 *
 *     size = fv__correlation_bytes(2, shape);
 *     fv__correlation_prepare(&c, 2, shape, memory);
 *     ... c.data[2 * i] = fixed, c.data[2 * i + 1] = moving, dense, zero where there is nothing ...
 *     fv__correlation_run(&c, true);
 *     n = fv__correlation_peaks(&c, limit, peaks, most);
 *     fv__correlation_refine(&c, peaks[0].shift, shift);
 *
 * A shift is how far moving must be moved to lie upon fixed: fixed[i] = moving[i - shift].
 */
#ifndef FV_PHASE_CORRELATION_H
#define FV_PHASE_CORRELATION_H

#include "base/isa.h"
#include "kernels/spectrum.h"

typedef struct fv_correlation {
    int         ndim;
    int64_t     shape[3];
    fv_spectrum axis[3];
    double     *data; /* voxels of both, then rows of the correlation, as spectrum.h says */
} fv_correlation;

typedef struct fv_correlation_peak {
    int64_t shift[3];
    double  height;
} fv_correlation_peak;

int64_t FV_ISA_NAME(fv__correlation_bytes)(int ndim, const int64_t *shape);
void    FV_ISA_NAME(fv__correlation_prepare)(fv_correlation *c, int ndim, const int64_t *shape, void *memory);
/* phase: each frequency loses half of its size in the logarithm, between phase correlation, which noise disturbs, and the usual
 * correlation, which the coarsest features decide. */
void FV_ISA_NAME(fv__correlation_run)(fv_correlation *c, bool phase);
/* The highest places of the correlation, none beside a higher one, along each axis at most `limit` from 0; gives how many. */
int FV_ISA_NAME(fv__correlation_peaks)(const fv_correlation *c, const int64_t *limit, fv_correlation_peak *peaks, int most);
/* Where a peak is between voxels. The correlation is smooth there, so that a few voxels around tell it: as upsampling it, without
 * end (Guizar-Sicairos, Thurman, Fienup, Optics Letters 33, 2008). Needs ndim, shape and data alone. */
void FV_ISA_NAME(fv__correlation_refine)(const fv_correlation *c, const int64_t *peak, double *shift);

#endif
