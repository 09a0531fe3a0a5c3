/* What a chunk of watershed says about itself, and how the chunks become one forest.
 *
 * A partial is: the head; the kept edges, the least first; uint32 cell of each open region (a halo voxel, so a voxel of another
 * chunk); then per face of the chunk behind which the image goes on (spatial axes in order, near before far) the region of every
 * own voxel in it, uint32 in C order; then int64 label of each marked region that edges or faces name. Open regions are counted
 * from 0, marked ones behind them.
 */
#ifndef FV_WATERSHED_MERGE_H
#define FV_WATERSHED_MERGE_H

#include "ops/segmentation/flood.h"

typedef struct fv__flood_head {
    int64_t open, marked, edges;
} fv__flood_head;

#define fv__watershed_finish FV_ISA_NAME(fv__watershed_finish)

/* Puts the label (int64) of each open region of every chunk: result `chunk`. */
fv_status fv__watershed_finish(fv_finish *f, fv_error *error);

/* The face of a chunk across axis d: the plane at its start or its end. */
static inline fv_region fv__flood_face(const fv_region *own, int d, int far) {
    fv_region face = *own;
    face.start[d] += far ? own->size[d] - 1 : 0;
    face.size[d] = 1;
    return face;
}
static inline bool fv__flood_goes_on(const fv_image_type *image, const fv_region *own, int d, int far) {
    return far ? own->start[d] + own->size[d] < image->shape[d] : own->start[d] > 0;
}

static inline bool fv__flood_is_cut(const fv_lattice *lattice, const fv_image_type *image) {
    int spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    for (int k = 0; k < n; k++)
        if (fv__lattice_count_axis(lattice, spatial[k]) > 1) return true;
    return false;
}

#endif
