/* A Parquet file read as a table, some thousand rows at a time.
 *
 * The library casts every column to one of the three kinds that a table has: booleans and integers become whole numbers (real
 * ones where some are missing), decimals real ones, and dates, times, lists and the like the text that the library writes.
 */
#include "tables/parquet_read.h"
#include "base/duckdb.h"
#include "base/remote.h"
#include "tables/typed_rows.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

extern const fv_table_format fv_table_parquet;
enum { MOST_FOOTER = 256 << 20 };

typedef struct {
    fv_table_reader  base;
    fv_duckdb       *duck;
    char            *copy;            /* of a remote file; NULL: it is none */
    int              copied;          /* its descriptor */
    char            *file, *metadata; /* file: the path, or those of its part files, as SQL's text */
    bool             unsigned64[FV_MAX_COLUMNS];
    fv_bytes         select;
    fv_duckdb_result rows;
    fv_duckdb_handle chunk;
    bool             started, ended;
    bool             in_blocks;   /* row groups are read one by one: */
    int64_t          first, last; /* the rows of this one */
    fv_batch         batch;
} reader;

/* ---------------------------------------------------------------- the footer, without the library */

/* The whole footer; false: this is no Parquet file. */
static bool load_footer(const char *path, fv_bytes *footer) {
    fv_file_id id;
    uint8_t    end[8];
    int        fd;
    if (fv__path_is_folder(path) || fv__file_identify(path, &id, NULL) != FV_OK || id.size < 12) return false;
    if (fv__file_open_read(path, &fd, NULL) != FV_OK) return false;
    bool    good = fv__file_read_at(fd, end, sizeof end, id.size - 8, path, NULL) == FV_OK && !memcmp(end + 4, "PAR1", 4);
    int64_t size = (int64_t)end[0] | (int64_t)end[1] << 8 | (int64_t)end[2] << 16 | (int64_t)end[3] << 24;
    good = good && size <= id.size - 12 && size <= MOST_FOOTER;
    if (good) {
        void *to = fv__bytes_append(footer, NULL, (size_t)size);
        good = fv__file_read_at(fd, to, (size_t)size, id.size - 8 - size, path, NULL) == FV_OK;
    }
    fv__file_close(fd, path, NULL);
    return good;
}

/* Of a folder of part files the first one tells. */
bool fv__parquet_holds_image(const char *path) {
    fv_bytes footer = { 0 }, parts = { 0 };
    bool     found = fv__duckdb_parts(path, &parts) && load_footer((char *)parts.data, &footer) &&
                 memmem(footer.data, footer.size, "fovea.image", 11);
    fv__bytes_release(&footer);
    fv__bytes_release(&parts);
    return found;
}

static fv_status check_parts(const char *path, fv_error *error) {
    fv_bytes  parts = { 0 };
    int       count = fv__duckdb_parts(path, &parts);
    fv_status status = FV_OK;
    if (!count) status = fv_fail(error, FV_ERROR_INPUT, "%s: a folder without part files (*.parquet)", path);
    for (const char *p = (char *)parts.data; status == FV_OK && p < (char *)parts.data + parts.size; p += strlen(p) + 1) {
        fv_bytes footer = { 0 };
        if (!load_footer(p, &footer)) status = fv_fail(error, FV_ERROR_INPUT, "%s: no Parquet file, or its end is missing", p);
        fv__bytes_release(&footer);
    }
    fv__bytes_release(&parts);
    return status;
}

/* ---------------------------------------------------------------- metadata */

/* A value of the current chunk as text; NULL: missing. The caller frees. */
static char *text_at(const reader *r, uint64_t column, uint64_t row) {
    fv_duckdb_handle      vector = r->duck->call->data_chunk_get_vector(r->chunk, column);
    const fv_duckdb_text *texts = r->duck->call->vector_get_data(vector);
    if (!fv__duckdb_valid(r->duck->call->vector_get_validity(vector), row)) return NULL;
    return fv__sprintf("%.*s", (int)texts[row].inside.length, fv__duckdb_bytes(&texts[row]));
}

typedef void (*row_visitor)(reader *r, uint64_t row, void *context);

/* Calls each for every row of a statement. */
static fv_status each_row(reader *r, row_visitor each, void *context, fv_error *error, const char *format, ...) {
    fv_bytes text = { 0 };
    va_list  arguments;
    va_start(arguments, format);
    fv__bytes_vprintf(&text, format, arguments);
    va_end(arguments);
    fv_status status = fv__duckdb_query(r->duck, r->base.path, &r->rows, error, "%s", (char *)text.data);
    while (status == FV_OK) {
        status = fv__duckdb_next(r->duck, r->base.path, &r->rows, &r->chunk, error);
        if (!r->chunk) break;
        for (uint64_t row = 0; row < r->duck->call->data_chunk_get_size(r->chunk); row++) each(r, row, context);
    }
    fv__duckdb_release(r->duck, &r->rows, &r->chunk);
    fv__bytes_release(&text);
    return status;
}

/* What programs say of the columns of their own file would be wrong of another one. */
static bool describes_columns(const char *key) {
    return !strcmp(key, "ARROW:schema") || !strcmp(key, "pandas") || !strncmp(key, "org.apache.spark", 16);
}

static void take_metadata(reader *r, uint64_t row, void *context) {
    char *key = text_at(r, 0, row), *value = text_at(r, 1, row);
    bool  known = key && cJSON_HasObjectItem(context, key); /* every part file of a folder has it */
    if (key && value && *key && !known && !describes_columns(key)) {
        cJSON_AddStringToObject(context, key, value);
        fv__bytes_printf(&r->base.facts, "metadata %s: ", key);
        for (char *c = value; *c; c++) fv__bytes_append(&r->base.facts, (unsigned char)*c < ' ' ? " " : c, 1);
        fv__bytes_append(&r->base.facts, "\n", 1);
    }
    free(key);
    free(value);
}

static void take_layout(reader *r, uint64_t row, void *context) {
    static const char *const names[] = { "row groups", "compression", "made by", "files" };
    (void)context;
    for (int i = 0; i < FV_COUNT(names); i++) {
        char *value = text_at(r, (uint64_t)i, row);
        if (value && *value) fv__bytes_printf(&r->base.facts, "%s: %s\n", names[i], value);
        free(value);
    }
}

static void take_count(reader *r, uint64_t row, void *context) {
    int64_t *counts = r->duck->call->vector_get_data(r->duck->call->data_chunk_get_vector(r->chunk, 0));
    *(int64_t *)context = counts[row];
}

#define TEXT_OF(bytes) "coalesce(try(decode(" bytes ")), CAST(" bytes " AS VARCHAR))"

static fv_status find_facts(reader *r, fv_error *error) {
    cJSON    *kept = cJSON_CreateObject();
    fv_status status = each_row(r, take_count, &r->base.nrows, error,
                                "SELECT CAST(sum(num_rows) AS BIGINT) FROM parquet_file_metadata(%s)", r->file);
    if (status == FV_OK)
        status = each_row(r, take_layout, NULL, error,
                          "SELECT CAST(count(DISTINCT (file_name, row_group_id)) AS VARCHAR), "
                          "string_agg(DISTINCT lower(compression), ', '), (SELECT any_value(created_by) FROM "
                          "parquet_file_metadata(%s)), CAST(nullif(count(DISTINCT file_name), 1) AS VARCHAR) FROM "
                          "parquet_metadata(%s)",
                          r->file, r->file);
    if (status == FV_OK)
        status = each_row(r, take_metadata, kept, error,
                          "SELECT " TEXT_OF("key") ", " TEXT_OF("value") " FROM parquet_kv_metadata(%s)", r->file);
    if (kept->child) {
        r->metadata = cJSON_PrintUnformatted(kept);
        r->base.type.metadata = r->metadata;
    }
    cJSON_Delete(kept);
    return status;
}

/* ---------------------------------------------------------------- columns */

static fv_column_kind kind_of(int type) {
    if (type >= FV_DUCKDB_BOOLEAN && type <= FV_DUCKDB_UBIGINT) return FV_COLUMN_INTEGER;
    bool real = type == FV_DUCKDB_FLOAT || type == FV_DUCKDB_DOUBLE || type == FV_DUCKDB_HUGEINT || type == FV_DUCKDB_UHUGEINT ||
                type == FV_DUCKDB_DECIMAL;
    return real ? FV_COLUMN_REAL : FV_COLUMN_TEXT;
}

/* Names and kinds, and the list of columns by their names in the file. */
static fv_status find_columns(reader *r, fv_bytes *names, fv_error *error) {
    const fv_duckdb_library *call = r->duck->call;
    bool                     image = fv__parquet_holds_image(r->base.path);
    FV_TRY(fv__duckdb_query(r->duck, r->base.path, &r->rows, error, "SELECT * FROM read_parquet(%s) LIMIT 0", r->file));
    fv_status status = FV_OK;
    for (uint64_t c = 0; c < call->column_count(&r->rows) && status == FV_OK; c++) {
        const char *name = call->column_name(&r->rows, c);
        int         type = call->column_type(&r->rows, c);
        if (image && type == FV_DUCKDB_BLOB) continue; /* voxels are no text */
        status = fv__table_add_column(&r->base.type, name, r->base.path, error);
        if (status != FV_OK) break;
        r->unsigned64[r->base.type.ncolumns - 1] = type == FV_DUCKDB_UBIGINT;
        r->base.type.column[r->base.type.ncolumns - 1].kind = kind_of(type);
        fv__bytes_append(names, name, strlen(name) + 1);
    }
    fv__duckdb_release(r->duck, &r->rows, &r->chunk);
    if (status == FV_OK && !r->base.type.ncolumns)
        status = fv_fail(error, FV_ERROR_INPUT, "%s: this Parquet file has no columns", r->base.path);
    return status;
}

typedef struct {
    bool missing[FV_MAX_COLUMNS];
} gaps;

static void take_gaps(reader *r, uint64_t row, void *context) {
    gaps *g = context;
    for (int c = 0; c < r->base.type.ncolumns; c++) {
        const int64_t *counts = r->duck->call->vector_get_data(r->duck->call->data_chunk_get_vector(r->chunk, (uint64_t)c));
        g->missing[c] = counts[row] != r->base.nrows;
    }
}

/* Whole numbers of which some are missing or beyond 2^63 become real ones. */
static fv_status find_gaps(reader *r, const fv_bytes *names, fv_error *error) {
    fv_bytes    text = { 0 };
    gaps        g = { 0 };
    const char *name = (char *)names->data;
    for (int c = 0; c < r->base.type.ncolumns; c++, name += strlen(name) + 1) {
        char *quoted = fv__duckdb_quote(name, '"');
        fv__bytes_printf(&text, c ? ", " : "");
        if (r->base.type.column[c].kind != FV_COLUMN_INTEGER)
            fv__bytes_printf(&text, "CAST(%lld AS BIGINT)", (long long)r->base.nrows);
        else if (r->unsigned64[c])
            fv__bytes_printf(&text, "if(max(%s) > 9223372036854775807, -1, count(%s))", quoted, quoted);
        else
            fv__bytes_printf(&text, "count(%s)", quoted);
        free(quoted);
    }
    fv_status status = each_row(r, take_gaps, &g, error, "SELECT %s FROM read_parquet(%s)", (char *)text.data, r->file);
    for (int c = 0; c < r->base.type.ncolumns; c++)
        if (g.missing[c]) r->base.type.column[c].kind = FV_COLUMN_REAL;
    fv__bytes_release(&text);
    return status;
}

/* The same from what the footer says of each row group, and true where it says it of all. */
static bool find_gaps_in_footer(reader *r, const fv_bytes *names) {
    fv_bytes    text = { 0 };
    gaps        g = { 0 };
    const char *name = (char *)names->data;
    bool        known = true;
    for (int c = 0; c < r->base.type.ncolumns; c++, name += strlen(name) + 1) {
        char *quoted = fv__duckdb_quote(name, '\'');
        fv__bytes_printf(&text, c ? ", " : "");
        if (r->base.type.column[c].kind != FV_COLUMN_INTEGER)
            fv__bytes_printf(&text, "CAST(%lld AS BIGINT)", (long long)r->base.nrows);
        else
            fv__bytes_printf(&text,
                             "CAST(coalesce(sum(if(stats_null_count = 0, row_group_num_rows, 0)) FILTER (path_in_schema = %s), "
                             "0) AS BIGINT)",
                             quoted);
        known = known && !r->unsigned64[c];
        free(quoted);
    }
    known = known && each_row(r, take_gaps, &g, NULL, "SELECT %s FROM parquet_metadata(%s)", (char *)text.data, r->file) == FV_OK;
    for (int c = 0; c < r->base.type.ncolumns; c++) known = known && !g.missing[c];
    fv__bytes_release(&text);
    return known;
}

static void take_end(reader *r, uint64_t row, void *context) {
    const int64_t *rows = r->duck->call->vector_get_data(r->duck->call->data_chunk_get_vector(r->chunk, 0));
    int64_t        last = r->base.nblocks ? r->base.block_end[r->base.nblocks - 1] : 0;
    (void)context;
    r->base.block_end = fv__realloc(r->base.block_end, (size_t)(r->base.nblocks + 1) * sizeof *r->base.block_end);
    r->base.block_end[r->base.nblocks++] = last + rows[row];
}

static fv_status find_blocks(reader *r, fv_error *error) {
    return each_row(
        r, take_end, NULL, error,
        "SELECT CAST(any_value(row_group_num_rows) AS BIGINT) FROM parquet_metadata(%s) GROUP BY row_group_id ORDER BY "
        "row_group_id",
        r->file);
}

static void list_columns(reader *r, const fv_bytes *names) {
    static const char *const types[] = {
        [FV_COLUMN_INTEGER] = "BIGINT", [FV_COLUMN_REAL] = "DOUBLE", [FV_COLUMN_TEXT] = "VARCHAR"
    };
    const char *name = (char *)names->data;
    for (int c = 0; c < r->base.type.ncolumns; c++, name += strlen(name) + 1) {
        char *quoted = fv__duckdb_quote(name, '"');
        fv__bytes_printf(&r->select, "%sCAST(%s AS %s)", c ? ", " : "", quoted, types[r->base.type.column[c].kind]);
        free(quoted);
    }
}

/* ---------------------------------------------------------------- rows */

static fv_status take_texts(reader *r, fv_duckdb_handle vector, int c, fv_error *error) {
    const fv_duckdb_text *texts = r->duck->call->vector_get_data(vector);
    const uint64_t       *validity = r->duck->call->vector_get_validity(vector);
    fv_cell              *cell = (fv_cell *)r->batch.cells.data + c;
    for (int64_t row = 0; row < r->batch.nrows; row++, cell += r->base.type.ncolumns) {
        const char *bytes = fv__duckdb_bytes(&texts[row]);
        size_t      length = texts[row].inside.length;
        cell->integer = -1;
        if (!fv__duckdb_valid(validity, (uint64_t)row)) continue;
        if (memchr(bytes, 0, length))
            return fv_fail(error, FV_ERROR_INPUT, "%s: a text of column %s holds a zero byte", r->base.path,
                           r->base.type.column[c].name);
        cell->integer = (int64_t)r->batch.text.size;
        fv__bytes_append(&r->batch.text, bytes, length);
        fv__bytes_append(&r->batch.text, "", 1);
    }
    return FV_OK;
}

/* Cells are of eight bytes, like the numbers in the library's vectors. */
static void take_numbers(reader *r, fv_duckdb_handle vector, int c) {
    const fv_cell  *from = r->duck->call->vector_get_data(vector);
    const uint64_t *validity = r->duck->call->vector_get_validity(vector);
    fv_cell        *cell = (fv_cell *)r->batch.cells.data + c;
    for (int64_t row = 0; row < r->batch.nrows; row++, cell += r->base.type.ncolumns) {
        *cell = from[row];
        if (!fv__duckdb_valid(validity, (uint64_t)row)) cell->real = NAN;
    }
}

static fv_status next_rows(fv_table_source *source, const fv_cell **cells, int64_t *nrows, fv_error *error) {
    reader *r = (reader *)source;
    int     n = r->base.type.ncolumns;
    fv__batch_clear(&r->batch);
    *nrows = 0;
    if (!r->started && r->in_blocks)
        FV_TRY(fv__duckdb_query(r->duck, r->base.path, &r->rows, error,
                                "SELECT %s FROM read_parquet(%s, file_row_number = true) WHERE file_row_number BETWEEN %lld AND "
                                "%lld",
                                (char *)r->select.data, r->file, (long long)r->first, (long long)r->last));
    else if (!r->started)
        FV_TRY(fv__duckdb_query(r->duck, r->base.path, &r->rows, error, "SELECT %s FROM read_parquet(%s)", (char *)r->select.data,
                                r->file));
    r->started = true;
    if (r->ended) return FV_OK;
    FV_TRY(fv__duckdb_next(r->duck, r->base.path, &r->rows, &r->chunk, error));
    r->ended = !r->chunk;
    if (r->ended) return FV_OK;
    r->batch.nrows = (int64_t)r->duck->call->data_chunk_get_size(r->chunk);
    fv__bytes_append(&r->batch.cells, NULL, (size_t)(r->batch.nrows * n) * sizeof(fv_cell));
    for (int c = 0; c < n; c++) {
        fv_duckdb_handle vector = r->duck->call->data_chunk_get_vector(r->chunk, (uint64_t)c);
        if (r->base.type.column[c].kind == FV_COLUMN_TEXT)
            FV_TRY(take_texts(r, vector, c, error));
        else
            take_numbers(r, vector, c);
    }
    *nrows = r->batch.nrows;
    *cells = fv__batch_finish(&r->batch, &r->base.type);
    return FV_OK;
}

/* ---------------------------------------------------------------- opening */

void fv__parquet_close(fv_table_reader *base) {
    reader *r = (reader *)base;
    if (r->duck) fv__duckdb_release(r->duck, &r->rows, &r->chunk);
    fv__duckdb_close(r->duck);
    fv__batch_release(&r->batch);
    fv__bytes_release(&r->select);
    fv__bytes_release(&base->facts);
    if (r->copy) close(r->copied);
    free(r->copy);
    free(r->file);
    cJSON_free(r->metadata);
    free(base->block_end);
    free(base->path);
    free(r);
}

static fv_status look(reader *r, fv_error *error) {
    fv_bytes   names = { 0 };
    fv_file_id id;
    FV_TRY(fv__file_identify(r->base.path, &id, error));
    FV_TRY(check_parts(r->base.path, error));
    FV_TRY(fv__duckdb_open("reading Parquet files", FV_PARQUET_MEMORY, &r->duck, error));
    fv_status status = find_facts(r, error);
    if (status == FV_OK) status = find_columns(r, &names, error);
    if (status == FV_OK && !(r->in_blocks && find_gaps_in_footer(r, &names))) status = find_gaps(r, &names, error);
    if (status == FV_OK && r->in_blocks) status = find_blocks(r, error);
    if (status == FV_OK) list_columns(r, &names);
    fv__bytes_release(&names);
    return status;
}

static fv_status open_reader(const char *path, const char *table, bool in_blocks, fv_table_reader **out, fv_error *error) {
    char stem[256];
    fv__path_stem(path, stem, sizeof stem);
    if (table && *table && strcmp(table, stem))
        return fv_fail(error, FV_ERROR_USAGE, "%s: a Parquet file holds one table, and no \"%s\"", path, table);
    reader *r = fv__calloc(sizeof *r);
    r->base = (fv_table_reader){ .source.next = next_rows, .format = &fv_table_parquet, .path = fv__strdup(path) };
    r->in_blocks = in_blocks;
    fv_status status = fv__is_remote(path) ? fv__remote_copy(path, &r->copy, &r->copied, error) : FV_OK;
    r->file = fv__duckdb_files(r->copy ? r->copy : path);
    if (status == FV_OK) status = look(r, error);
    if (status == FV_OK)
        *out = &r->base;
    else
        fv__parquet_close(&r->base);
    return status;
}

fv_status fv__parquet_open(const char *path, const char *table, fv_table_reader **out, fv_error *error) {
    return open_reader(path, table, false, out, error);
}

fv_status fv__parquet_open_blocks(const char *path, fv_table_reader **out, fv_error *error) {
    return open_reader(path, NULL, !fv__path_is_folder(path), out,
                       error); /* rows of a folder's files have no numbers of their own */
}

fv_status fv__parquet_seek(fv_table_reader *base, int64_t block, fv_error *error) {
    reader *r = (reader *)base;
    (void)error;
    fv__duckdb_release(r->duck, &r->rows, &r->chunk);
    r->first = block ? base->block_end[block - 1] : 0;
    r->last = base->block_end[block] - 1;
    r->started = r->ended = false;
    return FV_OK;
}
