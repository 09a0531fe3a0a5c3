/* What fill_holes, remove_small and clear_border share: objects stay or go by one number that is summed over their voxels.
 *
 * Objects of bool images are connected components (of the foreground or of the background), those of integer images are their
 * labels. Pass "objects" sums the number over each object of a chunk, its merge adds up what belongs together and decides, and
 * pass "keep" writes what stays.
 */
#ifndef FV_SIEVE_H
#define FV_SIEVE_H

#include "op/op.h"

typedef struct fv__sieve {
    int64_t connectivity;
    int64_t border; /* count only voxels nearer than this to the image's border; 0: count all */
    int64_t least;  /* an object stays if its count is at least this */
    int64_t most;   /* and at most this */
    bool    holes;  /* objects are components of what is 0; what does not stay of them is filled */
} fv__sieve;

#define fv__sieve_infer FV_ISA_NAME(fv__sieve_infer)
#define fv__sieve_objects_need FV_ISA_NAME(fv__sieve_objects_need)
#define fv__sieve_objects_scratch FV_ISA_NAME(fv__sieve_objects_scratch)
#define fv__sieve_objects_bound FV_ISA_NAME(fv__sieve_objects_bound)
#define fv__sieve_objects FV_ISA_NAME(fv__sieve_objects)
#define fv__sieve_finish FV_ISA_NAME(fv__sieve_finish)
#define fv__sieve_keep_need FV_ISA_NAME(fv__sieve_keep_need)
#define fv__sieve_keep_scratch FV_ISA_NAME(fv__sieve_keep_scratch)
#define fv__sieve_keep FV_ISA_NAME(fv__sieve_keep)

/* labels: whether integer images are taken as label images; otherwise they are refused. */
fv_status fv__sieve_infer(fv_infer *i, const fv__sieve *s, bool labels, fv_error *error);
fv_region fv__sieve_objects_need(const fv_need *n);
size_t    fv__sieve_objects_scratch(const fv_need *n, const fv__sieve *s);
size_t    fv__sieve_objects_bound(const fv_need *n, const fv__sieve *s);
fv_status fv__sieve_objects(fv_run *r, const fv__sieve *s, fv_error *error);
fv_status fv__sieve_finish(fv_finish *f, const fv__sieve *s, fv_error *error);
fv_region fv__sieve_keep_need(const fv_need *n);
size_t    fv__sieve_keep_scratch(const fv_need *n, const fv__sieve *s);
fv_status fv__sieve_keep(fv_run *r, const fv__sieve *s, fv_error *error);

/* The passes of an operator with a function sieve_of(params), which gives its fv__sieve. */
#define FV__SIEVE_PASSES                                                                                                         \
    static void   objects_need(const fv_need *n, fv_region *in) { in[0] = fv__sieve_objects_need(n); }                           \
    static void   keep_need(const fv_need *n, fv_region *in) { in[0] = fv__sieve_keep_need(n); }                                 \
    static size_t objects_scratch(const fv_need *n) {                                                                            \
        fv__sieve s = sieve_of(n->params);                                                                                       \
        return fv__sieve_objects_scratch(n, &s);                                                                                 \
    }                                                                                                                            \
    static size_t objects_bound(const fv_need *n) {                                                                              \
        fv__sieve s = sieve_of(n->params);                                                                                       \
        return fv__sieve_objects_bound(n, &s);                                                                                   \
    }                                                                                                                            \
    static size_t keep_scratch(const fv_need *n) {                                                                               \
        fv__sieve s = sieve_of(n->params);                                                                                       \
        return fv__sieve_keep_scratch(n, &s);                                                                                    \
    }                                                                                                                            \
    static fv_status objects_run(fv_run *r, fv_error *error) {                                                                   \
        fv__sieve s = sieve_of(r->need.params);                                                                                  \
        return fv__sieve_objects(r, &s, error);                                                                                  \
    }                                                                                                                            \
    static fv_status finish(fv_finish *f, fv_error *error) {                                                                     \
        fv__sieve s = sieve_of(f->params);                                                                                       \
        return fv__sieve_finish(f, &s, error);                                                                                   \
    }                                                                                                                            \
    static fv_status keep_run(fv_run *r, fv_error *error) {                                                                      \
        fv__sieve s = sieve_of(r->need.params);                                                                                  \
        return fv__sieve_keep(r, &s, error);                                                                                     \
    }                                                                                                                            \
    static const fv_pass passes[] = {                                                                                            \
        { .name = "objects",                                                                                                     \
          .need = objects_need,                                                                                                  \
          .scratch = objects_scratch,                                                                                            \
          .bound = objects_bound,                                                                                                \
          .run = objects_run,                                                                                                    \
          .finish = finish },                                                                                                    \
        { .name = "keep", .need = keep_need, .scratch = keep_scratch, .run = keep_run },                                         \
        FV_PASS_END,                                                                                                             \
    };

#endif
