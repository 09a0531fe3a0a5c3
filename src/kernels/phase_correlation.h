/* How far one image is displaced against another: phase correlation in two or three dimensions, to a fraction of a voxel.
 *
 *     size = fv__phase_bytes(2, shape);
 *     fv__phase_prepare(&p, 2, shape, memory);
 *     ... p.data[2 * i] = fixed, p.data[2 * i + 1] = moving, dense, zero where there is nothing ...
 *     fv__phase_correlate(&p, 1);
 *     n = fv__phase_peaks(&p, limit, peaks, most);
 *     fv__phase_refine(&p, peaks[0].shift, shift);
 *
 * A shift is how far moving must be moved to lie upon fixed: fixed[i] = moving[i - shift].
 * The fraction comes from a transform on a grid of tenths of voxels around the peak alone (Guizar-Sicairos, Thurman, Fienup,
 * Optics Letters 33, 2008), and a parabola through the highest of these.
 */
#ifndef FV_PHASE_CORRELATION_H
#define FV_PHASE_CORRELATION_H

#include "base/isa.h"
#include "kernels/spectrum.h"

typedef struct fv_phase {
    int         ndim;
    int64_t     shape[3];
    fv_spectrum axis[3];
    double     *data;  /* voxels, then the correlation in its real parts */
    double     *cross; /* the spectrum of the correlation */
    double     *waves; /* for fv__phase_refine */
    double     *sums;
    int64_t     half; /* of sums */
} fv_phase;

typedef struct fv_phase_peak {
    int64_t shift[3];
    double  height; /* of the correlation */
} fv_phase_peak;

int64_t FV_ISA_NAME(fv__phase_bytes)(int ndim, const int64_t *shape);
void    FV_ISA_NAME(fv__phase_prepare)(fv_phase *p, int ndim, const int64_t *shape, void *memory);
/* whitening: how much of the size of each frequency is taken away; 1: all, which is phase correlation, 0: none, the usual
 * correlation, between: coarse features count more than fine ones, which noise hides. */
void FV_ISA_NAME(fv__phase_correlate)(fv_phase *p, double whitening);
/* The highest places of the correlation, none beside a higher one, along each axis at most `limit` from 0; gives how many. */
int  FV_ISA_NAME(fv__phase_peaks)(const fv_phase *p, const int64_t *limit, fv_phase_peak *peaks, int most);
void FV_ISA_NAME(fv__phase_refine)(const fv_phase *p, const int64_t *peak, double *shift);

#endif
