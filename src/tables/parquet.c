/* Parquet: a table by columns, compressed, as Spark, Dask, pandas, R and DuckDB read it. DuckDB's library writes it, a group of
 * rows after the other, out of rows that it takes from us as it wants them.
 *
 * The file's metadata hold what the table's source had there, and under fovea.appended the keys of the results in it, so that
 * none is appended twice. */
#include "base/duckdb.h"
#include "op/format.h"
#include "tables/parquet_read.h"
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <strings.h>

#define APPENDED "fovea.appended"

typedef struct {
    fv_duckdb_feed       feed;
    const fv_table_type *type;
    fv_table_source     *sources[2]; /* rows that are there already, and new ones; NULL: none */
    int                  at;
    const fv_cell       *cells;
    int64_t              nrows; /* of those fetched and not yet given */
} rows;

/* ---------------------------------------------------------------- rows for the library */

static fv_status fetch(rows *r, fv_error *error) {
    for (; !r->nrows && r->at < FV_COUNT(r->sources); r->at += !r->nrows)
        if (r->sources[r->at]) FV_TRY(r->sources[r->at]->next(r->sources[r->at], &r->cells, &r->nrows, error));
    return FV_OK;
}

static void put_missing(const fv_duckdb_library *call, fv_duckdb_handle vector, uint64_t row) {
    call->vector_ensure_validity_writable(vector);
    call->vector_get_validity(vector)[row / 64] &= ~((uint64_t)1 << row % 64);
}

static void put_numbers(const rows *r, fv_duckdb_handle vector, int c, uint64_t start, int64_t n) {
    fv_cell       *to = (fv_cell *)r->feed.call->vector_get_data(vector) + start;
    const fv_cell *from = r->cells + c;
    bool           real = r->type->column[c].kind == FV_COLUMN_REAL;
    for (int64_t i = 0; i < n; i++, from += r->type->ncolumns) {
        to[i] = *from;
        if (real && from->real != from->real) put_missing(r->feed.call, vector, start + (uint64_t)i);
    }
}

/* A short text of plain letters, which needs neither memory nor a check of its bytes, lies in the vector itself. */
static bool put_short(fv_duckdb_text *to, const char *text) {
    fv_duckdb_text value = { 0 };
    for (; value.inside.length < sizeof value.inside.bytes && text[value.inside.length]; value.inside.length++) {
        if (text[value.inside.length] & 0x80) return false;
        value.inside.bytes[value.inside.length] = text[value.inside.length];
    }
    if (text[value.inside.length]) return false;
    *to = value;
    return true;
}

static void put_texts(const rows *r, fv_duckdb_handle vector, int c, uint64_t start, int64_t n) {
    const fv_cell  *from = r->cells + c;
    fv_duckdb_text *to = (fv_duckdb_text *)r->feed.call->vector_get_data(vector) + start;
    for (int64_t i = 0; i < n; i++, from += r->type->ncolumns)
        if (!from->text)
            put_missing(r->feed.call, vector, start + (uint64_t)i);
        else if (!put_short(&to[i], from->text))
            r->feed.call->vector_assign_string_element_len(vector, start + (uint64_t)i, from->text, strlen(from->text));
}

/* Chunks are full whatever the batches of the source are, so that the file depends on the rows alone. */
static fv_status fill(fv_duckdb_feed *feed, fv_duckdb_handle chunk, uint64_t most, uint64_t *nrows, fv_error *error) {
    rows *r = (rows *)feed;
    for (*nrows = 0; *nrows < most;) {
        FV_TRY(fetch(r, error));
        if (!r->nrows) break;
        int64_t n = FV_MIN(r->nrows, (int64_t)(most - *nrows));
        for (int c = 0; c < r->type->ncolumns; c++) {
            fv_duckdb_handle vector = feed->call->data_chunk_get_vector(chunk, (uint64_t)c);
            if (r->type->column[c].kind == FV_COLUMN_TEXT)
                put_texts(r, vector, c, *nrows, n);
            else
                put_numbers(r, vector, c, *nrows, n);
        }
        r->cells += n * r->type->ncolumns;
        r->nrows -= n;
        *nrows += (uint64_t)n;
    }
    return fv__fault_point("table.rows", error);
}

/* ---------------------------------------------------------------- metadata */

/* As COPY wants them: {'name': 'value'}; of names that differ only in case the library takes one. */
static void put_metadata(fv_bytes *options, const cJSON *metadata) {
    int count = 0;
    for (const cJSON *entry = metadata ? metadata->child : NULL; entry; entry = entry->next) {
        bool again = false;
        for (const cJSON *other = metadata->child; other != entry; other = other->next)
            again = again || !strcasecmp(other->string, entry->string);
        if (again || !*entry->string || !cJSON_IsString(entry)) continue;
        char *name = fv__duckdb_quote(entry->string, '\''), *value = fv__duckdb_quote(entry->valuestring, '\'');
        fv__bytes_printf(options, "%s%s: %s", count++ ? ", " : ", KV_METADATA {", name, value);
        free(name);
        free(value);
    }
    if (count) fv__bytes_printf(options, "}");
}

static const char *entry_of(const cJSON *metadata, const char *name) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, name));
    return text ? text : "";
}

/* Old entries are kept where the new table says nothing else. */
static void take_over(cJSON *metadata, const char *old) {
    cJSON *parsed = cJSON_Parse(old ? old : "{}");
    for (const cJSON *entry = parsed ? parsed->child : NULL; entry; entry = entry->next)
        if (cJSON_IsString(entry) && !cJSON_GetObjectItemCaseSensitive(metadata, entry->string))
            cJSON_AddStringToObject(metadata, entry->string, entry->valuestring);
    cJSON_Delete(parsed);
}

static void note_key(cJSON *metadata, const char *key) {
    char *keys = fv__sprintf("%s%s%s", entry_of(metadata, APPENDED), *entry_of(metadata, APPENDED) ? " " : "", key);
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, APPENDED);
    cJSON_AddStringToObject(metadata, APPENDED, keys);
    free(keys);
}

/* ---------------------------------------------------------------- the file */

static fv_status check_columns(const fv_table_type *there, const fv_table_type *type, const char *path, fv_error *error) {
    if (there->ncolumns != type->ncolumns)
        return fv_fail(error, FV_ERROR_USAGE, "append: %s has %d columns and the new rows have %d", path, there->ncolumns,
                       type->ncolumns);
    for (int c = 0; c < type->ncolumns; c++) {
        const fv_column *a = &there->column[c], *b = &type->column[c];
        if (strcmp(a->name, b->name) || a->kind != b->kind)
            return fv_fail(error, FV_ERROR_USAGE,
                           "append: column %d of %s is \"%s\" and holds other values than \"%s\" of the new rows", c + 1, path,
                           a->name, b->name);
    }
    return FV_OK;
}

static fv_status write_rows(const char *path, rows *r, const cJSON *metadata, fv_error *error) {
    const char      *names[FV_MAX_COLUMNS];
    int              types[FV_MAX_COLUMNS];
    fv_bytes         options = { 0 };
    fv_duckdb       *duck;
    static const int kinds[] = { [FV_COLUMN_INTEGER] = FV_DUCKDB_BIGINT,
                                 [FV_COLUMN_REAL] = FV_DUCKDB_DOUBLE,
                                 [FV_COLUMN_TEXT] = FV_DUCKDB_VARCHAR,
                                 [FV_COLUMN_NATURAL] = FV_DUCKDB_UBIGINT };
    FV_TRY(fv__duckdb_open(FV_DUCKDB_WRITING, FV_PARQUET_MEMORY, &duck, error));
    for (int c = 0; c < r->type->ncolumns; c++) {
        names[c] = r->type->column[c].name;
        types[c] = kinds[r->type->column[c].kind];
    }
    r->feed = (fv_duckdb_feed){ .ncolumns = r->type->ncolumns, .names = names, .types = types, .fill = fill };
    /* Columns of more different values gain nothing by a dictionary, and the search for one costs a quarter of the time. */
    fv__bytes_printf(&options, "FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 122880, ROW_GROUP_SIZE_BYTES '64MB', "
                               "DICTIONARY_SIZE_LIMIT 1024");
    put_metadata(&options, metadata);
    fv_status status = fv__duckdb_copy(duck, path, &r->feed, (char *)options.data, error);
    fv__bytes_release(&options);
    fv__duckdb_close(duck);
    return status;
}

/* The rows that are there stand before the new ones. */
static fv_status append(const char *path, const char *existing, rows *r, const char *key, cJSON *metadata, fv_error *error) {
    fv_table_reader *there;
    FV_TRY(fv__parquet_open(existing, NULL, &there, error));
    fv_status status = check_columns(&there->type, r->type, existing, error);
    take_over(metadata, there->type.metadata);
    r->sources[0] = &there->source;
    if (strstr(entry_of(metadata, APPENDED), key))
        r->sources[1] = NULL;
    else
        note_key(metadata, key);
    if (status == FV_OK) status = write_rows(path, r, metadata, error);
    fv__parquet_close(there);
    return status;
}

static fv_status parquet_write(const char *path, const char *existing, const fv_table_type *type, const fv_table_options *options,
                               fv_table_source *source, fv_error *error) {
    rows   r = { .type = type, .sources = { NULL, source } };
    cJSON *metadata = cJSON_CreateObject();
    char   key[33];
    fv__hash_format(options->key, key);
    take_over(metadata, type->metadata);
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, APPENDED); /* of the source, not of this file */
    fv_status status;
    if (options->append && existing && fv__file_exists(existing))
        status = append(path, existing, &r, key, metadata, error);
    else {
        if (options->append) note_key(metadata, key);
        status = write_rows(path, &r, metadata, error);
    }
    cJSON_Delete(metadata);
    return status;
}

static fv_status check(const char *path, const fv_table_type *type, fv_error *error) {
    (void)path;
    (void)type;
    return fv__duckdb_ready(FV_DUCKDB_WRITING, error);
}

const fv_table_format fv_table_parquet = {
    .name = "parquet",
    .extensions = "parquet pq",
    .brief = "compressed tables stored by columns (uses DuckDB)",
    .magic = { 4, "PAR1" },
    .check = check,
    .write = parquet_write,
    .open = fv__parquet_open,
    .close = fv__parquet_close,
    .open_blocks = fv__parquet_open_blocks,
    .seek = fv__parquet_seek,
    .holds_image = fv__parquet_holds_image,
};
