/* An image seen through the axes of a result: where its voxels lie, and strips of them in the result's order. */
#ifndef FV_SPREAD_H
#define FV_SPREAD_H

#include "op/broadcast.h"

typedef struct fv_spread {
    fv_region      region;              /* of the result */
    const uint8_t *data;                /* voxel for the region's start */
    int64_t        stride[FV_MAX_DIMS]; /* elements, by axis of the result; 0: repeated */
    size_t         size;                /* bytes of an element */
    int            first;               /* strips run over this axis and those after it */
} fv_spread;

fv_spread fv__spread_of(const fv_block *block, const fv_matching *matching, const fv_region *region);
/* Voxel for a position of the result. */
const void *fv__spread_at(const fv_spread *spread, const int64_t *position);
/* The first axis, not before `least`, from which on voxels with these strides are next to each other in the region's order; one
 * more than the last axis: nowhere. */
int fv__spread_run(const int64_t *stride, const fv_region *region, int least);
/* Voxels of the axes from `first` on. */
int64_t fv__spread_length(const fv_region *region, int first);
/* n elements from number `done` on of the run that begins at `from`, in the result's order. */
void fv__spread_strip(const fv_spread *spread, const void *from, int64_t done, int64_t n, void *to);

#endif
