/* Reading of Zarr arrays: of the files that meet a box only the chunks that do are read and unpacked, and a chunk that is wanted
 * whole is unpacked in its place. Of an uncompressed chunk only the rows that are wanted are read. */
#include "formats/zarr_read.h"
#include "base/file.h"
#include "base/remote.h"
#include "base/take.h"
#include "formats/zarr_zstd.h"
#include "op/dense.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRY = 16, CHECKSUM = 4 }; /* bytes of a chunk's entry in the index of a shard: offset and length */
enum { PIECE = 1 << 18 };          /* of a packed chunk: it is unpacked while it lies in the cache */
static const bool host_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

typedef struct {
    const fv_zarr_array *array;
    int64_t              bytes, room;    /* of a chunk, unpacked and packed at most */
    void                *packed, *chunk; /* buffers, made when first needed */
    void                *piece;          /* one more */
    uint8_t             *index;          /* of the shard at hand */
    const char          *path;           /* of the file at hand */
    int                  fd;
    int64_t              size; /* of the file */
} job;

static int64_t index_bytes(const fv_zarr_array *array) {
    return array->sharded ? fv__zarr_shard_chunks(array) * ENTRY + (array->index_summed ? CHECKSUM : 0) : 0;
}

int64_t fv__zarr_read_memory(const fv_zarr_array *array) {
    int64_t bytes = fv__zarr_chunk_bytes(array);
    return bytes + fv__zarr_packed_bound(bytes) + index_bytes(array) + FV_MAX(PIECE, FV_DENSE_MEMORY);
}

bool fv__zarr_unpacks(const fv_zarr_array *array) {
    return array->codec.packing != FV_ZARR_NONE || array->codec.crc32c || array->turned;
}

static void fill_block(const fv_block *block, const uint8_t *element) {
    size_t  size = fv_dtype_size(block->dtype), row = size * (size_t)block->region.size[block->region.ndim - 1];
    fv_rows rows;
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);) {
        uint8_t *to = fv__block_at(block, rows.position);
        for (size_t i = 0; i < row; i += size) memcpy(to + i, element, size);
    }
}

/* ---------------------------------------------------------------- one chunk */

static void normalise(const fv_zarr_array *array, void *data, int64_t bytes) {
    if (array->big_endian != host_is_big) fv__swap_elements(array->dtype, data, bytes / (int64_t)fv_dtype_size(array->dtype));
    for (uint8_t *p = data; array->dtype == FV_BOOL && bytes > 0; bytes--, p++) *p = *p != 0;
}

/* From a chunk whose axes are stored in another order. */
static void copy_turned(const fv_zarr_array *array, const fv_region *chunk, const void *data, const fv_block *window) {
    size_t  size = fv_dtype_size(array->dtype);
    int64_t stride[FV_MAX_DIMS], step = 1;
    int     last = array->ndim - 1;
    for (int i = last; i >= 0; i--) {
        stride[array->order[i]] = step;
        step *= array->chunk[array->order[i]];
    }
    fv_rows rows;
    for (fv__rows_begin(&rows, &window->region); fv__rows_next(&rows);) {
        int64_t offset = 0;
        for (int d = 0; d <= last; d++) offset += (rows.position[d] - chunk->start[d]) * stride[d];
        fv__copy_strided(fv__block_at(window, rows.position), 1, (const char *)data + offset * (int64_t)size, stride[last],
                         window->region.size[last], size);
    }
}

static fv_status unpack_whole(job *j, int64_t offset, int64_t size, void *data, const char **fault, fv_error *error) {
    if (!j->packed) FV_TRY(FV_TAKE_BUFFER(j->packed, (size_t)j->room, error));
    FV_TRY(fv__file_read_at(j->fd, j->packed, (size_t)size, offset, j->path, error));
    *fault = fv__zarr_unpack(&j->array->codec, j->packed, size, data, j->bytes);
    return FV_OK;
}

static fv_status feed_pieces(job *j, fv_zstd_stream *stream, int64_t offset, int64_t size, const char **fault, fv_error *error) {
    FV_TRY(fv__remote_fetch(j->fd, offset, (size_t)size, error)); /* in one request */
    for (int64_t done = 0; done < size && !*fault; done += PIECE) {
        size_t now = (size_t)FV_MIN(size - done, (int64_t)PIECE);
        FV_TRY(fv__file_read_at(j->fd, j->piece, now, offset + done, j->path, error));
        *fault = fv__zstd_feed(stream, j->piece, now);
    }
    return FV_OK;
}

static fv_status unpack_in_pieces(job *j, int64_t offset, int64_t size, void *data, const char **fault, fv_error *error) {
    if (!j->piece) FV_TRY(FV_TAKE_BUFFER(j->piece, PIECE, error));
    fv_zstd_stream *stream = fv__zstd_begin(data, (size_t)j->bytes);
    if (!stream) return fv_fail(error, FV_ERROR_MEMORY, "zstd: no memory to decompress a chunk");
    fv_status   status = feed_pieces(j, stream, offset, size, fault, error);
    const char *short_of = fv__zstd_end(stream);
    if (!*fault) *fault = short_of;
    return status;
}

/* The rows of an uncompressed chunk that the window covers. */
static fv_status read_rows(job *j, int64_t offset, int64_t size, const fv_region *chunk, const fv_block *window,
                           fv_error *error) {
    const fv_zarr_array *array = j->array;
    bool                 swapped = array->big_endian != host_is_big;
    fv_dense             dense = { .offset = offset, .dtype = array->dtype, .swapped = swapped, .ndim = array->ndim };
    fv_block             inside = *window;
    if (size != j->bytes) return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: it has another size than the chunk", j->path);
    for (int d = 0; d < array->ndim; d++) {
        dense.shape[d] = array->chunk[d];
        inside.region.start[d] -= chunk->start[d];
    }
    return fv__dense_read(&dense, j->fd, j->path, &inside, error);
}

/* The part of a chunk that the window covers, from bytes at an offset of the file. */
static fv_status read_chunk(job *j, int64_t offset, int64_t size, const fv_region *chunk, const fv_block *window,
                            fv_error *error) {
    const fv_zarr_array *array = j->array;
    const char          *fault = NULL;
    if (size > j->room)
        return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: %lld bytes are too many for a chunk", j->path, (long long)size);
    if (!fv__zarr_unpacks(array)) return read_rows(j, offset, size, chunk, window, error);
    bool whole = !array->turned && fv__region_equal(chunk, &window->region) && fv__block_dense(window);
    bool pieces = array->codec.packing == FV_ZARR_ZSTD && !array->codec.crc32c;
    if (!whole && !j->chunk) FV_TRY(FV_TAKE_BUFFER(j->chunk, (size_t)j->bytes, error));
    void *data = whole ? window->data : j->chunk;
    FV_TRY((pieces ? unpack_in_pieces : unpack_whole)(j, offset, size, data, &fault, error));
    if (fault) return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: %s", j->path, fault);
    normalise(array, data, j->bytes);
    if (whole) return FV_OK;
    fv_block from;
    fv__block_init(&from, array->dtype, chunk, data);
    if (array->turned)
        copy_turned(array, chunk, data, window);
    else
        fv__block_copy(window, &from);
    return FV_OK;
}

/* ---------------------------------------------------------------- shards */

static fv_status read_index(job *j, fv_error *error) {
    int64_t size = index_bytes(j->array);
    uint8_t sum[CHECKSUM];
    if (j->size < size)
        return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: it has %lld bytes, the index of a shard alone has %lld", j->path,
                       (long long)j->size, (long long)size);
    if (!j->index) FV_TRY(FV_TAKE(j->index, (size_t)size, error));
    FV_TRY(fv__file_read_at(j->fd, j->index, (size_t)size, j->array->index_first ? 0 : j->size - size, j->path, error));
    if (!j->array->index_summed) return FV_OK;
    fv__zarr_checksum(j->index, (size_t)size - CHECKSUM, sum);
    if (memcmp(sum, j->index + size - CHECKSUM, CHECKSUM))
        return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: the checksum of its index is wrong", j->path);
    return FV_OK;
}

static uint64_t little(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

/* Where a chunk lies in the shard at hand; size -1: it is not there. */
static fv_status find_chunk(const job *j, const fv_region *shard, const fv_region *chunk, int64_t *offset, int64_t *size,
                            fv_error *error) {
    int64_t place = 0;
    for (int d = 0; d < j->array->ndim; d++)
        place = place * (j->array->file[d] / j->array->chunk[d]) + (chunk->start[d] - shard->start[d]) / j->array->chunk[d];
    uint64_t from = little(j->index + place * ENTRY), length = little(j->index + place * ENTRY + 8);
    *offset = 0;
    *size = -1;
    if (from == UINT64_MAX && length == UINT64_MAX) return FV_OK;
    if (length > (uint64_t)j->size || from > (uint64_t)j->size - length)
        return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: its index places chunk %lld beyond the end of the file", j->path,
                       (long long)place);
    *offset = (int64_t)from;
    *size = (int64_t)length;
    return FV_OK;
}

static fv_status read_shard(job *j, const fv_region *shard, const fv_block *window, fv_error *error) {
    fv_region chunk = { 0 };
    FV_TRY(read_index(j, error));
    while (fv__zarr_next(j->array->ndim, j->array->chunk, &window->region, &chunk)) {
        fv_region part = fv__region_intersect(&chunk, &window->region);
        fv_block  inner = fv__block_window(window, &part);
        int64_t   offset, size;
        FV_TRY(find_chunk(j, shard, &chunk, &offset, &size, error));
        if (size < 0)
            fill_block(&inner, j->array->fill);
        else
            FV_TRY(read_chunk(j, offset, size, &chunk, &inner, error));
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- files */

static fv_status read_file(job *j, const fv_region *file, const fv_block *window, fv_error *error) {
    struct stat s;
    FV_TRY(fv__file_open_read(j->path, &j->fd, error));
    j->size = fstat(j->fd, &s) ? 0 : s.st_size;
    fv_status status = j->array->sharded ? read_shard(j, file, window, error) : read_chunk(j, 0, j->size, file, window, error);
    close(j->fd);
    return status;
}

fv_status fv__zarr_read(const fv_zarr_array *array, const char *folder, const fv_block *block, fv_error *error) {
    fv_region file = { 0 };
    fv_status status = FV_OK;
    job       j = { .array = array, .bytes = fv__zarr_chunk_bytes(array) };
    j.room = fv__zarr_packed_bound(j.bytes);
    if (fv__region_empty(&block->region)) return FV_OK;
    while (status == FV_OK && fv__zarr_next(array->ndim, array->file, &block->region, &file)) {
        fv_region part = fv__region_intersect(&file, &block->region);
        fv_block  window = fv__block_window(block, &part);
        char     *path = fv__zarr_file_path(array, folder, file.start);
        j.path = path;
        if (fv__file_exists(path))
            status = read_file(&j, &file, &window, error);
        else
            fill_block(&window, array->fill);
        free(path);
    }
    if (j.packed) fv__buffer_free(j.packed, (size_t)j.room);
    if (j.chunk) fv__buffer_free(j.chunk, (size_t)j.bytes);
    if (j.piece) fv__buffer_free(j.piece, PIECE);
    free(j.index);
    return status;
}
