/* distinct: the rows of a table that differ, each once. */
#include "op/row_sorter.h"

typedef struct {
    const char *by;
} distinct;

static const fv_param params[] = {
    FV_PARAM(distinct, by, .def = "",
             .doc = "columns in which rows must differ, such as \"animal, type\"; left out: in any column at all"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to take rows from" }, FV_INPUT_END };

static fv_status parse(const char *by, const fv_table_type *type, fv_row_keys *keys, fv_error *error) {
    FV_TRY(fv__row_keys_parse(keys, "by", by, false, type, error));
    for (int c = 0; c < type->ncolumns && (!by || !*by); c++) keys->key[keys->count++].column = c;
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_row_keys keys;
    return parse(((distinct *)i->params)->by, i->in[0]->table, &keys, error);
}

/* The first row of those that are alike, in their sorted order; then all of these in the order of the table. latest holds the
 * one that was kept last, whose texts must outlive it. */
static fv_status sieve(fv_row_sorter *sorted, const fv_row_keys *keys, fv_row_sorter *kept, fv_error *error) {
    fv_arena  texts = { 0 };
    fv_cell   latest[FV_MAX_COLUMNS];
    bool      any = false;
    fv_status status;
    for (;;) {
        const fv_cell *row;
        int64_t        number;
        status = fv__row_sorter_next(sorted, &row, &number, error);
        if (status != FV_OK || !row) break;
        if (any && !fv__row_keys_order(keys, latest, row)) continue;
        status = fv__row_sorter_add_numbered(kept, row, number, error);
        if (status != FV_OK) break;
        any = true;
        fv__arena_release(&texts);
        texts = (fv_arena){ 0 };
        for (int k = 0; k < keys->count; k++) {
            int c = keys->key[k].column;
            latest[c] = row[c];
            if (keys->type->column[c].kind == FV_COLUMN_TEXT && row[c].text)
                latest[c].text = fv__arena_strdup(&texts, row[c].text);
        }
    }
    fv__arena_release(&texts);
    return status;
}

static fv_status put_rows(fv_row_writer *writer, fv_row_sorter *kept, fv_error *error) {
    const fv_table_type *type = writer->f->out->table;
    for (;;) {
        const fv_cell *from;
        fv_cell       *row;
        FV_TRY(fv__row_sorter_next(kept, &from, NULL, error));
        if (!from) return fv__row_writer_flush(writer, error);
        FV_TRY(fv__row_writer_next(writer, &row, error));
        for (int c = 0; c < type->ncolumns; c++) fv__row_writer_copy(writer, type->column[c].kind, &row[c], from[c]);
    }
}

static fv_status finish(fv_finish *f, fv_error *error) {
    const fv_table_type *type = f->in[0]->table;
    fv_row_keys          keys;
    fv_row_writer        writer;
    FV_TRY(parse(((const distinct *)f->params)->by, type, &keys, error));
    fv_row_sorter *sorted = fv__row_sorter_new(type, fv__row_keys_order, &keys), *kept = fv__row_sorter_new(type, NULL, NULL);
    fv__row_writer_init(&writer, f);
    fv_status status = fv__row_sorter_fill(sorted, f->table[0], error);
    if (status == FV_OK) status = sieve(sorted, &keys, kept, error);
    if (status == FV_OK) status = put_rows(&writer, kept, error);
    fv__row_writer_release(&writer);
    fv__row_sorter_free(sorted);
    fv__row_sorter_free(kept);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns of table>", .doc = "unchanged" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(distinct) = {
    .name = "distinct",
    .family = "table",
    .brief = "keep one of several rows that are alike",
    .also = "drop_duplicates, unique",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(distinct),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc = "The first of them is kept, and rows keep their order. Missing values count as alike. To count them, use group. The "
           "table may be larger than memory.",
    .example = "cells = label(phantom(\"cells\", [200, 200]) > 60)\n"
               "distinct(neighbours(cells, background = true), \"label_a\")",
    .see = "group filter sort",
    .columns = columns,
};
