/* Whole images in files. */
#include "op/whole_file.h"
#include <stdio.h>
#include <stdlib.h>

static fv_status lay_out(const fv_image_file *file, const fv_format **format, fv_file_layout *layout, fv_error *error) {
    FV_TRY(fv__format_for_writing(file->path, format, error));
    return (*format)->layout(file, layout, error);
}

fv_status fv__whole_file_check(const char *ending, const fv_image_type *type, fv_error *error) {
    char            *path = fv__sprintf("image.%s", ending);
    fv_write_options options = { 0 };
    fv_image_file    file = { path, type, &options };
    const fv_format *format;
    fv_file_layout   layout = { 0 };
    fv_status        status = lay_out(&file, &format, &layout, error);
    free(path);
    return status;
}

/* Pieces that are encoded when they are asked for. */
typedef struct encoder {
    fv_pieces       base;
    fv_writer      *writer;
    const fv_block *block;
    fv_lattice      lattice;
    fv_bytes        bytes;
} encoder;

static fv_status encode(fv_pieces *pieces, int64_t index, const void **data, size_t *size, fv_error *error) {
    encoder  *e = (encoder *)pieces;
    fv_region region = fv__lattice_chunk(&e->lattice, index);
    fv_block  piece = fv__block_window(e->block, &region);
    fv__bytes_clear(&e->bytes);
    FV_TRY(e->writer->format->encode(e->writer, index, &piece, &e->bytes, error));
    *data = e->bytes.data;
    *size = e->bytes.size;
    return FV_OK;
}

static fv_status write_all(fv_writer *writer, const fv_block *block, fv_error *error) {
    const fv_format *format = writer->format;
    if (writer->layout.parallel) {
        FV_TRY(format->begin(writer, error));
        FV_TRY(format->put(writer, block, error));
        return format->finish(writer, error);
    }
    encoder e = { .base = { .get = encode }, .writer = writer, .block = block };
    fv__lattice_init(&e.lattice, writer->type.ndim, writer->type.shape, writer->layout.piece);
    e.base.count = fv__lattice_count(&e.lattice);
    fv_status status = format->assemble(writer, &e.base, error);
    fv__bytes_release(&e.bytes);
    return status;
}

fv_status fv__whole_file_write(const char *path, const fv_image_type *type, const fv_block *block, fv_error *error) {
    fv_write_options options = { 0 };
    fv_image_file    file = { path, type, &options };
    const fv_format *format;
    fv_file_layout   layout = { 0 };
    fv_writer       *writer;
    FV_TRY(lay_out(&file, &format, &layout, error));
    FV_TRY(format->create(&file, &layout, path, &writer, error));
    fv_status status = write_all(writer, block, error);
    format->free_writer(writer);
    return status;
}

/* Next axis that has more than one voxel; ndim: there is none. */
static int next_axis(const fv_image_type *type, int from) {
    while (from < type->ndim && type->shape[from] == 1) from++;
    return from;
}

static bool same_shape(const fv_image_type *a, const fv_image_type *b) {
    int i = next_axis(a, 0), j = next_axis(b, 0);
    while (i < a->ndim && j < b->ndim && a->shape[i] == b->shape[j]) {
        i = next_axis(a, i + 1);
        j = next_axis(b, j + 1);
    }
    return i == a->ndim && j == b->ndim;
}

static void describe(const fv_image_type *type, char *text, size_t size) {
    int used = snprintf(text, size, "%s ", fv_dtype_name(type->dtype));
    for (int d = 0; d < type->ndim; d++)
        used += snprintf(text + used, size - (size_t)used, "%s%lld", d ? " x " : "", (long long)type->shape[d]);
}

static fv_status read_all(fv_reader *reader, const fv_image_type *type, void *voxels, fv_error *error) {
    char      made[256], wanted[256];
    fv_region whole = fv__region_whole(&reader->type);
    fv_block  block;
    describe(&reader->type, made, sizeof made);
    describe(type, wanted, sizeof wanted);
    bool mask = type->dtype == FV_BOOL && reader->type.dtype == FV_UINT8; /* many formats know no other */
    if ((reader->type.dtype != type->dtype && !mask) || !same_shape(&reader->type, type))
        return fv_fail(
            error, FV_ERROR_INPUT,
            "the image is %s, and %s was expected; say what it is by dtype, shape or like, or let first = true find out", made,
            wanted);
    fv__block_init(&block, reader->type.dtype, &whole, voxels);
    FV_TRY(fv__reader_read(reader, &block, error));
    for (int64_t i = 0; mask && i < fv_image_type_voxels(type); i++) ((uint8_t *)voxels)[i] = ((uint8_t *)voxels)[i] != 0;
    return FV_OK;
}

fv_status fv__whole_file_read(const char *path, const fv_image_type *type, void *voxels, fv_error *error) {
    const fv_format *format;
    fv_read_options  options = { 0 };
    fv_reader       *reader;
    FV_TRY(fv__format_for_reading(path, &format, error));
    FV_TRY(format->open(path, &options, &reader, error));
    fv_status status = read_all(reader, type, voxels, error);
    format->close(reader);
    return status;
}
