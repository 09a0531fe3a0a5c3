/* Header, then voxels, put in place by many workers at once. */
#include "op/dense_writer.h"
#include <pthread.h>
#include <unistd.h>

enum { PIECE_BYTES = 4 << 20 };

typedef struct {
    fv_writer       base;
    fv_dense        dense;
    fv_bytes        header;
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

static fv_status open_once(writer *w, fv_error *error) {
    pthread_mutex_lock(&w->mutex);
    fv_status status = w->fd >= 0 ? FV_OK : fv_file_open_update(w->base.path, &w->fd, error);
    pthread_mutex_unlock(&w->mutex);
    return status;
}

fv_status fv_dense_begin(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    FV_TRY(open_once(w, error));
    FV_TRY(fv_file_write_at(w->fd, w->header.data, w->header.size, 0, base->path, error));
    return fv_file_resize(w->fd, w->dense.offset + fv_dense_bytes(&w->dense), base->path, error);
}

fv_status fv_dense_put(fv_writer *base, const fv_block *block, fv_error *error) {
    writer *w = (writer *)base;
    FV_TRY(open_once(w, error));
    return fv_dense_write(&w->dense, w->fd, base->path, block, error);
}

fv_status fv_dense_sync(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    return w->fd < 0 ? FV_OK : fv_file_sync(w->fd, base->path, error);
}

void fv_dense_free(fv_writer *base) {
    writer *w = (writer *)base;
    if (w->fd >= 0) close(w->fd);
    pthread_mutex_destroy(&w->mutex);
    fv_bytes_release(&w->header);
    fv_writer_free(base);
}
