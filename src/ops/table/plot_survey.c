/* plot: what all rows of a table hold, and the way in and out of it. */
#include "ops/table/plot.h"
#include <stdio.h>
#include <stdlib.h>

/* More groups cannot be told apart in a picture, nor more names be read. */
enum { MOST_GROUPS = 64, MOST_NAMES = 400, MOST_PLACES = 60 };

/* ---------------------------------------------------------------- names */

static int order(const fv__plot_name *a, const fv__plot_name *b) {
    bool numbers = a->number == a->number && b->number == b->number;
    if (numbers) return a->number < b->number ? -1 : a->number > b->number;
    return strverscmp(a->text, b->text);
}

/* Where a name is, or, below zero, where it belongs: -1 - place. */
static int find(const fv__plot_names *names, const fv__plot_name *name) {
    int low = 0, high = names->count;
    while (low < high) {
        int middle = (low + high) / 2, way = order(name, &names->name[middle]);
        if (!way) return middle;
        if (way < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1 - low;
}

/* The value of a cell as a name; text has room for a number. */
static fv__plot_name name_of(fv_column_kind kind, fv_cell cell, char text[FV_NUMBER_SIZE]) {
    fv__plot_name name = { text, NAN };
    if (kind == FV_COLUMN_TEXT) {
        name.text = cell.text && *cell.text ? cell.text : "missing";
        return name;
    }
    double number = fv__cell_number(kind, cell);
    if (number != number)
        snprintf(text, FV_NUMBER_SIZE, "missing");
    else if (kind == FV_COLUMN_INTEGER)
        fv__integer_format(cell.integer, text);
    else if (kind == FV_COLUMN_NATURAL)
        fv__natural_format(cell.natural, text);
    else
        fv__real_format(number, text);
    name.number = number;
    return name;
}

static void add_name(fv__plot *p, fv__plot_names *names, int column, const fv_cell *row) {
    char          text[FV_NUMBER_SIZE];
    fv__plot_name name = name_of(p->type->column[column].kind, row[column], text);
    int           at = find(names, &name);
    if (at >= 0 || names->overflow) return;
    if (names->count == names->most) {
        names->overflow = true;
        return;
    }
    if (!names->name) names->name = fv__arena_alloc(&p->arena, (size_t)names->most * sizeof *names->name);
    at = -1 - at;
    memmove(names->name + at + 1, names->name + at, (size_t)(names->count - at) * sizeof *names->name);
    names->name[at] = (fv__plot_name){ fv__arena_strdup(&p->arena, name.text), name.number };
    names->count++;
}

/* ---------------------------------------------------------------- numbers */

static double number_at(const fv__plot *p, const fv_cell *row, int column) {
    return column < 0 ? 0 : fv__cell_number(p->type->column[column].kind, row[column]);
}

static bool can_be_drawn(double number, bool log) { return isfinite(number) && (!log || number > 0); }

/* Numbers of a row; false: one is missing. */
static bool numbers_of(const fv__plot *p, const fv_cell *row, fv__plot_row *out) {
    bool good = true;
    if (p->kind == FV__PLOT_BINS) {
        out->x = number_at(p, row, p->low);
        out->y = number_at(p, row, p->y);
        out->value = number_at(p, row, p->high);
        return can_be_drawn(out->x, p->log_x) && isfinite(out->value) && isfinite(out->y);
    }
    if (!p->named_x && p->x >= 0) good = can_be_drawn(out->x = number_at(p, row, p->x), p->log_x);
    if (!p->named_y && p->y >= 0) good = good && can_be_drawn(out->y = number_at(p, row, p->y), p->log_y);
    if (p->value >= 0) good = good && isfinite(out->value = number_at(p, row, p->value));
    return good;
}

static void widen(double *low, double *high, double number, bool first) {
    if (first || number < *low) *low = number;
    if (first || number > *high) *high = number;
}

/* ---------------------------------------------------------------- the survey */

static bool may_be_named(const fv__plot *p, int column) {
    return column >= 0 && (p->kind == FV__PLOT_HEATMAP || p->type->column[column].kind == FV_COLUMN_TEXT);
}

static fv_status look(void *context, const fv_cell *row, fv_error *error) {
    fv__plot    *p = context;
    fv__plot_row r = { 0 };
    (void)error;
    if (p->by >= 0) add_name(p, &p->groups, p->by, row);
    if (p->x >= 0 && (p->named_x || may_be_named(p, p->x))) add_name(p, &p->across, p->x, row);
    if (p->y >= 0 && (p->named_y || may_be_named(p, p->y))) add_name(p, &p->up, p->y, row);
    if (!numbers_of(p, row, &r)) {
        p->dropped++;
        return FV_OK;
    }
    widen(&p->low_x, &p->high_x, r.x, !p->nrows);
    widen(&p->low_y, &p->high_y, r.y, !p->nrows);
    p->nrows++;
    return FV_OK;
}

static fv_status too_many(const fv__plot *p, const char *parameter, int column, int most, const char *instead, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s = \"%s\": the column has more than %d different values%s", parameter,
                   p->type->column[column].name, most, instead);
}

fv_status fv__plot_survey(fv__plot *p, fv_error *error) {
    bool heatmap = p->kind == FV__PLOT_HEATMAP;
    bool text_x = p->x >= 0 && p->type->column[p->x].kind == FV_COLUMN_TEXT;
    bool text_y = p->y >= 0 && p->type->column[p->y].kind == FV_COLUMN_TEXT;
    p->groups.most = MOST_GROUPS;
    p->across.most = heatmap && !text_x ? MOST_PLACES : MOST_NAMES;
    p->up.most = heatmap && !text_y ? MOST_PLACES : MOST_NAMES;
    p->named_x = p->named_x || text_x;
    p->named_y = text_y;
    FV_TRY(fv__table_each(p->rows, p->type, look, p, error));
    if (p->groups.overflow)
        return too_many(p, "by", p->by, MOST_GROUPS, ", which no picture can tell apart; group() or filter() make them fewer",
                        error);
    if (p->across.overflow && p->named_x)
        return too_many(p, "x", p->x, MOST_NAMES, "; kind = \"histogram\" or \"scatter\" draws many numbers", error);
    if (p->up.overflow && p->named_y) return too_many(p, "y", p->y, MOST_NAMES, "", error);
    if (heatmap) p->named_x = !p->across.overflow;
    if (heatmap) p->named_y = !p->up.overflow;
    if (p->named_x && p->x < 0) { /* all rows are one */
        p->across.name = fv__arena_alloc(&p->arena, sizeof *p->across.name);
        p->across.name[p->across.count++] = (fv__plot_name){ "", NAN };
    }
    return FV_OK;
}

void fv__plot_release(fv__plot *p) { fv__arena_release(&p->arena); }

/* ---------------------------------------------------------------- rows */

typedef struct {
    fv__plot      *plot;
    fv__plot_visit visit;
    void          *context;
} visiting;

static int place_of(const fv__plot *p, const fv__plot_names *names, int column, const fv_cell *row) {
    char          text[FV_NUMBER_SIZE];
    fv__plot_name name = name_of(p->type->column[column].kind, row[column], text);
    return find(names, &name);
}

static fv_status visit_row(void *context, const fv_cell *row, fv_error *error) {
    const visiting *v = context;
    const fv__plot *p = v->plot;
    fv__plot_row    r = { 0 };
    if (!numbers_of(p, row, &r)) return FV_OK;
    if (p->by >= 0) r.group = place_of(p, &p->groups, p->by, row);
    if (p->named_x && p->x >= 0) r.at_x = place_of(p, &p->across, p->x, row);
    if (p->named_y && p->y >= 0) r.at_y = place_of(p, &p->up, p->y, row);
    if (p->named_x) r.x = r.at_x;
    if (p->named_y) r.y = r.at_y;
    return v->visit(v->context, &r, error);
}

fv_status fv__plot_each(fv__plot *p, fv__plot_visit visit, void *context, fv_error *error) {
    visiting v = { p, visit, context };
    return fv__table_each(p->rows, p->type, visit_row, &v, error);
}

/* ---------------------------------------------------------------- marks */

fv_status fv__plot_put(fv__plot *p, const fv__plot_mark *mark, fv_error *error) {
    fv_cell *row;
    bool     group = mark->group >= 0 && p->by >= 0, x = mark->at_x >= 0 && p->named_x, y = mark->at_y >= 0 && p->named_y;
    FV_TRY(fv__row_writer_next(&p->marks, &row, error));
    fv__row_writer_text(&p->marks, &row[FV__MARK], mark->mark);
    fv__row_writer_text(&p->marks, &row[FV__SERIES], group ? p->groups.name[mark->group].text : NULL);
    row[FV__X].real = mark->x;
    row[FV__Y].real = mark->y;
    row[FV__FROM].real = mark->from;
    row[FV__TO].real = mark->to;
    row[FV__VALUE].real = mark->value;
    fv__row_writer_text(&p->marks, &row[FV__X_NAME], x ? p->across.name[mark->at_x].text : NULL);
    fv__row_writer_text(&p->marks, &row[FV__Y_NAME], y ? p->up.name[mark->at_y].text : NULL);
    return FV_OK;
}
