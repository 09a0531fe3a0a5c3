/* Voxels in another order of axes, each forwards or backwards: transpose, rotate90. */
#ifndef FV_REARRANGE_H
#define FV_REARRANGE_H

#include "op/op.h"

/* Index of axis source[d] of the input = first[d] + step[d] * index of axis d of the result, step 1 or -1. */
typedef struct fv_rearrangement {
    int     source[FV_MAX_DIMS];
    int64_t first[FV_MAX_DIMS], step[FV_MAX_DIMS];
} fv_rearrangement;

#define fv__rearrange_need FV_ISA_NAME(fv__rearrange_need)
#define fv__rearrange_run FV_ISA_NAME(fv__rearrange_run)

fv_region fv__rearrange_need(const fv_rearrangement *a, const fv_region *region);
void      fv__rearrange_run(const fv_rearrangement *a, const fv_block *in, const fv_block *out);

#endif
