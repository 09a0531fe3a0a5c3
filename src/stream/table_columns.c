/* Which columns the tables of a stream have: those that a table has already, or else those of its first rows. Rows with others
 * cannot be added: their frame has failed, as it does in a stored run. */
#include "base/file.h"
#include "op/format.h"
#include "stream/stream_parts.h"
#include <stdlib.h>

static fv_table_columns *columns_of(const fv_stream_run *run, const fv_made_table *t) {
    for (int i = 0; i < run->ncolumns; i++) {
        fv_table_columns *c = &run->columns[i];
        bool              same = !strcmp(c->file, t->file) && !c->table == !t->table;
        if (same && (!t->table || !strcmp(c->table, t->table))) return c;
    }
    return NULL;
}

static void take_names(fv_table_columns *c, const fv_table_type *type) {
    c->count = type->ncolumns;
    c->names = fv__calloc((size_t)c->count * sizeof *c->names);
    for (int i = 0; i < c->count; i++) c->names[i] = fv__strdup(type->column[i].name);
}

/* A file that is there keeps its rows, also where they come from another text. */
static void look_into_file(const fv_stream_run *run, const fv_made_table *t, fv_table_columns *c) {
    const fv_table_format *format = fv__table_format_for(t->file);
    fv_table_reader       *reader;
    char                   stem[256];
    fv__path_stem(t->file, stem, sizeof stem);
    const char *table = !format->in_place ? NULL : t->table ? t->table : stem;
    if (!fv__file_exists(t->file) || format->open(t->file, table, &reader, NULL) != FV_OK) return;
    if (reader->nrows && run->anew)
        fv__log("fovea: %s has rows already, which stay there; those of this stream are added", t->file);
    if (reader->nrows) take_names(c, &reader->type);
    format->close(reader);
}

static bool fits(const fv_table_columns *c, const fv_table_type *type) {
    bool same = c->count == type->ncolumns;
    for (int i = 0; i < c->count && same; i++) same = !strcmp(c->names[i], type->column[i].name);
    return same;
}

static fv_status check_one(fv_stream_run *run, const fv_errand *work, const fv_made_table *t, fv_error *error) {
    fv_table_columns *c = columns_of(run, t);
    if (!c) {
        run->columns = fv__realloc(run->columns, (size_t)(run->ncolumns + 1) * sizeof *run->columns);
        c = &run->columns[run->ncolumns++];
        *c = (fv_table_columns){ .file = fv__strdup(t->file), .table = t->table ? fv__strdup(t->table) : NULL };
        look_into_file(run, t, c);
    }
    if (!c->names) {
        take_names(c, &t->type);
        c->item = fv__strdup(work->name);
    }
    if (fits(c, &t->type)) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "its table has other columns than %s%s (another number of axes?)",
                   c->item ? "that of " : "the rows that are in ", c->item ? c->item : t->file);
}

fv_status fv__columns_check(fv_stream_run *run, const fv_errand *work, fv_error *error) {
    for (int i = 0; i < work->made.ntables; i++) {
        const fv_made_table *t = &work->made.tables[i];
        if (t->file && t->nrows) FV_TRY(check_one(run, work, t, error));
    }
    return FV_OK;
}

void fv__columns_release(fv_stream_run *run) {
    for (int i = 0; i < run->ncolumns; i++) {
        fv_table_columns *c = &run->columns[i];
        for (int k = 0; k < c->count; k++) free(c->names[k]);
        free(c->names);
        free(c->file);
        free(c->table);
        free(c->item);
    }
    free(run->columns);
}
