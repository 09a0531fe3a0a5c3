/* Walks the chunks of a lattice that a region touches, in C order:
 *     fv_chunk_walk walk;
 *     for (fv__chunk_walk_begin(&walk, &lattice, &region); fv__chunk_walk_next(&walk);) use(walk.index, &walk.chunk)
 */
#ifndef FV_CHUNK_WALK_H
#define FV_CHUNK_WALK_H

#include "image/region.h"

typedef struct fv_chunk_walk {
    int64_t    index; /* of the chunk in the lattice */
    fv_region  chunk;
    fv_lattice lattice;
    int64_t    low[FV_MAX_DIMS], high[FV_MAX_DIMS], at[FV_MAX_DIMS]; /* in chunks */
    bool       done;
} fv_chunk_walk;

void fv__chunk_walk_begin(fv_chunk_walk *walk, const fv_lattice *lattice, const fv_region *region);
bool fv__chunk_walk_next(fv_chunk_walk *walk);

#endif
