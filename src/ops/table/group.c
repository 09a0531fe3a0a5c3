/* group: rows of a table with equal values in some columns become one, with counts, sums, means ... of the others.
 *
 * Rows come sorted by the columns that make a group, so that one group at a time is summed up. For medians, quantiles and numbers
 * of different values they come a second time, sorted also by that column; both go through the groups in step.
 */
#include "base/take.h"
#include "op/row_sorter.h"
#include "op/summary_estimate.h"
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

typedef struct {
    const fv_item_names *items; /* of which each is a group, with rows or without; NULL: groups are what rows there are */
    fv_row_keys          keys;
    fv__summaries        summaries;
} request;

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
    FV_TRY(fv__summaries_parse(&q->summaries, g->values, type, error));
    return q->keys.count + q->summaries.count <= FV_MAX_COLUMNS ? FV_OK
                                                                : fv_fail(error, FV_ERROR_USAGE, "values: too many columns");
}

/* The one group of all rows may be empty, and that of an item, and then has no least and no largest value, which only a real
 * number can tell. */
static fv_column_kind value_kind(const fv_table_type *type, const request *q, int v) {
    int  function = q->summaries.value[v].function;
    bool may_miss = !q->keys.count || q->items;
    if (function == FV__COUNT || function == FV__COUNT_DISTINCT) return FV_COLUMN_INTEGER;
    if (function == FV__MEAN || function == FV__STD || function == FV__MEDIAN || function == FV__QUANTILE) return FV_COLUMN_REAL;
    fv_column_kind kind = type->column[q->summaries.value[v].column].kind;
    return may_miss && function != FV__SUM && kind != FV_COLUMN_TEXT ? FV_COLUMN_REAL : kind;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const fv_table_type *in = i->in[0]->table;
    fv_table_type       *out = fv__arena_alloc(i->arena, sizeof *out);
    request              q;
    FV_TRY(parse(i->params, i->in[0], &q, error));
    for (int k = 0; k < q.keys.count; k++) out->column[out->ncolumns++] = in->column[q.keys.key[k].column];
    for (int v = 0; v < q.summaries.count; v++) {
        if (fv__table_column(out, q.summaries.value[v].name) >= 0)
            return fv_fail(error, FV_ERROR_USAGE, "values: two columns would be called %s; give one another name with as",
                           q.summaries.value[v].name);
        fv_column *column = &out->column[out->ncolumns++];
        column->kind = value_kind(in, &q, v);
        snprintf(column->name, sizeof column->name, "%s", q.summaries.value[v].name);
    }
    *i->out = (fv_type){ .kind = FV_KIND_TABLE, .table = out, .items = q.items };
    return FV_OK;
}

/* ---------------------------------------------------------------- one group */

typedef struct {
    fv__summary_tally base;
    fv_row_sorter    *sorter; /* rows by keys and this column; NULL: it need not know their order */
    fv_row_keys       order;
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

/* Goes through the sorted values of the group: as many rows as it has, the missing ones last. */
static fv_status look_through(const grouping *g, int v, fv_cell *value, fv_error *error) {
    tally         *t = &g->tally[v];
    int            column = g->request->summaries.value[v].column;
    fv_column_kind kind = g->type->column[column].kind;
    double         share = g->request->summaries.value[v].share;
    double         place = share * (double)(t->base.count - 1), low = NAN, high = NAN;
    int64_t        at = (int64_t)floor(place), different = 0;
    fv_cell        before = { 0 };
    fv_bytes       text = { 0 };
    for (int64_t r = 0; r < g->nrows; r++) {
        const fv_cell *row;
        FV_TRY(fv__row_sorter_next(t->sorter, &row, NULL, error));
        if (r >= t->base.count) continue;
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
    if (g->request->summaries.value[v].function == FV__COUNT_DISTINCT)
        value->integer = different;
    else
        value->real = t->base.count ? fv__summary_between(low, high, place - (double)at) : NAN;
    return FV_OK;
}

static fv_status value_of(const grouping *g, int v, fv_cell *value, fv_error *error) {
    int column = g->request->summaries.value[v].column, function = g->request->summaries.value[v].function;
    *value = (fv_cell){ .integer = g->nrows };
    if (column < 0) return FV_OK;
    if (fv__summary_ordered(function)) return look_through(g, v, value, error);
    fv_column_kind kind = g->type->column[column].kind;
    return fv__summary_result(&g->tally[v].base, kind, function, value_kind(g->type, g->request, v), g->type->column[column].name,
                              value, error);
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
        for (int v = 0; v < g->request->summaries.count; v++) {
            int c = g->request->summaries.value[v].column;
            if (c >= 0 && !fv__cell_missing(g->type->column[c].kind, g->row[c]))
                fv__summary_add(&g->tally[v].base, g->type->column[c].kind, g->row[c]);
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
    for (int v = 0; v < q->summaries.count; v++) fv__summary_start(&g->tally[v].base);
    if (item < 0) FV_TRY(take_group(g, error));
    FV_TRY(fv__row_writer_next(&g->writer, &row, error));
    for (int k = 0; k < q->keys.count; k++) {
        int c = q->keys.key[k].column;
        fv__row_writer_copy(&g->writer, g->type->column[c].kind, row++, item >= 0 ? key_of_item(g, item, k) : g->key[c]);
    }
    for (int v = 0; v < q->summaries.count; v++) {
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
    for (int v = 0; v < q->summaries.count; v++) {
        tally *t = &g->tally[v];
        if (!fv__summary_ordered(q->summaries.value[v].function)) continue;
        t->order = q->keys;
        t->order.key[t->order.count].descending = false;
        t->order.key[t->order.count++].column = q->summaries.value[v].column;
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
    g.tally = fv__calloc((size_t)q.summaries.count * sizeof *g.tally);
    for (int64_t k = 0; k < nitems; k++) items[k] = k;
    qsort_r(items, (size_t)nitems, sizeof *items, by_item_keys, &g);
    fv__row_writer_init(&g.writer, f);
    fv_status status = fill(&g, f->table[0], error);
    if (status == FV_OK) status = put_groups(&g, items, error);
    fv__row_writer_release(&g.writer);
    fv__row_sorter_free(g.sorter);
    for (int v = 0; v < q.summaries.count; v++) {
        fv__row_sorter_free(g.tally[v].sorter);
        fv__summary_release(&g.tally[v].base);
    }
    fv__bytes_release(&g.key_text);
    free(g.tally);
    free(items);
    return status;
}

/* ---------------------------------------------------------------- from some of the items */

typedef struct { /* rows of the items that were seen, in the order of their groups and then of items */
    const fv_table_type *type;
    const request       *request;
    fv_cell             *cells;
    int64_t             *unit;  /* by row as it came: the item */
    int64_t             *order; /* numbers of rows */
    int64_t              nrows, ngroups;
} sampled_rows;

static void release_sampled(sampled_rows *r) {
    free(r->cells);
    free(r->unit);
    free(r->order);
}

static const fv_cell *row_at(const sampled_rows *r, int64_t number) { return r->cells + number * r->type->ncolumns; }

static int by_group(const void *a, const void *b, void *context) {
    const sampled_rows *r = context;
    int64_t             x = *(const int64_t *)a, y = *(const int64_t *)b;
    int                 order = fv__row_keys_order(&r->request->keys, row_at(r, x), row_at(r, y));
    return order ? order : (x > y) - (x < y);
}

/* Behind the last row of the group that begins there. */
static int64_t end_of_group(const sampled_rows *r, int64_t from) {
    int64_t to = from + 1;
    while (to < r->nrows && !fv__row_keys_order(&r->request->keys, row_at(r, r->order[from]), row_at(r, r->order[to]))) to++;
    return to;
}

static fv_status take_rows(sampled_rows *r, fv_sample *s, fv_error *error) {
    const size_t row = (size_t)r->type->ncolumns * sizeof(fv_cell);
    const void  *data;
    size_t       size;
    double       one;
    for (int64_t i = 0; i < s->seen; i++) {
        FV_TRY(s->partial(s, i, &data, &size, &one, error));
        r->nrows += (int64_t)(size / row);
    }
    FV_TRY(FV_TAKE(r->cells, (size_t)r->nrows * row + 1, error));
    FV_TRY(FV_TAKE(r->unit, (size_t)(r->nrows + 1) * sizeof *r->unit, error));
    FV_TRY(FV_TAKE(r->order, (size_t)(r->nrows + 1) * sizeof *r->order, error));
    for (int64_t i = 0, n = 0; i < s->seen; i++) {
        FV_TRY(s->partial(s, i, &data, &size, &one, error));
        if (size) memcpy(r->cells + n * r->type->ncolumns, data, size);
        for (int64_t k = 0; k < (int64_t)(size / row); k++, n++) r->unit[n] = i, r->order[n] = n;
    }
    qsort_r(r->order, (size_t)r->nrows, sizeof *r->order, by_group, r);
    for (int64_t at = 0; at < r->nrows; at = end_of_group(r, at)) r->ngroups++;
    if (!r->request->keys.count) r->ngroups = 1; /* with rows or without */
    return FV_OK;
}

/* The values of a group item by item, and all of them summed up. */
static fv_status read_group(const sampled_rows *r, int64_t from, int64_t to, int column, int64_t seen, fv__summary_units *u,
                            fv__summary_tally *whole, fv_error *error) {
    int64_t n = 0, at = from;
    FV_TRY(fv__summary_units_take(u, seen, error));
    FV_TRY(FV_TAKE(u->value, (size_t)(to - from + 1) * sizeof *u->value, error));
    for (int64_t i = 0; i < seen; i++) {
        u->size[i] = 1;
        for (u->rows[i] = 0; at < to && r->unit[r->order[at]] == i; at++, u->rows[i]++) {
            if (column < 0) continue; /* rows alone are counted */
            fv_cell        cell = row_at(r, r->order[at])[column];
            fv_column_kind kind = r->type->column[column].kind;
            if (fv__cell_missing(kind, cell)) continue;
            if (kind != FV_COLUMN_TEXT) u->value[n++] = fv__cell_number(kind, cell);
            if (kind == FV_COLUMN_TEXT) u->value[n++] = 0; /* only counted */
            fv__summary_add(whole, kind, cell);
        }
        u->end[i] = n;
    }
    return FV_OK;
}

/* All items were seen. */
static fv_status whole_value(const sampled_rows *r, int v, int64_t nrows, fv__summary_units *u, int64_t n,
                             const fv__summary_tally *whole, fv_interval *e, fv_error *error) {
    const fv__summaries *all = &r->request->summaries;
    int                  column = all->value[v].column;
    fv_column_kind       out = value_kind(r->type, r->request, v);
    fv_cell              cell = { .integer = nrows };
    if (column >= 0 && fv__summary_ordered(all->value[v].function)) {
        qsort(u->value, (size_t)n, sizeof *u->value, fv__numbers_ascending);
        cell.real = fv__sorted_quantile(u->value, n, all->value[v].share);
    } else if (column >= 0)
        FV_TRY(fv__summary_result(whole, r->type->column[column].kind, all->value[v].function, out, r->type->column[column].name,
                                  &cell, error));
    e->value = e->low = e->high = fv__cell_number(out, cell);
    snprintf(e->method, sizeof e->method, "exact");
    return FV_OK;
}

/* Whether a column holds estimates: it has an interval beside it. */
static bool is_estimate(const fv_table_type *type, int column) {
    char low[48], high[48];
    if (column < 0) return false;
    snprintf(low, sizeof low, "%s_low", type->column[column].name);
    snprintf(high, sizeof high, "%s_high", type->column[column].name);
    return fv__table_column(type, low) >= 0 && fv__table_column(type, high) >= 0;
}

/* Of estimates that items have made from some of their chunks, the items differ by what they are and by chance. Both make the
 * interval as wide as it is, and it does not vanish when all items were seen (Cochran, section 11.3: the variance between first
 * units without its correction for a finite population is not too small). */
static fv_status estimate_group(const sampled_rows *r, fv_sample *s, int64_t from, int64_t to, int v, fv_interval *e,
                                fv_error *error) {
    const fv__summaries *all = &r->request->summaries;
    int                  column = all->value[v].column;
    fv__summary_units    u = { 0 };
    fv__summary_tally    whole = { 0 };
    fv__summary_start(&whole);
    fv_status status = read_group(r, from, to, column, s->seen, &u, &whole, error);
    s->inexact = is_estimate(r->type, column);
    if (status == FV_OK && s->seen == s->population && !s->inexact)
        status = whole_value(r, v, to - from, &u, u.end[s->seen - 1], &whole, e, error);
    else if (status == FV_OK)
        status =
            fv__estimate_summary(s, all->value[v].function, column, all->value[v].share, &u, (double)s->population, e, error);
    fv__summary_release(&whole);
    fv__summary_units_release(&u);
    return status;
}

/* A group that no item of the sample has is not listed. */
static fv_status estimate_groups(sampled_rows *r, fv_sample *s, fv_estimates *e, fv_error *error) {
    const request *q = r->request;
    fv__estimates_init(e, r->ngroups, q->keys.count, q->summaries.count);
    s->intervals = r->ngroups * q->summaries.count;
    for (int64_t g = 0, at = 0, end; g < r->ngroups; g++, at = end) {
        end = q->keys.count ? end_of_group(r, at) : r->nrows;
        for (int k = 0; k < q->keys.count; k++) {
            int     c = q->keys.key[k].column;
            fv_cell cell = row_at(r, r->order[at])[c];
            if (r->type->column[c].kind == FV_COLUMN_TEXT && cell.text) cell.text = fv__arena_strdup(&e->texts, cell.text);
            e->plain[g * q->keys.count + k] = cell;
        }
        for (int v = 0; v < q->summaries.count; v++)
            FV_TRY(estimate_group(r, s, at, end, v, &e->interval[g * q->summaries.count + v], error));
    }
    return FV_OK;
}

static fv_status estimate_rows(fv_sample *s, fv_estimates *e, fv_error *error) {
    request      q;
    sampled_rows r = { .type = s->in[0]->table, .request = &q };
    FV_TRY(parse(s->params, s->in[0], &q, error));
    fv_status status = take_rows(&r, s, error);
    if (status == FV_OK) status = estimate_groups(&r, s, e, error);
    release_sampled(&r);
    return status;
}

static int plain_of(const void *params_, const fv_type *const *in) {
    request  q;
    fv_error error = { 0 };
    return parse(params_, in[0], &q, &error) == FV_OK ? q.keys.count : 0;
}

static const char *hindered(const void *params_, const fv_type *const *in) {
    request     q;
    fv_error    error = { 0 };
    const char *why = NULL;
    if (parse(params_, in[0], &q, &error) != FV_OK) return NULL;
    for (int v = 0; v < q.summaries.count && !why; v++) why = fv__summary_hindered(q.summaries.value[v].function);
    for (int k = 0; k < q.keys.count && !why; k++)
        if (is_key(in[0]->table, &q, k, "item") || is_key(in[0]->table, &q, k, "path"))
            why = "each item is a group of its own, and one that is not looked at would have no row";
    return why;
}

/* ---------------------------------------------------------------- the operator */

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

const fv_estimator FV_ESTIMATOR(group) = {
    .rows = estimate_rows, .plain_of = plain_of, .hindered = hindered, .chain = FV_CHAIN_LAST, .twin = "objects"
};
