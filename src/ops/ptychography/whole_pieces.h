/* Pieces that are made whole, though only a part of them may be wanted: blocks of waves, a probe. A plan asks for whole ones
 * (slab); any other lattice is possible, and then a piece is made in scratch. */
#ifndef FV_WHOLE_PIECES_H
#define FV_WHOLE_PIECES_H

#include "op/op.h"

/* Whether a piece can be made where it belongs: the block has all of the axes from `first` on, and nothing between them. */
static inline bool fv__piece_direct(const fv_block *out, const fv_image_type *type, int first) {
    for (int d = first; d < out->region.ndim; d++)
        if (out->region.size[d] != type->shape[d]) return false;
    return fv__block_dense(out);
}

/* Bytes of a piece: all of the axes from `first` on, one of those before. */
static inline int64_t fv__piece_room(const fv_need *n, int first) {
    int64_t bytes = (int64_t)fv_dtype_size(n->out->image.dtype);
    for (int d = first; d < n->out->image.ndim; d++) bytes *= n->out->image.shape[d];
    return bytes;
}

/* Takes the wanted part of a piece that was made in room. */
static inline void fv__piece_put(const fv_block *out, const fv_region *piece, void *room) {
    fv_block  from, to;
    fv_region part = fv__region_intersect(&out->region, piece);
    fv__block_init(&from, out->dtype, piece, room);
    to = fv__block_window(out, &part);
    fv__block_copy(&to, &from);
}

#endif
