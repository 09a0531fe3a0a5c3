/* Images with different axes in one operator: axes are matched by name, and an image is repeated along the axes that it lacks or
 * where it is one voxel long.
 *
 * The result has the axes of one of the images, which must have all that the others have; of several the one with most axes, then
 * most voxels, then the first. Axes may come in another order in the others. Images of the same shape are taken voxel by voxel
 * whatever their axes are called, unless these are the same names in another order. An axis of one voxel that the result lacks
 * counts nothing. */
#ifndef FV_BROADCAST_H
#define FV_BROADCAST_H

#include "base/base.h"
#include "image/region.h"

/* How an image lies in a result. */
typedef struct fv_matching {
    bool same;              /* voxel by voxel in the same order */
    int  ndim;              /* of the image */
    int  from[FV_MAX_DIMS]; /* by axis of the result: axis of the image along it, -1: the image is repeated */
} fv_matching;

/* False: the image has an axis that the result lacks, or another length along one. */
bool fv__match(const fv_image_type *result, const fv_image_type *image, fv_matching *matching);
/* The part of the image that a region of the result reads. */
fv_region fv__matched_region(const fv_matching *matching, const fv_region *region);
/* How many voxels of the result read one voxel of the image. */
int64_t fv__matched_repeats(const fv_matching *matching, const int64_t *shape, int ndim);

/* Axes, lengths, spacing, origin, units and affine of the result of several images, and the element type of the one that it takes
 * them from. */
fv_status fv__broadcast(const fv_image_type *const *images, int count, fv_image_type *result, fv_error *error);

/* "t y x (10 x 64 x 64)" */
#define FV_AXES_TEXT 192
const char *fv__axes_text(const fv_image_type *type, char text[FV_AXES_TEXT]);

#endif
