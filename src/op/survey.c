/* The first pass of operators that bin an image: the part that does not depend on the instruction set. */
#include "op/survey.h"

size_t fv__survey_scratch(const fv_need *n) { return fv__survey_counts(n) ? fv__tally_scratch(n->in[0]->image.dtype) : 0; }

size_t fv__survey_bound(const fv_need *n) {
    if (!fv__survey_counts(n)) return sizeof(fv_extent);
    return sizeof(fv_tally) + (size_t)fv__tally_keys(n->in[0]->image.dtype) * sizeof(uint64_t);
}

void fv__survey_combine(const void *params, fv_bytes *into, const void *partial, size_t size) {
    if (((const fv_extent *)partial)->mark == -1)
        fv__extent_combine(params, into, partial, size);
    else
        fv__tally_combine(params, into, partial, size);
}

void fv__survey_need_bins(const fv_need *n, fv_region *in) {
    if (fv__survey_counts(n)) fv__need_nothing(&in[0]);
}

fv_status fv__survey_tally(fv_finish *f, const fv_tally **tally, fv_error *error) {
    const void *partial = NULL;
    if (f->npartials) FV_TRY(f->partial(f, 0, &partial, error));
    *tally = partial ? fv__tally_at(partial, f->size(f, 0), 0) : NULL;
    if (*tally && !(*tally)->count) *tally = NULL;
    return FV_OK;
}
