/* The watershed of one box of voxels: the minimum spanning forest of the graph of neighbours, rooted at the markers.
 *
 * An edge between neighbours a and b is ordered by (the higher value, the lower value, the earlier position, the later one), in
 * raster order of positions: no two edges are equal, so the forest is unique and any part of it may be found first. Borůvka's
 * rule finds it: the least edge of a part of the forest that no marker has reached belongs to it. For a single voxel that is the
 * edge to its lowest neighbour.
 *
 * A box is a chunk ("own" voxels) in a shell of one voxel more ("halo") that is there where the image goes on. Own voxels know
 * all their edges. A region is what has been joined so far. Regions are numbered: first the closed ones (own voxels that no
 * marker has reached), then the open ones (one for each halo voxel, in raster order: what drains there), then the marked ones
 * (one for each marker voxel). Only closed regions choose an edge; in the end each has become part of an open or marked region,
 * or has no neighbours left.
 *
 *     1. fv__flood_init lays out the box.  2. fv__flood_load reads it.  3. fv__flood_join finds the regions.
 *     4. up[node[cell]] is then a cell's region. fv__flood_keep makes that node[cell] itself and lists the edges between open
 *        and marked regions that matter.
 */
#ifndef FV_FLOOD_H
#define FV_FLOOD_H

#include "op/op.h"

#define FV__NO_NODE UINT32_MAX
#define FV__MOST_CELLS ((int64_t)1 << 30)
#define FV__FLOOD_BLOCK 64 /* cells of a row that are looked at together */

typedef struct fv__flood_block {
    uint32_t first, count;
} fv__flood_block; /* cells */

typedef struct fv__flood {
    const fv_image_type *image;
    fv_region            own;
    int                  axis[3];                        /* of z, y, x in the image; -1: none */
    int                  other[FV_MAX_DIMS], nothers;    /* axes that are not spatial */
    int64_t              groups, size[3], pad[3], cells; /* own voxels along z, y, x; width of the shell, 0 or 1 */
    int64_t              stride[3], group_stride;        /* in cells */
    int                  noffsets;                       /* neighbours, in raster order; the second half lies behind a voxel */
    int64_t              offset[26];
    bool                 has_halo;
    int64_t              room;  /* cells before the first and behind the last that may be looked at */
    fv__flood_block     *block; /* parts of own rows that have voxels */
    int64_t              nblocks;
    bool                 wide; /* keys are uint64_t, else uint32_t */
    void                *key;  /* per cell, ordered as the values are; all ones: no voxel */
    uint32_t            *node; /* per cell: a region's number, or FV__NO_NODE */
    uint8_t             *kind; /* of what the first step joins: own, halo or marked */
    uint32_t            *up;   /* per region: what it was joined to, or itself */
    uint32_t            *seat; /* per region: its halo or marker voxel */
    uint32_t            *active, *choice, *tree;
    void                *best;                 /* per closed or open region: its least edge */
    int64_t              closed, open, marked; /* regions of each kind */
} fv__flood;

/* An edge that the whole image's forest may need. a and b count open and marked regions. */
typedef struct fv__flood_edge {
    uint64_t high, low, place;
    uint32_t a, b;
} fv__flood_edge;
static inline bool fv__flood_less(const fv__flood_edge *a, const fv__flood_edge *b) {
    if (a->high != b->high) return a->high < b->high;
    return a->low != b->low ? a->low < b->low : a->place < b->place;
}

#define fv__flood_infer FV_ISA_NAME(fv__flood_infer)
#define fv__flood_init FV_ISA_NAME(fv__flood_init)
#define fv__flood_load FV_ISA_NAME(fv__flood_load)
#define fv__flood_join FV_ISA_NAME(fv__flood_join)
#define fv__flood_first FV_ISA_NAME(fv__flood_first)
#define fv__flood_keep FV_ISA_NAME(fv__flood_keep)
#define fv__flood_position FV_ISA_NAME(fv__flood_position)

/* Checks relief, markers and mask of a watershed; the result has the type of the markers. */
fv_status fv__flood_infer(fv_infer *i, int64_t connectivity, fv_error *error);
/* Returns the bytes that a chunk needs; with scratch NULL that is all. own is a chunk of the image. */
size_t fv__flood_init(fv__flood *f, const fv_image_type *image, const fv_region *own, int64_t connectivity, void *scratch);
/* Cell of the first voxel of an own row. */
static inline int64_t fv__flood_row(const fv__flood *f, int64_t group, int64_t z, int64_t y) {
    return group * f->group_stride + (z + f->pad[0]) * f->stride[0] + (y + f->pad[1]) * f->stride[1] + f->pad[2];
}
/* image, markers and mask (or NULL) cover the chunk and its halo, as far as the image reaches. */
void fv__flood_load(fv__flood *f, const fv_block *image, const fv_block *markers, const fv_block *mask);
/* The part of loading that makes the first regions, of every voxel and its lowest neighbour. */
void fv__flood_first(fv__flood *f, const fv_block *markers);
void fv__flood_join(fv__flood *f);
void fv__flood_keep(fv__flood *f, fv_bytes *edges);
/* Image coordinates of a cell. */
void fv__flood_position(const fv__flood *f, int64_t cell, int64_t *position);
/* Whether a marker's value is not 0. */
static inline bool fv__marker_set(const void *value, size_t size) {
    static const uint8_t zero[8];
    return memcmp(value, zero, size) != 0;
}

#endif
