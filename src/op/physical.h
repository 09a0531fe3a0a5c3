/* Physical space, in which registration works, and transforms of it.
 *
 * It is ITK's: x, y, z of an image with a matrix to the world point left, back and up (the matrix itself, as NIfTI's, points
 * right, front and up); of one without, they are spacing times voxels plus origin. A plane has x and y of it, by its matrix if
 * that does not lead out of the plane, else by spacing and origin.
 *
 * A transform is a small float64 image, so that it is stored, written and passed on like any other. It has the axes row and
 * column, n rows of n + 1 numbers: a place p of the fixed image belongs to the place matrix * p + last column of the moving one.
 * Axes before those (a time) have a transform for each of their places.
 */
#ifndef FV_PHYSICAL_H
#define FV_PHYSICAL_H

#include "image/region.h"

/* Where the voxels of an image with 2 or 3 spatial axes lie. A matrix here is 3 x 4, row by row; what a plane lacks is the
 * identity. */
typedef struct fv_physical {
    int    n;         /* spatial axes */
    int    axis[3];   /* of the image, for x, y, z */
    double space[12]; /* voxel x, y, z to physical space */
    bool   placed;    /* by a matrix to the world */
} fv_physical;

/* name: what the image is called in the message. */
fv_status fv__physical_find(const fv_image_type *type, const char *name, fv_physical *p, fv_error *error);
/* Where a volume lies becomes this: a matrix from voxels to the world, as NIfTI has it. */
void fv__image_place(fv_image_type *type, const double affine[12]);
/* That matrix of a moving image which a transform, from the fixed image to it, brings upon the fixed one; false: the transform
 * has no inverse. Of images without a matrix, spacing times voxels plus origin is the world, as NIfTI and nibabel have it where
 * somebody makes a matrix of nothing else. */
bool fv__physical_moved(const fv_physical *moving, const double transform[12], double affine[12]);
/* That two images lie in comparable spaces. */
fv_status fv__physical_compare(const fv_image_type *a, const char *a_name, const fv_image_type *b, const char *b_name,
                               fv_error *error);

/* The inverse of a 3 x 4 matrix, which may be put in its place; false: it has none. */
bool fv__matrix_invert(const double a[12], double inverse[12]);
/* First inner, then outer; the result may be one of them. */
void fv__matrix_chain(const double outer[12], const double inner[12], double result[12]);
/* What is a whole number but for rounding is one: grids that lie upon each other need no interpolation. */
double fv__settle(double x);

/* ---------------------------------------------------------------- transforms */

typedef struct fv_transform {
    int n;      /* dimensions */
    int row;    /* the axis row; column follows it */
    int before; /* axes before it */
} fv_transform;

/* The transform that an image is; an error that names it if it is none. */
fv_status fv__transform_find(const fv_image_type *type, const char *name, fv_transform *t, fv_error *error);
/* The type of linear transforms, one for each place of the axes of an image that are not spatial. */
void fv__transform_linear(const fv_image_type *image, int n, fv_image_type *type);
/* Axis of the image for each axis before the transform's own, by name; an error if it is not there or has another length. */
fv_status fv__transform_match(const fv_image_type *type, const fv_transform *t, const fv_image_type *image,
                              const char *image_name, int axis[FV_MAX_DIMS], fv_error *error);
/* The linear transform at a place of the axes before, from a float64 block that holds it. */
void fv__transform_load(const fv_block *block, const fv_transform *t, const int64_t *before, double matrix[12]);
/* Puts that part of it into a block which lies there. */
void fv__transform_store(const fv_block *block, const fv_transform *t, const int64_t *before, const double matrix[12]);

#endif
