/* Separable filters: one-dimensional sums over a box along its axes, one axis after the other, in one sweep over a
 * region. Used by gaussian, uniform and others like them.
 *
 * The result of a voxel depends on the voxels of its window alone, not on the region it is computed in: the order of every
 * sum is fixed (weights: ascending; mean: groups anchored at multiples of eight), slow axis first.
 */
#ifndef FV_SEPARABLE_H
#define FV_SEPARABLE_H

#include "kernels/box.h"

enum { FV_SEPARABLE_MAX_TAPS = 1 << 16 }; /* per axis */

typedef struct fv_separable {
    fv_box box; /* size 1 with weight 1 leaves an axis alone */
    /* Fills size[k] weights of the k-th axis; the first one belongs to the lowest index. NULL: the mean of the box. */
    void (*weights)(const void *params, int k, double *weights);
    const void *params;
    /* With weights and a constant outside: false, each axis sees the constant there, as in scipy; true, the image is surrounded
     * by the constant once, so that later axes see what the earlier sums make of it. */
    bool padded;
} fv_separable;

/* Compiled per instruction set; a caller uses its own. */
#define fv__separable_type FV_ISA_NAME(fv__separable_type)
#define fv__separable_scratch FV_ISA_NAME(fv__separable_scratch)
#define fv__separable_run FV_ISA_NAME(fv__separable_run)

/* Element type of the result: float32; float64 for float64 and 32 or 64-bit integers; complex stays complex. */
fv_dtype fv__separable_type(fv_dtype in);
size_t   fv__separable_scratch(const fv_separable *s, const fv_need *need);
void     fv__separable_run(const fv_separable *s, const fv_run *r);

#endif
