/* Walks the chunks of a lattice that a region touches, in order:
 *     fv_chunks chunks; for (fv__chunks_begin(&chunks, lattice, &region); fv__chunks_next(&chunks);) use(chunks.index) */
#ifndef FV_CHUNKS_H
#define FV_CHUNKS_H

#include "image/region.h"

typedef struct fv_chunks {
    const fv_lattice *lattice;
    int64_t           low[FV_MAX_DIMS], high[FV_MAX_DIMS], at[FV_MAX_DIMS]; /* along each axis */
    bool              started, done;
    int64_t           index; /* the chunk */
} fv_chunks;

static inline void fv__chunks_begin(fv_chunks *c, const fv_lattice *lattice, const fv_region *region) {
    *c = (fv_chunks){ .lattice = lattice, .done = fv__region_empty(region) };
    for (int d = 0; d < lattice->ndim && !c->done; d++) {
        c->low[d] = c->at[d] = region->start[d] / lattice->chunk[d];
        c->high[d] = (region->start[d] + region->size[d] - 1) / lattice->chunk[d];
    }
}

static inline bool fv__chunks_next(fv_chunks *c) {
    int d = c->lattice->ndim - 1;
    if (c->done) return false;
    if (c->started) {
        while (d >= 0 && ++c->at[d] > c->high[d]) {
            c->at[d] = c->low[d];
            d--;
        }
        c->done = d < 0;
    }
    c->started = true;
    c->index = 0;
    for (d = 0; d < c->lattice->ndim; d++) c->index = c->index * fv__lattice_count_axis(c->lattice, d) + c->at[d];
    return !c->done;
}

#endif
