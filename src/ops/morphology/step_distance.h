/* How many steps lie between the voxels of a box and the nearest zero, axis by axis: steps along the axes (taxicab), or to any
 * neighbour (chessboard). The first axis is counted; along the others the result is the least of |offset| + before, or of the
 * larger of the two, over all offsets. */
#ifndef FV_STEP_DISTANCE_H
#define FV_STEP_DISTANCE_H

#include "op/op.h"

#define FV__STEPS_FAR (1 << 29) /* as far or further: no zero at all */

/* Rows of the last axis are dense; planes are ny * nx. Axes that an image lacks have length 1. */
typedef struct fv__steps {
    int64_t        nz, ny, nx;
    bool           chessboard;
    const int32_t *above, *below; /* a plane each: steps from the first and last plane to a zero outside; NULL: none */
    int32_t       *steps;         /* nz planes: the result */
    int32_t       *lines, *vertex, *start;
} fv__steps;

#define fv__steps_scratch FV_ISA_NAME(fv__steps_scratch)
#define fv__steps_run FV_ISA_NAME(fv__steps_run)

/* Lays out what a box needs (nz, ny, nx must be set); with scratch NULL only counts. */
size_t fv__steps_scratch(fv__steps *s, void *scratch);
/* steps holds 0 at zeros and anything else elsewhere; above and below are set. */
void fv__steps_run(fv__steps *s);

#endif
