/* Summaries of columns; see summaries.h. */
#include "op/summaries.h"
#include "op/table_rows.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const functions[] = { "count",  "sum",      "mean",           "std",   "min", "max",
                                         "median", "quantile", "count_distinct", "first", "last" };

const char *fv__summary_word(fv__summary_function function) { return functions[function]; }

static bool takes_text(int function) { return function == FV__COUNT || function >= FV__COUNT_DISTINCT; }

/* ---------------------------------------------------------------- text */

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
static fv_status parse_value(const char *values, const char **at, const fv_table_type *type, fv__summaries *q, fv_error *error) {
    char word[40], column[40], as[8];
    int  n = q->count, f = 0;
    if (n == FV_MAX_COLUMNS) return wrong(values, *at, "too many values", error);
    const char *start = *at, *p = word_at(start, word, sizeof word);
    while (f < FV_COUNT(functions) && strcmp(functions[f], word)) f++;
    if (f == FV_COUNT(functions))
        return wrong(values, start,
                     "count, sum, mean, std, min, max, median, quantile, count_distinct, first or last belongs here", error);
    if (*p != '(') return wrong(values, p, "a column in brackets belongs here, as mean(volume)", error);
    p = word_at(p + 1, column, sizeof column);
    if (f == FV__QUANTILE) FV_TRY(parse_share(values, &p, &q->value[n].share, error));
    if (*p != ')') return wrong(values, p, "a ) is missing", error);
    p += 1 + strspn(p + 1, " ");
    q->value[n].function = (fv__summary_function)f;
    if (f == FV__MEDIAN) q->value[n].share = 0.5;
    q->value[n].column = -1;
    if (*column)
        FV_TRY(fv__table_find(type, "values", column, &q->value[n].column, error));
    else if (f != FV__COUNT)
        return wrong(values, p, "a column belongs into the brackets", error);
    if (*column && !takes_text(f) && type->column[q->value[n].column].kind == FV_COLUMN_TEXT)
        return fv_fail(error, FV_ERROR_USAGE, "values: %s is text, which has no %s", column, word);
    snprintf(q->value[n].name, sizeof q->value[n].name, "%.14s%.1s%.24s", functions[f], *column ? "_" : "", column);
    const char *after = word_at(p, as, sizeof as);
    if (!strcmp(as, "as")) {
        p = word_at(after, q->value[n].name, sizeof q->value[n].name);
        if (!*q->value[n].name) return wrong(values, after, "a name belongs behind as", error);
    }
    q->count++;
    *at = p;
    return FV_OK;
}

fv_status fv__summaries_parse(fv__summaries *s, const char *values, const fv_table_type *type, fv_error *error) {
    *s = (fv__summaries){ 0 };
    for (const char *p = values;;) {
        FV_TRY(parse_value(values, &p, type, s, error));
        if (!*p) return FV_OK;
        if (*p++ != ',') return wrong(values, p - 1, "a comma belongs between two values", error);
    }
}

/* ---------------------------------------------------------------- rows */

void fv__summary_start(fv__summary_tally *t) {
    t->count = 0;
    fv__sum_init(&t->sum.sum, FV_SUM_FLOAT64);
    fv__sum_init(&t->squares.sum, FV_SUM_FLOAT64_SQUARES);
    fv__sum_init(&t->whole.sum, FV_SUM_INTEGER);
}

static void keep_text(fv_bytes *room, fv_cell *cell) {
    fv__bytes_clear(room);
    cell->text = fv__bytes_append(room, cell->text, strlen(cell->text) + 1);
}

void fv__summary_add(fv__summary_tally *t, fv_column_kind kind, fv_cell cell) {
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

void fv__summary_release(fv__summary_tally *t) {
    fv__bytes_release(&t->first_text);
    fv__bytes_release(&t->last_text);
}

static fv_cell result_of(const fv__summary_tally *t, fv_column_kind kind, fv__summary_function function, fv_column_kind out) {
    fv_cell one = function == FV__MIN ? t->least : function == FV__MAX ? t->most : function == FV__FIRST ? t->first : t->last;
    switch (function) {
    case FV__COUNT: return (fv_cell){ .integer = t->count };
    case FV__SUM: return (fv_cell){ .real = fv__sum_value(&t->sum.sum) };
    case FV__MEAN: return (fv_cell){ .real = t->count ? fv__sum_mean(&t->sum.sum, t->count) : NAN };
    case FV__STD: return (fv_cell){ .real = t->count ? sqrt(fv__sum_variance(&t->sum.sum, &t->squares.sum, t->count)) : NAN };
    default:
        if (!t->count && out == FV_COLUMN_TEXT) return (fv_cell){ .text = NULL };
        if (!t->count) return (fv_cell){ .real = NAN };
        return kind == out ? one : (fv_cell){ .real = fv__cell_number(kind, one) };
    }
}

fv_status fv__summary_result(const fv__summary_tally *t, fv_column_kind kind, fv__summary_function function, fv_column_kind out,
                             const char *name, fv_cell *result, fv_error *error) {
    *result = result_of(t, kind, function, out);
    if (function == FV__SUM && kind == FV_COLUMN_INTEGER && !fv__sum_integer_value(&t->whole.sum, &result->integer))
        return fv_fail(error, FV_ERROR_INPUT, "the sum of %s is about %.17g, more than 64 bits hold", name,
                       fv__sum_value(&t->whole.sum));
    return FV_OK;
}
