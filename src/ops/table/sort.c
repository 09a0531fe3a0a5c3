/* sort: the rows of a table in order of columns. */
#include "op/table_rows.h"
#include <stdio.h>
#include <stdlib.h>

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

typedef struct {
    int count;
    struct {
        int  column;
        bool descending;
    } key[FV_MAX_COLUMNS];
} order;

/* "type, -volume" */
static fv_status parse(const char *by, const fv_table_type *type, order *o, fv_error *error) {
    o->count = 0;
    for (const char *p = by; *p;) {
        char word[64];
        p += strspn(p, " ");
        bool minus = *p == '-';
        p += minus;
        size_t n = strcspn(p, ","), length = n;
        while (length && p[length - 1] == ' ') length--;
        snprintf(word, sizeof word, "%.*s", (int)FV_MIN(length, sizeof word - 1), p);
        if (o->count == FV_MAX_COLUMNS) return fv_fail(error, FV_ERROR_USAGE, "by = \"%s\": too many columns", by);
        o->key[o->count].descending = minus;
        FV_TRY(fv__table_find(type, "by", word, &o->key[o->count].column, error));
        o->count++;
        p += n + (p[n] == ',');
    }
    return o->count ? FV_OK : fv_fail(error, FV_ERROR_USAGE, "by is empty; name a column to sort by");
}

static fv_status infer(fv_infer *i, fv_error *error) {
    order o;
    return parse(((sort *)i->params)->by, i->in[0]->table, &o, error);
}

typedef struct {
    const fv_loaded *table;
    const order     *order;
} sorting;

static bool is_missing(fv_column_kind kind, fv_cell cell) {
    return kind == FV_COLUMN_TEXT ? !cell.text : kind == FV_COLUMN_REAL && cell.real != cell.real;
}

/* Rows that are equal in all keys keep their order. */
static int in_order(const void *a, const void *b, void *context) {
    const sorting       *s = context;
    const fv_table_type *type = s->table->type;
    int64_t              x = *(const int64_t *)a, y = *(const int64_t *)b;
    for (int k = 0; k < s->order->count; k++) {
        int            c = s->order->key[k].column;
        fv_column_kind kind = type->column[c].kind;
        fv_cell        left = s->table->cell[x * type->ncolumns + c], right = s->table->cell[y * type->ncolumns + c];
        int            result = fv__cell_order(kind, left, right);
        bool           missing = is_missing(kind, left) || is_missing(kind, right); /* last in either direction */
        if (result) return s->order->key[k].descending && !missing ? -result : result;
    }
    return x < y ? -1 : x > y;
}

static fv_status put_rows(fv_finish *f, const fv_loaded *table, const int64_t *rows, fv_error *error) {
    const fv_table_type *type = table->type;
    fv_row_writer        writer;
    fv_status            status = FV_OK;
    fv__row_writer_init(&writer, f);
    for (int64_t r = 0; r < table->nrows && status == FV_OK; r++) {
        const fv_cell *from = table->cell + rows[r] * type->ncolumns;
        fv_cell       *row;
        status = fv__row_writer_next(&writer, &row, error);
        for (int c = 0; status == FV_OK && c < type->ncolumns; c++)
            fv__row_writer_copy(&writer, type->column[c].kind, &row[c], from[c]);
    }
    if (status == FV_OK) status = fv__row_writer_flush(&writer, error);
    fv__row_writer_release(&writer);
    return status;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    order     o;
    fv_loaded table;
    FV_TRY(parse(((const sort *)f->params)->by, f->in[0]->table, &o, error));
    fv_status status = fv__table_load(f->table[0], f->in[0]->table, &table, error);
    if (status == FV_OK) {
        int64_t *rows = fv__alloc((size_t)(table.nrows + 1) * sizeof *rows);
        for (int64_t r = 0; r < table.nrows; r++) rows[r] = r;
        qsort_r(rows, (size_t)table.nrows, sizeof *rows, in_order, &(sorting){ &table, &o });
        status = put_rows(f, &table, rows, error);
        free(rows);
    }
    fv__loaded_release(&table);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns of table>", .doc = "unchanged" },
    FV_COLUMN_DOC_END,
};

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
    .doc = "Rows that are equal in all of these columns keep their order. Missing values come last. Texts are compared byte "
           "by byte. The table must fit into memory.",
    .example = "cells = label(phantom(\"cells\", [200, 200]) > 60)\n"
               "sort(measure(cells), \"-voxels, label\")",
    .see = "filter group join",
    .columns = columns,
};
