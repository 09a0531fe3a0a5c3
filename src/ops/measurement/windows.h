/* Windows of 2 x 2 (x 2) voxels: how the voxels of a label lie in each of them, which gives its Euler number and, by counting
 * neighbours in 4 (or 13) directions, its perimeter or surface by Crofton's formula; and the border pixels that
 * scikit-image's perimeter weighs.
 *
 * A window is named by its voxel of lowest coordinates; windows that begin one voxel before the image count, too, and outside the
 * image there is no label. A chunk has the windows that are named by its voxels, and at the image's start those before.
 */
#ifndef FV_WINDOWS_H
#define FV_WINDOWS_H

#include "ops/measurement/object.h"

#define fv__windows_scratch FV_ISA_NAME(fv__windows_scratch)
#define fv__windows_begin FV_ISA_NAME(fv__windows_begin)
#define fv__windows_row FV_ISA_NAME(fv__windows_row)
#define fv__windows_settle FV_ISA_NAME(fv__windows_settle)
#define fv__direction FV_ISA_NAME(fv__direction)

/* Voxels around the chunk that are looked at. */
static inline int64_t fv__windows_halo(const fv__object_plan *plan) { return plan->border ? 2 : plan->windows ? 1 : 0; }

/* A chunk and its surroundings while windows are counted. */
typedef struct fv__windows {
    const fv__object_plan *plan;
    fv__object *(*find)(void *context, int64_t label); /* the object of a label, which stays in place until the next call */
    void    *context;
    int64_t  size[3], pad;   /* of the chunk along z, y, x; voxels around it */
    int64_t  plane, row;     /* strides */
    int64_t  before[3];      /* 1: the windows before the chunk along this axis are its own */
    int64_t *labels, *all;   /* of the first voxel of the chunk, and of its surroundings */
    uint8_t *alike, *border; /* of the windows of a row; of all voxels */
} fv__windows;

size_t fv__windows_scratch(const fv__object_plan *plan, const fv_region *chunk);
/* Takes the labels over into scratch. plan, find and context are set. */
void fv__windows_begin(fv__windows *windows, const fv_block *labels, const fv_region *chunk, void *scratch);
/* The windows and the border of one row, counted from the chunk's start; in raster order a label is met in neighbouring rows of
 * two neighbouring planes and then never again. */
void fv__windows_row(const fv__windows *windows, int64_t z, int64_t y);
/* From counts of configurations to pairs and Euler number, and to those of all rows where a mesh is wanted. */
void fv__windows_settle(const fv__object_plan *plan, fv__object *object);

/* The i-th direction in which pairs are counted, as steps along z, y, x; 13 in space, of which the 4 without z are those of a
 * plane. False behind the last. */
bool fv__direction(int nspatial, int i, int step[3]);

#endif
