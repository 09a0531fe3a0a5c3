/* Publishing images like a detector does: one frame a message, at a given rate. */
#include "base/file.h"
#include "base/take.h"
#include "op/format.h"
#include "stream/messages.h"
#include <fovea/stream.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zstd.h>

typedef struct publishing {
    const fv_publish_options *options;
    fv_sender                *sender;
    int64_t                   frames, bytes;
    double                    began, told;
    fv_bytes                  packed;
} publishing;

static double clock_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_cancelled(const publishing *p) { return p->options->cancel && *p->options->cancel; }

/* Until the next frame may go. */
static void keep_pace(publishing *p) {
    double due = p->began;
    if (p->options->frames > 0) due = FV_MAX(due, p->began + (double)p->frames / p->options->frames);
    if (p->options->bytes > 0) due = FV_MAX(due, p->began + (double)p->bytes / p->options->bytes);
    for (double left; (left = due - fv__now()) > 0 && !is_cancelled(p);) {
        left = FV_MIN(left, 0.1);
        nanosleep(&(struct timespec){ 0, (long)(left * 1e9) }, NULL);
    }
    if (p->options->progress && fv__now() - p->told > 1) {
        p->told = fv__now();
        p->options->progress(p->options->context, p->frames, p->bytes, p->told - p->began);
    }
}

static fv_status pack(publishing *p, const void **data, size_t *size, fv_error *error) {
    const char *codec = p->options->codec;
    bool        lz4 = codec && !strcmp(codec, "lz4"), zstd = codec && !strcmp(codec, "zstd");
    if (!lz4 && !zstd) return FV_OK;
    size_t room = lz4 ? (size_t)LZ4_compressBound((int)FV_MIN(*size, LZ4_MAX_INPUT_SIZE)) : ZSTD_compressBound(*size);
    fv__bytes_clear(&p->packed);
    FV_TRY(fv__bytes_need(&p->packed, room + 1, error));
    size_t done = lz4 ? (size_t)LZ4_compress_default(*data, (char *)p->packed.data, (int)*size, (int)room)
                      : ZSTD_compress(p->packed.data, room, *data, *size, 1);
    if (!done || ZSTD_isError(done)) return fv_fail(error, FV_ERROR_INTERNAL, "a frame cannot be packed by %s", codec);
    *data = p->packed.data;
    *size = done;
    return FV_OK;
}

static void put_list(char *text, size_t size, const fv_image_type *type, bool spacing) {
    int used = 0;
    for (int d = 0; d < type->ndim && used < (int)size; d++)
        used += spacing ? snprintf(text + used, size - (size_t)used, "%s%.17g", d ? "," : "", type->spacing[d])
                        : snprintf(text + used, size - (size_t)used, "%s%lld", d ? "," : "", (long long)type->shape[d]);
}

/* angle: NULL if it is not known. */
static fv_status send_frame(publishing *p, const char *key, int64_t index, const fv_image_type *type, const void *data,
                            const double *angle, bool end, fv_error *error) {
    char      shape[128], spacing[256], number[32], time[32], turn[32], axes[80] = "", units[FV_MAX_DIMS * 17] = "";
    size_t    size = (size_t)fv_image_type_bytes(type);
    fv_header headers[] = { { "fovea-shape", shape, 0 },
                            { "fovea-dtype", fv_dtype_name(type->dtype), 0 },
                            { "fovea-index", number, 0 },
                            { "fovea-time", time, 0 },
                            { "fovea-spacing", spacing, 0 },
                            { "fovea-axes", axes, 0 },
                            { "fovea-units", units, 0 },
                            { "fovea-codec", p->options->codec ? p->options->codec : "none", 0 },
                            { NULL, NULL, 0 },
                            { NULL, NULL, 0 } };
    int       nheaders = FV_COUNT(headers) - 2;
    if (angle) headers[nheaders++] = (fv_header){ "fovea-angle", turn, 0 };
    if (end) headers[nheaders++] = (fv_header){ "fovea-end", "1", 0 };
    snprintf(turn, sizeof turn, "%.17g", angle ? *angle : 0);
    put_list(shape, sizeof shape, type, false);
    put_list(spacing, sizeof spacing, type, true);
    for (int d = 0; d < type->ndim; d++) {
        if (d) strcat(axes, " ");
        strcat(axes, type->axis[d]);
        if (d) strcat(units, ",");
        strcat(units, type->unit[d]);
    }
    keep_pace(p);
    snprintf(number, sizeof number, "%lld", (long long)index);
    snprintf(time, sizeof time, "%.6f", clock_now());
    FV_TRY(pack(p, &data, &size, error));
    FV_TRY(fv__message_send(p->sender, key, headers, nheaders, data, size, error));
    p->frames++;
    p->bytes += (int64_t)size;
    return FV_OK;
}

static void drop_first_axis(const fv_image_type *scan, fv_image_type *frame) {
    *frame = *scan;
    frame->ndim--;
    memmove(frame->shape, scan->shape + 1, (size_t)frame->ndim * sizeof *frame->shape);
    memmove(frame->axis, scan->axis + 1, (size_t)frame->ndim * sizeof *frame->axis);
    memmove(frame->spacing, scan->spacing + 1, (size_t)frame->ndim * sizeof *frame->spacing);
    memmove(frame->unit, scan->unit + 1, (size_t)frame->ndim * sizeof *frame->unit);
}

/* A part of a file along its first axis, or all of it. */
static fv_status read_part(fv_reader *reader, int64_t first, int64_t count, void *data, fv_error *error) {
    fv_region region = fv__region_whole(&reader->type);
    fv_block  block;
    region.start[0] = first;
    region.size[0] = count;
    fv__block_init(&block, reader->type.dtype, &region, data);
    return fv__reader_read(reader, &block, error);
}

static fv_status send_slices(publishing *p, const char *key, fv_reader *reader, fv_error *error) {
    fv_image_type frame;
    void         *data;
    int64_t       count = reader->type.shape[0];
    const double *angles = reader->nangles == count ? reader->angles : NULL;
    drop_first_axis(&reader->type, &frame);
    FV_TRY(FV_TAKE(data, (size_t)fv_image_type_bytes(&frame), error));
    fv_status status = FV_OK;
    for (int64_t i = 0; i < count && status == FV_OK && !is_cancelled(p); i++) {
        status = read_part(reader, i, 1, data, error);
        if (status == FV_OK)
            status = send_frame(p, key, p->options->first + i, &frame, data, angles ? angles + i : NULL,
                                p->options->end && i + 1 == count, error);
    }
    free(data);
    return status;
}

static fv_status send_file(publishing *p, const char *file, int64_t round, bool last, fv_error *error) {
    fv_reader *reader;
    char       stem[256], *key;
    int64_t    index;
    void      *data = NULL;
    FV_TRY(fv__reader_acquire(file, &(fv_read_options){ 0 }, &reader, error));
    fv__path_stem(file, stem, sizeof stem);
    key = p->options->slices ? fv__strdup(stem) : fv__frame_split(stem, &index);
    if (p->options->key) {
        free(key);
        key = fv__strdup(p->options->key);
        index = p->frames;
    }
    if (round) {
        char *again = fv__sprintf("%s-%lld", key, (long long)round + 1);
        free(key);
        key = again;
    }
    fv_status status;
    if (p->options->slices && reader->type.ndim < 2)
        status = fv_fail(error, FV_ERROR_USAGE, "%s has no slices", file);
    else if (p->options->slices)
        status = send_slices(p, key, reader, error);
    else {
        status = FV_TAKE(data, (size_t)fv_image_type_bytes(&reader->type), error);
        if (status == FV_OK) status = read_part(reader, 0, reader->type.shape[0], data, error);
        if (status == FV_OK)
            status = send_frame(p, key, p->options->first + index, &reader->type, data, NULL, p->options->end && last, error);
    }
    free(data);
    free(key);
    fv__reader_release(reader);
    return status;
}

fv_status fv_publish(char *const *files, int nfiles, const fv_publish_options *options, int64_t *frames, fv_error *error) {
    publishing p = { .options = options, .began = fv__now(), .told = fv__now() };
    *frames = 0;
    if (options->codec && strcmp(options->codec, "none") && strcmp(options->codec, "lz4") && strcmp(options->codec, "zstd"))
        return fv_fail(error, FV_ERROR_USAGE, "codec %s is not known; none, lz4 and zstd are", options->codec);
    FV_TRY(fv__sender_open(options->to, options->kafka_config, NULL, &p.sender, error));
    fv_status status = FV_OK;
    int64_t   round = 0;
    do {
        for (int i = 0; i < nfiles && status == FV_OK && !is_cancelled(&p); i++)
            status = send_file(&p, files[i], round, i + 1 == nfiles, error);
        round++;
    } while (options->loop && status == FV_OK && !is_cancelled(&p));
    if (status == FV_OK) status = fv__message_flush(p.sender, error);
    fv__sender_close(p.sender);
    fv__bytes_release(&p.packed);
    *frames = p.frames;
    return status;
}
