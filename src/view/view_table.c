/* Loading of tables that are shown. Rows are copied into a private database, which SQLite keeps in memory while it is small and
 * in a temporary file beyond that; the file itself is not touched again. */
#include "op/table_parts.h"
#include "view/view_table_parts.h"
#include <stdlib.h>

bool fv_view_is_table(const char *path) {
    const fv_table_format *format = fv__table_format_of_file(path);
    return (format && format->open) || fv__table_is_parts(path);
}

int fv_view_table_find(const fv_view_table *t, const char *name) {
    for (int c = 0; name && c < t->type.ncolumns; c++)
        if (!strcasecmp(t->type.column[c].name, name)) return c;
    return -1;
}

static int find_labels(const fv_view_table *t) {
    static const char *const names[] = { "label", "labels", "id" };
    for (int i = 0; i < FV_COUNT(names); i++) {
        int c = fv_view_table_find(t, names[i]);
        if (c >= 0 && t->type.column[c].kind != FV_COLUMN_TEXT) return c;
    }
    return -1;
}

/* ---------------------------------------------------------------- copying */

static fv_status execute(fv_view_table *t, const char *text, fv_error *error) {
    int code = sqlite3_exec(t->database, text, NULL, NULL, NULL);
    if (code == SQLITE_OK) return FV_OK;
    return fv_fail(error, code == SQLITE_FULL ? FV_ERROR_FULL : FV_ERROR_IO, "%s: %s", t->name, sqlite3_errmsg(t->database));
}

static void bind(sqlite3_stmt *statement, int c, fv_column_kind kind, fv_cell cell) {
    if (kind == FV_COLUMN_INTEGER)
        sqlite3_bind_int64(statement, c + 1, cell.integer);
    else if (kind == FV_COLUMN_TEXT)
        sqlite3_bind_text(statement, c + 1, cell.text, -1, SQLITE_STATIC);
    else if (kind == FV_COLUMN_NATURAL)
        sqlite3_bind_int64(statement, c + 1, (int64_t)cell.natural);
    else
        sqlite3_bind_double(statement, c + 1, cell.real); /* NaN becomes NULL */
}

static fv_status copy_rows(fv_view_table *t, fv_table_reader *reader, sqlite3_stmt *statement, fv_error *error) {
    const fv_cell *cells;
    int64_t        nrows;
    for (;;) {
        FV_TRY(reader->source.next(&reader->source, &cells, &nrows, error));
        if (!nrows) return FV_OK;
        for (int64_t r = 0; r < nrows; r++, cells += t->type.ncolumns) {
            for (int c = 0; c < t->type.ncolumns; c++) bind(statement, c, t->type.column[c].kind, cells[c]);
            if (sqlite3_step(statement) != SQLITE_DONE)
                return fv_fail(error, FV_ERROR_IO, "%s: %s", t->name, sqlite3_errmsg(t->database));
            sqlite3_reset(statement);
        }
        t->nrows += nrows;
    }
}

static fv_status copy(fv_view_table *t, fv_table_reader *reader, fv_error *error) {
    static const char *const kinds[] = { "INTEGER", "REAL", "TEXT", "INTEGER" };
    fv_bytes                 create = { 0 }, insert = { 0 };
    sqlite3_stmt            *statement = NULL;
    for (int c = 0; c < t->type.ncolumns; c++) {
        fv__bytes_printf(&create, "%sc%d %s", c ? ", " : "CREATE TABLE t (", c, kinds[t->type.column[c].kind]);
        fv__bytes_printf(&insert, c ? ", ?" : "INSERT INTO t VALUES (?");
    }
    fv__bytes_printf(&create, "); BEGIN");
    fv__bytes_printf(&insert, ")");
    fv_status status =
        t->type.ncolumns ? execute(t, (char *)create.data, error) : fv_fail(error, FV_ERROR_INPUT, "%s has no columns", t->name);
    if (status == FV_OK && sqlite3_prepare_v2(t->database, (char *)insert.data, -1, &statement, NULL) != SQLITE_OK)
        status = fv_fail(error, FV_ERROR_INTERNAL, "%s", sqlite3_errmsg(t->database));
    if (status == FV_OK) status = copy_rows(t, reader, statement, error);
    sqlite3_finalize(statement);
    if (status == FV_OK) status = execute(t, "COMMIT", error);
    fv__bytes_release(&create);
    fv__bytes_release(&insert);
    return status;
}

fv_status fv_view_table_open(const char *path, fv_view_table **table, fv_error *error) {
    const fv_table_format *format = fv__table_is_parts(path) ? &fv_table_of_parts : NULL;
    fv_table_reader       *reader;
    fv_file_id             id;
    *table = NULL;
    FV_TRY(fv__file_identify(path, &id, error));
    if (!format) FV_TRY(fv__table_format_for_reading(path, &format, error));
    if (!format->open) return fv_fail(error, FV_ERROR_USAGE, "%s: tables of the format %s cannot be read", path, format->name);
    FV_TRY(format->open(path, NULL, &reader, error));
    fv_view_table *t = *table = fv__calloc(sizeof *t);
    t->name = fv__path_bare_name(path);
    t->type = reader->type;
    t->type.metadata = NULL;
    t->label = find_labels(t);
    pthread_mutex_init(&t->mutex, NULL);
    fv_status status = FV_OK;
    if (sqlite3_open_v2("", &t->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        status = fv_fail(error, FV_ERROR_MEMORY, "no memory for the table %s", path);
    if (status == FV_OK)
        status = execute(t, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384", error);
    if (status == FV_OK) status = copy(t, reader, error);
    reader->format->close(reader);
    if (status == FV_OK) return FV_OK;
    fv_view_table_free(t);
    *table = NULL;
    return status;
}

void fv_view_table_free(fv_view_table *t) {
    if (!t) return;
    sqlite3_close(t->database);
    pthread_mutex_destroy(&t->mutex);
    free(t->name);
    free(t);
}

/* ---------------------------------------------------------------- what the page is told */

bool fv_view_table_has_labels(const fv_view_table *t) { return t->label >= 0; }

cJSON *fv_view_table_json(const fv_view_table *t, int id, int labels) {
    static const char *const kinds[] = { "integer", "real", "text", "integer" };
    cJSON                   *json = cJSON_CreateObject(), *columns = cJSON_CreateArray();
    for (int c = 0; c < t->type.ncolumns; c++) {
        cJSON *column = cJSON_CreateObject();
        cJSON_AddStringToObject(column, "name", t->type.column[c].name);
        cJSON_AddStringToObject(column, "type", kinds[t->type.column[c].kind]);
        cJSON_AddItemToArray(columns, column);
    }
    cJSON_AddNumberToObject(json, "id", id);
    cJSON_AddStringToObject(json, "name", t->name);
    cJSON_AddNumberToObject(json, "rows", (double)t->nrows);
    cJSON_AddItemToObject(json, "columns", columns);
    cJSON_AddItemToObject(json, "labels", t->label >= 0 && labels >= 0 ? cJSON_CreateNumber(labels) : cJSON_CreateNull());
    cJSON_AddItemToObject(json, "label_column",
                          t->label >= 0 ? cJSON_CreateString(t->type.column[t->label].name) : cJSON_CreateNull());
    return json;
}
