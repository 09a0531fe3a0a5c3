/* Parts of an image in which the chunks of a sample lie: where parts differ from each other more than chunks inside of them, an
 * estimate that gives each part its own weight is known better. */
#ifndef FV_STRATA_H
#define FV_STRATA_H

#include "exec/exec.h"

typedef struct fv_strata {
    int32_t *stratum; /* by chunk of the sample, in its order */
    int64_t *chunks;  /* by stratum: all that lie in it */
    int      count;
} fv_strata;

/* Of the first chunks of an order, of a stage that reduces this image. Parts are boxes of neighbouring chunks; of images with an
 * axis item, items or runs of them, and boxes inside of items only where the sample is large enough. At least two chunks of the
 * sample lie in each. They follow from places alone, never from values. False: there are fewer than two. What was found before is
 * released. */
bool fv__strata_find(fv_strata *strata, const fv_stage *stage, const fv_image_type *image, const int64_t *order, int64_t seen);
/* Of units that are put into parts by other means: part by unit, below count. Neighbouring parts of which too little was seen are
 * taken together. */
bool fv__strata_of_parts(fv_strata *strata, const int32_t *part, int64_t units, int64_t count, const int64_t *order,
                         int64_t seen);
/* Of units of which neighbours may resemble each other: runs of them are parts. */
bool fv__strata_of_runs(fv_strata *strata, int64_t units, const int64_t *order, int64_t seen);
void fv__strata_release(fv_strata *strata);

#endif
