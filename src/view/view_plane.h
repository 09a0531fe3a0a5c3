/* Planes of images that are shown, put together from decoded pieces that are kept.
 *
 * Pieces are plates: chunks of the file, cut to a few planes along the axis that is looked along. A chunk that is decoded whole
 * for one plane so serves those beside it, and what is kept of it is little. */
#ifndef FV_VIEW_PLANE_H
#define FV_VIEW_PLANE_H

#include "view/view_cache.h"
#include "view/view_pool.h"
#include "view/view_source.h"

typedef struct fv_view_plane {
    fv_view_source *source;
    int             level, axis;        /* axis: 0 z, 1 y, 2 x: the one that the plane lies across */
    int64_t         index;              /* along it */
    int64_t         fixed[FV_MAX_DIMS]; /* index along axes that are not in space */
    int64_t         row, column;        /* of the part that is wanted, and its size */
    int64_t         height, width;
} fv_view_plane;

/* Axes of the source that rows and columns of a plane are counted along; -1: it has none, and there is one. */
void fv_view_plane_axes(const fv_view_source *source, int axis, int *row, int *column);
/* Voxels of a pixel: 3 for colour. */
int fv_view_plane_samples(const fv_view_source *source);
/* Reads it to data, height x width x samples. stop may be NULL, and is asked between pieces. */
fv_status fv_view_plane_read(const fv_view_plane *plane, fv_view_cache *cache, fv_view_pool *pool, void *data,
                             bool (*stop)(const void *context), const void *context, fv_error *error);
/* A box of the image itself, to memory with strides, through the pieces of planes across its shortest axis in space. In this
 * thread. */
fv_status fv_view_box_read(fv_view_source *source, const fv_block *block, fv_view_cache *cache, fv_error *error);
/* Loads the pieces of the plane that are not there yet, in this thread, until stop says so. */
void fv_view_plane_prepare(const fv_view_plane *plane, fv_view_cache *cache, bool (*stop)(const void *context),
                           const void *context);
/* The index of the next plane in other pieces, up (+1) or down (-1); -1: there is none, or pieces are not kept. */
int64_t fv_view_plane_beyond(const fv_view_plane *plane, int direction);

#endif
