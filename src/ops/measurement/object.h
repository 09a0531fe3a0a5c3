/* What measure knows about one label while it counts: voxels and, where wanted, sums of coordinates, bounding box, second
 * moments, counts of windows and of the border, and intensities. All of it is exact, so objects of one label merge in any order
 * to the same bits. Coordinates are those of the image. An object is as large as its plan says; it holds no pointers.
 *
 * Record: varints of the label's distance from the one before and the voxels; if there are any and the place is wanted, per axis
 * the lowest coordinate from the chunk's start, the extent less one and the sum of coordinates above the lowest, then the second
 * moments about the lowest corner; then the Euler number and the counts of pairs (a mask of the directions that have any comes
 * first) and of the border; where a mesh is wanted, how many configurations of windows are met, each with its number and count;
 * if there are voxels, the channels.
 */
#ifndef FV_OBJECT_H
#define FV_OBJECT_H

#include "ops/measurement/channel.h"

enum { FV__CHANNELS = 16, FV__SECOND = 6, FV__PAIRS = 13, FV__BORDERS = 3 };

typedef struct fv__object {
    int64_t  label, voxels;
    int64_t  sum[FV_MAX_DIMS], low[FV_MAX_DIMS], high[FV_MAX_DIMS]; /* coordinates; high inclusive */
    __int128 second[FV__SECOND];  /* sums of products of the spatial coordinates: zz zy zx yy yx xx, fewer with fewer axes */
    int64_t  pairs[FV__PAIRS];    /* neighbours that are both in the label, by direction; see windows.h */
    int64_t  euler;               /* Euler number, in parts of a voxel's corners */
    int64_t  border[FV__BORDERS]; /* voxels of its border, by the weight of their neighbourhood */
} fv__object;

/* What is to be counted, beside the voxels and the sums of the intensities. */
typedef struct fv__object_wishes {
    bool place;  /* sums of coordinates, and the box; the next two need it */
    bool second; /* sums of products of the spatial coordinates */
    bool weighted;
    bool windows, border, mesh;
    bool spread; /* of intensities: see channel.h; weighted needs it */
} fv__object_wishes;

/* Layout of objects for given images. */
typedef struct fv__object_plan {
    int              ndim, spatial[FV_MAX_DIMS], nspatial;
    bool             place, second, windows, border, mesh;
    int              configurations; /* of a window: 16, 256, or 0 where windows are not counted */
    size_t           counts_at;      /* of windows by configuration, uint32 */
    size_t           shapes_at;      /* the same over all rows, int64, where a mesh is wanted */
    int              nchannels;
    fv__channel_plan channel[FV__CHANNELS];
    size_t           channel_at[FV__CHANNELS];
    size_t           size;
} fv__object_plan;

#define fv__object_planned FV_ISA_NAME(fv__object_planned)
#define fv__object_start FV_ISA_NAME(fv__object_start)
#define fv__object_add FV_ISA_NAME(fv__object_add)
#define fv__object_most_bytes FV_ISA_NAME(fv__object_most_bytes)
#define fv__object_write FV_ISA_NAME(fv__object_write)
#define fv__object_read FV_ISA_NAME(fv__object_read)

/* intensity: element types of nchannels images. */
fv__object_plan fv__object_planned(const fv_image_type *labels, const fv_dtype *intensity, int nchannels,
                                   fv__object_wishes wishes);
void            fv__object_start(const fv__object_plan *plan, fv__object *object, int64_t label);
/* n voxels in a row along the last axis from position on; values: their intensities, by channel. */
void fv__object_add(const fv__object_plan *plan, fv__object *object, const int64_t *position, int64_t n,
                    const void *const *values);

/* Most bytes of all records with this many voxels (1, 2, or 0: of one record with any number) in a box of this size. A label that
 * is met in several rows may have a record for each. */
int64_t fv__object_most_bytes(const fv__object_plan *plan, const int64_t *size, int64_t voxels);
/* Appends the record at `to`, returns its end. origin: of the chunk. */
uint8_t *fv__object_write(const fv__object_plan *plan, fv__object *object, int64_t label_before, const int64_t *origin,
                          uint8_t *to);
/* Adds the record at `from` to an object. Returns the record's end. label_before is brought up to date; with object NULL that is
 * all, and the return value is NULL. */
const uint8_t *fv__object_read(const fv__object_plan *plan, const uint8_t *from, const int64_t *origin, int64_t *label,
                               fv__object *object);

static inline uint32_t *fv__object_counts(const fv__object_plan *plan, fv__object *object) {
    return (uint32_t *)((char *)object + plan->counts_at);
}
static inline int64_t *fv__object_shapes(const fv__object_plan *plan, fv__object *object) {
    return (int64_t *)((char *)object + plan->shapes_at);
}
static inline fv__channel *fv__object_channel(const fv__object_plan *plan, fv__object *object, int i) {
    return (fv__channel *)((char *)object + plan->channel_at[i]);
}

#endif
