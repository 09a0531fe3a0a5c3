/* Table files whose rows are read while a query goes through them, as virtual tables of SQLite: nothing is copied. */
#include "api/sql_parts.h"
#include "op/format.h"
#include <stdlib.h>

typedef struct rows_table {
    sqlite3_vtab base;
    fv_sql_file *file;
} rows_table;

typedef struct rows_cursor {
    sqlite3_vtab_cursor base;
    fv_table_reader    *reader;
    const fv_cell      *cells; /* of the current row */
    int64_t             left;  /* rows of this batch, with the current one */
    int64_t             number;
} rows_cursor;

static int failed(sqlite3_vtab *table, const fv_error *error) {
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_mprintf("%s", error->message);
    return SQLITE_ERROR;
}

static int connect(sqlite3 *handle, void *context, int nwords, const char *const *words, sqlite3_vtab **out, char **why) {
    fv_sql      *sql = context;
    fv_sql_file *file = sql->files[atoi(words[3])];
    rows_table  *table = sqlite3_malloc(sizeof *table);
    (void)nwords, (void)why;
    if (!table) return SQLITE_NOMEM;
    *table = (rows_table){ .file = file };
    char *text = sqlite3_mprintf("CREATE TABLE rows (%s)", file->columns);
    int   code = text ? sqlite3_declare_vtab(handle, text) : SQLITE_NOMEM;
    sqlite3_free(text);
    if (code == SQLITE_OK)
        *out = &table->base;
    else
        sqlite3_free(table);
    return code;
}

/* A function of its own: were it connect itself, SQLite would take the module's name for a table without a file. */
static int create(sqlite3 *handle, void *context, int nwords, const char *const *words, sqlite3_vtab **out, char **why) {
    return connect(handle, context, nwords, words, out, why);
}

static int disconnect(sqlite3_vtab *table) {
    sqlite3_free(table);
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *table, sqlite3_index_info *info) {
    info->estimatedRows = FV_MAX(((rows_table *)table)->file->nrows, 1);
    info->estimatedCost = (double)info->estimatedRows;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out) {
    rows_cursor *cursor = sqlite3_malloc(sizeof *cursor);
    (void)table;
    if (!cursor) return SQLITE_NOMEM;
    *cursor = (rows_cursor){ 0 };
    *out = &cursor->base;
    return SQLITE_OK;
}

static void end_reading(rows_cursor *cursor, const fv_sql_file *file) {
    if (cursor->reader) file->format->close(cursor->reader);
    cursor->reader = NULL;
}

static int close_cursor(sqlite3_vtab_cursor *cursor) {
    end_reading((rows_cursor *)cursor, ((rows_table *)cursor->pVtab)->file);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base) {
    rows_cursor *cursor = (rows_cursor *)base;
    fv_error     error = { 0 };
    cursor->number++;
    cursor->cells += cursor->reader->type.ncolumns;
    if (--cursor->left > 0) return SQLITE_OK;
    if (cursor->reader->source.next(&cursor->reader->source, &cursor->cells, &cursor->left, &error) == FV_OK) return SQLITE_OK;
    return failed(base->pVtab, &error);
}

/* The reader that was opened to learn of the columns serves the first time. */
static int begin_rows(sqlite3_vtab_cursor *base, int number, const char *text, int nvalues, sqlite3_value **values) {
    rows_cursor *cursor = (rows_cursor *)base;
    fv_sql_file *file = ((rows_table *)base->pVtab)->file;
    fv_error     error = { 0 };
    (void)number, (void)text, (void)nvalues, (void)values;
    end_reading(cursor, file);
    cursor->reader = file->reader;
    file->reader = NULL;
    if (!cursor->reader && file->format->open(file->path, file->table, &cursor->reader, &error) != FV_OK) {
        cursor->reader = NULL;
        return failed(base->pVtab, &error);
    }
    cursor->number = cursor->left = 0;
    cursor->cells = NULL;
    if (cursor->reader->source.next(&cursor->reader->source, &cursor->cells, &cursor->left, &error) != FV_OK)
        return failed(base->pVtab, &error);
    cursor->number = 1;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *cursor) { return ((rows_cursor *)cursor)->left <= 0; }

static int put_cell(sqlite3_vtab_cursor *base, sqlite3_context *to, int c) {
    const rows_cursor *cursor = (const rows_cursor *)base;
    switch (cursor->reader->type.column[c].kind) {
    case FV_COLUMN_INTEGER: sqlite3_result_int64(to, cursor->cells[c].integer); break;
    case FV_COLUMN_REAL: sqlite3_result_double(to, cursor->cells[c].real); break;
    default: sqlite3_result_text(to, cursor->cells[c].text, -1, SQLITE_TRANSIENT);
    }
    return SQLITE_OK;
}

static int put_number(sqlite3_vtab_cursor *cursor, sqlite3_int64 *number) {
    *number = ((rows_cursor *)cursor)->number;
    return SQLITE_OK;
}

const sqlite3_module fv__sql_rows = { .iVersion = 1,
                                      .xCreate = create,
                                      .xConnect = connect,
                                      .xBestIndex = best_index,
                                      .xDisconnect = disconnect,
                                      .xDestroy = disconnect,
                                      .xOpen = open_cursor,
                                      .xClose = close_cursor,
                                      .xFilter = begin_rows,
                                      .xNext = next_row,
                                      .xEof = at_end,
                                      .xColumn = put_cell,
                                      .xRowid = put_number };
