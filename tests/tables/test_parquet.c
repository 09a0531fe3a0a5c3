/* Parquet tables: what is written is what is read, appending once, and files that are none. Without DuckDB's library nothing of
 * it can be done. */
#include "base/duckdb.h"
#include "tables/rows.h"
#include <fovea/sql.h>
#include <math.h>

static bool library_is_there(void) {
    fv_duckdb *duck;
    if (fv__duckdb_open("the test", 64 << 20, &duck, NULL) != FV_OK) return false;
    fv__duckdb_close(duck);
    return true;
}
#define NEEDS_DUCKDB                                                                                                             \
    do {                                                                                                                         \
        if (!library_is_there()) SKIP("no libduckdb.so: scripts/duckdb.sh could not fetch it");                                  \
    } while (0)

static const fv_table_format *parquet(void) { return fv__table_format_for("x.parquet"); }

static const char *file(const char *name) {
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

static fv_status write_parquet(const char *path, const fv_table_type *type, rows_source source, bool append, uint64_t key,
                               fv_error *error) {
    char             temporary[300];
    fv_table_options options = { .append = append, .key = { key, key } };
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FV_TRY(parquet()->write(temporary, path, type, &options, &source.base, error));
    return fv__path_replace(temporary, path, error);
}

TEST(parquet_gives_back_every_value_and_what_is_missing) {
    NEEDS_DUCKDB;
    const fv_table_type mixed = {
        3,
        { { "item's \"name\"", FV_COLUMN_TEXT }, { "n", FV_COLUMN_INTEGER }, { "mean %s", FV_COLUMN_REAL } },
        "{\"a b\":\"it's\"}"
    };
    const fv_cell    cells[] = { { .text = "plain" },      { .integer = INT64_MIN },
                                 { .real = 0.1 },          { .text = NULL },
                                 { .integer = INT64_MAX }, { .real = NAN },
                                 { .text = "" },           { .integer = 0 },
                                 { .real = -INFINITY },    { .text = "longer than twelve bytes, \xc3\xa4\n" },
                                 { .integer = 7 },         { .real = 1e-320 } };
    fv_error         error = { 0 };
    fv_table_reader *r;
    const fv_cell   *rows;
    int64_t          nrows;
    CHECK_MESSAGE(write_parquet(file("mixed.parquet"), &mixed, rows_of(cells, 3, 4, 3), false, 1, &error) == FV_OK, "%s",
                  error.message);
    CHECK_MESSAGE(parquet()->open(file("mixed.parquet"), NULL, &r, &error) == FV_OK, "%s", error.message);
    CHECK_INT(r->nrows, 4);
    CHECK_TEXT(r->type.metadata, mixed.metadata);
    for (int c = 0; c < 3; c++) {
        CHECK_TEXT(r->type.column[c].name, mixed.column[c].name);
        CHECK_INT(r->type.column[c].kind, mixed.column[c].kind);
    }
    CHECK(r->source.next(&r->source, &rows, &nrows, &error) == FV_OK);
    CHECK_INT(nrows, 4);
    for (int i = 0; i < 12; i += 3) {
        CHECK(!cells[i].text == !rows[i].text);
        if (cells[i].text) CHECK_TEXT(rows[i].text, cells[i].text);
        CHECK_INT(rows[i + 1].integer, cells[i + 1].integer);
        CHECK(rows[i + 2].real == cells[i + 2].real || (isnan(rows[i + 2].real) && isnan(cells[i + 2].real)));
    }
    CHECK(r->source.next(&r->source, &rows, &nrows, &error) == FV_OK);
    CHECK_INT(nrows, 0);
    r->format->close(r);
}

TEST(the_bytes_of_a_parquet_file_do_not_depend_on_the_batches) {
    NEEDS_DUCKDB;
    enum { ROWS = 300000 };
    fv_cell *cells = rows_pattern(5, ROWS);
    fv_bytes first = { 0 }, second = { 0 };
    CHECK(write_parquet(file("one.parquet"), &pattern_type, rows_of(cells, 2, ROWS, 1000), false, 1, NULL) == FV_OK);
    CHECK(fv__file_read_all(file("one.parquet"), 1 << 30, &first, NULL) == FV_OK);
    CHECK(write_parquet(file("one.parquet"), &pattern_type, rows_of(cells, 2, ROWS, ROWS), false, 1, NULL) == FV_OK);
    CHECK(fv__file_read_all(file("one.parquet"), 1 << 30, &second, NULL) == FV_OK);
    CHECK(first.size == second.size && !memcmp(first.data, second.data, first.size));
    fv_table_reader *r;
    const fv_cell   *rows;
    int64_t          nrows = 1, at = 0;
    CHECK(parquet()->open(file("one.parquet"), NULL, &r, NULL) == FV_OK);
    while (nrows) {
        CHECK(r->source.next(&r->source, &rows, &nrows, NULL) == FV_OK);
        CHECK(nrows <= 1 << 14 && !memcmp(rows, cells + at * 2, (size_t)nrows * 2 * sizeof *rows));
        at += nrows;
    }
    CHECK_INT(at, ROWS);
    r->format->close(r);
    free(cells);
    fv__bytes_release(&first);
    fv__bytes_release(&second);
}

TEST(appending_to_parquet_adds_a_result_once) {
    NEEDS_DUCKDB;
    fv_cell         *cells = rows_pattern(1, 5);
    fv_table_reader *r;
    fv_error         error = { 0 };
    for (int i = 0; i < 2; i++)
        for (uint64_t key = 1; key <= 3; key++)
            CHECK_MESSAGE(
                write_parquet(file("all.parquet"), &pattern_type, rows_of(cells, 2, (int64_t)key, 2), true, key, &error) == FV_OK,
                "%s", error.message);
    CHECK(parquet()->open(file("all.parquet"), NULL, &r, NULL) == FV_OK);
    CHECK_INT(r->nrows, 1 + 2 + 3);
    r->format->close(r);
    const fv_table_type other = { 1, { { "label", FV_COLUMN_INTEGER } } };
    CHECK(write_parquet(file("all.parquet"), &other, rows_of(cells, 1, 2, 2), true, 9, &error) == FV_ERROR_USAGE);
    CHECK_MESSAGE(strstr(error.message, "has 2 columns and the new rows have 1"), "%s", error.message);
    free(cells);
}

TEST(an_empty_parquet_table_has_its_columns) {
    NEEDS_DUCKDB;
    fv_table_reader *r;
    CHECK(write_parquet(file("empty.parquet"), &pattern_type, rows_of(NULL, 2, 0, 1), false, 1, NULL) == FV_OK);
    CHECK(parquet()->open(file("empty.parquet"), NULL, &r, NULL) == FV_OK);
    CHECK_INT(r->nrows, 0);
    CHECK_INT(r->type.column[0].kind, FV_COLUMN_INTEGER);
    CHECK_TEXT(r->type.column[1].name, "size");
    r->format->close(r);
}

static fv_status broken_rows(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    (void)source, (void)cells, (void)nrows;
    return fv_fail(error, FV_ERROR_INPUT, "the rows end here");
}

TEST(a_source_that_fails_says_why) {
    NEEDS_DUCKDB;
    rows_source broken = { .base.next = broken_rows };
    fv_error    error = { 0 };
    CHECK(write_parquet(file("broken.parquet"), &pattern_type, broken, false, 1, &error) == FV_ERROR_INPUT);
    CHECK_TEXT(error.message, "the rows end here");
}

TEST(files_that_are_no_parquet_are_refused_with_their_name) {
    static const char *const texts[] = { "", "PAR1", "PAR1xxxxPAR1", "PAR1\xff\xff\xff\x7fPAR1", "PAR1....\4\0\0\0PAR1" };
    for (int i = 0; i < FV_COUNT(texts); i++) {
        fv_table_reader *r;
        fv_error         error = { 0 };
        size_t           size = i == 4 ? 16 : strlen(texts[i]);
        if (i == 4) NEEDS_DUCKDB; /* whose footer can be found and means nothing */
        CHECK(fv__file_write_all(file("none.parquet"), texts[i], size, false, NULL) == FV_OK);
        CHECK(parquet()->open(file("none.parquet"), NULL, &r, &error) != FV_OK);
        CHECK_MESSAGE(strstr(error.message, "none.parquet"), "%s", error.message);
    }
}

/* The only row of a query, or of its estimate to 5 %, as numbers. */
static void ask(const char *path, const char *text, uint64_t seed, double *values, int64_t *seen) {
    fv_sql       *sql = fv_sql_new();
    fv_sql_within within = { .error = 0.05, .confidence = 0.95, .seed = seed };
    fv_error      error = { 0 };
    bool          row = false;
    CHECK_MESSAGE((seen ? fv_sql_add_sampled : fv_sql_add)(sql, path, &error) == FV_OK, "%s", error.message);
    fv_status status = seen ? fv_sql_estimate(sql, text, &within, &error) : fv_sql_query(sql, text, &error);
    CHECK_MESSAGE(status == FV_OK && fv_sql_next(sql, &row, &error) == FV_OK && row, "%s", error.message);
    int columns = fv_sql_columns(sql), last = seen ? columns - 4 : columns;
    for (int c = 0; c < last; c++) values[c] = fv_sql_real(sql, c);
    if (seen) *seen = fv_sql_integer(sql, columns - 3);
    fv_sql_free(sql);
}

TEST(estimates_read_some_row_groups_and_hold_the_truth) {
    NEEDS_DUCKDB;
    enum { SEEDS = 20 };
    const char *query = "SELECT avg(volume), sum(volume) FROM many WHERE kind = 1";
    const char *path = file("many.parquet");
    double      truth[2], found[6];
    int64_t     seen;
    int         held = 0, part = 0;
    fv_duckdb  *duck;
    fv_error    error = { 0 };
    CHECK(fv__duckdb_open("the test", 64 << 20, &duck, NULL) == FV_OK);
    fv_duckdb_result rows;
    fv_duckdb_handle chunk = NULL; /* row groups differ: they are clusters */
    CHECK(fv__duckdb_query(duck, path, &rows, NULL,
                           "COPY (SELECT 10 + (i // 2048) %% 7 + (hash(i) %% 100) / 50.0 AS volume, CAST(hash(i + 1) %% 3 AS "
                           "INTEGER) AS kind FROM range(204800) t(i)) TO '%s' (FORMAT parquet, ROW_GROUP_SIZE 2048)",
                           path) == FV_OK);
    CHECK(fv__duckdb_next(duck, path, &rows, &chunk, NULL) == FV_OK);
    fv__duckdb_release(duck, &rows, &chunk);
    fv__duckdb_close(duck);
    ask(path, query, 0, truth, NULL);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        ask(path, query, seed, found, &seen);
        part += seen < 100;
        held += found[1] <= truth[0] && truth[0] <= found[2];
        CHECK(fabs(found[3] / truth[1] - 1) < 0.2);
    }
    CHECK_INT(part, SEEDS);
    CHECK_MESSAGE(held >= 15, "%d of %d", held, SEEDS); /* 19 less four standard deviations */
    fv_sql       *sql = fv_sql_new();
    fv_sql_within within = { .error = 0.05, .confidence = 0.95 };
    CHECK(fv_sql_add_sampled(sql, path, &error) == FV_OK);
    CHECK(fv_sql_estimate(sql, "SELECT count(*) FROM many WHERE volume > (SELECT avg(volume) FROM many)", &within, &error) !=
          FV_OK);
    CHECK_MESSAGE(strstr(error.message, "some of the rows"), "%s", error.message);
    CHECK(fv_sql_estimate(sql, "SELECT avg(volume - (SELECT avg(volume) FROM many)) FROM many", &within, &error) != FV_OK);
    CHECK(fv_sql_estimate(sql, "SELECT avg(volume) FROM many WHERE rowid < 1000", &within, &error) != FV_OK);
    fv_sql_free(sql);
    static const char *const names[] = { "many m", "many AS m", "\"many\"", "main.many", "Many" };
    for (int i = 0; i < FV_COUNT(names); i++) {
        char text[100];
        snprintf(text, sizeof text, "SELECT avg(volume) FROM %s", names[i]);
        ask(path, text, 0, truth, NULL);
        ask(path, text, 0, found, &seen);
        CHECK_MESSAGE(seen > 1 && fabs(found[0] / truth[0] - 1) < 0.2, "%s: %g of %lld", names[i], found[0], (long long)seen);
    }
}

TEST_MAIN
