/* NPY, numpy's own file: versions 1.0 to 3.0 are read by region in either order of axes and either byte order (float16 as
 * float32); version 1.0 is written, in C order, by many workers at once.
 *
 * The format has no room for axis names, spacing or units: axes get the default names (z y x), and these facts are lost. */
#include "formats/npy_header.h"
#include "op/dense_writer.h"
#include <unistd.h>

extern const fv_format fv_format_npy;

typedef struct {
    fv_reader base;
    int       fd;
    fv_dense  dense;
} reader;

/* ---------------------------------------------------------------- reading */

static fv_status read_header(reader *r, int64_t file_size, int *version, fv_error *error) {
    fv_volume volume = { .fd = r->fd, .file_size = file_size, .path = r->base.path };
    FV_TRY(fv__npy_read_header(&volume, 0, file_size, version, &r->base.header, error));
    r->dense = volume.dense;
    return FV_OK;
}

static fv_status check_size(const reader *r, int64_t file_size, fv_error *error) {
    const char *path = r->base.path;
    int64_t     bytes = fv__dense_bytes(&r->dense);
    if (bytes < 0 || fv_image_type_bytes(&r->base.type) < 0 || bytes > file_size - r->dense.offset)
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: its shape needs %lld bytes of voxels, it has %lld", path,
                       (long long)bytes, (long long)(file_size - r->dense.offset));
    return FV_OK;
}

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    if (r->fd >= 0) close(r->fd);
    fv__reader_free(base);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    reader    *r = fv__reader_new(sizeof *r, &fv_format_npy, path);
    fv_file_id id;
    int        version = 0;
    r->fd = -1;
    fv_status status = fv__file_open_read(path, &r->fd, error);
    if (status == FV_OK) status = fv__file_identify(path, &id, error);
    if (status == FV_OK) status = read_header(r, id.size, &version, error);
    if (status == FV_OK) {
        fv_image_type_init(&r->base.type, r->dense.dtype, r->dense.ndim, r->dense.shape);
        status = check_size(r, id.size, error);
    }
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    r->base.read_memory = FV_DENSE_MEMORY;
    fv__bytes_printf(&r->base.facts, "version: %d.0\norder: %s\nbyte order: %s\n%s", version,
                     r->dense.fortran ? "Fortran (first axis contiguous)" : "C (last axis contiguous)",
                     r->dense.swapped ? "swapped" : "native", r->dense.half ? "stored as: float16\n" : "");
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
    FV_TRY(fv__compression_choose(&fv_format_npy, file->options, &compression, error));
    FV_TRY(fv__writer_check(file->path, file->type, error));
    fv__dense_layout(file->type, file->type->dtype, false, layout);
    return FV_OK;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    fv_bytes header = { 0 };
    (void)error;
    fv__npy_make_header(file->type, &header);
    *out = fv__dense_writer_new(&fv_format_npy, file, layout, temporary, &header);
    return FV_OK;
}

const fv_format fv_format_npy = {
    .name = "npy",
    .extensions = "npy",
    .magic = { { 0, 6, "\x93NUMPY" } },
    .brief = "numpy array",
    .reads = "by region, every type and order",
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
