/* Decoded pieces of files (strips, tiles, chunks), kept for the next task that meets them.
 *
 * Tasks whose chunks cut across a file's pieces would decode each of them several times. What is kept takes only memory that the
 * tasks of a run leave (fv__kept_allow), and none at all until a run allows some. Each session keeps its own. Pieces that are
 * wanted whole are not kept: nobody asks for them again. Results do not depend on any of this.
 *
 * Invariants
 * 1. Only one thread decodes a piece at a time; others go on with other pieces and come back to it.
 * 2. The bytes of pieces that nobody uses never exceed what is allowed.
 * 3. A piece is dropped when room is needed and all of it has been asked for, or nobody has asked for it for long: pieces that
 *    are still awaited are not given up for new ones, or a file of which too little fits would never be found here.
 */
#ifndef FV_KEPT_PIECES_H
#define FV_KEPT_PIECES_H

#include "image/region.h"

typedef struct fv_piece {
    int64_t number;       /* in the file */
    int64_t size, wanted; /* decoded bytes that lie in the image; of these in the region */
} fv_piece;

/* The pieces that a region of a file meets, i from 0 to count - 1, and what can be done with each of them. */
typedef struct fv_piece_source {
    const void *owner; /* an open reader: with the number it says which piece is meant */
    int64_t     count;
    size_t      bytes; /* of a decoded piece */
    void       *context;
    void (*describe)(void *context, int64_t i, fv_piece *piece);
    fv_status (*decode)(void *context, int64_t i, void *data, fv_error *error); /* all of it, into `bytes` bytes */
    void (*place)(void *context, int64_t i, const void *data);                  /* what is wanted of it */
    fv_status (*read)(void *context, int64_t i, fv_error *error);               /* both, where it is not kept */
} fv_piece_source;

/* Reads what is wanted of all of them. Safe from several threads. */
fv_status fv__pieces_read(const fv_piece_source *source, fv_error *error);

/* For files cut into chunks of equal shape: those that a block meets, in C order. They are not cut at the image's end. */
typedef struct fv_met_chunks {
    int             ndim;
    const int64_t  *shape, *chunk; /* of the image */
    const fv_block *block;
} fv_met_chunks;
int64_t   fv__met_count(const fv_met_chunks *met);
fv_region fv__met_chunk(const fv_met_chunks *met, int64_t i);
void      fv__met_describe(const fv_met_chunks *met, int64_t i, fv_piece *piece);

/* Drops the pieces of a reader that is about to be closed. */
void fv__kept_forget(const void *owner);
/* So many bytes more may be kept, or less. */
void fv__kept_allow(int64_t bytes);

#endif
