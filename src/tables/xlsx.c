/* XLSX: a sheet of a workbook as Excel and LibreOffice write it. The first row that holds anything names the columns; a first
 * pass finds what they hold, a second gives the rows.
 *
 * Numbers and texts are what their cells say they are, so a text that looks like a number stays one. true and false become 1 and
 * 0, dates become text (2024-05-31, 2024-05-31 14:30:00). A formula has the value that the program stored with it. Empty cells,
 * errors
 * (#N/A) and empty texts are missing values, and rows without any value are passed over. */
#include "base/number.h"
#include "base/remote.h"
#include "tables/typed_rows.h"
#include "tables/xlsx_book.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const fv_table_format fv_table_xlsx;
enum { MOST_CELLS = 16384 }; /* columns of a sheet */

typedef struct {
    int64_t place; /* of its text in the row's; -1: nothing */
    bool    numeric;
} value;

typedef struct {
    fv_table_reader      base;
    int                  fd;
    fv_xlsx_book         book;
    const fv_xlsx_sheet *sheet;
    fv_xlsx_xml          xml;
    bool                 within; /* of the cells */
    int64_t              row;    /* number of the current one, from 1 */
    int                  first;  /* column of the sheet that is the table's first */
    value               *values; /* of the row, by column of the sheet */
    int                  nvalues;
    fv_bytes             text, content;
    int64_t              remaining;
    fv_batch             batch;
} reader;

/* ---------------------------------------------------------------- cells */

/* "BC23": column 54, counted from 0; -1: no such name. */
static int column_of(const char *name) {
    int column = 0;
    for (; *name >= 'A' && *name <= 'Z'; name++)
        if ((column = column * 26 + (*name - 'A' + 1)) > MOST_CELLS) return -1;
    return column - 1;
}

static void name_column(int column, char name[8]) {
    char reversed[8];
    int  n = 0, k = 0;
    for (column++; column > 0; column = (column - 1) / 26) reversed[n++] = (char)('A' + (column - 1) % 26);
    while (n) name[k++] = reversed[--n];
    name[k] = 0;
}

static void set_value(reader *r, int column, const char *text, bool numeric) {
    while (r->nvalues <= column) r->values[r->nvalues++] = (value){ .place = -1 };
    if (!*text) return;
    r->values[column] = (value){ (int64_t)r->text.size, numeric };
    fv__bytes_append(&r->text, text, strlen(text) + 1);
}

static void set_number(reader *r, int column, const char *text, int64_t style) {
    fv_xlsx_date kind = fv__xlsx_style(&r->book, style);
    char         date[32], shortest[FV_NUMBER_SIZE + 1], *end;
    double       number = strtod(text, &end);
    if (end == text) return;
    if (kind != FV_XLSX_NUMBER && fv__xlsx_write_date(&r->book, number, kind, date)) {
        set_value(r, column, date, false);
        return;
    }
    bool whole = strspn(text, "+-0123456789") == strlen(text);
    if (!whole) shortest[fv__real_format(number, shortest)] = 0; /* programs write 17 digits */
    set_value(r, column, whole ? text : shortest, true);
}

/* What a cell holds, from its type and the text inside. */
static fv_status take_value(reader *r, int column, const char *type, int64_t style, fv_error *error) {
    fv__bytes_append(&r->content, "", 1);
    const char *text = (const char *)r->content.data;
    if (!*text || !strcmp(type, "e")) return FV_OK;
    if (!strcmp(type, "s")) {
        const char *shared = fv__xlsx_shared_text(&r->book, atoll(text));
        if (!shared)
            return fv_fail(error, FV_ERROR_INPUT, "%s, row %lld: a cell has text number %.20s, which the workbook lacks",
                           r->base.path, (long long)r->row, text);
        set_value(r, column, shared, false);
    } else if (!strcmp(type, "b"))
        set_value(r, column, *text == '1' || *text == 't' ? "1" : "0", true);
    else if (!strcmp(type, "n"))
        set_number(r, column, text, style);
    else
        set_value(r, column, text, false);
    return FV_OK;
}

/* The inside of <c>, up to its end. */
static fv_status take_cell(reader *r, int column, fv_error *error) {
    char type[16] = "n", style[16] = "0";
    bool found, phonetic = false;
    fv__xlsx_xml_attribute(&r->xml, "t", type, sizeof type);
    fv__xlsx_xml_attribute(&r->xml, "s", style, sizeof style);
    if (fv__xlsx_xml_closed(&r->xml)) return FV_OK;
    fv__bytes_clear(&r->content);
    for (;;) {
        FV_TRY(fv__xlsx_xml_next(&r->xml, &found, error));
        if (!found) return fv_fail(error, FV_ERROR_INPUT, "%s ends within row %lld", r->base.path, (long long)r->row);
        if (fv__xlsx_xml_is(&r->xml, "/c")) return take_value(r, column, type, atoll(style), error);
        if (fv__xlsx_xml_is(&r->xml, "rPh") || fv__xlsx_xml_is(&r->xml, "/rPh")) phonetic = *r->xml.tag.name != '/';
        if (fv__xlsx_xml_is(&r->xml, "/v") || (fv__xlsx_xml_is(&r->xml, "/t") && !phonetic))
            fv__xlsx_xml_text(&r->xml, &r->content);
    }
}

/* ---------------------------------------------------------------- rows */

static bool holds_something(const reader *r) {
    for (int i = 0; i < r->nvalues; i++)
        if (r->values[i].place >= 0) return true;
    return false;
}

/* One that begins at the current tag. */
static fv_status take_row(reader *r, fv_error *error) {
    char name[16];
    bool found;
    int  column = -1;
    r->nvalues = 0;
    fv__bytes_clear(&r->text);
    r->row = fv__xlsx_xml_attribute(&r->xml, "r", name, sizeof name) ? atoll(name) : r->row + 1;
    if (fv__xlsx_xml_closed(&r->xml)) return FV_OK;
    for (;;) {
        FV_TRY(fv__xlsx_xml_next(&r->xml, &found, error));
        if (!found) return fv_fail(error, FV_ERROR_INPUT, "%s ends within row %lld", r->base.path, (long long)r->row);
        if (fv__xlsx_xml_is(&r->xml, "/row")) return FV_OK;
        if (!fv__xlsx_xml_is(&r->xml, "c")) continue;
        column = fv__xlsx_xml_attribute(&r->xml, "r", name, sizeof name) ? column_of(name) : column + 1;
        if (column < 0 || column >= MOST_CELLS)
            return fv_fail(error, FV_ERROR_INPUT, "%s, row %lld: a cell of no column", r->base.path, (long long)r->row);
        FV_TRY(take_cell(r, column, error));
    }
}

/* The next row that holds anything; there: false behind the last. */
static fv_status next_row(reader *r, bool *there, fv_error *error) {
    for (;;) {
        FV_TRY(fv__xlsx_xml_next(&r->xml, there, error));
        if (!*there || fv__xlsx_xml_is(&r->xml, "/sheetData")) break;
        if (fv__xlsx_xml_is(&r->xml, "sheetData")) r->within = true;
        if (!r->within || !fv__xlsx_xml_is(&r->xml, "row")) continue;
        FV_TRY(take_row(r, error));
        if (holds_something(r)) return FV_OK;
    }
    *there = false;
    return FV_OK;
}

static fv_status begin(reader *r, fv_error *error) {
    fv__xlsx_xml_close(&r->xml);
    r->within = false;
    r->row = 0;
    return fv__xlsx_xml_open(&r->xml, &r->book.zip, &r->sheet->member, error);
}

static const char *value_at(const reader *r, int column) {
    int at = r->first + column;
    return at < r->nvalues && r->values[at].place >= 0 ? (const char *)r->text.data + r->values[at].place : NULL;
}

/* The columns of the table: from the first name to the last. */
static fv_status take_header(reader *r, bool *there, fv_error *error) {
    FV_TRY(next_row(r, there, error));
    if (!*there)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the sheet \"%s\" is empty, so its columns are unknown", r->base.path,
                       r->sheet->name);
    while (r->values[r->first].place < 0) r->first++;
    while (r->values[r->nvalues - 1].place < 0) r->nvalues--;
    for (int c = r->first; c < r->nvalues; c++) {
        const char *name = value_at(r, c - r->first);
        FV_TRY(fv__table_add_column(&r->base.type, name ? name : "", r->base.path, error));
    }
    return FV_OK;
}

static fv_status check_outside(const reader *r, fv_error *error) {
    for (int c = 0; c < r->nvalues; c++) {
        char name[8];
        if (r->values[c].place < 0 || (c >= r->first && c < r->first + r->base.type.ncolumns)) continue;
        name_column(c, name);
        return fv_fail(error, FV_ERROR_INPUT, "%s: cell %s%lld of \"%s\" has a value and its column no name in the first row",
                       r->base.path, name, (long long)r->row, r->sheet->name);
    }
    return FV_OK;
}

static fv_status look_through(reader *r, fv_error *error) {
    fv_typing typing[FV_MAX_COLUMNS] = { 0 };
    bool      there;
    FV_TRY(begin(r, error));
    FV_TRY(take_header(r, &there, error));
    for (;; r->base.nrows++) {
        FV_TRY(next_row(r, &there, error));
        if (!there) break;
        FV_TRY(check_outside(r, error));
        for (int c = 0; c < r->base.type.ncolumns; c++) {
            const char *text = value_at(r, c);
            fv__typing_look(&typing[c], text, text && r->values[r->first + c].numeric);
        }
    }
    for (int c = 0; c < r->base.type.ncolumns; c++) r->base.type.column[c].kind = fv__typing_kind(&typing[c]);
    r->remaining = r->base.nrows;
    FV_TRY(begin(r, error));
    return next_row(r, &there, error); /* the names */
}

static fv_status next_rows(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    reader *r = (reader *)source;
    bool    there;
    fv__batch_clear(&r->batch);
    for (; r->remaining && !fv__batch_full(&r->batch); r->remaining--) {
        FV_TRY(next_row(r, &there, error));
        if (!there) return fv_fail(error, FV_ERROR_INPUT, "%s was changed while it was read", r->base.path);
        for (int c = 0; c < r->base.type.ncolumns; c++) fv__batch_add(&r->batch, r->base.type.column[c].kind, value_at(r, c));
        fv__batch_end_row(&r->batch);
    }
    *nrows = r->batch.nrows;
    *cells = fv__batch_finish(&r->batch, &r->base.type);
    return FV_OK;
}

/* ---------------------------------------------------------------- opening */

static void close_reader(fv_table_reader *base) {
    reader *r = (reader *)base;
    fv__xlsx_xml_close(&r->xml);
    fv__xlsx_book_release(&r->book);
    if (r->fd >= 0) close(r->fd);
    fv__bytes_release(&r->text);
    fv__bytes_release(&r->content);
    fv__batch_release(&r->batch);
    free(r->values);
    free(base->path);
    free(r);
}

static fv_status open_file(const char *path, int *fd, int64_t *size, fv_error *error) {
    fv_file_id id;
    FV_TRY(fv__file_identify(path, &id, error));
    FV_TRY(fv__file_open_read(path, fd, error));
    *size = id.size;
    fv_status fetched = fv__remote_fetch(*fd, 0, SIZE_MAX >> 1, error); /* it is read as a stream */
    if (fetched != FV_OK) close(*fd);
    return fetched;
}

/* By name; without one, the sheet that is called as the file is, or the first. */
static fv_status choose_sheet(reader *r, const char *wanted, fv_error *error) {
    char     stem[256];
    fv_bytes names = { 0 };
    fv__path_stem(r->base.path, stem, sizeof stem);
    bool asked = wanted && *wanted;
    for (int64_t i = 0; i < fv__xlsx_sheet_count(&r->book); i++) {
        const fv_xlsx_sheet *sheet = fv__xlsx_sheet_at(&r->book, i);
        if (!strcmp(sheet->name, asked ? wanted : stem)) r->sheet = sheet;
        fv__bytes_printf(&names, "%s%s", i ? ", " : "", sheet->name);
    }
    if (!r->sheet && !asked) r->sheet = fv__xlsx_sheet_at(&r->book, 0);
    if (!r->sheet)
        fv_fail(error, FV_ERROR_USAGE, "%s has no sheet \"%s\"; it has %.400s", r->base.path, wanted, (char *)names.data);
    fv__bytes_release(&names);
    return r->sheet ? FV_OK : FV_ERROR_USAGE;
}

static fv_status open_reader(const char *path, const char *table, fv_table_reader **out, fv_error *error) {
    int     fd;
    int64_t size;
    FV_TRY(open_file(path, &fd, &size, error));
    reader *r = fv__calloc(sizeof *r);
    r->base = (fv_table_reader){ .source.next = next_rows, .format = &fv_table_xlsx, .path = fv__strdup(path) };
    r->fd = fd;
    r->values = fv__calloc(MOST_CELLS * sizeof *r->values);
    fv_status status = fv__xlsx_book_open(&r->book, fd, size, r->base.path, error);
    if (status == FV_OK) status = choose_sheet(r, table, error);
    if (status == FV_OK) status = look_through(r, error);
    if (status != FV_OK)
        close_reader(&r->base);
    else
        *out = &r->base;
    return status;
}

static fv_status tables(const char *path, fv_bytes *names, fv_error *error) {
    fv_xlsx_book book = { 0 };
    int          fd;
    int64_t      size;
    FV_TRY(open_file(path, &fd, &size, error));
    fv_status status = fv__xlsx_book_sheets(&book, fd, size, path, error);
    for (int64_t i = 0; i < fv__xlsx_sheet_count(&book) && status == FV_OK; i++) {
        const char *name = fv__xlsx_sheet_at(&book, i)->name;
        fv__bytes_append(names, name, strlen(name) + 1);
    }
    fv__xlsx_book_release(&book);
    close(fd);
    return status;
}

const fv_table_format fv_table_xlsx = {
    .name = "xlsx",
    .extensions = "xlsx xlsm",
    .brief = "sheets of an Excel workbook; `path` names one, otherwise it is the first",
    .open = open_reader,
    .close = close_reader,
    .tables = tables,
};
