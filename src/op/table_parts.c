/* A folder of table files read as one table, part after part. */
#include "op/table_parts.h"
#include "base/duckdb.h"
#include "base/remote.h"
#include "base/take.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
    fv_table_reader  base;
    char           **files;
    int              nfiles, at;           /* at: the next one */
    int              seen[FV_MAX_COLUMNS]; /* parts with rows that have this column */
    int              with_rows;
    fv_table_reader *part;                 /* the one that is read */
    int              from[FV_MAX_COLUMNS]; /* its column; -1: it has none of this name */
    fv_cell         *cells;
    int64_t          capacity;
    char            *metadata;
} reader;

/* ---------------------------------------------------------------- files */

/* Spark writes JSON lines under the name of JSON. */
static const fv_table_format *part_format(const char *name) {
    const fv_table_format *format = fv__table_format_for(name);
    size_t                 length = strlen(name);
    if (!format && !strncmp(name, "part-", 5) && length > 5 && !strcmp(name + length - 5, ".json"))
        format = fv__table_format_for("part.jsonl");
    return format && format->open && !format->in_place ? format : NULL;
}

static void free_files(char **files, int count) {
    for (int i = 0; i < count; i++) free(files[i]);
    free(files);
}

/* Parts in order of name; none where something else lies there too. */
static int list(const char *path, char ***files) {
    struct dirent **names = NULL;
    int             count = fv__path_is_folder(path) ? scandir(path, &names, NULL, alphasort) : 0, found = 0;
    bool            only = true;
    *files = fv__calloc((size_t)FV_MAX(count, 1) * sizeof **files);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        if (*name != '.' && *name != '_') {
            (*files)[found] = fv__sprintf("%s/%s", path, name);
            only = only && part_format(name) && !fv__path_is_folder((*files)[found]);
            found++;
        }
        free(names[i]);
    }
    free(names);
    if (only && found) return found;
    free_files(*files, found);
    *files = NULL;
    return 0;
}

bool fv__table_is_parts(const char *path) {
    char **files;
    int    count = list(path, &files);
    free_files(files, count);
    return count > 0;
}

static fv_status identify(const char *path, fv_hasher *hasher, fv_error *error) {
    fv_file_id id;
    FV_TRY(fv__file_identify(path, &id, error));
    fv__hasher_int(hasher, id.size);
    fv__hasher_int(hasher, id.mtime_ns);
    return FV_OK;
}

/* A file, or Parquet in folders inside the folder. */
static fv_status identify_others(const char *path, fv_hasher *hasher, fv_error *error) {
    fv_bytes  parts = { 0 };
    fv_status status = identify(path, hasher, error);
    if (!fv__is_remote(path) && fv__path_is_folder(path)) fv__duckdb_parts(path, &parts);
    for (const char *p = (char *)parts.data; status == FV_OK && p && p < (char *)parts.data + parts.size; p += strlen(p) + 1) {
        fv__hasher_text(hasher, p);
        status = identify(p, hasher, error);
    }
    fv__bytes_release(&parts);
    return status;
}

fv_status fv__table_identify(const char *path, fv_hasher *hasher, fv_error *error) {
    char    **files;
    int       count = list(path, &files);
    fv_status status = FV_OK;
    if (!count) return identify_others(path, hasher, error);
    for (int i = 0; i < count && status == FV_OK; i++) {
        fv__hasher_text(hasher, files[i]);
        status = identify(files[i], hasher, error);
    }
    free_files(files, count);
    return status;
}

/* ---------------------------------------------------------------- columns */

static int find_column(const fv_table_type *type, const char *name) {
    for (int c = 0; c < type->ncolumns; c++)
        if (!strcmp(type->column[c].name, name)) return c;
    return -1;
}

static fv_status add_columns(reader *r, const fv_table_reader *part, fv_error *error) {
    fv_table_type *type = &r->base.type;
    for (int c = 0; c < part->type.ncolumns; c++) {
        const fv_column *column = &part->type.column[c];
        int              at = find_column(type, column->name);
        if (at < 0 && type->ncolumns == FV_MAX_COLUMNS)
            return fv_fail(error, FV_ERROR_INPUT, "%s: the files in it have more than %d columns together", r->base.path,
                           FV_MAX_COLUMNS);
        if (at < 0) type->column[at = type->ncolumns++] = *column;
        fv_column_kind *kind = &type->column[at].kind;
        if (*kind != column->kind && (*kind == FV_COLUMN_TEXT || column->kind == FV_COLUMN_TEXT))
            return fv_fail(error, FV_ERROR_INPUT, "%s: column %s holds %s, that of files before it %s", part->path, column->name,
                           column->kind == FV_COLUMN_TEXT ? "text" : "numbers", *kind == FV_COLUMN_TEXT ? "text" : "numbers");
        if (*kind != column->kind) *kind = FV_COLUMN_REAL;
        r->seen[at]++;
    }
    return FV_OK;
}

/* One part: its columns and rows are added to the table's. One without rows says nothing about its columns. */
static fv_status survey(reader *r, const char *file, fv_error *error) {
    fv_table_reader *part;
    fv_file_id       id;
    fv_status        status = FV_OK;
    FV_TRY(fv__file_identify(file, &id, error));
    if (!id.size) return FV_OK;
    const fv_table_format *format = part_format(fv__path_name(file));
    FV_TRY(format->open(file, NULL, &part, error));
    if (part->nrows) {
        if (!r->with_rows) fv__bytes_append(&r->base.facts, part->facts.data, part->facts.size);
        if (!r->with_rows && part->type.metadata) r->metadata = fv__strdup(part->type.metadata);
        status = add_columns(r, part, error);
        r->with_rows++;
        r->base.nrows += part->nrows;
    } else if (r->files[r->nfiles - 1] == file && !r->with_rows) {
        r->base.type = part->type; /* none has rows: the last one names the columns */
        r->base.type.metadata = NULL;
    }
    format->close(part);
    return status;
}

static void close_reader(fv_table_reader *base) {
    reader *r = (reader *)base;
    if (r->part) r->part->format->close(r->part);
    free_files(r->files, r->nfiles);
    free(r->cells);
    free(r->metadata);
    free(base->path);
    fv__bytes_release(&base->facts);
    free(r);
}

/* ---------------------------------------------------------------- rows */

static fv_status next_part(reader *r, fv_error *error) {
    const char *file = r->files[r->at++];
    fv_file_id  id;
    FV_TRY(fv__file_identify(file, &id, error));
    if (!id.size) return FV_OK;
    FV_TRY(part_format(fv__path_name(file))->open(file, NULL, &r->part, error));
    for (int c = 0; c < r->base.type.ncolumns; c++) {
        int from = r->from[c] = find_column(&r->part->type, r->base.type.column[c].name);
        if (from < 0 || !r->part->nrows) continue;
        fv_column_kind kind = r->part->type.column[from].kind, wanted = r->base.type.column[c].kind;
        if (kind != wanted && (kind == FV_COLUMN_TEXT || wanted != FV_COLUMN_REAL))
            return fv_fail(error, FV_ERROR_INPUT, "%s was changed while it was read", file);
    }
    return FV_OK;
}

static fv_cell cell_of(const reader *r, const fv_cell *row, int c) {
    int            from = r->from[c];
    fv_column_kind wanted = r->base.type.column[c].kind;
    fv_cell        missing = { .real = NAN };
    if (wanted == FV_COLUMN_TEXT) missing.text = NULL;
    if (from < 0) return missing;
    if (r->part->type.column[from].kind == wanted) return row[from];
    return (fv_cell){ .real = (double)row[from].integer };
}

static fv_status next(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    reader        *r = (reader *)source;
    const fv_cell *rows = NULL;
    int            n = r->base.type.ncolumns;
    *nrows = 0;
    while (!*nrows) {
        if (!r->part && r->at == r->nfiles) return FV_OK;
        if (!r->part) FV_TRY(next_part(r, error));
        if (!r->part) continue;
        FV_TRY(r->part->source.next(&r->part->source, &rows, nrows, error));
        if (*nrows) break;
        r->part->format->close(r->part);
        r->part = NULL;
    }
    if (*nrows > r->capacity) {
        FV_TRY(FV_TAKE_MORE(r->cells, (size_t)(*nrows * n) * sizeof *r->cells, error));
        r->capacity = *nrows;
    }
    for (int64_t i = 0; i < *nrows; i++)
        for (int c = 0; c < n; c++) r->cells[i * n + c] = cell_of(r, rows + i * r->part->type.ncolumns, c);
    *cells = r->cells;
    return FV_OK;
}

static fv_status open_reader(const char *path, const char *table, fv_table_reader **out, fv_error *error) {
    reader *r = fv__calloc(sizeof *r);
    r->base = (fv_table_reader){ .source = { .next = next }, .format = &fv_table_of_parts, .path = fv__strdup(path) };
    r->nfiles = list(path, &r->files);
    fv_status status = FV_OK;
    if (!r->nfiles)
        status = fv_fail(error, FV_ERROR_INPUT, "%s: a folder that is read as a table holds table files and nothing else", path);
    else if (table)
        status = fv_fail(error, FV_ERROR_USAGE, "%s: a folder of parts is one table, without others by name", path);
    for (int i = 0; i < r->nfiles && status == FV_OK; i++) status = survey(r, r->files[i], error);
    for (int c = 0; c < r->base.type.ncolumns; c++)
        if (r->seen[c] < r->with_rows && r->base.type.column[c].kind == FV_COLUMN_INTEGER)
            r->base.type.column[c].kind = FV_COLUMN_REAL; /* what is missing somewhere is nan */
    fv__bytes_printf(&r->base.facts, "parts: %d file%s\n", r->nfiles, r->nfiles == 1 ? "" : "s");
    r->base.type.metadata = r->metadata;
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    *out = &r->base;
    return FV_OK;
}

const fv_table_format fv_table_of_parts = {
    .name = "parts", .extensions = "", .brief = "a folder of table files", .open = open_reader, .close = close_reader
};
