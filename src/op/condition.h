/* Conditions on the rows of a table, written as text: "volume > 100 & mean / std < 3".
 *
 * Numbers, texts in quotes ('cancer'), column names, + - * /, comparisons (< <= > >= == !=), ! & | (or the words not, and, or)
 * and brackets; comparisons bind more strongly than & and |. Numbers are computed in float64, texts are compared byte by byte.
 * What is compared with nan or with a missing text is false, but != is true.
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

#endif
