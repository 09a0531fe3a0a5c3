/* Sums of voxels times weights over a box of any weights. The terms are fused one by one into the sum, in the order of the box's
 * rows, so that the result does not depend on the region. Weights of 0 are left out: what they would look at does not matter. */
#ifndef FV_CORRELATE_H
#define FV_CORRELATE_H

#include "kernels/box.h"

/* Compiled per instruction set; a caller uses its own. */
#define fv__correlate_scratch FV_ISA_NAME(fv__correlate_scratch)
#define fv__correlate_run FV_ISA_NAME(fv__correlate_run)

/* The output block is float32 or float64 and is computed in that type. */
size_t fv__correlate_scratch(const fv_box *box, const fv_need *need);
void   fv__correlate_run(const fv_box *box, const double *weights, const fv_run *r);

#endif
