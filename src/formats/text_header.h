/* What formats with a header of "name: value" or "name = value" lines share (NRRD, MetaImage): the lines, lists of numbers, and
 * the place of the voxels in the world. */
#ifndef FV_TEXT_HEADER_H
#define FV_TEXT_HEADER_H

#include "op/format.h"

enum { FV_TEXT_HEADER_MOST = 1 << 20 };

/* Numbers separated by blanks, commas or brackets; the count of those found, at most `most`. -1: something else stands there. */
int fv__text_numbers(const char *text, double *numbers, int most);
/* The type of that name in a list of { names separated by '|', type }. */
typedef struct fv_type_name {
    const char *names;
    fv_dtype    dtype;
} fv_type_name;
bool fv__type_by_name(const fv_type_name *list, int count, const char *name, fv_dtype *dtype);

/* The voxel to world matrix from the directions of the x, y and z axis (their length is the spacing) and the origin. flip_x,
 * flip_y: the world's axes point to the left and to the back, as ITK's do, and not to the right and to the front. Spacing
 * and origin of the type are set too; the matrix is kept only if it tells more than these. */
void fv__world_set(fv_image_type *type, const double direction[3][3], const double origin[3], bool flip_x, bool flip_y);
/* The other way; also of a type without matrix. axes: how many of x, y, z the image has. */
int fv__world_get(const fv_image_type *type, double direction[3][3], double origin[3], bool flip_x, bool flip_y);

#endif
