/* concat: tables below one another. */
#include "op/table_rows.h"
#include <stdio.h>

enum { MOST = 6 };

static const fv_input inputs[] = {
    { "first", FV_KIND_TABLE, .doc = "table whose rows come first" },
    { "second", FV_KIND_TABLE, .doc = "table whose rows follow" },
    { "third", FV_KIND_TABLE, .optional = true, .doc = "a third table" },
    { "fourth", FV_KIND_TABLE, .optional = true, .doc = "a fourth one" },
    { "fifth", FV_KIND_TABLE, .optional = true, .doc = "a fifth one" },
    { "sixth", FV_KIND_TABLE, .optional = true, .doc = "a sixth one" },
    FV_INPUT_END,
};

/* Whole numbers beside real ones, or missing from a table, become real. */
static fv_status add_column(fv_table_type *out, const fv_column *column, const char *table, fv_error *error) {
    int found = fv__table_column(out, column->name);
    if (found < 0) {
        if (out->ncolumns == FV_MAX_COLUMNS)
            return fv_fail(error, FV_ERROR_USAGE, "the table would have more than %d columns", FV_MAX_COLUMNS);
        out->column[out->ncolumns++] = *column;
        return FV_OK;
    }
    fv_column_kind *kind = &out->column[found].kind;
    if (*kind == column->kind) return FV_OK;
    if (*kind == FV_COLUMN_TEXT || column->kind == FV_COLUMN_TEXT)
        return fv_fail(error, FV_ERROR_USAGE, "%s: column %s is %s here and %s in a table before it", table, column->name,
                       column->kind == FV_COLUMN_TEXT ? "text" : "numbers", *kind == FV_COLUMN_TEXT ? "text" : "numbers");
    *kind = FV_COLUMN_REAL;
    return FV_OK;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_table_type *out = fv__arena_alloc(i->arena, sizeof *out);
    *out = (fv_table_type){ 0 };
    for (int k = 0; k < MOST; k++) {
        if (i->in[k]->kind != FV_KIND_TABLE) continue;
        const fv_table_type *in = i->in[k]->table;
        for (int c = 0; c < in->ncolumns; c++) FV_TRY(add_column(out, &in->column[c], inputs[k].name, error));
    }
    for (int k = 0; k < MOST; k++)
        for (int c = 0; c < out->ncolumns && i->in[k]->kind == FV_KIND_TABLE; c++)
            if (out->column[c].kind == FV_COLUMN_INTEGER && fv__table_column(i->in[k]->table, out->column[c].name) < 0)
                out->column[c].kind = FV_COLUMN_REAL;
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = out };
    return FV_OK;
}

typedef struct {
    const fv_table_type *in, *out;
    int                  from[FV_MAX_COLUMNS]; /* by column of out: that of in, -1: none */
    fv_row_writer        rows;
} copying;

static fv_status copy_row(void *context, const fv_cell *from, fv_error *error) {
    copying *w = context;
    fv_cell *row;
    FV_TRY(fv__row_writer_next(&w->rows, &row, error));
    for (int c = 0; c < w->out->ncolumns; c++) {
        fv_column_kind kind = w->out->column[c].kind;
        int            k = w->from[c];
        if (kind == FV_COLUMN_TEXT)
            fv__row_writer_text(&w->rows, &row[c], k < 0 ? NULL : from[k].text);
        else if (k < 0)
            row[c].real = NAN;
        else if (kind == w->in->column[k].kind)
            row[c] = from[k];
        else
            row[c].real = fv__cell_number(w->in->column[k].kind, from[k]);
    }
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    copying   w = { .out = f->out->table };
    fv_status status = FV_OK;
    fv__row_writer_init(&w.rows, f);
    for (int k = 0; k < MOST && status == FV_OK; k++) {
        if (!f->table[k]) continue;
        w.in = f->in[k]->table;
        for (int c = 0; c < w.out->ncolumns; c++) w.from[c] = fv__table_column(w.in, w.out->column[c].name);
        status = fv__table_each(f->table[k], w.in, copy_row, &w, error);
    }
    if (status == FV_OK) status = fv__row_writer_flush(&w.rows, error);
    fv__row_writer_release(&w.rows);
    return status;
}

static const fv_pass  passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };
static const fv_param params[] = { FV_PARAM_END };

static const fv_column_doc columns[] = {
    { "<columns of all tables>", .doc = "those of the first table, then those that only later ones have" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(concat) = {
    .name = "concat",
    .family = "table",
    .brief = "put tables below one another",
    .also = "vertcat, append, rbind, union",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc =
        "Columns are matched by name. What a table does not have is missing in its rows; whole numbers that may be missing, or "
        "that meet real ones, become real. To tell the tables apart, give each a column of its own: with(t, \"dye = 'gfp'\").",
    .example = "a = measure(label(phantom(\"cells\", [200, 200], seed = 1) > 60))\n"
               "b = measure(label(phantom(\"cells\", [200, 200], seed = 2) > 60))\n"
               "concat(with(a, \"dish = 1\"), with(b, \"dish = 2\"))",
    .see = "join with read_table",
    .columns = columns,
};
