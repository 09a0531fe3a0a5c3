/* Estimates of summaries (op/summaries.h) of rows that come in units, some of which were taken at random: objects of chunks, rows
 * of items. */
#ifndef FV_SUMMARY_ESTIMATE_H
#define FV_SUMMARY_ESTIMATE_H

#include "op/sampling.h"
#include "op/summaries.h"

/* A column of the rows of the units that were seen. Rows in which it is missing have no value. */
typedef struct fv__summary_units {
    double  *value;
    int64_t *end;  /* by unit: behind its last value */
    int64_t *rows; /* by unit: with a value and without */
    double  *size; /* by unit: voxels, or 1 */
} fv__summary_units;

fv_status fv__summary_units_take(fv__summary_units *units, int64_t count, fv_error *error); /* all but value */
void      fv__summary_units_release(fv__summary_units *units);

/* Why a summary cannot be estimated; NULL: it can. */
const char *fv__summary_hindered(fv__summary_function function);
/* column -1: count(). whole: the sizes of all units, seen or not. */
fv_status fv__estimate_summary(const fv_sample *s, fv__summary_function function, int column, double share,
                               const fv__summary_units *units, double whole, fv_interval *e, fv_error *error);

/* Of sorted numbers, as numpy gives it; nan of none. */
double fv__sorted_quantile(const double *sorted, int64_t n, double share);
int    fv__numbers_ascending(const void *a, const void *b); /* for qsort */

#endif
