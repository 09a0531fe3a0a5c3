/* row: numbers side by side as a row of a table. */
#include "op/table_rows.h"
#include <stdio.h>

enum { MOST = 6, AFTER = MOST };

typedef struct {
    const char *names;
} row;

static const fv_param params[] = {
    FV_PARAM(row, names, .doc = "names of the columns, one for each number, such as \"threshold mean\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = {
    { "first", FV_KIND_SCALAR, .doc = "a number, typed in or computed" },
    { "second", FV_KIND_SCALAR, .optional = true, .doc = "number for the second column" },
    { "third", FV_KIND_SCALAR, .optional = true, .doc = "number for the third column" },
    { "fourth", FV_KIND_SCALAR, .optional = true, .doc = "number for the fourth column" },
    { "fifth", FV_KIND_SCALAR, .optional = true, .doc = "number for the fifth column" },
    { "sixth", FV_KIND_SCALAR, .optional = true, .doc = "number for the sixth column" },
    { "after", FV_KIND_TABLE, .optional = true, .doc = "table with the same columns; its rows come before this one" },
    FV_INPUT_END,
};

static int count_numbers(const fv_type *const *in) {
    int n = 0;
    while (n < MOST && in[n]->kind == FV_KIND_SCALAR) n++;
    return n;
}

static fv_status name_columns(const char *names, int count, fv_table_type *type, fv_error *error) {
    const char *at = names;
    for (at += strspn(at, " ,"); *at; at += strspn(at, " ,")) {
        size_t length = strcspn(at, " ,");
        if (type->ncolumns == count || length >= sizeof type->column[0].name) break;
        fv_column *column = &type->column[type->ncolumns];
        snprintf(column->name, sizeof column->name, "%.*s", (int)length, at);
        if (fv__table_column(type, column->name) >= 0)
            return fv_fail(error, FV_ERROR_USAGE, "names = \"%s\": %s is there twice", names, column->name);
        type->ncolumns++;
        at += length;
    }
    if (type->ncolumns == count && !*at) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "names = \"%s\": must be %d short word%s, one for each number", names, count,
                   count == 1 ? "" : "s");
}

static bool is_alike(const fv_table_type *a, const fv_table_type *b) {
    bool alike = a->ncolumns == b->ncolumns;
    for (int c = 0; c < a->ncolumns && alike; c++)
        alike = a->column[c].kind == b->column[c].kind && !strcmp(a->column[c].name, b->column[c].name);
    return alike;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    int            count = count_numbers(i->in);
    fv_table_type *type = fv__arena_alloc(i->arena, sizeof *type);
    for (int k = count; k < MOST; k++)
        if (i->in[k]->kind == FV_KIND_SCALAR) return fv_fail(error, FV_ERROR_USAGE, "there is a gap between the numbers");
    *type = (fv_table_type){ 0 };
    FV_TRY(name_columns(((const row *)i->params)->names, count, type, error));
    for (int k = 0; k < count; k++)
        type->column[k].kind = i->in[k]->dtype == FV_FLOAT64 || i->in[k]->dtype == FV_UINT64 ? FV_COLUMN_REAL : FV_COLUMN_INTEGER;
    if (i->in[AFTER]->kind == FV_KIND_TABLE && !is_alike(type, i->in[AFTER]->table))
        return fv_fail(error, FV_ERROR_USAGE, "after must have the columns %s, of the same kinds", ((row *)i->params)->names);
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = type };
    return FV_OK;
}

typedef struct {
    fv_row_writer        rows;
    const fv_table_type *type;
} copying;

static fv_status copy_row(void *context, const fv_cell *from, fv_error *error) {
    copying *c = context;
    fv_cell *to;
    FV_TRY(fv__row_writer_next(&c->rows, &to, error));
    memcpy(to, from, (size_t)c->type->ncolumns * sizeof *to);
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    copying   c = { .type = f->out->table };
    fv_cell   own[MOST];
    fv_status status = FV_OK;
    for (int k = 0; k < c.type->ncolumns; k++)
        if (c.type->column[k].kind == FV_COLUMN_REAL)
            own[k].real = fv__scalar_number(f->scalar[k]);
        else
            own[k].integer = f->scalar[k]->integer;
    fv__row_writer_init(&c.rows, f);
    if (f->table[AFTER]) status = fv__table_each(f->table[AFTER], c.type, copy_row, &c, error);
    if (status == FV_OK) status = copy_row(&c, own, error);
    if (status == FV_OK) status = fv__row_writer_flush(&c.rows, error);
    fv__row_writer_release(&c.rows);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<names>", .doc = "the numbers, in the order in which they are given" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(row) = {
    .name = "row",
    .family = "table",
    .brief = "make a table of one row from numbers",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(row),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc = "For numbers that a pipeline computes, so that they can be written, joined or filtered like any other table. "
           "after = another table with the same columns puts the row below the rows of that table.",
    .example = "a = phantom(\"cells\", [200, 200])\n"
               "row(otsu(a), mean(a), names = \"threshold mean\")",
    .see = "join filter write otsu mean",
    .columns = columns,
};
