/* Parallel rays through a bundle of slices: projection by Joseph's method, its exact adjoint, and plain back-projection.
 *
 * All slices of a volume are crossed alike, so 16 of them lie innermost and share every index and weight. A bundle of an image is
 * [rows + 4][width + 4][16], a bundle of a sinogram [angles][columns + 4][16]; both have a border of two zeros on each side, so
 * that rays may leave them. Places on the detector and along lines of voxels are integers with 32 bits of fraction: sums of them
 * are exact, and nothing depends on where a region starts.
 */
#ifndef FV_BEAM_H
#define FV_BEAM_H

#include "op/op.h"

enum { FV_BEAM_LANES = 16, FV_BEAM_PAD = 2 };

typedef struct fv_beam_angle {
    int64_t base, along_x, along_y;    /* detector column that sees voxel (0, 0); what a voxel further along x and y adds */
    int64_t start, by_column, by_line; /* where ray 0 meets line 0 of the voxels; what the next ray and the next line add */
    float   inverse;                   /* length of a ray between two lines: 1 / max(|cos|, |sin|) */
    bool    upright;                   /* the ray meets each row once (else each column once) */
} fv_beam_angle;

typedef struct fv_beam {
    int64_t        nangles, columns; /* of the detector */
    int64_t        rows, width;      /* of a slice */
    fv_beam_angle *angle;
} fv_beam;

typedef enum fv_beam_weights { FV_BEAM_JOSEPH, FV_BEAM_LINEAR } fv_beam_weights;

/* Fills beam->angle[0 .. nangles). Every instruction set gives the same bits. */
void                  FV_ISA_NAME(fv__beam_prepare)(fv_beam *beam, const fv_geometry *geometry);
static inline int64_t fv__beam_image_bytes(const fv_beam *b) {
    return (b->rows + 2 * FV_BEAM_PAD) * (b->width + 2 * FV_BEAM_PAD) * FV_BEAM_LANES * (int64_t)sizeof(float);
}
static inline int64_t fv__beam_sinogram_bytes(const fv_beam *b) {
    return b->nangles * (b->columns + 2 * FV_BEAM_PAD) * FV_BEAM_LANES * (int64_t)sizeof(float);
}
static inline float *fv__beam_voxel(const fv_beam *b, float *image, int64_t y, int64_t x) {
    return image + ((y + FV_BEAM_PAD) * (b->width + 2 * FV_BEAM_PAD) + x + FV_BEAM_PAD) * FV_BEAM_LANES;
}
static inline float *fv__beam_ray(const fv_beam *b, float *sinogram, int64_t angle, int64_t column) {
    return sinogram + (angle * (b->columns + 2 * FV_BEAM_PAD) + column + FV_BEAM_PAD) * FV_BEAM_LANES;
}

/* Line integrals of the image: rays first .. first + count of one angle, to[count][16]. */
void FV_ISA_NAME(fv__beam_project)(const fv_beam *beam, const float *image, int64_t angle, int64_t first, int64_t count,
                                   float *to);
/* Sum over angles [from, until) of what the voxels (y, x .. x + count) take from the sinogram, to[count][16]. Joseph's weights
 * make it the adjoint of the projection, linear ones interpolate. `from` must be a multiple of 64 or until == from + 1. */
void FV_ISA_NAME(fv__beam_gather)(const fv_beam *beam, const float *sinogram, fv_beam_weights weights, int64_t from,
                                  int64_t until, int64_t y, int64_t x, int64_t count, float *to);
/* Goes on with such a sum over all angles: adds [from, until), whose projections are the first of this sinogram. to[count][16]
 * and open[count][2][16] begin as zeros; open holds what belongs to `to` when its block of angles is complete, as it is behind
 * the last angle: then `to` has the bits of fv__beam_gather. */
void FV_ISA_NAME(fv__beam_gather_on)(const fv_beam *beam, const float *sinogram, fv_beam_weights weights, int64_t from,
                                     int64_t until, int64_t y, int64_t x, int64_t count, float *open, float *to);

/* Length of each ray of an angle inside the slice, to[columns]: what the projection of ones gives. */
void FV_ISA_NAME(fv__beam_lengths)(const fv_beam *beam, int64_t angle, float *to);
/* What the voxels of row y take from projections of ones at angles [from, until), to[width]. */
void FV_ISA_NAME(fv__beam_coverage)(const fv_beam *beam, int64_t from, int64_t until, int64_t y, float *to);
/* Row y of the image takes from one angle of the sinogram the mean of what its rays hold, times step[16]. */
void FV_ISA_NAME(fv__beam_correct)(const fv_beam *beam, const float *sinogram, int64_t angle, int64_t y, const float *step,
                                   float *image);

/* One ray: where it meets each line of voxels and how the two neighbours there weigh. Arrays of max(rows, width) + 16. */
typedef struct fv_beam_trail {
    int64_t  nlines, next; /* floats between the two neighbours */
    int32_t *offset;
    float   *low, *high;
} fv_beam_trail;
/* Gives the sum of the squared weights; the ray's length between two lines, `inverse`, is not in them. */
float FV_ISA_NAME(fv__beam_trace)(const fv_beam *beam, int64_t angle, int64_t ray, fv_beam_trail *trail);
/* Sum of weights times voxels, to[16]; weights times amount[16] added to the voxels. */
void FV_ISA_NAME(fv__beam_dot)(const fv_beam_trail *trail, const float *image, float *to);
void FV_ISA_NAME(fv__beam_add)(const fv_beam_trail *trail, const float *amount, float *image);

#endif
