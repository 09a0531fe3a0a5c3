/* What a chunk of label says about itself, and how the chunks become one labelling.
 *
 * A chunk is labelled together with the next voxel on the far side of each spatial axis, so every pair of neighbours lies in
 * some chunk, and neighbouring chunks share a plane. Both see the same runs in it in the same order; the merge joins the
 * components that they name, pair by pair.
 *
 * A partial is: the head; per component, ordered by first voxel, int64 2 * (raster index of the first voxel) + (it lies on a
 * shared plane); per shared plane in order of `plane` one uint32 a run: the component's rank among those on shared planes.
 */
#ifndef FV_LABEL_MERGE_H
#define FV_LABEL_MERGE_H

#include "op/op.h"

typedef struct fv__label_head {
    int64_t components, shared;        /* shared: how many lie on shared planes */
    int64_t plane[FV_MAX_DIMS][2];     /* runs on the near and far shared plane of each axis */
} fv__label_head;

#define fv__label_finish FV_ISA_NAME(fv__label_finish)
#define fv__label_table FV_ISA_NAME(fv__label_table)

/* Puts the labels of every chunk's components, in order: result (batch * chunks + chunk) for batch = 0, 1, ... */
fv_status fv__label_finish(fv_finish *f, fv_error *error);
/* Collects them again: `count` labels of a chunk, as int32 or int64 like the output. */
fv_status fv__label_table(fv_results *results, const fv_lattice *lattice, int64_t chunk, void *labels, int64_t count, size_t size,
                          fv_error *error);

#endif
