/* Boundary modes, as scipy.ndimage names them:
 *     reflect (d c b a | a b c d | d c b a)     mirror (d c b | a b c d | c b a)     nearest (a a a | a b c d | d d d)
 *     wrap    (b c d   | a b c d | a b c)       constant (k k k | a b c d | k k k)
 */
#ifndef FV_BORDER_H
#define FV_BORDER_H

#include "image/region.h"

typedef enum fv_border { FV_BORDER_REFLECT, FV_BORDER_NEAREST, FV_BORDER_MIRROR, FV_BORDER_CONSTANT, FV_BORDER_WRAP } fv_border;
#define FV_BORDER_CHOICES "reflect|nearest|mirror|constant|wrap"

/* Where index i of an axis of n voxels comes from; -1: the constant. Works at any distance. */
int64_t fv__border_index(fv_border border, int64_t i, int64_t n);
/* map[k] = source of index start + k, for k < count. */
void fv__border_map(fv_border border, int64_t n, int64_t start, int64_t count, int64_t *map);
/* Region of an image that a region needs when each voxel looks `before` back and `after` ahead on each axis (0 on axes that
 * the operator does not look along). For wrap the whole axis where the border is crossed. */
fv_region fv__border_need(fv_border border, const fv_region *region, const int64_t *before, const int64_t *after,
                          const int64_t *shape);

#endif
