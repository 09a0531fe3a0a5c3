/* Raw voxels without a header: read("scan.raw", shape = [100, 512, 512], dtype = "uint16"), by region; written in native byte
 * order, last axis contiguous, by many workers at once.
 *
 * Shape and type may also stand in the name, slowest axis first, as in scan_100x512x512_uint16.raw. */
#include "op/dense_writer.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const fv_format fv_format_raw;

typedef struct {
    fv_reader base;
    int       fd;
    fv_dense  dense;
} reader;

/* ---------------------------------------------------------------- shape and type */

/* "100x512x512" at the start of text, followed by what is no part of a word. */
static int shape_at(const char *text, int64_t *shape) {
    int n = 0;
    for (;;) {
        char *end;
        if (!isdigit((unsigned char)*text) || n == FV_MAX_DIMS) return 0;
        shape[n++] = strtoll(text, &end, 10);
        text = end;
        if (*text != 'x') return n >= 2 && !isalnum((unsigned char)*text) ? n : 0;
        text++;
    }
}

/* What the name tells: ndim 0 and dtype FV_DTYPES where it does not. */
static void look_at_name(const char *path, fv_dense *dense) {
    char        stem[256], *save = NULL;
    const char *word;
    fv__path_stem(path, stem, sizeof stem);
    for (word = strtok_r(stem, "_- .", &save); word; word = strtok_r(NULL, "_- .", &save)) {
        int64_t  shape[FV_MAX_DIMS];
        fv_dtype dtype;
        int      n = shape_at(word, shape);
        if (n) {
            dense->ndim = n;
            memcpy(dense->shape, shape, sizeof shape);
        }
        if (fv_dtype_parse(word, &dtype)) dense->dtype = dtype;
    }
}

static fv_status find_type(reader *r, const fv_read_options *options, int64_t file_size, fv_error *error) {
    fv_dense *dense = &r->dense;
    *dense = (fv_dense){ .dtype = FV_DTYPES };
    look_at_name(r->base.path, dense);
    if (options && options->ndim) {
        dense->ndim = options->ndim;
        memcpy(dense->shape, options->shape, sizeof dense->shape);
    }
    if (options && options->has_dtype) dense->dtype = options->dtype;
    if (options) dense->offset = options->offset;
    if (!dense->ndim || dense->dtype == FV_DTYPES)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s has no header, so its %s must be given: read(\"%s\", shape = [100, 512, 512], dtype = \"uint16\")",
                       r->base.path, dense->ndim ? "dtype" : "shape", r->base.path);
    int64_t bytes = fv__dense_bytes(dense), end;
    if (bytes < 0 || !fv__add(bytes, dense->offset, &end))
        return fv_fail(error, FV_ERROR_USAGE, "%s: shape has more voxels than can be counted", r->base.path);
    for (int d = 0; d < dense->ndim; d++)
        if (dense->shape[d] < 1) return fv_fail(error, FV_ERROR_USAGE, "%s: axis %d of the shape is empty", r->base.path, d);
    if (end > file_size)
        return fv_fail(error, FV_ERROR_INPUT, "%s is too short for its shape: %lld bytes are needed, it has %lld", r->base.path,
                       (long long)end, (long long)file_size);
    fv_image_type_init(&r->base.type, dense->dtype, dense->ndim, dense->shape);
    if (end < file_size) fv__bytes_printf(&r->base.facts, "unused: %lld bytes at the end\n", (long long)(file_size - end));
    return FV_OK;
}

/* ---------------------------------------------------------------- opening */

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    if (r->fd >= 0) close(r->fd);
    fv__reader_free(base);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    reader    *r = fv__reader_new(sizeof *r, &fv_format_raw, path);
    fv_file_id id;
    r->fd = -1;
    fv_status status = fv__file_open_read(path, &r->fd, error);
    if (status == FV_OK) status = fv__file_identify(path, &id, error);
    if (status == FV_OK) status = find_type(r, options, id.size, error);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    r->base.read_memory = FV_DENSE_MEMORY;
    r->base.header = fv__hash_bytes(&r->base.type, sizeof r->base.type);
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    reader *r = (reader *)base;
    return fv__dense_read(&r->dense, r->fd, base->path, block, error);
}

/* ---------------------------------------------------------------- writing */

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    int compression;
    FV_TRY(fv__compression_choose(&fv_format_raw, file->options, &compression, error));
    FV_TRY(fv__writer_check(file->path, file->type, error));
    fv__dense_layout(file->type, file->type->dtype, false, layout);
    return FV_OK;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    fv_bytes header = { 0 };
    (void)error;
    *out = fv__dense_writer_new(&fv_format_raw, file, layout, temporary, &header);
    return FV_OK;
}

const fv_format fv_format_raw = {
    .name = "raw",
    .extensions = "raw",
    .brief = "voxels without a header",
    .reads = "by region; shape and type from the call or the name",
    .writes = "in parallel",
    .keeps = "nothing",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .layout = lay_out,
    .create = create,
    .begin = fv__dense_begin,
    .put = fv__dense_put,
    .sync = fv__dense_sync,
    .finish = fv__dense_sync,
    .free_writer = fv__dense_free,
};
