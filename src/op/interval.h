/* Estimates of reductions from some of their chunks, taken at random without replacement: the chunk is what is sampled, because
 * its voxels resemble each other.
 *
 * Means are ratios of two sums over chunks (W. G. Cochran, Sampling Techniques, 1977, chapters 2, 6 and 9), with the correction
 * for a finite population. The interval reaches as far as the wider of Student's t and the bootstrap-t (B. Efron, R. Tibshirani,
 * An Introduction to the Bootstrap, 1993, chapter 12) on each side, since t alone is too narrow where a few chunks are unlike all
 * others.
 */
#ifndef FV_INTERVAL_H
#define FV_INTERVAL_H

#include "op/sampling.h"

/* Student's t below which a part p of the distribution lies; p above one half, at least 7 degrees of freedom. */
double fv__student(double p, double freedom);

/* The ratio of the sums of y and x over all chunks, from seen ones; fills in all of the estimate but what the sampling knows. */
fv_status fv__estimate_ratio(const fv_sample *s, const double *x, const double *y, fv_interval *e, fv_error *error);

/* All of it times a factor; the square root of a variance. */
void fv__interval_scale(fv_interval *e, double factor);
void fv__interval_root(fv_interval *e);

/* A quantile of which the interval of the part below it is known, brought back to values (R. S. Woodruff, Confidence intervals
 * for medians and other position measures, J. Am. Stat. Assoc. 47, 1952). */
typedef struct fv_ranked {
    /* The value below which a part of all lies, as if values that were rounded had not been. */
    double (*at)(const struct fv_ranked *r, double part);
} fv_ranked;
/* The parts that lie below the ends of the interval, around part. Where these leave 0 to 1, the sample does not bound the
 * quantile: the estimate is too few then. */
bool fv__interval_parts(const fv_sample *s, const fv_ranked *r, double part, fv_interval *e, double *below, double *above);

/* Of operators whose partial is fv_moments. */
fv_status fv__estimate_sum(fv_sample *s, fv_interval *e, fv_error *error);
fv_status fv__estimate_mean(fv_sample *s, fv_interval *e, fv_error *error);
fv_status fv__estimate_var(fv_sample *s, fv_interval *e, fv_error *error);
fv_status fv__estimate_std(fv_sample *s, fv_interval *e, fv_error *error);
/* Of a count, whose partial is an int64_t. */
fv_status fv__estimate_count(fv_sample *s, fv_interval *e, fv_error *error);
/* How groups of chunks are put together, and what number they give. */
struct fv_group_way;
/* Extends the range of values of all that was seen to where that of the whole image may reach; NULL: it does not matter. */
typedef fv_status fv_group_stretch(const struct fv_group_way *way, fv_sample *s, fv_bytes *groups, fv_error *error);
typedef struct fv_group_way {
    fv_status (*add)(const struct fv_group_way *way, fv_bytes *group, const void *partial, size_t size, fv_error *error);
    fv_status (*join)(const struct fv_group_way *way, fv_bytes *groups, const void *group, size_t size, fv_error *error);
    fv_status (*value)(const struct fv_group_way *way, const fv_sample *s, const fv_bytes *groups, double *value,
                       fv_error *error);
    fv_group_stretch *stretch;
} fv_group_way;
/* Of such a number, by a bootstrap over groups of chunks. step: by how much its values differ at least. */
fv_status fv__estimate_groups_by(fv_sample *s, const fv_group_way *way, double step, fv_interval *e, fv_error *error);
/* The number of all chunks that were seen, of an operator whose first pass has combine, and whose finish gives it. */
fv_status fv__estimate_merged(fv_sample *s, double *value, fv_error *error);
/* The same for any operator whose first pass has combine, and whose finish gives the number. */
fv_status fv__estimate_groups(fv_sample *s, double step, fv_group_stretch *stretch, fv_interval *e, fv_error *error);

#endif
