/* The labels of a chunk, each with a count: gathered in a hash table, then sorted by label. A partial of such a chunk is its
 * items in order.
 */
#ifndef FV_LABEL_SET_H
#define FV_LABEL_SET_H

#include "base/hash_table.h"
#include "kernels/stretches.h"
#include "op/op.h"

typedef struct fv__labelled {
    int64_t label, count;
} fv__labelled;

typedef struct fv__label_set {
    fv__labelled *item;
    fv_hash_table table; /* of items by label */
    int64_t       count;
    fv_stretch   *row; /* room for the stretches of one row */
} fv__label_set;

#define fv__label_set_init FV_ISA_NAME(fv__label_set_init)
#define fv__label_set_add FV_ISA_NAME(fv__label_set_add)
#define fv__label_set_find FV_ISA_NAME(fv__label_set_find)
#define fv__label_set_gather FV_ISA_NAME(fv__label_set_gather)
#define fv__border_count FV_ISA_NAME(fv__border_count)
#define fv__label_sets_merge FV_ISA_NAME(fv__label_sets_merge)

/* Bytes for the labels of a region; with scratch NULL that is all. */
size_t fv__label_set_init(fv__label_set *set, const fv_region *region, void *scratch);
/* Adds to the count of a label, which may be new. */
void fv__label_set_add(fv__label_set *set, int64_t label, int64_t count);
/* Place of a label in the sorted set; it must be there. */
int64_t fv__label_set_find(const fv__label_set *set, int64_t label);
/* All labels of a block but 0, sorted, with the number of their voxels. border: only of those nearer than this to the border of
 * the image; 0: all. */
fv_status fv__label_set_gather(fv__label_set *set, const fv_block *labels, const fv_image_type *image, int64_t border,
                               fv_error *error);
/* Voxels start..end of a row along an axis that count with such a border; position is any voxel of the row. */
int64_t fv__border_count(const fv_image_type *image, int64_t border, int axis, const int64_t *position, int64_t start,
                         int64_t end);

/* Calls decide for every label in order, with its count over all chunks, and puts the numbers (int64) that it returns: result
 * `chunk` is parallel to that chunk's sorted set. Holds all labels, but no voxels. */
fv_status fv__label_sets_merge(fv_finish *f, int64_t (*decide)(void *context, int64_t label, int64_t count), void *context,
                               fv_error *error);

#endif
