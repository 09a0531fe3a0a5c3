/* with: a table with further columns that are computed from the others, row by row. */
#include "op/condition.h"
#include "op/table_rows.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *columns;
} with;

static const fv_param params[] = {
    FV_PARAM(
        with, columns, .many = true,
        .doc = "new columns and what they hold, such as \"ratio = mean / mean_2, dish = part(item, '_', 0)\": columns, numbers, "
               "texts in quotes, + - * / **, comparisons (1 or 0), the functions " FV_VALUE_FUNCTIONS " and brackets"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to add columns to" }, FV_INPUT_END };

/* The new columns in their order; each may use those before it. */
typedef struct {
    int          first, count; /* the first is this one of the table */
    fv_condition value[FV_MAX_COLUMNS];
} definitions;

static fv_status wrong(const char *text, const char *at, const char *why, fv_error *error) {
    return fv_fail(error, FV_ERROR_USAGE, "columns = \"%s\", at character %d: %s", text, (int)(at - text) + 1, why);
}

/* "ratio =" */
static fv_status parse_name(const char *text, const char **at, fv_table_type *type, fv_error *error) {
    const char *p = *at + strspn(*at, " ");
    size_t      n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_') n++;
    const char *equal = p + n + strspn(p + n, " ");
    if (!n || isdigit((unsigned char)*p) || *equal != '=' || equal[1] == '=')
        return wrong(text, p, "a name and = belong here, as in ratio = mean / mean_2", error);
    if (type->ncolumns == FV_MAX_COLUMNS) return wrong(text, p, "the table has as many columns as a table can have", error);
    fv_column *column = &type->column[type->ncolumns];
    if (n >= sizeof column->name) return wrong(text, p, "the name is too long", error);
    snprintf(column->name, sizeof column->name, "%.*s", (int)n, p);
    if (fv__table_column(type, column->name) >= 0)
        return wrong(text, p, "the table has a column of this name already; choose another", error);
    *at = equal + 1;
    return FV_OK;
}

static fv_status parse(const char *text, fv_table_type *type, definitions *d, fv_error *error) {
    d->first = type->ncolumns;
    d->count = 0;
    for (const char *p = text;; p++) {
        fv_column_kind kind;
        FV_TRY(parse_name(text, &p, type, error));
        FV_TRY(fv__value_parse(&d->value[d->count++], "columns", text, &p, type, &kind, error));
        type->column[type->ncolumns++].kind = kind;
        if (!*p) return FV_OK;
    }
}

static fv_status infer(fv_infer *i, fv_error *error) {
    fv_table_type *type = fv__arena_alloc(i->arena, sizeof *type);
    definitions   *d = fv__alloc(sizeof *d);
    *type = *i->in[0]->table;
    fv_status status = parse(((with *)i->params)->columns, type, d, error);
    free(d);
    i->out->table = type;
    return status;
}

typedef struct {
    definitions         *d;
    fv_row_writer        rows;
    const fv_table_type *type;
    fv_bytes             text[FV_MAX_COLUMNS]; /* of the new columns */
} adding;

static fv_status add_columns(void *context, const fv_cell *from, fv_error *error) {
    adding *a = context;
    fv_cell all[FV_MAX_COLUMNS], *row;
    memcpy(all, from, (size_t)a->d->first * sizeof *all);
    for (int k = 0; k < a->d->count; k++) {
        int c = a->d->first + k;
        FV_TRY(fv__value_of(&a->d->value[k], a->type, all, a->type->column[c].kind, &a->text[k], &all[c], error));
    }
    FV_TRY(fv__row_writer_next(&a->rows, &row, error));
    for (int c = 0; c < a->type->ncolumns; c++) fv__row_writer_copy(&a->rows, a->type->column[c].kind, &row[c], all[c]);
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    adding        a = { .type = f->out->table, .d = fv__alloc(sizeof *a.d) };
    fv_table_type type = *f->in[0]->table;
    fv__row_writer_init(&a.rows, f);
    fv_status status = parse(((const with *)f->params)->columns, &type, a.d, error);
    if (status == FV_OK) status = fv__table_each(f->table[0], f->in[0]->table, add_columns, &a, error);
    if (status == FV_OK) status = fv__row_writer_flush(&a.rows, error);
    fv__row_writer_release(&a.rows);
    for (int k = 0; k < FV_MAX_COLUMNS; k++) fv__bytes_release(&a.text[k]);
    free(a.d);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns of table>", .doc = "unchanged" },
    { "<new columns>", .doc = "in the order in which they are defined" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(with) = {
    .name = "with",
    .family = "table",
    .brief = "add columns that are computed from the others",
    .also = "assign, mutate, eval, addvars",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(with),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .rows = true,
    .doc = "with(t, ratio = mean / mean_2) may be written without quotes. A column may use those that are defined before it. "
           "Numbers are computed in float64; a column is one of whole numbers "
           "where it is made of whole numbers with + - *, min, max, abs, if or a comparison. What is computed with a missing "
           "number is missing. if(volume > 9, 'large', 'small') chooses; part(item, '_', 0) is the text before the first _, "
           "part(item, '_', -1) that behind the last, missing where there is none; length counts the bytes of a text.",
    .example = "image = phantom(\"cells\", [200, 200])\n"
               "cells = measure(label(image > 60), image)\n"
               "with(cells, total = mean * voxels, size = if(voxels > 300, 'large', 'small'))",
    .see = "filter group select measure",
    .columns = columns,
};
