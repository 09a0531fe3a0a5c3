/* Joseph's method along the rays of a cone: projection of a volume and its exact adjoint.
 *
 * The rays of one detector column lie in an upright plane. They cross each row of voxels (or each column, whichever they run
 * across more steeply) at one place, and there look at the line of voxels along the axis in even steps: kernels/lines.h does the
 * rest. A volume is [rows][width][samples], projections are [columns][elements].
 */
#ifndef FV_CONE_RAYS_H
#define FV_CONE_RAYS_H

#include "kernels/cone_beam.h"

/* The rays of one detector column at one angle. Crossing number j is row j of voxels where upright, else column j. */
typedef struct fv_cone_ray {
    double place, by_line;  /* where crossing 0 is, and what the next one adds */
    double share, by_share; /* how far from the source it is, as part of the way to the detector; what the next one adds */
    double across, main;    /* squared length of the way to the detector in the slice; its part along the main axis */
    bool   upright;
} fv_cone_ray;

void FV_ISA_NAME(fv__cone_ray_find)(const fv_cone *c, int64_t angle, int64_t column, fv_cone_ray *ray);
/* Length of a ray between two crossings. */
static inline float fv__cone_ray_length(const fv_cone *c, const fv_cone_ray *ray, int64_t row) {
    double v = ((double)row - c->middle_row) * c->pitch;
    return (float)(sqrt(ray->across + v * v) / ray->main);
}

/* Slices that detector rows [first, first + count) look at, at any angle; not clipped to the volume. */
void FV_ISA_NAME(fv__cone_slices)(const fv_cone *c, int64_t first, int64_t count, int64_t *first_slice, int64_t *nslices);
/* Detector rows whose rays come near slices [first, first + count); not clipped to the detector. */
void FV_ISA_NAME(fv__cone_near_rows)(const fv_cone *c, int64_t first, int64_t count, int64_t *first_row, int64_t *nrows);
/* Detector columns whose rays come near the columns of voxels [y, y + height) x [x, x + width) at an angle, on the detector. */
void FV_ISA_NAME(fv__cone_columns)(const fv_cone *c, int64_t angle, int64_t y, int64_t x, int64_t height, int64_t width,
                                   int64_t *first, int64_t *count);

/* Adds crossings [from, until) of the column's rays: to[lines->count], without the length between crossings. */
void FV_ISA_NAME(fv__cone_ray_gather)(const fv_cone *c, const fv_lines *lines, const fv_cone_ray *ray, const float *volume,
                                      int64_t from, int64_t until, float *to);
/* Adds to a tile of columns of voxels [height][width][samples], whose first is (y, x), what the rays of one detector column
 * bring: rays[lines->count], which hold the length between crossings already. line: room for samples. */
void FV_ISA_NAME(fv__cone_ray_spread)(const fv_cone *c, const fv_lines *lines, const fv_cone_ray *ray, const float *rays,
                                      int64_t y, int64_t x, int64_t height, int64_t width, float *line, float *tile);

#endif
