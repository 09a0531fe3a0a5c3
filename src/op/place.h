/* Where the voxels of an image lie: spacing, origin, units and the matrix to the world. */
#ifndef FV_PLACE_H
#define FV_PLACE_H

#include "base/base.h"
#include <fovea/image.h>

/* The matrix of an image that takes every step-th voxel of an axis, the first of them at `start`; both may be fractions. Only x,
 * y and z are in it. */
void fv__place_move(fv_image_type *type, int axis, double start, double step);
/* The same with spacing and origin: these and the matrix of an image whose voxel i of the axis (its shape is set already) lies
 * where the voxel start + i * step was. A negative step leaves the spacing positive and the origin at the lowest coordinate. */
void fv__place_step(fv_image_type *type, int axis, double start, double step);
/* Whether anything is known beside voxels that are counted from 0. */
bool fv__place_known(const fv_image_type *type);
/* Whether two images of the same axes lie upon each other: their corners within a hundredth of a voxel, in equal units. */
bool fv__place_same(const fv_image_type *a, const fv_image_type *b);
/* Spacing, origin, units and matrix of an image that has the same axes; nothing changes where it has others. */
void fv__place_take(fv_image_type *type, const fv_image_type *from);
/* The same for an image that has another axis before those. */
void fv__place_take_behind(fv_image_type *type, const fv_image_type *from);
/* "spacing y 0.5 mm, x 0.5 mm, origin y 0, x 3" */
void fv__place_say(const fv_image_type *type, fv_bytes *out);
/* The least distance between neighbouring voxels. */
double fv__place_finest(const fv_image_type *type);
/* Voxels that are made one along each spatial axis, so that they become about as long as asked for; of an axis 8 are left. */
void fv__place_factors(const fv_image_type *type, double spacing, int64_t *factor);
/* The unit that a word of a file or a person means: "um" is "micrometer". Empty for pixels and for words that are too long. */
void fv__unit_name(const char *word, char unit[16]);
/* No matrix any more. */
void fv__place_forget_world(fv_image_type *type);

#endif
