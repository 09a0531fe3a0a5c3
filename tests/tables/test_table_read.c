/* Tables read back: what columns hold, what is missing, and that what was written is what is read. */
#include "base/duckdb.h"
#include "tables/rows.h"
#include <math.h>
#include <unistd.h>

static char *in_folder(const char *name) { return fv__sprintf("%s/%s", test_folder(), name); }

static fv_table_reader *open_text(const char *name, const char *text, fv_error *error) {
    char            *path = in_folder(name);
    fv_table_reader *reader = NULL;
    if (fv__file_write_all(path, text, strlen(text), false, NULL) != FV_OK) abort();
    fv__table_format_for(path)->open(path, NULL, &reader, error);
    free(path);
    return reader;
}

TEST(csv_columns_hold_what_all_their_values_are) {
    fv_error         error = { 0 };
    const fv_cell   *rows;
    int64_t          nrows;
    fv_table_reader *r = open_text("kinds.csv",
                                   "\xef\xbb\xbfwhole,real,gaps,words,none,large\r\n"
                                   "1,1,7,a,,9223372036854775807\r\n"
                                   "-2,2.5e-3,,\"b, \"\"c\"\"\",NA,-9223372036854775808\r\n"
                                   "\r\n"
                                   "+3,inf,9,\"\",nan,0",
                                   &error);
    CHECK_MESSAGE(r, "%s", error.message);
    CHECK_INT(r->nrows, 3);
    static const fv_column_kind kinds[] = { FV_COLUMN_INTEGER, FV_COLUMN_REAL, FV_COLUMN_REAL,
                                            FV_COLUMN_TEXT,    FV_COLUMN_REAL, FV_COLUMN_INTEGER };
    CHECK_INT(r->type.ncolumns, 6);
    for (int c = 0; c < 6; c++) CHECK_INT(r->type.column[c].kind, kinds[c]);
    CHECK_TEXT(r->type.column[0].name, "whole");
    CHECK(r->source.next(&r->source, &rows, &nrows, &error) == FV_OK);
    CHECK_INT(nrows, 3);
    CHECK_INT(rows[6].integer, -2);
    CHECK_INT(rows[12].integer, 3);
    CHECK(rows[1].real == 1 && rows[7].real == 2.5e-3 && isinf(rows[13].real));
    CHECK(rows[2].real == 7 && isnan(rows[8].real) && rows[14].real == 9);
    CHECK_TEXT(rows[9].text, "b, \"c\"");
    CHECK_TEXT(rows[15].text, "");
    CHECK(isnan(rows[4].real) && isnan(rows[10].real));
    CHECK(rows[5].integer == INT64_MAX && rows[11].integer == INT64_MIN);
    CHECK(r->source.next(&r->source, &rows, &nrows, &error) == FV_OK);
    CHECK_INT(nrows, 0);
    r->format->close(r);
}

TEST(csv_with_semicolons_or_tabs_and_odd_names_is_read) {
    fv_error         error = { 0 };
    fv_table_reader *r = open_text("semi.csv", "a;a;;\"x;y\"\n1;2;3;4\n", &error);
    CHECK_MESSAGE(r, "%s", error.message);
    CHECK_TEXT(r->type.column[1].name, "a_2");
    CHECK_TEXT(r->type.column[2].name, "column_3");
    CHECK_TEXT(r->type.column[3].name, "x;y");
    r->format->close(r);
    r = open_text("tab.csv", "a\tb\tc,d\n1\t2\t3\n", &error);
    CHECK_MESSAGE(r, "%s", error.message);
    CHECK_INT(r->type.ncolumns, 3);
    r->format->close(r);
}

TEST(json_lines_need_not_have_the_same_members) {
    fv_error         error = { 0 };
    const fv_cell   *rows;
    int64_t          nrows;
    fv_table_reader *r = open_text("a.jsonl",
                                   "{\"n\": 9007199254740993, \"t\": \"1\", \"b\": true}\n\n"
                                   "{\"n\": 2, \"t\": \"\\ud83d\\ude00\\t\", \"b\": false, \"late\": [1, {\"x\": \"]\"}]}\n"
                                   "{\"t\": null, \"n\": -3, \"b\": true}\n",
                                   &error);
    CHECK_MESSAGE(r, "%s", error.message);
    CHECK_INT(r->nrows, 3);
    CHECK_INT(r->type.column[0].kind, FV_COLUMN_INTEGER);
    CHECK_INT(r->type.column[1].kind, FV_COLUMN_TEXT); /* a text that looks like a number stays one */
    CHECK_INT(r->type.column[2].kind, FV_COLUMN_INTEGER);
    CHECK_INT(r->type.column[3].kind, FV_COLUMN_TEXT);
    CHECK(r->source.next(&r->source, &rows, &nrows, &error) == FV_OK);
    CHECK_INT(rows[0].integer, 9007199254740993);
    CHECK_TEXT(rows[5].text, "\xf0\x9f\x98\x80\t");
    CHECK(!rows[3].text && !rows[9].text && !rows[11].text);
    CHECK_TEXT(rows[7].text, "[1, {\"x\": \"]\"}]");
    r->format->close(r);
}

/* n rows: whole numbers, reals with gaps and infinities, texts of all sorts. */
static const fv_table_type mixed = { 3, { { "n", FV_COLUMN_INTEGER }, { "v, \"w\"", FV_COLUMN_REAL }, { "t", FV_COLUMN_TEXT } } };
static const char *const texts[] = { "plain", "a,b", "say \"hi\"", "two\nlines", "tab\there", " pad ", "é", "back\\slash", NULL };

static fv_cell *mixed_rows(int64_t n) {
    fv_cell *cells = fv__alloc((size_t)n * 3 * sizeof *cells);
    uint64_t state = 5;
    for (int64_t i = 0; i < n; i++) {
        cells[i * 3].integer = (int64_t)test_random(&state);
        cells[i * 3 + 1].real = i % 7 == 3 ? NAN : i % 11 == 5 ? -INFINITY : (double)(int64_t)test_random(&state) / 3e17;
        cells[i * 3 + 2].text = texts[i % FV_COUNT(texts)];
    }
    return cells;
}

/* Without DuckDB's library there is no Parquet; its own tests say that they are skipped. */
static bool is_usable(const fv_table_format *format) {
    fv_duckdb *duck;
    if (strcmp(format->name, "parquet")) return true;
    if (fv__duckdb_open("the test", 64 << 20, &duck, NULL) != FV_OK) return false;
    fv__duckdb_close(duck);
    return true;
}

TEST(every_table_format_gives_back_what_was_written) {
    enum { ROWS = 5000 };
    fv_cell *cells = mixed_rows(ROWS);
    for (int f = 0; f < fv__table_format_count(); f++) {
        const fv_table_format *format = fv__table_format_at(f);
        if (!format->open || !format->write || !is_usable(format)) continue;
        char             word[32];
        fv_error         error = { 0 };
        fv_table_reader *r;
        snprintf(word, sizeof word, "back.%.*s", (int)strcspn(format->extensions, " "), format->extensions);
        char       *path = in_folder(word);
        rows_source source = rows_of(cells, 3, ROWS, 333);
        CHECK_MESSAGE(format->write(path, path, &mixed, &(fv_table_options){ 0 }, &source.base, &error) == FV_OK, "%s: %s",
                      format->name, error.message);
        CHECK_MESSAGE(format->open(path, NULL, &r, &error) == FV_OK, "%s: %s", format->name, error.message);
        CHECK_INT(r->nrows, ROWS);
        for (int c = 0; c < 3; c++) {
            CHECK_TEXT(r->type.column[c].name, mixed.column[c].name);
            CHECK_INT(r->type.column[c].kind, mixed.column[c].kind);
        }
        int64_t seen = 0;
        for (;;) {
            const fv_cell *rows;
            int64_t        nrows;
            CHECK_MESSAGE(r->source.next(&r->source, &rows, &nrows, &error) == FV_OK, "%s", error.message);
            if (!nrows) break;
            for (int64_t i = 0; i < nrows; i++, seen++) {
                const fv_cell *was = cells + seen * 3, *is = rows + i * 3;
                CHECK_INT(is[0].integer, was[0].integer);
                CHECK_MESSAGE(is[1].integer == was[1].integer || (isnan(is[1].real) && isnan(was[1].real)), "%s: %g is not %g",
                              format->name, is[1].real, was[1].real);
                CHECK_MESSAGE(!is[2].text == !was[2].text && (!is[2].text || !strcmp(is[2].text, was[2].text)), "%s: row %lld",
                              format->name, (long long)seen);
            }
        }
        CHECK_INT(seen, ROWS);
        r->format->close(r);
        free(path);
    }
    free(cells);
}

TEST(damaged_tables_give_an_error_that_names_the_file) {
    enum { ROWS = 40 };
    fv_cell *cells = mixed_rows(ROWS);
    uint64_t state = 9;
    for (int f = 0; f < fv__table_format_count(); f++) {
        const fv_table_format *format = fv__table_format_at(f);
        if (!format->open || !format->write || !is_usable(format)) continue;
        char        word[40];
        fv_bytes    whole = { 0 };
        rows_source source = rows_of(cells, 3, ROWS, 7);
        snprintf(word, sizeof word, "damaged.%.*s", (int)strcspn(format->extensions, " "), format->extensions);
        char *path = in_folder(word);
        CHECK(format->write(path, path, &mixed, &(fv_table_options){ 0 }, &source.base, NULL) == FV_OK);
        CHECK(fv__file_read_all(path, 1 << 24, &whole, NULL) == FV_OK);
        for (int i = 0; i < 300; i++) {
            fv_error         error = { 0 };
            fv_table_reader *r = NULL;
            size_t           size = i < 100 ? whole.size * (size_t)i / 100 : whole.size;
            uint8_t         *copy = fv__alloc(whole.size);
            memcpy(copy, whole.data, whole.size);
            for (int k = 0; i >= 100 && k < 4; k++)
                copy[test_random(&state) % whole.size] ^= (uint8_t)(1 << test_random(&state) % 8);
            CHECK(fv__file_write_all(path, copy, size, false, NULL) == FV_OK);
            free(copy);
            fv_status status = format->open(path, NULL, &r, &error);
            for (int64_t nrows = 1; status == FV_OK && nrows;) {
                const fv_cell *rows;
                status = r->source.next(&r->source, &rows, &nrows, &error);
            }
            if (r) format->close(r);
            CHECK_MESSAGE(status == FV_OK || strstr(error.message, word), "%s: \"%s\"", format->name, error.message);
        }
        fv__bytes_release(&whole);
        free(path);
    }
    free(cells);
}

TEST_MAIN
