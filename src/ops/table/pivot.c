/* pivot: the values of one column become columns of their own. */
#include "op/row_sorter.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *by, *column, *value, *names;
} pivot;

static const fv_param params[] = {
    FV_PARAM(pivot, by, .doc = "columns whose values make a row of the result, such as \"item\""),
    FV_PARAM(pivot, column, .doc = "column whose values become columns, such as \"channel\""),
    FV_PARAM(pivot, value, .doc = "column whose values are put there, such as \"mean\""),
    FV_PARAM(pivot, names, .doc = "the values of column, in the order in which their columns shall come, such as \"dapi, gfp\""),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to rearrange" }, FV_INPUT_END };

typedef struct {
    fv_row_keys by;
    int         column, value, count;
    fv_cell     name[FV_MAX_COLUMNS]; /* texts point into text */
    char        text[1024];
} request;

/* The names, as values of the column that they stand for. */
static fv_status parse_names(const char *names, const fv_column *column, request *q, fv_error *error) {
    if (strlen(names) >= sizeof q->text) return fv_fail(error, FV_ERROR_USAGE, "names: the text is too long");
    strcpy(q->text, names);
    for (char *p = q->text, *next; p; p = next) {
        next = strchr(p, ',');
        if (next) *next++ = 0;
        p += strspn(p, " ");
        for (size_t n = strlen(p); n && p[n - 1] == ' ';) p[--n] = 0;
        char *end = p;
        if (!*p) return fv_fail(error, FV_ERROR_USAGE, "names = \"%s\": a value is missing between commas", names);
        if (q->count == FV_MAX_COLUMNS) return fv_fail(error, FV_ERROR_USAGE, "names: too many columns");
        fv_cell *cell = &q->name[q->count++];
        if (column->kind == FV_COLUMN_TEXT)
            cell->text = p;
        else if (column->kind == FV_COLUMN_INTEGER)
            cell->integer = strtoll(p, &end, 10);
        else
            cell->real = strtod(p, &end);
        if (column->kind != FV_COLUMN_TEXT && (end == p || *end))
            return fv_fail(error, FV_ERROR_USAGE, "names: \"%s\" is no number, and %s holds numbers", p, column->name);
    }
    return FV_OK;
}

static fv_status parse(const pivot *p, const fv_table_type *in, request *q, fv_error *error) {
    *q = (request){ 0 };
    FV_TRY(fv__row_keys_parse(&q->by, "by", p->by, false, in, error));
    FV_TRY(fv__table_find(in, "column", p->column, &q->column, error));
    FV_TRY(fv__table_find(in, "value", p->value, &q->value, error));
    return parse_names(p->names, &in->column[q->column], q, error);
}

static void show(fv_column_kind kind, fv_cell cell, char *text, size_t size) {
    if (kind == FV_COLUMN_TEXT)
        snprintf(text, size, "%.60s", cell.text ? cell.text : "a missing value");
    else
        snprintf(text, size, "%.17g", fv__cell_number(kind, cell));
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_table_type *in = i->in[0]->table;
    fv_table_type       *out = fv__arena_alloc(i->arena, sizeof *out);
    request              q;
    FV_TRY(parse(i->params, in, &q, error));
    *out = (fv_table_type){ 0 };
    if (q.by.count + q.count > FV_MAX_COLUMNS) return fv_fail(error, FV_ERROR_USAGE, "names: too many columns");
    for (int k = 0; k < q.by.count; k++) out->column[out->ncolumns++] = in->column[q.by.key[k].column];
    for (int k = 0; k < q.count; k++) {
        fv_column     *column = &out->column[out->ncolumns];
        fv_column_kind kind = in->column[q.value].kind;
        char           text[64], name[2 * sizeof text];
        show(in->column[q.column].kind, q.name[k], text, sizeof text);
        snprintf(name, sizeof name, "%s_%s", in->column[q.value].name, text);
        if (strlen(name) >= sizeof column->name || fv__table_column(out, name) >= 0)
            return fv_fail(error, FV_ERROR_USAGE, "names: a column would be called %s, which is too long or there already", name);
        snprintf(column->name, sizeof column->name, "%s", name);
        column->kind = kind == FV_COLUMN_TEXT ? kind : FV_COLUMN_REAL; /* it may be missing */
        out->ncolumns++;
    }
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = out };
    return FV_OK;
}

/* ---------------------------------------------------------------- rows */

typedef struct {
    request              q;
    const fv_table_type *in, *out;
    fv_row_writer        rows;
    fv_row_sorter       *sorter;
    fv_cell              key[FV_MAX_COLUMNS], value[FV_MAX_COLUMNS]; /* of the row under way */
    bool                 there[FV_MAX_COLUMNS], any;
    fv_arena             texts; /* of both */
} pivoting;

static fv_cell kept(pivoting *w, fv_column_kind kind, fv_cell cell) {
    if (kind == FV_COLUMN_TEXT && cell.text) cell.text = fv__arena_strdup(&w->texts, cell.text);
    return cell;
}

static fv_status put_row(pivoting *w, fv_error *error) {
    fv_cell *row;
    if (!w->any) return FV_OK;
    FV_TRY(fv__row_writer_next(&w->rows, &row, error));
    for (int k = 0; k < w->q.by.count; k++, row++) {
        int c = w->q.by.key[k].column;
        fv__row_writer_copy(&w->rows, w->in->column[c].kind, row, w->key[c]);
    }
    fv_column_kind kind = w->in->column[w->q.value].kind;
    for (int k = 0; k < w->q.count; k++, row++)
        if (kind == FV_COLUMN_TEXT)
            fv__row_writer_text(&w->rows, row, w->there[k] ? w->value[k].text : NULL);
        else
            row->real = w->there[k] ? fv__cell_number(kind, w->value[k]) : NAN;
    return FV_OK;
}

static void start_row(pivoting *w, const fv_cell *row) {
    fv__arena_release(&w->texts);
    w->texts = (fv_arena){ 0 };
    w->any = true;
    memset(w->there, 0, sizeof w->there);
    for (int k = 0; k < w->q.by.count; k++) {
        int c = w->q.by.key[k].column;
        w->key[c] = kept(w, w->in->column[c].kind, row[c]);
    }
}

static fv_status take_row(pivoting *w, const fv_cell *row, fv_error *error) {
    fv_column_kind kind = w->in->column[w->q.column].kind;
    int            k = 0;
    char           text[64];
    if (!w->any || fv__row_keys_order(&w->q.by, w->key, row)) {
        FV_TRY(put_row(w, error));
        start_row(w, row);
    }
    while (k < w->q.count && fv__cell_order(kind, w->q.name[k], row[w->q.column])) k++;
    show(kind, row[w->q.column], text, sizeof text);
    if (k == w->q.count)
        return fv_fail(error, FV_ERROR_INPUT,
                       "%s holds %s, which names does not list; add it, or leave such rows out with filter",
                       w->in->column[w->q.column].name, text);
    if (w->there[k])
        return fv_fail(
            error, FV_ERROR_INPUT,
            "two rows have the same values in by and %s = %s; make one of them with group(table, \"..., %s\", \"mean(%s)\")",
            w->in->column[w->q.column].name, text, w->in->column[w->q.column].name, w->in->column[w->q.value].name);
    w->there[k] = true;
    w->value[k] = kept(w, w->in->column[w->q.value].kind, row[w->q.value]);
    return FV_OK;
}

static fv_status take_rows(pivoting *w, fv_results *rows, fv_error *error) {
    FV_TRY(fv__row_sorter_fill(w->sorter, rows, error));
    for (;;) {
        const fv_cell *row;
        FV_TRY(fv__row_sorter_next(w->sorter, &row, NULL, error));
        if (!row) break;
        FV_TRY(take_row(w, row, error));
    }
    FV_TRY(put_row(w, error));
    return fv__row_writer_flush(&w->rows, error);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    pivoting *w = fv__calloc(sizeof *w);
    w->in = f->in[0]->table;
    w->out = f->out->table;
    fv__row_writer_init(&w->rows, f);
    w->sorter = fv__row_sorter_new(w->in, fv__row_keys_order, &w->q.by);
    fv_status status = parse(f->params, w->in, &w->q, error);
    if (status == FV_OK) status = take_rows(w, f->table[0], error);
    fv__row_writer_release(&w->rows);
    fv__row_sorter_free(w->sorter);
    fv__arena_release(&w->texts);
    free(w);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns in by>", .doc = "the values that make the row" },
    { "<value>_<name>", .doc = "for each of the names, the value of the row that has it in column; missing where there is none" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(pivot) = {
    .name = "pivot",
    .family = "table",
    .brief = "make columns of the values of a column: from long to wide",
    .also = "unstack, pivot_table, pivot_wider, crosstab",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(pivot),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc =
        "The result has one row for each different value of the columns in by, in the order of these values. Columns of a table "
        "are known before anything is computed, so names has to list them. Two rows for the same place are an error: summarise "
        "them with group first. The table may be larger than memory.",
    .example = "movie = name_axes(phantom(\"cells\", [3, 64, 64]), \"t y x\")\n"
               "spots = label(project(movie, \"t\", \"mean\") > 80)\n"
               "pivot(measure(spots, movie, properties = \"mean\"), \"label\", \"t\", \"mean\", \"0, 1, 2\")",
    .see = "group join select",
    .columns = columns,
};
