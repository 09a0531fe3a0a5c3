/* top: the first rows of a table, in its order or in that of some columns. */
#include "op/row_sorter.h"

typedef struct {
    int64_t     count;
    const char *by;
} top;

static const fv_param params[] = {
    FV_PARAM(top, count, .def = "10", .min = 1, .max = 1e15, .doc = "how many rows"),
    FV_PARAM(
        top, by, .def = "",
        .doc = "columns to sort by first, \"volume\" for the smallest, \"-volume\" for the largest; left out: rows as they come"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to take rows from" }, FV_INPUT_END };

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_row_keys keys;
    return fv__row_keys_parse(&keys, "by", ((top *)i->params)->by, true, i->in[0]->table, error);
}

typedef struct {
    int64_t       left;
    fv_row_writer rows;
} taking;

static fv_status take_row(void *context, const fv_cell *from, fv_error *error) {
    taking              *t = context;
    const fv_table_type *type = t->rows.f->out->table;
    fv_cell             *row;
    if (!t->left) return FV_OK;
    t->left--;
    FV_TRY(fv__row_writer_next(&t->rows, &row, error));
    for (int c = 0; c < type->ncolumns; c++) fv__row_writer_copy(&t->rows, type->column[c].kind, &row[c], from[c]);
    return FV_OK;
}

static fv_status take_sorted(taking *t, fv_row_sorter *sorter, fv_results *rows, fv_error *error) {
    const fv_cell *row;
    FV_TRY(fv__row_sorter_fill(sorter, rows, error));
    while (t->left) {
        FV_TRY(fv__row_sorter_next(sorter, &row, NULL, error));
        if (!row) return FV_OK;
        FV_TRY(take_row(t, row, error));
    }
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    taking      t = { .left = ((const top *)f->params)->count };
    fv_row_keys keys;
    FV_TRY(fv__row_keys_parse(&keys, "by", ((const top *)f->params)->by, true, f->in[0]->table, error));
    fv_row_sorter *sorter = fv__row_sorter_new(f->in[0]->table, fv__row_keys_order, &keys);
    fv__row_writer_init(&t.rows, f);
    fv_status status = keys.count ? take_sorted(&t, sorter, f->table[0], error)
                                  : fv__table_each(f->table[0], f->in[0]->table, take_row, &t, error);
    if (status == FV_OK) status = fv__row_writer_flush(&t.rows, error);
    fv__row_writer_release(&t.rows);
    fv__row_sorter_free(sorter);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns of table>", .doc = "unchanged" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(top) = {
    .name = "top",
    .family = "table",
    .brief = "keep the first rows of a table, as it is or sorted",
    .also = "head, nlargest, nsmallest, limit",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(top),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc = "Of rows that are equal in these columns, those that come first in the table are taken.",
    .example = "cells = label(phantom(\"cells\", [200, 200]) > 60)\n"
               "top(measure(cells), 3, by = \"-voxels\")",
    .see = "sort filter group",
    .columns = columns,
};
