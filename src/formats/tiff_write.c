/* Writing TIFF: pieces encoded anywhere, and a container put around them that depends on their sizes alone. With a pyramid, a
 * piece brings its part of every coarser level along, and tiles of these are put together in the end. Strips and tiles without
 * compression, of one level, have their place before anything is computed: many workers put them there at once, and the bytes are
 * the same. */
#include "base/deflate.h"
#include "base/sync.h"
#include "base/take.h"
#include "formats/tiff_design.h"
#include "formats/zarr_array.h"
#include "formats/zarr_shrink.h"
#include "formats/zarr_zstd.h"
#include "op/dense.h"
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

enum { DATA_START = 16, FLUSH = 4 << 20 };

int64_t fv__tiff_classic_limit = UINT32_MAX; /* of the format; tests make it smaller, before anything runs */

typedef struct {
    fv_writer       base;
    fv_tiff_design  design;
    fv_dense        dense; /* where the voxels lie, if the writer is parallel */
    pthread_mutex_t mutex; /* guards the opening of fd */
    int             fd;
} writer;

/* ---------------------------------------------------------------- writers */

static fv_status make_writer(const fv_image_file *file, const fv_format *format, const fv_file_layout *layout,
                             const char *temporary, fv_writer **out, fv_error *error) {
    fv_tiff_design chosen = { 0 };
    FV_TRY(fv__tiff_design(file, format == &fv_format_ome_tiff, &chosen, error));
    writer *w = fv__writer_new(sizeof *w, format, file, layout, temporary);
    w->design = chosen;
    pthread_mutex_init(&w->mutex, NULL);
    w->fd = -1;
    w->dense = (fv_dense){ .offset = DATA_START, .dtype = file->type->dtype, .ndim = file->type->ndim };
    memcpy(w->dense.shape, file->type->shape, sizeof w->dense.shape);
    *out = &w->base;
    return FV_OK;
}

fv_status fv__tiff_create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                          fv_error *error) {
    return make_writer(file, &fv_format_tiff, layout, temporary, out, error);
}

fv_status fv__tiff_ome_create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                              fv_error *error) {
    return make_writer(file, &fv_format_ome_tiff, layout, temporary, out, error);
}

void fv__tiff_free_writer(fv_writer *base) {
    writer *w = (writer *)base;
    if (w->fd >= 0) close(w->fd);
    pthread_mutex_destroy(&w->mutex);
    fv__writer_free(base);
}

/* ---------------------------------------------------------------- pieces */

/* Differences along a row, `step` samples apart; the first `step` stay. */
#define DIFFERENCES(type)                                                                                                        \
    do {                                                                                                                         \
        const type *restrict in = from;                                                                                          \
        type *restrict out = to;                                                                                                 \
        for (int64_t i = 0; i < FV_MIN(step, n); i++) out[i] = in[i];                                                            \
        for (int64_t i = step; i < n; i++) out[i] = (type)(in[i] - in[i - step]);                                                \
    } while (0)

static void predict_row(void *to, const void *from, int64_t n, int64_t step, size_t size) {
    if (size == 1)
        DIFFERENCES(uint8_t);
    else if (size == 2)
        DIFFERENCES(uint16_t);
    else
        DIFFERENCES(uint32_t);
}

/* One row of the block as the file holds it; line is scratch for rows whose pixels are not adjacent. */
static void file_row(const writer *w, const char *from, const fv_block *block, int64_t columns, char *line, char *to) {
    size_t  size = fv_dtype_size(block->dtype);
    int64_t n = columns * w->design.samples;
    if (block->region.ndim > w->design.leading + 2 && block->stride[w->design.leading + 1] != w->design.samples) {
        for (int64_t x = 0; x < columns; x++)
            memcpy(line + x * w->design.samples * (int64_t)size, from + x * block->stride[w->design.leading + 1] * (int64_t)size,
                   (size_t)w->design.samples * size);
        from = line;
    }
    if (w->design.predict)
        predict_row(to, from, n, w->design.samples, size);
    else if (block->dtype == FV_BOOL)
        for (int64_t i = 0; i < n; i++) to[i] = from[i] ? (char)255 : 0;
    else
        memcpy(to, from, (size_t)n * size);
}

static fv_status compress(const writer *w, const void *data, size_t size, fv_bytes *out, fv_error *error) {
    if (w->design.compression == FV_TIFF_DEFLATE)
        fv__deflate(data, size, w->design.level, FV_DEFLATE_ZLIB, out);
    else if (w->design.compression == FV_TIFF_LZW)
        fv__tiff_lzw(data, size, out);
    else if (w->design.compression == FV_TIFF_ZSTD) {
        size_t room = ZSTD_compressBound(size), made = 0;
        void  *to = fv__bytes_append(out, NULL, room);
        if (fv__zstd_pack(w->design.level, false, data, size, to, room, &made)) /* the room suffices */
            return fv_fail(error, FV_ERROR_MEMORY, "%s: no memory to compress a piece with zstd", w->base.path);
        out->size -= room - made;
    } else
        fv__bytes_append(out, data, size);
    return FV_OK;
}

/* Bytes of a strip or tile before it is compressed, and of a row of it. */
static size_t raw_bytes(const writer *w, const fv_block *block, int64_t *row) {
    *row = w->design.piece_width * w->design.samples * (int64_t)fv_dtype_size(block->dtype);
    return (size_t)((w->design.tiled ? w->design.piece_height : block->region.size[w->design.leading]) * *row);
}

/* A strip or a tile as the file holds it; behind it is room for one row more. */
static void fill_raw(const writer *w, const fv_block *block, char *raw) {
    size_t  size = fv_dtype_size(block->dtype);
    int64_t rows = block->region.size[w->design.leading], columns = block->region.size[w->design.leading + 1], row_bytes;
    size_t  bytes = raw_bytes(w, block, &row_bytes);
    char   *line = raw + bytes;
    for (int64_t y = 0; y < rows; y++) {
        const char *from = (const char *)block->data + y * block->stride[w->design.leading] * (int64_t)size;
        char       *to = raw + y * row_bytes;
        file_row(w, from, block, columns, line, to);
        /* A tile may reach over the edge of the image; with differences, zeros there repeat the last pixel. */
        memset(to + columns * w->design.samples * (int64_t)size, 0,
               (size_t)((w->design.piece_width - columns) * w->design.samples) * size);
    }
    memset(raw + rows * row_bytes, 0, bytes - (size_t)(rows * row_bytes));
}

/* A strip or a tile of any level. */
static fv_status encode_block(const writer *w, const fv_block *block, fv_bytes *out, fv_error *error) {
    int64_t row;
    size_t  bytes = raw_bytes(w, block, &row);
    char   *raw;
    FV_TRY(FV_TAKE_BUFFER(raw, bytes + (size_t)row, error));
    fill_raw(w, block, raw);
    fv_status status = compress(w, raw, bytes, out, error);
    fv__buffer_free(raw, bytes + (size_t)row);
    return status;
}

/* ---------------------------------------------------------------- coarser levels */

/* A box of the page at that level: what lies over one of the image that begins at a multiple of the level's step. */
static fv_region coarse_box(const writer *w, const fv_region *region, int level) {
    fv_region box = *region;
    for (int d = w->design.leading; d < w->design.leading + 2; d++) {
        int64_t step = (int64_t)1 << level;
        box.start[d] = region->start[d] / step;
        box.size[d] = (region->start[d] + region->size[d] + step - 1) / step - box.start[d];
    }
    return box;
}

static int64_t box_bytes(const writer *w, const fv_region *box) {
    return fv__region_voxels(box) * (int64_t)fv_dtype_size(w->base.type.dtype);
}

/* Labels stay what they are: of bools and wide integers the first pixel is taken, of others the mean, as in OME-Zarr. */
static bool takes_mean(fv_dtype dtype) { return dtype != FV_BOOL && (!fv_dtype_is_integer(dtype) || fv_dtype_size(dtype) < 4); }

/* Appends the parts of all coarser levels that lie over a piece. */
static fv_status append_levels(const writer *w, const fv_block *block, fv_bytes *out, fv_error *error) {
    bool      halved[FV_MAX_DIMS] = { false };
    int64_t   room = 0;
    fv_region fine = block->region;
    for (int level = 1; level < w->design.levels; level++) {
        fv_region box = coarse_box(w, &block->region, level);
        room += box_bytes(w, &box);
    }
    FV_TRY(fv__bytes_need(out, (size_t)room, error));
    halved[w->design.leading] = halved[w->design.leading + 1] = true;
    fv_block from = *block;
    for (int level = 1; level < w->design.levels; level++) {
        fv_block  to;
        fv_region box = fv__zarr_shrunk(&fine, halved);
        fv__block_init(&to, block->dtype, &box, fv__bytes_append(out, NULL, (size_t)box_bytes(w, &box)));
        fv__zarr_shrink(&from, &to, halved, takes_mean(block->dtype));
        from = to;
        fine = box;
    }
    return FV_OK;
}

/* With a pyramid, the piece itself is preceded by its size and followed by its parts of the levels, which begin where numbers of
 * all kinds may lie. */
static size_t padded(uint64_t size) { return (size_t)((size + 15) & ~(uint64_t)15); }

fv_status fv__tiff_encode(fv_writer *base, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    (void)piece;
    const writer *w = (const writer *)base;
    if (w->design.levels == 1) return encode_block(w, block, out, error);
    uint64_t size = 0;
    size_t   begin = out->size;
    fv__bytes_append(out, &size, sizeof size);
    FV_TRY(encode_block(w, block, out, error));
    size = out->size - begin - sizeof size;
    memcpy(out->data + begin, &size, sizeof size);
    fv__bytes_append(out, (const char[15]){ 0 }, padded(out->size) - out->size);
    return append_levels(w, block, out, error);
}

/* ---------------------------------------------------------------- directories
 * A directory is followed by the values that do not fit into its entries, then comes the next one. */

typedef struct {
    bool     big;
    int64_t  position; /* of the directory in the file */
    int      count, expected;
    fv_bytes entries, values;
} directory;

static void put_number(fv_bytes *out, uint64_t value, int size) {
    uint8_t  bytes[8];
    uint16_t two = (uint16_t)value;
    uint32_t four = (uint32_t)value;
    memcpy(bytes, size == 2 ? (void *)&two : size == 4 ? (void *)&four : (void *)&value, (size_t)size);
    fv__bytes_append(out, bytes, (size_t)size);
}

static int64_t directory_bytes(bool big, int entries) { return big ? 8 + 20 * entries + 8 : 2 + 12 * entries + 4; }

/* An entry with `count` values that are `bytes` long together. */
static void put_entry(directory *d, int tag, int type, uint64_t count, const void *data, size_t bytes) {
    size_t word = d->big ? 8 : 4;
    put_number(&d->entries, (uint64_t)tag, 2);
    put_number(&d->entries, (uint64_t)type, 2);
    put_number(&d->entries, count, (int)word);
    if (bytes <= word) {
        memset(fv__bytes_append(&d->entries, NULL, word), 0, word);
        memcpy(d->entries.data + d->entries.size - word, data, bytes);
    } else {
        put_number(&d->entries, (uint64_t)(d->position + directory_bytes(d->big, d->expected)) + d->values.size, (int)word);
        fv__bytes_append(&d->values, data, bytes);
        if (d->values.size % 2) fv__bytes_append(&d->values, "", 1);
    }
    d->count++;
}

static void put_short(directory *d, int tag, int value) {
    uint16_t v = (uint16_t)value;
    put_entry(d, tag, TIFF_SHORT, 1, &v, sizeof v);
}

static void put_long(directory *d, int tag, int64_t value) {
    uint32_t v = (uint32_t)value;
    put_entry(d, tag, TIFF_LONG, 1, &v, sizeof v);
}

static void put_shorts(directory *d, int tag, int value, int64_t count) {
    uint16_t *v = fv__alloc((size_t)count * sizeof *v);
    for (int64_t i = 0; i < count; i++) v[i] = (uint16_t)value;
    put_entry(d, tag, TIFF_SHORT, (uint64_t)count, v, (size_t)count * sizeof *v);
    free(v);
}

/* Best fraction of two 32-bit numbers, by continued fractions. */
static void put_rational(directory *d, int tag, double value) {
    double   rest = value, p0 = 0, q0 = 1, p1 = 1, q1 = 0;
    uint32_t fraction[2] = { 1, 1 };
    for (int i = 0; i < 40; i++) {
        double whole = floor(rest), p2 = whole * p1 + p0, q2 = whole * q1 + q0;
        if (p2 > UINT32_MAX || q2 > UINT32_MAX) break;
        p0 = p1, q0 = q1, p1 = p2, q1 = q2;
        fraction[0] = (uint32_t)p1;
        fraction[1] = (uint32_t)q1;
        if (fabs(p1 / q1 - value) <= 1e-15 * value || rest == whole) break;
        rest = 1 / (rest - whole);
    }
    put_entry(d, tag, TIFF_RATIONAL, 1, fraction, sizeof fraction);
}

typedef struct { /* of a piece in the file */
    int64_t  offset;
    uint32_t size;
} place;

/* Offsets or sizes of the pieces of a page. */
static void put_places(directory *d, int tag, const place *places, int64_t count, bool offsets) {
    size_t   word = d->big && offsets ? 8 : 4;
    fv_bytes values = { 0 };
    for (int64_t i = 0; i < count; i++) put_number(&values, offsets ? (uint64_t)places[i].offset : places[i].size, (int)word);
    put_entry(d, tag, word == 8 ? TIFF_LONG8 : TIFF_LONG, (uint64_t)count, values.data, values.size);
    fv__bytes_release(&values);
}

static int sample_format(fv_dtype dtype) {
    if (fv_dtype_is_complex(dtype)) return SAMPLEFORMAT_COMPLEXIEEEFP;
    if (fv_dtype_is_float(dtype)) return SAMPLEFORMAT_IEEEFP;
    return fv_dtype_is_signed(dtype) ? SAMPLEFORMAT_INT : SAMPLEFORMAT_UINT;
}

/* The size of a level of a page. */
static int64_t level_height(const fv_tiff_design *chosen, int level) {
    return (chosen->height + ((int64_t)1 << level) - 1) >> level;
}
static int64_t level_width(const fv_tiff_design *chosen, int level) {
    return (chosen->width + ((int64_t)1 << level) - 1) >> level;
}
static int64_t level_pieces(const fv_tiff_design *chosen, int level) {
    return (level_height(chosen, level) + chosen->piece_height - 1) / chosen->piece_height *
           ((level_width(chosen, level) + chosen->piece_width - 1) / chosen->piece_width);
}

/* Of all levels of a page. */
static int64_t pieces_in_file(const fv_tiff_design *chosen) {
    int64_t count = 0;
    for (int level = 0; level < chosen->levels; level++) count += level_pieces(chosen, level);
    return count;
}

/* Where the directories of the coarser levels lie. */
static void put_levels(directory *d, const int64_t *levels, int count) {
    fv_bytes values = { 0 };
    for (int i = 0; i < count; i++) put_number(&values, (uint64_t)levels[i], d->big ? 8 : 4);
    put_entry(d, TIFFTAG_SUBIFD, d->big ? TIFF_IFD8 : TIFF_IFD, (uint64_t)count, values.data, values.size);
    fv__bytes_release(&values);
}

/* levels: where the directories of coarser levels lie, for that of the image itself. */
static void fill_directory(const writer *w, int64_t page, int level, const place *places, const int64_t *levels, directory *d) {
    static const int     compressions[] = { COMPRESSION_ADOBE_DEFLATE, COMPRESSION_ZSTD, COMPRESSION_LZW, COMPRESSION_NONE };
    const fv_image_type *type = &w->base.type;
    bool                 colour = w->design.samples == 3 || w->design.samples == 4;
    int64_t              extra = w->design.samples - (colour ? 3 : 1);
    fv_bytes             description = { 0 }, sizes = { 0 }, metadata = { 0 };
    double               resolution[2];
    int                  unit;
    fv__tiff_axes_write(type, type->ndim > w->design.leading + 2, w->design.hyperstack, &description, resolution, &unit);
    if (w->base.format == &fv_format_ome_tiff) {
        fv__bytes_clear(&description);
        fv__tiff_ome_write(type, w->design.leading, w->design.samples, &description);
    }
    bool told = page == 0 && level == 0 && description.size > 0, pyramid = level == 0 && w->design.levels > 1;
    bool imagej = told && description.size > 7 && !memcmp(description.data, "ImageJ=", 7) &&
                  fv__tiff_imagej_metadata(type, w->design.pages, &sizes, &metadata);
    int64_t count = level_pieces(&w->design, level);
    d->expected = 16 + 2 * imagej + told + w->design.tiled + (extra > 0) + w->design.predict + pyramid;
    put_long(d, TIFFTAG_SUBFILETYPE, level ? FILETYPE_REDUCEDIMAGE : w->design.pages > 1 ? FILETYPE_PAGE : 0);
    put_long(d, TIFFTAG_IMAGEWIDTH, level_width(&w->design, level));
    put_long(d, TIFFTAG_IMAGELENGTH, level_height(&w->design, level));
    put_shorts(d, TIFFTAG_BITSPERSAMPLE, 8 * (int)fv_dtype_size(type->dtype), w->design.samples);
    put_short(d, TIFFTAG_COMPRESSION, compressions[w->design.compression]);
    put_short(d, TIFFTAG_PHOTOMETRIC, colour ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    if (told) put_entry(d, TIFFTAG_IMAGEDESCRIPTION, TIFF_ASCII, description.size + 1, description.data, description.size + 1);
    if (!w->design.tiled) put_places(d, TIFFTAG_STRIPOFFSETS, places, count, true);
    put_short(d, TIFFTAG_SAMPLESPERPIXEL, (int)w->design.samples);
    if (!w->design.tiled) put_long(d, TIFFTAG_ROWSPERSTRIP, w->design.piece_height);
    if (!w->design.tiled) put_places(d, TIFFTAG_STRIPBYTECOUNTS, places, count, false);
    put_rational(d, TIFFTAG_XRESOLUTION, resolution[0]);
    put_rational(d, TIFFTAG_YRESOLUTION, resolution[1]);
    put_short(d, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    put_short(d, TIFFTAG_RESOLUTIONUNIT, unit);
    put_entry(d, TIFFTAG_SOFTWARE, TIFF_ASCII, 6, "fovea", 6);
    if (w->design.predict) put_short(d, TIFFTAG_PREDICTOR, PREDICTOR_HORIZONTAL);
    if (w->design.tiled) put_long(d, TIFFTAG_TILEWIDTH, w->design.piece_width);
    if (w->design.tiled) put_long(d, TIFFTAG_TILELENGTH, w->design.piece_height);
    if (w->design.tiled) put_places(d, TIFFTAG_TILEOFFSETS, places, count, true);
    if (w->design.tiled) put_places(d, TIFFTAG_TILEBYTECOUNTS, places, count, false);
    if (pyramid) put_levels(d, levels, w->design.levels - 1);
    if (extra > 0)
        put_shorts(d, TIFFTAG_EXTRASAMPLES,
                   w->design.samples == 4 || w->design.samples == 2 ? EXTRASAMPLE_UNASSALPHA : EXTRASAMPLE_UNSPECIFIED, extra);
    put_shorts(d, TIFFTAG_SAMPLEFORMAT, sample_format(type->dtype), w->design.samples);
    if (imagej) put_entry(d, FV_TIFF_IMAGEJ_SIZES, TIFF_LONG, sizes.size / 4, sizes.data, sizes.size);
    if (imagej) put_entry(d, FV_TIFF_IMAGEJ_METADATA, TIFF_BYTE, metadata.size, metadata.data, metadata.size);
    assert(d->count == d->expected);
    fv__bytes_release(&description);
    fv__bytes_release(&sizes);
    fv__bytes_release(&metadata);
}

/* ---------------------------------------------------------------- the file */

static int64_t aligned(int64_t position) { return (position + 15) / 16 * 16; }

/* All pieces of the image itself, one after another as its pages are in the file (ImageJ looks for uncompressed ones behind each
 * other); places of coarser levels are left out. */
static fv_status put_pieces(const writer *w, fv_pieces *pieces, int fd, place *places, int64_t *end, fv_error *error) {
    int64_t all = pieces_in_file(&w->design), a_page = w->design.pieces_a_page;
    *end = DATA_START;
    for (int64_t i = 0; i < pieces->count; i++) {
        const void *data;
        size_t      size;
        int64_t     page = fv__tiff_page_in_file(&w->base.type, &w->design, i / a_page);
        FV_TRY(pieces->get(pieces, page * a_page + i % a_page, &data, &size, error));
        if (w->design.levels > 1) {
            uint64_t own;
            memcpy(&own, data, sizeof own);
            data = (const char *)data + sizeof own;
            size = own;
        }
        FV_TRY(fv__file_write_at(fd, data, size, *end, w->base.path, error));
        places[page * all + i % a_page] = (place){ *end, (uint32_t)size };
        *end += (int64_t)size;
    }
    return FV_OK;
}

/* A piece's part of a level: behind the piece itself and its parts of finer levels. */
static fv_status find_part(const writer *w, fv_pieces *pieces, const fv_lattice *lattice, int64_t index, int level,
                           fv_block *part, fv_error *error) {
    const void *data;
    size_t      size;
    uint64_t    own;
    fv_region   region = fv__lattice_chunk(lattice, index);
    FV_TRY(pieces->get(pieces, index, &data, &size, error));
    memcpy(&own, data, sizeof own);
    const char *at = (const char *)data + padded(sizeof own + own);
    for (int finer = 1; finer < level; finer++) {
        fv_region box = coarse_box(w, &region, finer);
        at += box_bytes(w, &box);
    }
    fv_region box = coarse_box(w, &region, level);
    fv__block_init(part, w->base.type.dtype, &box, (void *)(uintptr_t)at);
    return FV_OK;
}

/* A tile of a coarser level, of the parts of all pieces below it. */
static fv_status gather_tile(const writer *w, fv_pieces *pieces, const fv_lattice *lattice, const fv_block *tile, int level,
                             fv_error *error) {
    int     y = w->design.leading;
    int64_t position[FV_MAX_DIMS] = { 0 }, step[2] = { w->design.piece_height, w->design.piece_width };
    for (int d = 0; d < y; d++) position[d] = tile->region.start[d];
    int64_t end[2];
    for (int d = 0; d < 2; d++)
        end[d] = FV_MIN((tile->region.start[y + d] + tile->region.size[y + d]) << level, lattice->shape[y + d]);
    for (int64_t row = tile->region.start[y] << level; row < end[0]; row += step[0])
        for (int64_t column = tile->region.start[y + 1] << level; column < end[1]; column += step[1]) {
            fv_block part;
            position[y] = row;
            position[y + 1] = column;
            FV_TRY(find_part(w, pieces, lattice, fv__lattice_index(lattice, position), level, &part, error));
            fv_block window = fv__block_window(tile, &part.region);
            fv__block_copy(&window, &part);
        }
    return FV_OK;
}

static fv_status put_level(const writer *w, fv_pieces *pieces, int fd, int level, int64_t page, place *places, void *memory,
                           int64_t *end, fv_error *error) {
    fv_lattice image, tiles;
    int64_t    shape[FV_MAX_DIMS];
    memcpy(shape, w->base.type.shape, sizeof shape);
    fv__lattice_init(&image, w->base.type.ndim, shape, w->base.layout.piece);
    shape[w->design.leading] = level_height(&w->design, level);
    shape[w->design.leading + 1] = level_width(&w->design, level);
    fv__lattice_init(&tiles, w->base.type.ndim, shape, w->base.layout.piece);
    int64_t   count = level_pieces(&w->design, level);
    fv_bytes  encoded = { 0 };
    fv_status status = FV_OK;
    for (int64_t i = 0; i < count && status == FV_OK; i++) {
        fv_region region = fv__lattice_chunk(&tiles, page * count + i);
        fv_block  tile;
        fv__block_init(&tile, w->base.type.dtype, &region, memory);
        fv__bytes_clear(&encoded);
        status = gather_tile(w, pieces, &image, &tile, level, error);
        if (status == FV_OK) status = encode_block(w, &tile, &encoded, error);
        if (status == FV_OK) status = fv__file_write_at(fd, encoded.data, encoded.size, *end, w->base.path, error);
        places[i] = (place){ *end, (uint32_t)encoded.size };
        *end += (int64_t)encoded.size;
    }
    fv__bytes_release(&encoded);
    return status;
}

static fv_status put_coarser(const writer *w, fv_pieces *pieces, int fd, place *places, int64_t *end, fv_error *error) {
    size_t bytes =
        (size_t)(w->design.piece_height * w->design.piece_width * w->design.samples) * fv_dtype_size(w->base.type.dtype);
    void *memory;
    if (w->design.levels == 1) return FV_OK;
    FV_TRY(FV_TAKE_BUFFER(memory, bytes, error));
    fv_status status = FV_OK;
    for (int64_t page = 0; page < w->design.pages; page++) {
        place *own = places + page * pieces_in_file(&w->design);
        for (int level = 1; level < w->design.levels && status == FV_OK; level++) {
            own += level_pieces(&w->design, level - 1);
            status = put_level(w, pieces, fd, level, page, own, memory, end, error);
        }
    }
    fv__buffer_free(memory, bytes);
    return status;
}

static int64_t directory_end(const directory *d) {
    return aligned(d->position + directory_bytes(d->big, d->count) + (int64_t)d->values.size);
}

/* Appends a directory, up to where the next begins. */
static void close_directory(directory *d, int64_t next, fv_bytes *out) {
    size_t end = out->size + (size_t)(directory_end(d) - d->position);
    put_number(out, (uint64_t)d->count, d->big ? 8 : 2);
    fv__bytes_append(out, d->entries.data, d->entries.size);
    put_number(out, (uint64_t)next, d->big ? 8 : 4);
    fv__bytes_append(out, d->values.data, d->values.size);
    while (out->size < end) fv__bytes_append(out, "", 1);
    fv__bytes_release(&d->entries);
    fv__bytes_release(&d->values);
}

/* The directory of a page, followed by those of its coarser levels, whose places it tells; so it is filled a first time to learn
 * its length. */
static void put_page(const writer *w, int64_t page, const place *places, int64_t position, bool big, fv_bytes *out) {
    int64_t   levels[64] = { 0 };
    fv_bytes  coarser = { 0 };
    directory first = { .big = big, .position = position }, own = first;
    fill_directory(w, page, 0, places, levels, &first);
    int64_t end = directory_end(&first);
    fv__bytes_release(&first.entries);
    fv__bytes_release(&first.values);
    const place *at = places;
    for (int level = 1; level < w->design.levels; level++) {
        directory d = { .big = big, .position = end };
        at += level_pieces(&w->design, level - 1);
        fill_directory(w, page, level, at, NULL, &d);
        levels[level - 1] = end;
        end = directory_end(&d);
        close_directory(&d, 0, &coarser);
    }
    fill_directory(w, page, 0, places, levels, &own);
    close_directory(&own, page + 1 < w->design.pages ? end : 0, out);
    fv__bytes_append(out, coarser.data, coarser.size);
    fv__bytes_release(&coarser);
}

static fv_status put_directories(const writer *w, int fd, const place *places, int64_t position, bool big, fv_error *error) {
    fv_bytes  waiting = { 0 };
    fv_status status = FV_OK;
    for (int64_t page = 0; page < w->design.pages && status == FV_OK; page++) {
        put_page(w, page, places + fv__tiff_page_in_file(&w->base.type, &w->design, page) * pieces_in_file(&w->design),
                 position + (int64_t)waiting.size, big, &waiting);
        if (waiting.size < FLUSH && page + 1 < w->design.pages) continue;
        status = fv__file_write_at(fd, waiting.data, waiting.size, position, w->base.path, error);
        position += (int64_t)waiting.size;
        fv__bytes_clear(&waiting);
    }
    fv__bytes_release(&waiting);
    return status;
}

static fv_status put_header(const writer *w, int fd, int64_t first, bool big, fv_error *error) {
    fv_bytes header = { 0 };
    fv__bytes_append(&header, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "II" : "MM", 2);
    put_number(&header, big ? 43 : 42, 2);
    if (big) put_number(&header, 8, 2);
    if (big) put_number(&header, 0, 2);
    put_number(&header, (uint64_t)first, big ? 8 : 4);
    while (header.size < DATA_START) fv__bytes_append(&header, "", 1);
    fv_status status = fv__file_write_at(fd, header.data, header.size, 0, w->base.path, error);
    fv__bytes_release(&header);
    return status;
}

/* All that is not voxels, which end at `end`. */
static fv_status put_container(const writer *w, int fd, const place *places, int64_t end, fv_error *error) {
    int64_t first = aligned(end), pages = w->design.pages;
    bool    big = first + pages * w->design.levels * 4096 + pages * pieces_in_file(&w->design) * 8 > fv__tiff_classic_limit;
    FV_TRY(put_directories(w, fd, places, first, big, error));
    return put_header(w, fd, first, big, error);
}

fv_status fv__tiff_assemble(fv_writer *base, fv_pieces *pieces, fv_error *error) {
    const writer *w = (const writer *)base;
    int           fd;
    int64_t       end;
    FV_TRY(fv__file_open_write(base->path, &fd, error));
    place    *places;
    fv_status status = FV_TAKE(places, (size_t)(w->design.pages * pieces_in_file(&w->design)) * sizeof *places, error);
    if (status == FV_OK) status = put_pieces(w, pieces, fd, places, &end, error);
    if (status == FV_OK) status = put_coarser(w, pieces, fd, places, &end, error);
    if (status == FV_OK) status = put_container(w, fd, places, end, error);
    if (status == FV_OK) fv__file_start_sync(fd);
    free(places);
    fv_status closed = fv__file_close(fd, base->path, status == FV_OK ? error : NULL);
    return status == FV_OK ? closed : status;
}

/* ---------------------------------------------------------------- in place */

static fv_status open_once(writer *w, fv_error *error) {
    pthread_mutex_lock(&w->mutex);
    fv_status status = w->fd >= 0 ? FV_OK : fv__file_open_update(w->base.path, &w->fd, error);
    pthread_mutex_unlock(&w->mutex);
    return status;
}

/* Bytes of a piece in place: strips end with the image, tiles are whole. */
static int64_t piece_bytes(const writer *w, int64_t in_page) {
    int64_t row = w->design.piece_width * w->design.samples * (int64_t)fv_dtype_size(w->base.type.dtype);
    int64_t y = in_page * w->design.piece_height;
    return (w->design.tiled ? w->design.piece_height : FV_MIN(w->design.piece_height, w->design.height - y)) * row;
}

fv_status fv__tiff_begin(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    int64_t count = w->design.pages * w->design.pieces_a_page;
    place  *places;
    int64_t end = DATA_START;
    FV_TRY(FV_TAKE(places, (size_t)count * sizeof *places, error));
    for (int64_t i = 0; i < count; i++) {
        places[i] = (place){ end, (uint32_t)piece_bytes(w, i % w->design.pieces_a_page) };
        end += places[i].size;
    }
    fv_status status = open_once(w, error);
    if (status == FV_OK) status = put_container(w, w->fd, places, end, error);
    free(places);
    return status;
}

/* All tiles of a block, each where it belongs; the disk begins with them at once. */
static fv_status put_tiles(const writer *w, const fv_block *block, fv_error *error) {
    fv_lattice lattice;
    int64_t    row;
    size_t     bytes = raw_bytes(w, block, &row);
    char      *raw;
    fv_status  status = FV_TAKE_BUFFER(raw, bytes + (size_t)row, error);
    fv__lattice_init(&lattice, w->base.type.ndim, w->base.type.shape, w->base.layout.piece);
    fv_region box = { 0 };
    while (status == FV_OK && fv__zarr_next(lattice.ndim, lattice.chunk, &block->region, &box)) {
        fv_region part = fv__region_intersect(&box, &block->region);
        fv_block  tile = fv__block_window(block, &part);
        int64_t   at = DATA_START + fv__lattice_index(&lattice, part.start) * (int64_t)bytes;
        fill_raw(w, &tile, raw);
        status = fv__file_write_at(w->fd, raw, bytes, at, w->base.path, error);
        fv__file_start_sync_part(w->fd, at, (int64_t)bytes);
    }
    fv__buffer_free(raw, bytes + (size_t)row);
    return status;
}

fv_status fv__tiff_put(fv_writer *base, const fv_block *block, fv_error *error) {
    writer *w = (writer *)base;
    FV_TRY(open_once(w, error));
    if (fv__region_empty(&block->region)) return FV_OK;
    return w->design.tiled ? put_tiles(w, block, error) : fv__dense_write(&w->dense, w->fd, base->path, block, error);
}

fv_status fv__tiff_sync(fv_writer *base, fv_error *error) {
    writer *w = (writer *)base;
    return w->fd < 0 ? FV_OK : fv__open_file_sync(w->fd, base->path, error);
}
