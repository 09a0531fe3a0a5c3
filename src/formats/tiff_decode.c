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
                fv_copy_strided(to + c * t->step[2] * size, t->step[1], from + c * size, p->channels, columns, (size_t)size);
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
            for (int64_t i = 0; i < n; i++) ((float *)to)[i] = fv_half_widen(((const uint16_t *)raw)[i]);
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

typedef struct {
    fv_tiff_handle       *handle;
    const fv_tiff_page   *page;
    const fv_tiff_target *target;
    uint8_t              *raw, *unpacked;
    uint8_t (*table)[3];
} job;

static int64_t unpacked_bytes(const fv_tiff_page *p) {
    if (!needs_unpacking(p)) return 0;
    int64_t samples = p->mode == FV_TIFF_PALETTE ? 3 : p->planar == PLANARCONFIG_SEPARATE ? 1 : p->samples;
    return p->piece_width * p->piece_height * samples * (int64_t)fv_dtype_size(p->dtype);
}

/* The piece that begins at (y, x) of plane s. */
static fv_status decode_piece(job *j, int64_t y, int64_t x, int s, fv_error *error) {
    const fv_tiff_page *p = j->page;
    TIFF               *tif = j->handle->tif;
    int64_t             rows = p->tiled ? p->piece_height : FV_MIN(p->piece_height, p->height - y), needed = rows * p->row_bytes;
    uint32_t            index = p->tiled ? TIFFComputeTile(tif, (uint32_t)x, (uint32_t)y, 0, (uint16_t)s)
                                         : TIFFComputeStrip(tif, (uint32_t)y, (uint16_t)s);
    tmsize_t            got = needed;
    fv_tiff_forget(j->handle);
    /* A piece that was left out is empty; some decoders leave what damaged data do not fill. */
    memset(j->raw, 0, (size_t)needed);
    if (TIFFGetStrileOffset(tif, index) || TIFFGetStrileByteCount(tif, index))
        got =
            p->tiled ? TIFFReadEncodedTile(tif, index, j->raw, p->piece_bytes) : TIFFReadEncodedStrip(tif, index, j->raw, needed);
    if (got < needed) {
        char what[96];
        snprintf(what, sizeof what, "the %s at row %lld, column %lld cannot be decoded", p->tiled ? "tile" : "strip",
                 (long long)y, (long long)x);
        return fv_tiff_fail(j->handle, what, error);
    }
    if (j->unpacked) unpack(p, j->raw, rows, j->table, j->unpacked);
    bool   separate = p->planar == PLANARCONFIG_SEPARATE && p->mode == FV_TIFF_SAMPLES;
    pixels piece = {
        j->unpacked ? j->unpacked : j->raw, { y, x, separate ? s : 0 }, rows, p->piece_width, separate ? 1 : p->channels
    };
    place(&piece, j->target, p->dtype);
    return FV_OK;
}

static fv_status decode_pieces(job *j, fv_error *error) {
    const fv_tiff_page   *p = j->page;
    const fv_tiff_target *t = j->target;
    bool                  separate = p->planar == PLANARCONFIG_SEPARATE;
    int64_t               first = separate && p->mode == FV_TIFF_SAMPLES ? t->start[2] : 0;
    int64_t               last = separate && p->mode == FV_TIFF_SAMPLES ? t->start[2] + t->size[2] : 1;
    for (int64_t s = first; s < last; s++)
        for (int64_t y = t->start[0] / p->piece_height * p->piece_height; y < t->start[0] + t->size[0]; y += p->piece_height)
            for (int64_t x = t->start[1] / p->piece_width * p->piece_width; x < t->start[1] + t->size[1]; x += p->piece_width)
                FV_TRY(decode_piece(j, y, x, (int)s, error));
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
    fv_tiff_forget(h);
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
            status = fv_tiff_fail(h, "its colours cannot be decoded", error);
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

int64_t fv_tiff_decode_memory(const fv_tiff_page *p) {
    if (p->mode == FV_TIFF_RGBA) return raster_rows(p) * p->width * 7 + 2 * p->piece_bytes + (1 << 20);
    /* libtiff holds the piece's compressed bytes besides, no more than it decodes to, roughly. */
    return 2 * p->piece_bytes + unpacked_bytes(p) + (p->mode == FV_TIFF_PALETTE ? 3 << 16 : 0) + (256 << 10);
}

fv_status fv_tiff_decode(fv_tiff_handle *handle, const fv_tiff_page *page, const fv_tiff_target *target, fv_error *error) {
    bool    colours = page->mode == FV_TIFF_RGBA;
    int64_t raw = colours ? raster_rows(page) * page->width * 4 : page->piece_bytes;
    int64_t unpacked = colours ? raster_rows(page) * page->width * 3 : unpacked_bytes(page);
    job     j = { handle, page, target, fv_try_alloc((size_t)raw), unpacked ? fv_try_alloc((size_t)unpacked) : NULL, NULL };
    if (page->mode == FV_TIFF_PALETTE) {
        j.table = fv_calloc((size_t)3 << page->bits);
        palette_table(handle->tif, page->bits, j.table);
    }
    fv_status status;
    if (!j.raw || (unpacked && !j.unpacked))
        status = fv_fail(error, FV_ERROR_MEMORY, "%s: no memory for a strip or tile of %lld bytes", handle->path, (long long)raw);
    else
        status = colours ? decode_colours(handle, page, target, (uint32_t *)j.raw, j.unpacked, error) : decode_pieces(&j, error);
    free(j.raw);
    free(j.unpacked);
    free(j.table);
    return status;
}
