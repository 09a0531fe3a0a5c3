/* JPEG, read only: grey and colour images of 8 bit, baseline and progressive, by libjpeg. Rows are decoded in order; asking for
 * an earlier one starts over. YCbCr becomes RGB; four colours stay what they are. */
#include "base/remote.h"
#include "base/take.h"
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

const fv_format fv_format_jpeg = {
    .name = "jpeg",
    .extensions = "jpg jpeg",
    .magic = { { 0, 3, "\xff\xd8\xff" } },
    .brief = "JPEG image",
    .reads = "8 bit grey and colour, in order",
    .keeps = "nothing",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
};
