/* SQL on table files. SQLite's engine does the work: databases are attached read-only, other files are copied into a private
 * database that SQLite keeps in memory while it is small and in a temporary file beyond that, unless the first query goes through
 * their rows once. */
#include "api/sql_parts.h"
#include "base/number.h"
#include "op/format.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* The user's statement reads tables and calls functions; it attaches nothing and sets nothing. */
static int guard(void *context, int action, const char *a, const char *b, const char *database, const char *view) {
    const fv_sql *sql = context;
    (void)a, (void)b, (void)database, (void)view;
    if (!sql->guarded) return SQLITE_OK;
    return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION || action == SQLITE_RECURSIVE
               ? SQLITE_OK
               : SQLITE_DENY;
}

fv_sql *fv_sql_new(void) {
    fv_sql *sql = fv__calloc(sizeof *sql);
    if (sqlite3_open_v2("", &sql->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, NULL) != SQLITE_OK)
        abort(); /* no file is touched: only memory can be missing */
    sqlite3_busy_timeout(sql->handle, 60000);
    sqlite3_create_module(sql->handle, "fovea_rows", &fv__sql_rows, sql);
    sqlite3_set_authorizer(sql->handle, guard, sql);
    return sql;
}

static void free_file(fv_sql_file *file) {
    if (file->reader) file->format->close(file->reader);
    free(file->path);
    free(file->table);
    free(file->name);
    free(file->columns);
    free(file);
}

void fv_sql_free(fv_sql *sql) {
    if (!sql) return;
    sqlite3_finalize(sql->statement);
    for (int i = 0; i < sql->nblocks; i++) {
        sqlite3_finalize(sql->blocks[i].insert);
        sql->blocks[i].format->close(sql->blocks[i].reader);
        free(sql->blocks[i].name);
    }
    free(sql->blocks);
    sqlite3_close(sql->handle);
    for (int i = 0; i < sql->nfiles; i++) free_file(sql->files[i]);
    free(sql->files);
    fv__bytes_release(&sql->text);
    fv__bytes_release(&sql->only);
    free(sql);
}

fv_status fv__sql_execute(fv_sql *sql, const char *path, char *text_take, fv_error *error) {
    int code = text_take ? sqlite3_exec(sql->handle, text_take, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(text_take);
    if (code == SQLITE_OK) return FV_OK;
    return fv_fail(error, code == SQLITE_FULL ? FV_ERROR_FULL : FV_ERROR_INPUT, "%s: %s", path, sqlite3_errmsg(sql->handle));
}

/* ---------------------------------------------------------------- files that are copied */

/* As CREATE TABLE has them. The caller frees. */
static char *columns_of(const fv_table_reader *reader) {
    static const char *const kinds[] = { [FV_COLUMN_INTEGER] = "INTEGER", [FV_COLUMN_REAL] = "REAL", [FV_COLUMN_TEXT] = "TEXT" };
    fv_bytes                 columns = { 0 };
    for (int c = 0; c < reader->type.ncolumns; c++) {
        char *column =
            sqlite3_mprintf("%s\"%w\" %s", c ? ", " : "", reader->type.column[c].name, kinds[reader->type.column[c].kind]);
        fv__bytes_printf(&columns, "%s", column);
        sqlite3_free(column);
    }
    return (char *)columns.data;
}

static fv_status create(fv_sql *sql, const char *name, const fv_table_reader *reader, fv_error *error) {
    char     *columns = columns_of(reader);
    fv_status status = fv__sql_execute(sql, reader->path, sqlite3_mprintf("CREATE TABLE main.\"%w\" (%s)", name, columns), error);
    free(columns);
    return status;
}

static fv_status insert(fv_sql *sql, sqlite3_stmt *statement, fv_table_reader *reader, fv_error *error) {
    const fv_cell *cells;
    int64_t        nrows;
    for (;;) {
        FV_TRY(reader->source.next(&reader->source, &cells, &nrows, error));
        if (!nrows) return FV_OK;
        for (int64_t r = 0; r < nrows; r++, cells += reader->type.ncolumns) {
            for (int c = 0; c < reader->type.ncolumns; c++)
                if (reader->type.column[c].kind == FV_COLUMN_INTEGER)
                    sqlite3_bind_int64(statement, c + 1, cells[c].integer);
                else if (reader->type.column[c].kind == FV_COLUMN_REAL)
                    sqlite3_bind_double(statement, c + 1, cells[c].real);
                else
                    sqlite3_bind_text(statement, c + 1, cells[c].text, -1, SQLITE_STATIC);
            if (sqlite3_step(statement) != SQLITE_DONE)
                return fv_fail(error, FV_ERROR_IO, "%s: %s", reader->path, sqlite3_errmsg(sql->handle));
            sqlite3_reset(statement);
        }
    }
}

/* An empty table, and the statement that puts a row into it. */
static fv_status begin_table(fv_sql *sql, const char *name, const fv_table_reader *reader, sqlite3_stmt **statement,
                             fv_error *error) {
    fv_bytes marks = { 0 };
    FV_TRY(create(sql, name, reader, error));
    for (int c = 0; c < reader->type.ncolumns; c++) fv__bytes_printf(&marks, c ? ", ?" : "?");
    char *text = sqlite3_mprintf("INSERT INTO main.\"%w\" VALUES (%s)", name, (char *)marks.data);
    int   code = sqlite3_prepare_v2(sql->handle, text, -1, statement, NULL);
    sqlite3_free(text);
    fv__bytes_release(&marks);
    return code == SQLITE_OK ? FV_OK : fv_fail(error, FV_ERROR_INTERNAL, "%s", sqlite3_errmsg(sql->handle));
}

static fv_status insert_all(fv_sql *sql, sqlite3_stmt *statement, fv_table_reader *reader, fv_error *error) {
    FV_TRY(fv__sql_execute(sql, reader->path, sqlite3_mprintf("BEGIN"), error));
    fv_status status = insert(sql, statement, reader, error);
    if (status == FV_OK) return fv__sql_execute(sql, reader->path, sqlite3_mprintf("COMMIT"), error);
    sqlite3_reset(statement);
    sqlite3_exec(sql->handle, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static fv_status copy_rows(fv_sql *sql, const char *name, fv_table_reader *reader, fv_error *error) {
    sqlite3_stmt *statement = NULL;
    fv_status     status = begin_table(sql, name, reader, &statement, error);
    if (status == FV_OK) status = insert_all(sql, statement, reader, error);
    sqlite3_finalize(statement);
    return status;
}

/* In place of the virtual table. */
static fv_status copy(fv_sql *sql, fv_sql_file *file, fv_error *error) {
    if (!file->reader) FV_TRY(file->format->open(file->path, file->table, &file->reader, error));
    fv_status status = fv__sql_execute(sql, file->path, sqlite3_mprintf("DROP TABLE main.\"%w\"", file->name), error);
    return status == FV_OK ? copy_rows(sql, file->name, file->reader, error) : status;
}

fv_status fv__sql_copy_files(fv_sql *sql, fv_error *error) {
    fv_status status = FV_OK;
    sqlite3_finalize(sql->statement);
    sql->statement = NULL;
    sql->guarded = false;
    for (int i = 0; i < sql->nfiles && status == FV_OK; i++) status = copy(sql, sql->files[i], error);
    for (int i = 0; i < sql->nfiles; i++) free_file(sql->files[i]);
    sql->nfiles = 0;
    return status;
}

/* table: NULL: the only one of the file, or its first. */
static fv_status add(fv_sql *sql, const fv_table_format *format, const char *path, const char *table, const char *name,
                     fv_error *error) {
    fv_table_reader *reader;
    FV_TRY(format->open(path, table, &reader, error));
    fv_sql_file *file = fv__alloc(sizeof *file);
    *file = (fv_sql_file){ .format = format,
                           .path = fv__strdup(path),
                           .table = table ? fv__strdup(table) : NULL,
                           .name = fv__strdup(name),
                           .columns = columns_of(reader),
                           .nrows = reader->nrows,
                           .reader = reader };
    sql->files = fv__realloc(sql->files, (size_t)(sql->nfiles + 1) * sizeof(fv_sql_file *));
    sql->files[sql->nfiles] = file;
    fv_status status = fv__sql_execute(
        sql, path, sqlite3_mprintf("CREATE VIRTUAL TABLE main.\"%w\" USING fovea_rows(%d)", name, sql->nfiles), error);
    if (status == FV_OK)
        sql->nfiles++;
    else
        free_file(file);
    return status;
}

/* Of a file with several tables also each by its own name, but for those that cannot be read. */
static fv_status add_all(fv_sql *sql, const fv_table_format *format, const char *path, const char *stem, fv_error *error) {
    fv_bytes  names = { 0 };
    fv_status status = format->tables ? format->tables(path, &names, error) : FV_OK;
    fv_status first = status == FV_OK ? add(sql, format, path, NULL, stem, error) : status;
    bool      any = first == FV_OK;
    for (size_t at = 0; at < names.size && (first == FV_OK || first == FV_ERROR_INPUT);
         at += strlen((char *)names.data + at) + 1) {
        const char *name = (char *)names.data + at;
        if (sqlite3_stricmp(name, stem)) any = add(sql, format, path, name, name, NULL) == FV_OK || any;
    }
    fv__bytes_release(&names);
    return any ? FV_OK : first;
}

/* ---------------------------------------------------------------- files that are read block by block */

fv_status fv__sql_load_block(fv_sql *sql, const fv_sql_blocks *b, int64_t block, fv_error *error) {
    bool guarded = sql->guarded;
    sql->guarded = false;
    fv_status status = fv__sql_execute(sql, b->reader->path, sqlite3_mprintf("DELETE FROM main.\"%w\"", b->name), error);
    if (status == FV_OK) status = b->format->seek(b->reader, block, error);
    if (status == FV_OK) status = insert_all(sql, b->insert, b->reader, error);
    sql->guarded = guarded;
    return status;
}

fv_status fv_sql_add_sampled(fv_sql *sql, const char *path, fv_error *error) {
    enum { LEAST_BLOCKS = 32 }; /* of fewer, a sample would be nearly all of them */
    const fv_table_format *format;
    fv_sql_blocks          made = { 0 };
    fv_file_id             id;
    char                   stem[256];
    FV_TRY(fv__file_identify(path, &id, error));
    FV_TRY(fv__table_format_for_reading(path, &format, error));
    if (!format->open_blocks) return fv_sql_add(sql, path, error);
    FV_TRY(format->open_blocks(path, &made.reader, error));
    if (made.reader->nblocks < LEAST_BLOCKS) {
        format->close(made.reader);
        return fv_sql_add(sql, path, error);
    }
    fv__path_stem(path, stem, sizeof stem);
    sql->guarded = false;
    made.format = format;
    made.name = fv__strdup(stem);
    sql->blocks = fv__realloc(sql->blocks, (size_t)(sql->nblocks + 1) * sizeof *sql->blocks);
    fv_status status = begin_table(sql, stem, made.reader, &made.insert, error);
    sql->blocks[sql->nblocks++] = made;
    return status;
}

/* ---------------------------------------------------------------- databases */

/* A path as SQLite's URI, which is the way to attach it read-only. */
static void put_uri(fv_bytes *out, const char *path) {
    fv__bytes_printf(out, "file:");
    for (; *path; path++)
        if (isalnum((unsigned char)*path) || strchr("/._-~", *path))
            fv__bytes_append(out, path, 1);
        else
            fv__bytes_printf(out, "%%%02X", (unsigned char)*path);
    fv__bytes_printf(out, "?mode=ro");
}

/* The file's stem names its only table too, unless it has another name already that is the stem. */
static fv_status name_only_table(fv_sql *sql, const fv_bytes *names, const char *path, const char *stem, fv_error *error) {
    const char *first = (char *)names->data;
    if (!names->size || strlen(first) + 1 != names->size || !sqlite3_stricmp(first, stem)) return FV_OK;
    fv__bytes_printf(&sql->only, "%s", stem);
    fv__bytes_append(&sql->only, "", 1);
    fv__bytes_printf(&sql->only, "%s", first);
    fv__bytes_append(&sql->only, "", 1);
    char *text = sqlite3_mprintf("CREATE TEMP VIEW \"%w\" AS SELECT * FROM \"%w\".\"%w\"", stem, stem, first);
    return fv__sql_execute(sql, path, text, error);
}

static fv_status attach(fv_sql *sql, const fv_table_format *format, const char *path, const char *stem, fv_error *error) {
    fv_bytes  uri = { 0 }, names = { 0 };
    fv_status status = format->tables(path, &names, error); /* first: it also takes back what a killed writer began */
    put_uri(&uri, path);
    char *schema = sqlite3_mprintf("%Q", (char *)uri.data);
    if (status == FV_OK) status = fv__sql_execute(sql, path, sqlite3_mprintf("ATTACH %s AS \"%w\"", schema, stem), error);
    sqlite3_free(schema);
    fv__bytes_release(&uri);
    if (status == FV_OK) status = name_only_table(sql, &names, path, stem, error);
    fv__bytes_release(&names);
    return status;
}

fv_status fv_sql_add(fv_sql *sql, const char *path, fv_error *error) {
    const fv_table_format *format;
    fv_file_id             id;
    char                   stem[256];
    FV_TRY(fv__file_identify(path, &id, error));
    FV_TRY(fv__table_format_for_reading(path, &format, error));
    fv__path_stem(path, stem, sizeof stem);
    sql->guarded = false;
    return format->in_place ? attach(sql, format, path, stem, error) : add_all(sql, format, path, stem, error);
}

/* ---------------------------------------------------------------- queries */

/* Whether SQLite goes through one table alone, and once; also where it does not understand the query. */
static bool goes_once(fv_sql *sql, const char *text) {
    sqlite3_stmt *plan = NULL;
    char         *question = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", text);
    int           tables = 0;
    bool          again = false;
    sql->guarded = false;
    sqlite3_prepare_v2(sql->handle, question, -1, &plan, NULL);
    sqlite3_free(question);
    while (plan && sqlite3_step(plan) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(plan, 3);
        again = again || !sqlite3_strlike("%CORRELATED%", step, 0);
        tables += !strncmp(step, "SCAN ", 5) || !strncmp(step, "SEARCH ", 7);
    }
    sqlite3_finalize(plan);
    return !again && tables <= 1;
}

fv_status fv_sql_query(fv_sql *sql, const char *text, fv_error *error) {
    const char *rest = NULL;
    if (sql->nfiles && (sql->asked || !goes_once(sql, text))) FV_TRY(fv__sql_copy_files(sql, error));
    sql->asked = true;
    sqlite3_finalize(sql->statement);
    sql->statement = NULL;
    sql->guarded = true;
    int code = sqlite3_prepare_v2(sql->handle, text, -1, &sql->statement, &rest);
    if (code == SQLITE_AUTH || (code == SQLITE_OK && sql->statement && !sqlite3_column_count(sql->statement)))
        return fv_fail(error, FV_ERROR_USAGE, "only statements that read are possible (SELECT, WITH, VALUES): %.200s", text);
    if (code != SQLITE_OK) return fv_fail(error, FV_ERROR_USAGE, "%s", sqlite3_errmsg(sql->handle));
    if (!sql->statement) return fv_fail(error, FV_ERROR_USAGE, "the query is empty; write SELECT ... FROM ...");
    if (rest[strspn(rest, " \t\r\n;")])
        return fv_fail(error, FV_ERROR_USAGE, "one statement at a time; behind it stands: %.80s", rest);
    return FV_OK;
}

int         fv_sql_columns(const fv_sql *sql) { return sqlite3_column_count(sql->statement); }
const char *fv_sql_column(const fv_sql *sql, int column) { return sqlite3_column_name(sql->statement, column); }

fv_status fv_sql_next(fv_sql *sql, bool *row, fv_error *error) {
    int code = sqlite3_step(sql->statement);
    *row = code == SQLITE_ROW;
    if (code == SQLITE_ROW || code == SQLITE_DONE) return FV_OK;
    return fv_fail(error, code == SQLITE_FULL ? FV_ERROR_FULL : FV_ERROR_INPUT, "%s", sqlite3_errmsg(sql->handle));
}

fv_sql_kind fv_sql_value(const fv_sql *sql, int column) {
    switch (sqlite3_column_type(sql->statement, column)) {
    case SQLITE_NULL: return FV_SQL_MISSING;
    case SQLITE_INTEGER: return FV_SQL_INTEGER;
    case SQLITE_FLOAT: return FV_SQL_REAL;
    default: return FV_SQL_TEXT;
    }
}

int64_t fv_sql_integer(const fv_sql *sql, int column) { return sqlite3_column_int64(sql->statement, column); }
double  fv_sql_real(const fv_sql *sql, int column) { return sqlite3_column_double(sql->statement, column); }

const char *fv_sql_text(fv_sql *sql, int column) {
    char number[FV_NUMBER_SIZE];
    fv__bytes_clear(&sql->text);
    switch (sqlite3_column_type(sql->statement, column)) {
    case SQLITE_NULL: break;
    case SQLITE_INTEGER: fv__bytes_printf(&sql->text, "%lld", (long long)fv_sql_integer(sql, column)); break;
    case SQLITE_FLOAT: fv__bytes_append(&sql->text, number, (size_t)fv__real_format(fv_sql_real(sql, column), number)); break;
    case SQLITE_BLOB: {
        const uint8_t *bytes = sqlite3_column_blob(sql->statement, column);
        for (int i = 0, n = sqlite3_column_bytes(sql->statement, column); i < n; i++)
            fv__bytes_printf(&sql->text, "%02x", bytes[i]);
        break;
    }
    default: fv__bytes_printf(&sql->text, "%s", (const char *)sqlite3_column_text(sql->statement, column));
    }
    fv__bytes_append(&sql->text, "", 1);
    return (const char *)sql->text.data;
}
