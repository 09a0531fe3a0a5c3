/* Chunk by chunk through a region. */
#include "image/chunk_walk.h"

void fv__chunk_walk_begin(fv_chunk_walk *walk, const fv_lattice *lattice, const fv_region *region) {
    walk->lattice = *lattice;
    walk->done = fv__region_empty(region);
    for (int d = 0; d < lattice->ndim && !walk->done; d++) {
        walk->low[d] = walk->at[d] = region->start[d] / lattice->chunk[d];
        walk->high[d] = (region->start[d] + region->size[d] - 1) / lattice->chunk[d];
    }
}

bool fv__chunk_walk_next(fv_chunk_walk *walk) {
    const fv_lattice *lattice = &walk->lattice;
    int64_t           position[FV_MAX_DIMS];
    if (walk->done) return false;
    for (int d = 0; d < lattice->ndim; d++) position[d] = walk->at[d] * lattice->chunk[d];
    walk->index = fv__lattice_index(lattice, position);
    walk->chunk = fv__lattice_chunk(lattice, walk->index);
    int d = lattice->ndim - 1;
    while (d >= 0 && ++walk->at[d] > walk->high[d]) {
        walk->at[d] = walk->low[d];
        d--;
    }
    walk->done = d < 0;
    return true;
}
