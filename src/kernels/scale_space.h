/* Scales of an image: smoothing with a Gaussian, and the Laplacian of the smoothed image, over a region of up to three axes.
 *
 * Kernels are sampled, normalised and cut at 4 sigma as scipy.ndimage does; outside the image it is reflected. Both kernels are
 * symmetric, so the voxels at equal distance to both sides are added before they are weighted, which halves the work.
 * The result of a voxel depends on the voxels around it alone, not on the region: the order of every sum is fixed.
 */
#ifndef FV_SCALE_SPACE_H
#define FV_SCALE_SPACE_H

#include "op/op.h"

/* Along z, y, x; a missing side has n = size = 1 and sigma 0. */
typedef struct fv_scale_side {
    int64_t n;                 /* voxels of the image */
    int64_t in_start, in_size; /* held by the input */
    int64_t start, size;       /* wanted */
} fv_scale_side;

typedef struct fv_scale {
    bool          wide;      /* voxels are double, not float */
    bool          laplacian; /* of the smoothed image; else the smoothed image itself */
    double        factor;    /* of the result */
    double        sigma[3];  /* 0: the axis is left alone (and has no part in the Laplacian) */
    fv_scale_side side[3];
} fv_scale;

/* Compiled per instruction set; a caller uses its own. */
#define fv__scale_radius FV_ISA_NAME(fv__scale_radius)
#define fv__scale_scratch FV_ISA_NAME(fv__scale_scratch)
#define fv__scale_run FV_ISA_NAME(fv__scale_run)

int64_t fv__scale_radius(double sigma); /* voxels that are looked at on each side */
size_t  fv__scale_scratch(const fv_scale *scale);
/* in and out are dense boxes of in_size and size voxels. */
void fv__scale_run(const fv_scale *scale, const void *in, void *out, void *scratch);

#endif
