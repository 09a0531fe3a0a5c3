/* Values of an image between its voxels: the one interpolation that zoom, rotate, shift, affine, resample, resize, warp and polar
 * share. Splines of order 0, 1 and 3, every boundary mode of scipy.ndimage with scipy's meaning of it.
 *
 * A caller turns places of its result into coordinates of the input, in doubles. What comes out for a voxel depends on its own
 * coordinates alone: the arithmetic is the same in the middle and at the border, whatever region is asked for. An image for
 * order 3 has been through spline_filter.
 */
#ifndef FV_INTERPOLATE_H
#define FV_INTERPOLATE_H

#include "kernels/box.h"

typedef enum fv_extend {
    FV_EXTEND_REFLECT,
    FV_EXTEND_MIRROR,
    FV_EXTEND_NEAREST,
    FV_EXTEND_WRAP,
    FV_EXTEND_CONSTANT,
    FV_EXTEND_GRID_WRAP,
    FV_EXTEND_GRID_MIRROR,
    FV_EXTEND_GRID_CONSTANT
} fv_extend;
#define FV_EXTEND_CHOICES "reflect|mirror|nearest|wrap|constant|grid-wrap|grid-mirror|grid-constant"
#define FV_EXTEND_DOC "what lies outside the image, as in scipy.ndimage"

/* Coordinate k of the input = sum over j of matrix[k][j] * (index j of the result + before) + offset[k]. */
typedef struct fv_mapping {
    int       order; /* 0, 1, 3 */
    fv_extend mode;
    double    cval;
    bool      filtered; /* the input is spline_filter's result along every axis: whole voxels are interpolated too */
    int64_t   margin;   /* voxels that were put around the input before spline_filter; coordinates do not count them */
    int       naxes;    /* 1..3 spatial axes; all others are channels */
    int       axis[3];  /* their indices in the image, in order */
    double    matrix[3][3], offset[3], before;
} fv_mapping;

/* Compiled per instruction set; a caller uses its own. */
#define fv__mapping_new FV_ISA_NAME(fv__mapping_new)
#define fv__mapping_direct FV_ISA_NAME(fv__mapping_direct)
#define fv__mapping_type FV_ISA_NAME(fv__mapping_type)
#define fv__mapping_need FV_ISA_NAME(fv__mapping_need)
#define fv__mapping_scratch FV_ISA_NAME(fv__mapping_scratch)
#define fv__mapping_run FV_ISA_NAME(fv__mapping_run)
#define fv__mapping_cost FV_ISA_NAME(fv__mapping_cost)
#define fv__points_need FV_ISA_NAME(fv__points_need)
#define fv__points_scratch FV_ISA_NAME(fv__points_scratch)
#define fv__points_run FV_ISA_NAME(fv__points_run)

/* The mapping that leaves every voxel of an image where it is. */
fv_mapping fv__mapping_new(const fv_image_type *type, int order, int mode, double cval);
/* Whether axis k goes from voxels to voxels by itself, forwards or backwards: nothing is interpolated along it. */
bool fv__mapping_direct(const fv_mapping *m, int k);
/* Element type of the result: that of the input for order 0, else float32 or float64, complex for complex. */
fv_dtype fv__mapping_type(int order, fv_dtype in);

/* What a region of the result reads: least box, empty where all of it lies outside in mode constant. */
fv_region fv__mapping_need(const fv_mapping *m, const fv_need *n);
size_t    fv__mapping_scratch(const fv_mapping *m, const fv_need *n);
void      fv__mapping_run(const fv_mapping *m, const fv_run *r);
double    fv__mapping_cost(const fv_mapping *m, const fv_need *n);

/* The same for places that no matrix tells. matrix, offset and before do not count. */
enum { FV_POINTS_STRIP = 128 };
typedef struct fv_points {
    fv_mapping mapping;
    /* Coordinates of n <= FV_POINTS_STRIP voxels of the result, from position (of all axes of the result) along its last
     * spatial axis. Those whose first one is nan get cval; if all are, the others need not be filled in. */
    fv_status (*place)(const void *context, const int64_t *position, int64_t n, double *const coordinate[3], fv_error *error);
    const void *context;
} fv_points;
/* Bounds of the coordinates along each spatial axis: what is read of the input. The channels of in are preset. */
void      fv__points_need(const fv_mapping *m, const fv_image_type *type, const double *low, const double *high, fv_region *in);
size_t    fv__points_scratch(const fv_mapping *m, const fv_image_type *type, const fv_region *in, const fv_region *region);
fv_status fv__points_run(const fv_points *p, const fv_run *r, fv_error *error);

#endif
