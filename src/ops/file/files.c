/* files: names of files from a list, for read. */
#include "base/remote.h"
#include "base/take.h"
#include "op/format.h"
#include "op/op.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *list, *column;
} files_params;

enum { SHOWN = 5 };

static const fv_param params[] = {
    FV_PARAM(files_params, list, .doc = "text file with one name in a line, or a table"),
    FV_PARAM(files_params, column, .def = "", .doc = "of a table: the column with the names; left out, the only one of texts"),
    FV_PARAM_END,
};

typedef struct reading {
    const files_params *p;
    fv_arena           *arena;
    fv_file_names      *out;
    int64_t             capacity, missing;
    fv_bytes            absent; /* the first of those that are not there */
} reading;

/* A relative name is looked for from the working folder, and then beside the list. place: its line or row. */
static fv_status add_name(reading *r, const char *name, const char *unit, int64_t place, fv_error *error) {
    if (!name || !name[strspn(name, " \t")])
        return fv_fail(error, FV_ERROR_INPUT, "%s %lld of %s names no file", unit, (long long)place, r->p->list);
    char *beside = *name == '/' || fv__is_remote(name) ? NULL : fv__path_beside(r->p->list, name);
    bool  here = fv__is_remote(name) || fv__file_exists(name), there = !here && beside && fv__file_exists(beside);
    if (!here && !there && r->missing++ < SHOWN)
        fv__bytes_printf(&r->absent, "%s%s (%s %lld)", r->absent.size ? ", " : "", name, unit, (long long)place);
    if (r->out->count == r->capacity) {
        const char **more = fv__arena_try(r->arena, (size_t)FV_MAX(64, 2 * r->capacity) * sizeof *more);
        if (!more) {
            free(beside);
            return fv__no_memory((size_t)(2 * r->capacity) * sizeof *more, error);
        }
        if (r->out->count) memcpy(more, r->out->name, (size_t)r->out->count * sizeof *more);
        r->capacity = FV_MAX(64, 2 * r->capacity);
        r->out->name = more;
    }
    r->out->name[r->out->count++] = fv__arena_strdup(r->arena, there ? beside : name);
    free(beside);
    return fv__memory_check(error);
}

/* ---------------------------------------------------------------- text files */

/* Empty lines and those that begin with # are no names. */
static fv_status from_lines(reading *r, fv_error *error) {
    fv_bytes bytes = { 0 };
    FV_TRY(fv__file_read_all(r->p->list, (size_t)1 << 30, &bytes, error));
    fv_status status = strlen((char *)bytes.data) == bytes.size
                           ? FV_OK
                           : fv_fail(error, FV_ERROR_INPUT, "%s is neither a text nor a table with names of files", r->p->list);
    char     *line = (char *)bytes.data;
    if (!strncmp(line, "\xef\xbb\xbf", 3)) line += 3;
    for (int64_t number = 1; status == FV_OK && *line; number++) {
        char  *next = line + strcspn(line, "\n");
        size_t length = (size_t)(next - line);
        if (*next) *next++ = 0;
        if (length && line[length - 1] == '\r') line[length - 1] = 0;
        if (*line != '#' && line[strspn(line, " \t")]) status = add_name(r, line, "line", number, error);
        line = next;
    }
    fv__bytes_release(&bytes);
    return status;
}

/* ---------------------------------------------------------------- tables */

static fv_status find_column(const files_params *p, const fv_table_type *type, int *column, fv_error *error) {
    fv_bytes names = { 0 };
    int      texts = 0, only = -1;
    *column = -1;
    for (int c = 0; c < type->ncolumns; c++) {
        const fv_column *one = &type->column[c];
        if (*p->column && !strcmp(one->name, p->column)) *column = c;
        if (one->kind != FV_COLUMN_TEXT) continue;
        fv__bytes_printf(&names, "%s%s", texts++ ? ", " : "", one->name);
        only = c;
    }
    if (!*p->column && texts == 1) *column = only;
    fv_status status = FV_OK;
    if (*column >= 0 && type->column[*column].kind != FV_COLUMN_TEXT)
        status = fv_fail(error, FV_ERROR_INPUT, "column %s of %s holds numbers and no names of files", p->column, p->list);
    else if (*column < 0 && *p->column)
        status = fv_fail(error, FV_ERROR_INPUT, "%s has no column %s; its columns of texts are: %s", p->list, p->column,
                         texts ? (char *)names.data : "none");
    else if (*column < 0)
        status = fv_fail(error, FV_ERROR_INPUT, "which column of %s holds the files? say so with column = \"...\"; it has: %s",
                         p->list, texts ? (char *)names.data : "none of texts");
    fv__bytes_release(&names);
    return status;
}

static fv_status take_rows(reading *r, fv_table_reader *reader, fv_error *error) {
    int            column;
    int64_t        n, row = 1;
    const fv_cell *cells;
    FV_TRY(find_column(r->p, &reader->type, &column, error));
    for (;;) {
        FV_TRY(reader->source.next(&reader->source, &cells, &n, error));
        if (!n) return FV_OK;
        for (int64_t i = 0; i < n; i++, row++)
            FV_TRY(add_name(r, cells[i * reader->type.ncolumns + column].text, "row", row, error));
    }
}

static fv_status from_table(reading *r, const fv_table_format *format, fv_error *error) {
    fv_table_reader *reader;
    FV_TRY(format->open(r->p->list, NULL, &reader, error));
    fv_status status = take_rows(r, reader, error);
    format->close(reader);
    return status;
}

/* ---------------------------------------------------------------- the list */

static fv_status list_files(const void *parameters, fv_arena *arena, fv_file_names *out, fv_error *error) {
    files_params p = *(const files_params *)parameters;
    if (!p.column) p.column = "";
    reading                r = { .p = &p, .arena = arena, .out = out };
    const fv_table_format *format = fv__table_format_of_file(p.list);
    if (!fv__file_exists(p.list)) return fv_fail(error, FV_ERROR_INPUT, "there is no file %s", p.list);
    if (!format && *p.column)
        return fv_fail(error, FV_ERROR_USAGE, "column = \"%s\": %s is no table, so it has no columns", p.column, p.list);
    fv_status status = format ? from_table(&r, format, error) : from_lines(&r, error);
    if (status == FV_OK && !out->count) status = fv_fail(error, FV_ERROR_INPUT, "%s names no files", p.list);
    if (status == FV_OK && r.missing)
        status = fv_fail(error, FV_ERROR_INPUT, "%lld of the %lld files that %s names %s not there: %s%s", (long long)r.missing,
                         (long long)out->count, p.list, r.missing == 1 ? "is" : "are", (char *)r.absent.data,
                         r.missing > SHOWN ? ", ..." : "");
    fv__bytes_release(&r.absent);
    return status;
}

const fv_op FV_OP(files) = {
    .name = "files",
    .family = "file",
    .brief = "names of files from a list, for read",
    .version = 1,
    .params = params,
    .params_size = sizeof(files_params),
    .result = FV_KIND_FILES,
    .files = list_files,
    .doc =
        "read(files(\"list.txt\")) and read(files(\"meta.csv\", column = \"file\")) are collections of the files that are named, "
        "in "
        "that order. Relative names are looked for from the working folder, and then beside the list. Empty lines of a text file "
        "and those that begin with # are left out. If a file is not there, nothing is started. Several lists in one text go "
        "together line by line.",
    .example = "phantom(\"cells\", [64, 64]) |> write(\"in.png\")",
};
