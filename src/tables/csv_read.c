/* CSV read in order: a first pass finds the columns and what they hold, a second gives the rows.
 *
 * Values are separated by commas, semicolons or tabs, whichever the header line has most of (in a .tsv file always by tabs);
 * quotes as RFC 4180 says, lines ended by \n or \r\n. A value that is not there (nothing between two commas; NA or nan among
 * numbers) is missing. */
#include "tables/csv_read.h"
#include "tables/typed_rows.h"
#include <stdlib.h>
#include <unistd.h>

extern const fv_table_format fv_table_csv, fv_table_tsv;
enum { BUFFER = 1 << 18, MOST_RECORD = 16 << 20 };

typedef struct {
    fv_table_reader base;
    int             fd;
    int64_t         size, position; /* of the file; what was read of it */
    uint8_t        *buffer;
    size_t          at, have;
    int64_t         line; /* that the next character is on, from 1 */
    char            separator;
    fv_bytes        record; /* the texts of one line, each ended by NUL */
    int             nfields;
    struct {
        size_t start;
        bool   quoted;
    } field[FV_MAX_COLUMNS + 1];
    int64_t  remaining; /* rows not yet given */
    fv_batch batch;
} reader;

/* ---------------------------------------------------------------- characters */

static fv_status peek(reader *r, int *c, fv_error *error) {
    if (r->at == r->have) {
        r->at = 0;
        r->have = (size_t)FV_MIN(r->size - r->position, BUFFER);
        if (r->have) FV_TRY(fv__file_read_at(r->fd, r->buffer, r->have, r->position, r->base.path, error));
        r->position += (int64_t)r->have;
    }
    *c = r->at < r->have ? r->buffer[r->at] : -1;
    return FV_OK;
}

static void rewind_file(reader *r) {
    r->at = r->have = 0;
    r->position = 0;
    r->line = 1;
}

static fv_status wrong(const reader *r, int64_t line, const char *why, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s, line %lld: %s", r->base.path, (long long)line, why);
}

/* ---------------------------------------------------------------- records */

static fv_status add_character(reader *r, int c, int64_t line, fv_error *error) {
    char byte = (char)c;
    if (!c) return wrong(r, line, "a byte 0, so this is no text", error);
    if (r->record.size >= MOST_RECORD) return wrong(r, line, "longer than 16 MB; is a quote missing?", error);
    fv__bytes_append(&r->record, &byte, 1);
    return FV_OK;
}

/* The inside of quotes, up to and with the closing one. */
static fv_status quoted_text(reader *r, int64_t line, fv_error *error) {
    int c;
    for (;;) {
        FV_TRY(peek(r, &c, error));
        if (c < 0) return wrong(r, line, "a quote that is opened here is never closed", error);
        r->at++;
        if (c == '\n') r->line++;
        if (c == '"') {
            FV_TRY(peek(r, &c, error));
            if (c != '"') return FV_OK;
            r->at++;
        }
        FV_TRY(add_character(r, c, line, error));
    }
}

static fv_status next_field(reader *r, int64_t line, bool *last, fv_error *error) {
    int c;
    if (r->nfields <= FV_MAX_COLUMNS) {
        r->field[r->nfields].start = r->record.size;
        r->field[r->nfields].quoted = false;
    }
    for (bool first = true;; first = false) {
        FV_TRY(peek(r, &c, error));
        if (c >= 0) r->at++;
        if (c == '\n') r->line++;
        if (c == '"' && first) {
            if (r->nfields <= FV_MAX_COLUMNS) r->field[r->nfields].quoted = true;
            FV_TRY(quoted_text(r, line, error));
        } else if (c == '\r') {
            FV_TRY(peek(r, &c, error));
            if (c == '\n') continue;
            FV_TRY(add_character(r, '\r', line, error));
        } else if (c < 0 || c == '\n' || c == r->separator) {
            *last = c != r->separator;
            fv__bytes_append(&r->record, "", 1);
            if (r->nfields <= FV_MAX_COLUMNS) r->nfields++;
            return FV_OK;
        } else
            FV_TRY(add_character(r, c, line, error));
    }
}

/* The next line that is not empty; nfields 0 at the end. line: where it begins. */
static fv_status next_record(reader *r, int64_t *line, fv_error *error) {
    int c;
    do {
        bool last = false;
        r->nfields = 0;
        fv__bytes_clear(&r->record);
        *line = r->line;
        FV_TRY(peek(r, &c, error));
        if (c < 0) return FV_OK;
        while (!last) FV_TRY(next_field(r, *line, &last, error));
    } while (r->nfields == 1 && !r->field[0].quoted && r->record.size == 1);
    return FV_OK;
}

static const char *text_of(const reader *r, int c) {
    const char *text = (const char *)r->record.data + r->field[c].start;
    return *text || r->field[c].quoted ? text : NULL;
}

/* ---------------------------------------------------------------- the first pass */

static fv_status find_separator(reader *r, fv_error *error) {
    static const char candidates[] = ",;\t";
    int               c, counts[3] = { 0 };
    bool              quoted = false;
    FV_TRY(peek(r, &c, error));
    for (size_t i = 0; i < r->have && (quoted || r->buffer[i] != '\n'); i++) {
        if (r->buffer[i] == '"') quoted = !quoted;
        for (int k = 0; k < 3; k++) counts[k] += !quoted && r->buffer[i] == candidates[k];
    }
    int best = 0;
    for (int k = 1; k < 3; k++)
        if (counts[k] > counts[best]) best = k;
    r->separator = r->base.format == &fv_table_tsv ? '\t' : candidates[best];
    if (r->have >= 3 && !memcmp(r->buffer, "\xef\xbb\xbf", 3)) r->at = 3;
    return FV_OK;
}

static fv_status read_header(reader *r, fv_error *error) {
    int64_t line;
    rewind_file(r);
    FV_TRY(find_separator(r, error));
    FV_TRY(next_record(r, &line, error));
    if (!r->nfields)
        return fv_fail(error, FV_ERROR_INPUT,
                       "%s: the file is empty; a line with the names of the columns is "
                       "missing",
                       r->base.path);
    return FV_OK;
}

static fv_status add_columns(reader *r, fv_error *error) {
    for (int c = 0; c < r->nfields; c++)
        FV_TRY(fv__table_add_column(&r->base.type, (const char *)r->record.data + r->field[c].start, r->base.path, error));
    return FV_OK;
}

static fv_status look_through(reader *r, fv_error *error) {
    fv_typing typing[FV_MAX_COLUMNS] = { 0 };
    int64_t   line;
    FV_TRY(read_header(r, error));
    FV_TRY(add_columns(r, error));
    for (;; r->base.nrows++) {
        FV_TRY(next_record(r, &line, error));
        if (!r->nfields) break;
        if (r->nfields != r->base.type.ncolumns)
            return fv_fail(error, FV_ERROR_INPUT, "%s, line %lld: %s%d values, and the header names %d columns", r->base.path,
                           (long long)line, r->nfields > FV_MAX_COLUMNS ? "more than " : "", FV_MIN(r->nfields, FV_MAX_COLUMNS),
                           r->base.type.ncolumns);
        for (int c = 0; c < r->nfields; c++) fv__typing_look(&typing[c], text_of(r, c), true);
    }
    for (int c = 0; c < r->base.type.ncolumns; c++) r->base.type.column[c].kind = fv__typing_kind(&typing[c]);
    r->remaining = r->base.nrows;
    return read_header(r, error);
}

/* ---------------------------------------------------------------- the second pass */

static fv_status next_rows(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    reader *r = (reader *)source;
    int64_t line;
    fv__batch_clear(&r->batch);
    for (; r->remaining && !fv__batch_full(&r->batch); r->remaining--) {
        FV_TRY(next_record(r, &line, error));
        if (r->nfields != r->base.type.ncolumns) return wrong(r, line, "the file was changed while it was read", error);
        for (int c = 0; c < r->nfields; c++) fv__batch_add(&r->batch, r->base.type.column[c].kind, text_of(r, c));
        fv__batch_end_row(&r->batch);
    }
    *nrows = r->batch.nrows;
    *cells = fv__batch_finish(&r->batch, &r->base.type);
    return FV_OK;
}

void fv__csv_close(fv_table_reader *base) {
    reader *r = (reader *)base;
    if (r->fd >= 0) close(r->fd);
    fv__bytes_release(&r->record);
    fv__batch_release(&r->batch);
    free(r->buffer);
    free(base->path);
    free(r);
}

static fv_status open_file(const fv_table_format *format, const char *path, const char *table, fv_table_reader **out,
                           fv_error *error) {
    fv_file_id id;
    if (table && *table)
        return fv_fail(error, FV_ERROR_USAGE, "%s: a %s file holds one table, and no \"%s\"", path,
                       format == &fv_table_tsv ? "TSV" : "CSV", table);
    FV_TRY(fv__file_identify(path, &id, error));
    reader *r = fv__calloc(sizeof *r);
    r->base = (fv_table_reader){ .source.next = next_rows, .format = format, .path = fv__strdup(path) };
    r->size = id.size;
    r->buffer = fv__alloc(BUFFER);
    r->fd = -1;
    fv_status status = fv__file_open_read(path, &r->fd, error);
    if (status == FV_OK) status = look_through(r, error);
    if (status != FV_OK)
        fv__csv_close(&r->base);
    else
        *out = &r->base;
    return status;
}

fv_status fv__csv_open(const char *path, const char *table, fv_table_reader **out, fv_error *error) {
    return open_file(&fv_table_csv, path, table, out, error);
}

fv_status fv__tsv_open(const char *path, const char *table, fv_table_reader **out, fv_error *error) {
    return open_file(&fv_table_tsv, path, table, out, error);
}
