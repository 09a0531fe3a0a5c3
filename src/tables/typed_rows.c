/* Kinds of columns of text, and batches of rows; see typed_rows.h. */
#include "tables/typed_rows.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- kinds */

static bool is_missing_word(const char *text) {
    static const char *const words[] = { "", "NA", "N/A", "NaN", "nan", "null", "NULL" };
    for (int i = 0; i < FV_COUNT(words); i++)
        if (!strcmp(text, words[i])) return true;
    return false;
}

static bool only_blanks(const char *text) { return !text[strspn(text, " \t")]; }

static bool as_integer(const char *text, int64_t *value) {
    char *end;
    text += strspn(text, " \t");
    if (!text[strspn(text, "+-")] || strspn(text, "+-") > 1) return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && only_blanks(end) && !errno;
}

/* Decimal numbers and infinities; strtod would also take hexadecimal ones. */
static bool as_real(const char *text, double *value) {
    char *end;
    text += strspn(text, " \t");
    if (strpbrk(text, "xX")) return false;
    *value = strtod(text, &end);
    return end != text && only_blanks(end) && *value == *value;
}

void fv__typing_look(fv_typing *typing, const char *text, bool numeric) {
    int64_t integer;
    double  real;
    if (!text || (numeric && is_missing_word(text))) {
        typing->missing = true;
        return;
    }
    typing->present = true;
    if (typing->not_real) return;
    if (!typing->not_integer && !(numeric && as_integer(text, &integer))) typing->not_integer = true;
    if (typing->not_integer && !(numeric && as_real(text, &real))) typing->not_real = true;
}

fv_column_kind fv__typing_kind(const fv_typing *typing) {
    if (typing->not_real) return FV_COLUMN_TEXT;
    return typing->not_integer || typing->missing || !typing->present ? FV_COLUMN_REAL : FV_COLUMN_INTEGER;
}

/* ---------------------------------------------------------------- batches */

void fv__batch_clear(fv_batch *batch) {
    fv__bytes_clear(&batch->cells);
    fv__bytes_clear(&batch->text);
    batch->nrows = 0;
}

void fv__batch_add(fv_batch *batch, fv_column_kind kind, const char *text) {
    fv_cell cell = { .integer = 0 };
    if (kind == FV_COLUMN_TEXT) {
        cell.integer = text ? (int64_t)batch->text.size : -1;
        if (text) fv__bytes_append(&batch->text, text, strlen(text) + 1);
    } else if (kind == FV_COLUMN_INTEGER)
        as_integer(text ? text : "0", &cell.integer);
    else if (!text || is_missing_word(text) || !as_real(text, &cell.real))
        cell.real = NAN;
    fv__bytes_append(&batch->cells, &cell, sizeof cell);
}

void fv__batch_end_row(fv_batch *batch) { batch->nrows++; }
bool fv__batch_full(const fv_batch *batch) { return batch->nrows >= FV_BATCH_ROWS || batch->text.size >= FV_BATCH_TEXT; }

const fv_cell *fv__batch_finish(fv_batch *batch, const fv_table_type *type) {
    fv_cell *cells = (fv_cell *)batch->cells.data;
    for (int64_t r = 0; r < batch->nrows; r++)
        for (int c = 0; c < type->ncolumns; c++) {
            fv_cell *cell = &cells[r * type->ncolumns + c];
            int64_t  place = cell->integer;
            if (type->column[c].kind == FV_COLUMN_TEXT) cell->text = place < 0 ? NULL : (const char *)batch->text.data + place;
        }
    return cells;
}

void fv__batch_release(fv_batch *batch) {
    fv__bytes_release(&batch->cells);
    fv__bytes_release(&batch->text);
}

/* ---------------------------------------------------------------- columns */

static bool has_column(const fv_table_type *type, const char *name) {
    for (int c = 0; c < type->ncolumns; c++)
        if (!strcmp(type->column[c].name, name)) return true;
    return false;
}

fv_status fv__table_add_column(fv_table_type *type, const char *name, const char *path, fv_error *error) {
    fv_column *column = &type->column[type->ncolumns];
    size_t     most = sizeof column->name - 5; /* room for a number behind it */
    if (type->ncolumns == FV_MAX_COLUMNS)
        return fv_fail(error, FV_ERROR_INPUT, "%s has more than %d columns, the most that a table can have here", path,
                       FV_MAX_COLUMNS);
    if (strlen(name) > most)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the name of column %d, \"%.40s\", is longer than %d bytes", path,
                       type->ncolumns + 1, name, (int)most);
    if (*name)
        snprintf(column->name, sizeof column->name, "%s", name);
    else
        snprintf(column->name, sizeof column->name, "column_%d", type->ncolumns + 1);
    for (int n = 2; n < 1000 && has_column(type, column->name); n++)
        snprintf(column->name, sizeof column->name, "%.34s_%d", name, n % 1000);
    type->ncolumns++;
    return FV_OK;
}

/* ---------------------------------------------------------------- characters */

void fv__put_utf8(fv_bytes *out, uint32_t c) {
    char text[4];
    int  n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6) text[i] = (char)(0x80 | (c & 0x3f));
    text[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xff) | c);
    fv__bytes_append(out, text, (size_t)n);
}
