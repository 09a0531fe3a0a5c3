/* The shift between two images of the same shape, by the correlation of their spectra.
 *
 * The product of one spectrum with the other's conjugate has a phase that grows with frequency as the shift. Its amplitude is
 * halved in the logarithm (between correlation and phase correlation), weighted up with the frequency, and down where noise is
 * stronger than the picture: what comes back has its peak where the images fit best. It is smooth, so that its values between
 * voxels follow from a few around the peak: as upsampling it there, without end (Guizar-Sicairos and others, 2008). Long axes
 * are compared at half their resolution: at the border of what that keeps the weight is two fifths of its maximum, beyond it
 * falls fast, and a filter takes most of what halving would fold down. Where there is fine texture and nothing else, the middle
 * half is compared at full resolution instead, and shifts below half an axis are found; noise in which such texture is the only
 * thing that both show can hide it. A large shift is found twice, the second time from the part that both images show. The window
 * at the borders of both images stays where it is while the picture moves, and pulls a smooth picture towards no shift by up to a
 * quarter of a voxel: the images themselves then decide, see shift_refinement.c.
 */
#ifndef FV_PHASE_H
#define FV_PHASE_H

#include "kernels/spectrum.h"
#include "op/op.h"
#include "op/physical.h"
#include "op/scratch.h"

typedef struct fv_phase {
    int          n;
    int64_t      size[3], padded[3]; /* voxels along x, y, z; of a plane 1 along z; numbers of the spectra */
    int          bin[3];             /* voxels that become one before they are compared: 1 or 2 */
    const float *moving, *fixed;     /* x fastest */
    float       *room[2];            /* for those that do not lie in memory like this */
    double      *data;               /* complex, of the padded size; then rows of the correlation (spectrum.h) */
    fv_spectrum  axis[3];            /* slowest first */
    void        *memory[3];
    double      *taper[3], *square[3], *weight[3]; /* along x, y, z: of the window, the frequency's square and its weight */
    float       *line[10];                         /* rows, with a few voxels around */
} fv_phase;

/* What of both images is compared: voxel start + i of fixed and start + offset + i of moving, i below count. */
typedef struct fv_overlap {
    int64_t offset[3], start[3], count[3];
} fv_overlap;

#define fv__phase_lay_out FV_ISA_NAME(fv__phase_lay_out)
#define fv__phase_run FV_ISA_NAME(fv__phase_run)
#define fv__shift_refine FV_ISA_NAME(fv__shift_refine)
#define fv__shift_lay_out FV_ISA_NAME(fv__shift_lay_out)
#define fv__shift_settle FV_ISA_NAME(fv__shift_settle)

/* n and size are set. */
void fv__phase_lay_out(fv_phase *p, fv_scratch *pieces);
/* Voxel i of fixed shows what voxel i + shift of moving does. false: what both show is constant. */
bool fv__phase_run(fv_phase *p, double shift[3]);
/* Betters a shift that is right within a voxel or so by the images themselves, from the part that both show. Needs n, size, both
 * images and what fv__shift_lay_out takes alone. */
void fv__shift_lay_out(fv_phase *p, fv_scratch *pieces);
void fv__shift_settle(const fv_phase *p, double shift[3]);
/* Betters a shift that is right within a voxel; taper holds the window of the overlap. */
void fv__shift_refine(const fv_phase *p, const fv_overlap *o, double shift[3]);

#endif
