/* The rows of a table for which a condition holds: what filter keeps and alert tells. */
#ifndef FV_SELECTED_ROWS_H
#define FV_SELECTED_ROWS_H

#include "op/condition.h"
#include "op/table_rows.h"

#define fv__selected_rows FV_ISA_NAME(fv__selected_rows)

/* Ends a pass over input 0: its rows that satisfy the condition, which was checked when the type was inferred. */
fv_status fv__selected_rows(fv_finish *f, const char *condition, fv_error *error);

#endif
