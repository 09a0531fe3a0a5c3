/* Pages of a TIFF file as libtiff sees them: handles that keep their complaints, what a page holds, and whether that can be
 * true of a file of this size. */
#include "formats/tiff_parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---------------------------------------------------------------- handles */

static tmsize_t read_bytes(thandle_t user, void *data, tmsize_t size) {
    fv_tiff_handle *h = user;
    fv_error        error = { 0 };
    size = FV_MIN(size, (tmsize_t)(h->size - h->position));
    if (size <= 0) return 0;
    if (fv__file_read_at(h->fd, data, (size_t)size, h->position, h->path, &error) != FV_OK) {
        if (!h->message[0]) snprintf(h->message, sizeof h->message, "%.*s", (int)sizeof h->message - 1, error.message);
        return -1;
    }
    h->position += size;
    return size;
}

static tmsize_t write_nothing(thandle_t user, void *data, tmsize_t size) {
    (void)user, (void)data, (void)size;
    return -1;
}

static toff_t seek(thandle_t user, toff_t offset, int whence) {
    fv_tiff_handle *h = user;
    int64_t         from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? h->position : h->size, to;
    if (!fv__add(from, (int64_t)offset, &to) || to < 0) return (toff_t)-1;
    return (toff_t)(h->position = to);
}

static int    close_nothing(thandle_t user) { return (void)user, 0; }
static toff_t size_of(thandle_t user) { return (toff_t)((fv_tiff_handle *)user)->size; }

static int keep_error(TIFF *tif, void *user, const char *module, const char *format, va_list arguments) {
    fv_tiff_handle *h = user;
    (void)tif, (void)module;
    if (h->message[0] || strstr(format, "custom tag")) return 1; /* the first tells most; unknown tags harm nothing */
    vsnprintf(h->message, sizeof h->message, format, arguments);
    return 1;
}

static int ignore_warning(TIFF *tif, void *user, const char *module, const char *format, va_list arguments) {
    (void)tif, (void)user, (void)module, (void)format, (void)arguments;
    return 1;
}

fv_status fv__tiff_open(int fd, const char *path, int64_t size, fv_tiff_handle **handle, fv_error *error) {
    fv_tiff_handle *h = fv__calloc(sizeof *h);
    *h = (fv_tiff_handle){ .fd = fd, .path = path, .size = size };
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, h);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_warning, h);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)(FV_MIN(size, INT64_MAX / 8) * 4 + (64 << 20)));
    h->tif = TIFFClientOpenExt(path, "rm", h, read_bytes, write_nothing, seek, close_nothing, size_of, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    if (!h->tif) {
        fv_status status = fv__tiff_fail(h, "not a TIFF file that can be read", error);
        free(h);
        return status;
    }
    h->ifd = TIFFCurrentDirOffset(h->tif);
    *handle = h;
    return FV_OK;
}

void fv__tiff_close(fv_tiff_handle *handle) {
    TIFFClose(handle->tif);
    free(handle);
}

void fv__tiff_forget(fv_tiff_handle *handle) { handle->message[0] = 0; }

fv_status fv__tiff_fail(const fv_tiff_handle *handle, const char *what, fv_error *error) {
    const char *message = handle->message;
    size_t      length = strlen(handle->path);
    if (!strncmp(message, handle->path, length) && !strncmp(message + length, ": ", 2)) message += length + 2;
    return fv_fail(error, FV_ERROR_INPUT, "%s: %s%s%s", handle->path, what, *message ? ": " : "", message);
}

/* ---------------------------------------------------------------- what a page holds */

const char *fv__tiff_compression_name(int compression, char text[32]) {
    static const struct {
        int         number;
        const char *name;
    } names[] = {
        { COMPRESSION_NONE, "none" },
        { COMPRESSION_CCITTRLE, "CCITT RLE" },
        { COMPRESSION_CCITTFAX3, "CCITT G3" },
        { COMPRESSION_CCITTFAX4, "CCITT G4" },
        { COMPRESSION_LZW, "LZW" },
        { COMPRESSION_OJPEG, "old JPEG" },
        { COMPRESSION_JPEG, "JPEG" },
        { COMPRESSION_PACKBITS, "PackBits" },
        { COMPRESSION_DEFLATE, "deflate" },
        { COMPRESSION_ADOBE_DEFLATE, "deflate" },
        { COMPRESSION_LZMA, "LZMA" },
        { COMPRESSION_ZSTD, "zstd" },
        { COMPRESSION_WEBP, "WebP" },
        { COMPRESSION_LERC, "LERC" },
        { COMPRESSION_JP2000, "JPEG 2000" },
    };
    snprintf(text, 32, "number %d", compression);
    for (int i = 0; i < FV_COUNT(names); i++)
        if (names[i].number == compression) snprintf(text, 32, "%s", names[i].name);
    return text;
}

static int tag16(TIFF *tif, uint32_t tag, int absent) {
    uint16_t value = 0;
    return TIFFGetFieldDefaulted(tif, tag, &value) ? value : absent;
}

static fv_status sample_type(const fv_tiff_handle *h, fv_tiff_page *p, fv_error *error) {
    int bits = p->bits;
    p->half = false;
    switch (p->format) {
    case SAMPLEFORMAT_UINT:
    case SAMPLEFORMAT_VOID:
        p->dtype = bits == 1 && p->samples == 1 ? FV_BOOL
                   : bits <= 8                  ? FV_UINT8
                   : bits <= 16                 ? FV_UINT16
                   : bits <= 32                 ? FV_UINT32
                                                : FV_UINT64;
        if (bits >= 1 && (bits <= 32 || bits == 64)) return FV_OK;
        break;
    case SAMPLEFORMAT_INT:
        p->dtype = bits == 8 ? FV_INT8 : bits == 16 ? FV_INT16 : bits == 32 ? FV_INT32 : FV_INT64;
        if (bits == 8 || bits == 16 || bits == 32 || bits == 64) return FV_OK;
        break;
    case SAMPLEFORMAT_IEEEFP:
        p->half = bits == 16;
        p->dtype = bits <= 32 ? FV_FLOAT32 : FV_FLOAT64;
        if (bits == 16 || bits == 32 || bits == 64) return FV_OK;
        break;
    case SAMPLEFORMAT_COMPLEXIEEEFP:
        p->dtype = bits == 64 ? FV_COMPLEX64 : FV_COMPLEX128;
        if (bits == 64 || bits == 128) return FV_OK;
        break;
    default: break;
    }
    return fv_fail(error, FV_ERROR_INPUT, "%s: samples of %d bits in TIFF sample format %d cannot be read", h->path, bits,
                   p->format);
}

static fv_status choose_mode(fv_tiff_handle *h, fv_tiff_page *p, fv_error *error) {
    uint16_t *red, *green, *blue;
    char      why[1024] = "";
    p->mode = FV_TIFF_SAMPLES;
    if (p->photometric == PHOTOMETRIC_PALETTE && p->samples == 1 && p->bits <= 16 && p->format != SAMPLEFORMAT_IEEEFP &&
        TIFFGetField(h->tif, TIFFTAG_COLORMAP, &red, &green, &blue))
        p->mode = FV_TIFF_PALETTE;
    bool decoded = p->compression == COMPRESSION_JPEG && p->photometric == PHOTOMETRIC_YCBCR && p->planar == PLANARCONFIG_CONTIG;
    if (decoded) TIFFSetField(h->tif, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    if (p->compression == COMPRESSION_OJPEG || (p->photometric == PHOTOMETRIC_YCBCR && !decoded) ||
        p->photometric == PHOTOMETRIC_LOGL || p->photometric == PHOTOMETRIC_LOGLUV)
        p->mode = FV_TIFF_RGBA;
    if (p->mode == FV_TIFF_SAMPLES) {
        p->channels = p->samples;
        return sample_type(h, p, error);
    }
    p->channels = 3;
    p->dtype = FV_UINT8;
    if (p->mode == FV_TIFF_RGBA && !TIFFRGBAImageOK(h->tif, why))
        return fv_fail(error, FV_ERROR_INPUT, "%s: its colours cannot be read: %s", h->path, why);
    return FV_OK;
}

static fv_status describe_pieces(const fv_tiff_handle *h, fv_tiff_page *p, fv_error *error) {
    uint32_t width = 0, height = 0;
    p->tiled = TIFFIsTiled(h->tif);
    if (p->tiled) {
        TIFFGetField(h->tif, TIFFTAG_TILEWIDTH, &width);
        TIFFGetField(h->tif, TIFFTAG_TILELENGTH, &height);
        p->row_bytes = (int64_t)TIFFTileRowSize64(h->tif);
        p->piece_bytes = (int64_t)TIFFTileSize64(h->tif);
    } else {
        TIFFGetFieldDefaulted(h->tif, TIFFTAG_ROWSPERSTRIP, &height);
        width = (uint32_t)p->width;
        height = (uint32_t)FV_MIN((int64_t)height, p->height);
        p->row_bytes = (int64_t)TIFFScanlineSize64(h->tif);
        p->piece_bytes = (int64_t)TIFFVStripSize64(h->tif, height);
    }
    p->piece_width = width;
    p->piece_height = height;
    if (width == 0 || height == 0 || p->row_bytes <= 0 || p->piece_bytes <= 0)
        return fv__tiff_fail(h, p->tiled ? "its tiles have an impossible size" : "its strips have an impossible size", error);
    if (p->mode == FV_TIFF_RGBA) return FV_OK;
    /* libtiff and this reader must mean the same: a row of a piece holds all samples of its pixels. */
    int64_t samples = p->planar == PLANARCONFIG_SEPARATE ? 1 : p->samples, bits, bytes;
    if (!fv__mul(p->piece_width, samples * p->bits, &bits) || (bits + 7) / 8 != p->row_bytes ||
        !fv__mul(p->row_bytes, p->piece_height, &bytes) || bytes > p->piece_bytes)
        return fv_fail(error, FV_ERROR_INPUT, "%s: rows of %lld pixels, %lld samples and %d bits do not fit its strips or tiles",
                       h->path, (long long)p->piece_width, (long long)samples, p->bits);
    return FV_OK;
}

fv_status fv__tiff_page_describe(fv_tiff_handle *h, fv_tiff_page *p, fv_error *error) {
    uint32_t width = 0, height = 0, kind = 0;
    char     name[32];
    *p = (fv_tiff_page){ 0 };
    if (!TIFFGetField(h->tif, TIFFTAG_IMAGEWIDTH, &width) || !TIFFGetField(h->tif, TIFFTAG_IMAGELENGTH, &height) || !width ||
        !height)
        return fv__tiff_fail(h, "a page has no width or height", error);
    TIFFGetFieldDefaulted(h->tif, TIFFTAG_SUBFILETYPE, &kind);
    p->width = width;
    p->height = height;
    p->subsidiary = (kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0;
    p->bits = tag16(h->tif, TIFFTAG_BITSPERSAMPLE, 1);
    p->samples = tag16(h->tif, TIFFTAG_SAMPLESPERPIXEL, 1);
    p->format = tag16(h->tif, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
    p->compression = tag16(h->tif, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    p->planar = tag16(h->tif, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    p->orientation = tag16(h->tif, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    p->photometric = tag16(h->tif, TIFFTAG_PHOTOMETRIC, p->samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    if (p->samples < 1 || p->bits < 1) return fv__tiff_fail(h, "a page has no samples", error);
    if (!TIFFIsCODECConfigured((uint16_t)p->compression))
        return fv_fail(error, FV_ERROR_INPUT, "%s: its compression (%s) is not known to this libtiff", h->path,
                       fv__tiff_compression_name(p->compression, name));
    FV_TRY(choose_mode(h, p, error));
    return describe_pieces(h, p, error);
}

bool fv__tiff_page_same_kind(const fv_tiff_page *a, const fv_tiff_page *b) {
    return a->width == b->width && a->height == b->height && a->channels == b->channels && a->dtype == b->dtype &&
           a->mode == b->mode && a->bits == b->bits && a->photometric == b->photometric && a->half == b->half;
}

/* ---------------------------------------------------------------- whether it can be true */

/* Bytes that one byte of the file can become, at most; generous where the format has no strict bound. */
static int64_t most_ratio(int compression) {
    switch (compression) {
    case COMPRESSION_NONE: return 4; /* strips may share bytes */
    case COMPRESSION_PACKBITS: return 64;
    case COMPRESSION_LZW: return 2600;
    case COMPRESSION_DEFLATE:
    case COMPRESSION_ADOBE_DEFLATE: return 1032;
    case COMPRESSION_JPEG:
    case COMPRESSION_OJPEG: return 4096;
    case COMPRESSION_ZSTD: return 40000;
    case COMPRESSION_LZMA: return 10000;
    default: return 100000;
    }
}

static bool is_fax(int compression) {
    return compression == COMPRESSION_CCITTRLE || compression == COMPRESSION_CCITTRLEW || compression == COMPRESSION_CCITTFAX3 ||
           compression == COMPRESSION_CCITTFAX4;
}

fv_status fv__tiff_page_check(const fv_tiff_handle *h, const fv_tiff_page *p, fv_error *error) {
    int64_t bytes, most;
    bool    fits = fv__mul(p->width * p->channels, (int64_t)fv_dtype_size(p->dtype), &bytes) && fv__mul(bytes, p->height, &bytes);
    if (fits && is_fax(p->compression))
        fits = p->height / 8 <= h->size && p->piece_height / 8 <= h->size && p->width <= 1 << 20; /* a row takes a bit at least */
    else if (fits && fv__mul(h->size, most_ratio(p->compression), &most)) {
        /* Compare what is stored: a palette's index becomes three bytes, a bit becomes a byte. */
        double stored = (double)p->width * (double)p->height * p->samples * p->bits / 8;
        fits = stored <= (double)most && p->piece_bytes <= most + 65536;
    }
    if (fits) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT,
                   "%s: it claims %lld x %lld pixels of %d samples with %d bits, in pieces of %lld x %lld, more than a file of "
                   "%lld bytes can hold",
                   h->path, (long long)p->height, (long long)p->width, p->samples, p->bits, (long long)p->piece_height,
                   (long long)p->piece_width, (long long)h->size);
}

int64_t fv__tiff_page_bytes(const fv_tiff_page *p) {
    int64_t bytes, planes = p->planar == PLANARCONFIG_SEPARATE ? p->samples : 1;
    return fv__mul(p->row_bytes, p->height, &bytes) && fv__mul(bytes, planes, &bytes) ? bytes : -1;
}

int64_t fv__tiff_page_flat(fv_tiff_handle *h, const fv_tiff_page *p) {
    if (p->compression != COMPRESSION_NONE || p->mode != FV_TIFF_SAMPLES || p->tiled || p->bits % 8 || p->bits == 24) return -1;
    if (tag16(h->tif, TIFFTAG_FILLORDER, FILLORDER_MSB2LSB) != FILLORDER_MSB2LSB) return -1;
    uint32_t count = TIFFNumberOfStrips(h->tif);
    int64_t  planes = p->planar == PLANARCONFIG_SEPARATE ? p->samples : 1, first = (int64_t)TIFFGetStrileOffset(h->tif, 0),
            next = first;
    int64_t per_plane = (p->height + p->piece_height - 1) / p->piece_height, bytes;
    if (first <= 0 || count != planes * per_plane) return -1;
    for (uint32_t i = 0; i < count; i++) {
        int64_t rows = FV_MIN(p->piece_height, p->height - (int64_t)i % per_plane * p->piece_height);
        if ((int64_t)TIFFGetStrileOffset(h->tif, i) != next || !fv__mul(rows, p->row_bytes, &bytes) ||
            !fv__add(next, bytes, &next))
            return -1;
    }
    return next <= h->size ? first : -1;
}
