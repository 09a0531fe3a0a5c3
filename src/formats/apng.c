/* APNG: a stack or a movie as an animated picture, which browsers and slides show. Each frame is encoded as a PNG of its own; the
 * chunks of all but the first are renamed and numbered. What knows nothing of animation shows the first frame, and so it is read.
 * https://www.w3.org/TR/png-3/ */
#include "base/png_chunks.h"
#include "op/axes.h"
#include "op/format.h"
#include <math.h>
#include <stdlib.h>

extern const fv_format fv_format_apng, fv_format_png;

typedef struct {
    fv_writer      base;
    fv_image_type  frame;
    fv_file_layout frame_layout;
    fv_writer     *png;   /* of a frame */
    int64_t        bands; /* of a frame */
} writer;

static fv_status check_type(const char *path, const fv_image_type *type, fv_error *error) {
    bool colour = type->ndim == 4 && !strcmp(type->axis[3], "c");
    if ((type->ndim == 3 && strcmp(type->axis[2], "c")) || colour) return FV_OK;
    return fv_fail(
        error, FV_ERROR_USAGE,
        "%s: APNG shows the planes of a stack or a movie one after another, t y x or z y x, or with colours t y x c, and "
        "the image has %d axes%s; a single picture is written as .png",
        path, type->ndim, type->ndim > 3 ? ": take a slice such as image[0]" : "");
}

static fv_status choose(const fv_image_file *file, fv_image_type *frame, fv_file_layout *layout, fv_error *error) {
    fv_image_file one = { file->path, frame, file->options };
    FV_TRY(check_type(file->path, file->type, error));
    if (file->type->shape[0] > INT32_MAX)
        return fv_fail(error, FV_ERROR_USAGE, "%s: %lld frames are more than APNG holds", file->path,
                       (long long)file->type->shape[0]);
    *frame = *file->type;
    fv__axis_drop(frame, 0);
    return fv_format_png.layout(&one, layout, error);
}

static fv_status lay_out(const fv_image_file *file, fv_file_layout *layout, fv_error *error) {
    fv_image_type  frame = { 0 };
    fv_file_layout one = { 0 };
    FV_TRY(choose(file, &frame, &one, error));
    layout->piece[0] = 1;
    memcpy(layout->piece + 1, one.piece, (size_t)frame.ndim * sizeof *layout->piece);
    layout->piece_memory = one.piece_memory;
    return FV_OK;
}

static void free_writer(fv_writer *base) {
    writer *w = (writer *)base;
    if (w->png) w->png->format->free_writer(w->png);
    fv__writer_free(base);
}

static fv_status create(const fv_image_file *file, const fv_file_layout *layout, const char *temporary, fv_writer **out,
                        fv_error *error) {
    writer       *w = fv__writer_new(sizeof *w, &fv_format_apng, file, layout, temporary);
    fv_lattice    bands;
    fv_status     status = choose(file, &w->frame, &w->frame_layout, error);
    fv_image_file one = { file->path, &w->frame, file->options };
    if (status == FV_OK) status = fv_format_png.create(&one, &w->frame_layout, temporary, &w->png, error);
    if (status != FV_OK) {
        free_writer(&w->base);
        return status;
    }
    fv__lattice_init(&bands, w->frame.ndim, w->frame.shape, w->frame_layout.piece);
    w->bands = fv__lattice_count(&bands);
    *out = &w->base;
    return FV_OK;
}

static fv_status encode(fv_writer *base, int64_t piece, const fv_block *block, fv_bytes *out, fv_error *error) {
    const writer *w = (const writer *)base;
    fv_block      band = { .dtype = block->dtype, .data = block->data, .region.ndim = block->region.ndim - 1 };
    memcpy(band.region.start, block->region.start + 1, (size_t)band.region.ndim * sizeof *band.region.start);
    memcpy(band.region.size, block->region.size + 1, (size_t)band.region.ndim * sizeof *band.region.size);
    memcpy(band.stride, block->stride + 1, (size_t)band.region.ndim * sizeof *band.stride);
    return fv_format_png.encode(w->png, piece % w->bands, &band, out, error);
}

/* ---------------------------------------------------------------- the file */

typedef struct {
    const writer *w;
    int           fd;
    int64_t       position;
    uint32_t      number; /* of the next chunk of the animation */
    fv_bytes      chunk;
} putting;

static fv_status flush(putting *p, fv_error *error) {
    FV_TRY(fv__file_write_at(p->fd, p->chunk.data, p->chunk.size, p->position, p->w->base.path, error));
    p->position += (int64_t)p->chunk.size;
    fv__bytes_clear(&p->chunk);
    return FV_OK;
}

static void append_short(fv_bytes *out, uint32_t value) {
    fv__bytes_append(out, (uint8_t[]){ (uint8_t)(value >> 8), (uint8_t)value }, 2);
}

/* How long a frame is shown: the step of a movie in seconds as thousandths, or a tenth of a second. */
static uint32_t milliseconds(const fv_image_type *type) {
    bool seconds = !strcmp(type->unit[0], "second") && type->spacing[0] >= 0.001 && type->spacing[0] <= 65;
    return seconds ? (uint32_t)floor(type->spacing[0] * 1000 + 0.5) : 100;
}

static void append_start(putting *p) {
    static const uint8_t colours[] = { 0, 0, 4, 2, 6 };
    const fv_image_type *frame = &p->w->frame;
    int64_t              channels = frame->ndim == 3 ? frame->shape[2] : 1;
    fv__bytes_append(&p->chunk, "\x89PNG\r\n\x1a\n\0\0\0\0IHDR", 16);
    fv__png_append_number(&p->chunk, (uint32_t)frame->shape[1]);
    fv__png_append_number(&p->chunk, (uint32_t)frame->shape[0]);
    fv__bytes_append(&p->chunk, (uint8_t[]){ frame->dtype == FV_UINT16 ? 16 : 8, colours[channels], 0, 0, 0 }, 5);
    fv__png_close_chunk(&p->chunk, FV_PNG_SIGNATURE);
    size_t begin = p->chunk.size;
    fv__bytes_append(&p->chunk, "\0\0\0\0acTL", 8);
    fv__png_append_number(&p->chunk, (uint32_t)p->w->base.type.shape[0]);
    fv__png_append_number(&p->chunk, 0); /* again and again */
    fv__png_close_chunk(&p->chunk, begin);
}

static void append_frame(putting *p) {
    size_t begin = p->chunk.size;
    fv__bytes_append(&p->chunk, "\0\0\0\0fcTL", 8);
    fv__png_append_number(&p->chunk, p->number++);
    fv__png_append_number(&p->chunk, (uint32_t)p->w->frame.shape[1]);
    fv__png_append_number(&p->chunk, (uint32_t)p->w->frame.shape[0]);
    fv__png_append_number(&p->chunk, 0);
    fv__png_append_number(&p->chunk, 0);
    append_short(&p->chunk, milliseconds(&p->w->base.type));
    append_short(&p->chunk, 1000);
    fv__bytes_append(&p->chunk, "\0\0", 2); /* a frame takes the place of the one before */
    fv__png_close_chunk(&p->chunk, begin);
}

/* Compressed rows as a chunk of the picture, or of a later frame. */
static void append_rows(putting *p, bool first, const void *data, size_t size) {
    size_t begin = p->chunk.size;
    fv__bytes_append(&p->chunk, first ? "\0\0\0\0IDAT" : "\0\0\0\0fdAT", 8);
    if (!first) fv__png_append_number(&p->chunk, p->number++);
    fv__bytes_append(&p->chunk, data, size);
    fv__png_close_chunk(&p->chunk, begin);
}

static fv_status put_frame(putting *p, fv_pieces *pieces, int64_t frame, fv_error *error) {
    uLong adler = 1;
    append_frame(p);
    for (int64_t band = 0; band < p->w->bands; band++) {
        const void *data;
        size_t      size;
        fv_png_band head;
        FV_TRY(pieces->get(pieces, frame * p->w->bands + band, &data, &size, error));
        memcpy(&head, data, sizeof head);
        adler = adler32_combine(adler, head.adler, (z_off_t)head.size);
        /* a chunk: length, type, data, checksum */
        append_rows(p, frame == 0, (const char *)data + sizeof head + 8, size - sizeof head - 12);
        FV_TRY(flush(p, error));
    }
    uint8_t end[] = { 3, 0, (uint8_t)(adler >> 24), (uint8_t)(adler >> 16), (uint8_t)(adler >> 8), (uint8_t)adler };
    append_rows(p, frame == 0, end, sizeof end); /* an empty last block and the sum of all rows */
    return flush(p, error);
}

static fv_status assemble(fv_writer *base, fv_pieces *pieces, fv_error *error) {
    putting p = { .w = (const writer *)base };
    FV_TRY(fv__file_open_write(base->path, &p.fd, error));
    append_start(&p);
    fv_status status = flush(&p, error);
    for (int64_t frame = 0; frame < base->type.shape[0] && status == FV_OK; frame++) status = put_frame(&p, pieces, frame, error);
    size_t begin = p.chunk.size;
    fv__bytes_append(&p.chunk, "\0\0\0\0IEND", 8);
    fv__png_close_chunk(&p.chunk, begin);
    if (status == FV_OK) status = flush(&p, error);
    if (status == FV_OK) fv__file_start_sync(p.fd);
    fv__bytes_release(&p.chunk);
    fv_status closed = fv__file_close(p.fd, base->path, status == FV_OK ? error : NULL);
    return status == FV_OK ? closed : status;
}

const fv_format fv_format_apng = {
    .name = "apng",
    .extensions = "apng",
    .brief = "animated PNG: the planes of a stack or a movie one after another",
    .writes =
        "uint8, uint16 and bool, grey or colour, on all cores; frames last as long as the time step, or a tenth of a second",
    .keeps = "the time step",
    .layout = lay_out,
    .create = create,
    .encode = encode,
    .assemble = assemble,
    .free_writer = free_writer,
};
