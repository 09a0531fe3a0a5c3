/* JSON lines: a JSON object a line, a member a column. Reading takes objects with different members (what one lacks is missing)
 * and keeps objects and lists inside as their text; true and false become 1 and 0.
 An
 * infinite number is written as 1e999, which every reader takes for infinity; a missing one as null. */
#include "base/number.h"
#include "base/remote.h"
#include "tables/typed_rows.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const fv_table_format fv_table_jsonl;
enum { BUFFER = 1 << 18, MOST_LINE = 16 << 20, MOST_DEPTH = 64 };

/* ---------------------------------------------------------------- one line */

typedef struct {
    const char *path, *start, *at;
    int64_t     line;
    fv_bytes    name, value; /* each ended by NUL */
    bool        missing, numeric;
    fv_error   *error;
} scanner;

static fv_status wrong(const scanner *s, const char *why) {
    return fv_fail(s->error, FV_ERROR_INPUT, "%s, line %lld, character %lld: %s", s->path, (long long)s->line,
                   (long long)(s->at - s->start) + 1, why);
}

static void blanks(scanner *s) { s->at += strspn(s->at, " \t\r\n"); }

static bool hexadecimal(const char *p, uint32_t *value) {
    char digits[5] = { 0 };
    if (strnlen(p, 4) < 4 || strspn(p, "0123456789abcdefABCDEF") < 4) return false;
    memcpy(digits, p, 4);
    *value = (uint32_t)strtoul(digits, NULL, 16);
    return true;
}

static fv_status escape(scanner *s, fv_bytes *out) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char       *letter = *s->at ? strchr(letters, *s->at) : NULL;
    uint32_t          c, low;
    if (letter) {
        fv__bytes_append(out, &meant[letter - letters], 1);
        s->at++;
        return FV_OK;
    }
    if (*s->at != 'u' || !hexadecimal(s->at + 1, &c)) return wrong(s, "an unknown escape after a backslash");
    s->at += 5;
    if (c >= 0xd800 && c < 0xdc00 && s->at[0] == '\\' && s->at[1] == 'u' && hexadecimal(s->at + 2, &low) && low >= 0xdc00 &&
        low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        s->at += 6;
    }
    if (!c) return wrong(s, "a character 0 in a text");
    fv__put_utf8(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
    return FV_OK;
}

static fv_status string(scanner *s, fv_bytes *out) {
    fv__bytes_clear(out);
    for (s->at++; *s->at != '"';) {
        if (!*s->at) return wrong(s, "a text without its closing quote");
        if (*s->at != '\\') {
            fv__bytes_append(out, s->at++, 1);
            continue;
        }
        s->at++;
        FV_TRY(escape(s, out));
    }
    s->at++;
    fv__bytes_append(out, "", 1);
    return FV_OK;
}

/* An object or a list inside, kept as it is written. Without recursion, so that depth costs nothing. */
static fv_status nested(scanner *s) {
    const char *start = s->at;
    int         depth = 0;
    do {
        if (!*s->at) return wrong(s, "a bracket is not closed");
        if (*s->at == '{' || *s->at == '[') depth++;
        if (*s->at == '}' || *s->at == ']') depth--;
        if (depth > MOST_DEPTH) return wrong(s, "objects and lists are nested too deeply");
        if (*s->at == '"')
            for (s->at++; *s->at && *s->at != '"'; s->at++)
                if (*s->at == '\\' && s->at[1]) s->at++;
        if (*s->at) s->at++;
    } while (depth);
    fv__bytes_clear(&s->value);
    fv__bytes_append(&s->value, start, (size_t)(s->at - start));
    fv__bytes_append(&s->value, "", 1);
    return FV_OK;
}

static fv_status plain(scanner *s) {
    size_t n = strcspn(s->at, ",} \t\r\n");
    char   word[64];
    snprintf(word, sizeof word, "%.*s", (int)FV_MIN(n, sizeof word - 1), s->at);
    const char *text = !strcmp(word, "true") ? "1" : !strcmp(word, "false") ? "0" : word;
    bool        number = *word && strspn(word, "0123456789+-.eE") == strlen(word) && n < sizeof word;
    s->missing = !strcmp(word, "null") || !strcmp(word, "NaN"); /* what some programs write for it */
    s->numeric = true;
    if (!s->missing && text == word && !number) return wrong(s, "a number, a text, true, false or null belongs here");
    s->at += n;
    fv__bytes_clear(&s->value);
    fv__bytes_append(&s->value, text, strlen(text) + 1);
    return FV_OK;
}

/* The next member; there: false after the last. */
static fv_status next_member(scanner *s, bool first, bool *there) {
    blanks(s);
    if (*s->at == '}') {
        s->at++;
        blanks(s);
        *there = false;
        return *s->at ? wrong(s, "something stands behind the object") : FV_OK;
    }
    if (!first && *s->at++ != ',') return s->at--, wrong(s, "a comma or } belongs here");
    blanks(s);
    if (*s->at != '"') return wrong(s, "the name of a member in quotes belongs here");
    FV_TRY(string(s, &s->name));
    blanks(s);
    if (*s->at != ':') return wrong(s, "a colon belongs here");
    s->at++;
    blanks(s);
    s->missing = s->numeric = false;
    *there = true;
    if (*s->at == '"') return string(s, &s->value);
    return *s->at == '{' || *s->at == '[' ? nested(s) : plain(s);
}

static fv_status begin_line(scanner *s, const char *text) {
    s->start = s->at = text;
    blanks(s);
    if (*s->at != '{') return wrong(s, "a line must be a JSON object, beginning with {");
    s->at++;
    return FV_OK;
}

/* ---------------------------------------------------------------- reading */

typedef struct {
    fv_table_reader base;
    FILE           *file;
    char           *text; /* of the line */
    size_t          capacity;
    scanner         scanner;
    int64_t         remaining;
    fv_bytes        values; /* texts of one row */
    fv_batch        batch;
} reader;

/* The next line that is not empty; there: false at the end. */
static fv_status next_line(reader *r, bool *there, fv_error *error) {
    for (;;) {
        ssize_t length = getline(&r->text, &r->capacity, r->file);
        r->scanner.line++;
        r->scanner.error = error;
        *there = length >= 0;
        if (length < 0) return ferror(r->file) ? fv_fail(error, FV_ERROR_IO, "cannot read %s", r->base.path) : FV_OK;
        r->scanner.start = r->scanner.at = r->text;
        if (length > MOST_LINE) return wrong(&r->scanner, "the line is longer than 16 MB");
        if (memchr(r->text, 0, (size_t)length)) return wrong(&r->scanner, "a byte 0, so this is no text");
        if (r->text[strspn(r->text, " \t\r\n")]) return begin_line(&r->scanner, r->text);
    }
}

static int find_column(const fv_table_type *type, const char *name) {
    for (int c = 0; c < type->ncolumns; c++)
        if (!strcmp(type->column[c].name, name)) return c;
    return -1;
}

/* A column that appears late is missing in the rows before. */
static fv_status look_at_row(reader *r, fv_typing *typing, fv_error *error) {
    scanner       *s = &r->scanner;
    fv_table_type *type = &r->base.type;
    bool           seen[FV_MAX_COLUMNS] = { false }, there;
    for (bool first = true;; first = false) {
        FV_TRY(next_member(s, first, &there));
        if (!there) break;
        int c = find_column(type, (char *)s->name.data);
        if (c < 0) {
            c = type->ncolumns;
            FV_TRY(fv__table_add_column(type, (char *)s->name.data, r->base.path, error));
            typing[c].missing = r->base.nrows > 0;
        }
        if (seen[c]) return wrong(s, "this member stands twice in the object");
        seen[c] = true;
        fv__typing_look(&typing[c], s->missing ? NULL : (char *)s->value.data, s->numeric);
    }
    for (int c = 0; c < type->ncolumns; c++)
        if (!seen[c]) typing[c].missing = true;
    return FV_OK;
}

static fv_status look_through(reader *r, fv_error *error) {
    fv_typing typing[FV_MAX_COLUMNS] = { 0 };
    bool      there;
    for (;; r->base.nrows++) {
        FV_TRY(next_line(r, &there, error));
        if (!there) break;
        FV_TRY(look_at_row(r, typing, error));
    }
    if (!r->base.nrows) return fv_fail(error, FV_ERROR_INPUT, "%s: the file is empty, so its columns are unknown", r->base.path);
    for (int c = 0; c < r->base.type.ncolumns; c++) r->base.type.column[c].kind = fv__typing_kind(&typing[c]);
    r->remaining = r->base.nrows;
    r->scanner.line = 0;
    rewind(r->file);
    return FV_OK;
}

static fv_status take_row(reader *r, fv_error *error) {
    const fv_table_type *type = &r->base.type;
    int64_t              place[FV_MAX_COLUMNS];
    bool                 there;
    FV_TRY(next_line(r, &there, error));
    if (!there) return fv_fail(error, FV_ERROR_INPUT, "%s was changed while it was read", r->base.path);
    for (int c = 0; c < type->ncolumns; c++) place[c] = -1;
    fv__bytes_clear(&r->values);
    for (bool first = true;; first = false) {
        FV_TRY(next_member(&r->scanner, first, &there));
        if (!there) break;
        int c = find_column(type, (char *)r->scanner.name.data);
        if (c < 0) return fv_fail(error, FV_ERROR_INPUT, "%s was changed while it was read", r->base.path);
        if (r->scanner.missing) continue;
        place[c] = (int64_t)r->values.size;
        fv__bytes_append(&r->values, r->scanner.value.data, r->scanner.value.size);
    }
    for (int c = 0; c < type->ncolumns; c++)
        fv__batch_add(&r->batch, type->column[c].kind, place[c] < 0 ? NULL : (const char *)r->values.data + place[c]);
    fv__batch_end_row(&r->batch);
    return FV_OK;
}

static fv_status next_rows(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    reader *r = (reader *)source;
    fv__batch_clear(&r->batch);
    for (; r->remaining && !fv__batch_full(&r->batch); r->remaining--) FV_TRY(take_row(r, error));
    *nrows = r->batch.nrows;
    *cells = fv__batch_finish(&r->batch, &r->base.type);
    return FV_OK;
}

static void close_reader(fv_table_reader *base) {
    reader *r = (reader *)base;
    if (r->file) fclose(r->file);
    fv__bytes_release(&r->scanner.name);
    fv__bytes_release(&r->scanner.value);
    fv__bytes_release(&r->values);
    fv__batch_release(&r->batch);
    free(r->text);
    free(base->path);
    free(r);
}

static fv_status open_reader(const char *path, const char *table, fv_table_reader **out, fv_error *error) {
    int fd;
    if (table && *table) return fv_fail(error, FV_ERROR_USAGE, "%s: JSON lines are one table, and no \"%s\"", path, table);
    FV_TRY(fv__file_open_read(path, &fd, error));
    fv_status fetched = fv__remote_fetch(fd, 0, SIZE_MAX >> 1, error); /* it is read as a stream */
    if (fetched != FV_OK) close(fd);
    FV_TRY(fetched);
    reader *r = fv__calloc(sizeof *r);
    r->base = (fv_table_reader){ .source.next = next_rows, .format = &fv_table_jsonl, .path = fv__strdup(path) };
    r->scanner.path = r->base.path;
    r->file = fdopen(fd, "r");
    fv_status status = look_through(r, error);
    if (status != FV_OK)
        close_reader(&r->base);
    else
        *out = &r->base;
    return status;
}

/* ---------------------------------------------------------------- writing */

typedef struct {
    const char *path;
    int         fd;
    int64_t     offset;
    fv_bytes    buffer;
} output;

static void put_text(fv_bytes *out, const char *text) {
    fv__bytes_append(out, "\"", 1);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fv__bytes_printf(out, "\\%c", *text);
        else if (*text == '\n')
            fv__bytes_append(out, "\\n", 2);
        else if ((unsigned char)*text < 0x20)
            fv__bytes_printf(out, "\\u%04x", *text);
        else
            fv__bytes_append(out, text, 1);
    }
    fv__bytes_append(out, "\"", 1);
}

static void put_cell(fv_bytes *out, fv_column_kind kind, fv_cell cell) {
    char text[FV_NUMBER_SIZE];
    if (kind == FV_COLUMN_TEXT && cell.text)
        put_text(out, cell.text);
    else if (kind == FV_COLUMN_TEXT || (kind == FV_COLUMN_REAL && cell.real != cell.real))
        fv__bytes_append(out, "null", 4);
    else if (kind == FV_COLUMN_INTEGER)
        fv__bytes_append(out, text, (size_t)fv__integer_format(cell.integer, text));
    else if (kind == FV_COLUMN_NATURAL)
        fv__bytes_append(out, text, (size_t)fv__natural_format(cell.natural, text));
    else if (cell.real - cell.real != 0)
        fv__bytes_printf(out, cell.real > 0 ? "1e999" : "-1e999");
    else
        fv__bytes_append(out, text, (size_t)fv__real_format(cell.real, text));
}

static fv_status flush(output *o, fv_error *error) {
    FV_TRY(fv__file_write_at(o->fd, o->buffer.data, o->buffer.size, o->offset, o->path, error));
    o->offset += (int64_t)o->buffer.size;
    fv__bytes_clear(&o->buffer);
    return FV_OK;
}

static fv_status put_rows(output *o, const fv_table_type *type, fv_table_source *source, fv_error *error) {
    const fv_cell *cells;
    int64_t        nrows;
    for (;;) {
        FV_TRY(source->next(source, &cells, &nrows, error));
        if (!nrows) return flush(o, error);
        for (int64_t r = 0; r < nrows; r++) {
            for (int c = 0; c < type->ncolumns; c++) {
                fv__bytes_append(&o->buffer, c ? ", " : "{", c ? 2 : 1);
                put_text(&o->buffer, type->column[c].name);
                fv__bytes_append(&o->buffer, ": ", 2);
                put_cell(&o->buffer, type->column[c].kind, cells[r * type->ncolumns + c]);
            }
            fv__bytes_append(&o->buffer, "}\n", 2);
            if (o->buffer.size >= BUFFER) FV_TRY(flush(o, error));
        }
    }
}

static fv_status jsonl_write(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                             fv_table_source *source, fv_error *error) {
    output o = { .path = path };
    (void)existing;
    if (options->append)
        return fv_fail(error, FV_ERROR_USAGE, "append = true: JSON lines cannot be appended to; CSV, Parquet and SQLite can");
    FV_TRY(fv__file_open_write(path, &o.fd, error));
    fv_status status = put_rows(&o, type, source, error);
    fv_status closed = fv__file_close(o.fd, path, status == FV_OK ? error : NULL);
    fv__bytes_release(&o.buffer);
    return status == FV_OK ? closed : status;
}

const fv_table_format fv_table_jsonl = {
    .name = "jsonl",
    .extensions = "jsonl ndjson",
    .brief = "text, one JSON object on each line",
    .write = jsonl_write,
    .open = open_reader,
    .close = close_reader,
};
