/* Compressed voxels of VTI files; see vti_blocks.h. */
#include "formats/vti_blocks.h"
#include "base/deflate.h"
#include "base/take.h"
#include "formats/gzip.h"
#include <lz4.h>
#include <stdlib.h>
#ifdef FV_LZMA
#include <lzma.h>
#endif

enum { BLOCK_BYTES = 1 << 20, MOST_BYTES = 1 << 26, LARGEST_BLOCK = 1 << 28, LZMA_MEMORY = 128 << 20 };
enum { HEAD = 3 }; /* numbers before the sizes: blocks, bytes of one, bytes of the last */

/* By packing: its name, and the bytes that one packed byte may stand for. */
static const struct {
    const char *name;
    int64_t     most_ratio;
} packings[] = { { "none", 1 }, { "zlib", FV_GZIP_MOST_RATIO }, { "lz4", 256 }, { "lzma", 16384 } };

const char *fv__vti_packing_name(fv_vti_packing packing) { return packings[packing].name; }

/* ---------------------------------------------------------------- the table */

static fv_status damaged(const char *path, const char *why, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s: the table of compressed blocks of the VTI file %s", path, why);
}

static fv_status read_numbers(int fd, const char *path, int64_t at, bool wide, bool swapped, int64_t n, int64_t *to,
                              fv_error *error) {
    size_t   word = wide ? 8 : 4;
    uint8_t *bytes;
    FV_TRY(FV_TAKE(bytes, (size_t)n * word + 1, error));
    fv_status status = fv__file_read_at(fd, bytes, (size_t)n * word, at, path, error);
    for (int64_t i = 0; status == FV_OK && i < n; i++) {
        uint64_t large = 0;
        uint32_t small = 0;
        memcpy(wide ? (void *)&large : &small, bytes + i * (int64_t)word, word);
        if (wide)
            to[i] = (int64_t)(swapped ? __builtin_bswap64(large) : large);
        else
            to[i] = (int64_t)(swapped ? __builtin_bswap32(small) : small);
        if (to[i] < 0) status = damaged(path, "has a number beyond 2^63", error);
    }
    free(bytes);
    return status;
}

/* Sizes become places. */
static fv_status place_blocks(fv_vti_blocks *b, const char *path, int64_t first, int64_t file_size, fv_error *error) {
    int64_t at = first;
    for (int64_t i = 0; i < b->count; i++) {
        int64_t packed = b->place[i];
        if (packed > file_size - at) return damaged(path, "goes beyond the end of the file", error);
        b->place[i] = at;
        b->largest = FV_MAX(b->largest, packed);
        at += packed;
    }
    b->place[b->count] = at;
    return FV_OK;
}

fv_status fv__vti_blocks_open(fv_vti_blocks *b, int fd, const char *path, int64_t at, int64_t file_size, bool wide, bool swapped,
                              int64_t bytes, fv_error *error) {
    int64_t head[HEAD], word = wide ? 8 : 4, all;
#ifndef FV_LZMA
    if (b->packing == FV_VTI_LZMA)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%s: this Fovea was built without lzma; on Debian: apt-get install liblzma-dev, then build again", path);
#endif
    *b = (fv_vti_blocks){ .packing = b->packing };
    if (at < 0 || at > file_size - HEAD * word) return damaged(path, "goes beyond the end of the file", error);
    FV_TRY(read_numbers(fd, path, at, wide, swapped, HEAD, head, error));
    at += HEAD * word;
    if (head[0] < 1 || head[0] > (file_size - at) / word) return damaged(path, "has an impossible number of blocks", error);
    if (head[1] < 1 || head[1] > LARGEST_BLOCK || head[2] > head[1]) return damaged(path, "has an impossible size", error);
    b->count = head[0];
    b->size = head[1];
    if (!fv__mul(b->count - 1, b->size, &all) || !fv__add(all, head[2] ? head[2] : b->size, &b->total) || b->total != bytes)
        return damaged(path, "holds another number of bytes than the Extent needs", error);
    if (bytes / packings[b->packing].most_ratio > file_size) return damaged(path, "claims more than the file can hold", error);
    FV_TRY(FV_TAKE(b->place, (size_t)(b->count + 1) * sizeof *b->place, error));
    FV_TRY(read_numbers(fd, path, at, wide, swapped, b->count, b->place, error));
    return place_blocks(b, path, at + b->count * word, file_size, error);
}

void fv__vti_blocks_release(fv_vti_blocks *b) { free(b->place); }

int64_t fv__vti_blocks_memory(const fv_vti_blocks *b) { return b->size + b->largest; }

/* ---------------------------------------------------------------- reading */

typedef struct {
    const fv_vti_blocks *blocks;
    int                  fd;
    const char          *path;
    int64_t              current; /* block in the buffer; -1: none */
    uint8_t             *unpacked, *packed;
} job;

static bool unpack_xz(const uint8_t *from, size_t from_size, uint8_t *to, size_t to_size) {
#ifdef FV_LZMA
    uint64_t memory = LZMA_MEMORY;
    size_t   used = 0, made = 0;
    return lzma_stream_buffer_decode(&memory, 0, NULL, from, &used, from_size, to, &made, to_size) == LZMA_OK && made == to_size;
#else
    (void)from, (void)from_size, (void)to, (void)to_size;
    return false;
#endif
}

static bool unpack_lz4(const uint8_t *from, size_t from_size, uint8_t *to, size_t to_size) {
    return from_size <= LZ4_MAX_INPUT_SIZE && to_size <= LZ4_MAX_INPUT_SIZE &&
           LZ4_decompress_safe((const char *)from, (char *)to, (int)from_size, (int)to_size) == (int)to_size;
}

static fv_status unpack(job *j, int64_t index, fv_error *error) {
    const fv_vti_blocks *b = j->blocks;
    size_t               packed = (size_t)(b->place[index + 1] - b->place[index]);
    size_t               size = (size_t)FV_MIN(b->size, b->total - index * b->size);
    if (j->current == index) return FV_OK;
    j->current = -1;
    FV_TRY(fv__file_read_at(j->fd, j->packed, packed, b->place[index], j->path, error));
    bool good = b->packing == FV_VTI_LZ4    ? unpack_lz4(j->packed, packed, j->unpacked, size)
                : b->packing == FV_VTI_LZMA ? unpack_xz(j->packed, packed, j->unpacked, size)
                                            : fv__gzip_inflate(j->packed, packed, true, j->unpacked, size);
    if (!good)
        return fv_fail(error, FV_ERROR_INPUT, "%s: block %lld of its compressed voxels is damaged", j->path, (long long)index);
    j->current = index;
    return FV_OK;
}

static fv_status fetch(job *j, int64_t offset, uint8_t *to, int64_t bytes, fv_error *error) {
    while (bytes > 0) {
        int64_t index = offset / j->blocks->size, inside = offset % j->blocks->size;
        int64_t n = FV_MIN(bytes, j->blocks->size - inside);
        FV_TRY(unpack(j, index, error));
        memcpy(to, j->unpacked + inside, (size_t)n);
        to += n;
        offset += n;
        bytes -= n;
    }
    return FV_OK;
}

fv_status fv__vti_blocks_read(const fv_vti_blocks *blocks, const fv_dense *dense, int fd, const char *path, const fv_block *block,
                              fv_error *error) {
    job j = { .blocks = blocks, .fd = fd, .path = path, .current = -1 };
    if (fv__region_empty(&block->region)) return FV_OK;
    j.unpacked = fv__try_alloc((size_t)blocks->size);
    j.packed = fv__try_alloc((size_t)blocks->largest + 1);
    fv_status status = j.unpacked && j.packed ? FV_OK : fv_fail(error, FV_ERROR_MEMORY, "%s: no memory for a block", path);
    int64_t   n = block->region.size[dense->ndim - 1], size = (int64_t)fv_dtype_size(dense->dtype);
    fv_rows   rows;
    for (fv__rows_begin(&rows, &block->region); status == FV_OK && fv__rows_next(&rows);) {
        int64_t voxel = 0;
        void   *to = fv__block_at(block, rows.position);
        for (int d = 0; d < dense->ndim; d++) voxel = voxel * dense->shape[d] + rows.position[d];
        status = fetch(&j, voxel * size, to, n * size, error);
        if (dense->swapped) fv__swap_elements(dense->dtype, to, n);
    }
    free(j.unpacked);
    free(j.packed);
    return status;
}

/* ---------------------------------------------------------------- writing */

typedef struct {
    fv_writer base;
    int       level;
    int64_t   bytes;
    fv_bytes  header, trailer;
} writer;

/* Boxes that lie in one run and all have the same size, but for the last. */
static void choose_piece(const fv_image_type *type, int64_t *piece) {
    int axis = 0;
    fv__dense_piece(type, BLOCK_BYTES, piece);
    while (axis < type->ndim - 1 && piece[axis] == 1) axis++;
    bool first = true;
    for (int d = 0; d < axis; d++) first = first && type->shape[d] == 1;
    if (first) return;
    int64_t wanted = piece[axis], size = (int64_t)fv_dtype_size(type->dtype);
    while (type->shape[axis] % piece[axis]) piece[axis]--;
    for (int d = axis; d < type->ndim; d++) size *= type->shape[d];
    if (piece[axis] * 4 < wanted && size <= MOST_BYTES) piece[axis] = type->shape[axis]; /* rather large than many */
}

static int64_t level_of(const fv_write_options *options) { return options->level ? options->level : 1; }

static int64_t block_bytes(const fv_image_type *type, const fv_file_layout *layout) {
    int64_t bytes = (int64_t)fv_dtype_size(type->dtype);
    for (int d = 0; d < type->ndim; d++) bytes *= layout->piece[d];
    return bytes;
}

fv_status fv__vti_blocks_layout(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    int64_t level = level_of(file->options);
    if (level < 1 || level > FV_DEFLATE_LEVELS)
        return fv_fail(error, FV_ERROR_USAGE, "level = %lld: zlib has levels 1 (the default) to %d", (long long)level,
                       FV_DEFLATE_LEVELS);
    choose_piece(file->type, layout->piece);
    int64_t bytes = block_bytes(file->type, layout);
    layout->piece_memory = bytes + fv__deflate_memory(bytes);
    return FV_OK;
}

fv_writer *fv__vti_blocks_new(const fv_format *format, const fv_image_file *file, const fv_file_layout *layout,
                              const char *temporary, fv_bytes *header_take, fv_bytes *trailer_take) {
    writer *w = fv__writer_new(sizeof *w, format, file, layout, temporary);
    w->level = (int)level_of(file->options);
    w->header = *header_take;
    w->trailer = *trailer_take;
    *header_take = *trailer_take = (fv_bytes){ 0 };
    w->bytes = block_bytes(file->type, layout);
    return &w->base;
}

fv_status fv__vti_blocks_encode(fv_writer *base, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    (void)piece;
    size_t   size = (size_t)fv__region_voxels(&block->region) * fv_dtype_size(block->dtype);
    fv_block run = *block;
    void    *memory = NULL;
    if (!fv__block_dense(block)) FV_TRY(FV_TAKE_BUFFER(memory, size, error));
    if (memory) {
        fv__block_init(&run, block->dtype, &block->region, memory);
        fv__block_copy(&run, block);
    }
    fv__deflate(run.data, size, ((writer *)base)->level, FV_DEFLATE_ZLIB, out);
    if (memory) fv__buffer_free(memory, size);
    return FV_OK;
}

static fv_status put_blocks(writer *w, fv_pieces *pieces, int fd, uint64_t *table, fv_error *error) {
    const char *path = w->base.path;
    int64_t     size = (HEAD + pieces->count) * 8, at = (int64_t)w->header.size, end = at + size;
    int64_t     total = fv_image_type_bytes(&w->base.type);
    table[0] = (uint64_t)pieces->count;
    table[1] = (uint64_t)w->bytes;
    table[2] = (uint64_t)(total % w->bytes);
    FV_TRY(fv__file_write_at(fd, w->header.data, w->header.size, 0, path, error));
    for (int64_t i = 0; i < pieces->count; i++) {
        const void *data;
        size_t      packed;
        FV_TRY(pieces->get(pieces, i, &data, &packed, error));
        FV_TRY(fv__file_write_at(fd, data, packed, end, path, error));
        table[HEAD + i] = packed;
        end += (int64_t)packed;
    }
    FV_TRY(fv__file_write_at(fd, table, (size_t)size, at, path, error));
    return fv__file_write_at(fd, w->trailer.data, w->trailer.size, end, path, error);
}

fv_status fv__vti_blocks_assemble(fv_writer *base, fv_pieces *pieces, fv_error *error) {
    int       fd;
    uint64_t *table;
    FV_TRY(FV_TAKE(table, (size_t)(HEAD + pieces->count) * sizeof *table, error));
    fv_status status = fv__file_open_write(base->path, &fd, error);
    if (status == FV_OK) {
        status = put_blocks((writer *)base, pieces, fd, table, error);
        fv_error  later;
        fv_status closed = fv__file_close(fd, base->path, status == FV_OK ? error : &later);
        if (status == FV_OK) status = closed;
    }
    free(table);
    return status;
}

void fv__vti_blocks_free(fv_writer *base) {
    writer *w = (writer *)base;
    fv__bytes_release(&w->header);
    fv__bytes_release(&w->trailer);
    fv__writer_free(base);
}
