/* Connected components of a box of voxels: rows become bits, bits become runs, and runs are joined by union-find.
 *
 * Rows run along the last spatial axis. With full connectivity (26 in a volume, 8 in a plane) the voxels of 2 x 2 (or 2)
 * neighbouring rows that share a position along the row are all neighbours, so these rows are or-ed into one "joined" row first
 * and there are far fewer runs. A run is named by its place in the order of joined rows; its name follows from a position by
 * counting the starts of runs before it, so runs are never listed.
 *
 *     1. fv__runs_scratch says how much memory fv__runs_init lays out.
 *     2. fv__runs_find joins the runs.
 *     3. fv__runs_number numbers the components by their first voxel in raster order.
 *     4. fv__runs_component gives the number of the component that holds a voxel.
 */
#ifndef FV_RUNS_H
#define FV_RUNS_H

#include "op/op.h"

typedef struct fv__runs {
    const fv_block *in;
    int64_t         shape[FV_MAX_DIMS];          /* of the whole image */
    int             axis[3];                     /* of z, y, x in the image; -1: none */
    int             other[FV_MAX_DIMS], nothers; /* axes that are not spatial */
    int64_t         groups, nz, ny, nx, words;   /* groups: positions along the other axes */
    int             connectivity;
    bool            zeros;          /* components of what is 0; to be set between init and find */
    uint64_t        last_word;      /* bits of a row's last word that exist */
    int             join_z, join_y; /* rows in a joined row */
    bool            interleaved;    /* another axis lies inside a spatial one: row order is not raster order */
    int64_t         joined_nz, joined_ny;
    uint64_t       *bits, *joined; /* rows and joined rows, `words` words each */
    int32_t        *before;        /* per word of joined: runs that start before it */
    int32_t        *parent;        /* per run; the component after numbering, in order of its first run */
    int32_t        *number;        /* per component its number; NULL: the same */
    int64_t        *first;         /* interleaved only: raster index of the first voxel, and order */
    int32_t        *order;
    int64_t         nruns, ncomponents;
} fv__runs;

#define fv__runs_scratch FV_ISA_NAME(fv__runs_scratch)
#define fv__runs_most FV_ISA_NAME(fv__runs_most)
#define fv__runs_init FV_ISA_NAME(fv__runs_init)
#define fv__runs_find FV_ISA_NAME(fv__runs_find)
#define fv__runs_number FV_ISA_NAME(fv__runs_number)

/* A box of `size` voxels of an image; connectivity counts spatial axes along which neighbours may differ. */
size_t fv__runs_scratch(const fv_image_type *image, const int64_t *size, int64_t connectivity);
void   fv__runs_init(fv__runs *runs, const fv_image_type *image, const fv_block *in, int64_t connectivity, void *scratch);
/* Most components that such a box can hold. */
int64_t fv__runs_most(const fv_image_type *image, const int64_t *size, int64_t connectivity);
void    fv__runs_find(fv__runs *runs);
/* Appends the raster index (int64) of each component's first voxel, in order, where firsts is given. */
void fv__runs_number(fv__runs *runs, fv_bytes *firsts);

/* Offset of the first voxel of a row for given strides of the image's axes. */
static inline int64_t fv__runs_offset(const fv__runs *r, const int64_t *stride, int64_t group, int64_t z, int64_t y) {
    int64_t offset = 0;
    if (r->axis[0] >= 0) offset += z * stride[r->axis[0]];
    if (r->axis[1] >= 0) offset += y * stride[r->axis[1]];
    for (int i = r->nothers - 1; i >= 0; i--) {
        int64_t n = r->in->region.size[r->other[i]];
        offset += group % n * stride[r->other[i]];
        group /= n;
    }
    return offset;
}

static inline const uint64_t *fv__runs_row(const fv__runs *r, int64_t group, int64_t z, int64_t y) {
    return r->bits + ((group * r->nz + z) * r->ny + y) * r->words;
}

/* Index of the first word of the joined row that holds a row. */
static inline int64_t fv__runs_joined(const fv__runs *r, int64_t group, int64_t z, int64_t y) {
    return ((group * r->joined_nz + z / r->join_z) * r->joined_ny + y / r->join_y) * r->words;
}

/* The run at bit `bit` of word w of the joined row that starts at word `row`; the bit must be set. */
static inline int32_t fv__runs_at(const fv__runs *r, int64_t row, int64_t w, int bit) {
    const uint64_t *joined = r->joined + row;
    uint64_t        starts = joined[w] & ~(joined[w] << 1 | (w ? joined[w - 1] >> 63 : 0));
    return r->before[row + w] + __builtin_popcountll(starts & ~(uint64_t)0 >> (63 - bit)) - 1;
}

static inline int32_t fv__runs_component(const fv__runs *r, int64_t row, int64_t w, int bit) {
    int32_t component = r->parent[fv__runs_at(r, row, w, bit)];
    return r->number ? r->number[component] : component;
}

#endif
