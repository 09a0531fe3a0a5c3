/* The grid of tiles of clahe, as OpenCV lays it: where an image does not divide evenly, it is continued by its mirror image. */
#ifndef FV_TILES_H
#define FV_TILES_H

#include "op/op.h"

typedef struct fv__tiles {
    int     naxes;    /* 1 to 3 spatial axes */
    int     axis[3];  /* their indices in the image */
    int64_t count[3]; /* tiles along each */
    int64_t edge[3];  /* voxels of a tile along each */
    int64_t shape[3]; /* of the image along each */
} fv__tiles;

/* count: tiles along each spatial axis. If one of them does not divide its length, OpenCV continues along all of them. */
static inline fv__tiles fv__tiles_new(const fv_image_type *image, const int64_t *count) {
    fv__tiles t = { 0 };
    int       axis[FV_MAX_DIMS];
    bool      even = true;
    t.naxes = fv_image_type_spatial(image, axis);
    for (int k = 0; k < t.naxes && k < 3; k++) {
        t.axis[k] = axis[k];
        t.count[k] = count[k];
        t.shape[k] = image->shape[axis[k]];
        even = even && t.shape[k] % count[k] == 0;
    }
    for (int k = 0; k < t.naxes && k < 3; k++)
        t.edge[k] = even ? t.shape[k] / count[k] : (t.shape[k] + count[k] - t.shape[k] % count[k]) / count[k];
    return t;
}

/* The two tiles between whose middles a voxel lies, and how far it is on the way from the first to the second. In float, in
 * OpenCV's order, so that the same voxels get the same bits. */
typedef struct fv__between {
    int64_t first, second;
    float   part;
} fv__between;
static inline fv__between fv__tiles_between(const fv__tiles *t, int k, int64_t position) {
    float   inverse = 1.0f / (float)t->edge[k], place = (float)position * inverse - 0.5f, below = floorf(place);
    int64_t first = (int64_t)below;
    return (fv__between){ FV_MAX(first, 0), FV_MIN(first + 1, t->count[k] - 1), place - below };
}

#endif
