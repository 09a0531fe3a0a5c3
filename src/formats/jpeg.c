/* JPEG: grey and colour images of 8 bit, baseline and progressive, by libjpeg. Rows are decoded in order; asking for an earlier
 * one starts over. YCbCr becomes RGB; four colours stay what they are. Written are baseline images in grey and RGB. */
#include "base/remote.h"
#include "base/take.h"
#include "formats/planes.h"
#include "op/format.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* after stdio.h */
#include <jpeglib.h>

extern const fv_format fv_format_jpeg;
#define MOST_COEFFICIENTS ((int64_t)1 << 30) /* bytes that a progressive image may need at once */

typedef struct {
    struct jpeg_error_mgr base;
    jmp_buf               back;
    char                  message[JMSG_LENGTH_MAX];
} failure;

typedef struct {
    fv_reader                     base;
    FILE                         *file;
    struct jpeg_decompress_struct jpeg;
    failure                       failure;
    bool                          created, started;
    int64_t                       next; /* row that comes next */
    uint8_t                      *row;
} reader;

/* ---------------------------------------------------------------- libjpeg's errors are jumps */

static void fail_in_library(j_common_ptr jpeg) {
    failure *f = (failure *)jpeg->err;
    f->base.format_message(jpeg, f->message);
    longjmp(f->back, 1);
}

/* A warning means damaged data: libjpeg would go on with grey. */
static void warn_in_library(j_common_ptr jpeg, int level) {
    if (level < 0) fail_in_library(jpeg);
}

static fv_status failed(const reader *r, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s: not a JPEG file, or damaged: %s", r->base.path, r->failure.message);
}

/* ---------------------------------------------------------------- opening */

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    if (r->created) jpeg_destroy_decompress(&r->jpeg);
    if (r->file) fclose(r->file);
    free(r->row);
    fv__reader_free(base);
}

/* The header, from the start of the file. */
static fv_status begin(reader *r, fv_error *error) {
    rewind(r->file);
    if (setjmp(r->failure.back)) return failed(r, error);
    if (r->created)
        jpeg_abort_decompress(&r->jpeg);
    else
        jpeg_create_decompress(&r->jpeg);
    r->created = true;
    r->started = false;
    r->next = 0;
    jpeg_stdio_src(&r->jpeg, r->file);
    jpeg_read_header(&r->jpeg, TRUE);
    return FV_OK;
}

static fv_status find_type(reader *r, fv_error *error) {
    const struct jpeg_decompress_struct *j = &r->jpeg;
    int64_t                              channels = j->num_components, shape[] = { j->image_height, j->image_width, channels };
    if (channels != 1 && channels != 3 && channels != 4)
        return fv_fail(error, FV_ERROR_INPUT, "%s: a JPEG file with %d colours cannot be read; 1, 3 and 4 can", r->base.path,
                       (int)channels);
    bool scans = jpeg_has_multiple_scans((j_decompress_ptr)j);
    if (scans && shape[0] * shape[1] * channels * 2 > MOST_COEFFICIENTS)
        return fv_fail(error, FV_ERROR_INPUT, "%s: a progressive JPEG file of %lld x %lld pixels needs more than 1 GiB at once",
                       r->base.path, (long long)shape[1], (long long)shape[0]);
    fv_image_type_init(&r->base.type, FV_UINT8, channels > 1 ? 3 : 2, shape);
    for (int d = 0; d < r->base.type.ndim; d++) snprintf(r->base.type.axis[d], sizeof r->base.type.axis[d], "%c", "yxc"[d]);
    fv__bytes_printf(&r->base.facts, "compression: JPEG, %s\n", scans ? "progressive" : "baseline");
    r->base.read_memory = shape[1] * channels + (scans ? shape[0] * shape[1] * channels * 2 : 64 * shape[1] * channels);
    return FV_TAKE(r->row, (size_t)(shape[1] * channels), error);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    reader   *r = fv__reader_new(sizeof *r, &fv_format_jpeg, path);
    int       fd;
    fv_status status = fv__file_open_read(path, &fd, error);
    if (status == FV_OK) status = fv__remote_fetch(fd, 0, SIZE_MAX >> 1, error); /* the library reads by itself, all of it */
    if (status == FV_OK) r->file = fdopen(fd, "rb");
    r->jpeg.err = jpeg_std_error(&r->failure.base);
    r->failure.base.error_exit = fail_in_library;
    r->failure.base.emit_message = warn_in_library;
    if (status == FV_OK) status = begin(r, error);
    if (status == FV_OK) status = find_type(r, error);
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    r->base.sequential = true;
    r->base.header = fv__hash_bytes(r->base.type.shape, sizeof r->base.type.shape);
    *out = &r->base;
    return FV_OK;
}

/* ---------------------------------------------------------------- reading */

static fv_status start(reader *r, fv_error *error) {
    if (setjmp(r->failure.back)) return failed(r, error);
    if (r->jpeg.num_components == 3) r->jpeg.out_color_space = JCS_RGB;
    if (r->jpeg.num_components == 4) r->jpeg.out_color_space = JCS_CMYK;
    r->jpeg.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&r->jpeg);
    r->started = true;
    return FV_OK;
}

static fv_status next_row(reader *r, fv_error *error) {
    if (setjmp(r->failure.back)) return failed(r, error);
    jpeg_read_scanlines(&r->jpeg, &r->row, 1);
    r->next++;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    reader   *r = (reader *)base;
    int64_t   first = block->region.start[0], channels = r->base.type.ndim > 2 ? r->base.type.shape[2] : 1;
    fv_region whole_row = fv__region_whole(&base->type), rows = block->region;
    if (fv__region_empty(&block->region)) return FV_OK;
    if (r->started && r->next > first) FV_TRY(begin(r, error));
    if (!r->started) FV_TRY(start(r, error));
    if ((int64_t)r->jpeg.output_width * r->jpeg.output_components != base->type.shape[1] * channels)
        return fv_fail(error, FV_ERROR_INPUT, "%s was changed while it was read", base->path);
    whole_row.size[0] = rows.size[0] = 1;
    while (r->next < first + block->region.size[0]) {
        FV_TRY(next_row(r, error));
        if (r->next <= first) continue;
        fv_block from;
        whole_row.start[0] = rows.start[0] = r->next - 1;
        fv__block_init(&from, FV_UINT8, &whole_row, r->row);
        fv_block to = fv__block_window(block, &rows);
        fv__block_copy(&to, &from);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- writing
 * A picture is encoded in bands of whole rows of blocks with a restart marker behind each row, so that a band does not depend on
 * those above it: bands are encoded anywhere as pictures of their own, and the file is the header of the first with all scans,
 * numbered on. A band has a multiple of eight rows of blocks, since markers are numbered from 0 to 7 in turns. */

enum { BLOCK = 8, MARKERS = 8, BAND_BYTES = 1 << 20, QUALITY = 90, OUTPUT = 16 << 10 };

typedef struct {
    struct jpeg_destination_mgr base;
    fv_bytes                   *out;
    uint8_t                     buffer[OUTPUT];
} destination;

static void begin_output(j_compress_ptr jpeg) {
    destination *d = (destination *)jpeg->dest;
    d->base.next_output_byte = d->buffer;
    d->base.free_in_buffer = OUTPUT;
}

static boolean flush_output(j_compress_ptr jpeg) {
    fv__bytes_append(((destination *)jpeg->dest)->out, ((destination *)jpeg->dest)->buffer, OUTPUT);
    begin_output(jpeg);
    return TRUE;
}

static void end_output(j_compress_ptr jpeg) {
    destination *d = (destination *)jpeg->dest;
    fv__bytes_append(d->out, d->buffer, OUTPUT - d->base.free_in_buffer);
}

static fv_status check_type(const char *path, const fv_image_type *type, fv_error *error) {
    bool colour = type->ndim == 3 && !strcmp(type->axis[2], "c");
    if (type->dtype != FV_UINT8)
        return fv_fail(error, FV_ERROR_USAGE, "%s: JPEG holds uint8, not %s; %s", path, fv_dtype_name(type->dtype),
                       fv_dtype_is_complex(type->dtype)
                           ? "write its amplitude or its phase, such as convert(rescale(phase(image), 0, 255), \"uint8\")"
                       : type->dtype == FV_BOOL ? "masks are better kept in PNG, which changes no pixel"
                                                : "convert(round(image), \"uint8\") keeps values from 0 to 255, and "
                                                  "convert(rescale(image, 0, 255), \"uint8\") stretches what there is to them");
    if (type->ndim != 2 && !(colour && (type->shape[2] == 1 || type->shape[2] == 3))) {
        fv_bytes axes = { 0 };
        for (int d = 0; d < type->ndim; d++)
            fv__bytes_printf(&axes, "%s%s = %lld", d ? ", " : "", type->axis[d], (long long)type->shape[d]);
        fv_fail(error, FV_ERROR_USAGE,
                "%s: JPEG holds one grey plane, y x, or red, green and blue, y x c, and the image has axes %s; %s", path,
                axes.data ? (char *)axes.data : "(none)",
                type->ndim < 2 ? FV_LINE_ADVICE
                : colour       ? "take a slice such as image[0], or the colours without transparency with image[:, :, 0:3]"
                               : "take a slice such as image[0], or make a picture of channels with composite");
        fv__bytes_release(&axes);
        return FV_ERROR_USAGE;
    }
    for (int d = 0; d < 2; d++)
        if (type->shape[d] < 1 || type->shape[d] > JPEG_MAX_DIMENSION)
            return fv_fail(error, FV_ERROR_USAGE,
                           "%s: %lld x %lld pixels are more than JPEG holds: %ld on a side; PNG holds more", path,
                           (long long)type->shape[0], (long long)type->shape[1], JPEG_MAX_DIMENSION);
    return FV_OK;
}

static int64_t row_bytes(const fv_image_type *type) { return type->shape[1] * (type->ndim == 3 ? type->shape[2] : 1); }

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    const fv_write_options *options = file->options;
    int                     compression;
    FV_TRY(fv__compression_choose(&fv_format_jpeg, options, &compression, error));
    FV_TRY(check_type(file->path, file->type, error));
    if (options->chunk_ndim) return fv_fail(error, FV_ERROR_USAGE, "chunk: a JPEG file has no chunks to choose");
    if (options->level) return fv_fail(error, FV_ERROR_USAGE, "level: JPEG has none; quality = 1 to 100 is its choice");
    int64_t row = row_bytes(file->type), turn = BLOCK * MARKERS, rows = FV_MAX(BAND_BYTES / row / turn, 1) * turn;
    memcpy(layout->piece, file->type->shape, sizeof layout->piece);
    layout->piece[0] = FV_MIN(rows, file->type->shape[0]);
    layout->piece_memory = 4 * rows * row + 32 * row + (1 << 20); /* a scan of noise at the best quality is twice its pixels */
    return FV_OK;
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    (void)error;
    *out = fv__writer_new(sizeof **out, &fv_format_jpeg, file, layout, temporary);
    return FV_OK;
}

static void set_up(struct jpeg_compress_struct *jpeg, const fv_writer *w, const fv_block *block) {
    int64_t channels = w->type.ndim == 3 ? w->type.shape[2] : 1;
    jpeg->image_height = (JDIMENSION)block->region.size[0];
    jpeg->image_width = (JDIMENSION)w->type.shape[1];
    jpeg->input_components = (int)channels;
    jpeg->in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, w->options.quality ? (int)w->options.quality : QUALITY, TRUE);
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->restart_in_rows = 1;
    /* A colour for each pixel: structures in images of science are often one pixel wide. */
    for (int i = 0; i < jpeg->num_components; i++) jpeg->comp_info[i].h_samp_factor = jpeg->comp_info[i].v_samp_factor = 1;
}

static void copy_row(const fv_block *block, int64_t y, uint8_t *row) {
    fv_region one = block->region;
    fv_block  to;
    one.start[0] = y;
    one.size[0] = 1;
    fv__block_init(&to, FV_UINT8, &one, row);
    fv_block from = fv__block_window(block, &one);
    fv__block_copy(&to, &from);
}

static fv_status encode(fv_writer *base, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    (void)piece;
    struct jpeg_compress_struct jpeg = { 0 };
    failure                     trouble;
    destination                *d;
    uint8_t                    *row;
    FV_TRY(FV_TAKE(d, sizeof *d + (size_t)row_bytes(&base->type), error));
    row = (uint8_t *)(d + 1);
    *(struct jpeg_destination_mgr *)d = (struct jpeg_destination_mgr){ .init_destination = begin_output,
                                                                       .empty_output_buffer = flush_output,
                                                                       .term_destination = end_output };
    d->out = out;
    jpeg.err = jpeg_std_error(&trouble.base);
    trouble.base.error_exit = fail_in_library;
    trouble.base.emit_message = warn_in_library;
    if (setjmp(trouble.back)) {
        jpeg_destroy_compress(&jpeg);
        free(d);
        return fv_fail(error, FV_ERROR_MEMORY, "%s: it cannot be encoded as JPEG: %s", base->path, trouble.message);
    }
    jpeg_create_compress(&jpeg);
    jpeg.dest = &d->base;
    set_up(&jpeg, base, block);
    jpeg_start_compress(&jpeg, TRUE);
    for (int64_t y = block->region.start[0]; y < block->region.start[0] + block->region.size[0]; y++) {
        copy_row(block, y, row);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    free(d);
    return FV_OK;
}

/* Where the scan of an encoded band begins, behind its header, and where the header tells the height. */
static size_t find_scan(const uint8_t *data, size_t size, size_t *height) {
    size_t at = 2;
    while (at + 4 < size && data[at + 1] != 0xda) { /* each marker is followed by its length */
        if (data[at + 1] == 0xc0) *height = at + 5;
        at += 2 + ((size_t)data[at + 2] << 8 | data[at + 3]);
    }
    return at + 2 + ((size_t)data[at + 2] << 8 | data[at + 3]);
}

/* Markers go on from 7 where the band ends, with the one between two bands. */
static fv_status put_bands(const fv_writer *w, fv_pieces *pieces, int fd, fv_error *error) {
    int64_t position = 0;
    for (int64_t i = 0; i < pieces->count; i++) {
        const void *data;
        size_t      size, height = 0;
        FV_TRY(pieces->get(pieces, i, &data, &size, error));
        size_t scan = find_scan(data, size, &height), length = size - scan - 2; /* without the marker of its end */
        if (i == 0) {
            uint8_t rows[2] = { (uint8_t)(w->type.shape[0] >> 8), (uint8_t)w->type.shape[0] };
            FV_TRY(fv__file_write_at(fd, data, scan, 0, w->path, error));
            FV_TRY(fv__file_write_at(fd, rows, 2, (int64_t)height, w->path, error));
            position = (int64_t)scan;
        }
        FV_TRY(fv__file_write_at(fd, (const uint8_t *)data + scan, length, position, w->path, error));
        position += (int64_t)length;
        FV_TRY(fv__file_write_at(fd, i + 1 < pieces->count ? "\xff\xd7" : "\xff\xd9", 2, position, w->path, error));
        position += 2;
    }
    return FV_OK;
}

static fv_status assemble(fv_writer *base, fv_pieces *pieces, fv_error *error) {
    int fd;
    FV_TRY(fv__file_open_write(base->path, &fd, error));
    fv_status status = put_bands(base, pieces, fd, error);
    if (status == FV_OK) fv__file_start_sync(fd);
    fv_status closed = fv__file_close(fd, base->path, status == FV_OK ? error : NULL);
    return status == FV_OK ? closed : status;
}

const fv_format fv_format_jpeg = {
    .name = "jpeg",
    .extensions = "jpg jpeg",
    .magic = { { 0, 3, "\xff\xd8\xff" } },
    .brief = "JPEG image",
    .reads = "8 bit grey and colour, in order",
    .writes = "on all cores; `quality` from 1 to 100, 90 if left out. Pixels change a little",
    .keeps = "nothing",
    .takes = "quality",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .layout = lay_out,
    .create = create,
    .encode = encode,
    .assemble = assemble,
    .free_writer = fv__writer_free,
};
