/* The shift between two images of the same shape, by the correlation of their spectra.
 *
 * The product of one spectrum with the other's conjugate has a phase that grows with frequency as the shift. Its amplitude is
 * halved in the logarithm (between correlation and phase correlation), weighted up with the frequency, and down where noise is
 * stronger than the picture: what comes back has its peak where the images fit best. It is smooth, so that its values between
 * voxels follow from a few around the peak: as upsampling it there, without end (Guizar-Sicairos and others, 2008). A large shift
 * is found twice, the second time from the part that both images show.
 */
#ifndef FV_PHASE_H
#define FV_PHASE_H

#include "kernels/spectrum.h"
#include "op/op.h"
#include "op/scratch.h"

typedef struct fv_phase {
    int         n;
    int64_t     size[3], padded[3]; /* voxels along x, y, z; of a plane 1 along z */
    float      *moving, *fixed;     /* x fastest */
    double     *data;               /* complex, of the padded size */
    fv_spectrum axis[3];            /* slowest first */
    void       *memory[3];
    double     *taper[3], *square[3], *weight[3]; /* along x, y, z: of the window, the frequency's square and its weight */
} fv_phase;

#define fv__phase_lay_out FV_ISA_NAME(fv__phase_lay_out)
#define fv__phase_run FV_ISA_NAME(fv__phase_run)

/* n and size are set. */
void fv__phase_lay_out(fv_phase *p, fv_scratch *pieces);
/* Voxel i of fixed shows what voxel i + shift of moving does. false: what both show is constant. */
bool fv__phase_run(fv_phase *p, double shift[3]);

#endif
