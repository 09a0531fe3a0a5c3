/* Rows that satisfy a condition. */
#include "ops/table/selected_rows.h"

typedef struct {
    fv_condition         condition;
    fv_row_writer        rows;
    const fv_table_type *type;
} selecting;

static fv_status look_at_row(void *context, const fv_cell *from, fv_error *error) {
    selecting *w = context;
    fv_cell   *row;
    if (!fv__condition_holds(&w->condition, w->type, from)) return FV_OK;
    FV_TRY(fv__row_writer_next(&w->rows, &row, error));
    for (int c = 0; c < w->type->ncolumns; c++) fv__row_writer_copy(&w->rows, w->type->column[c].kind, &row[c], from[c]);
    return FV_OK;
}

fv_status fv__selected_rows(fv_finish *f, const char *condition, fv_error *error) {
    selecting w = { .type = f->in[0]->table };
    FV_TRY(fv__condition_parse(&w.condition, "condition", condition, w.type, error));
    fv__row_writer_init(&w.rows, f);
    fv_status status = fv__table_each(f->table[0], w.type, look_at_row, &w, error);
    if (status == FV_OK) status = fv__row_writer_flush(&w.rows, error);
    fv__row_writer_release(&w.rows);
    return status;
}
