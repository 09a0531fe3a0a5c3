/* The first pass of operators that bin an image (histogram, otsu): of integers up to 16 bits and bool it counts every value,
 * which is all that is needed; of others it finds the range, and a second pass counts in bins. */
#ifndef FV_SURVEY_H
#define FV_SURVEY_H

#include "op/extent.h"
#include "op/tally.h"

static inline bool fv__survey_counts(const fv_need *n) { return fv__tally_fits(n->in[0]->image.dtype); }

size_t fv__survey_scratch(const fv_need *n);
size_t fv__survey_bound(const fv_need *n);
void   fv__survey_combine(const void *params, fv_bytes *into, const void *partial, size_t size);
/* The need of the second pass: nothing, where every value has been counted. */
void fv__survey_need_bins(const fv_need *n, fv_region *in);
/* The counts, where the first pass made them; NULL for an image without voxels. */
fv_status fv__survey_tally(fv_finish *f, const fv_tally **tally, fv_error *error);

static inline fv_status fv__survey_run(fv_run *r, fv_error *error) {
    return fv__survey_counts(&r->need) ? fv__tally_run(r, error) : fv__extent_run(r, error);
}

#endif
