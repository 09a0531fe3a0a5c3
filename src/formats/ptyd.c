/* ptyd: scans as ptypy keeps them, HDF5 files whose frames lie in chunks 0, 1, 2, ... one after the other. With a path inside,
 * they are HDF5 files as any other. */
#include "base/take.h"
#include "formats/hdf5_parts.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST_CHUNKS = 100000 };

typedef struct {
    fv_reader   base;
    fv_reader **chunk; /* each of some frames */
    int64_t     count;
} reader;

extern const fv_format fv_format_ptyd;

static void close_file(fv_reader *base) {
    reader *r = (reader *)base;
    for (int64_t k = 0; k < r->count; k++) r->chunk[k]->format->close(r->chunk[k]);
    free(r->chunk);
    fv__reader_free(base);
}

static fv_status open_chunk(reader *r, int64_t k, fv_error *error) {
    char            name[64];
    fv_read_options options = { .path_inside = name };
    fv_reader      *chunk;
    snprintf(name, sizeof name, "/chunks/%lld/data", (long long)k);
    FV_TRY(fv_format_hdf5.open(r->base.path, &options, &chunk, error));
    r->chunk = fv__realloc(r->chunk, (size_t)(r->count + 1) * sizeof *r->chunk);
    r->chunk[r->count++] = chunk;
    const fv_image_type *a = &r->chunk[0]->type, *b = &chunk->type;
    if (b->ndim != 3 || b->dtype != a->dtype || memcmp(a->shape + 1, b->shape + 1, 2 * sizeof *a->shape) != 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the frames of chunk %lld have another shape or type than the first ones",
                       r->base.path, (long long)k);
    return FV_OK;
}

/* The first chunk tells what frames are like, and the scan; how many there are follows from all of them. */
static fv_status open_chunks(reader *r, fv_error *error) {
    FV_TRY(open_chunk(r, 0, error));
    for (int64_t k = 1; k < MOST_CHUNKS; k++) {
        fv_error  none = { 0 };
        fv_status status = open_chunk(r, k, &none);
        if (status != FV_OK && r->count > k) return fv_fail(error, none.code, "%s", none.message);
        if (status != FV_OK) break;
    }
    fv_reader *first = r->chunk[0];
    r->base.type = first->type;
    memcpy(r->base.chunk, first->chunk, sizeof r->base.chunk);
    r->base.whole_pieces = first->whole_pieces;
    r->base.diffraction = first->diffraction;
    first->diffraction = NULL;
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    r->base.type.shape[0] = 0;
    for (int64_t k = 0; k < r->count; k++) {
        r->base.type.shape[0] += r->chunk[k]->type.shape[0];
        r->base.read_memory = FV_MAX(r->base.read_memory, r->chunk[k]->read_memory);
        fv__hasher_add(&hasher, &r->chunk[k]->header, sizeof r->chunk[k]->header);
    }
    r->base.header = fv__hasher_finish(&hasher);
    fv__bytes_printf(&r->base.facts, "chunks: %lld\n%s", (long long)r->count, first->facts.size ? (char *)first->facts.data : "");
    return FV_OK;
}

static fv_status open_file(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    if (options && options->path_inside && *options->path_inside && strcmp(options->path_inside, "frames"))
        return fv_format_hdf5.open(path, options, out, error);
    reader   *r = fv__reader_new(sizeof *r, &fv_format_ptyd, path);
    fv_status status = open_chunks(r, error);
    if (status != FV_OK) {
        close_file(&r->base);
        return status;
    }
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    const reader *r = (reader *)base;
    int64_t       before = 0, first = block->region.start[0], end = first + block->region.size[0];
    for (int64_t k = 0; k < r->count; before += r->chunk[k++]->type.shape[0]) {
        int64_t from = FV_MAX(first, before), to = FV_MIN(end, before + r->chunk[k]->type.shape[0]);
        if (from >= to) continue;
        fv_block part = *block;
        part.region.start[0] = from - before;
        part.region.size[0] = to - from;
        part.data = (char *)block->data + (from - first) * block->stride[0] * (int64_t)fv_dtype_size(block->dtype);
        FV_TRY(r->chunk[k]->format->read(r->chunk[k], &part, error));
    }
    return FV_OK;
}

static fv_status contents(const char *path, fv_bytes *lines, fv_error *error) {
    return fv_format_hdf5.contents(path, lines, error);
}

const fv_format fv_format_ptyd = { .name = "ptyd",
                                   .extensions = "ptyd",
                                   .brief = "scans of ptypy",
                                   .reads = "frames of all chunks, by region; `path` names a dataset",
                                   .keeps = "detector pixel, positions",
                                   .open = open_file,
                                   .read = read_block,
                                   .close = close_file,
                                   .contents = contents };
