/* One level of an image pyramid from the finer one: half as long along some axes. */
#ifndef FV_ZARR_SHRINK_H
#define FV_ZARR_SHRINK_H

#include "image/region.h"

/* The box of the coarser image over one of the finer that begins at even voxels along halved axes. */
fv_region fv__zarr_shrunk(const fv_region *region, const bool *halved);

/* Fills `to`, a box of the coarser image, from the voxels of `from` below it: along a halved axis voxel i lies over 2 i and
 * 2 i + 1, of which the last may be missing at the image's end. mean: the mean of those that are there (integers round half up);
 * otherwise the first of them, which keeps labels what they are. */
void fv__zarr_shrink(const fv_block *from, const fv_block *to, const bool *halved, bool mean);

#endif
