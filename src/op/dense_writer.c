/* Header, then voxels, put in place by many workers at once. */
#include "op/dense_writer.h"
#include "base/sync.h"
#include "base/take.h"
#include "op/kernels.h"
#include "op/output_parts.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE_BYTES = 4 << 20, STRIP_BYTES = 1 << 18 };

typedef struct {
    fv_writer       base;
    fv_dense        dense;
    fv_bytes        header, trailer;
    bool            swapped;
    const char     *part;  /* NULL: the voxels follow the header */
    pthread_mutex_t mutex; /* guards the opening of fd */
    int             fd;
} writer;

static bool is_swapped(fv_dtype stored, bool swapped) { return swapped && fv_dtype_size(stored) > 1; }

void fv__dense_layout(const fv_image_type *type, fv_dtype stored, bool swapped, fv_file_layout *layout) {
    fv__dense_piece(type, PIECE_BYTES, layout->piece);
    layout->parallel = layout->any_region = true;
    if (stored != type->dtype || is_swapped(stored, swapped)) layout->piece_memory = STRIP_BYTES;
}

fv_writer *fv__dense_writer_new(const fv_format *format, const fv_image_file *file, const fv_file_layout *layout,
                                const char *temporary, fv_bytes *header_take) {
    writer *w = fv__writer_new(sizeof *w, format, file, layout, temporary);
    pthread_mutex_init(&w->mutex, NULL);
    w->fd = -1;
    w->header = *header_take;
    *header_take = (fv_bytes){ 0 };
    w->dense = (fv_dense){ .offset = (int64_t)w->header.size, .dtype = file->type->dtype, .ndim = file->type->ndim };
    memcpy(w->dense.shape, file->type->shape, sizeof w->dense.shape);
    return &w->base;
}

void fv__dense_writer_store(fv_writer *base, fv_dtype stored, bool swapped, fv_bytes *trailer_take) {
    writer *w = (writer *)base;
    w->dense.dtype = stored;
    w->swapped = is_swapped(stored, swapped);
    if (trailer_take) {
        w->trailer = *trailer_take;
        *trailer_take = (fv_bytes){ 0 };
    }
}

void fv__dense_writer_apart(fv_writer *base, const char *part) {
    writer *w = (writer *)base;
    w->part = part;
    w->dense.offset = 0;
}

fv_block fv__block_as(const fv_block *block, fv_dtype dtype, void *memory) {
    const fv_kernels *kernels = fv__kernels_current();
    fv_block          out;
    fv_rows           rows;
    fv__block_init(&out, dtype, &block->region, memory);
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);)
        kernels->convert(fv__block_at(&out, rows.position), dtype, fv__block_at(block, rows.position), block->dtype,
                         block->region.size[block->region.ndim - 1]);
    return out;
}

/* Of the file with the voxels; the caller frees. */
static char *path_of(const writer *w) { return w->part ? fv__sprintf("%s/%s", w->base.path, w->part) : fv__strdup(w->base.path); }

static fv_status open_once(writer *w, fv_error *error) {
    pthread_mutex_lock(&w->mutex);
    char     *path = path_of(w);
    fv_status status = w->fd >= 0 ? FV_OK : fv__file_open_update(path, &w->fd, error);
    free(path);
    pthread_mutex_unlock(&w->mutex);
    return status;
}

fv_status fv__dense_begin(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    if (w->part) FV_TRY(fv__parts_begin(base->path, error));
    FV_TRY(open_once(w, error));
    if (!w->part) FV_TRY(fv__file_write_at(w->fd, w->header.data, w->header.size, 0, base->path, error));
    int64_t end = w->dense.offset + fv__dense_bytes(&w->dense);
    FV_TRY(fv__file_resize(w->fd, end + (int64_t)w->trailer.size, base->path, error));
    return w->trailer.size ? fv__file_write_at(w->fd, w->trailer.data, w->trailer.size, end, base->path, error) : FV_OK;
}

fv_status fv__dense_header(fv_writer *base, fv_bytes *header_take, fv_error *error) {
    writer *w = (writer *)base;
    assert(header_take->size == w->header.size && !w->part);
    fv__bytes_release(&w->header);
    w->header = *header_take;
    *header_take = (fv_bytes){ 0 };
    FV_TRY(open_once(w, error));
    return fv__file_write_at(w->fd, w->header.data, w->header.size, 0, base->path, error);
}

/* Strip by strip through a buffer, as the file wants it. */
static fv_status put_as(writer *w, const fv_block *block, fv_error *error) {
    fv_image_type part;
    fv_lattice    strips;
    int64_t       size[FV_MAX_DIMS];
    void         *memory;
    fv_status     status = FV_TAKE_BUFFER(memory, STRIP_BYTES, error);
    fv_image_type_init(&part, w->dense.dtype, block->region.ndim, block->region.size);
    fv__dense_piece(&part, STRIP_BYTES, size);
    fv__lattice_init(&strips, part.ndim, part.shape, size);
    for (int64_t i = 0, n = fv__lattice_count(&strips); i < n && status == FV_OK; i++) {
        fv_region strip = fv__lattice_chunk(&strips, i);
        for (int d = 0; d < strip.ndim; d++) strip.start[d] += block->region.start[d];
        fv_block window = fv__block_window(block, &strip), stored = fv__block_as(&window, w->dense.dtype, memory);
        if (w->swapped) fv__swap_elements(stored.dtype, memory, fv__region_voxels(&strip));
        status = fv__dense_write(&w->dense, w->fd, w->base.path, &stored, error);
    }
    fv__buffer_free(memory, STRIP_BYTES);
    return status;
}

fv_status fv__dense_put(fv_writer *base, const fv_block *block, fv_error *error) {
    writer *w = (writer *)base;
    FV_TRY(open_once(w, error));
    if (w->swapped || w->dense.dtype != base->type.dtype) return put_as(w, block, error);
    return fv__dense_write(&w->dense, w->fd, base->path, block, error);
}

fv_status fv__dense_sync(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    if (w->fd < 0) return FV_OK;
    char     *path = path_of(w);
    fv_status status = fv__open_file_sync(w->fd, path, error);
    free(path);
    return status;
}

fv_status fv__dense_finish(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    FV_TRY(fv__dense_sync(base, error));
    return w->part ? fv__parts_point_to(base->path, &w->header, w->part, error) : FV_OK;
}

void fv__dense_free(fv_writer *base) {
    writer *w = (writer *)base;
    if (w->fd >= 0) close(w->fd);
    pthread_mutex_destroy(&w->mutex);
    fv__bytes_release(&w->header);
    fv__bytes_release(&w->trailer);
    fv__writer_free(base);
}
