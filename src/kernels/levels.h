/* What follows from an image's histogram alone: thresholds (otsu, li, triangle ...), and curves from value to value (equalize,
 * kmeans). Counting, and what comes out. A method only looks at the levels.
 *
 * Levels are values with their counts: one a value for integers, bins of equal width from the least to the greatest value for
 * floating-point images. Two passes: integers of up to 16 bits and bool are counted in the first, of others it finds the range
 * and the second one counts.
 */
#ifndef FV_LEVELS_H
#define FV_LEVELS_H

#include "kernels/bins.h"
#include "op/interval.h"
#include "op/survey.h"

typedef struct fv__levels {
    const uint64_t *counts;  /* the first and the last one are not 0 */
    const double   *centres; /* ascending, equally spaced */
    int64_t         count;   /* at least 2; for put at least 1 */
    bool            single;  /* scikit-image would compute in float32: the image is float32 */
    bool            whole;   /* each level is an integer: low and those that follow it */
    uint64_t        low;     /* an int64, or the bits of a uint64 */
    const void     *params;
} fv__levels;

typedef struct fv__method {
    int64_t bins;                               /* for floating-point images, at most */
    int64_t (*choose_bins)(const void *params); /* NULL: that many */
    /* One of the three: the index of the last level below the threshold, the threshold itself, or what puts the result of the
     * second pass, whatever that is. */
    int64_t (*split)(const fv__levels *levels);
    double (*value)(const fv__levels *levels);
    fv_status (*put)(fv_finish *f, const fv__levels *levels, fv_error *error);
    bool heights; /* it follows the counts of single levels, which a small sample does not tell */
} fv__method;

#define FV_LEVELS_DOC                                                                                                            \
    "Integers are counted value by value, other images in 256 bins from the smallest to the largest value. Values above "        \
    "the threshold are the bright class. If all values are equal, the result is that value; nan and infinity are refused."

#define fv__levels_bins FV_ISA_NAME(fv__levels_bins)
#define fv__levels_span FV_ISA_NAME(fv__levels_span)
#define fv__levels_of_bins FV_ISA_NAME(fv__levels_of_bins)
#define fv__levels_of_values FV_ISA_NAME(fv__levels_of_values)
#define fv__levels_survey_scratch FV_ISA_NAME(fv__levels_survey_scratch)
#define fv__levels_survey_bound FV_ISA_NAME(fv__levels_survey_bound)
#define fv__levels_survey_run FV_ISA_NAME(fv__levels_survey_run)
#define fv__levels_estimate FV_ISA_NAME(fv__levels_estimate)
#define fv__levels_hindered FV_ISA_NAME(fv__levels_hindered)
#define fv__levels_infer FV_ISA_NAME(fv__levels_infer)
#define fv__levels_finish_survey FV_ISA_NAME(fv__levels_finish_survey)
#define fv__levels_scratch FV_ISA_NAME(fv__levels_scratch)
#define fv__levels_bound FV_ISA_NAME(fv__levels_bound)
#define fv__levels_run FV_ISA_NAME(fv__levels_run)
#define fv__levels_finish FV_ISA_NAME(fv__levels_finish)

fv_status fv__levels_infer(fv_infer *i, const fv__method *method, fv_error *error);
fv_status fv__levels_finish_survey(fv_finish *f, const fv__method *method, fv_error *error);
size_t    fv__levels_scratch(const fv_need *n, const fv__method *method);
size_t    fv__levels_bound(const fv_need *n, const fv__method *method);
fv_status fv__levels_run(fv_run *r, const fv__method *method, fv_error *error);
fv_status fv__levels_finish(fv_finish *f, const fv__method *method, fv_error *error);
int64_t   fv__levels_bins(const fv__method *method, const void *params); /* of a floating-point image */
/* How many levels integers of more than 16 bits have; an error, if there are too many. */
fv_status fv__levels_span(const fv_extent *extent, fv_dtype dtype, int64_t *levels, fv_error *error);
/* Puts what the method finds in bins of equal width, or with one level a value, from low (an int64, or the bits of a uint64) on.
 */
fv_status fv__levels_of_bins(fv_finish *f, const fv__method *method, const fv_bins *bins, const uint64_t *counts,
                             fv_error *error);
fv_status fv__levels_of_values(fv_finish *f, const fv__method *method, const fv_tally *tally, uint64_t low, fv_error *error);

/* levels_estimate.c: the first pass of one that can be estimated keeps a sketch of each chunk's values, and what follows of some.
 */
size_t      fv__levels_survey_scratch(const fv_need *n);
size_t      fv__levels_survey_bound(const fv_need *n);
fv_status   fv__levels_survey_run(fv_run *r, fv_error *error);
fv_status   fv__levels_estimate(fv_sample *s, const fv__method *method, fv_interval *e, fv_error *error);
const char *fv__levels_hindered(const void *params, const fv_type *const *in);

static const fv_input fv__levels_inputs[] = {
    { "image", FV_KIND_IMAGE, .doc = "image with dark and bright parts" },
    FV_INPUT_END,
};

/* The two passes of an operator whose file has `static const fv__method method`. */
#define FV_LEVELS_FUNCTIONS                                                                                                      \
    static fv_status finish_survey(fv_finish *f, fv_error *error) { return fv__levels_finish_survey(f, &method, error); }        \
    static size_t    scratch(const fv_need *n) { return fv__levels_scratch(n, &method); }                                        \
    static size_t    bound(const fv_need *n) { return fv__levels_bound(n, &method); }                                            \
    static fv_status run(fv_run *r, fv_error *error) { return fv__levels_run(r, &method, error); }                               \
    static fv_status finish(fv_finish *f, fv_error *error) { return fv__levels_finish(f, &method, error); }
#define FV_LEVELS_SURVEY                                                                                                         \
    {                                                                                                                            \
        .name = "survey", .scratch = fv__survey_scratch, .run = fv__survey_run, .bound = fv__survey_bound,                       \
        .combine = fv__survey_combine, .finish = finish_survey                                                                   \
    }
#define FV_LEVELS_BINS                                                                                                           \
    {                                                                                                                            \
        .name = "bins", .need = fv__survey_need_bins, .scratch = scratch, .run = run, .bound = bound,                            \
        .combine = fv__tally_combine, .finish = finish                                                                           \
    }

/* The first pass and the estimator of a threshold: FV_ESTIMATOR(name) = FV_LEVELS_ESTIMATOR. */
#define FV_LEVELS_SKETCH                                                                                                         \
    {                                                                                                                            \
        .name = "survey", .scratch = fv__levels_survey_scratch, .run = fv__levels_survey_run, .bound = fv__levels_survey_bound,  \
        .combine = fv__survey_combine, .finish = finish_survey                                                                   \
    }
#define FV_LEVELS_ESTIMATE                                                                                                       \
    static fv_status estimate(fv_sample *s, fv_interval *e, fv_error *error) { return fv__levels_estimate(s, &method, e, error); }
#define FV_LEVELS_ESTIMATOR                                                                                                      \
    { .estimate = estimate, .hindered = fv__levels_hindered, .method = "bootstrap" }

/* infer, passes and estimate of one that gives a threshold. */
#define FV_LEVELS_PASSES                                                                                                         \
    static fv_status infer(fv_infer *i, fv_error *error) { return fv__levels_infer(i, &method, error); }                         \
    FV_LEVELS_FUNCTIONS                                                                                                          \
    FV_LEVELS_ESTIMATE                                                                                                           \
    static const fv_pass passes[] = { FV_LEVELS_SKETCH, FV_LEVELS_BINS, FV_PASS_END };

#endif
