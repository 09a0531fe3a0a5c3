/* Writing of HDF5: one chunked dataset, "/data" or where CXI has it, with its axes as attributes. Tasks shuffle and deflate
 * chunks; the library only puts them into the file. */
#include "base/deflate.h"
#include "base/take.h"
#include "formats/hdf5_parts.h"
#include "formats/itk_transform.h"
#include <errno.h>
#include <stdlib.h>

enum { EDGE_3D = 64, EDGE_2D = 512, EDGE_1D = 1 << 18, DEFAULT_LEVEL = 1 };

typedef struct {
    fv_writer     base;
    fv_hdf5_about about;
    const char   *dataset;
} writer;

static fv_status choose_chunk(const fv_image_file *file, fv_hdf5_about *about, fv_error *error) {
    const fv_image_type    *type = file->type;
    const fv_write_options *o = file->options;
    int                     extended = 0, first = FV_MAX(type->ndim - 3, 0);
    if (o->chunk_ndim > type->ndim)
        return fv_fail(error, FV_ERROR_USAGE, "chunk has %d numbers; the image has %d axes", o->chunk_ndim, type->ndim);
    for (int d = first; d < type->ndim; d++) extended += type->shape[d] > 1;
    int64_t edge = extended >= 3 ? EDGE_3D : extended == 2 ? EDGE_2D : EDGE_1D;
    for (int d = 0; d < type->ndim; d++) {
        int     given = d - (type->ndim - o->chunk_ndim);
        int64_t asked = o->chunk_ndim == 1 ? (d >= first ? o->chunk[0] : 0) : given >= 0 && o->chunk_ndim ? o->chunk[given] : 0;
        if (asked < 0) return fv_fail(error, FV_ERROR_USAGE, "chunk = %lld: it has at least one voxel", (long long)asked);
        about->chunk[d] = FV_MIN(asked ? asked : d >= first ? edge : 1, type->shape[d]);
    }
    if (fv__hdf5_chunk_bytes(about) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "chunk: one chunk would have more than a gibibyte, the most that is written");
    return FV_OK;
}

static fv_status choose_filters(const fv_image_file *file, fv_hdf5_about *about, fv_error *error) {
    int     index;
    int64_t level = file->options->level;
    FV_TRY(fv__compression_choose(&fv_format_hdf5, file->options, &index, error));
    if (level < 0 || level > (index ? 0 : FV_DEFLATE_LEVELS))
        return fv_fail(error, FV_ERROR_USAGE, "level = %lld: this compression has levels up to %d", (long long)level,
                       index ? 0 : FV_DEFLATE_LEVELS);
    if (index) return FV_OK;
    if (about->size > 1) about->filters[about->nfilters++] = (fv_hdf5_filter){ FV_HDF5_SHUFFLE, { (unsigned)about->size }, 1 };
    about->filters[about->nfilters++] = (fv_hdf5_filter){ FV_HDF5_DEFLATE, { level ? (unsigned)level : DEFAULT_LEVEL }, 1 };
    return FV_OK;
}

static fv_status describe(const fv_image_file *file, fv_hdf5_about *about, fv_error *error) {
    const fv_image_type *type = file->type;
    FV_TRY(fv__writer_check(file->path, type, error));
    *about = (fv_hdf5_about){ .size = (int)fv_dtype_size(type->dtype), .ndim = type->ndim, .chunked = true, .exact = true };
    about->kind = type->dtype == FV_BOOL             ? 'b'
                  : fv_dtype_is_complex(type->dtype) ? 'c'
                  : fv_dtype_is_float(type->dtype)   ? 'f'
                  : fv_dtype_is_signed(type->dtype)  ? 'i'
                                                     : 'u';
    memcpy(about->shape, type->shape, sizeof type->shape);
    FV_TRY(choose_chunk(file, about, error));
    return choose_filters(file, about, error);
}

fv_status fv__hdf5_layout_file(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    const fv_hdf5_plugin *h5;
    fv_hdf5_about         about;
    FV_TRY(fv__hdf5_load(&h5, error)); /* nobody computes for hours to hear that it is missing */
    if (fv__hdf5_is_transform(file->type)) return fv__itk_layout(file, layout, error);
    FV_TRY(describe(file, &about, error));
    memcpy(layout->piece, about.chunk, sizeof layout->piece);
    int64_t bytes = fv__hdf5_chunk_bytes(&about);
    layout->piece_memory = 2 * bytes + fv__deflate_memory(bytes);
    return FV_OK;
}

fv_status fv__hdf5_create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                          fv_error *error) {
    fv_hdf5_about about;
    if (fv__hdf5_is_transform(file->type)) return fv__hdf5_create_transform(file, layout, temporary, out, error);
    FV_TRY(describe(file, &about, error));
    writer *w = fv__writer_new(sizeof *w, &fv_format_hdf5, file, layout, temporary);
    w->about = about;
    w->dataset = fv__hdf5_dataset(file->path, file->type);
    *out = &w->base;
    return FV_OK;
}

/* Every chunk of a file is whole: what lies beyond the image's end is zero. */
static void fill_chunk(const writer *w, const fv_block *block, void *memory, size_t bytes) {
    fv_region chunk = block->region;
    fv_block  all;
    memcpy(chunk.size, w->about.chunk, sizeof chunk.size);
    if (!fv__region_equal(&chunk, &block->region)) memset(memory, 0, bytes);
    fv__block_init(&all, block->dtype, &chunk, memory);
    fv_block part = fv__block_window(&all, &block->region);
    fv__block_copy(&part, block);
}

fv_status fv__hdf5_encode(fv_writer *base, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    const writer *w = (writer *)base;
    size_t        bytes = (size_t)fv__hdf5_chunk_bytes(&w->about);
    (void)piece;
    if (!w->about.nfilters) {
        fill_chunk(w, block, fv__bytes_append(out, NULL, bytes), bytes);
        return FV_OK;
    }
    uint8_t *chunk, *shuffled = NULL;
    FV_TRY(FV_TAKE_BUFFER(chunk, bytes, error));
    if (w->about.size > 1 && FV_TAKE_BUFFER(shuffled, bytes, error) != FV_OK) {
        fv__buffer_free(chunk, bytes);
        return FV_ERROR_MEMORY;
    }
    fill_chunk(w, block, chunk, bytes);
    if (shuffled) fv__hdf5_shuffle(chunk, shuffled, bytes, (size_t)w->about.size);
    fv__deflate(shuffled ? shuffled : chunk, bytes, (int)w->about.filters[w->about.nfilters - 1].values[0], FV_DEFLATE_ZLIB, out);
    fv__buffer_free(chunk, bytes);
    if (shuffled) fv__buffer_free(shuffled, bytes);
    return FV_OK;
}

/* ---------------------------------------------------------------- the file */

static bool write_attributes(const fv_hdf5_plugin *h5, void *dataset, const fv_image_type *type, char *message) {
    const char *labels[FV_MAX_DIMS], *units[FV_MAX_DIMS];
    double      code = type->affine_code;
    for (int d = 0; d < type->ndim; d++) {
        labels[d] = type->axis[d];
        units[d] = type->unit[d];
    }
    return h5->set_texts(dataset, "DIMENSION_LABELS", labels, type->ndim, message) &&
           h5->set_texts(dataset, "axis_units", units, type->ndim, message) &&
           h5->set_numbers(dataset, "spacing", type->spacing, type->ndim, message) &&
           h5->set_numbers(dataset, "origin", type->origin, type->ndim, message) &&
           (!type->has_affine || (h5->set_numbers(dataset, "affine", type->affine, 12, message) &&
                                  h5->set_numbers(dataset, "affine_code", &code, 1, message)));
}

fv_status fv__hdf5_not_written(const char *path, const char *message, fv_error *error) {
    if (strstr(message, strerror(ENOSPC))) return fv_fail(error, FV_ERROR_FULL, "cannot write %s: %s", path, strerror(ENOSPC));
    return fv_fail(error, FV_ERROR_IO, "cannot write %s: %s", path, message);
}

static fv_status write_chunks(const writer *w, const fv_hdf5_plugin *h5, void *dataset, fv_pieces *pieces, fv_error *error) {
    fv_lattice lattice;
    char       message[FV_HDF5_MESSAGE];
    fv__lattice_init(&lattice, w->about.ndim, w->about.shape, w->about.chunk);
    for (int64_t i = 0; i < pieces->count; i++) {
        const void *data;
        size_t      size;
        fv_region   region = fv__lattice_chunk(&lattice, i);
        FV_TRY(pieces->get(pieces, i, &data, &size, error));
        fv__io_enter();
        bool good = h5->write_chunk(dataset, region.start, data, size, message);
        fv__io_leave();
        if (!good) return fv__hdf5_not_written(w->base.path, message, error);
    }
    return FV_OK;
}

fv_status fv__hdf5_assemble(fv_writer *base, fv_pieces *pieces, fv_error *error) {
    const writer         *w = (writer *)base;
    const fv_hdf5_plugin *h5;
    char                  message[FV_HDF5_MESSAGE];
    FV_TRY(fv__hdf5_load(&h5, error));
    void *file = h5->create(base->path, message), *dataset = NULL;
    if (file) dataset = h5->create_dataset(file, w->dataset, &w->about, message);
    bool good = dataset && write_attributes(h5, dataset, &base->type, message) &&
                fv__hdf5_write_cxi(h5, file, w->dataset, &base->type, message);
    fv_status status = good ? write_chunks(w, h5, dataset, pieces, error) : FV_ERROR_IO;
    if (status == FV_OK) good = h5->flush(file, message);
    if (!good) status = fv__hdf5_not_written(base->path, message, error);
    if (dataset) h5->close_dataset(dataset);
    if (file) h5->close(file);
    return status;
}
