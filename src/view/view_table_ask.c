/* Questions to tables that are shown. No text of a request becomes a part of a statement: columns are looked up and named by
 * their numbers, values are bound. */
#include "base/number.h"
#include "view/view_table_parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_CONDITIONS = 16, MOST_ROWS = 1000, MOST_IDS = 1000000, MOST_POINTS = 20000, MOST_BINS = 1024 };

/* ---------------------------------------------------------------- conditions */

typedef struct {
    int         count;
    bool        text[MOST_CONDITIONS];
    double      low[MOST_CONDITIONS], high[MOST_CONDITIONS];
    const char *part[MOST_CONDITIONS]; /* of a text */
    fv_bytes    sql;                   /* "WHERE ..." or nothing */
} conditions;

static void release(conditions *w) { fv__bytes_release(&w->sql); }

static bool parse_bound(const char *text, size_t length, double missing, double *value) {
    char copy[64], *end;
    if (length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    *value = missing;
    if (!length) return true;
    *value = strtod(copy, &end);
    return !*end && !isnan(*value);
}

/* "COLUMN:LOW:HIGH", either may be left out; of a column of texts "COLUMN:PART:". Names may have colons of their own. */
static fv_status add_condition(const fv_view_table *t, const char *given, conditions *w, fv_error *error) {
    const char *last = strrchr(given, ':'), *first = last;
    while (first && first > given && first[-1] != ':') first--;
    if (!last || first <= given || w->count == MOST_CONDITIONS)
        return fv_fail(error, FV_ERROR_USAGE, "where = %.80s: must be COLUMN:LOW:HIGH, at most %d times", given, MOST_CONDITIONS);
    char *name = fv__sprintf("%.*s", (int)(first - 1 - given), given);
    int   c = fv_view_table_find(t, name), k = w->count;
    free(name);
    if (c < 0) return fv_fail(error, FV_ERROR_USAGE, "where = %.80s: the table has no such column", given);
    w->text[k] = t->type.column[c].kind == FV_COLUMN_TEXT;
    fv__bytes_printf(&w->sql, w->count++ ? " AND " : " WHERE ");
    if (w->text[k]) {
        fv__bytes_printf(&w->sql, "instr(lower(c%d), lower(?)) > 0", c);
        w->part[k] = first;
        w->high[k] = (double)(last - first); /* its length */
        return FV_OK;
    }
    fv__bytes_printf(&w->sql, "c%d BETWEEN ? AND ?", c);
    if (parse_bound(first, (size_t)(last - first), -HUGE_VAL, &w->low[k]) &&
        parse_bound(last + 1, strlen(last + 1), HUGE_VAL, &w->high[k]))
        return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "where = %.80s: LOW and HIGH must be numbers", given);
}

static fv_status read_conditions(const fv_view_table *t, const fv_view_query *q, conditions *w, fv_error *error) {
    *w = (conditions){ 0 };
    fv__bytes_printf(&w->sql, "%s", "");
    int at = 0;
    for (const char *given; (given = fv_view_query_next(q, "where", &at));) FV_TRY(add_condition(t, given, w, error));
    return FV_OK;
}

/* ---------------------------------------------------------------- statements */

/* %s in the text stands for the conditions, if there is one. more: further values to bind. */
static fv_status prepare(fv_view_table *t, const char *text, const conditions *w, const double *more, int nmore,
                         sqlite3_stmt **statement, fv_error *error) {
    int place = 1;
    if (sqlite3_prepare_v2(t->database, text, -1, statement, NULL) != SQLITE_OK)
        return fv_fail(error, FV_ERROR_INTERNAL, "%s: %s", t->name, sqlite3_errmsg(t->database));
    for (int k = 0; w && k < w->count; k++) {
        if (w->text[k])
            sqlite3_bind_text(*statement, place++, w->part[k], (int)w->high[k], SQLITE_STATIC);
        else {
            sqlite3_bind_double(*statement, place++, w->low[k]);
            sqlite3_bind_double(*statement, place++, w->high[k]);
        }
    }
    for (int k = 0; k < nmore; k++) sqlite3_bind_double(*statement, place++, more[k]);
    return FV_OK;
}

static fv_status ask_number(fv_view_table *t, const char *text, const conditions *w, const double *more, int nmore, double *first,
                            double *second, fv_error *error) {
    sqlite3_stmt *statement = NULL;
    fv_status     status = prepare(t, text, w, more, nmore, &statement, error);
    if (status == FV_OK && sqlite3_step(statement) == SQLITE_ROW) {
        *first = sqlite3_column_type(statement, 0) == SQLITE_NULL ? NAN : sqlite3_column_double(statement, 0);
        if (second) *second = sqlite3_column_type(statement, 1) == SQLITE_NULL ? NAN : sqlite3_column_double(statement, 1);
    }
    sqlite3_finalize(statement);
    return status;
}

static fv_status count_rows(fv_view_table *t, const conditions *w, int64_t *total, fv_error *error) {
    double    number = 0;
    fv_bytes  text = { 0 };
    fv_status status = FV_OK;
    *total = t->nrows;
    if (!w->count) return FV_OK;
    fv__bytes_printf(&text, "SELECT count(*) FROM t%s", (char *)w->sql.data);
    status = ask_number(t, (char *)text.data, w, NULL, 0, &number, NULL, error);
    fv__bytes_release(&text);
    *total = (int64_t)number;
    return status;
}

static fv_status make_index(fv_view_table *t, int c, fv_error *error) {
    char text[64];
    if (t->indexed[c]) return FV_OK;
    snprintf(text, sizeof text, "CREATE INDEX i%d ON t (c%d)", c, c);
    if (sqlite3_exec(t->database, text, NULL, NULL, NULL) != SQLITE_OK)
        return fv_fail(error, FV_ERROR_IO, "%s: %s", t->name, sqlite3_errmsg(t->database));
    t->indexed[c] = true;
    return FV_OK;
}

/* ---------------------------------------------------------------- JSON */

static void put_text(fv_bytes *out, const char *text) {
    fv__bytes_append(out, "\"", 1);
    for (; text && *text; text++)
        if (*text == '"' || *text == '\\')
            fv__bytes_printf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fv__bytes_printf(out, "\\u%04x", (unsigned char)*text);
        else
            fv__bytes_append(out, text, 1);
    fv__bytes_append(out, "\"", 1);
}

static void put_value(fv_bytes *out, sqlite3_stmt *statement, int c) {
    char number[FV_NUMBER_SIZE];
    int  kind = sqlite3_column_type(statement, c);
    if (kind == SQLITE_INTEGER)
        fv__bytes_append(out, number, (size_t)fv__integer_format(sqlite3_column_int64(statement, c), number));
    else if (kind == SQLITE_FLOAT && isfinite(sqlite3_column_double(statement, c)))
        fv__bytes_append(out, number, (size_t)fv__real_format(sqlite3_column_double(statement, c), number));
    else if (kind == SQLITE_TEXT)
        put_text(out, (const char *)sqlite3_column_text(statement, c));
    else
        fv__bytes_printf(out, "null");
}

static void put_row(fv_bytes *out, sqlite3_stmt *statement, int ncolumns) {
    for (int c = 0; c < ncolumns; c++) {
        fv__bytes_append(out, c ? "," : "[", 1);
        put_value(out, statement, c);
    }
    fv__bytes_append(out, "]", 1);
}

/* Columns of a result as lists of these names. */
static fv_status put_lists(fv_view_table *t, const char *text, const conditions *w, const char *const *names, int count,
                           fv_bytes *out, fv_error *error) {
    sqlite3_stmt *statement = NULL;
    fv_bytes      lists[3] = { 0 };
    FV_TRY(prepare(t, text, w, NULL, 0, &statement, error));
    for (bool first = true; sqlite3_step(statement) == SQLITE_ROW; first = false)
        for (int k = 0; k < count; k++) {
            if (!first) fv__bytes_append(&lists[k], ",", 1);
            put_value(&lists[k], statement, k);
        }
    sqlite3_finalize(statement);
    for (int k = 0; k < count; k++) {
        fv__bytes_printf(out, "%s\"%s\":[", k ? "," : "", names[k]);
        fv__bytes_append(out, lists[k].size ? (void *)lists[k].data : "", lists[k].size);
        fv__bytes_append(out, "]", 1);
        fv__bytes_release(&lists[k]);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- rows */

static fv_status find_column(const fv_view_table *t, const fv_view_query *q, const char *field, bool needed, int *c,
                             fv_error *error) {
    const char *name = fv_view_query_text(q, field);
    *c = fv_view_table_find(t, name);
    if (*c >= 0 || (!needed && (!name || !*name))) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "%s = %.80s: the table has no such column", field, name ? name : "");
}

static bool is_down(const fv_view_query *q) {
    const char *down = fv_view_query_text(q, "desc");
    return down && !strcmp(down, "1");
}

static void put_order(fv_bytes *text, int sort, bool down) {
    if (sort >= 0)
        fv__bytes_printf(text, " ORDER BY c%d%s, rowid%s", sort, down ? " DESC" : "", down ? " DESC" : "");
    else
        fv__bytes_printf(text, " ORDER BY rowid%s", down ? " DESC" : "");
}

static fv_status answer_rows(fv_view_table *t, const fv_view_query *q, const conditions *w, int64_t offset, int64_t limit,
                             fv_bytes *out, fv_error *error) {
    sqlite3_stmt *statement = NULL;
    fv_bytes      text = { 0 };
    int64_t       total;
    int           sort;
    FV_TRY(find_column(t, q, "sort", false, &sort, error));
    FV_TRY(count_rows(t, w, &total, error));
    if (sort >= 0) FV_TRY(make_index(t, sort, error));
    fv__bytes_printf(&text, "SELECT * FROM t%s", (char *)w->sql.data);
    put_order(&text, sort, is_down(q));
    fv__bytes_printf(&text, " LIMIT %lld OFFSET %lld", (long long)limit, (long long)offset);
    fv_status status = prepare(t, (char *)text.data, w, NULL, 0, &statement, error);
    fv__bytes_release(&text);
    if (status != FV_OK) return status;
    fv__bytes_printf(out, "{\"total\":%lld,\"rows\":[", (long long)total);
    for (bool first = true; sqlite3_step(statement) == SQLITE_ROW; first = false) {
        if (!first) fv__bytes_append(out, ",", 1);
        put_row(out, statement, t->type.ncolumns);
    }
    fv__bytes_printf(out, "]}");
    sqlite3_finalize(statement);
    return FV_OK;
}

static fv_status answer_ids(fv_view_table *t, const conditions *w, fv_bytes *out, fv_error *error) {
    static const char *const names[] = { "labels" };
    char                     start[64];
    int64_t                  total;
    if (t->label < 0) return fv_fail(error, FV_ERROR_USAGE, "%s has no column of labels", t->name);
    FV_TRY(count_rows(t, w, &total, error));
    fv_bytes text = { 0 };
    snprintf(start, sizeof start, "SELECT c%d FROM t", t->label);
    fv__bytes_printf(&text, "%s%s LIMIT %d", start, (char *)w->sql.data, MOST_IDS);
    fv__bytes_printf(out, "{\"total\":%lld,", (long long)total);
    fv_status status = put_lists(t, (char *)text.data, w, names, 1, out, error);
    fv__bytes_printf(out, "}");
    fv__bytes_release(&text);
    return status;
}

fv_status fv_view_table_rows(fv_view_table *t, const fv_view_query *q, fv_bytes *out, fv_error *error) {
    conditions  w;
    int64_t     offset, limit;
    const char *ids = fv_view_query_text(q, "ids");
    if (!fv_view_query_integer(q, "offset", 0, INT64_MAX, 0, &offset) ||
        !fv_view_query_integer(q, "limit", 0, MOST_ROWS, 100, &limit))
        return fv_fail(error, FV_ERROR_USAGE, "offset must be a whole number, and limit one from 0 to %d", MOST_ROWS);
    fv_status status = read_conditions(t, q, &w, error);
    pthread_mutex_lock(&t->mutex);
    if (status == FV_OK)
        status = ids && !strcmp(ids, "1") ? answer_ids(t, &w, out, error) : answer_rows(t, q, &w, offset, limit, out, error);
    pthread_mutex_unlock(&t->mutex);
    release(&w);
    return status;
}

/* Rows that come before the one of this number in the order that is asked for; those of which the value is missing come first. */
static fv_status count_before(fv_view_table *t, const conditions *w, int sort, bool down, int64_t row, double *before,
                              fv_error *error) {
    fv_bytes    text = { 0 };
    const char *sign = down ? ">" : "<";
    fv__bytes_printf(&text, "SELECT count(*) FROM t%s %s ", (char *)w->sql.data, w->count ? "AND" : "WHERE");
    if (sort < 0)
        fv__bytes_printf(&text, "rowid %s %lld", sign, (long long)row);
    else {
        fv__bytes_printf(&text, "(ifnull(c%d %s (SELECT c%d FROM t WHERE rowid = %lld), ", sort, sign, sort, (long long)row);
        /* one of the two is missing: which comes first */
        fv__bytes_printf(&text, "c%d IS %s NULL AND (SELECT c%d FROM t WHERE rowid = %lld) IS %s NULL)", sort, down ? "NOT" : "",
                         sort, (long long)row, down ? "" : "NOT");
        fv__bytes_printf(&text, " OR (c%d IS (SELECT c%d FROM t WHERE rowid = %lld) AND rowid %s %lld))", sort, sort,
                         (long long)row, sign, (long long)row);
    }
    fv_status status = ask_number(t, (char *)text.data, w, NULL, 0, before, NULL, error);
    fv__bytes_release(&text);
    return status;
}

/* Whether a row meets the conditions. */
static fv_status is_shown(fv_view_table *t, const conditions *w, int64_t row, bool *shown, fv_error *error) {
    fv_bytes text = { 0 };
    double   count = 0;
    fv__bytes_printf(&text, "SELECT count(*) FROM t%s %s rowid = %lld", (char *)w->sql.data, w->count ? "AND" : "WHERE",
                     (long long)row);
    fv_status status = ask_number(t, (char *)text.data, w, NULL, 0, &count, NULL, error);
    fv__bytes_release(&text);
    *shown = count > 0;
    return status;
}

static fv_status answer_row(fv_view_table *t, const fv_view_query *q, const conditions *w, int64_t label, fv_bytes *out,
                            fv_error *error) {
    char          text[80];
    sqlite3_stmt *statement = NULL;
    int           sort;
    bool          shown;
    double        before = 0;
    if (t->label < 0) return fv_fail(error, FV_ERROR_USAGE, "%s has no column of labels", t->name);
    FV_TRY(find_column(t, q, "sort", false, &sort, error));
    FV_TRY(make_index(t, t->label, error));
    snprintf(text, sizeof text, "SELECT *, rowid FROM t WHERE c%d = ? LIMIT 1", t->label);
    FV_TRY(prepare(t, text, NULL, &(double){ (double)label }, 1, &statement, error));
    bool    found = sqlite3_step(statement) == SQLITE_ROW;
    int64_t row = found ? sqlite3_column_int64(statement, t->type.ncolumns) : 0;
    if (found) {
        fv__bytes_printf(out, "{\"row\":");
        put_row(out, statement, t->type.ncolumns);
    }
    sqlite3_finalize(statement);
    if (!found) return fv_fail(error, FV_ERROR_INPUT, "%s has no row of label %lld", t->name, (long long)label);
    FV_TRY(is_shown(t, w, row, &shown, error));
    if (shown) FV_TRY(count_before(t, w, sort, is_down(q), row, &before, error));
    fv__bytes_printf(out, ",\"index\":%lld}", shown ? (long long)before : -1);
    return FV_OK;
}

fv_status fv_view_table_row(fv_view_table *t, const fv_view_query *q, fv_bytes *out, fv_error *error) {
    conditions w;
    int64_t    label;
    if (!fv_view_query_integer(q, "label", INT64_MIN, INT64_MAX, 0, &label))
        return fv_fail(error, FV_ERROR_USAGE, "label must be a whole number");
    fv_status status = read_conditions(t, q, &w, error);
    pthread_mutex_lock(&t->mutex);
    if (status == FV_OK) status = answer_row(t, q, &w, label, out, error);
    pthread_mutex_unlock(&t->mutex);
    release(&w);
    return status;
}

/* ---------------------------------------------------------------- columns */

static fv_status count_bins(fv_view_table *t, const conditions *w, int c, double low, double high, int64_t *counts, int bins,
                            fv_error *error) {
    fv_bytes      text = { 0 };
    sqlite3_stmt *statement = NULL;
    double        values[] = { low, high > low ? bins / (high - low) : 0 };
    /* The values of the bins are bound behind those of the conditions, so the conditions stand in a query of their own first. */
    fv__bytes_printf(&text,
                     "WITH v(x) AS (SELECT c%d FROM t%s) SELECT CAST((x - ?) * ? AS INTEGER), count(*) FROM v "
                     "WHERE x IS NOT NULL GROUP BY 1",
                     c, (char *)w->sql.data);
    fv_status status = prepare(t, (char *)text.data, w, values, 2, &statement, error);
    fv__bytes_release(&text);
    while (status == FV_OK && sqlite3_step(statement) == SQLITE_ROW) {
        int64_t bin = sqlite3_column_int64(statement, 0);
        counts[FV_MIN(FV_MAX(bin, 0), bins - 1)] += sqlite3_column_int64(statement, 1);
    }
    sqlite3_finalize(statement);
    return status;
}

static fv_status answer_column(fv_view_table *t, const fv_view_query *q, const conditions *w, int bins, fv_bytes *out,
                               fv_error *error) {
    int      c;
    int64_t  counts[MOST_BINS] = { 0 };
    double   edges[2] = { 0, 0 };
    char     number[FV_NUMBER_SIZE];
    fv_bytes text = { 0 };
    FV_TRY(find_column(t, q, "column", true, &c, error));
    if (t->type.column[c].kind == FV_COLUMN_TEXT)
        return fv_fail(error, FV_ERROR_USAGE, "column = %s holds texts: there is no histogram of it", t->type.column[c].name);
    /* The edges are those of the whole column, so that they stay while conditions change. */
    fv__bytes_printf(&text, "SELECT min(c%d), max(c%d) FROM t", c, c);
    fv_status status = ask_number(t, (char *)text.data, NULL, NULL, 0, &edges[0], &edges[1], error);
    fv__bytes_release(&text);
    if (status == FV_OK && isfinite(edges[0]) && isfinite(edges[1]))
        status = count_bins(t, w, c, edges[0], edges[1], counts, bins, error);
    if (status != FV_OK) return status;
    fv__bytes_printf(out, "{\"edges\":[");
    for (int k = 0; k < 2; k++) {
        fv__bytes_printf(out, k ? "," : "");
        fv__bytes_append(out, number, (size_t)fv__real_format(isfinite(edges[k]) ? edges[k] : 0, number));
    }
    fv__bytes_printf(out, "],\"counts\":[");
    for (int b = 0; b < bins; b++) fv__bytes_printf(out, "%s%lld", b ? "," : "", (long long)counts[b]);
    fv__bytes_printf(out, "]}");
    return FV_OK;
}

fv_status fv_view_table_column(fv_view_table *t, const fv_view_query *q, fv_bytes *out, fv_error *error) {
    conditions w;
    int64_t    bins;
    if (!fv_view_query_integer(q, "bins", 1, MOST_BINS, 64, &bins))
        return fv_fail(error, FV_ERROR_USAGE, "bins must be a whole number from 1 to %d", MOST_BINS);
    fv_status status = read_conditions(t, q, &w, error);
    pthread_mutex_lock(&t->mutex);
    if (status == FV_OK) status = answer_column(t, q, &w, (int)bins, out, error);
    pthread_mutex_unlock(&t->mutex);
    release(&w);
    return status;
}

static void put_label(fv_bytes *text, const fv_view_table *t) {
    if (t->label >= 0)
        fv__bytes_printf(text, "c%d", t->label);
    else
        fv__bytes_printf(text, "rowid");
}

/* Points that are too many are thinned: every nth row. */
static fv_status answer_scatter(fv_view_table *t, const fv_view_query *q, const conditions *w, int64_t limit, fv_bytes *out,
                                fv_error *error) {
    static const char *const names[] = { "x", "y", "label" };
    int                      x, y;
    int64_t                  total;
    fv_bytes                 text = { 0 };
    FV_TRY(find_column(t, q, "x", true, &x, error));
    FV_TRY(find_column(t, q, "y", true, &y, error));
    FV_TRY(count_rows(t, w, &total, error));
    fv__bytes_printf(&text, "SELECT c%d, c%d, ", x, y);
    put_label(&text, t);
    fv__bytes_printf(&text, " FROM t%s", (char *)w->sql.data);
    if (total > limit)
        fv__bytes_printf(&text, " %s rowid %% %lld = 0", w->count ? "AND" : "WHERE", (long long)((total + limit - 1) / limit));
    fv__bytes_printf(&text, " LIMIT %lld", (long long)limit);
    fv__bytes_printf(out, "{\"total\":%lld,", (long long)total);
    fv_status status = put_lists(t, (char *)text.data, w, names, 3, out, error);
    fv__bytes_printf(out, "}");
    fv__bytes_release(&text);
    return status;
}

fv_status fv_view_table_scatter(fv_view_table *t, const fv_view_query *q, fv_bytes *out, fv_error *error) {
    conditions w;
    int64_t    limit;
    if (!fv_view_query_integer(q, "limit", 1, MOST_POINTS, MOST_POINTS, &limit))
        return fv_fail(error, FV_ERROR_USAGE, "limit must be a whole number from 1 to %d", MOST_POINTS);
    fv_status status = read_conditions(t, q, &w, error);
    pthread_mutex_lock(&t->mutex);
    if (status == FV_OK) status = answer_scatter(t, q, &w, limit, out, error);
    pthread_mutex_unlock(&t->mutex);
    release(&w);
    return status;
}

fv_status fv_view_table_values(fv_view_table *t, const fv_view_query *q, fv_bytes *out, fv_error *error) {
    static const char *const names[] = { "labels", "values" };
    fv_bytes                 text = { 0 };
    int                      c;
    FV_TRY(find_column(t, q, "column", true, &c, error));
    if (t->label < 0) return fv_fail(error, FV_ERROR_USAGE, "%s has no column of labels", t->name);
    fv__bytes_printf(&text, "SELECT c%d, c%d FROM t LIMIT %d", t->label, c, MOST_IDS);
    pthread_mutex_lock(&t->mutex);
    fv__bytes_printf(out, "{");
    fv_status status = put_lists(t, (char *)text.data, NULL, names, 2, out, error);
    fv__bytes_printf(out, "}");
    pthread_mutex_unlock(&t->mutex);
    fv__bytes_release(&text);
    return status;
}

/* ---------------------------------------------------------------- objects */

bool fv_view_table_box(fv_view_table *t, int64_t label, int64_t low[3], int64_t high[3]) {
    static const char *const columns[3][2] = { { "bbox_min_z", "bbox_max_z" },
                                               { "bbox_min_y", "bbox_max_y" },
                                               { "bbox_min_x", "bbox_max_x" } };
    sqlite3_stmt            *statement = NULL;
    bool                     told = false;
    char                     text[64];
    if (t->label < 0 || fv_view_table_find(t, columns[1][0]) < 0) return false;
    snprintf(text, sizeof text, "SELECT * FROM t WHERE c%d = ? LIMIT 1", t->label);
    pthread_mutex_lock(&t->mutex);
    if (make_index(t, t->label, NULL) == FV_OK &&
        prepare(t, text, NULL, &(double){ (double)label }, 1, &statement, NULL) == FV_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        told = true;
        for (int i = 0; i < 3; i++) {
            int a = fv_view_table_find(t, columns[i][0]), b = fv_view_table_find(t, columns[i][1]);
            low[i] = a < 0 ? 0 : sqlite3_column_int64(statement, a);
            high[i] = b < 0 ? 1 : sqlite3_column_int64(statement, b);
        }
    }
    sqlite3_finalize(statement);
    pthread_mutex_unlock(&t->mutex);
    return told;
}
