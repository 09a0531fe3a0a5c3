/* Header and voxels, uncompressed or in one deflated stream; see volume.h. */
#include "formats/volume.h"
#include "base/take.h"
#include "op/output_parts.h"
#include <stdlib.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 19, DEFAULT_LEVEL = 1 };

/* ---------------------------------------------------------------- opening */

fv_status fv__volume_open(fv_volume *volume, const char *path, fv_error *error) {
    uint8_t    start[2] = { 0 };
    fv_file_id id;
    *volume = (fv_volume){ .fd = -1, .path = fv__strdup(path) };
    FV_TRY(fv__file_open_read(path, &volume->fd, error));
    FV_TRY(fv__file_identify(path, &id, error));
    volume->file_size = id.size;
    volume->time = id.mtime_ns;
    if (id.size >= 2) FV_TRY(fv__file_read_at(volume->fd, start, 2, 0, path, error));
    if (start[0] == 0x1f && start[1] == 0x8b) fv__volume_inflate(volume, 0, FV_GZIP_GZIP);
    return FV_OK;
}

void fv__volume_close(fv_volume *volume) {
    if (volume->gzip) fv__gzip_free(volume->gzip);
    if (volume->fd >= 0) close(volume->fd);
    free(volume->path);
    *volume = (fv_volume){ .fd = -1 };
}

void fv__volume_inflate(fv_volume *volume, int64_t start, fv_gzip_form form) {
    volume->gzip = fv__gzip_new_at(volume->fd, start, volume->file_size, form, volume->path);
}

fv_status fv__volume_fetch(fv_volume *volume, int64_t offset, void *to, size_t size, fv_error *error) {
    return volume->gzip ? fv__gzip_read(volume->gzip, offset, to, size, error)
                        : fv__file_read_at(volume->fd, to, size, offset, volume->path, error);
}

fv_status fv__volume_check(const fv_volume *volume, const char *format, fv_error *error) {
    int64_t bytes = fv__dense_bytes(&volume->dense), end, most = volume->file_size;
    if (bytes < 0 || !fv__add(bytes, volume->dense.offset, &end))
        return fv_fail(error, FV_ERROR_INPUT, "%s: the dimensions of the %s header overflow", volume->path, format);
    if (volume->gzip && !fv__mul(most, FV_GZIP_MOST_RATIO, &most)) most = INT64_MAX;
    if (end > most)
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: its header promises %lld bytes, the file has %lld%s", volume->path,
                       (long long)end, (long long)volume->file_size, volume->gzip ? " compressed" : "");
    return FV_OK;
}

void fv__volume_layout(const fv_volume *volume, fv_reader *reader) {
    memcpy(reader->chunk, reader->type.shape, sizeof reader->chunk);
    reader->sequential = volume->gzip != NULL;
    reader->read_memory = volume->gzip ? (int64_t)fv__gzip_memory() : FV_DENSE_MEMORY;
    if (!strcmp(volume->path, reader->path)) return;
    free(reader->voxels);
    reader->voxels = fv__strdup(volume->path);
    reader->voxels_id = (fv_file_id){ volume->file_size, volume->time };
    fv_hasher hasher; /* voxels in a file of their own change without the header */
    fv__hasher_init(&hasher);
    fv__hasher_add(&hasher, &reader->header, sizeof reader->header);
    fv__hasher_int(&hasher, volume->file_size);
    fv__hasher_int(&hasher, volume->time);
    reader->header = fv__hasher_finish(&hasher);
}

/* ---------------------------------------------------------------- voxels that a header of text points to */

static fv_status open_beside(fv_volume *volume, const char *header, const char *name, fv_error *error) {
    fv_dense dense = volume->dense;
    char    *path = fv__path_beside(header, name);
    fv__volume_close(volume);
    fv_status status = fv__volume_open(volume, path, error);
    volume->dense = dense;
    free(path);
    return status;
}

static fv_status inflate_from(fv_volume *volume, int64_t start, fv_error *error) {
    uint8_t first[2] = { 0 };
    if (volume->file_size - start >= 2) FV_TRY(fv__file_read_at(volume->fd, first, 2, start, volume->path, error));
    fv__volume_inflate(volume, start, first[0] == 0x1f && first[1] == 0x8b ? FV_GZIP_GZIP : FV_GZIP_ZLIB);
    return FV_OK;
}

fv_status fv__volume_enter(fv_volume *volume, const char *header, const fv_voxel_place *place, fv_error *error) {
    int64_t start = place->file ? 0 : place->behind, bytes = fv__dense_bytes(&volume->dense), offset = -1;
    if (place->file) FV_TRY(open_beside(volume, header, place->file, error));
    if (place->packed && !volume->gzip) FV_TRY(inflate_from(volume, start, error));
    if (place->skip == -1 && !place->packed)
        offset = volume->file_size - bytes;
    else if (place->skip >= 0 && !fv__add(place->packed ? 0 : start, place->skip, &offset))
        offset = -1;
    if (bytes >= 0 && offset < 0)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the %s field %s is %lld, which is not possible", header, place->format,
                       place->field, (long long)place->skip);
    volume->dense.offset = offset;
    return fv__volume_check(volume, place->format, error);
}

void fv__volume_facts(const fv_volume *volume, const fv_voxel_place *place, fv_bytes *facts) {
    fv__bytes_printf(facts, "compression: %s\nbyte order: %s\n", volume->gzip ? fv__gzip_name(volume->gzip) : "none",
                     volume->dense.swapped ? "swapped" : "native");
    if (place->file) fv__bytes_printf(facts, "voxels in: %s\n", place->file);
}

/* ---------------------------------------------------------------- reading */

/* Trailing axes that lie in one run both in the file and in the block, and voxels of such a run. */
static int run_axes(const fv_dense *dense, const fv_block *block, int64_t *voxels) {
    int d = dense->ndim - 1;
    *voxels = block->region.size[d];
    while (d > 0 && block->region.size[d] == dense->shape[d] && block->stride[d - 1] == *voxels)
        *voxels *= block->region.size[--d];
    return dense->ndim - d;
}

static int64_t stored_offset(const fv_dense *dense, const int64_t *position) {
    int64_t voxel = 0;
    for (int d = 0; d < dense->ndim; d++) voxel = voxel * dense->shape[d] + position[d];
    return dense->offset + voxel * (dense->half ? 2 : (int64_t)fv_dtype_size(dense->dtype));
}

/* float16 lies in the first half of the room for its float32. */
static void widen(const fv_dense *dense, void *data, int64_t n) {
    for (int64_t i = n - 1; i >= 0; i--) {
        uint16_t half;
        memcpy(&half, (uint8_t *)data + 2 * i, 2);
        ((float *)data)[i] = fv__half_widen(dense->swapped ? __builtin_bswap16(half) : half);
    }
}

/* Runs in file order, straight into the block; after the last voxel the checksum follows. */
static fv_status read_stream(fv_volume *v, const fv_block *block, fv_error *error) {
    const fv_dense *dense = &v->dense;
    int64_t         voxels, end = 0;
    int             together = run_axes(dense, block, &voxels);
    int64_t         bytes = voxels * (dense->half ? 2 : (int64_t)fv_dtype_size(dense->dtype));
    fv_region       starts = block->region;
    for (int i = 1; i <= together; i++) starts.size[starts.ndim - i] = 1;
    fv_rows rows;
    for (fv__rows_begin(&rows, &starts); fv__rows_next(&rows);) {
        void   *to = fv__block_at(block, rows.position);
        int64_t offset = stored_offset(dense, rows.position);
        FV_TRY(fv__gzip_read(v->gzip, offset, to, (size_t)bytes, error));
        if (dense->half)
            widen(dense, to, voxels);
        else if (dense->swapped)
            fv__swap_elements(block->dtype, to, voxels);
        for (uint8_t *p = to; dense->dtype == FV_BOOL && p < (uint8_t *)to + voxels; p++) *p = *p != 0;
        end = offset + bytes;
    }
    return end == dense->offset + fv__dense_bytes(dense) ? fv__gzip_check_end(v->gzip, error) : FV_OK;
}

fv_status fv__volume_read(fv_volume *volume, const fv_block *block, fv_error *error) {
    if (fv__region_empty(&block->region)) return FV_OK;
    return volume->gzip ? read_stream(volume, block, error)
                        : fv__dense_read(&volume->dense, volume->fd, volume->path, block, error);
}

/* ---------------------------------------------------------------- writing compressed */

typedef struct {
    fv_writer   base;
    int         level;
    bool        apart;
    const char *part; /* NULL: all in one file */
    fv_dtype    stored;
    fv_bytes    header;
} gz_writer;

/* Powers of two meet the chunks of other files, so that these are decoded once. */
static void choose_piece(const fv_image_type *type, int64_t piece[FV_MAX_DIMS]) {
    fv__dense_piece(type, PIECE_BYTES, piece);
    for (int d = 0; d < type->ndim; d++)
        while (piece[d] < type->shape[d] && piece[d] & (piece[d] - 1)) piece[d] &= piece[d] - 1;
}

static int64_t level_of(const fv_write_options *options) { return options->level ? options->level : DEFAULT_LEVEL; }

fv_status fv__volume_gz_layout(const fv_image_file *file, fv_dtype stored, fv_file_layout *layout, fv_error *error) {
    int64_t level = level_of(file->options);
    if (level < 1 || level > FV_GZIP_LEVELS)
        return fv_fail(error, FV_ERROR_USAGE, "level = %lld: gzip has levels 1 (the default) to %d here", (long long)level,
                       FV_GZIP_LEVELS);
    choose_piece(file->type, layout->piece);
    /* Encoded, and once more in one run where the block is a window or of another type. */
    int64_t bytes = PIECE_BYTES * (int64_t)fv_dtype_size(stored) / (int64_t)fv_dtype_size(file->type->dtype);
    layout->piece_memory = fv__gzip_encode_memory(bytes) + bytes;
    return FV_OK;
}

fv_writer *fv__volume_gz_new(const fv_format *format, const fv_image_file *file, const fv_file_layout *layout,
                             const char *temporary, fv_dtype stored, fv_bytes *header_take, bool apart) {
    gz_writer *w = fv__writer_new(sizeof *w, format, file, layout, temporary);
    w->level = (int)level_of(file->options);
    w->apart = apart;
    w->stored = stored;
    w->header = *header_take;
    *header_take = (fv_bytes){ 0 };
    return &w->base;
}

void fv__volume_gz_replace(fv_writer *base, fv_bytes *header_take) {
    gz_writer *w = (gz_writer *)base;
    fv__bytes_release(&w->header);
    w->header = *header_take;
    *header_take = (fv_bytes){ 0 };
}

void fv__volume_gz_apart(fv_writer *base, const char *part) {
    ((gz_writer *)base)->part = part;
    ((gz_writer *)base)->apart = true;
}

fv_status fv__volume_gz_encode(fv_writer *base, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    (void)piece;
    gz_writer *w = (gz_writer *)base;
    size_t     size = (size_t)fv__region_voxels(&block->region) * fv_dtype_size(w->stored);
    fv_block   run = *block;
    void      *memory = NULL;
    if (w->stored != block->dtype) {
        FV_TRY(FV_TAKE_BUFFER(memory, size, error));
        run = fv__block_as(block, w->stored, memory);
    } else if (!fv__block_dense(block)) {
        FV_TRY(FV_TAKE_BUFFER(memory, size, error));
        fv__block_init(&run, block->dtype, &block->region, memory);
        fv__block_copy(&run, block);
    }
    fv__gzip_encode(w->level, run.data, size, out);
    if (memory) fv__buffer_free(memory, size);
    return FV_OK;
}

static fv_status get_headed(fv_pieces *base, int64_t index, const void **data, size_t *size, fv_error *error) {
    fv_headed_pieces *all = (fv_headed_pieces *)base;
    if (index > 0) return all->voxels->get(all->voxels, index - 1, data, size, error);
    *data = all->header.data;
    *size = all->header.size;
    return FV_OK;
}

void fv__volume_gz_headed(const fv_writer *base, fv_pieces *pieces, fv_headed_pieces *all) {
    const gz_writer *w = (const gz_writer *)base;
    *all = (fv_headed_pieces){ .base = { .get = get_headed, .count = pieces->count + 1 }, .voxels = pieces };
    fv__gzip_encode(w->level, w->header.data, w->header.size, &all->header);
}

static fv_status assemble_headed(const gz_writer *w, fv_pieces *pieces, fv_error *error) {
    fv_headed_pieces all;
    fv__volume_gz_headed(&w->base, pieces, &all);
    fv_status status = fv__gzip_assemble(w->base.path, NULL, &all.base, error);
    fv__bytes_release(&all.header);
    return status;
}

fv_status fv__volume_gz_assemble(fv_writer *base, fv_pieces *pieces, fv_error *error) {
    const gz_writer *w = (gz_writer *)base;
    if (!w->apart) return assemble_headed(w, pieces, error);
    if (!w->part) return fv__gzip_assemble(base->path, &w->header, pieces, error);
    char     *path = fv__sprintf("%s/%s", base->path, w->part);
    fv_status status = fv__parts_begin(base->path, error);
    if (status == FV_OK) status = fv__gzip_assemble(path, NULL, pieces, error);
    if (status == FV_OK) status = fv__paths_sync(&path, 1, error);
    if (status == FV_OK) status = fv__parts_point_to(base->path, &w->header, w->part, error);
    free(path);
    return status;
}

const fv_bytes *fv__volume_gz_header(const fv_writer *base) { return &((const gz_writer *)base)->header; }

const char *fv__volume_gz_part(const fv_writer *base) { return ((const gz_writer *)base)->part; }

void fv__volume_gz_free(fv_writer *base) {
    fv__bytes_release(&((gz_writer *)base)->header);
    fv__writer_free(base);
}

void fv__volume_free(fv_writer *writer) {
    if (writer->layout.parallel)
        fv__dense_free(writer);
    else
        fv__volume_gz_free(writer);
}
