/* What detectors of blobs share: a response for each scale, maxima over place and scale, pruning by overlap, the table.
 *
 * An operator fills an fv__blobs from its parameters. A task computes the responses of its chunk and one voxel around it, scale
 * by scale, and keeps the maxima; the end prunes them.
 */
#ifndef FV_BLOBS_H
#define FV_BLOBS_H

#include "kernels/scale_space.h"

enum { FV__BLOBS_SCALES = 256 };

/* Where responses are computed: one channel, dense boxes along z, y and x. */
typedef struct fv__blob_box {
    bool          wide; /* double, not float */
    fv_scale_side side[3];
    void         *image; /* in_size voxels; integers are scaled to at most 1 */
} fv__blob_box;

typedef struct fv__blobs {
    const void *params;
    int         scales;
    bool        always_wide; /* compute in double whatever the image */
    double      threshold, overlap;
    int64_t     exclude_border;
    double (*sigma)(const void *params, int scale, int k); /* k: 0, 1, 2 for the spatial axes in order */
    /* Voxels that any response looks at before and after its own along the k-th axis. */
    int64_t (*reach)(const void *params, int k);
    size_t (*scratch)(const struct fv__blobs *b, const fv__blob_box *box);
    /* Fills side.size voxels. Calls come in order of scale, with the same scratch. */
    void (*respond)(const struct fv__blobs *b, const fv__blob_box *box, int scale, void *out, void *scratch);
} fv__blobs;

/* One maximum, as it stands in a partial; index: of the voxel in the image, in raster order. */
typedef struct fv__blob {
    double  response;
    int64_t index, scale;
} fv__blob;

#define fv__blobs_infer FV_ISA_NAME(fv__blobs_infer)
#define fv__blobs_need FV_ISA_NAME(fv__blobs_need)
#define fv__blobs_scratch FV_ISA_NAME(fv__blobs_scratch)
#define fv__blobs_bound FV_ISA_NAME(fv__blobs_bound)
#define fv__blobs_run FV_ISA_NAME(fv__blobs_run)
#define fv__blobs_finish FV_ISA_NAME(fv__blobs_finish)
#define fv__blobs_prune FV_ISA_NAME(fv__blobs_prune)
#define fv__blobs_spacing FV_ISA_NAME(fv__blobs_spacing)

/* Checks the image; makes the type of the table. */
fv_status fv__blobs_infer(fv_infer *i, bool one_sigma, fv_error *error);
void      fv__blobs_need(const fv__blobs *b, const fv_need *n, fv_region *in);
size_t    fv__blobs_scratch(const fv__blobs *b, const fv_need *n);
size_t    fv__blobs_bound(const fv__blobs *b, const fv_need *n);
fv_status fv__blobs_run(const fv__blobs *b, fv_run *r);
fv_status fv__blobs_finish(const fv__blobs *b, fv_finish *f, fv_error *error);
/* Keeps those of `count` blobs that overlap no larger kept one; the others' scale becomes -1. Sorts them on the way. */
fv_status fv__blobs_prune(const fv__blobs *b, const fv_image_type *image, fv__blob *blobs, int64_t count, fv_error *error);

/* The scale-th of `scales` values from least to most: equally spaced, or so their logarithms. */
double fv__blobs_spacing(double least, double most, int scales, bool log_scale, int scale);

/* Checks of parameters that all have. */
#define fv__blobs_sigmas FV_ISA_NAME(fv__blobs_sigmas)
#define fv__blobs_round FV_ISA_NAME(fv__blobs_round)
fv_status fv__blobs_sigmas(fv_numbers *least, fv_numbers *most, const fv_image_type *image, fv_error *error);
bool      fv__blobs_round(const fv_numbers *least, const fv_numbers *most); /* the same for all axes */

/* The passes of an operator whose file has `static fv__blobs blobs(const void *params)`. */
#define FV__BLOBS_PASSES                                                                                                         \
    static void need(const fv_need *n, fv_region *in) {                                                                          \
        fv__blobs b = blobs(n->params);                                                                                          \
        fv__blobs_need(&b, n, in);                                                                                               \
    }                                                                                                                            \
    static size_t scratch(const fv_need *n) {                                                                                    \
        fv__blobs b = blobs(n->params);                                                                                          \
        return fv__blobs_scratch(&b, n);                                                                                         \
    }                                                                                                                            \
    static size_t bound(const fv_need *n) {                                                                                      \
        fv__blobs b = blobs(n->params);                                                                                          \
        return fv__blobs_bound(&b, n);                                                                                           \
    }                                                                                                                            \
    static fv_status run(fv_run *r, fv_error *error) {                                                                           \
        (void)error;                                                                                                             \
        fv__blobs b = blobs(r->need.params);                                                                                     \
        return fv__blobs_run(&b, r);                                                                                             \
    }                                                                                                                            \
    static fv_status finish(fv_finish *f, fv_error *error) {                                                                     \
        fv__blobs b = blobs(f->params);                                                                                          \
        return fv__blobs_finish(&b, f, error);                                                                                   \
    }                                                                                                                            \
    static const fv_pass passes[] = {                                                                                            \
        { .name = "maxima", .need = need, .scratch = scratch, .bound = bound, .run = run, .finish = finish }, FV_PASS_END        \
    };

#define FV__BLOBS_DOC                                                                                                            \
    "\nIntegers are taken as fractions of the largest value of their type, as in scikit-image, so that threshold does not "      \
    "depend on the type.\n"                                                                                                      \
    "A voxel at a scale is a blob if its response is above threshold, and larger than that of all its neighbours in place "      \
    "and scale (of equal neighbours, the first in raster order counts). Of two blobs that overlap by more than overlap, "        \
    "the smaller one is dropped: blobs are taken from the largest sigma down, of equal ones the strongest first, and each "      \
    "is compared with those kept before. scikit-image compares them in no fixed order, so a few blobs may differ."

#endif
