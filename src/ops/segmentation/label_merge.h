/* How the components of all chunks become one labelling. A partial's number of a component is the raster index of its first
 * voxel.
 */
#ifndef FV_LABEL_MERGE_H
#define FV_LABEL_MERGE_H

#include "kernels/components.h"

#define fv__label_finish FV_ISA_NAME(fv__label_finish)
#define fv__label_table FV_ISA_NAME(fv__label_table)

/* Puts the labels of every chunk's components, in order: result (batch * chunks + chunk) for batch = 0, 1, ... Of one chunk alone
 * nothing is put. */
fv_status fv__label_finish(fv_finish *f, fv_error *error);
/* Collects them again: `count` labels of a chunk, as int32 or int64 like the output. */
fv_status fv__label_table(fv_results *results, const fv_lattice *lattice, int64_t chunk, void *labels, int64_t count, size_t size,
                          fv_error *error);

#endif
