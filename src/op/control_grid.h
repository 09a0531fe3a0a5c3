/* B-spline transforms: a displacement at each point of a grid of control points, and cubic B-splines between them.
 *
 * A B-spline transform is an image as a linear one is (op/physical.h), of float64. It has the axis control, with the displacement
 * along x, y and z in physical space, and then the axes z y x (or y x) of the control points, whose spacing, origin and matrix
 * tell where they lie. A place p of the fixed image belongs to the place p + displacement(p) of the moving one. Axes before
 * control (a time) have a transform for each of their places. Files and numbers are those of ITK's BSplineTransform.
 *
 * The displacement is free between the second and the last but one control point along each axis, which is where ITK has it too.
 * Beyond, it goes on straight: so a transform that holds a turn still turns what lies around.
 */
#ifndef FV_CONTROL_GRID_H
#define FV_CONTROL_GRID_H

#include "op/physical.h"

enum { FV_CONTROL_LEAST = 4, FV_CONTROL_MOST = 512 }; /* control points along an axis: those of one cell; the most */

typedef struct fv_control_grid {
    int     n;       /* dimensions */
    int     control; /* the axis of the components; x is the last axis */
    int     before;  /* axes before it */
    int64_t size[3]; /* control points along x, y, z; 1 along z of a plane */
    double  space[12] /* control point x, y, z to physical space */, cells[12]; /* and back */
} fv_control_grid;

/* Whether a type is meant as a B-spline transform. */
bool fv__control_is(const fv_image_type *type);
/* The control points of a B-spline transform; an error that names it if it is none. */
fv_status fv__control_find(const fv_image_type *type, const char *name, fv_control_grid *grid, fv_error *error);
/* The type of B-spline transforms over an image with about this distance between control points (0: an eighth of the longest
 * side), one for each place of the axes of `movie` that are not spatial (NULL: one). name: what the image is called. */
fv_status fv__control_over(const fv_image_type *image, const char *name, const fv_image_type *movie, double distance,
                           fv_image_type *type, fv_error *error);
/* The type of those over the same region as another, with so many times as many cells along each axis. */
fv_status fv__control_finer(const fv_image_type *from, const char *name, int times, fv_image_type *type, fv_error *error);
/* The type of a grid that a file tells: counts, and the matrix from control points to physical space. */
fv_status fv__control_type(int n, const int64_t size[3], const double space[12], const char *path, fv_image_type *type,
                           fv_error *error);
static inline int64_t fv__control_points(const fv_control_grid *grid) { return grid->size[0] * grid->size[1] * grid->size[2]; }
/* The displacements at a place of the axes before, x fastest and components slowest, out of a block that holds them; and into
 * one. */
void fv__control_load(const fv_block *block, const fv_control_grid *grid, const int64_t *before, double *to);
void fv__control_store(const fv_block *block, const fv_control_grid *grid, const int64_t *before, const double *from);

#endif
