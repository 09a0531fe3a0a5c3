/* An image written as rows of a Parquet file: tasks lay out slices, and one puts them together through DuckDB's library, a few
 * megabytes at a time. */
#include "formats/parquet_image.h"
#include <cjson/cJSON.h>
#include <stdlib.h>

enum { PIECE = 1 << 20 };

typedef struct {
    fv_writer base;
    fv_slices slices;
    int64_t   per_group; /* slices */
} writer;

/* Several small slices are a piece, of the fastest axis that counts them. */
static int64_t slices_a_piece(const fv_image_type *type, const fv_slices *slices) {
    return slices->leading ? FV_MIN(FV_MAX(PIECE / FV_MAX(slices->bytes, 1), 1), type->shape[slices->leading - 1]) : 1;
}

fv_status fv__parquet_image_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    const fv_image_type *type = file->type;
    fv_slices            slices;
    int                  compression;
    FV_TRY(fv__compression_choose(&fv_format_parquet, file->options, &compression, error));
    FV_TRY(fv__slices_of(type, file->path, &slices, error));
    FV_TRY(fv__duckdb_ready(FV_DUCKDB_WRITING, error));
    for (int d = 0; d < type->ndim; d++) layout->piece[d] = d < slices.leading ? 1 : type->shape[d];
    int64_t count = slices_a_piece(type, &slices);
    if (slices.leading) layout->piece[slices.leading - 1] = count;
    layout->piece_memory = count * slices.bytes;
    return FV_OK;
}

fv_status fv__parquet_image_create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary,
                                   fv_writer **out, fv_error *error) {
    fv_slices slices;
    FV_TRY(fv__slices_of(file->type, file->path, &slices, error));
    writer *w = fv__writer_new(sizeof *w, &fv_format_parquet, file, layout, temporary);
    w->slices = slices;
    w->per_group = FV_MIN(FV_MAX(FV_PARQUET_GROUP / FV_MAX(slices.bytes, 1), 1), 2048);
    *out = &w->base;
    return FV_OK;
}

fv_status fv__parquet_image_encode(fv_writer *base, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    fv_block to;
    (void)base, (void)piece, (void)error;
    size_t bytes = (size_t)fv__region_voxels(&block->region) * fv_dtype_size(block->dtype);
    fv__block_init(&to, block->dtype, &block->region, fv__bytes_append(out, NULL, bytes));
    fv__block_copy(&to, block);
    return FV_OK;
}

/* ---------------------------------------------------------------- rows for the library */

typedef struct {
    fv_duckdb_feed feed;
    const writer  *w;
    fv_pieces     *pieces;
    int64_t        piece, slice; /* next ones */
    const char    *data;         /* slices of a piece that are not yet given */
    size_t         left;
} rows;

static fv_status fill(fv_duckdb_feed *feed, fv_duckdb_handle chunk, uint64_t most, uint64_t *nrows, fv_error *error) {
    rows            *r = (rows *)feed;
    size_t           bytes = (size_t)r->w->slices.bytes;
    fv_duckdb_handle voxels = feed->call->data_chunk_get_vector(chunk, (uint64_t)feed->ncolumns - 1);
    int64_t         *numbers = feed->call->vector_get_data(feed->call->data_chunk_get_vector(chunk, 0));
    double *angles = feed->ncolumns > 2 ? feed->call->vector_get_data(feed->call->data_chunk_get_vector(chunk, 1)) : NULL;
    for (*nrows = 0; *nrows < FV_MIN(most, (uint64_t)r->w->per_group) && r->slice < r->w->slices.count; r->slice++, ++*nrows) {
        const void *data = r->data;
        if (!r->left) FV_TRY(r->pieces->get(r->pieces, r->piece++, &data, &r->left, error));
        if (!r->left || r->left % bytes) return fv_fail(error, FV_ERROR_INTERNAL, "a piece of %s is damaged", r->w->base.path);
        numbers[*nrows] = r->slice;
        if (angles) angles[*nrows] = r->w->base.options.angles[r->slice];
        feed->call->vector_assign_string_element_len(voxels, *nrows, data, bytes);
        r->data = (const char *)data + bytes;
        r->left -= bytes;
    }
    return FV_OK;
}

/* Of every slice; NULL: unknown. */
static const double *angles_of(const writer *w) { return w->slices.leading == 1 ? w->base.options.angles : NULL; }

static char *copy_options(const writer *w) {
    const char *compression = w->base.options.compression ? w->base.options.compression : "zstd";
    char       *json = fv__parquet_image_text(&w->base.type, angles_of(w)), *text = fv__duckdb_quote(json, '\'');
    bool        none = !strcmp(compression, "none");
    char *options = fv__sprintf("FORMAT parquet, COMPRESSION %s, ROW_GROUP_SIZE %lld, KV_METADATA {'" FV_PARQUET_IMAGE "': %s}",
                                none ? "uncompressed" : compression, (long long)w->per_group, text);
    cJSON_free(json);
    free(text);
    return options;
}

fv_status fv__parquet_image_assemble(fv_writer *base, fv_pieces *pieces, fv_error *error) {
    static const char *const with_angles[] = { "slice", "angle", "pixels" }, *const plain[] = { "slice", "pixels" };
    static const int types_with_angles[] = { FV_DUCKDB_BIGINT, FV_DUCKDB_DOUBLE, FV_DUCKDB_BLOB };
    static const int types_plain[] = { FV_DUCKDB_BIGINT, FV_DUCKDB_BLOB };
    const writer    *w = (writer *)base;
    bool             angles = angles_of(w);
    rows             r = { .w = w, .pieces = pieces };
    fv_duckdb       *duck;
    r.feed = (fv_duckdb_feed){ .ncolumns = angles ? 3 : 2,
                               .names = angles ? with_angles : plain,
                               .types = angles ? types_with_angles : types_plain,
                               .fill = fill };
    int64_t memory = 16 * FV_MAX(FV_PARQUET_GROUP, w->slices.bytes);
    FV_TRY(fv__duckdb_open(FV_DUCKDB_WRITING, memory, &duck, error));
    char     *options = copy_options(w);
    fv_status status = fv__duckdb_copy(duck, base->path, &r.feed, options, error);
    free(options);
    fv__duckdb_close(duck);
    return status;
}
