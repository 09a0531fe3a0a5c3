/* Rows of a stream go to their tables. */
#include "stream/stream_tables.h"
#include "base/file.h"
#include "base/take.h"
#include "op/format.h"
#include <stdlib.h>
#include <unistd.h>

static bool is_same(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static bool same_columns(const fv_table_type *a, const fv_table_type *b) {
    bool same = a->ncolumns == b->ncolumns;
    for (int c = 0; same && c < a->ncolumns; c++)
        same = !strcmp(a->column[c].name, b->column[c].name) && a->column[c].kind == b->column[c].kind;
    return same;
}

void fv__tables_add(fv_stream_tables *t, const char *file, const char *table, const fv_table_type *type, int64_t nrows,
                    const void *rows, size_t size) {
    fv_grown *to = NULL;
    for (int i = t->ngrown - 1; i >= 0 && !to; i--)
        if (is_same(t->grown[i].file, file) && is_same(t->grown[i].table, table) && same_columns(&t->grown[i].type, type))
            to = &t->grown[i];
    if (!to) {
        t->grown = fv__realloc(t->grown, (size_t)(t->ngrown + 1) * sizeof *t->grown);
        to = &t->grown[t->ngrown++];
        *to = (fv_grown){ .file = fv__strdup(file), .table = table ? fv__strdup(table) : NULL, .type = *type };
    }
    fv__bytes_append(&to->rows, rows, size);
    to->nrows += nrows;
    t->nrows += nrows;
}

/* ---------------------------------------------------------------- reading rows back */

typedef struct reading {
    fv_table_source      base;
    const fv_table_type *type;
    const uint8_t       *at, *end;
    fv_cell              cells[64 * FV_MAX_COLUMNS];
} reading;

static fv_status next_rows(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    reading *r = (reading *)source;
    (void)error;
    *nrows = fv__rows_get(r->type, &r->at, r->end, r->cells, 64);
    *cells = r->cells;
    return FV_OK;
}

static fv_status write_rows(const fv_grown *g, const fv_table_format *format, const char *path, const fv_table_options *options,
                            fv_error *error) {
    reading  *r = fv__alloc(sizeof *r);
    fv_status status;
    r->base.next = next_rows;
    r->type = &g->type;
    r->at = g->rows.data;
    r->end = g->rows.data + g->rows.size;
    status = format->write(path, path, &g->type, options, &r->base, error);
    free(r);
    return status;
}

/* ---------------------------------------------------------------- files of lines */

void fv__tables_end(fv_stream_tables *t, const char *file, int64_t length) {
    for (int i = 0; i < t->nends; i++)
        if (!strcmp(t->ends[i].file, file)) {
            t->ends[i].length = length;
            return;
        }
    t->ends = fv__realloc(t->ends, (size_t)(t->nends + 1) * sizeof *t->ends);
    t->ends[t->nends++] = (fv_text_end){ fv__strdup(file), length };
}

int64_t fv__tables_end_of(const fv_stream_tables *t, const char *file) {
    fv_file_id id = { 0 };
    if (fv__file_exists(file)) fv__file_identify(file, &id, NULL);
    for (int i = 0; i < t->nends; i++)
        if (!strcmp(t->ends[i].file, file)) return FV_MIN(t->ends[i].length, id.size);
    return id.size;
}

fv_status fv__tables_cut(const fv_stream_tables *t, fv_error *error) {
    for (int i = 0; i < t->nends; i++) {
        fv_file_id id;
        if (fv__file_identify(t->ends[i].file, &id, NULL) != FV_OK || id.size <= t->ends[i].length) continue;
        if (truncate(t->ends[i].file, t->ends[i].length))
            return fv_fail(error, FV_ERROR_IO, "%s cannot be cut to the rows that were committed", t->ends[i].file);
    }
    return FV_OK;
}

/* The lines of a file that was just written, without its header if the table has one already; and the table may end without a
 * line break. */
static fv_status append_lines(const char *from, const char *file, bool header, int64_t *length, fv_error *error) {
    fv_bytes bytes = { 0 };
    int      fd;
    FV_TRY(fv__file_read_all(from, (size_t)1 << 40, &bytes, error));
    size_t skip = 0;
    if (header && *length) {
        const uint8_t *end = memchr(bytes.data, '\n', bytes.size);
        skip = end ? (size_t)(end + 1 - bytes.data) : bytes.size;
    }
    fv_status status = fv__file_open_update(file, &fd, error);
    if (status == FV_OK) {
        status = fv__file_write_at(fd, bytes.data + skip, bytes.size - skip, *length, file, error);
        if (status == FV_OK) status = fv__file_sync(fd, file, error);
        fv_status closed = fv__file_close(fd, file, status == FV_OK ? error : NULL);
        if (status == FV_OK) status = closed;
    }
    if (status == FV_OK) *length += (int64_t)(bytes.size - skip);
    fv__bytes_release(&bytes);
    return status;
}

static fv_status grow_lines(fv_stream_tables *t, const fv_grown *g, const fv_table_format *format, fv_error *error) {
    char     *lines = fv__sprintf("%s.fovea-lines", g->file);
    int64_t   length = fv__tables_end_of(t, g->file);
    fv_status status = write_rows(g, format, lines, &(fv_table_options){ .table = g->table }, error);
    if (status == FV_OK) status = append_lines(lines, g->file, strcmp(format->name, "jsonl") != 0, &length, error);
    fv__path_remove(lines, NULL);
    if (status == FV_OK) fv__tables_end(t, g->file, length);
    free(lines);
    return status;
}

/* ---------------------------------------------------------------- all of them */

static fv_status write_one(fv_stream_tables *t, const fv_grown *g, int place, const char *name, uint64_t number,
                           fv_error *error) {
    const fv_table_format *format = fv__table_format_for(g->file);
    fv_hasher              hasher;
    FV_TRY(fv__outputs_make_parent(g->file, error));
    if (!format->in_place) return grow_lines(t, g, format, error);
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, name);
    fv__hasher_int(&hasher, (int64_t)number);
    fv__hasher_int(&hasher, place);
    fv_table_options options = { .table = g->table, .append = true, .key = fv__hasher_finish(&hasher) };
    return write_rows(g, format, g->file, &options, error);
}

fv_status fv__tables_write(fv_stream_tables *t, const char *name, uint64_t number, fv_error *error) {
    for (int i = 0; i < t->ngrown; i++)
        if (t->grown[i].nrows) FV_TRY(write_one(t, &t->grown[i], i, name, number, error));
    return FV_OK;
}

void fv__tables_clear(fv_stream_tables *t) {
    for (int i = 0; i < t->ngrown; i++) {
        free(t->grown[i].file);
        free(t->grown[i].table);
        fv__bytes_release(&t->grown[i].rows);
    }
    free(t->grown);
    t->grown = NULL;
    t->ngrown = 0;
    t->nrows = 0;
}

void fv__tables_release(fv_stream_tables *t) {
    fv__tables_clear(t);
    for (int i = 0; i < t->nends; i++) free(t->ends[i].file);
    free(t->ends);
    *t = (fv_stream_tables){ 0 };
}
