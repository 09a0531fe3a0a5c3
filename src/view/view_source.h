/* An image file that is shown: its type, the levels in which it can be seen, and boxes of them.
 *
 * Levels are those of the file's own pyramid. Where they end early, or a file has none, further ones take every 2nd, 4th, 8th
 * voxel of the last, so that a large plane or volume can be seen whole. A file that can be read only in order is unpacked once,
 * into a file without a name.
 *
 * A source is shared by threads and freed by its last user. It never follows a file that was replaced: whoever has it asks
 * fv_view_source_current, and opens another one.
 */
#ifndef FV_VIEW_SOURCE_H
#define FV_VIEW_SOURCE_H

#include "op/format.h"
#include <pthread.h>
#include <stdatomic.h>

enum { FV_VIEW_MOST_LEVELS = 16, FV_VIEW_SPACE = 3 };

typedef struct fv_view_level {
    char   *inside;              /* what the file calls it; NULL: it is the image itself */
    int64_t shape[FV_MAX_DIMS];  /* as it is seen */
    int64_t factor[FV_MAX_DIMS]; /* voxels of the finest level for one of this */
    int64_t full[FV_MAX_DIMS];   /* as it is in the file */
    int64_t step[FV_MAX_DIMS];   /* of voxels in the file that are taken, the middle one of so many; 1: all */
    int64_t chunk[FV_MAX_DIMS];  /* natural pieces of the file */
    bool    whole_pieces;        /* decoded whole, however little of one is wanted */
} fv_view_level;

typedef struct fv_view_source {
    char         *path;
    fv_image_type type;
    char          axis[FV_MAX_DIMS][8]; /* as they are shown: the last three in space are called z y x */
    int           space[FV_VIEW_SPACE]; /* which axis is z, y, x; -1: there is none */
    int           colour;               /* the axis of red, green and blue; -1: none */
    int           nlevels;
    fv_view_level level[FV_VIEW_MOST_LEVELS];
    uint64_t      serial; /* no other source has it */
    /* A source that is computed and no file: a box of it to dense memory. */
    fv_status (*compute)(void *context, const fv_region *region, void *data, fv_error *error);
    void *context;
    void (*release)(void *context); /* with the source */
    /* The rest is its own. */
    fv_file_id      id;
    bool            sequential;
    pthread_mutex_t mutex;    /* guards what follows */
    int             unpacked; /* -1: not yet */
    atomic_int      users;
} fv_view_source;

/* inside: the dataset in a file that holds several, or NULL. labels: an axis c is not colour. */
fv_status fv_view_source_open(const char *path, const char *inside, bool labels, fv_view_source **source, fv_error *error);
/* One that is computed, by the function that the caller then sets, with its levels. */
fv_view_source *fv_view_source_new(const char *path, const fv_image_type *type, bool labels);
fv_view_source *fv_view_source_ref(fv_view_source *source);
void            fv_view_source_unref(fv_view_source *source);
/* Whether the file is still the one that was opened. An error: it is gone. */
fv_status fv_view_source_current(const fv_view_source *source, bool *current, fv_error *error);
/* A box of a level to dense memory, in the order of the file's axes. Safe from several threads. */
fv_status fv_view_source_read(fv_view_source *source, int level, const fv_region *region, void *data, fv_error *error);
/* The same of the image itself, to memory with strides. */
fv_status fv_view_source_block(fv_view_source *source, const fv_block *block, fv_error *error);

#endif
