/* select: some columns of a table, in another order or under other names. */
#include "op/table_rows.h"
#include <stdio.h>

typedef struct {
    const char *columns;
} select_columns;

static const fv_param params[] = {
    FV_PARAM(select_columns, columns,
             .doc = "columns to keep, in the order in which they shall come, such as \"label, volume as size\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to take columns from" }, FV_INPUT_END };

/* "volume as size" */
static fv_status parse_column(const char *text, size_t length, const fv_table_type *in, fv_table_type *out, int *from,
                              fv_error *error) {
    char one[128], name[64], as[8] = "", other[64] = "", rest[2] = "";
    snprintf(one, sizeof one, "%.*s", (int)FV_MIN(length, sizeof one - 1), text);
    int words = sscanf(one, " %63s %7s %63s %1s", name, as, other, rest);
    if (words < 1 || (words != 1 && (words != 3 || strcmp(as, "as"))))
        return fv_fail(error, FV_ERROR_USAGE, "columns: \"%s\" is neither a column nor like volume as size", one);
    FV_TRY(fv__table_find(in, "columns", name, &from[out->ncolumns], error));
    fv_column   column = in->column[from[out->ncolumns]];
    const char *called = words == 3 ? other : name;
    if (strlen(called) >= sizeof column.name) return fv_fail(error, FV_ERROR_USAGE, "columns: the name %s is too long", called);
    snprintf(column.name, sizeof column.name, "%s", called);
    if (fv__table_column(out, column.name) >= 0)
        return fv_fail(error, FV_ERROR_USAGE, "columns: %s is there twice; give one another name with as", column.name);
    out->column[out->ncolumns++] = column;
    return FV_OK;
}

/* from: by column of out, that of in. */
static fv_status parse(const char *columns, const fv_table_type *in, fv_table_type *out, int *from, fv_error *error) {
    *out = (fv_table_type){ .metadata = in->metadata };
    for (const char *p = columns;; p++) {
        size_t n = strcspn(p, ",");
        if (out->ncolumns == FV_MAX_COLUMNS) return fv_fail(error, FV_ERROR_USAGE, "columns: too many columns");
        FV_TRY(parse_column(p, n, in, out, from, error));
        p += n;
        if (!*p) return FV_OK;
    }
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_table_type *type = fv__arena_alloc(i->arena, sizeof *type);
    int            from[FV_MAX_COLUMNS];
    FV_TRY(parse(((select_columns *)i->params)->columns, i->in[0]->table, type, from, error));
    i->out->table = type;
    return FV_OK;
}

typedef struct {
    int                  from[FV_MAX_COLUMNS];
    fv_row_writer        rows;
    const fv_table_type *type;
} selecting;

static fv_status take_columns(void *context, const fv_cell *from, fv_error *error) {
    selecting *s = context;
    fv_cell   *row;
    FV_TRY(fv__row_writer_next(&s->rows, &row, error));
    for (int c = 0; c < s->type->ncolumns; c++) fv__row_writer_copy(&s->rows, s->type->column[c].kind, &row[c], from[s->from[c]]);
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    selecting     s = { .type = f->out->table };
    fv_table_type type;
    FV_TRY(parse(((const select_columns *)f->params)->columns, f->in[0]->table, &type, s.from, error));
    fv__row_writer_init(&s.rows, f);
    fv_status status = fv__table_each(f->table[0], f->in[0]->table, take_columns, &s, error);
    if (status == FV_OK) status = fv__row_writer_flush(&s.rows, error);
    fv__row_writer_release(&s.rows);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns>", .doc = "those that are named, unchanged" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(select) = {
    .name = "select",
    .family = "table",
    .brief = "keep some columns of a table, in another order or under other names",
    .also = "usecols, rename, selectvars",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(select_columns),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .rows = true,
    .doc = "All rows are kept, in their order; filter chooses rows.",
    .example = "cells = label(phantom(\"cells\", [200, 200]) > 60)\n"
               "select(measure(cells), \"label, volume as size\")",
    .see = "filter with join",
    .columns = columns,
};
