/* Header, then voxels, put in place by many workers at once. */
#include "op/dense_writer.h"
#include "op/kernels.h"
#include "op/output_parts.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE_BYTES = 4 << 20, STRIP_BYTES = 1 << 18 };

typedef struct {
    fv_writer       base;
    fv_dense        dense;
    fv_bytes        header, trailer;
    bool            swapped;
    const char     *part; /* NULL: the voxels follow the header */
    pthread_mutex_t mutex; /* guards the opening of fd */
    int             fd;
} writer;

fv_writer *fv_dense_writer_new(const fv_format *format, const char *path, const fv_image_type *type,
                               const fv_write_options *options, fv_bytes *header_take) {
    writer *w = fv_writer_new(sizeof *w, format, path, type, options);
    pthread_mutex_init(&w->mutex, NULL);
    w->fd = -1;
    w->header = *header_take;
    *header_take = (fv_bytes){ 0 };
    w->dense = (fv_dense){ .offset = (int64_t)w->header.size, .dtype = type->dtype, .ndim = type->ndim };
    memcpy(w->dense.shape, type->shape, sizeof w->dense.shape);
    fv_dense_piece(type, PIECE_BYTES, w->base.piece);
    w->base.parallel = w->base.any_region = true;
    return &w->base;
}

void fv_dense_writer_store(fv_writer *base, fv_dtype stored, bool swapped, fv_bytes *trailer_take) {
    writer *w = (writer *)base;
    w->dense.dtype = stored;
    w->swapped = swapped && fv_dtype_size(stored) > 1;
    if (trailer_take) {
        w->trailer = *trailer_take;
        *trailer_take = (fv_bytes){ 0 };
    }
    if (stored != base->type.dtype || w->swapped) base->piece_memory = STRIP_BYTES;
}

void fv_dense_writer_apart(fv_writer *base, const char *part) {
    writer *w = (writer *)base;
    w->part = part;
    w->dense.offset = 0;
}

fv_block fv_block_as(const fv_block *block, fv_dtype dtype, void *memory) {
    const fv_kernels *kernels = fv_kernels_current();
    fv_block          out;
    fv_rows           rows;
    fv_block_init(&out, dtype, &block->region, memory);
    for (fv_rows_begin(&rows, &block->region); fv_rows_next(&rows);)
        kernels->convert(fv_block_at(&out, rows.position), dtype, fv_block_at(block, rows.position), block->dtype,
                         block->region.size[block->region.ndim - 1]);
    return out;
}

static fv_status open_once(writer *w, fv_error *error) {
    pthread_mutex_lock(&w->mutex);
    char     *path = w->part ? fv_sprintf("%s/%s", w->base.path, w->part) : NULL;
    fv_status status = w->fd >= 0 ? FV_OK : fv_file_open_update(path ? path : w->base.path, &w->fd, error);
    free(path);
    pthread_mutex_unlock(&w->mutex);
    return status;
}

fv_status fv_dense_begin(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    if (w->part) FV_TRY(fv_parts_begin(base->path, error));
    FV_TRY(open_once(w, error));
    if (!w->part) FV_TRY(fv_file_write_at(w->fd, w->header.data, w->header.size, 0, base->path, error));
    int64_t end = w->dense.offset + fv_dense_bytes(&w->dense);
    FV_TRY(fv_file_resize(w->fd, end + (int64_t)w->trailer.size, base->path, error));
    return w->trailer.size ? fv_file_write_at(w->fd, w->trailer.data, w->trailer.size, end, base->path, error) : FV_OK;
}

/* Strip by strip through a buffer, as the file wants it. */
static fv_status put_as(writer *w, const fv_block *block, fv_error *error) {
    fv_image_type part;
    fv_lattice    strips;
    int64_t       size[FV_MAX_DIMS];
    void         *memory = fv_buffer_new(STRIP_BYTES);
    fv_status     status = FV_OK;
    fv_image_type_init(&part, w->dense.dtype, block->region.ndim, block->region.size);
    fv_dense_piece(&part, STRIP_BYTES, size);
    fv_lattice_init(&strips, part.ndim, part.shape, size);
    for (int64_t i = 0, n = fv_lattice_count(&strips); i < n && status == FV_OK; i++) {
        fv_region strip = fv_lattice_chunk(&strips, i);
        for (int d = 0; d < strip.ndim; d++) strip.start[d] += block->region.start[d];
        fv_block window = fv_block_window(block, &strip), stored = fv_block_as(&window, w->dense.dtype, memory);
        if (w->swapped) fv_swap_elements(stored.dtype, memory, fv_region_voxels(&strip));
        status = fv_dense_write(&w->dense, w->fd, w->base.path, &stored, error);
    }
    fv_buffer_free(memory, STRIP_BYTES);
    return status;
}

fv_status fv_dense_put(fv_writer *base, const fv_block *block, fv_error *error) {
    writer *w = (writer *)base;
    FV_TRY(open_once(w, error));
    if (w->swapped || w->dense.dtype != base->type.dtype) return put_as(w, block, error);
    return fv_dense_write(&w->dense, w->fd, base->path, block, error);
}

fv_status fv_dense_sync(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    return w->fd < 0 ? FV_OK : fv_file_sync(w->fd, base->path, error);
}

fv_status fv_dense_finish(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    FV_TRY(fv_dense_sync(base, error));
    return w->part ? fv_parts_point_to(base->path, &w->header, w->part, error) : FV_OK;
}

void fv_dense_free(fv_writer *base) {
    writer *w = (writer *)base;
    if (w->fd >= 0) close(w->fd);
    pthread_mutex_destroy(&w->mutex);
    fv_bytes_release(&w->header);
    fv_bytes_release(&w->trailer);
    fv_writer_free(base);
}
