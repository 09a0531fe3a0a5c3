/* SQLite: a table of a database file, written in one transaction.
 *
 * The transaction also stores the result's key in the table _fovea. So a killed run leaves nothing behind, one that is repeated
 * appends nothing twice, and many processes may write at once: each takes the write lock first and waits up to a minute for
 * it. The journal is the default one, never a write-ahead log, because databases lie on shared storage. */
#include "op/format.h"
#include "tables/sqlite_read.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

/* Rows of one statement: setting it up costs as much as several rows do. 16 rows of 256 columns are 4096 values, less than the
 * 32766 that a statement takes. */
enum { PATIENCE_MS = 60000, AT_ONCE = 16 };

#define KEYS                                                                                                                     \
    "CREATE TABLE IF NOT EXISTS _fovea (\"table\" TEXT NOT NULL COLLATE NOCASE, key TEXT NOT NULL, rows INTEGER NOT NULL, "      \
    "PRIMARY KEY (\"table\", key)) WITHOUT ROWID"

typedef struct database {
    sqlite3    *handle;
    const char *path, *table;
} database;

/* ---------------------------------------------------------------- errors and statements */

static fv_status failed(const database *db, fv_error *error) {
    fv_status status = FV_ERROR_IO;
    switch (sqlite3_errcode(db->handle) & 0xff) {
    case SQLITE_FULL: status = FV_ERROR_FULL; break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: status = FV_ERROR_BUSY; break;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT: status = FV_ERROR_INPUT; break;
    case SQLITE_ERROR:
    case SQLITE_TOOBIG:
    case SQLITE_CONSTRAINT: status = FV_ERROR_USAGE; break;
    }
    if (status == FV_ERROR_BUSY)
        return fv_fail(error, status, "%s: another program has kept the database locked for a minute", db->path);
    return fv_fail(error, status, "%s, table %s: %s", db->path, db->table, sqlite3_errmsg(db->handle));
}

/* Runs one statement without results; the text is SQLite's printf format, %w and %Q included. */
static fv_status execute(const database *db, fv_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    int code = text ? sqlite3_exec(db->handle, text, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    return code == SQLITE_OK ? FV_OK : failed(db, error);
}

/* The first value of a query as a number, 0 if it gives no row. */
static fv_status query(const database *db, int64_t *value, fv_error *error, const char *format, ...) {
    sqlite3_stmt *statement = NULL;
    va_list       arguments;
    va_start(arguments, format);
    char *text = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    int code = text ? sqlite3_prepare_v2(db->handle, text, -1, &statement, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    *value = 0;
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    if (code == SQLITE_ROW) *value = sqlite3_column_int64(statement, 0);
    bool good = code == SQLITE_ROW || code == SQLITE_DONE;
    sqlite3_finalize(statement);
    return good ? FV_OK : failed(db, error);
}

/* ---------------------------------------------------------------- the table */

static fv_status create_table(const database *db, const fv_table_type *type, fv_error *error) {
    static const char *const kinds[] = {
        [FV_COLUMN_INTEGER] = "INTEGER", [FV_COLUMN_REAL] = "REAL", [FV_COLUMN_TEXT] = "TEXT", [FV_COLUMN_NATURAL] = "INTEGER"
    };
    fv_bytes columns = { 0 };
    for (int c = 0; c < type->ncolumns; c++) {
        char *column = sqlite3_mprintf("%s\"%w\" %s", c ? ", " : "", type->column[c].name, kinds[type->column[c].kind]);
        fv__bytes_printf(&columns, "%s", column);
        sqlite3_free(column);
    }
    fv_status status = execute(db, error, "CREATE TABLE \"%w\" (%s)", db->table, columns.data ? (char *)columns.data : "");
    fv__bytes_release(&columns);
    return status;
}

/* Old rows and new ones must have the same columns. */
static fv_status check_columns(const database *db, const fv_table_type *type, fv_error *error) {
    sqlite3_stmt *statement = NULL;
    char         *text = sqlite3_mprintf("SELECT * FROM \"%w\"", db->table);
    int           code = sqlite3_prepare_v2(db->handle, text, -1, &statement, NULL);
    sqlite3_free(text);
    if (code != SQLITE_OK) return failed(db, error);
    int       there = sqlite3_column_count(statement);
    fv_status status = FV_OK;
    if (there != type->ncolumns)
        status = fv_fail(error, FV_ERROR_USAGE, "append: table %s of %s has %d columns and the new rows have %d", db->table,
                         db->path, there, type->ncolumns);
    for (int c = 0; c < type->ncolumns && status == FV_OK; c++)
        if (strcmp(sqlite3_column_name(statement, c), type->column[c].name))
            status =
                fv_fail(error, FV_ERROR_USAGE, "append: column %d of table %s of %s is \"%.60s\", and of the new rows \"%s\"",
                        c + 1, db->table, db->path, sqlite3_column_name(statement, c), type->column[c].name);
    sqlite3_finalize(statement);
    return status;
}

/* Leaves a table that rows can be added to; there: this result is in it already. */
static fv_status prepare_table(const database *db, const fv_table_type *type, bool append, const char *key, bool *there,
                               fv_error *error) {
    int64_t exists, known = 0;
    FV_TRY(execute(db, error, "%s", KEYS));
    FV_TRY(query(db, &exists, error, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = %Q COLLATE NOCASE",
                 db->table));
    if (!append || !exists) {
        FV_TRY(execute(db, error, "DELETE FROM _fovea WHERE \"table\" = %Q", db->table));
        FV_TRY(execute(db, error, "DROP TABLE IF EXISTS \"%w\"", db->table));
        FV_TRY(create_table(db, type, error));
    } else {
        FV_TRY(query(db, &known, error, "SELECT count(*) FROM _fovea WHERE \"table\" = %Q AND key = %Q", db->table, key));
        if (!known) FV_TRY(check_columns(db, type, error));
    }
    *there = known > 0;
    return FV_OK;
}

/* ---------------------------------------------------------------- rows */

/* SQLite has no whole numbers from 2^63 on: the nearest real ones take their place. */
static void bind(sqlite3_stmt *statement, int c, fv_column_kind kind, fv_cell cell) {
    bool whole = kind == FV_COLUMN_INTEGER || (kind == FV_COLUMN_NATURAL && cell.natural <= INT64_MAX);
    if (whole)
        sqlite3_bind_int64(statement, c, cell.integer);
    else if (kind == FV_COLUMN_NATURAL)
        sqlite3_bind_double(statement, c, (double)cell.natural);
    else if (kind == FV_COLUMN_REAL)
        sqlite3_bind_double(statement, c, cell.real); /* NaN becomes NULL */
    else
        sqlite3_bind_text(statement, c, cell.text, -1, SQLITE_STATIC); /* NULL too */
}

/* A statement that inserts so many rows. */
static fv_status prepare_insert(const database *db, int ncolumns, int nrows, sqlite3_stmt **statement, fv_error *error) {
    fv_bytes values = { 0 };
    for (int r = 0; r < nrows; r++) {
        for (int c = 0; c < ncolumns; c++) fv__bytes_printf(&values, c ? ", ?" : r ? ", (?" : "(?");
        fv__bytes_printf(&values, ")");
    }
    char *text = sqlite3_mprintf("INSERT INTO \"%w\" VALUES %s", db->table, (char *)values.data);
    int   code = sqlite3_prepare_v2(db->handle, text, -1, statement, NULL);
    sqlite3_free(text);
    fv__bytes_release(&values);
    return code == SQLITE_OK ? FV_OK : failed(db, error);
}

static fv_status insert(const database *db, sqlite3_stmt *statement, const fv_table_type *type, const fv_cell *cells, int nrows,
                        fv_error *error) {
    for (int r = 0, place = 1; r < nrows; r++)
        for (int c = 0; c < type->ncolumns; c++) bind(statement, place++, type->column[c].kind, *cells++);
    if (sqlite3_step(statement) != SQLITE_DONE) return failed(db, error);
    sqlite3_reset(statement);
    return FV_OK;
}

/* many: a statement for AT_ONCE rows; one: for those that are left over of a batch. */
static fv_status insert_rows(const database *db, sqlite3_stmt *many, sqlite3_stmt *one, const fv_table_type *type,
                             fv_table_source *source, int64_t *total, fv_error *error) {
    const fv_cell *cells;
    int64_t        nrows;
    for (*total = 0;; *total += nrows) {
        FV_TRY(source->next(source, &cells, &nrows, error));
        if (!nrows) return FV_OK;
        for (int64_t r = 0, n; r < nrows; r += n, cells += n * type->ncolumns) {
            n = nrows - r >= AT_ONCE ? AT_ONCE : 1;
            FV_TRY(insert(db, n > 1 ? many : one, type, cells, (int)n, error));
        }
        FV_TRY(fv__fault_point("table.rows", error));
    }
}

static fv_status fill_table(const database *db, const fv_table_type *type, const char *key, fv_table_source *source,
                            fv_error *error) {
    sqlite3_stmt *many = NULL, *one = NULL;
    int64_t       total = 0;
    fv_status     status = prepare_insert(db, type->ncolumns, AT_ONCE, &many, error);
    if (status == FV_OK) status = prepare_insert(db, type->ncolumns, 1, &one, error);
    if (status == FV_OK) status = insert_rows(db, many, one, type, source, &total, error);
    sqlite3_finalize(many);
    sqlite3_finalize(one);
    FV_TRY(status);
    return execute(db, error, "INSERT INTO _fovea VALUES (%Q, %Q, %lld)", db->table, key, (long long)total);
}

/* ---------------------------------------------------------------- the format */

/* Waiting for the lock or the disk lends the core to others. */
static fv_status patiently(const database *db, const char *command, fv_error *error) {
    fv__io_enter();
    fv_status status = execute(db, error, "%s", command);
    fv__io_leave();
    return status;
}

static fv_status transact(const database *db, const fv_table_type *type, const fv_table_options *options, fv_table_source *source,
                          fv_error *error) {
    char key[33];
    bool there;
    fv__hash_format(options->key, key);
    FV_TRY(execute(db, error, "PRAGMA cache_size = -8192"));
    FV_TRY(patiently(db, "BEGIN IMMEDIATE", error));
    fv_status status = prepare_table(db, type, options->append, key, &there, error);
    if (status == FV_OK && !there) status = fill_table(db, type, key, source, error);
    if (status == FV_OK) status = fv__fault_point("table.commit", error);
    if (status == FV_OK) status = patiently(db, "COMMIT", error);
    if (status != FV_OK && !sqlite3_get_autocommit(db->handle)) sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static fv_status sqlite_write(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                              fv_table_source *source, fv_error *error) {
    (void)existing;
    char     stem[256];
    database db = { .path = path, .table = options->table };
    if (!db.table || !*db.table) {
        fv__path_stem(path, stem, sizeof stem);
        db.table = stem;
    }
    if (!strcmp(db.table, "_fovea") || !sqlite3_strnicmp(db.table, "sqlite_", 7))
        return fv_fail(error, FV_ERROR_USAGE, "table = \"%s\": this name is reserved", db.table);
    if (sqlite3_open_v2(path, &db.handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        fv_fail(error, FV_ERROR_IO, "cannot open the database %s: %s", path, sqlite3_errmsg(db.handle));
        sqlite3_close(db.handle);
        return FV_ERROR_IO;
    }
    sqlite3_busy_timeout(db.handle, PATIENCE_MS);
    fv_status status = transact(&db, type, options, source, error);
    sqlite3_close(db.handle);
    if (status != FV_OK) fv__sqlite_settle(path);
    return status;
}

const fv_table_format fv_table_sqlite = {
    .name = "sqlite",
    .extensions = "db sqlite sqlite3",
    .brief = "tables of an SQLite database",
    .magic = { 16, "SQLite format 3" },
    .in_place = true,
    .write = sqlite_write,
    .open = fv__sqlite_open,
    .close = fv__sqlite_close,
    .tables = fv__sqlite_tables,
};
