/* Values that are estimated from some of their chunks (approx): the parameters, what an operator says about it, and what follows
 * from the parameters alone.
 *
 * Chunks are taken in an order that follows from the seed. With error or absolute, the sample is looked at when it has certain
 * sizes, and the first that is good enough counts: so the value depends on seed and data, never on who computes it when.
 */
#ifndef FV_SAMPLING_H
#define FV_SAMPLING_H

#include "op/op.h"

struct fv_reader; /* op/format.h */

/* ---------------------------------------------------------------- what is asked for */

typedef struct fv_sampling {
    double  error, absolute; /* half the width of the interval: of the value, or as a number; 0: not asked */
    double  time;            /* seconds; 0: not asked */
    double  confidence;
    int64_t seed;
    bool    joint; /* of a table: all of its intervals hold at once with this confidence */
    bool    whole; /* time is that of the whole run */
} fv_sampling;

/* The parameters of an operator that only says how another's value is sampled. */
extern const fv_param fv__sampling_params[];
static inline bool    fv__op_samples(const fv_op *op) { return op && op->params == fv__sampling_params; }
fv_status             fv__sampling_check(const fv_sampling *sampling, fv_error *error);

/* What --within and --within-error ask for, one of which is 0. */
static inline fv_sampling fv__sampling_within(double time, double error) {
    return (fv_sampling){ .time = time, .error = error, .confidence = 0.95, .whole = time > 0 };
}

/* ---------------------------------------------------------------- what an operator can say */

/* Some chunks of a reduction, taken at random. */
typedef struct fv_sample {
    const fv_op       *op;
    const void        *params;
    const fv_type     *in[FV_MAX_INPUTS], *out;
    int64_t            seen, population; /* chunks */
    bool               inexact;          /* chunks give estimates: all of them together do not tell the truth either */
    double             voxels;           /* of all chunks */
    double             confidence;
    const fv_sampling *chosen; /* of several sizes it has the first that is good enough for this; NULL: it has its size for
                                  other reasons */
    uint64_t       seed;
    const double  *control; /* by chunk, as the partials: what is known of it beforehand (exec/coarse_sums.h); NULL: nothing */
    const int32_t *stratum; /* by chunk, as the partials: the part of the image in which it lies (exec/strata.h); NULL: nothing */
    const int64_t *of_stratum; /* so many chunks each has, seen or not */
    int            strata;
    int64_t        intervals; /* that are asked for of these chunks at once, where there are many: resampling each takes long */
    /* The partial of the first pass, of a chunk below seen in the order in which they were taken; borrowed until the next. Where
     * the operator summarises a table of all items, items take the place of chunks: the rows of one as cells, whose texts live as
     * long as the sample. */
    fv_status (*partial)(struct fv_sample *s, int64_t i, const void **data, size_t *size, double *voxels, fv_error *error);
} fv_sample;

typedef struct fv_interval {
    double  value, low, high; /* nan in low and high: too few chunks were seen for an interval */
    double  informative;      /* chunks that the width of the interval rests on, roughly */
    double  confidence;
    int64_t seen, population;
    char    method[24];
} fv_interval;

/* Estimates of the rows of a table. Its first columns are plain: known, and not estimated. */
typedef struct fv_estimates {
    int64_t      nrows;
    int          nplain, nvalues; /* columns */
    fv_cell     *plain;           /* by row */
    fv_interval *interval;
    fv_arena     texts; /* of plain cells */
} fv_estimates;
void fv__estimates_init(fv_estimates *e, int64_t nrows, int nplain, int nvalues); /* all zero */
void fv__estimates_release(fv_estimates *e);

/* Operators that together make a table which another one, the twin, makes of the image chunk by chunk, so that chunks can be
 * sampled: labels, then rows of objects, then rows chosen of these, then a summary. Inputs and parameters of the same name are
 * the twin's. */
typedef enum fv_chain { FV_CHAIN_NONE, FV_CHAIN_FIRST, FV_CHAIN_NEXT, FV_CHAIN_LAST } fv_chain;

/* What a coarse level of the file says of a chunk: the sum of its voxels, or that of their ranks among all, from 0 to 1. */
typedef enum fv_control { FV_CONTROL_NONE, FV_CONTROL_SUM, FV_CONTROL_RANK } fv_control;

/* Beside its descriptor, the file of an operator that can be estimated has
 *
 *     const fv_estimator FV_ESTIMATOR(mean) = { .estimate = fv__estimate_mean };
 */
typedef struct fv_estimator {
    /* From the partials that the first pass made of some chunks. */
    fv_status (*estimate)(fv_sample *s, fv_interval *e, fv_error *error);
    /* The same for an operator that gives a table, the first columns of which are plain. It fills in e with fv__estimates_init,
     * and gives the exact values if all chunks were seen. Without an image among its inputs, chunks are items. */
    fv_status (*rows)(fv_sample *s, fv_estimates *e, fv_error *error);
    int plain;
    int (*plain_of)(const void *params, const fv_type *const *in); /* in place of plain, where it depends on these */
    const char *method;                                            /* for people; NULL: bootstrap-t */
    fv_control  control; /* what estimate uses of all chunks, if it is known beforehand */
    /* Of an operator that reads an image: the coarsest of its levels that has the same axes and at least so many voxels, or the
     * finest if none has, which the caller releases; NULL in reader: there is none. */
    fv_status (*coarse)(const void *params, const fv_image_type *image, int64_t least, struct fv_reader **reader,
                        fv_error *error);
    /* Why it cannot be estimated with such parameters and inputs, and what can be asked instead; NULL, or gives NULL: it can. */
    const char *(*hindered)(const void *params, const fv_type *const *in);
    fv_chain    chain;
    const char *twin; /* of the last link */
} fv_estimator;
#define FV_ESTIMATOR(name) FV_ISA_NAME(FV_PASTE(fv_estimator_, name))

/* NULL: nothing can be said from some of the chunks. */
const fv_estimator *fv__op_estimator(const fv_op *op);

/* ---------------------------------------------------------------- what follows from it */

/* Below this, nothing is said about a population that was not seen as a whole. */
#define FV_LEAST_SAMPLE 8

/* Numbers 0 to count - 1 in the order of a seed. The caller frees. */
int64_t *fv__sampling_order(uint64_t seed, int64_t count);
/* The size at which a sample that has this size already is looked at next, at most count. */
int64_t fv__sampling_next(int64_t size, int64_t count);
/* The confidence of an interval that is one of many, of so many of all chunks: all that are shown while a sample grows hold at
 * once as often as was asked for, at whatever sizes it is looked at. They take half of the doubt; the other half is for heavy
 * tails, of which small samples know too little. */
double fv__sampling_look(double confidence, int64_t size, int64_t count);
/* The table with columns NAME_low and NAME_high behind each estimated one, and at the end how much was seen of so many units
 * ("chunks", "items"). */
fv_status fv__sampling_table(const fv_table_type *exact, int plain, const char *units, fv_table_type *out, fv_error *error);
/* Whether the width of an interval rests on enough chunks to be believed. */
bool fv__sampling_sound(const fv_interval *estimate);
/* Half the width of an interval around a value that is good enough. */
double fv__sampling_wanted(const fv_sampling *sampling, double value);
/* Whether an estimate is as good as was asked for. */
bool fv__sampling_reached(const fv_sampling *sampling, const fv_interval *estimate);

#endif
