/* Conditions on the rows of a table, written as text: "volume > 100 & mean / std < 3"; and other values that follow from a row:
 * "mean / mean_2", "part(item, '_', 0)".
 *
 * Numbers, texts in quotes ('cancer'), column names, functions, + - * / **, comparisons (< <= > >= == !=), ! & | (or the words
 * not, and, or) and brackets; comparisons bind more strongly than & and |. Numbers are computed in float64, texts are compared
 * byte by byte. What is compared with nan or with a missing text is false, but != is true.
 */
#ifndef FV_CONDITION_H
#define FV_CONDITION_H

#include "op/op.h"

enum { FV_CONDITION_STEPS = 256, FV_CONDITION_DEPTH = 64, FV_CONDITION_TEXT = 1024 };

/* Steps in the order in which they are done, each on top of a stack. */
typedef struct fv_condition {
    int count;
    struct {
        int    what;
        int    column;
        double number;
    } step[FV_CONDITION_STEPS];
    char text[FV_CONDITION_TEXT]; /* the quoted ones, one behind the other */
    int  text_size;
} fv_condition;

/* The error shows the text, the place in it, and the columns if a name is not one of them. name: of the parameter. */
fv_status fv__condition_parse(fv_condition *condition, const char *name, const char *text, const fv_table_type *table,
                              fv_error *error);
bool      fv__condition_holds(const fv_condition *condition, const fv_table_type *table, const fv_cell *row);

/* A value of any kind, from *at on up to a comma or the end of text, where *at stands then. kind: a column that can hold it. */
fv_status fv__value_parse(fv_condition *value, const char *name, const char *text, const char **at, const fv_table_type *table,
                          fv_column_kind *kind, fv_error *error);
/* Of a row; a text is copied to room. A whole number that float64 cannot tell from its neighbours is an error. */
fv_status fv__value_of(const fv_condition *value, const fv_table_type *table, const fv_cell *row, fv_column_kind wanted,
                       fv_bytes *room, fv_cell *cell, fv_error *error);

#define FV_VALUE_FUNCTIONS "sqrt, abs, exp, log, log10, floor, ceil, round, min, max, if, part, length"

#endif
