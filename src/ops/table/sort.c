/* sort: the rows of a table in order of columns. */
#include "op/row_sorter.h"

typedef struct {
    const char *by;
} sort;

static const fv_param params[] = {
    FV_PARAM(sort, by,
             .doc = "columns to sort by, the most important first, such as \"type, -volume\"; - puts the largest "
                    "first"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to sort" }, FV_INPUT_END };

static fv_status parse(const char *by, const fv_table_type *type, fv_row_keys *keys, fv_error *error) {
    FV_TRY(fv__row_keys_parse(keys, "by", by, true, type, error));
    return keys->count ? FV_OK : fv_fail(error, FV_ERROR_USAGE, "by is empty; name a column to sort by");
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_row_keys keys;
    return parse(((sort *)i->params)->by, i->in[0]->table, &keys, error);
}

static fv_status put_rows(fv_row_writer *writer, fv_row_sorter *sorter, fv_error *error) {
    const fv_table_type *type = writer->f->out->table;
    for (;;) {
        const fv_cell *from;
        fv_cell       *row;
        FV_TRY(fv__row_sorter_next(sorter, &from, NULL, error));
        if (!from) return fv__row_writer_flush(writer, error);
        FV_TRY(fv__row_writer_next(writer, &row, error));
        for (int c = 0; c < type->ncolumns; c++) fv__row_writer_copy(writer, type->column[c].kind, &row[c], from[c]);
    }
}

static fv_status finish(fv_finish *f, fv_error *error) {
    fv_row_keys   keys;
    fv_row_writer writer;
    FV_TRY(parse(((const sort *)f->params)->by, f->in[0]->table, &keys, error));
    fv_row_sorter *sorter = fv__row_sorter_new(f->in[0]->table, fv__row_keys_order, &keys);
    fv__row_writer_init(&writer, f);
    fv_status status = fv__row_sorter_fill(sorter, f->table[0], error);
    if (status == FV_OK) status = put_rows(&writer, sorter, error);
    fv__row_writer_release(&writer);
    fv__row_sorter_free(sorter);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns of table>", .doc = "unchanged" },
    FV_COLUMN_DOC_END,
};

/* The images of a collection: another operator. */
static const char *becomes(const void *params_) { return params_ ? NULL : "sort_items"; }

const fv_op FV_OP(sort) = {
    .name = "sort",
    .family = "table",
    .brief = "sort the rows of a table",
    .also = "sort_values, sortrows, order_by",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(sort),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .becomes = becomes,
    .doc = "Rows that are equal in all of these columns keep their order. Missing values come last. Texts are compared byte "
           "by byte. The table may be larger than memory: what does not fit is sorted in a temporary file.\n"
           "sort(c, \"-mean\") puts the images of a collection in order.",
    .example = "cells = label(phantom(\"cells\", [200, 200]) > 60)\n"
               "sort(measure(cells), \"-voxels, label\")",
    .see = "sort_items filter group join top",
    .columns = columns,
};
