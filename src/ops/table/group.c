/* group: rows of a table with equal values in some columns become one, with counts, sums, means ... of the others.
 *
 * Rows come sorted by the columns that make a group, so that one group at a time is summed up. For medians, quantiles and numbers
 * of different values they come a second time, sorted also by that column; both go through the groups in step.
 */
#include "base/exact_sum.h"
#include "op/row_sorter.h"
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
             .doc = "summaries of each group, such as \"count(), mean(volume), max(volume) as largest\": count, "
                    "count_distinct, sum, mean, std, min, max, median, first, last of a column, and quantile(volume, 0.9)"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to group" }, FV_INPUT_END };

/* ---------------------------------------------------------------- what is asked for */

enum { COUNT, SUM, MEAN, STD, MIN, MAX, MEDIAN, QUANTILE, COUNT_DISTINCT, FIRST, LAST };
static const char *const functions[] = { "count",  "sum",      "mean",           "std",   "min", "max",
                                         "median", "quantile", "count_distinct", "first", "last" };
static bool              is_ordered(int function) { return function >= MEDIAN && function <= COUNT_DISTINCT; }
static bool              takes_text(int function) { return function == COUNT || function >= COUNT_DISTINCT; }

typedef struct {
    const fv_item_names *items; /* of which each is a group, with rows or without; NULL: groups are what rows there are */
    fv_row_keys          keys;
    int                  nvalues;
    struct {
        int    function, column;
        double share; /* of a quantile */
        char   name[40];
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

static fv_status wrong(const char *values, const char *at, const char *why, fv_error *error) {
    return fv_fail(error, FV_ERROR_USAGE, "values = \"%s\", at character %d: %s", values, (int)(at - values) + 1, why);
}

/* ", 0.9" */
static fv_status parse_share(const char *values, const char **at, double *share, fv_error *error) {
    char *end = NULL;
    *share = **at == ',' ? strtod(*at + 1, &end) : NAN;
    if (!end || end == *at + 1 || !(*share >= 0 && *share <= 1))
        return wrong(values, *at, "a comma and a number from 0 to 1 belong here, as quantile(volume, 0.9)", error);
    *at = end + strspn(end, " ");
    return FV_OK;
}

/* "mean(volume) as size" */
static fv_status parse_value(const char *values, const char **at, const fv_table_type *type, request *q, fv_error *error) {
    char word[40], column[40], as[8];
    int  n = q->nvalues, f = 0;
    if (n == FV_MAX_COLUMNS) return wrong(values, *at, "too many values", error);
    const char *start = *at, *p = word_at(start, word, sizeof word);
    while (f < FV_COUNT(functions) && strcmp(functions[f], word)) f++;
    if (f == FV_COUNT(functions))
        return wrong(values, start,
                     "count, sum, mean, std, min, max, median, quantile, count_distinct, first or last belongs here", error);
    if (*p != '(') return wrong(values, p, "a column in brackets belongs here, as mean(volume)", error);
    p = word_at(p + 1, column, sizeof column);
    if (f == QUANTILE) FV_TRY(parse_share(values, &p, &q->value[n].share, error));
    if (*p != ')') return wrong(values, p, "a ) is missing", error);
    p += 1 + strspn(p + 1, " ");
    q->value[n].function = f;
    q->value[n].column = -1;
    if (*column)
        FV_TRY(fv__table_find(type, "values", column, &q->value[n].column, error));
    else if (f != COUNT)
        return wrong(values, p, "a column belongs into the brackets", error);
    if (*column && !takes_text(f) && type->column[q->value[n].column].kind == FV_COLUMN_TEXT)
        return fv_fail(error, FV_ERROR_USAGE, "values: %s is text, which has no %s", column, word);
    snprintf(q->value[n].name, sizeof q->value[n].name, "%.14s%.1s%.24s", functions[f], *column ? "_" : "", column);
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
    return !strcmp(type->column[q->keys.key[k].column].name, name);
}

static fv_status parse(const group *g, const fv_type *table, request *q, fv_error *error) {
    const fv_table_type *type = table->table;
    *q = (request){ 0 };
    FV_TRY(fv__row_keys_parse(&q->keys, "by", g->by, false, type, error));
    bool of_items = q->keys.count && table->items && table->items->all;
    for (int k = 0; k < q->keys.count; k++) of_items = of_items && (is_key(type, q, k, "item") || is_key(type, q, k, "path"));
    if (of_items) q->items = table->items;
    for (const char *p = g->values;;) {
        FV_TRY(parse_value(g->values, &p, type, q, error));
        if (!*p) break;
        if (*p++ != ',') return wrong(g->values, p - 1, "a comma belongs between two values", error);
    }
    return q->keys.count + q->nvalues <= FV_MAX_COLUMNS ? FV_OK : fv_fail(error, FV_ERROR_USAGE, "values: too many columns");
}

/* The one group of all rows may be empty, and that of an item, and then has no least and no largest value, which only a real
 * number can tell. */
static fv_column_kind value_kind(const fv_table_type *type, const request *q, int v) {
    int  function = q->value[v].function;
    bool may_miss = !q->keys.count || q->items;
    if (function == COUNT || function == COUNT_DISTINCT) return FV_COLUMN_INTEGER;
    if (function == MEAN || function == STD || function == MEDIAN || function == QUANTILE) return FV_COLUMN_REAL;
    fv_column_kind kind = type->column[q->value[v].column].kind;
    return may_miss && function != SUM && kind != FV_COLUMN_TEXT ? FV_COLUMN_REAL : kind;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_table_type *in = i->in[0]->table;
    fv_table_type       *out = fv__arena_alloc(i->arena, sizeof *out);
    request              q;
    FV_TRY(parse(i->params, i->in[0], &q, error));
    for (int k = 0; k < q.keys.count; k++) out->column[out->ncolumns++] = in->column[q.keys.key[k].column];
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

/* What is known of one value of the group under way; missing values do not count. */
typedef struct {
    int64_t                count;
    fv_sum_float64         sum;
    fv_sum_float64_squares squares;
    fv_sum_integer         whole;
    fv_cell                least, most, first, last; /* texts lie in the two below */
    fv_bytes               first_text, last_text;
    fv_row_sorter         *sorter; /* rows by keys and this column; NULL: it need not know their order */
    fv_row_keys            order;
} tally;

typedef struct {
    const fv_table_type *type;
    const request       *request;
    fv_row_sorter       *sorter; /* rows by keys */
    const fv_cell       *row;    /* the next one, NULL behind the last */
    fv_cell              key[FV_MAX_COLUMNS];
    fv_bytes             key_text;
    tally               *tally; /* by value */
    int64_t              nrows; /* of the group */
    fv_row_writer        writer;
} grouping;

static void start_tally(tally *t) {
    t->count = 0;
    fv__sum_init(&t->sum.sum, FV_SUM_FLOAT64);
    fv__sum_init(&t->squares.sum, FV_SUM_FLOAT64_SQUARES);
    fv__sum_init(&t->whole.sum, FV_SUM_INTEGER);
}

static void keep_text(fv_bytes *room, fv_cell *cell) {
    fv__bytes_clear(room);
    cell->text = fv__bytes_append(room, cell->text, strlen(cell->text) + 1);
}

static void add(tally *t, fv_column_kind kind, fv_cell cell) {
    bool first = !t->count++;
    if (first) t->first = cell;
    t->last = cell;
    if (kind == FV_COLUMN_TEXT) {
        if (first) keep_text(&t->first_text, &t->first);
        keep_text(&t->last_text, &t->last);
        return;
    }
    double number = fv__cell_number(kind, cell);
    fv__sum_add(&t->sum.sum, number);
    fv__sum_add_square(&t->squares.sum, number);
    if (kind == FV_COLUMN_INTEGER)
        fv__sum_add_integer(&t->whole.sum, cell.integer < 0, cell.integer < 0 ? -(uint64_t)cell.integer : (uint64_t)cell.integer);
    if (first || fv__cell_order(kind, cell, t->least) < 0) t->least = cell;
    if (first || fv__cell_order(kind, cell, t->most) > 0) t->most = cell;
}

/* A share of the sorted values lies below the result, which lies between two of them as numpy's does. */
static double between(double low, double high, double part) {
    return part < 0.5 ? low + (high - low) * part : high - (high - low) * (1 - part);
}

/* Goes through the sorted values of the group: as many rows as it has, the missing ones last. */
static fv_status look_through(const grouping *g, int v, fv_cell *value, fv_error *error) {
    tally         *t = &g->tally[v];
    int            column = g->request->value[v].column;
    fv_column_kind kind = g->type->column[column].kind;
    double         share = g->request->value[v].function == MEDIAN ? 0.5 : g->request->value[v].share;
    double         place = share * (double)(t->count - 1), low = NAN, high = NAN;
    int64_t        at = (int64_t)floor(place), different = 0;
    fv_cell        before = { 0 };
    fv_bytes       text = { 0 };
    for (int64_t r = 0; r < g->nrows; r++) {
        const fv_cell *row;
        FV_TRY(fv__row_sorter_next(t->sorter, &row, NULL, error));
        if (r >= t->count) continue;
        if (kind == FV_COLUMN_TEXT) {
            if (!r || strcmp((const char *)text.data, row[column].text)) different++;
            fv__bytes_clear(&text);
            fv__bytes_append(&text, row[column].text, strlen(row[column].text) + 1);
            continue;
        }
        double number = fv__cell_number(kind, row[column]);
        if (!r || fv__cell_order(kind, row[column], before)) different++;
        if (r == at) low = high = number;
        if (r == at + 1) high = number;
        before = row[column];
    }
    fv__bytes_release(&text);
    if (g->request->value[v].function == COUNT_DISTINCT)
        value->integer = different;
    else
        value->real = t->count ? between(low, high, place - (double)at) : NAN;
    return FV_OK;
}

/* kind: of the column; out: of the result. */
static fv_cell result_of(const tally *t, fv_column_kind kind, int function, fv_column_kind out) {
    fv_cell one = function == MIN ? t->least : function == MAX ? t->most : function == FIRST ? t->first : t->last;
    switch (function) {
    case COUNT: return (fv_cell){ .integer = t->count };
    case SUM: return (fv_cell){ .real = fv__sum_value(&t->sum.sum) };
    case MEAN: return (fv_cell){ .real = t->count ? fv__sum_mean(&t->sum.sum, t->count) : NAN };
    case STD: return (fv_cell){ .real = t->count ? sqrt(fv__sum_variance(&t->sum.sum, &t->squares.sum, t->count)) : NAN };
    default:
        if (!t->count && out == FV_COLUMN_TEXT) return (fv_cell){ .text = NULL };
        if (!t->count) return (fv_cell){ .real = NAN };
        return kind == out ? one : (fv_cell){ .real = fv__cell_number(kind, one) };
    }
}

static fv_status value_of(const grouping *g, int v, fv_cell *value, fv_error *error) {
    int column = g->request->value[v].column, function = g->request->value[v].function;
    *value = (fv_cell){ .integer = g->nrows };
    if (column < 0) return FV_OK;
    if (is_ordered(function)) return look_through(g, v, value, error);
    fv_column_kind kind = g->type->column[column].kind;
    const tally   *t = &g->tally[v];
    *value = result_of(t, kind, function, value_kind(g->type, g->request, v));
    if (function == SUM && kind == FV_COLUMN_INTEGER && !fv__sum_integer_value(&t->whole.sum, &value->integer))
        return fv_fail(error, FV_ERROR_INPUT, "the sum of %s is about %.17g, more than 64 bits hold",
                       g->type->column[column].name, fv__sum_value(&t->whole.sum));
    return FV_OK;
}

/* ---------------------------------------------------------------- all groups */

static fv_cell key_of_item(const grouping *g, int64_t item, int k) {
    const fv_item_names *items = g->request->items;
    return (fv_cell){ .text = is_key(g->type, g->request, k, "item") ? items->names[item] : items->paths[item] };
}

static int by_item_keys(const void *a, const void *b, void *context) {
    const grouping *g = context;
    for (int k = 0; k < g->request->keys.count; k++) {
        int order =
            fv__cell_order(FV_COLUMN_TEXT, key_of_item(g, *(const int64_t *)a, k), key_of_item(g, *(const int64_t *)b, k));
        if (order) return order;
    }
    return 0;
}

/* Order of the group that begins at the next row and that of an item. */
static int row_and_item(const grouping *g, int64_t item) {
    for (int k = 0; k < g->request->keys.count; k++) {
        int order = fv__cell_order(FV_COLUMN_TEXT, g->row[g->request->keys.key[k].column], key_of_item(g, item, k));
        if (order) return order;
    }
    return 0;
}

/* The values that make the group outlive its first row. */
static void keep_keys(grouping *g) {
    size_t place[FV_MAX_COLUMNS] = { 0 };
    fv__bytes_clear(&g->key_text);
    for (int k = 0; k < g->request->keys.count; k++) {
        int c = g->request->keys.key[k].column;
        g->key[c] = g->row[c];
        if (g->type->column[c].kind != FV_COLUMN_TEXT || !g->row[c].text) continue;
        place[k] = g->key_text.size + 1;
        fv__bytes_append(&g->key_text, g->row[c].text, strlen(g->row[c].text) + 1);
    }
    for (int k = 0; k < g->request->keys.count; k++)
        if (place[k]) g->key[g->request->keys.key[k].column].text = (const char *)g->key_text.data + place[k] - 1;
}

/* Takes the rows of the next group in. */
static fv_status take_group(grouping *g, fv_error *error) {
    if (g->row) keep_keys(g);
    for (; g->row && !fv__row_keys_order(&g->request->keys, g->key, g->row); g->nrows++) {
        for (int v = 0; v < g->request->nvalues; v++) {
            int c = g->request->value[v].column;
            if (c >= 0 && !fv__cell_missing(g->type->column[c].kind, g->row[c]))
                add(&g->tally[v], g->type->column[c].kind, g->row[c]);
        }
        FV_TRY(fv__row_sorter_next(g->sorter, &g->row, NULL, error));
    }
    return FV_OK;
}

/* One group: of the next rows, or without any of an item. */
static fv_status put_group(grouping *g, int64_t item, fv_error *error) {
    const request *q = g->request;
    fv_cell       *row;
    g->nrows = 0;
    for (int v = 0; v < q->nvalues; v++) start_tally(&g->tally[v]);
    if (item < 0) FV_TRY(take_group(g, error));
    FV_TRY(fv__row_writer_next(&g->writer, &row, error));
    for (int k = 0; k < q->keys.count; k++) {
        int c = q->keys.key[k].column;
        fv__row_writer_copy(&g->writer, g->type->column[c].kind, row++, item >= 0 ? key_of_item(g, item, k) : g->key[c]);
    }
    for (int v = 0; v < q->nvalues; v++) {
        fv_cell value;
        FV_TRY(value_of(g, v, &value, error));
        fv__row_writer_copy(&g->writer, value_kind(g->type, q, v), row++, value);
    }
    return FV_OK;
}

static fv_status put_groups(grouping *g, const int64_t *items, fv_error *error) {
    int64_t item = 0, nitems = g->request->items ? g->request->items->count : 0;
    bool    one = !g->request->keys.count; /* a single group, with rows or without */
    FV_TRY(fv__row_sorter_next(g->sorter, &g->row, NULL, error));
    for (; g->row || item < nitems || one; one = false) {
        int     order = item == nitems ? -1 : !g->row ? 1 : row_and_item(g, items[item]);
        int64_t done = item;
        FV_TRY(put_group(g, order > 0 ? items[item] : -1, error));
        while (order >= 0 && item < nitems && !by_item_keys(&items[done], &items[item], g)) item++;
    }
    return fv__row_writer_flush(&g->writer, error);
}

/* Rows in the order of the groups, and for some values once more. */
static fv_status fill(grouping *g, fv_results *rows, fv_error *error) {
    const request *q = g->request;
    g->sorter = fv__row_sorter_new(g->type, fv__row_keys_order, &q->keys);
    FV_TRY(fv__row_sorter_fill(g->sorter, rows, error));
    for (int v = 0; v < q->nvalues; v++) {
        tally *t = &g->tally[v];
        if (!is_ordered(q->value[v].function)) continue;
        t->order = q->keys;
        t->order.key[t->order.count].descending = false;
        t->order.key[t->order.count++].column = q->value[v].column;
        t->sorter = fv__row_sorter_new(g->type, fv__row_keys_order, &t->order);
        FV_TRY(fv__row_sorter_fill(t->sorter, rows, error));
    }
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    request  q;
    grouping g = { .type = f->in[0]->table, .request = &q };
    FV_TRY(parse(f->params, f->in[0], &q, error));
    int64_t nitems = q.items ? q.items->count : 0, *items = fv__alloc((size_t)(nitems + 1) * sizeof *items);
    g.tally = fv__calloc((size_t)q.nvalues * sizeof *g.tally);
    for (int64_t k = 0; k < nitems; k++) items[k] = k;
    qsort_r(items, (size_t)nitems, sizeof *items, by_item_keys, &g);
    fv__row_writer_init(&g.writer, f);
    fv_status status = fill(&g, f->table[0], error);
    if (status == FV_OK) status = put_groups(&g, items, error);
    fv__row_writer_release(&g.writer);
    fv__row_sorter_free(g.sorter);
    for (int v = 0; v < q.nvalues; v++) {
        fv__row_sorter_free(g.tally[v].sorter);
        fv__bytes_release(&g.tally[v].first_text);
        fv__bytes_release(&g.tally[v].last_text);
    }
    fv__bytes_release(&g.key_text);
    free(g.tally);
    free(items);
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
    .doc =
        "The result has one row for each different value of the columns in by, in the order of these values. Of a "
        "table of a collection grouped by item, every item has a row, also without objects. count() counts the rows, count(x) "
        "those where x is not missing, count_distinct(x) its different values. Missing values are left out of all summaries. std "
        "is that of the population; median and quantile lie between two values as those of numpy and pandas; first and last "
        "are those in the order of the table. Sums and means are exact before they are rounded. The table may be larger than "
        "memory.",
    .example = "cells = label(phantom(\"cells\", [200, 200]) > 60)\n"
               "group(neighbours(cells), \"label_a\", \"count() as contacts, sum(faces)\")",
    .see = "filter sort join pivot distinct measure",
    .columns = columns,
};
