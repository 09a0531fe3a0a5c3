/* PNG: read row by row in order (interlaced files whole), written in bands of rows that are filtered and deflated each by itself.
 * libpng reads headers, and the pixels of interlaced files, palettes and less than 8 bits; plain files are faster by png_rows.
 *
 * Reading: 1-bit grey is bool; 2 and 4 bits of grey are stretched to 0..255, as PIL does; a palette gives RGB, or RGBA where
 * it has transparent entries. A transparent colour of a grey or RGB file is left in the pixels. Gamma, colour profile and
 * print resolution change nothing.
 *
 * Writing: one zlib stream, whose pieces end at a byte and know nothing of each other: band after band of about 512 KB, cut
 * by the image's width alone. Every piece is one IDAT chunk; a last small one holds the end and the combined checksum. The
 * first row of a band cannot look at the row above, so it is filtered along x or not at all. */
#include "base/deflate.h"
#include "base/png_chunks.h"
#include "base/take.h"
#include "formats/planes.h"
#include "formats/png_rows.h"
#include "op/format.h"
#include <isa-l/igzip_lib.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

enum { BAND_BYTES = 512 << 10, LONGEST_ROW = 1 << 30, IHDR_END = 33, MOST_RATIO = 1032, LONGEST_CHUNK = 8 << 20 };

extern const fv_format fv_format_png;

/* ---------------------------------------------------------------- reading
 * Invariants: 1. png is NULL, or has given `row` rows of this file in order; 2. any failure of libpng ends in reset(), so that
 * the next read starts over; 3. whole holds all rows of an interlaced file from its first read until its last row was asked;
 * 4. of a plain file rows, not png, has given the rows. */

typedef struct {
    fv_reader    base;
    int          fd;
    int64_t      position, file_size;
    png_structp  png;
    png_infop    info;
    int64_t      row;
    bool         interlaced, bilevel, plain;
    fv_png_rows *rows;
    size_t       stored_bytes, row_bytes; /* of a row in the file and as it is read */
    uint8_t     *line;                    /* one row as libpng gives it */
    uint8_t     *whole;
    char         reason[200]; /* what libpng said last */
    fv_error     cause;       /* of a failed read of the file; code FV_OK: none */
} reader;

static void keep_error(png_structp png, png_const_charp message) {
    reader *r = png_get_error_ptr(png);
    snprintf(r->reason, sizeof r->reason, "%s", message);
    longjmp(png_jmpbuf(png), 1);
}

static void ignore_warning(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static void get_bytes(png_structp png, png_bytep data, size_t size) {
    reader *r = png_get_io_ptr(png);
    if ((int64_t)size > r->file_size - r->position) png_error(png, "the file ends early");
    if (fv__file_read_at(r->fd, data, size, r->position, r->base.path, &r->cause) != FV_OK)
        png_error(png, "the file cannot be read");
    r->position += (int64_t)size;
}

static void reset(reader *r) {
    if (r->png) png_destroy_read_struct(&r->png, &r->info, NULL);
    fv__png_rows_free(r->rows);
    r->png = NULL;
    r->rows = NULL;
    r->row = r->position = 0;
}

static fv_status failed(reader *r, fv_error *error) {
    reset(r);
    if (r->cause.code != FV_OK) {
        if (error) *error = r->cause;
        return r->cause.code;
    }
    return fv_fail(error, FV_ERROR_INPUT, "%s: damaged PNG file: %s", r->base.path, r->reason);
}

/* Begins at the first byte: reads everything before the pixels and asks for whole bytes in the machine's order. */
static fv_status start(reader *r, fv_error *error) {
    reset(r);
    r->cause.code = FV_OK;
    snprintf(r->reason, sizeof r->reason, "libpng refuses to start");
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, keep_error, ignore_warning);
    if (!r->png) return failed(r, error);
    if (setjmp(png_jmpbuf(r->png))) return failed(r, error);
    r->info = png_create_info_struct(r->png);
    png_set_read_fn(r->png, r, get_bytes);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_chunk_malloc_max(r->png, (png_alloc_size_t)FV_MIN(r->file_size * MOST_RATIO, (int64_t)LONGEST_CHUNK));
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_read_info(r->png, r->info);
    int depth = png_get_bit_depth(r->png, r->info), colour = png_get_color_type(r->png, r->info);
    r->stored_bytes = png_get_rowbytes(r->png, r->info);
    r->bilevel = depth == 1 && colour == PNG_COLOR_TYPE_GRAY;
    if (colour == PNG_COLOR_TYPE_PALETTE) {
        png_set_palette_to_rgb(r->png);
        if (png_get_valid(r->png, r->info, PNG_INFO_tRNS)) png_set_tRNS_to_alpha(r->png);
    } else if (r->bilevel)
        png_set_packing(r->png);
    else if (depth < 8)
        png_set_expand_gray_1_2_4_to_8(r->png);
    if (depth == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) png_set_swap(r->png);
    r->interlaced = png_get_interlace_type(r->png, r->info) != PNG_INTERLACE_NONE;
    if (r->interlaced) png_set_interlace_handling(r->png);
    r->plain = !r->interlaced && depth >= 8 && colour != PNG_COLOR_TYPE_PALETTE;
    png_read_update_info(r->png, r->info);
    return FV_OK;
}

static void fill_type(reader *r) {
    int     depth = png_get_bit_depth(r->png, r->info), channels = png_get_channels(r->png, r->info);
    int64_t shape[] = { png_get_image_height(r->png, r->info), png_get_image_width(r->png, r->info), channels };
    fv_image_type_init(&r->base.type, r->bilevel ? FV_BOOL : depth == 16 ? FV_UINT16 : FV_UINT8, channels > 1 ? 3 : 2, shape);
    static const char *const names[] = { "y", "x", "c" };
    for (int d = 0; d < r->base.type.ndim; d++) snprintf(r->base.type.axis[d], sizeof r->base.type.axis[d], "%s", names[d]);
    r->row_bytes = png_get_rowbytes(r->png, r->info);
}

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    reset(r);
    if (r->fd >= 0) close(r->fd);
    free(r->line);
    free(r->whole);
    fv__reader_free(base);
}

/* The file's first bytes: signature and IHDR. */
static fv_status look_at_header(reader *r, uint8_t header[IHDR_END], fv_error *error) {
    fv_file_id id;
    FV_TRY(fv__file_open_read(r->base.path, &r->fd, error));
    FV_TRY(fv__file_identify(r->base.path, &id, error));
    r->file_size = id.size;
    if (id.size < IHDR_END)
        return fv_fail(error, FV_ERROR_INPUT, "%s: %lld bytes are too few for a PNG file", r->base.path, (long long)id.size);
    FV_TRY(fv__file_read_at(r->fd, header, IHDR_END, 0, r->base.path, error));
    if (png_sig_cmp(header, 0, FV_PNG_SIGNATURE))
        return fv_fail(error, FV_ERROR_INPUT, "%s: not a PNG file (its first bytes are different)", r->base.path);
    r->base.header = fv__hash_bytes(header, IHDR_END);
    return FV_OK;
}

static fv_status open_file(reader *r, fv_error *error) {
    uint8_t header[IHDR_END];
    FV_TRY(look_at_header(r, header, error));
    FV_TRY(start(r, error));
    fill_type(r);
    /* Deflate cannot shrink more than 1032 times, so a file's size says how large an image it can hold. */
    int64_t bytes;
    if (!fv__mul((int64_t)r->stored_bytes, r->base.type.shape[0], &bytes) || bytes / MOST_RATIO > r->file_size)
        return fv_fail(error, FV_ERROR_INPUT, "%s: its header claims %lld x %lld pixels, more than a file of %lld bytes can hold",
                       r->base.path, (long long)r->base.type.shape[0], (long long)r->base.type.shape[1], (long long)r->file_size);
    static const char *const colours[] = { "grey", "?", "RGB", "palette", "grey and alpha", "?", "RGB and alpha" };
    fv__bytes_printf(&r->base.facts, "bit depth: %d\ncolour: %s\ninterlaced: %s\n", header[24], colours[FV_MIN(header[25], 6)],
                     r->interlaced ? "yes" : "no");
    return FV_OK;
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    reader *r = fv__reader_new(sizeof *r, &fv_format_png, path);
    r->fd = -1;
    fv_status status = open_file(r, error);
    if (status == FV_OK && !(r->line = fv__try_alloc(r->row_bytes)))
        status = fv_fail(error, FV_ERROR_MEMORY, "%s: no memory for a row of %zu bytes", path, r->row_bytes);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    int64_t rows = r->base.type.shape[0];
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    r->base.chunk[0] = r->interlaced ? rows : 1;
    r->base.sequential = true;
    /* libpng keeps two rows and 32 KB of history. */
    r->base.read_memory = r->plain ? fv__png_rows_memory(r->row_bytes) + (int64_t)r->row_bytes
                                   : (r->interlaced ? rows + 3 : 3) * (int64_t)r->row_bytes + (128 << 10);
    if (r->plain) reset(r);
    *out = &r->base;
    return FV_OK;
}

/* Decodes all rows of an interlaced file; they stay until the last row was asked for. */
static fv_status read_interlaced(reader *r, fv_error *error) {
    int64_t rows = r->base.type.shape[0];
    if (r->whole) return FV_OK;
    FV_TRY(start(r, error));
    uint8_t *whole = fv__try_alloc((size_t)rows * r->row_bytes);
    if (!whole)
        return fv_fail(error, FV_ERROR_MEMORY, "%s: an interlaced PNG is read whole, and there is no memory for %lld bytes",
                       r->base.path, (long long)rows * (long long)r->row_bytes);
    r->whole = whole;
    if (setjmp(png_jmpbuf(r->png))) {
        free(r->whole);
        r->whole = NULL;
        return failed(r, error);
    }
    memset(r->whole, 0, (size_t)rows * r->row_bytes);
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
        for (int64_t y = 0; y < rows; y++) png_read_row(r->png, r->whole + y * (int64_t)r->row_bytes, NULL);
    reset(r);
    return FV_OK;
}

static void swap_bytes(uint8_t *to, const uint8_t *from, size_t n) {
    for (size_t i = 0; i + 1 < n; i += 2) {
        to[i] = from[i + 1];
        to[i + 1] = from[i];
    }
}

static fv_status read_plain(reader *r, int64_t y, fv_error *error) {
    const fv_image_type *type = &r->base.type;
    size_t               pixel = (size_t)(type->ndim == 3 ? type->shape[2] : 1) * fv_dtype_size(type->dtype);
    const uint8_t       *row = NULL;
    fv_status            status = FV_OK;
    if (!r->rows || y < r->row) {
        reset(r);
        r->rows = fv__png_rows_new(r->fd, r->file_size, r->base.path, type->shape[0], r->row_bytes, pixel);
        if (!r->rows) return fv_fail(error, FV_ERROR_MEMORY, "%s: no memory for a row of %zu bytes", r->base.path, r->row_bytes);
    }
    for (; status == FV_OK && r->row <= y; r->row++) status = fv__png_rows_next(r->rows, &row, error);
    if (status != FV_OK) {
        reset(r);
        return status;
    }
    bool swapped = type->dtype == FV_UINT16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    if (row && swapped)
        swap_bytes(r->line, row, r->row_bytes);
    else if (row)
        memcpy(r->line, row, r->row_bytes);
    return FV_OK;
}

/* Row y of the file, in order; earlier ones are passed over. */
static fv_status read_line(reader *r, int64_t y, fv_error *error) {
    if (r->plain) return read_plain(r, y, error);
    if (!r->png || y < r->row) FV_TRY(start(r, error));
    if (setjmp(png_jmpbuf(r->png))) return failed(r, error);
    for (; r->row <= y; r->row++) png_read_row(r->png, r->line, NULL);
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    reader          *r = (reader *)base;
    const fv_region *region = &block->region;
    int64_t          channels = base->type.ndim == 3 ? base->type.shape[2] : 1, end = region->start[0] + region->size[0];
    if (r->interlaced) FV_TRY(read_interlaced(r, error));
    for (int64_t y = region->start[0]; y < end; y++) {
        if (!r->interlaced) FV_TRY(read_line(r, y, error));
        fv_region row = { base->type.ndim, { y, 0, 0 }, { 1, base->type.shape[1], channels } };
        fv_block  from;
        fv__block_init(&from, base->type.dtype, &row, r->interlaced ? r->whole + y * (int64_t)r->row_bytes : r->line);
        fv_region wanted = *region;
        wanted.start[0] = y;
        wanted.size[0] = 1;
        fv_block to = fv__block_window(block, &wanted);
        fv__block_copy(&to, &from);
    }
    if (r->whole && end == base->type.shape[0]) {
        free(r->whole);
        r->whole = NULL;
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- writing */

typedef struct {
    fv_writer base;
    int       level;
    int64_t   channels;
    int64_t   row_bytes; /* in the file, without the filter's byte */
} writer;

static fv_status check_type(const char *path, const fv_image_type *type, fv_error *error) {
    bool colour = type->ndim == 3 && !strcmp(type->axis[2], "c");
    if (type->dtype != FV_UINT8 && type->dtype != FV_UINT16 && type->dtype != FV_BOOL)
        return fv_fail(
            error, FV_ERROR_USAGE, "%s: PNG holds uint8, uint16 and bool, not %s; %s", path, fv_dtype_name(type->dtype),
            fv_dtype_is_integer(type->dtype) /* labels, mostly: their numbers are to stay */
                ? "convert(image, \"uint16\") keeps whole numbers up to 65535, colorize(labels) makes a picture of "
                  "labels, and TIFF holds every type"
                : fv_dtype_is_complex(type->dtype)
                      ? "write amplitude(image) or phase(image), rescaled: convert(rescale(phase(image), 0, 255), \"uint8\")"
                      : "convert(round(image), \"uint8\") keeps values from 0 to 255, and convert(rescale(image, 0, 255), "
                        "\"uint8\") stretches what there is to them");
    if (type->ndim != 2 && !(colour && type->shape[2] >= 1 && type->shape[2] <= 4)) {
        fv_bytes axes = { 0 };
        for (int d = 0; d < type->ndim; d++)
            fv__bytes_printf(&axes, "%s%s = %lld", d ? ", " : "", type->axis[d], (long long)type->shape[d]);
        fv_fail(error, FV_ERROR_USAGE,
                "%s: PNG holds one plane, y x or y x c with 1 to 4 channels, and the image has axes %s; %s", path,
                axes.data ? (char *)axes.data : "(none)",
                type->ndim < 2 ? FV_LINE_ADVICE : "take a slice such as image[0], or write TIFF");
        fv__bytes_release(&axes);
        return FV_ERROR_USAGE;
    }
    for (int d = 0; d < 2; d++)
        if (type->shape[d] < 1 || type->shape[d] > PNG_UINT_31_MAX || type->shape[1] > LONGEST_ROW / 8)
            return fv_fail(error, FV_ERROR_USAGE, "%s: %lld x %lld pixels are more than PNG holds", path,
                           (long long)type->shape[0], (long long)type->shape[1]);
    return FV_OK;
}

static int64_t row_bytes_of(const fv_image_type *type) {
    return type->shape[1] * (type->ndim == 3 ? type->shape[2] : 1) * (int64_t)fv_dtype_size(type->dtype);
}

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    const fv_write_options *options = file->options;
    const fv_image_type    *type = file->type;
    int                     compression;
    FV_TRY(fv__compression_choose(&fv_format_png, options, &compression, error));
    if (options->level < 0 || options->level > FV_DEFLATE_LEVELS)
        return fv_fail(error, FV_ERROR_USAGE, "level = %lld: PNG takes 1 to %d", (long long)options->level, FV_DEFLATE_LEVELS);
    FV_TRY(check_type(file->path, type, error));
    int64_t row = row_bytes_of(type) + 1, rows = FV_MAX(FV_MIN(BAND_BYTES / row, type->shape[0]), 1);
    memcpy(layout->piece, type->shape, sizeof layout->piece);
    layout->piece[0] = rows;
    layout->piece_memory = (rows + 8) * row + fv__deflate_memory(rows * row) + 4096;
    return FV_OK;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    writer *w = fv__writer_new(sizeof *w, &fv_format_png, file, layout, temporary);
    (void)error;
    w->level = file->options->level ? (int)file->options->level : 1;
    w->channels = file->type->ndim == 3 ? file->type->shape[2] : 1;
    w->row_bytes = row_bytes_of(file->type);
    *out = &w->base;
    return FV_OK;
}

/* A row of the block as the file holds it: big-endian, bool as 0 and 255. */
static void file_row(const writer *w, const fv_block *block, int64_t y, uint8_t *to) {
    const fv_image_type *type = &w->base.type;
    int64_t              pixels = type->ndim == 3 && block->stride[1] != w->channels ? 1 : type->shape[1];
    int64_t              n = pixels * w->channels;
    for (int64_t x = 0; x < type->shape[1]; x += pixels, to += n * (int64_t)fv_dtype_size(type->dtype)) {
        const void *from = fv__block_at(block, (int64_t[FV_MAX_DIMS]){ y, x });
        if (type->dtype == FV_UINT16)
            for (int64_t i = 0; i < n; i++) {
                uint16_t v = ((const uint16_t *)from)[i];
                to[2 * i] = (uint8_t)(v >> 8);
                to[2 * i + 1] = (uint8_t)v;
            }
        else if (type->dtype == FV_BOOL)
            for (int64_t i = 0; i < n; i++) to[i] = (uint8_t) - (((const uint8_t *)from)[i] != 0);
        else
            memcpy(to, from, (size_t)n);
    }
}

/* The five filters of the standard. row and above are preceded by `step` zero bytes. */
static void filter_row(int filter, const uint8_t *restrict row, const uint8_t *restrict above, int64_t n, int64_t step,
                       uint8_t *restrict out) {
    const uint8_t *left = row - step, *corner = above - step;
    switch (filter) {
    case PNG_FILTER_VALUE_SUB:
        for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)(row[i] - left[i]);
        break;
    case PNG_FILTER_VALUE_UP:
        for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)(row[i] - above[i]);
        break;
    case PNG_FILTER_VALUE_AVG:
        for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)(row[i] - (uint8_t)((left[i] + above[i]) >> 1));
        break;
    case PNG_FILTER_VALUE_PAETH:
        for (int64_t i = 0; i < n; i++) {
            int16_t a = left[i], b = above[i], c = corner[i];
            int16_t pa = (int16_t)abs(b - c), pb = (int16_t)abs(a - c), pc = (int16_t)abs(a + b - 2 * c);
            int16_t nearest = pb <= pc ? b : c;
            int16_t least = pb <= pc ? pb : pc;
            out[i] = (uint8_t)(row[i] - (uint8_t)(pa <= least ? a : nearest));
        }
        break;
    default: memcpy(out, row, (size_t)n);
    }
}

/* How far from zero the bytes are, as signed numbers: the usual guess at how well they deflate. */
static int64_t distance(const uint8_t *bytes, int64_t n) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n;) {
        uint32_t part = 0;
        for (int64_t end = FV_MIN(i + 65536, n); i < end; i++) part += bytes[i] < 128 ? bytes[i] : 256u - bytes[i];
        sum += part;
    }
    return sum;
}

/* Appends the filter's number and the filtered row, by the filter that gives the least distance. */
static uint8_t *put_best(const uint8_t *row, const uint8_t *above, int64_t n, int64_t step, bool first, uint8_t *out,
                         uint8_t *trial) {
    int64_t best = INT64_MAX;
    for (int filter = PNG_FILTER_VALUE_NONE; filter <= (first ? PNG_FILTER_VALUE_SUB : PNG_FILTER_VALUE_PAETH); filter++) {
        filter_row(filter, row, above, n, step, trial);
        int64_t d = distance(trial, n);
        if (d >= best) continue;
        best = d;
        out[0] = (uint8_t)filter;
        memcpy(out + 1, trial, (size_t)n);
    }
    return out + 1 + n;
}

/* All rows of a band, filtered, into `out`. */
static fv_status filter_band(const writer *w, const fv_block *block, uint8_t *out, fv_error *error) {
    int64_t  n = w->row_bytes, step = w->channels * (int64_t)fv_dtype_size(w->base.type.dtype);
    uint8_t *memory;
    FV_TRY(FV_TAKE_ZEROED(memory, (size_t)(3 * n + 2 * step), error));
    uint8_t *row = memory + step, *above = row + n + step, *trial = above + n;
    int64_t  first = block->region.start[0];
    for (int64_t y = first; y < first + block->region.size[0]; y++) {
        file_row(w, block, y, row);
        out = put_best(row, above, n, step, y == first, out, trial);
        uint8_t *other = row;
        row = above;
        above = other;
    }
    free(memory);
    return FV_OK;
}

static fv_status encode(fv_writer *base, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    const writer *w = (const writer *)base;
    size_t        size = (size_t)((w->row_bytes + 1) * block->region.size[0]);
    uint8_t      *filtered;
    FV_TRY(FV_TAKE_BUFFER(filtered, size, error));
    if (filter_band(w, block, filtered, error) != FV_OK) {
        fv__buffer_free(filtered, size);
        return FV_ERROR_MEMORY;
    }
    fv_png_band head = { .size = size, .adler = isal_adler32(1, filtered, size) };
    fv__bytes_append(out, &head, sizeof head);
    size_t begin = out->size;
    fv__bytes_append(out, "\0\0\0\0IDAT", 8);
    if (piece == 0) fv__bytes_append(out, "\x78\x01", 2); /* zlib: deflate, 32 KB window, fastest */
    fv__deflate(filtered, size, w->level, FV_DEFLATE_PIECE, out);
    fv__png_close_chunk(out, begin);
    fv__buffer_free(filtered, size);
    return FV_OK;
}

static void make_start(const writer *w, fv_bytes *out) {
    static const uint8_t colours[] = { 0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                       PNG_COLOR_TYPE_RGB_ALPHA };
    fv__bytes_append(out, "\x89PNG\r\n\x1a\n\0\0\0\0IHDR", 16);
    fv__png_append_number(out, (uint32_t)w->base.type.shape[1]);
    fv__png_append_number(out, (uint32_t)w->base.type.shape[0]);
    fv__bytes_append(out, (uint8_t[]){ w->base.type.dtype == FV_UINT16 ? 16 : 8, colours[w->channels], 0, 0, 0 }, 5);
    fv__png_close_chunk(out, FV_PNG_SIGNATURE);
}

static fv_status put_pieces(const writer *w, fv_pieces *pieces, int fd, fv_error *error) {
    const char *path = w->base.path;
    fv_bytes    part = { 0 };
    make_start(w, &part);
    int64_t   position = (int64_t)part.size;
    uLong     adler = 1;
    fv_status status = fv__file_write_at(fd, part.data, part.size, 0, path, error);
    for (int64_t i = 0; i < pieces->count && status == FV_OK; i++) {
        const void *data;
        size_t      size;
        fv_png_band head;
        status = pieces->get(pieces, i, &data, &size, error);
        if (status != FV_OK) break;
        memcpy(&head, data, sizeof head);
        adler = adler32_combine(adler, head.adler, (z_off_t)head.size);
        status = fv__file_write_at(fd, (const char *)data + sizeof head, size - sizeof head, position, path, error);
        position += (int64_t)(size - sizeof head);
    }
    fv__bytes_clear(&part);
    fv__bytes_append(&part, "\0\0\0\0IDAT\x03\0", 10); /* an empty last block */
    fv__png_append_number(&part, (uint32_t)adler);
    fv__png_close_chunk(&part, 0);
    size_t end = part.size;
    fv__bytes_append(&part, "\0\0\0\0IEND", 8);
    fv__png_close_chunk(&part, end);
    if (status == FV_OK) status = fv__file_write_at(fd, part.data, part.size, position, path, error);
    fv__bytes_release(&part);
    return status;
}

static fv_status assemble(fv_writer *base, fv_pieces *pieces, fv_error *error) {
    int fd;
    FV_TRY(fv__file_open_write(base->path, &fd, error));
    fv_status status = put_pieces((const writer *)base, pieces, fd, error);
    if (status == FV_OK) fv__file_start_sync(fd);
    fv_status closed = fv__file_close(fd, base->path, status == FV_OK ? error : NULL);
    return status == FV_OK ? closed : status;
}

const fv_format fv_format_png = {
    .name = "png",
    .extensions = "png",
    .magic = { { 0, 8, "\x89PNG\r\n\x1a\n" } },
    .brief = "PNG image: uint8, uint16 and bool, grey or colour",
    .reads = "1 to 16 bit, grey, palette, colour",
    .writes = "on all cores",
    .keeps = "nothing",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .layout = lay_out,
    .create = create,
    .encode = encode,
    .assemble = assemble,
    .free_writer = fv__writer_free,
};
