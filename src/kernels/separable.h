/* Separable filters: one-dimensional sums along up to three spatial axes, one axis after the other, in one sweep over a
 * region. Used by gaussian, uniform and others like them.
 *
 * The result of a voxel depends on the voxels of its window alone, not on the region it is computed in: the order of every
 * sum is fixed (weights: ascending; mean: groups anchored at multiples of eight), slow axis first.
 */
#ifndef FV_SEPARABLE_H
#define FV_SEPARABLE_H

#include "op/border.h"
#include "op/op.h"

enum { FV_SEPARABLE_MAX_TAPS = 1 << 16 }; /* per axis */

typedef struct fv_separable {
    int        naxes;      /* 1..3 spatial axes */
    int        axis[3];    /* their indices in the image, in order */
    int64_t    taps[3];    /* window length, at least 1; 1 with weight 1 leaves the axis alone */
    int64_t    before[3];  /* the window of voxel i is i - before ... i - before + taps - 1 */
    fv_border  border;
    double     cval;       /* for FV_BORDER_CONSTANT */
    /* Fills taps[k] weights of the k-th axis; the first one belongs to the lowest index. NULL: the mean of the window. */
    void     (*weights)(const void *params, int k, double *weights);
    const void *params;
} fv_separable;

/* Compiled per instruction set; a caller uses its own. */
#define fv_separable_type FV_ISA_NAME(fv_separable_type)
#define fv_separable_need FV_ISA_NAME(fv_separable_need)
#define fv_separable_scratch FV_ISA_NAME(fv_separable_scratch)
#define fv_separable_run FV_ISA_NAME(fv_separable_run)

/* Element type of the result: float32; float64 for float64 and 32 or 64-bit integers; complex stays complex. */
fv_dtype fv_separable_type(fv_dtype in);
/* Region of the input that a region of the output needs. */
fv_region fv_separable_need(const fv_separable *s, const fv_image_type *type, const fv_region *region);
size_t    fv_separable_scratch(const fv_separable *s, const fv_need *need);
void      fv_separable_run(const fv_separable *s, const fv_run *r);

#endif
