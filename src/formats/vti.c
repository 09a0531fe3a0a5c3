/* VTI, VTK's image data, which opens in ParaView: read by region and written by many workers at once, with the voxels behind the
 * XML as they are (appended, raw) or in compressed blocks. Voxels that are text, numbers or base64, are decoded first, into a
 * temporary file.
 *
 * Axes are z y x, c where a point has several components; spacing and origin are kept. Of several arrays `path` names one; the
 * first of the points is meant otherwise, or the first of the cells. bool is written as UInt8. */
#include "formats/vti_text.h"
#include "op/dense_writer.h"
#include <stdlib.h>
#include <unistd.h>

extern const fv_format fv_format_vti;

typedef struct {
    fv_reader     base;
    int           fd;
    fv_dense      dense;
    fv_vti_blocks blocks;
} reader;

/* ---------------------------------------------------------------- reading */

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    if (r->fd >= 0) close(r->fd);
    fv__vti_blocks_release(&r->blocks);
    fv__reader_free(base);
}

/* The number of bytes stands before voxels that are not compressed. */
static fv_status enter_plain(reader *r, const fv_vti_facts *f, int64_t at, int64_t size, int64_t bytes, fv_error *error) {
    int64_t  front = f->coding == FV_VTI_ASCII ? 0 : f->wide ? 8 : 4, end;
    uint64_t wide = 0;
    uint32_t narrow = 0;
    if (!fv__add(at, front, &at) || !fv__add(at, bytes, &end) || end > size)
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: its Extent asks for %lld bytes of voxels, %lld are there",
                       r->base.path, (long long)bytes, (long long)FV_MAX(size - at, 0));
    r->dense.offset = at;
    if (!front) return FV_OK;
    FV_TRY(fv__file_read_at(r->fd, f->wide ? (void *)&wide : &narrow, (size_t)front, at - front, r->base.path, error));
    bool swapped = f->big == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    if (f->wide)
        wide = swapped ? __builtin_bswap64(wide) : wide;
    else
        wide = swapped ? __builtin_bswap32(narrow) : narrow;
    if (f->wide ? wide == (uint64_t)bytes : wide == (uint32_t)bytes) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s: array \"%s\" has %llu bytes; the Extent asks for %lld", r->base.path, f->name,
                   (unsigned long long)wide, (long long)bytes);
}

static fv_status find_voxels(reader *r, const fv_vti_facts *f, int64_t size, fv_error *error) {
    bool    little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    int64_t at = f->place, bytes;
    int     decoded;
    r->dense = (fv_dense){ .dtype = f->dtype, .ndim = r->base.type.ndim };
    r->dense.swapped = fv_dtype_size(f->dtype) > 1 && f->big == little && f->coding != FV_VTI_ASCII;
    memcpy(r->dense.shape, r->base.type.shape, sizeof r->dense.shape);
    bytes = fv__dense_bytes(&r->dense);
    if (bytes < 0) return fv_fail(error, FV_ERROR_INPUT, "%s: the Extent of the VTI file overflows", r->base.path);
    if (f->coding != FV_VTI_RAW) {
        int64_t values = bytes / (int64_t)fv_dtype_size(f->dtype);
        FV_TRY(fv__vti_decode(f, r->fd, r->base.path, size, values, &decoded, &size, error));
        close(r->fd);
        r->fd = decoded;
        at = 0;
    }
    r->blocks.packing = f->coding == FV_VTI_ASCII ? FV_VTI_PLAIN : f->packing;
    if (!r->blocks.packing) return enter_plain(r, f, at, size, bytes, error);
    return fv__vti_blocks_open(&r->blocks, r->fd, r->base.path, at, size, f->wide, f->big == little, bytes, error);
}

/* A packed block is a run of bytes: about so many voxels along each axis. */
static void find_pieces(reader *r) {
    const fv_image_type *type = &r->base.type;
    int64_t              slab = r->blocks.total;
    memcpy(r->base.chunk, type->shape, sizeof r->base.chunk);
    r->base.whole_pieces = r->blocks.packing != FV_VTI_PLAIN;
    for (int d = 0; d < type->ndim && r->base.whole_pieces; d++) {
        slab = FV_MAX(slab / type->shape[d], 1);
        r->base.chunk[d] = FV_MIN((r->blocks.size + slab - 1) / slab, type->shape[d]);
    }
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    static const char *const codings[] = { "raw", "base64", "text" };
    reader                  *r = fv__reader_new(sizeof *r, &fv_format_vti, path);
    fv_vti_facts             f;
    fv_file_id               id;
    memset(&f, 0, sizeof f); /* it is hashed, gaps and all */
    r->fd = -1;
    fv_status status = fv__file_open_read(path, &r->fd, error);
    if (status == FV_OK) status = fv__file_identify(path, &id, error);
    if (status == FV_OK) status = fv__vti_scan(&f, r->fd, path, id.size, options ? options->path_inside : NULL, error);
    if (status == FV_OK) {
        fv__vti_type(&f, &r->base.type);
        r->base.header = fv__hash_bytes(&f, sizeof f);
        status = find_voxels(r, &f, id.size, error);
    }
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    find_pieces(r);
    r->base.read_memory = r->blocks.packing ? fv__vti_blocks_memory(&r->blocks) : FV_DENSE_MEMORY;
    fv__bytes_printf(&r->base.facts, "array: %s, of the %s\nencoding: %s\ncompression: %s\nbyte order: %s\n", f.name,
                     f.cells ? "cells" : "points", codings[f.coding], fv__vti_packing_name(r->blocks.packing),
                     r->dense.swapped ? "swapped" : "native");
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    reader *r = (reader *)base;
    return r->blocks.packing ? fv__vti_blocks_read(&r->blocks, &r->dense, r->fd, base->path, block, error)
                             : fv__dense_read(&r->dense, r->fd, base->path, block, error);
}

static fv_status contents(const char *path, fv_bytes *lines, fv_error *error) {
    int        fd;
    fv_file_id id;
    FV_TRY(fv__file_identify(path, &id, error));
    FV_TRY(fv__file_open_read(path, &fd, error));
    fv_status status = fv__vti_list(fd, path, id.size, lines, error);
    close(fd);
    return status;
}

/* ---------------------------------------------------------------- writing */

enum { RAW, ZLIB };

static void free_writer(fv_writer *writer) {
    if (writer->layout.parallel)
        fv__dense_free(writer);
    else
        fv__vti_blocks_free(writer);
}

static fv_status choose(const fv_image_file *file, fv_vti_shape *shape, int *compression, fv_error *error) {
    FV_TRY(fv__compression_choose(&fv_format_vti, file->options, compression, error));
    return fv__vti_describe(file->path, file->type, shape, error);
}

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    int          compression;
    fv_vti_shape shape;
    FV_TRY(choose(file, &shape, &compression, error));
    if (compression == ZLIB) return fv__vti_blocks_layout(file, layout, error);
    fv__dense_layout(file->type, file->type->dtype, false, layout);
    return FV_OK;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    int          compression;
    fv_vti_shape shape;
    fv_bytes     front = { 0 }, back = { 0 };
    FV_TRY(choose(file, &shape, &compression, error));
    int64_t extent[6] = { 0, shape.size[0] - 1, 0, shape.size[1] - 1, 0, shape.size[2] - 1 };
    fv__vti_put_front(&front, &shape, extent, compression == ZLIB);
    fv__vti_put_back(&back);
    if (compression == ZLIB) {
        *out = fv__vti_blocks_new(&fv_format_vti, file, layout, temporary, &front, &back);
        return FV_OK;
    }
    uint64_t bytes = (uint64_t)fv_image_type_bytes(file->type);
    fv__bytes_append(&front, &bytes, sizeof bytes);
    *out = fv__dense_writer_new(&fv_format_vti, file, layout, temporary, &front);
    fv__dense_writer_store(*out, file->type->dtype, false, &back);
    return FV_OK;
}

const fv_format fv_format_vti = {
    .name = "vti",
    .extensions = "vti",
    .brief = "VTK image data, for ParaView",
    .reads = "by region; appended or inline, raw, base64 or text, zlib, lz4, lzma; `path` names an array",
    .writes = "in parallel; zlib on all cores",
    .keeps = "spacing, origin",
    .compressions = "none|zlib",
    .takes = "every",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .contents = contents,
    .layout = lay_out,
    .create = create,
    .begin = fv__dense_begin,
    .put = fv__dense_put,
    .sync = fv__dense_sync,
    .finish = fv__dense_sync,
    .encode = fv__vti_blocks_encode,
    .assemble = fv__vti_blocks_assemble,
    .free_writer = free_writer,
};
