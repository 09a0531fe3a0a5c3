/* SQLite tables: content, appending once, many writers, death in the middle. */
#include "tables/rows.h"
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *file(const char *name) {
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

static fv_status write_rows(const char *path, const char *table, const fv_table_type *type, rows_source source, bool append,
                            uint64_t key, fv_error *error) {
    fv_table_options options = { .table = table, .append = append, .key = { key, key } };
    return fv__table_format_for(path)->write(path, path, type, &options, &source.base, error);
}

static fv_status put_pattern(const char *path, int64_t first, int64_t n, bool append, uint64_t key, fv_error *error) {
    fv_cell  *cells = rows_pattern(first, n);
    fv_status status = write_rows(path, "t", &pattern_type, rows_of(cells, 2, n, 1000), append, key, error);
    free(cells);
    return status;
}

/* First value of a query as text, "(null)" for NULL, "(error)" if it fails. */
static const char *ask(const char *path, const char *query) {
    static char   answer[300];
    sqlite3      *db = NULL;
    sqlite3_stmt *statement = NULL;
    snprintf(answer, sizeof answer, "(error)");
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, query, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        snprintf(answer, sizeof answer, "%s",
                 sqlite3_column_text(statement, 0) ? (const char *)sqlite3_column_text(statement, 0) : "(null)");
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return answer;
}

TEST(every_extension_of_sqlite_is_known) {
    CHECK(fv__table_format_for("a.db") && fv__table_format_for("a.sqlite") == fv__table_format_for("b/c.sqlite3"));
    CHECK(!fv__table_format_for("a.txt"));
}

TEST(columns_have_types_and_nan_is_null) {
    const fv_table_type type = { 3,
                                 { { "item \"a\"", FV_COLUMN_TEXT }, { "n", FV_COLUMN_INTEGER }, { "mean", FV_COLUMN_REAL } } };
    const fv_cell       cells[] = { { .text = "it's" }, { .integer = INT64_MIN }, { .real = 0.1 },
                                    { .text = NULL },   { .integer = 2 },         { .real = NAN } };
    fv_error            error = { 0 };
    CHECK_MESSAGE(write_rows(file("types.db"), NULL, &type, rows_of(cells, 3, 2, 1), false, 1, &error) == FV_OK, "%s",
                  error.message);
    CHECK_TEXT(
        ask(file("types.db"), "SELECT group_concat(typeof(\"item \"\"a\"\"\") || typeof(n) || typeof(mean), ' ') FROM types"),
        "textintegerreal nullintegernull");
    CHECK_TEXT(ask(file("types.db"), "SELECT \"item \"\"a\"\"\" || n || mean FROM types LIMIT 1"), "it's-92233720368547758080.1");
    CHECK_TEXT(ask(file("types.db"), "PRAGMA journal_mode"), "delete");
}

TEST(without_append_the_table_is_replaced_and_others_stay) {
    const char *path = file("replace.db");
    fv_cell    *cells = rows_pattern(0, 5);
    CHECK(write_rows(path, "other", &pattern_type, rows_of(cells, 2, 5, 5), false, 9, NULL) == FV_OK);
    free(cells);
    CHECK(put_pattern(path, 0, 10, false, 1, NULL) == FV_OK);
    CHECK(put_pattern(path, 0, 3, false, 2, NULL) == FV_OK);
    CHECK_TEXT(ask(path, "SELECT count(*) FROM t"), "3");
    CHECK_TEXT(ask(path, "SELECT count(*) FROM other"), "5");
    CHECK(put_pattern(path, 0, 10, true, 1, NULL) == FV_OK); /* replaced before, so it is not there */
    CHECK_TEXT(ask(path, "SELECT count(*) FROM t"), "13");
}

TEST(the_same_result_is_appended_once) {
    const char *path = file("once.db");
    for (int round = 0; round < 3; round++)
        for (uint64_t key = 1; key <= 3; key++) CHECK(put_pattern(path, 0, 4, true, key, NULL) == FV_OK);
    CHECK_TEXT(ask(path, "SELECT count(*) FROM t"), "12");
    CHECK_TEXT(ask(path, "SELECT sum(rows) FROM _fovea WHERE \"table\" = 'T'"), "12");
    ask(path, "DROP TABLE t");
    CHECK(put_pattern(path, 0, 4, true, 1, NULL) == FV_OK); /* somebody dropped it: it is made again */
    CHECK_TEXT(ask(path, "SELECT count(*) FROM t"), "4");
}

static bool refused(const char *path, const char *table, const fv_table_type *type, const char *part, fv_status status) {
    fv_cell  cells[3] = { { 0 } };
    fv_error error = { 0 };
    bool     ok = write_rows(path, table, type, rows_of(cells, type->ncolumns, 1, 1), true, 77, &error) == status &&
              strstr(error.message, part);
    if (!ok) printf("# %s\n", error.message);
    return ok;
}

TEST(bad_requests_are_refused_with_a_reason) {
    const char         *path = file("bad.db");
    const fv_table_type other = { 2, { { "label", FV_COLUMN_INTEGER }, { "area", FV_COLUMN_REAL } } };
    const fv_table_type more = { 3, { { "label", FV_COLUMN_INTEGER }, { "size", FV_COLUMN_REAL }, { "x", FV_COLUMN_REAL } } };
    const fv_table_type twice = { 2, { { "label", FV_COLUMN_INTEGER }, { "Label", FV_COLUMN_REAL } } };
    CHECK(put_pattern(path, 0, 1, false, 1, NULL) == FV_OK);
    CHECK(refused(path, "t", &other, "\"size\", and of the new rows \"area\"", FV_ERROR_USAGE));
    CHECK(refused(path, "t", &more, "2 columns", FV_ERROR_USAGE));
    CHECK(refused(path, "fresh", &twice, "duplicate column", FV_ERROR_USAGE));
    CHECK(refused(path, "_fovea", &pattern_type, "reserved", FV_ERROR_USAGE));
    CHECK(refused(path, "sqlite_x", &pattern_type, "reserved", FV_ERROR_USAGE));
    CHECK_TEXT(ask(path, "SELECT count(*) FROM t"), "1");
    CHECK(refused("/no/such/folder/a.db", "t", &pattern_type, "/no/such/folder", FV_ERROR_IO));
    fv__file_write_all(file("text.db"), "this is not a database, only a text that is long enough to be looked at in earnest", 80,
                       false, NULL);
    CHECK(refused(file("text.db"), "t", &pattern_type, "not a database", FV_ERROR_INPUT));
}

TEST(eight_processes_append_at_once_and_nothing_is_lost) {
    enum { PROCESSES = 8, ROUNDS = 10, ROWS = 500 };
    char  path[200];
    pid_t child[PROCESSES];
    snprintf(path, sizeof path, "%s", file("many.db"));
    for (int p = 0; p < PROCESSES; p++) {
        child[p] = fork();
        if (child[p]) continue;
        for (int r = 0; r < ROUNDS; r++) {
            fv_error error = { 0 };
            if (put_pattern(path, (p * ROUNDS + r) * ROWS, ROWS, true, (uint64_t)(p * ROUNDS + r + 1), &error) != FV_OK) {
                printf("# %s\n", error.message);
                _exit(1);
            }
        }
        _exit(0);
    }
    int bad = 0;
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        waitpid(child[p], &status, 0);
        bad += status != 0;
    }
    CHECK_INT(bad, 0);
    CHECK_TEXT(ask(path, "SELECT count(*) || ' ' || count(DISTINCT label) || ' ' || max(label) FROM t"), "40000 40000 39999");
    CHECK_TEXT(ask(path, "PRAGMA integrity_check"), "ok");
}

TEST(a_writer_killed_anywhere_leaves_all_or_nothing) {
    char path[200];
    snprintf(path, sizeof path, "%s", file("killed.db"));
    CHECK(put_pattern(path, 0, 10, true, 1, NULL) == FV_OK);
    for (int i = 0; i < 12; i++) {
        pid_t child = fork();
        if (!child) _exit(put_pattern(path, 100, 300000, true, 2, NULL) != FV_OK);
        usleep((useconds_t)(i * 25000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        const char *count = ask(path, "SELECT count(*) FROM t");
        CHECK_MESSAGE(!strcmp(count, "10") || !strcmp(count, "300010"), "%s rows", count);
    }
    CHECK(put_pattern(path, 100, 300000, true, 2, NULL) == FV_OK);
    CHECK_TEXT(ask(path, "SELECT count(*) FROM t"), "300010");
    CHECK_TEXT(ask(path, "PRAGMA integrity_check"), "ok");
}

static fv_status fail_later(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    rows_source *s = (rows_source *)source;
    if (s->at >= 2000) return fv_fail(error, FV_ERROR_INPUT, "the rows end here");
    return rows_next(source, cells, nrows, error);
}

TEST(an_error_of_the_source_leaves_nothing) {
    const char *path = file("failed.db");
    CHECK(put_pattern(path, 0, 10, true, 1, NULL) == FV_OK);
    fv_cell    *cells = rows_pattern(0, 5000);
    rows_source source = rows_of(cells, 2, 5000, 1000);
    fv_error    error = { 0 };
    source.base.next = fail_later;
    CHECK_INT(write_rows(path, "t", &pattern_type, source, true, 2, &error), FV_ERROR_INPUT);
    CHECK_TEXT(error.message, "the rows end here");
    free(cells);
    CHECK_TEXT(ask(path, "SELECT count(*) FROM t"), "10");
    CHECK(put_pattern(path, 0, 10, true, 2, NULL) == FV_OK); /* and nothing is locked */
    CHECK_TEXT(ask(path, "SELECT count(*) FROM t"), "20");
}

TEST(a_million_rows_take_little_time) {
    const char *path = file("million.db");
    clock_t     start = clock();
    CHECK(put_pattern(path, 0, 1000000, false, 1, NULL) == FV_OK);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC; /* of the processor */
    printf("# a million rows of sqlite: %.2f s\n", seconds);
    CHECK_TEXT(ask(path, "SELECT count(*) || ' ' || max(size) FROM t"), "1000000 142857.0");
    CHECK_MESSAGE(seconds < 30, "%.1f s", seconds);
}

TEST_MAIN
