/* What erode and dilate share: both are one erosion, because dilating the foreground is eroding the background with the
 * footprint turned round. Outside the image nothing erodes.
 *
 * Of bool images, round elements (ball, disk, cross) are a bounded squared distance. Boxes and grey images are extrema of
 * windows.
 */
#ifndef FV_EROSION_H
#define FV_EROSION_H

#include "kernels/extrema.h"
#include "op/scratch.h"

/* A footprint brought to an image: the axes it reaches along, in memory order, and how far on each side. */
typedef struct fv__element {
    bool          round; /* squared offsets add up to at most `limit`; else a box, or what the pattern says */
    int           count; /* axes with half > 0 */
    int           axis[FV_MAX_DIMS];
    int64_t       half[FV_MAX_DIMS];
    int64_t       limit;
    const double *pattern;         /* NULL: none */
    int64_t       pattern_size[3]; /* along z, y, x */
} fv__element;

#define fv__erosion_infer FV_ISA_NAME(fv__erosion_infer)
#define fv__erosion_need FV_ISA_NAME(fv__erosion_need)
#define fv__erosion_scratch FV_ISA_NAME(fv__erosion_scratch)
#define fv__erosion_cost FV_ISA_NAME(fv__erosion_cost)
#define fv__erosion_run FV_ISA_NAME(fv__erosion_run)
#define fv__erode_round FV_ISA_NAME(fv__erode_round)

fv_status fv__erosion_infer(fv_infer *i, const fv_footprint *footprint, fv_error *error);
fv_region fv__erosion_need(const fv_need *n, const fv_footprint *footprint);
size_t    fv__erosion_scratch(const fv_need *n, const fv_footprint *footprint);
double    fv__erosion_cost(const fv_need *n, const fv_footprint *footprint);
void      fv__erosion_run(const fv_run *r, const fv_footprint *footprint, bool dilate);

/* Round elements with at least one axis, on a bool image. from is the region of the input, to that of the output. Returns the
 * bytes of scratch it uses; with in NULL it does nothing else. */
size_t fv__erode_round(const fv__element *e, const fv_region *from, const fv_region *to, const fv_block *in, const fv_block *out,
                       bool dilate, void *scratch);

/* region with one axis cut to that of another. */
static inline fv_region fv__cut(fv_region region, const fv_region *to, int axis) {
    region.start[axis] = to->start[axis];
    region.size[axis] = to->size[axis];
    return region;
}

/* Voxels from `axis` on: a line of an axis together with the axes inside it. */
static inline int64_t fv__voxels_inside(const fv_region *region, int axis) {
    int64_t n = 1;
    for (int d = axis; d < region->ndim; d++) n *= region->size[d];
    return n;
}

#endif
