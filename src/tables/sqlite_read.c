/* A table or view of an SQLite database, read in order. SQLite's values have types and its columns have none, so a first query
 * finds what each column holds; whole numbers among which some are missing become real ones. */
#include "tables/sqlite_read.h"
#include "base/remote.h"
#include "tables/typed_rows.h"
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

extern const fv_table_format fv_table_sqlite;
enum { PATIENCE_MS = 60000 };

/* For sqlite3_mprintf. */
#define TABLES "FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%%' ESCAPE '!' AND name != '_fovea'"

typedef struct {
    fv_table_reader base;
    sqlite3        *handle;
    sqlite3_stmt   *statement;
    char           *table;
    bool            ended;
    fv_batch        batch;
} reader;

static fv_status failed(const reader *r, fv_error *error) {
    int       code = sqlite3_errcode(r->handle) & 0xff;
    fv_status status = code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR ? FV_ERROR_INPUT : FV_ERROR_IO;
    return fv_fail(error, status, "%s: %s", r->base.path, sqlite3_errmsg(r->handle));
}

static fv_status prepare(reader *r, sqlite3_stmt **statement, char *text_take, fv_error *error) {
    int code = text_take ? sqlite3_prepare_v2(r->handle, text_take, -1, statement, NULL) : SQLITE_NOMEM;
    sqlite3_free(text_take);
    return code == SQLITE_OK ? FV_OK : failed(r, error);
}

/* ---------------------------------------------------------------- which table */

/* Names of all tables and views, each ended by NUL, in order. */
static fv_status list_tables(reader *r, fv_bytes *names, fv_error *error) {
    sqlite3_stmt *statement = NULL;
    int           code;
    FV_TRY(prepare(r, &statement, sqlite3_mprintf("SELECT name " TABLES " ORDER BY name"), error));
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        fv__bytes_append(names, name, strlen(name) + 1);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? FV_OK : failed(r, error);
}

/* The one asked for; else the one named as the file; else the only one. */
static fv_status choose_table(reader *r, const char *asked, fv_error *error) {
    char        stem[256];
    fv_bytes    names = { 0 }, shown = { 0 };
    const char *found = NULL;
    int         count = 0;
    bool        given = asked && *asked;
    FV_TRY(list_tables(r, &names, error));
    fv__path_stem(r->base.path, stem, sizeof stem);
    for (size_t at = 0; at < names.size; at += strlen((char *)names.data + at) + 1) {
        const char *name = (char *)names.data + at;
        if (!sqlite3_stricmp(name, given ? asked : stem)) found = name;
        fv__bytes_printf(&shown, "%s%s", count++ ? ", " : "", name);
    }
    if (!found && count == 1 && !given) found = (char *)names.data;
    fv_status status = FV_OK;
    if (found)
        r->table = fv__strdup(found);
    else if (!count)
        status = fv_fail(error, FV_ERROR_INPUT, "%s holds no table", r->base.path);
    else if (given)
        status = fv_fail(error, FV_ERROR_USAGE, "%s has no table \"%s\"; it has %s", r->base.path, asked, (char *)shown.data);
    else
        status =
            fv_fail(error, FV_ERROR_USAGE, "%s holds several tables, name one of them: %s", r->base.path, (char *)shown.data);
    fv__bytes_release(&names);
    fv__bytes_release(&shown);
    return status;
}

/* ---------------------------------------------------------------- what the columns hold */

static fv_status find_columns(reader *r, fv_error *error) {
    FV_TRY(prepare(r, &r->statement, sqlite3_mprintf("SELECT * FROM \"%w\"", r->table), error));
    for (int c = 0; c < sqlite3_column_count(r->statement); c++)
        FV_TRY(fv__table_add_column(&r->base.type, sqlite3_column_name(r->statement, c), r->base.path, error));
    return FV_OK;
}

static fv_status find_kinds(reader *r, fv_error *error) {
    sqlite3_stmt *statement = NULL;
    fv_bytes      text = { 0 };
    fv__bytes_printf(&text, "SELECT count(*)");
    for (int c = 0; c < r->base.type.ncolumns; c++) {
        char *part = sqlite3_mprintf(", total(typeof(\"%w\") IN ('text', 'blob')), total(typeof(\"%w\") = 'integer')",
                                     sqlite3_column_name(r->statement, c), sqlite3_column_name(r->statement, c));
        fv__bytes_printf(&text, "%s", part);
        sqlite3_free(part);
    }
    fv_status status = prepare(r, &statement, sqlite3_mprintf("%s FROM \"%w\"", (char *)text.data, r->table), error);
    fv__bytes_release(&text);
    FV_TRY(status);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        r->base.nrows = sqlite3_column_int64(statement, 0);
        for (int c = 0; c < r->base.type.ncolumns; c++) {
            int64_t texts = sqlite3_column_int64(statement, 1 + 2 * c), integers = sqlite3_column_int64(statement, 2 + 2 * c);
            r->base.type.column[c].kind = texts                                        ? FV_COLUMN_TEXT
                                          : r->base.nrows && integers == r->base.nrows ? FV_COLUMN_INTEGER
                                                                                       : FV_COLUMN_REAL;
        }
    } else
        status = failed(r, error);
    sqlite3_finalize(statement);
    return status;
}

/* ---------------------------------------------------------------- rows */

static void take_value(reader *r, int c) {
    fv_cell cell = { .integer = -1 };
    bool    missing = sqlite3_column_type(r->statement, c) == SQLITE_NULL;
    switch (r->base.type.column[c].kind) {
    case FV_COLUMN_NATURAL: /* read as an integer or a real number */
    case FV_COLUMN_INTEGER: cell.integer = sqlite3_column_int64(r->statement, c); break;
    case FV_COLUMN_REAL: cell.real = missing ? NAN : sqlite3_column_double(r->statement, c); break;
    case FV_COLUMN_TEXT: {
        const char *text = missing ? NULL : (const char *)sqlite3_column_text(r->statement, c);
        if (text) {
            cell.integer = (int64_t)r->batch.text.size;
            fv__bytes_append(&r->batch.text, text, strlen(text) + 1);
        }
    }
    }
    fv__bytes_append(&r->batch.cells, &cell, sizeof cell);
}

static fv_status next_rows(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    reader *r = (reader *)source;
    fv__batch_clear(&r->batch);
    while (!r->ended && !fv__batch_full(&r->batch)) {
        int code = sqlite3_step(r->statement);
        r->ended = code == SQLITE_DONE;
        if (r->ended) break;
        if (code != SQLITE_ROW) return failed(r, error);
        for (int c = 0; c < r->base.type.ncolumns; c++) take_value(r, c);
        fv__batch_end_row(&r->batch);
    }
    *nrows = r->batch.nrows;
    *cells = fv__batch_finish(&r->batch, &r->base.type);
    return FV_OK;
}

/* ---------------------------------------------------------------- opening */

void fv__sqlite_close(fv_table_reader *base) {
    reader *r = (reader *)base;
    sqlite3_finalize(r->statement);
    sqlite3_close(r->handle);
    fv__batch_release(&r->batch);
    free(r->table);
    free(base->path);
    free(r);
}

/* Looking at a database of which a writer was killed, or ran out of disk, takes back what it began; only who may write can. */
void fv__sqlite_settle(const char *path) {
    char    *journal = fv__sprintf("%s-journal", path);
    sqlite3 *handle = NULL;
    if (fv__file_exists(journal) && sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(handle, PATIENCE_MS);
        sqlite3_exec(handle, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
    }
    sqlite3_close(handle);
    free(journal);
}

static fv_status open_database(const char *path, reader **out, fv_error *error) {
    fv_file_id id;
    FV_TRY(fv__file_identify(path, &id, error));
    if (fv__is_remote(path)) return fv__remote_refuse(path, "SQLite", error);
    if (fv__path_is_folder(path)) return fv_fail(error, FV_ERROR_INPUT, "cannot read %s: it is a folder", path);
    reader *r = fv__calloc(sizeof *r);
    r->base = (fv_table_reader){ .source.next = next_rows, .format = &fv_table_sqlite, .path = fv__strdup(path) };
    *out = r;
    fv__sqlite_settle(path);
    if (sqlite3_open_v2(path, &r->handle, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        fv_status status = failed(r, error);
        fv__sqlite_close(&r->base);
        return status;
    }
    sqlite3_busy_timeout(r->handle, PATIENCE_MS);
    return FV_OK;
}

fv_status fv__sqlite_open(const char *path, const char *table, fv_table_reader **out, fv_error *error) {
    reader *r = NULL;
    FV_TRY(open_database(path, &r, error));
    fv_status status = choose_table(r, table, error);
    if (status == FV_OK) status = find_columns(r, error);
    if (status == FV_OK) status = find_kinds(r, error);
    if (status != FV_OK)
        fv__sqlite_close(&r->base);
    else
        *out = &r->base;
    return status;
}

fv_status fv__sqlite_tables(const char *path, fv_bytes *names, fv_error *error) {
    reader *r = NULL;
    FV_TRY(open_database(path, &r, error));
    fv_status status = list_tables(r, names, error);
    fv__sqlite_close(&r->base);
    return status;
}
