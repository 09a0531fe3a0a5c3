/* Parquet: an image row by row, for programs that know tables (Spark, Dask), and back; see parquet_image.h.
 *
 * Slices are found by their number, in whatever order rows stand, and groups of rows without a wanted slice are passed over.
 * Every thread that reads has a session of the library of its own; sessions wait in the reader for the next one. */
#include "formats/parquet_image.h"
#include "base/remote.h"
#include "base/take.h"
#include "op/table_parts.h"
#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_SESSIONS = 64 };

typedef struct {
    fv_reader       base;
    fv_slices       slices;
    char           *copy;      /* of a remote file; NULL: it is none */
    int             copied;    /* its descriptor */
    char           *file;      /* the path, or those of its part files, as SQL's text */
    int64_t         per_group; /* most slices of a group of rows */
    pthread_mutex_t mutex;
    fv_duckdb      *idle[MOST_SESSIONS];
    int             nidle;
} reader;

/* ---------------------------------------------------------------- sessions */

static fv_status borrow(reader *r, fv_duckdb **duck, fv_error *error) {
    *duck = NULL;
    pthread_mutex_lock(&r->mutex);
    if (r->nidle) *duck = r->idle[--r->nidle];
    pthread_mutex_unlock(&r->mutex);
    if (*duck) return FV_OK;
    return fv__duckdb_open("reading Parquet files", 16 * FV_MAX(FV_PARQUET_GROUP, r->slices.bytes), duck, error);
}

static void give_back(reader *r, fv_duckdb *duck) {
    pthread_mutex_lock(&r->mutex);
    bool kept = r->nidle < MOST_SESSIONS;
    if (kept) r->idle[r->nidle++] = duck;
    pthread_mutex_unlock(&r->mutex);
    if (!kept) fv__duckdb_close(duck);
}

/* ---------------------------------------------------------------- opening */

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    while (r->nidle) fv__duckdb_close(r->idle[--r->nidle]);
    pthread_mutex_destroy(&r->mutex);
    if (r->copy) close(r->copied);
    free(r->copy);
    free(r->file);
    fv__reader_free(base);
}

/* The first value of a statement's only row as text; NULL: there is none. The caller frees. */
static fv_status ask(reader *r, fv_duckdb *duck, char **text, fv_error *error, const char *statement) {
    fv_duckdb_result result;
    fv_duckdb_handle chunk = NULL;
    *text = NULL;
    FV_TRY(fv__duckdb_query(duck, r->base.path, &result, error, statement, r->file));
    fv_status status = fv__duckdb_next(duck, r->base.path, &result, &chunk, error);
    if (chunk) {
        fv_duckdb_handle      vector = duck->call->data_chunk_get_vector(chunk, 0);
        const fv_duckdb_text *value = duck->call->vector_get_data(vector);
        if (fv__duckdb_valid(duck->call->vector_get_validity(vector), 0))
            *text = fv__sprintf("%.*s", (int)value->inside.length, fv__duckdb_bytes(value));
    }
    /* To the end: the session, which waits in the reader, would keep the plan of a statement that is not through. */
    while (status == FV_OK && chunk) status = fv__duckdb_next(duck, r->base.path, &result, &chunk, error);
    fv__duckdb_release(duck, &result, &chunk);
    return status;
}

/* Parts of a folder change without it. */
static fv_status identify(reader *r, const char *text, fv_error *error) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, text);
    fv_status status = fv__table_identify(r->base.path, &hasher, error);
    r->base.header = fv__hasher_finish(&hasher);
    return status;
}

/* Spark writes no entries of its own, but keeps what is noted with a column: in its description of the table, JSON in JSON. */
static char *text_from_spark(const char *description) {
    cJSON *table = cJSON_Parse(description), *column;
    char  *found = NULL;
    cJSON_ArrayForEach(column, cJSON_GetObjectItem(table, "fields")) {
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(column, "metadata"), FV_PARQUET_IMAGE));
        if (text && !found) found = fv__strdup(text);
    }
    cJSON_Delete(table);
    return found;
}

static fv_status find_text(reader *r, fv_duckdb *duck, char **text, fv_error *error) {
    char *description;
    FV_TRY(ask(r, duck, text, error,
               "SELECT decode(value) FROM parquet_kv_metadata(%s) WHERE decode(key) = '" FV_PARQUET_IMAGE "' LIMIT 1"));
    if (*text) return FV_OK;
    FV_TRY(ask(r, duck, &description, error,
               "SELECT decode(value) FROM parquet_kv_metadata(%s) WHERE decode(key) = "
               "'org.apache.spark.sql.parquet.row.metadata' LIMIT 1"));
    if (description) *text = text_from_spark(description);
    free(description);
    return FV_OK;
}

static fv_status find_type(reader *r, fv_duckdb *duck, fv_error *error) {
    char     *text, *group = NULL;
    fv_status status = find_text(r, duck, &text, error);
    if (status == FV_OK && !text)
        status = fv_fail(error, FV_ERROR_INPUT, "%s holds a table and no image: its metadata have no entry " FV_PARQUET_IMAGE,
                         r->base.path);
    if (status == FV_OK) status = fv__parquet_image_parse(text, r->base.path, &r->base.type, &r->base.angles, error);
    if (r->base.angles) r->base.nangles = r->base.type.shape[0];
    if (status == FV_OK) status = fv__slices_of(&r->base.type, r->base.path, &r->slices, error);
    if (status == FV_OK)
        status = ask(r, duck, &group, error, "SELECT CAST(max(row_group_num_rows) AS VARCHAR) FROM parquet_metadata(%s)");
    if (status == FV_OK) r->per_group = FV_MAX(strtoll(group ? group : "1", NULL, 10), 1);
    if (status == FV_OK) status = identify(r, text, error);
    free(text);
    free(group);
    return status;
}

static void lay_out(reader *r) {
    const fv_image_type *type = &r->base.type;
    for (int d = 0; d < type->ndim; d++) r->base.chunk[d] = d < r->slices.leading ? 1 : type->shape[d];
    if (r->slices.leading) {
        int last = r->slices.leading - 1;
        r->base.chunk[last] = FV_MIN(r->per_group, type->shape[last]);
    }
    r->base.whole_pieces = true;
    r->base.read_memory = 4 * FV_MIN(r->per_group, r->slices.count) * r->slices.bytes;
    if (r->base.angles)
        fv__bytes_printf(&r->base.facts, "angles: %.6g to %.6g degrees\n", r->base.angles[0],
                         r->base.angles[r->base.nangles - 1]);
    fv__bytes_printf(&r->base.facts, "rows: %lld slices, up to %lld in a group\n", (long long)r->slices.count,
                     (long long)r->per_group);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    fv_file_id id;
    fv_duckdb *duck = NULL;
    if (options && options->path_inside && *options->path_inside)
        return fv_fail(error, FV_ERROR_USAGE, "path = \"%s\": a Parquet file holds one image", options->path_inside);
    FV_TRY(fv__file_identify(path, &id, error));
    reader *r = fv__reader_new(sizeof *r, &fv_format_parquet, path);
    pthread_mutex_init(&r->mutex, NULL);
    fv_status status = fv__is_remote(path) ? fv__remote_copy(path, &r->copy, &r->copied, error) : FV_OK;
    r->file = fv__duckdb_files(r->copy ? r->copy : path);
    if (!*r->file) status = fv_fail(error, FV_ERROR_INPUT, "%s: a folder without part files (*.parquet)", path);
    if (status == FV_OK) status = borrow(r, &duck, error);
    if (status == FV_OK) status = find_type(r, duck, error);
    if (duck) give_back(r, duck);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    lay_out(r);
    *out = &r->base;
    return FV_OK;
}

/* ---------------------------------------------------------------- reading */

typedef struct { /* slices that follow one another, on their way into a block */
    reader         *r;
    const fv_block *block;
    int64_t         position[FV_MAX_DIMS]; /* of the first one */
    int64_t         first, count, found;   /* their numbers, and how many of them were met */
    bool           *met;
} run;

/* The part of a slice that the block wants. */
static void put_slice(const run *u, int64_t number, const char *voxels) {
    const fv_image_type *type = &u->r->base.type;
    fv_region            slice = fv__region_whole(type), wanted = u->block->region;
    fv_block             from;
    for (int d = 0; d < u->r->slices.leading; d++) {
        int64_t at = u->position[d] + (d == u->r->slices.leading - 1 ? number - u->first : 0);
        slice.start[d] = wanted.start[d] = at;
        slice.size[d] = wanted.size[d] = 1;
    }
    fv__block_init(&from, type->dtype, &slice, (void *)(uintptr_t)voxels);
    fv_block to = fv__block_window(u->block, &wanted);
    fv__block_copy(&to, &from);
}

static fv_status put_rows(run *u, const fv_duckdb *duck, fv_duckdb_handle chunk, fv_error *error) {
    const fv_duckdb_library *call = duck->call;
    fv_duckdb_handle         vector = call->data_chunk_get_vector(chunk, 1);
    const int64_t           *numbers = call->vector_get_data(call->data_chunk_get_vector(chunk, 0));
    const fv_duckdb_text    *voxels = call->vector_get_data(vector);
    for (uint64_t row = 0; row < call->data_chunk_get_size(chunk); row++, u->found++) {
        bool missing = !fv__duckdb_valid(call->vector_get_validity(vector), row);
        if (missing || voxels[row].inside.length != u->r->slices.bytes)
            return fv_fail(error, FV_ERROR_INPUT, "%s: slice %lld has %lld bytes of pixels, not %lld", u->r->base.path,
                           (long long)numbers[row], missing ? 0LL : (long long)voxels[row].inside.length,
                           (long long)u->r->slices.bytes);
        if (numbers[row] < u->first || numbers[row] >= u->first + u->count) /* in a damaged file statistics mislead the query */
            return fv_fail(error, FV_ERROR_INPUT, "%s: slice %lld where %lld to %lld were asked for", u->r->base.path,
                           (long long)numbers[row], (long long)u->first, (long long)(u->first + u->count - 1));
        if (u->met[numbers[row] - u->first])
            return fv_fail(error, FV_ERROR_INPUT, "%s: slice %lld is there twice", u->r->base.path, (long long)numbers[row]);
        u->met[numbers[row] - u->first] = true;
        put_slice(u, numbers[row], fv__duckdb_bytes(&voxels[row]));
    }
    return FV_OK;
}

static fv_status read_run(run *u, fv_duckdb *duck, fv_error *error) {
    fv_duckdb_result result;
    fv_duckdb_handle chunk = NULL;
    FV_TRY(fv__duckdb_query(duck, u->r->base.path, &result, error,
                            "SELECT CAST(slice AS BIGINT), CAST(pixels AS BLOB) FROM read_parquet(%s) "
                            "WHERE slice BETWEEN %lld AND %lld",
                            u->r->file, (long long)u->first, (long long)(u->first + u->count - 1)));
    fv_status status = FV_OK;
    do {
        status = fv__duckdb_next(duck, u->r->base.path, &result, &chunk, error);
        if (status == FV_OK && chunk) status = put_rows(u, duck, chunk, error);
    } while (status == FV_OK && chunk);
    fv__duckdb_release(duck, &result, &chunk);
    if (status == FV_OK && u->found != u->count)
        status = fv_fail(error, FV_ERROR_INPUT, "%s: of the slices %lld to %lld only %lld are there", u->r->base.path,
                         (long long)u->first, (long long)(u->first + u->count - 1), (long long)u->found);
    return status;
}

/* Slices that the block wants, in runs along the last axis that counts them. */
static fv_status read_runs(reader *r, const fv_block *block, fv_duckdb *duck, fv_error *error) {
    int       leading = r->slices.leading;
    fv_region counted = { .ndim = leading };
    fv_rows   rows;
    fv_status status = FV_OK;
    if (!leading) return read_run(&(run){ .r = r, .block = block, .count = 1, .met = &(bool){ false } }, duck, error);
    memcpy(counted.start, block->region.start, (size_t)leading * sizeof *counted.start);
    memcpy(counted.size, block->region.size, (size_t)leading * sizeof *counted.size);
    bool *met;
    FV_TRY(FV_TAKE(met, (size_t)counted.size[leading - 1] * sizeof *met, error));
    for (fv__rows_begin(&rows, &counted); status == FV_OK && fv__rows_next(&rows);) {
        run u = { .r = r, .block = block, .count = counted.size[leading - 1], .met = met };
        memset(met, 0, (size_t)u.count * sizeof *met);
        for (int d = 0; d < leading; d++) {
            u.position[d] = rows.position[d];
            u.first = u.first * r->base.type.shape[d] + rows.position[d];
        }
        status = read_run(&u, duck, error);
    }
    free(met);
    return status;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    reader    *r = (reader *)base;
    fv_duckdb *duck;
    FV_TRY(borrow(r, &duck, error));
    fv_status status = read_runs(r, block, duck, error);
    if (status == FV_OK)
        give_back(r, duck);
    else
        fv__duckdb_close(duck); /* a failed one may be of no use any more */
    return status;
}

const fv_format fv_format_parquet = {
    .name = "parquet-image",
    .extensions = "parquet pq",
    .brief = "an image as rows of a table: number, angle and pixels of every slice",
    .reads = "by region; one row for each slice",
    .writes = "one row for each slice",
    .keeps = "axes, spacing, units, orientation",
    .compressions = "zstd|snappy|gzip|none",
    .takes = "angles",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .layout = fv__parquet_image_layout,
    .create = fv__parquet_image_create,
    .encode = fv__parquet_image_encode,
    .assemble = fv__parquet_image_assemble,
    .free_writer = fv__writer_free,
};
