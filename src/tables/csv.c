/* CSV and TSV: text with a header line, quoted as RFC 4180 says, lines ended by a newline, numbers as short as they read back
 * exactly, a missing number empty. TSV differs in the separator alone.
 *
 * Appending copies the old file and adds rows, and the whole is renamed into place by the caller. So that the same result is not
 * added twice, a hidden file beside the table, .NAME.fovea-keys, notes for each append "KEY OFFSET LENGTH HASH": which
 * result, where its rows begin, how long they are, what they hash to. The note is written before the rename and believed only
 * if those bytes of the table still have that hash; thus a run killed between the two adds its rows when it is repeated, and
 * rows that somebody edited or removed count as not there. */
#include "base/number.h"
#include "op/format.h"
#include "tables/csv_read.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER = 1 << 20, MOST_NOTES = 64 << 20, MOST_HEADER = 1 << 16 };

/* ---------------------------------------------------------------- writing text */

typedef struct output {
    const char *path;
    char        separator;
    int         fd;
    int64_t     offset; /* bytes in the file */
    fv_bytes    buffer; /* not there yet */
    fv_hasher   hasher; /* of the rows */
} output;

static fv_status flush(output *o, fv_error *error) {
    FV_TRY(fv__file_write_at(o->fd, o->buffer.data, o->buffer.size, o->offset, o->path, error));
    o->offset += (int64_t)o->buffer.size;
    fv__bytes_clear(&o->buffer);
    return FV_OK;
}

static void put_text(fv_bytes *out, char separator, const char *text) {
    if (!text) return;
    size_t length = strlen(text);
    if (length && !strpbrk(text, separator == ',' ? "\",\r\n" : "\"\t\r\n") && text[0] != ' ' && text[length - 1] != ' ') {
        fv__bytes_append(out, text, length);
        return;
    }
    fv__bytes_append(out, "\"", 1);
    for (const char *c = text; *c; c++) fv__bytes_append(out, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    fv__bytes_append(out, "\"", 1);
}

static void put_cell(fv_bytes *out, char separator, fv_column_kind kind, fv_cell cell) {
    char text[FV_NUMBER_SIZE];
    if (kind == FV_COLUMN_TEXT)
        put_text(out, separator, cell.text);
    else if (kind == FV_COLUMN_INTEGER)
        fv__bytes_append(out, text, (size_t)fv__integer_format(cell.integer, text));
    else if (kind == FV_COLUMN_NATURAL)
        fv__bytes_append(out, text, (size_t)fv__natural_format(cell.natural, text));
    else if (cell.real == cell.real)
        fv__bytes_append(out, text, (size_t)fv__real_format(cell.real, text));
}

static void put_header(fv_bytes *out, char separator, const fv_table_type *type) {
    for (int c = 0; c < type->ncolumns; c++) {
        if (c) fv__bytes_append(out, &separator, 1);
        put_text(out, separator, type->column[c].name);
    }
    fv__bytes_append(out, "\n", 1);
}

static void put_row(fv_bytes *out, char separator, const fv_table_type *type, const fv_cell *row) {
    size_t start = out->size;
    for (int c = 0; c < type->ncolumns; c++) {
        if (c) fv__bytes_append(out, &separator, 1);
        put_cell(out, separator, type->column[c].kind, row[c]);
    }
    if (type->ncolumns == 1 && out->size == start) fv__bytes_append(out, "\"\"", 2); /* an empty line would be no row */
    fv__bytes_append(out, "\n", 1);
}

static fv_status put_rows(output *o, const fv_table_type *type, fv_table_source *source, fv_error *error) {
    const fv_cell *cells;
    int64_t        nrows;
    for (;;) {
        FV_TRY(source->next(source, &cells, &nrows, error));
        if (!nrows) return FV_OK;
        for (int64_t r = 0; r < nrows; r++) {
            size_t before = o->buffer.size;
            put_row(&o->buffer, o->separator, type, cells + r * type->ncolumns);
            fv__hasher_add(&o->hasher, o->buffer.data + before, o->buffer.size - before);
            if (o->buffer.size >= BUFFER) FV_TRY(flush(o, error));
        }
    }
}

/* ---------------------------------------------------------------- what is there already */

/* One field of the header into name; gives what follows its separator, NULL after the last field. */
static const char *next_field(const char *p, char separator, char *name, size_t size) {
    size_t n = 0;
    bool   quoted = *p == '"';
    for (p += quoted; *p; p++) {
        if (quoted && *p == '"' && *++p != '"') break;
        if (!quoted && (*p == separator || *p == '\r' || *p == '\n')) break;
        if (n + 1 < size) name[n++] = *p;
    }
    name[n] = 0;
    return *p == separator ? p + 1 : NULL;
}

static fv_status check_header(const char *path, char separator, const char *header, const fv_table_type *type, fv_error *error) {
    char        name[256];
    const char *p = strncmp(header, "\xef\xbb\xbf", 3) ? header : header + 3;
    for (int c = 0; c < type->ncolumns; c++) {
        if (!p)
            return fv_fail(error, FV_ERROR_USAGE, "append: %s has %d columns and the new rows have %d", path, c, type->ncolumns);
        p = next_field(p, separator, name, sizeof name);
        if (strcmp(name, type->column[c].name))
            return fv_fail(error, FV_ERROR_USAGE, "append: column %d of %s is \"%.60s\", and of the new rows \"%s\"", c + 1, path,
                           name, type->column[c].name);
    }
    if (p) return fv_fail(error, FV_ERROR_USAGE, "append: %s has more columns than the %d of the new rows", path, type->ncolumns);
    return FV_OK;
}

/* Copies the old file behind the output's start, checks its header, and ends its last line. */
static fv_status copy_open(output *o, int from, int64_t size, const char *path, const fv_table_type *type, fv_error *error) {
    for (int64_t at = 0; at < size;) {
        size_t n = (size_t)FV_MIN(size - at, BUFFER);
        FV_TRY(fv__file_read_at(from, fv__bytes_append(&o->buffer, NULL, n), n, at, path, error));
        if (at == 0) {
            char *header = fv__alloc(MOST_HEADER + 1);
            snprintf(header, MOST_HEADER + 1, "%.*s", (int)n, (const char *)o->buffer.data);
            fv_status status = check_header(path, o->separator, header, type, error);
            free(header);
            FV_TRY(status);
        }
        at += (int64_t)n;
        if (at == size && o->buffer.data[n - 1] != '\n') fv__bytes_append(&o->buffer, "\n", 1);
        FV_TRY(flush(o, error));
    }
    return FV_OK;
}

static fv_status copy(output *o, const char *path, const fv_table_type *type, fv_error *error) {
    fv_file_id id;
    int        from;
    FV_TRY(fv__file_identify(path, &id, error));
    FV_TRY(fv__file_open_read(path, &from, error));
    fv_status status = copy_open(o, from, id.size, path, type, error);
    fv_status closed = fv__file_close(from, path, status == FV_OK ? error : NULL);
    return status == FV_OK ? closed : status;
}

/* ---------------------------------------------------------------- notes */

static char *notes_path(const char *path) {
    const char *name = fv__path_name(path);
    return fv__sprintf("%.*s.%s.fovea-keys", (int)(name - path), path, name);
}

/* Whether the bytes of the copied file have the hash that the note tells. */
static fv_status note_holds(const output *o, int64_t offset, int64_t length, const char *hash, bool *holds, fv_error *error) {
    *holds = false;
    if (offset < 0 || length < 0 || length > o->offset || offset > o->offset - length) return FV_OK;
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    char     *piece = fv__alloc(BUFFER), text[33];
    fv_status status = FV_OK;
    for (int64_t at = 0; at < length && status == FV_OK; at += BUFFER) {
        size_t n = (size_t)FV_MIN(length - at, BUFFER);
        status = fv__file_read_at(o->fd, piece, n, offset + at, o->path, error);
        if (status == FV_OK) fv__hasher_add(&hasher, piece, n);
    }
    free(piece);
    fv__hash_format(fv__hasher_finish(&hasher), text);
    *holds = status == FV_OK && !strcmp(text, hash);
    return status;
}

/* Looks a key up in the notes; there: its rows are in the copied file. others gets the notes of other keys. */
static fv_status look_up(const output *o, const char *notes, const char *key, bool *there, fv_bytes *others, fv_error *error) {
    *there = false;
    if (!fv__file_exists(notes)) return FV_OK;
    fv_bytes  text = { 0 };
    fv_status status = fv__file_read_all(notes, MOST_NOTES, &text, error);
    char     *save = NULL;
    for (char *line = status == FV_OK ? strtok_r((char *)text.data, "\n", &save) : NULL; line && status == FV_OK;
         line = strtok_r(NULL, "\n", &save)) {
        char    noted[33], hash[33];
        int64_t offset, length;
        if (sscanf(line, "%32s %" SCNd64 " %" SCNd64 " %32s", noted, &offset, &length, hash) != 4) continue;
        if (strcmp(noted, key))
            fv__bytes_printf(others, "%s\n", line);
        else
            status = note_holds(o, offset, length, hash, there, error);
    }
    fv__bytes_release(&text);
    return status;
}

static fv_status append(output *o, const char *final, const fv_table_type *type, const fv_table_options *options,
                        fv_table_source *source, fv_error *error) {
    char     *notes = notes_path(final), key[33], hash[33];
    fv_bytes  others = { 0 };
    bool      there = false;
    fv_status status = FV_OK;
    fv__hash_format(options->key, key);
    if (fv__file_exists(final)) status = copy(o, final, type, error);
    if (status == FV_OK) status = look_up(o, notes, key, &there, &others, error);
    if (status == FV_OK && !there) {
        if (!o->offset) put_header(&o->buffer, o->separator, type);
        int64_t start = o->offset + (int64_t)o->buffer.size;
        status = put_rows(o, type, source, error);
        if (status == FV_OK) status = flush(o, error);
        fv__hash_format(fv__hasher_finish(&o->hasher), hash);
        fv__hasher_init(&o->hasher);
        fv__bytes_printf(&others, "%s %" PRId64 " %" PRId64 " %s\n", key, start, o->offset - start, hash);
        if (status == FV_OK) status = fv__file_write_all(notes, others.data, others.size, true, error);
    }
    fv__bytes_release(&others);
    free(notes);
    return status;
}

/* ---------------------------------------------------------------- the format */

static fv_status write_table(output *o, const char *existing, const fv_table_type *type, const fv_table_options *options,
                             fv_table_source *source, fv_error *error) {
    if (options->append && existing) return append(o, existing, type, options, source, error);
    put_header(&o->buffer, o->separator, type);
    FV_TRY(put_rows(o, type, source, error));
    return flush(o, error);
}

static fv_status write_file(const char *path, char separator, const char *existing, const fv_table_type *type,
                            const fv_table_options *options, fv_table_source *source, fv_error *error) {
    output o = { .path = path, .separator = separator };
    FV_TRY(fv__file_open_write(path, &o.fd, error));
    fv__hasher_init(&o.hasher);
    fv_status status = write_table(&o, existing, type, options, source, error);
    fv_status closed = fv__file_close(o.fd, path, status == FV_OK ? error : NULL);
    fv__hasher_finish(&o.hasher);
    fv__bytes_release(&o.buffer);
    return status == FV_OK ? closed : status;
}

static fv_status csv_write(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                           fv_table_source *source, fv_error *error) {
    return write_file(path, ',', existing, type, options, source, error);
}

fv_status fv__tsv_write(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                        fv_table_source *source, fv_error *error) {
    return write_file(path, '\t', existing, type, options, source, error);
}

const fv_table_format fv_table_csv = {
    .name = "csv",
    .extensions = "csv",
    .brief = "text, one row on each line, values separated by commas",
    .write = csv_write,
    .open = fv__csv_open,
    .close = fv__csv_close,
};
