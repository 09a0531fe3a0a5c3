/* From the strips and tiles of a page to pixels: only those that the wanted part touches are decoded. */
#include "formats/tiff_parts.h"
#include "op/dense.h"
#include <stdio.h>
#include <stdlib.h>

/* One call to the RGBA interface makes at most about this many bytes. */
enum { RASTER_BYTES = 4 << 20 };

/* A decoded piece as pixels of the page's dtype: rows of `width` pixels with `channels` samples each. */
typedef struct {
    const void *data;
    int64_t     start[3]; /* y, x and channel of its first sample */
    int64_t     height, width, channels;
} pixels;

/* The part of the pixels that the target wants. */
static void place(const pixels *p, const fv_tiff_target *t, fv_dtype dtype) {
    int64_t size = (int64_t)fv_dtype_size(dtype), extent[3] = { p->height, p->width, p->channels }, begin[3], end[3];
    for (int d = 0; d < 3; d++) {
        begin[d] = FV_MAX(p->start[d], t->start[d]);
        end[d] = FV_MIN(p->start[d] + extent[d], t->start[d] + t->size[d]);
        if (begin[d] >= end[d]) return;
    }
    int64_t columns = end[1] - begin[1], wanted = end[2] - begin[2];
    bool    together = wanted == p->channels && t->step[1] == wanted && (t->step[2] == 1 || wanted == 1);
    for (int64_t y = begin[0]; y < end[0]; y++) {
        const char *from =
            (const char *)p->data +
            (((y - p->start[0]) * p->width + begin[1] - p->start[1]) * p->channels + begin[2] - p->start[2]) * size;
        char *to = t->data + ((y - t->start[0]) * t->step[0] + (begin[1] - t->start[1]) * t->step[1] +
                              (begin[2] - t->start[2]) * t->step[2]) *
                                 size;
        if (together)
            memcpy(to, from, (size_t)(columns * wanted * size));
        else
            for (int64_t c = 0; c < wanted; c++)
                fv__copy_strided(to + c * t->step[2] * size, t->step[1], from + c * size, p->channels, columns, (size_t)size);
    }
}

/* ---------------------------------------------------------------- samples that are no whole bytes */

/* n samples of `bits` bits, most significant bit first, into elements of `size` bytes. libtiff gives samples of three bytes in
 * the machine's order. */
static void unpack_row(const uint8_t *from, int bits, int64_t n, void *to, size_t size) {
    if (bits == 24) {
        bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
        for (int64_t i = 0; i < n; i++, from += 3)
            ((uint32_t *)to)[i] = (uint32_t)from[little ? 0 : 2] | (uint32_t)from[1] << 8 | (uint32_t)from[little ? 2 : 0] << 16;
        return;
    }
    uint64_t held = 0;
    int      count = 0;
    uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
    for (int64_t i = 0; i < n; i++) {
        while (count < bits) {
            held = held << 8 | *from++;
            count += 8;
        }
        count -= bits;
        uint32_t value = (uint32_t)(held >> count) & mask;
        if (size == 1)
            ((uint8_t *)to)[i] = (uint8_t)value;
        else if (size == 2)
            ((uint16_t *)to)[i] = (uint16_t)value;
        else
            ((uint32_t *)to)[i] = value;
    }
}

/* 16-bit palettes; some writers put 8-bit values into them. */
static void palette_table(TIFF *tif, int bits, uint8_t (*table)[3]) {
    uint16_t *map[3] = { 0 };
    int       count = 1 << bits, shift = 0;
    if (!TIFFGetField(tif, TIFFTAG_COLORMAP, &map[0], &map[1], &map[2])) return;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < count; i++)
            if (map[c][i] > 255) shift = 8;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < count; i++) table[i][c] = (uint8_t)(map[c][i] >> shift);
}

static bool needs_unpacking(const fv_tiff_page *p) {
    return p->half || p->mode == FV_TIFF_PALETTE || p->bits != 8 * (int)fv_dtype_size(p->dtype);
}

/* Rows as libtiff decoded them to rows of pixels. */
static void unpack(const fv_tiff_page *p, const uint8_t *raw, int64_t rows, uint8_t (*table)[3], void *out) {
    bool    separate = p->planar == PLANARCONFIG_SEPARATE;
    int64_t n = p->piece_width * (separate ? 1 : p->samples), channels = p->mode == FV_TIFF_PALETTE ? 3 : 1;
    size_t  size = p->mode == FV_TIFF_PALETTE ? (p->bits <= 8 ? 1 : 2) : fv_dtype_size(p->dtype);
    for (int64_t y = 0; y < rows; y++, raw += p->row_bytes) {
        char *to = (char *)out + y * n * channels * (int64_t)fv_dtype_size(p->dtype);
        if (p->half)
            for (int64_t i = 0; i < n; i++) ((float *)to)[i] = fv__half_widen(((const uint16_t *)raw)[i]);
        else if (p->mode != FV_TIFF_PALETTE)
            unpack_row(raw, p->bits, n, to, size);
        else {
            uint16_t index[256];
            for (int64_t x = 0; x < n; x += 256) { /* 256 indices of any width begin at a byte */
                int64_t part = FV_MIN(n - x, 256);
                if (p->bits == 16)
                    memcpy(index, raw + 2 * x, 2 * (size_t)part);
                else
                    unpack_row(raw + x * p->bits / 8, p->bits, part, index, 2);
                for (int64_t i = 0; i < part; i++) memcpy(to + (x + i) * 3, table[index[i]], 3);
            }
        }
    }
}

/* ---------------------------------------------------------------- strips and tiles */

/* Scratch for a piece's pixels, for its samples as libtiff gives them where these are not pixels yet, and for a palette. */
struct fv_tiff_decoder {
    void    *pixels;
    uint8_t *raw;
    uint8_t (*table)[3];
};

static int64_t pixel_bytes(const fv_tiff_page *p) {
    if (!needs_unpacking(p)) return p->piece_bytes;
    int64_t samples = p->mode == FV_TIFF_PALETTE ? 3 : p->planar == PLANARCONFIG_SEPARATE ? 1 : p->samples;
    return p->piece_width * p->piece_height * samples * (int64_t)fv_dtype_size(p->dtype);
}

size_t fv__tiff_piece_size(const fv_tiff_page *page) { return (size_t)pixel_bytes(page); }

static fv_status no_memory(const char *path, int64_t bytes, fv_error *error) {
    return fv_fail(error, FV_ERROR_MEMORY, "%s: no memory for a strip or tile of %lld bytes", path, (long long)bytes);
}

fv_status fv__tiff_decoder_new(const fv_tiff_page *page, const char *path, fv_tiff_decoder **decoder, fv_error *error) {
    fv_tiff_decoder *d = fv__calloc(sizeof *d);
    if (page->mode == FV_TIFF_PALETTE) d->table = fv__calloc((size_t)3 << page->bits);
    if (needs_unpacking(page)) d->raw = fv__try_alloc((size_t)page->piece_bytes);
    d->pixels = fv__try_alloc((size_t)pixel_bytes(page));
    *decoder = d;
    if (d->pixels && (d->raw || !needs_unpacking(page))) return FV_OK;
    fv__tiff_decoder_free(d);
    return no_memory(path, pixel_bytes(page), error);
}

void *fv__tiff_decoder_pixels(const fv_tiff_decoder *decoder) { return decoder->pixels; }

void fv__tiff_decoder_free(fv_tiff_decoder *decoder) {
    free(decoder->pixels);
    free(decoder->raw);
    free(decoder->table);
    free(decoder);
}

void fv__tiff_decoder_turn(fv_tiff_decoder *decoder, const fv_tiff_handle *handle, const fv_tiff_page *page) {
    if (page->mode == FV_TIFF_PALETTE) palette_table(handle->tif, page->bits, decoder->table);
}

static int64_t rows_of(const fv_tiff_page *p, int64_t y) {
    return p->tiled ? p->piece_height : FV_MIN(p->piece_height, p->height - y);
}

fv_status fv__tiff_decode_piece(fv_tiff_decoder *decoder, fv_tiff_handle *handle, const fv_tiff_page *p, const int64_t at[3],
                                void *to, fv_error *error) {
    TIFF    *tif = handle->tif;
    uint8_t *raw = decoder->raw ? decoder->raw : to;
    int64_t  rows = rows_of(p, at[0]), needed = rows * p->row_bytes;
    uint32_t index = p->tiled ? TIFFComputeTile(tif, (uint32_t)at[1], (uint32_t)at[0], 0, (uint16_t)at[2])
                              : TIFFComputeStrip(tif, (uint32_t)at[0], (uint16_t)at[2]);
    tmsize_t got = needed;
    fv__tiff_forget(handle);
    /* A piece that was left out is empty; some decoders leave what damaged data do not fill. */
    memset(raw, 0, (size_t)needed);
    if (TIFFGetStrileOffset(tif, index) || TIFFGetStrileByteCount(tif, index))
        got = p->tiled ? TIFFReadEncodedTile(tif, index, raw, p->piece_bytes) : TIFFReadEncodedStrip(tif, index, raw, needed);
    if (got < needed) {
        char what[96];
        snprintf(what, sizeof what, "the %s at row %lld, column %lld cannot be decoded", p->tiled ? "tile" : "strip",
                 (long long)at[0], (long long)at[1]);
        return fv__tiff_fail(handle, what, error);
    }
    if (raw != to) unpack(p, raw, rows, decoder->table, to);
    return FV_OK;
}

void fv__tiff_place_piece(const fv_tiff_page *p, const int64_t at[3], const void *data, const fv_tiff_target *target) {
    bool   separate = p->planar == PLANARCONFIG_SEPARATE && p->mode == FV_TIFF_SAMPLES;
    pixels piece = {
        data, { at[0], at[1], separate ? at[2] : 0 }, rows_of(p, at[0]), p->piece_width, separate ? 1 : p->channels
    };
    place(&piece, target, p->dtype);
}

void fv__tiff_pieces(const fv_tiff_page *p, const fv_tiff_target *t, int64_t first[3], int64_t count[3]) {
    bool          separate = p->planar == PLANARCONFIG_SEPARATE && p->mode == FV_TIFF_SAMPLES;
    const int64_t step[] = { p->piece_height, p->piece_width, 1 };
    for (int d = 0; d < 3; d++) {
        bool one = d == 2 && !separate;
        first[d] = one ? 0 : t->start[d] / step[d] * step[d];
        count[d] = one ? 1 : (t->start[d] + t->size[d] - first[d] + step[d] - 1) / step[d];
    }
}

static fv_status decode_pieces(fv_tiff_handle *handle, const fv_tiff_page *p, const fv_tiff_target *t, fv_tiff_decoder *decoder,
                               fv_error *error) {
    int64_t first[3], count[3];
    fv__tiff_pieces(p, t, first, count);
    fv__tiff_decoder_turn(decoder, handle, p);
    for (int64_t s = 0; s < count[2]; s++)
        for (int64_t y = 0; y < count[0]; y++)
            for (int64_t x = 0; x < count[1]; x++) {
                int64_t at[] = { first[0] + y * p->piece_height, first[1] + x * p->piece_width, first[2] + s };
                FV_TRY(fv__tiff_decode_piece(decoder, handle, p, at, decoder->pixels, error));
                fv__tiff_place_piece(p, at, decoder->pixels, t);
            }
    return FV_OK;
}

/* ---------------------------------------------------------------- colours by libtiff */

/* Bands of rows over the whole width: libtiff converts subsampled and tiled data best that way. */
static int64_t raster_rows(const fv_tiff_page *p) {
    int64_t rows = FV_MAX(RASTER_BYTES / (p->width * 4), 1);
    rows = rows / p->piece_height * p->piece_height; /* whole pieces, or else each is decoded again for every band */
    return FV_MIN(FV_MAX(rows, p->piece_height), p->height);
}

static fv_status decode_colours(fv_tiff_handle *h, const fv_tiff_page *p, const fv_tiff_target *t, uint32_t *raster, uint8_t *rgb,
                                fv_error *error) {
    TIFFRGBAImage image;
    char          why[1024] = "";
    fv__tiff_forget(h);
    if (!TIFFRGBAImageBegin(&image, h->tif, 1, why))
        return fv_fail(error, FV_ERROR_INPUT, "%s: its colours cannot be read: %s", h->path, why);
    image.orientation = image.req_orientation = ORIENTATION_TOPLEFT; /* rows as they are stored */
    int64_t   band = raster_rows(p);
    fv_status status = FV_OK;
    for (int64_t y = t->start[0] / band * band; y < t->start[0] + t->size[0] && status == FV_OK; y += band) {
        int64_t rows = FV_MIN(band, p->height - y), n = rows * p->width;
        image.row_offset = (int)y;
        image.col_offset = 0;
        memset(raster, 0, (size_t)n * sizeof *raster);
        if (!TIFFRGBAImageGet(&image, raster, (uint32_t)p->width, (uint32_t)rows))
            status = fv__tiff_fail(h, "its colours cannot be decoded", error);
        for (int64_t i = 0; i < n && status == FV_OK; i++) {
            rgb[3 * i] = (uint8_t)TIFFGetR(raster[i]);
            rgb[3 * i + 1] = (uint8_t)TIFFGetG(raster[i]);
            rgb[3 * i + 2] = (uint8_t)TIFFGetB(raster[i]);
        }
        pixels piece = { rgb, { y, 0, 0 }, rows, p->width, 3 };
        if (status == FV_OK) place(&piece, t, FV_UINT8);
    }
    TIFFRGBAImageEnd(&image);
    return status;
}

/* ---------------------------------------------------------------- a part of a page */

int64_t fv__tiff_decode_memory(const fv_tiff_page *p) {
    if (p->mode == FV_TIFF_RGBA) return raster_rows(p) * p->width * 7 + 2 * p->piece_bytes + (1 << 20);
    /* libtiff holds the piece's compressed bytes besides, no more than it decodes to, roughly. */
    int64_t unpacked = needs_unpacking(p) ? pixel_bytes(p) : 0;
    return 2 * p->piece_bytes + unpacked + (p->mode == FV_TIFF_PALETTE ? 3 << 16 : 0) + (256 << 10);
}

static fv_status decode_bands(fv_tiff_handle *handle, const fv_tiff_page *page, const fv_tiff_target *target, fv_error *error) {
    int64_t   band = raster_rows(page) * page->width;
    uint32_t *raster = fv__try_alloc((size_t)band * sizeof *raster);
    uint8_t  *rgb = fv__try_alloc((size_t)band * 3);
    fv_status status =
        raster && rgb ? decode_colours(handle, page, target, raster, rgb, error) : no_memory(handle->path, band * 4, error);
    free(raster);
    free(rgb);
    return status;
}

fv_status fv__tiff_decode(fv_tiff_handle *handle, const fv_tiff_page *page, const fv_tiff_target *target, fv_error *error) {
    fv_tiff_decoder *decoder;
    if (page->mode == FV_TIFF_RGBA) return decode_bands(handle, page, target, error);
    FV_TRY(fv__tiff_decoder_new(page, handle->path, &decoder, error));
    fv_status status = decode_pieces(handle, page, target, decoder, error);
    fv__tiff_decoder_free(decoder);
    return status;
}
