/* Queries that go through the rows of a file without copying them, and those that cannot. */
#include "api/sql_parts.h"
#include "support/test.h"
#include <fovea/fovea.h>

enum { ROWS = 5000 };

static const char *numbers(void) {
    static char path[512];
    snprintf(path, sizeof path, "%s/numbers.csv", test_folder());
    FILE *file = fopen(path, "w");
    fprintf(file, "n,x,word\n");
    for (int i = 0; i < ROWS; i++) fprintf(file, i % 3 ? "%d,%g,w%d\n" : "%d,,\n", i, i / 7.0, i % 5);
    fclose(file);
    return path;
}

/* The first row of the answer. */
static const char *answer(fv_sql *sql, const char *text) {
    static char found[200];
    fv_error    error = { 0 };
    bool        row = false;
    snprintf(found, sizeof found, "no row");
    if (fv_sql_query(sql, text, &error) != FV_OK || fv_sql_next(sql, &row, &error) != FV_OK)
        snprintf(found, sizeof found, "%.190s", error.message);
    for (int c = 0, used = 0; row && c < fv_sql_columns(sql); c++)
        used += snprintf(found + used, sizeof found - (size_t)used, c ? " %s" : "%s", fv_sql_text(sql, c));
    return found;
}

TEST(a_query_of_one_table_copies_nothing_and_answers_the_same) {
    static const char *const once[] = {
        "SELECT count(*), count(x), sum(n), avg(x), max(word) FROM numbers",
        "SELECT word, count(*), total(x) FROM numbers WHERE n > 100 GROUP BY word ORDER BY 2 DESC, 1 LIMIT 1",
        "SELECT rowid, n, x, word, typeof(x), typeof(n) FROM numbers WHERE rowid = 4321",
        "SELECT n, x IS NULL, word IS NULL FROM numbers LIMIT 1",
    };
    const char *path = numbers();
    for (int i = 0; i < (int)(sizeof once / sizeof *once); i++) {
        fv_sql *sql = fv_sql_new();
        char    first[200];
        CHECK(fv_sql_add(sql, path, NULL) == FV_OK);
        snprintf(first, sizeof first, "%s", answer(sql, once[i]));
        CHECK_INT(sql->nfiles, 1);
        CHECK_TEXT(answer(sql, once[i]), first); /* asked again, the rows are copied */
        CHECK_INT(sql->nfiles, 0);
        fv_sql_free(sql);
    }
}

TEST(a_query_that_needs_rows_more_than_once_has_them) {
    static const char *const pairs[][2] = {
        { "SELECT count(*) FROM numbers a JOIN numbers b ON a.n = b.n + 1", "4999" },
        { "SELECT count(*) FROM numbers WHERE n > (SELECT avg(n) FROM numbers)", "2500" },
        { "SELECT sum(n) FROM (SELECT n FROM numbers WHERE n < 3 UNION ALL SELECT n FROM numbers WHERE n = 7)", "10" },
        { "SELECT count(*) FROM (SELECT 1 AS k UNION SELECT 2) AS t, numbers WHERE n = k", "2" },
    };
    const char *path = numbers();
    for (int i = 0; i < (int)(sizeof pairs / sizeof *pairs); i++) {
        fv_sql *sql = fv_sql_new();
        CHECK(fv_sql_add(sql, path, NULL) == FV_OK);
        CHECK_TEXT(answer(sql, pairs[i][0]), pairs[i][1]);
        CHECK_INT(sql->nfiles, 0);
        fv_sql_free(sql);
    }
}

TEST(a_file_that_is_gone_is_told) {
    const char *path = numbers();
    fv_sql     *sql = fv_sql_new();
    CHECK(fv_sql_add(sql, path, NULL) == FV_OK);
    CHECK_TEXT(answer(sql, "SELECT count(*) FROM numbers"), "5000");
    remove(path);
    CHECK_MESSAGE(strstr(answer(sql, "SELECT count(*) FROM numbers"), "numbers.csv"), "%s", answer(sql, "SELECT 1"));
    fv_sql_free(sql);
}

TEST(what_reads_the_rows_is_no_table_itself) {
    const char *path = numbers();
    fv_sql     *sql = fv_sql_new();
    CHECK(fv_sql_add(sql, path, NULL) == FV_OK);
    CHECK_TEXT(answer(sql, "SELECT * FROM fovea_rows"), "no such table: fovea_rows");
    fv_sql_free(sql);
}

TEST_MAIN
