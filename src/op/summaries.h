/* Summaries of columns, written as text: "count(), mean(volume), quantile(volume, 0.9) as large". Sums are exact, so that rows
 * may come in any order. */
#ifndef FV_SUMMARIES_H
#define FV_SUMMARIES_H

#include "base/exact_sum.h"
#include "op/op.h"

typedef enum fv__summary_function {
    FV__COUNT,
    FV__SUM,
    FV__MEAN,
    FV__STD,
    FV__MIN,
    FV__MAX,
    FV__MEDIAN,
    FV__QUANTILE,
    FV__COUNT_DISTINCT,
    FV__FIRST,
    FV__LAST
} fv__summary_function;

typedef struct fv__summaries {
    int count;
    struct {
        fv__summary_function function;
        int                  column; /* -1: count() */
        double               share;  /* of a quantile; of a median one half */
        char                 name[40];
    } value[FV_MAX_COLUMNS];
} fv__summaries;

fv_status   fv__summaries_parse(fv__summaries *s, const char *values, const fv_table_type *type, fv_error *error);
const char *fv__summary_word(fv__summary_function function);

/* Whether the values are needed in order. */
static inline bool fv__summary_ordered(fv__summary_function function) {
    return function >= FV__MEDIAN && function <= FV__COUNT_DISTINCT;
}

/* What is known of one summary while rows come; missing values are not added. Begins as zeros. */
typedef struct fv__summary_tally {
    int64_t                count;
    fv_sum_float64         sum;
    fv_sum_float64_squares squares;
    fv_sum_integer         whole;
    fv_cell                least, most, first, last; /* texts lie in the two below */
    fv_bytes               first_text, last_text;
} fv__summary_tally;

void fv__summary_start(fv__summary_tally *t); /* again, without any row */
void fv__summary_add(fv__summary_tally *t, fv_column_kind kind, fv_cell cell);
void fv__summary_release(fv__summary_tally *t);
/* Of one that needs no order. kind: of the column; out: of the result; name: of the column, for an error. */
fv_status fv__summary_result(const fv__summary_tally *t, fv_column_kind kind, fv__summary_function function, fv_column_kind out,
                             const char *name, fv_cell *result, fv_error *error);

/* Between two values that follow each other, as numpy does. */
static inline double fv__summary_between(double low, double high, double part) {
    return part < 0.5 ? low + (high - low) * part : high - (high - low) * (1 - part);
}

#endif
