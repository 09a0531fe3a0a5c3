/* Frames: their names, and taking messages apart. */
#include "stream/frame.h"
#include "base/file.h"
#include "base/file_pattern.h"
#include "base/take.h"
#include "op/axes.h"
#include "op/format.h"
#include "op/place.h"
#include "stream/cbor_frame.h"
#include "stream/frame_body.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

fv_frame *fv__frame_new(void) {
    fv_frame *frame = fv__calloc(sizeof *frame);
    frame->time = frame->angle = NAN;
    frame->arrived = fv__now();
    return frame;
}

void fv__frame_free(fv_frame *frame) {
    if (!frame) return;
    if (frame->release) frame->release(frame->held);
    free(frame->scan);
    free(frame->path);
    free(frame->where);
    free(frame->why);
    free(frame);
}

/* ---------------------------------------------------------------- names */

void fv__frame_names_init(fv_frame_names *names, const char *pattern) {
    const char *end = pattern + strcspn(pattern, "*?[{"), *name = fv__path_name(pattern), *dot = strrchr(name, '.');
    if (!*end) end = name;
    while (end > pattern && end[-1] != '/') end--;
    names->folder = fv__sprintf("%.*s", (int)(end - pattern), pattern);
    names->extension = fv__strdup(dot && dot > name && !strpbrk(dot, "*?[{") ? dot : "");
}

void fv__frame_names_release(fv_frame_names *names) {
    free(names->folder);
    free(names->extension);
}

/* What a file name can hold. Keys that differ stay different. */
static void put_scan(fv_bytes *out, const char *scan) {
    bool changed = !*scan || *scan == '.' || strlen(scan) > 100;
    int  n = 0;
    for (const char *c = scan; *c && n < 100; c++, n++) {
        bool plain = isalnum((unsigned char)*c) || (unsigned char)*c > 127 || strchr("._-+=@ ", *c);
        fv__bytes_append(out, plain && !(c == scan && *c == '.') ? c : "_", 1);
        changed = changed || !plain;
    }
    if (changed) fv__bytes_printf(out, "_%06llx", (unsigned long long)fv__hash_bytes(scan, strlen(scan)).low & 0xffffff);
}

char *fv__frame_path(const fv_frame_names *names, const char *scan, int64_t index) {
    fv_bytes out = { 0 };
    fv__bytes_printf(&out, "%s", names->folder);
    put_scan(&out, scan);
    if (index >= 0) fv__bytes_printf(&out, "-%06lld", (long long)index);
    fv__bytes_printf(&out, "%s", names->extension);
    fv__bytes_append(&out, "", 1);
    return (char *)out.data;
}

char *fv__frame_split(const char *stem, int64_t *index) {
    size_t end = strlen(stem), digits = end;
    while (digits && isdigit((unsigned char)stem[digits - 1]) && end - digits < 18) digits--;
    *index = digits < end ? strtoll(stem + digits, NULL, 10) : 0;
    size_t length = digits;
    while (digits < end && length && strchr("_-. ", stem[length - 1])) length--;
    return length ? fv__sprintf("%.*s", (int)length, stem) : fv__strdup(stem);
}

/* ---------------------------------------------------------------- headers */

typedef struct parts { /* of a message, as its headers tell */
    fv_frame *first;
    char      codec[16];
    char      text[256]; /* of the header that is looked at */
    bool      raw;       /* shape and type are told: the body is nothing but voxels */
    bool      has_dtype;
    fv_dtype  dtype;
    int       ndim, nspacing;
    int64_t   shape[FV_MAX_DIMS];
    double    spacing[FV_MAX_DIMS];
    char      axes[64], units[FV_MAX_DIMS * 16];
    double   *angle; /* of each frame in the body; NULL: not told */
    int       nangles;
    bool      has_index;
    int64_t   frames; /* in the body, along its first axis; 0: it is one frame */
    void     *pixels; /* a buffer for voxels that are not those of the message */
    size_t    room;   /* its size */
} parts;

static fv_status wrong(const char *name, const parts *p, const char *expected, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s is \"%.60s\"; expected %s", name, p->text, expected);
}

/* Numbers with blanks, commas or x between them. */
static int read_numbers(const char *text, double *to, int most) {
    int n = 0;
    while (*text) {
        char *end;
        while (*text && strchr(" ,x[]()", *text)) text++;
        if (!*text) break;
        if (n == most) return -1;
        to[n++] = strtod(text, &end);
        if (end == text) return -1;
        text = end;
    }
    return n;
}

static fv_status read_shape(parts *p, const char *name, fv_error *error) {
    double sizes[FV_MAX_DIMS];
    p->ndim = read_numbers(p->text, sizes, FV_MAX_DIMS);
    if (p->ndim < 1) return wrong(name, p, "the size of each axis, slowest first, as 1024,1024", error);
    for (int d = 0; d < p->ndim; d++) {
        if (!(sizes[d] >= 1 && sizes[d] <= 1e9) || sizes[d] != floor(sizes[d]))
            return wrong(name, p, "whole numbers from 1 on, as 1024,1024", error);
        p->shape[d] = (int64_t)sizes[d];
    }
    return FV_OK;
}

static fv_status read_whole(const parts *p, const char *name, int64_t least, int64_t *to, fv_error *error) {
    char     *end;
    long long value = strtoll(p->text, &end, 10);
    if (end == p->text || *end || value < least)
        return wrong(name, p, least ? "a number from 1 on" : "a number from 0 on", error);
    *to = value;
    return FV_OK;
}

static fv_status read_real(const parts *p, const char *name, double *to, fv_error *error) {
    char *end;
    *to = strtod(p->text, &end);
    return end != p->text && !*end && isfinite(*to) ? FV_OK : wrong(name, p, "a number", error);
}

static fv_status read_angles(parts *p, const fv_header *header, fv_error *error) {
    char *text = fv__sprintf("%.*s", (int)FV_MIN(header->size, (size_t)1 << 20), header->value);
    int   most = (int)(strlen(text) / 2 + 1);
    free(p->angle);
    p->angle = fv__alloc((size_t)most * sizeof *p->angle);
    p->nangles = read_numbers(text, p->angle, most);
    bool good = p->nangles > 0;
    for (int i = 0; i < p->nangles; i++) good = good && isfinite(p->angle[i]);
    free(text);
    return good ? FV_OK : wrong(header->name, p, "degrees: a number, or one for each frame of the message", error);
}

static fv_status read_dtype(parts *p, const char *name, fv_error *error) {
    static const char *const codes[][2] = { { "<u2", "uint16" }, { "|u1", "uint8" },   { "<u4", "uint32" }, { "<f4", "float32" },
                                            { "<i2", "int16" },  { "<f8", "float64" }, { "<i4", "int32" },  { "|i1", "int8" } };
    const char              *text = p->text;
    for (int i = 0; i < FV_COUNT(codes); i++)
        if (!strcmp(text, codes[i][0])) text = codes[i][1];
    p->has_dtype = fv_dtype_parse(text, &p->dtype);
    return p->has_dtype ? FV_OK : wrong(name, p, "a type of numpy, as uint16", error);
}

static fv_status read_header(parts *p, const fv_header *header, fv_error *error) {
    const char *name = header->name;
    if (strncmp(name, "fovea-", 6)) return FV_OK;
    snprintf(p->text, sizeof p->text, "%.*s", (int)FV_MIN(header->size, sizeof p->text - 1), header->value);
    if (!strcmp(name, "fovea-shape")) return read_shape(p, name, error);
    if (!strcmp(name, "fovea-dtype")) return read_dtype(p, name, error);
    if (!strcmp(name, "fovea-index")) p->has_index = true;
    if (!strcmp(name, "fovea-index")) return read_whole(p, name, 0, &p->first->index, error);
    if (!strcmp(name, "fovea-count")) return read_whole(p, name, 1, &p->first->length, error);
    if (!strcmp(name, "fovea-frames")) return read_whole(p, name, 1, &p->frames, error);
    if (!strcmp(name, "fovea-angle")) return read_angles(p, header, error);
    if (!strcmp(name, "fovea-time")) return read_real(p, name, &p->first->time, error);
    if (!strcmp(name, "fovea-end")) p->first->end = strcmp(p->text, "0") && strcmp(p->text, "false");
    if (!strcmp(name, "fovea-axes")) snprintf(p->axes, sizeof p->axes, "%.63s", p->text);
    if (!strcmp(name, "fovea-units")) snprintf(p->units, sizeof p->units, "%.*s", (int)sizeof p->units - 1, p->text);
    if (!strcmp(name, "fovea-codec")) snprintf(p->codec, sizeof p->codec, "%.15s", p->text);
    if (strcmp(name, "fovea-spacing")) return FV_OK;
    p->nspacing = read_numbers(p->text, p->spacing, FV_MAX_DIMS);
    return p->nspacing > 0 ? FV_OK : wrong(name, p, "a number for each axis", error);
}

/* ---------------------------------------------------------------- messages */

static fv_status name_frame(const parts *p, fv_frame *frame, fv_error *error) {
    if (*p->axes) FV_TRY(fv__axes_name(&frame->type, p->axes, error));
    if (p->nspacing && p->nspacing != frame->type.ndim)
        return fv_fail(error, FV_ERROR_INPUT, "fovea-spacing has %d numbers, and the frame %d axes", p->nspacing,
                       frame->type.ndim);
    for (int d = 0; d < p->nspacing; d++) frame->type.spacing[d] = p->spacing[d];
    const char *unit = p->units;
    for (int d = 0; d < frame->type.ndim && *unit; d++) { /* an axis without one has nothing between its commas */
        int  length = (int)strcspn(unit, ",");
        char word[64];
        snprintf(word, sizeof word, "%.*s", length, unit);
        fv__unit_name(word, frame->type.unit[d]);
        unit += length + (unit[length] == ',');
    }
    return FV_OK;
}

/* A detector's own message tells what headers do not. Its start says how long the scan will be, and has no frame. */
static fv_status take_cbor(const fv_message *m, parts *p, fv_error *error) {
    fv_frame     *frame = p->first;
    fv_cbor_frame cbor;
    FV_TRY(fv__cbor_frame_read(m->body, m->body_size, &cbor, error));
    if (!m->key_size && cbor.series >= 0) {
        free(frame->scan);
        frame->scan = fv__sprintf("series-%lld", (long long)cbor.series);
    }
    if (!p->has_index && cbor.image >= 0) frame->index = cbor.image;
    p->has_index = p->has_index || cbor.image >= 0;
    if (!frame->length && cbor.images > 0) frame->length = cbor.images;
    if (!cbor.data) {
        frame->end = true;
        return FV_OK;
    }
    int64_t bytes = fv_image_type_bytes(&cbor.pixels);
    if (bytes <= 0 || bytes > m->most)
        return fv_fail(error, FV_ERROR_INPUT, "the image has %lld bytes; at most %lld are taken", (long long)bytes,
                       (long long)m->most);
    p->room = (size_t)bytes;
    FV_TRY(FV_TAKE_BUFFER(p->pixels, p->room, error));
    FV_TRY(fv__cbor_frame_unpack(&cbor, p->pixels, (size_t)bytes, error));
    frame->type = cbor.pixels;
    frame->data = p->pixels;
    frame->bytes = (size_t)bytes;
    return name_frame(p, frame, error);
}

static fv_status take_apart(const fv_message *m, parts *p, fv_error *error) {
    fv_frame *frame = p->first;
    frame->index = m->number;
    for (int h = 0; h < m->nheaders; h++) FV_TRY(read_header(p, &m->headers[h], error));
    if (!m->body_size && frame->end) return FV_OK; /* says that the scan is over, and nothing else */
    if (!m->body_size) return fv_fail(error, FV_ERROR_INPUT, "the message is empty");
    if (!p->ndim && !p->has_dtype && fv__cbor_is(m->body, m->body_size)) return take_cbor(m, p, error);
    fv_body body = { .data = m->body, .size = m->body_size, .codec = p->codec, .most = m->most };
    if (p->ndim != 0 || p->has_dtype) {
        if (!p->ndim || !p->has_dtype)
            return fv_fail(error, FV_ERROR_INPUT, "fovea-shape and fovea-dtype belong together; %s is missing",
                           p->ndim ? "fovea-dtype" : "fovea-shape");
        fv_image_type_init(&frame->type, p->dtype, p->ndim, p->shape);
        body.type = &frame->type;
    }
    FV_TRY(fv__body_decode(&body, &frame->type, error));
    frame->data = body.data;
    frame->bytes = (size_t)fv_image_type_bytes(&frame->type);
    p->pixels = body.made; /* the message itself is no longer needed for its pixels then, but for its place */
    p->room = body.room;
    return name_frame(p, frame, error);
}

/* The message goes with the last of its frames, which may be freed by any thread. */
typedef struct shared {
    void  *pixels, *message;
    size_t room;
    void (*release)(void *message);
    _Atomic int64_t users;
} shared;

static void leave(void *held) {
    shared *s = held;
    if (--s->users) return;
    fv__buffer_free(s->pixels, s->room);
    if (s->release) s->release(s->message);
    free(s);
}

static void hold_message(const fv_message *m, const parts *p, int64_t users) {
    shared   *s = fv__alloc(sizeof *s);
    fv_frame *frame = p->first;
    *s = (shared){ p->pixels, m->held, p->room, m->release, users };
    frame->held = s;
    frame->release = leave;
}

static fv_frame *new_frame(const fv_message *m, const char *scan) {
    fv_frame *frame = fv__frame_new();
    frame->scan = fv__strdup(scan);
    frame->where = fv__strdup(m->where);
    frame->partition = m->partition;
    frame->offset = m->offset;
    return frame;
}

/* The first axis of a body is frames one after another: the first of them stays where it is, and the others follow it. */
static void split(const fv_message *m, const fv_frame_names *names, const parts *p) {
    fv_frame     *first = p->first, *last = first;
    int64_t       count = p->frames;
    const double *angle = p->angle;
    bool          end = first->end;
    fv__axis_drop(&first->type, 0);
    first->bytes /= (size_t)count;
    first->more = (int)count - 1;
    first->end = false;
    for (int64_t i = 1; i < count; i++) {
        fv_frame *frame = last->next = new_frame(m, first->scan);
        frame->index = first->index + i;
        frame->type = first->type;
        frame->data = (const char *)first->data + (size_t)i * first->bytes;
        frame->bytes = first->bytes;
        frame->length = first->length;
        frame->time = first->time;
        if (angle) frame->angle = angle[i];
        frame->more = -1;
        frame->held = first->held;
        frame->release = first->release;
        frame->path = fv__frame_path(names, frame->scan, frame->index);
        last = frame;
    }
    last->end = end;
}

fv_frame *fv__message_frames(const fv_message *m, const fv_frame_names *names) {
    char     *scan = m->key_size ? fv__sprintf("%.*s", (int)m->key_size, (const char *)m->key) : fv__strdup(m->fallback);
    fv_frame *frame = new_frame(m, scan);
    parts     p = { .first = frame };
    fv_error  error = { 0 };
    free(scan);
    if ((int64_t)m->body_size > m->most)
        frame->why =
            fv__sprintf("the message has %lld bytes; at most %lld are taken", (long long)m->body_size, (long long)m->most);
    else if (take_apart(m, &p, &error) != FV_OK)
        frame->why = fv__strdup(error.message);
    else if (p.frames && (frame->type.ndim < 2 || frame->type.shape[0] != p.frames))
        frame->why = fv__sprintf("fovea-frames is %lld, and the first axis of the body has another length", (long long)p.frames);
    else if (p.frames && !p.has_index)
        frame->why = fv__strdup("fovea-frames needs fovea-index, the number of the first frame");
    else if (p.angle && p.nangles != FV_MAX(p.frames, 1) && frame->bytes)
        frame->why = fv__sprintf("fovea-angle has %d numbers for %lld frames", p.nangles, (long long)FV_MAX(p.frames, 1));
    if (p.angle && p.nangles > 0) frame->angle = p.angle[0];
    frame->path = fv__frame_path(names, frame->scan, frame->index);
    hold_message(m, &p, frame->why || !p.frames ? 1 : p.frames);
    if (frame->why) { /* the message as it came is what can be put aside */
        frame->data = m->body;
        frame->bytes = m->body_size;
    }
    if (!frame->why && p.frames > 1) split(m, names, &p);
    if (!frame->why && p.frames == 1) fv__axis_drop(&frame->type, 0);
    free(p.angle);
    return frame;
}
