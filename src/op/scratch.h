/* Cuts scratch into pieces. One function lays out all pieces, once without memory to learn the size and once with it:
 *
 *     static size_t lay_out(state *s, void *scratch) {
 *         fv_scratch pieces = { scratch };
 *         s->line = fv__scratch_take(&pieces, length);
 *         return pieces.used;
 *     }
 */
#ifndef FV_SCRATCH_H
#define FV_SCRATCH_H

#include "base/base.h"

typedef struct fv_scratch {
    char  *base;
    size_t used;
} fv_scratch; /* base NULL: only counts */

/* The next piece, 64-byte aligned; NULL when only counting. */
static inline void *fv__scratch_take(fv_scratch *scratch, int64_t bytes) {
    void *piece = scratch->base ? scratch->base + scratch->used : NULL;
    scratch->used += ((size_t)bytes + 63) & ~(size_t)63;
    return piece;
}

#endif
