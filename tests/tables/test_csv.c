/* CSV tables: quoting, numbers, appending once. */
#include "tables/rows.h"
#include <math.h>
#include <time.h>
#include <unistd.h>

static const fv_table_format *csv(void) { return fv__table_format_for("x.csv"); }

/* Writes as an engine does: under a temporary name, then renamed. */
static fv_status write_csv(const char *path, const fv_table_type *type, rows_source source, bool append, uint64_t key,
                           fv_error *error) {
    char             temporary[300];
    fv_table_options options = { .append = append, .key = { key, key } };
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FV_TRY(csv()->write(temporary, path, type, &options, &source.base, error));
    return fv__path_replace(temporary, path, error);
}

static const char *content(const char *path) {
    static fv_bytes bytes;
    fv__bytes_clear(&bytes);
    return fv__file_read_all(path, 1 << 30, &bytes, NULL) == FV_OK ? (const char *)bytes.data : "(none)";
}

static const char *file(const char *name) {
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

static const fv_table_type mixed = {
    3, { { "item", FV_COLUMN_TEXT }, { "n", FV_COLUMN_INTEGER }, { "mean, \"x\"", FV_COLUMN_REAL } }
};

TEST(csv_quotes_as_rfc_4180_says) {
    const fv_cell cells[] = { { .text = "plain" },      { .integer = 1 },         { .real = 0.5 },
                              { .text = "a,b" },        { .integer = -2 },        { .real = NAN },
                              { .text = "say \"hi\"" }, { .integer = INT64_MAX }, { .real = 1e300 },
                              { .text = "two\nlines" }, { .integer = 0 },         { .real = -INFINITY },
                              { .text = "" },           { .integer = 0 },         { .real = 0.1 },
                              { .text = NULL },         { .integer = 0 },         { .real = 3 },
                              { .text = " pad" },       { .integer = 0 },         { .real = 1.0 / 3 } };
    fv_error      error = { 0 };
    CHECK_MESSAGE(write_csv(file("quotes.csv"), &mixed, rows_of(cells, 3, 7, 2), false, 1, &error) == FV_OK, "%s", error.message);
    CHECK_TEXT(content(file("quotes.csv")),
               "item,n,\"mean, \"\"x\"\"\"\nplain,1,0.5\n\"a,b\",-2,\n\"say \"\"hi\"\"\",9223372036854775807,1e+300\n"
               "\"two\nlines\",0,-inf\n\"\",0,0.1\n,0,3\n\" pad\",0,0.3333333333333333\n");
}

TEST(an_empty_table_has_its_header) {
    CHECK(write_csv(file("empty.csv"), &pattern_type, rows_of(NULL, 2, 0, 1), false, 1, NULL) == FV_OK);
    CHECK_TEXT(content(file("empty.csv")), "label,size\n");
}

TEST(a_missing_value_alone_on_its_line_is_still_a_row) {
    const fv_table_type one = { 1, { { "v", FV_COLUMN_REAL } } };
    const fv_cell       cells[] = { { .real = NAN }, { .real = 2 } };
    CHECK(write_csv(file("one.csv"), &one, rows_of(cells, 1, 2, 5), false, 1, NULL) == FV_OK);
    CHECK_TEXT(content(file("one.csv")), "v\n\"\"\n2\n");
}

static fv_status put_pattern(const char *path, int64_t first, int64_t n, bool append, uint64_t key, fv_error *error) {
    fv_cell  *cells = rows_pattern(first, n);
    fv_status status = write_csv(path, &pattern_type, rows_of(cells, 2, n, 100), append, key, error);
    free(cells);
    return status;
}

TEST(append_keeps_what_is_there_and_adds_a_result_once) {
    const char *path = file("grow.csv");
    CHECK(put_pattern(path, 7, 1, true, 1, NULL) == FV_OK);
    CHECK_TEXT(content(path), "label,size\n7,1\n");
    CHECK(put_pattern(path, 14, 2, true, 2, NULL) == FV_OK);
    CHECK_TEXT(content(path), "label,size\n7,1\n14,2\n15,2.142857142857143\n");
    CHECK(put_pattern(path, 14, 2, true, 2, NULL) == FV_OK);
    CHECK(put_pattern(path, 7, 1, true, 1, NULL) == FV_OK);
    CHECK_TEXT(content(path), "label,size\n7,1\n14,2\n15,2.142857142857143\n");
    CHECK(put_pattern(path, 21, 1, false, 3, NULL) == FV_OK);
    CHECK_TEXT(content(path), "label,size\n21,3\n");
    CHECK(put_pattern(path, 7, 1, true, 1, NULL) == FV_OK); /* no longer there, so it is added */
    CHECK_TEXT(content(path), "label,size\n21,3\n7,1\n");
}

TEST(rows_of_a_run_killed_before_the_rename_are_added_later) {
    const char      *path = file("killed.csv");
    fv_table_options options = { .append = true, .key = { 2, 2 } };
    fv_cell         *cells = rows_pattern(14, 1);
    rows_source      source = rows_of(cells, 2, 1, 1);
    CHECK(put_pattern(path, 7, 1, true, 1, NULL) == FV_OK);
    char temporary[300];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    CHECK(csv()->write(temporary, path, &pattern_type, &options, &source.base, NULL) == FV_OK); /* and dies here */
    CHECK(put_pattern(path, 21, 1, true, 3, NULL) == FV_OK);
    CHECK(put_pattern(path, 14, 1, true, 2, NULL) == FV_OK);
    CHECK_TEXT(content(path), "label,size\n7,1\n21,3\n14,2\n");
    free(cells);
}

TEST(append_to_a_file_of_others_ends_its_last_line_first) {
    const char *path = file("foreign.csv");
    const char *old = "\xef\xbb\xbf\"label\",size\r\n1,2";
    CHECK(fv__file_write_all(path, old, strlen(old), false, NULL) == FV_OK);
    CHECK(put_pattern(path, 7, 1, true, 1, NULL) == FV_OK);
    CHECK_TEXT(content(path), "\xef\xbb\xbf\"label\",size\r\n1,2\n7,1\n");
}

static bool refused(const char *header, const char *part) {
    const char *path = file("other.csv");
    fv_error    error = { 0 };
    fv__file_write_all(path, header, strlen(header), false, NULL);
    bool ok = put_pattern(path, 7, 1, true, 1, &error) == FV_ERROR_USAGE && strstr(error.message, part);
    if (!ok) printf("# %s\n", error.message);
    return ok && !strcmp(content(path), header);
}

TEST(append_refuses_other_columns) {
    CHECK(refused("label\n1\n", "1 column"));
    CHECK(refused("label,area\n", "\"area\""));
    CHECK(refused("label,size,more\n", "more columns"));
    CHECK(refused("\"label\n", "column 1"));
}

TEST(a_million_rows_take_little_time) {
    const char *path = file("million.csv");
    clock_t     start = clock();
    CHECK(put_pattern(path, 0, 1000000, false, 1, NULL) == FV_OK);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC; /* of the processor */
    printf("# a million rows of csv: %.2f s\n", seconds);
    const char *text = content(path);
    int64_t     lines = 0;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    CHECK_INT(lines, 1000001);
    CHECK(strstr(text, "\n999999,142857\n"));
    CHECK_MESSAGE(seconds < 20, "%.1f s", seconds);
}

TEST(a_folder_that_is_missing_is_named) {
    fv_error error = { 0 };
    CHECK(put_pattern("/no/such/folder/t.csv", 0, 1, false, 1, &error) != FV_OK);
    CHECK(strstr(error.message, "/no/such/folder"));
}

TEST_MAIN
