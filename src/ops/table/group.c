/* group: rows of a table with equal values in some columns become one, with counts, sums, means ... of the others. */
#include "base/exact_sum.h"
#include "op/table_rows.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *by, *values;
} group;

static const fv_param params[] = {
    FV_PARAM(group, by,
             .doc = "columns whose values make a group, such as \"type\" or \"animal, type\"; \"\" makes one "
                    "group of all rows"),
    FV_PARAM(group, values, .def = "count()",
             .doc = "summaries of each group, such as \"count(), mean(volume), max(volume) as largest\": count, sum, mean, "
                    "std, min, max of a column"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to group" }, FV_INPUT_END };

/* ---------------------------------------------------------------- what is asked for */

enum { COUNT, SUM, MEAN, STD, MIN, MAX };
static const char *const functions[] = { "count", "sum", "mean", "std", "min", "max" };

typedef struct {
    const fv_item_names *items; /* of which each is a group, with rows or without; NULL: groups are what rows there are */
    int                  nkeys, key[FV_MAX_COLUMNS];
    int                  nvalues;
    struct {
        int  function, column;
        char name[40];
    } value[FV_MAX_COLUMNS]; /* column -1: count() */
} request;

static const char *word_at(const char *p, char *word, size_t size) {
    size_t n = 0;
    p += strspn(p, " ");
    while (isalnum((unsigned char)p[n]) || p[n] == '_') n++;
    snprintf(word, size, "%.*s", (int)FV_MIN(n, size - 1), p);
    p += n;
    return p + strspn(p, " ");
}

static fv_status parse_keys(const char *by, const fv_table_type *type, request *q, fv_error *error) {
    for (const char *p = by; *p;) {
        char   word[64];
        size_t n = strcspn(p += strspn(p, " "), ","), length = n;
        while (length && p[length - 1] == ' ') length--;
        snprintf(word, sizeof word, "%.*s", (int)FV_MIN(length, sizeof word - 1), p);
        if (!length && !q->nkeys && !p[n]) return FV_OK;
        if (q->nkeys == FV_MAX_COLUMNS) return fv_fail(error, FV_ERROR_USAGE, "by = \"%s\": too many columns", by);
        FV_TRY(fv__table_find(type, "by", word, &q->key[q->nkeys++], error));
        p += n + (p[n] == ',');
    }
    return FV_OK;
}

static fv_status wrong(const char *values, const char *at, const char *why, fv_error *error) {
    return fv_fail(error, FV_ERROR_USAGE, "values = \"%s\", at character %d: %s", values, (int)(at - values) + 1, why);
}

/* "mean(volume) as size" */
static fv_status parse_value(const char *values, const char **at, const fv_table_type *type, request *q, fv_error *error) {
    char word[40], column[40], as[8];
    int  n = q->nvalues, f = 0;
    if (n == FV_MAX_COLUMNS) return wrong(values, *at, "too many values", error);
    const char *start = *at, *p = word_at(start, word, sizeof word);
    while (f < FV_COUNT(functions) && strcmp(functions[f], word)) f++;
    if (f == FV_COUNT(functions)) return wrong(values, start, "count, sum, mean, std, min or max belongs here", error);
    if (*p != '(') return wrong(values, p, "a column in brackets belongs here, as mean(volume)", error);
    p = word_at(p + 1, column, sizeof column);
    if (*p != ')') return wrong(values, p, "a ) is missing", error);
    p += 1 + strspn(p + 1, " ");
    q->value[n].function = f;
    q->value[n].column = -1;
    if (*column)
        FV_TRY(fv__table_find(type, "values", column, &q->value[n].column, error));
    else if (f != COUNT)
        return wrong(values, p, "a column belongs into the brackets", error);
    if (*column && f != COUNT && type->column[q->value[n].column].kind == FV_COLUMN_TEXT)
        return fv_fail(error, FV_ERROR_USAGE, "values: %s is text, which has no %s", column, word);
    snprintf(q->value[n].name, sizeof q->value[n].name, "%.5s%.1s%.30s", functions[f], *column ? "_" : "", column);
    const char *after = word_at(p, as, sizeof as);
    if (!strcmp(as, "as")) {
        p = word_at(after, q->value[n].name, sizeof q->value[n].name);
        if (!*q->value[n].name) return wrong(values, after, "a name belongs behind as", error);
    }
    q->nvalues++;
    *at = p;
    return FV_OK;
}

static bool is_key(const fv_table_type *type, const request *q, int k, const char *name) {
    return !strcmp(type->column[q->key[k]].name, name);
}

static fv_status parse(const group *g, const fv_type *table, request *q, fv_error *error) {
    const fv_table_type *type = table->table;
    *q = (request){ 0 };
    FV_TRY(parse_keys(g->by, type, q, error));
    bool of_items = q->nkeys && table->items && table->items->all;
    for (int k = 0; k < q->nkeys; k++) of_items = of_items && (is_key(type, q, k, "item") || is_key(type, q, k, "path"));
    if (of_items) q->items = table->items;
    for (const char *p = g->values;;) {
        FV_TRY(parse_value(g->values, &p, type, q, error));
        if (!*p) break;
        if (*p++ != ',') return wrong(g->values, p - 1, "a comma belongs between two values", error);
    }
    return q->nkeys + q->nvalues <= FV_MAX_COLUMNS ? FV_OK : fv_fail(error, FV_ERROR_USAGE, "values: too many columns");
}

/* The one group of all rows may be empty, and that of an item, and then has no least and no largest value, which only a real
 * number can tell. */
static fv_column_kind value_kind(const fv_table_type *type, const request *q, int v) {
    int  function = q->value[v].function;
    bool may_miss = (!q->nkeys || q->items) && (function == MIN || function == MAX);
    if (function == COUNT) return FV_COLUMN_INTEGER;
    return function == MEAN || function == STD || may_miss ? FV_COLUMN_REAL : type->column[q->value[v].column].kind;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_table_type *in = i->in[0]->table;
    fv_table_type       *out = fv__arena_alloc(i->arena, sizeof *out);
    request              q;
    FV_TRY(parse(i->params, i->in[0], &q, error));
    for (int k = 0; k < q.nkeys; k++) out->column[out->ncolumns++] = in->column[q.key[k]];
    for (int v = 0; v < q.nvalues; v++) {
        if (fv__table_column(out, q.value[v].name) >= 0)
            return fv_fail(error, FV_ERROR_USAGE, "values: two columns would be called %s; give one another name with as",
                           q.value[v].name);
        fv_column *column = &out->column[out->ncolumns++];
        column->kind = value_kind(in, &q, v);
        snprintf(column->name, sizeof column->name, "%s", q.value[v].name);
    }
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = out, .items = q.items };
    return FV_OK;
}

/* ---------------------------------------------------------------- one group */

typedef struct {
    const fv_loaded *table;
    const request   *request;
    const int64_t   *rows; /* sorted by key */
} grouping;

static fv_cell cell_at(const grouping *g, int64_t r, int c) { return g->table->cell[g->rows[r] * g->table->type->ncolumns + c]; }

static bool is_missing(fv_column_kind kind, fv_cell cell) {
    return kind == FV_COLUMN_TEXT ? !cell.text : kind == FV_COLUMN_REAL && cell.real != cell.real;
}

typedef struct {
    int64_t                count;
    fv_sum_float64         sum;
    fv_sum_float64_squares squares;
    fv_sum_integer         whole;
    fv_cell                least, most;
} tally;

static void add(tally *t, fv_column_kind kind, fv_cell cell) {
    bool first = !t->count++;
    if (kind == FV_COLUMN_TEXT) return;
    double number = fv__cell_number(kind, cell);
    fv__sum_add(&t->sum.sum, number);
    fv__sum_add_square(&t->squares.sum, number);
    if (kind == FV_COLUMN_INTEGER)
        fv__sum_add_integer(&t->whole.sum, cell.integer < 0, cell.integer < 0 ? -(uint64_t)cell.integer : (uint64_t)cell.integer);
    if (first || fv__cell_order(kind, cell, t->least) < 0) t->least = cell;
    if (first || fv__cell_order(kind, cell, t->most) > 0) t->most = cell;
}

/* Missing values do not count. kind: of the column; out: of the result. */
static fv_cell result_of(const tally *t, fv_column_kind kind, int function, fv_column_kind out) {
    switch (function) {
    case COUNT: return (fv_cell){ .integer = t->count };
    case SUM: return (fv_cell){ .real = fv__sum_value(&t->sum.sum) };
    case MEAN: return (fv_cell){ .real = t->count ? fv__sum_mean(&t->sum.sum, t->count) : NAN };
    case STD: return (fv_cell){ .real = t->count ? sqrt(fv__sum_variance(&t->sum.sum, &t->squares.sum, t->count)) : NAN };
    default: {
        fv_cell extreme = function == MIN ? t->least : t->most;
        if (!t->count) return (fv_cell){ .real = NAN };
        return kind == out ? extreme : (fv_cell){ .real = fv__cell_number(kind, extreme) };
    }
    }
}

static fv_status value_of(const grouping *g, int64_t from, int64_t to, int v, fv_cell *value, fv_error *error) {
    int            column = g->request->value[v].column, function = g->request->value[v].function;
    fv_column_kind kind = column < 0 ? FV_COLUMN_INTEGER : g->table->type->column[column].kind;
    tally          t = { 0 };
    *value = (fv_cell){ .integer = to - from };
    if (column < 0) return FV_OK;
    fv__sum_init(&t.sum.sum, FV_SUM_FLOAT64);
    fv__sum_init(&t.squares.sum, FV_SUM_FLOAT64_SQUARES);
    fv__sum_init(&t.whole.sum, FV_SUM_INTEGER);
    for (int64_t r = from; r < to; r++) {
        fv_cell cell = cell_at(g, r, column);
        if (!is_missing(kind, cell)) add(&t, kind, cell);
    }
    *value = result_of(&t, kind, function, value_kind(g->table->type, g->request, v));
    if (function == SUM && kind == FV_COLUMN_INTEGER && !fv__sum_integer_value(&t.whole.sum, &value->integer))
        return fv_fail(error, FV_ERROR_INPUT, "the sum of %s is about %.17g, more than 64 bits hold",
                       g->table->type->column[column].name, fv__sum_value(&t.whole.sum));
    return FV_OK;
}

/* ---------------------------------------------------------------- all groups */

static int by_keys(const grouping *g, int64_t x, int64_t y) {
    const fv_table_type *type = g->table->type;
    for (int k = 0; k < g->request->nkeys; k++) {
        int c = g->request->key[k];
        int order =
            fv__cell_order(type->column[c].kind, g->table->cell[x * type->ncolumns + c], g->table->cell[y * type->ncolumns + c]);
        if (order) return order;
    }
    return 0;
}

static int in_order(const void *a, const void *b, void *context) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    int     order = by_keys(context, x, y);
    return order ? order : x < y ? -1 : x > y;
}

static fv_cell key_of_item(const grouping *g, int64_t item, int k) {
    const fv_item_names *items = g->request->items;
    return (fv_cell){ .text = is_key(g->table->type, g->request, k, "item") ? items->names[item] : items->paths[item] };
}

static int by_item_keys(const void *a, const void *b, void *context) {
    const grouping *g = context;
    for (int k = 0; k < g->request->nkeys; k++) {
        int order =
            fv__cell_order(FV_COLUMN_TEXT, key_of_item(g, *(const int64_t *)a, k), key_of_item(g, *(const int64_t *)b, k));
        if (order) return order;
    }
    return 0;
}

/* Order of the group that begins at a row and that of an item. */
static int row_and_item(const grouping *g, int64_t row, int64_t item) {
    for (int k = 0; k < g->request->nkeys; k++) {
        int order = fv__cell_order(FV_COLUMN_TEXT, cell_at(g, row, g->request->key[k]), key_of_item(g, item, k));
        if (order) return order;
    }
    return 0;
}

/* One group: rows from..to, or none of an item. */
static fv_status put_group(const grouping *g, fv_row_writer *writer, int64_t from, int64_t to, int64_t item, fv_error *error) {
    const request *q = g->request;
    fv_cell       *row;
    FV_TRY(fv__row_writer_next(writer, &row, error));
    for (int k = 0; k < q->nkeys; k++)
        fv__row_writer_copy(writer, g->table->type->column[q->key[k]].kind, row++,
                            item >= 0 ? key_of_item(g, item, k) : cell_at(g, from, q->key[k]));
    for (int v = 0; v < q->nvalues; v++) FV_TRY(value_of(g, from, to, v, row++, error));
    return FV_OK;
}

static fv_status put_groups(const grouping *g, const int64_t *items, fv_row_writer *writer, fv_error *error) {
    const request *q = g->request;
    int64_t        item = 0, nitems = q->items ? q->items->count : 0;
    for (int64_t from = 0, to; from < g->table->nrows || (!q->nkeys && !from) || item < nitems;
         from = q->nkeys ? to : FV_MAX(to, 1)) {
        for (to = from; to < g->table->nrows && !by_keys(g, g->rows[from], g->rows[to]);) to++;
        int order = item == nitems ? -1 : from == g->table->nrows ? 1 : row_and_item(g, from, items[item]);
        if (order > 0) {
            FV_TRY(put_group(g, writer, 0, 0, items[item], error));
            to = from;
        } else
            FV_TRY(put_group(g, writer, from, to, -1, error));
        int64_t done = item;
        while (order >= 0 && item < nitems && !by_item_keys(&items[done], &items[item], (void *)(uintptr_t)g)) item++;
    }
    return fv__row_writer_flush(writer, error);
}

static fv_status finish(fv_finish *f, fv_error *error) {
    request   q;
    fv_loaded table;
    FV_TRY(parse(f->params, f->in[0], &q, error));
    fv_status status = fv__table_load(f->table[0], f->in[0]->table, &table, error);
    if (status == FV_OK) {
        int64_t      *rows = fv__alloc((size_t)(table.nrows + 1) * sizeof *rows);
        int64_t       nitems = q.items ? q.items->count : 0, *items = fv__alloc((size_t)(nitems + 1) * sizeof *items);
        grouping      g = { &table, &q, rows };
        fv_row_writer writer;
        for (int64_t r = 0; r < table.nrows; r++) rows[r] = r;
        qsort_r(rows, (size_t)table.nrows, sizeof *rows, in_order, &g);
        for (int64_t k = 0; k < nitems; k++) items[k] = k;
        qsort_r(items, (size_t)nitems, sizeof *items, by_item_keys, &g);
        fv__row_writer_init(&writer, f);
        status = put_groups(&g, items, &writer, error);
        fv__row_writer_release(&writer);
        free(rows);
        free(items);
    }
    fv__loaded_release(&table);
    return status;
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns in by>", .doc = "the values that make the group" },
    { "<summaries in values>", .doc = "one column for each: count, mean_volume and so on, or the name that as gives it" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(group) = {
    .name = "group",
    .family = "table",
    .brief = "summarise the rows of a table that agree in some columns",
    .also = "groupby, groupsummary, aggregate",
    .version = 2,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(group),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .doc = "The result has one row for each different value of the columns in by, in the order of these values. Of a "
           "table of a collection grouped by item, every item has a row, also without objects. count() counts the rows, count(x) "
           "those where x is not missing. Missing values are left out of the other summaries. std "
           "is that of the population. Sums and means are exact before they are rounded. The table must fit into memory.",
    .example = "cells = label(phantom(\"cells\", [200, 200]) > 60)\n"
               "group(neighbours(cells), \"label_a\", \"count() as contacts, sum(faces)\")",
    .see = "filter sort join measure",
    .columns = columns,
};
