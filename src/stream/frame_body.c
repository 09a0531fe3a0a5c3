/* Bodies of messages become voxels. */
#include "stream/frame_body.h"
#include "base/take.h"
#include "op/format.h"
#include <blosc.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

/* ---------------------------------------------------------------- NPY */

static const struct {
    const char *code;
    fv_dtype    dtype;
} npy_types[] = {
    { "|b1", FV_BOOL },    { "|u1", FV_UINT8 },     { "|i1", FV_INT8 },        { "<u2", FV_UINT16 }, { "<i2", FV_INT16 },
    { "<u4", FV_UINT32 },  { "<i4", FV_INT32 },     { "<u8", FV_UINT64 },      { "<i8", FV_INT64 },  { "<f4", FV_FLOAT32 },
    { "<f8", FV_FLOAT64 }, { "<c8", FV_COMPLEX64 }, { "<c16", FV_COMPLEX128 },
};

/* Bytes of an element, 0: it is no number. known: its type is one of ours, in the order of bytes of this machine. */
static int64_t npy_dtype(const char *header, fv_dtype *dtype, bool *known) {
    const char *descr = strstr(header, "'descr':");
    char        code[8] = "";
    *known = false;
    if (!descr || sscanf(descr + 8, " '%7[^']'", code) != 1 || !code[1] || !strchr("biufc", code[1])) return 0;
    for (int i = 0; i < FV_COUNT(npy_types) && !*known; i++) {
        *known = !strcmp(code, npy_types[i].code);
        *dtype = npy_types[i].dtype;
    }
    return strtoll(code + 2, NULL, 10);
}

static int npy_shape(const char *header, int64_t *shape) {
    const char *at = strstr(header, "'shape':");
    int         n = 0;
    at = at ? strchr(at, '(') : NULL;
    while (at && *++at && *at != ')') {
        char     *end;
        long long size = strtoll(at, &end, 10);
        if (end == at) continue;
        if (n == FV_MAX_DIMS || size < 1) return -1;
        shape[n++] = size;
        at = end - 1;
    }
    return n;
}

fv_status fv__npy_look(const void *data, size_t size, fv_image_type *type, size_t *begin, size_t *wanted, fv_error *error) {
    const uint8_t *bytes = data;
    *wanted = 12;
    if (size < 12) return FV_ERROR_MISSING;
    if (memcmp(bytes, "\x93NUMPY", 6)) return fv_fail(error, FV_ERROR_INPUT, "these bytes are no NPY file");
    bool   old = bytes[6] == 1;
    size_t first = old ? 10 : 12, length = bytes[8] | (size_t)bytes[9] << 8;
    if (!old) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > 1 << 16) return fv_fail(error, FV_ERROR_INPUT, "the header of an NPY file has %zu bytes, too many", length);
    *wanted = *begin = first + length;
    if (size < *begin) return FV_ERROR_MISSING;
    char    *header = fv__sprintf("%.*s", (int)length, (const char *)bytes + first);
    int64_t  shape[FV_MAX_DIMS];
    fv_dtype dtype;
    bool     plain;
    int      ndim = npy_shape(header, shape);
    int64_t  voxels = npy_dtype(header, &dtype, &plain);
    plain = plain && strstr(header, "'fortran_order': False");
    free(header);
    bool good = voxels > 0 && ndim > 0;
    for (int d = 0; d < ndim && good; d++) good = fv__mul(voxels, shape[d], &voxels);
    if (!good)
        return fv_fail(error, FV_ERROR_INPUT,
                       "this NPY array cannot be a frame: numbers are expected, with 1 to %d axes of at least one element",
                       FV_MAX_DIMS);
    *wanted = *begin + (size_t)voxels;
    *type = (fv_image_type){ 0 };
    if (plain) fv_image_type_init(type, dtype, ndim, shape);
    return FV_OK;
}

/* Frames come one after another, so a buffer that was given back serves the next one. */
static fv_status make_room(fv_body *body, size_t bytes, fv_error *error) {
    body->room = bytes;
    return FV_TAKE_BUFFER(body->made, bytes, error);
}

/* ---------------------------------------------------------------- small files */

static fv_status read_file(const char *path, fv_body *body, fv_image_type *type, fv_error *error) {
    const fv_format *format;
    fv_reader       *reader;
    if (fv__format_for_reading(path, &format, NULL) != FV_OK)
        return fv_fail(error, FV_ERROR_INPUT,
                       "its %zu bytes are no file of a known format; voxels alone need the headers fovea-shape and fovea-dtype",
                       body->size);
    FV_TRY(format->open(path, &(fv_read_options){ 0 }, &reader, error));
    *type = reader->type;
    int64_t   bytes = fv_image_type_bytes(type);
    fv_status status = bytes > 0 && bytes <= body->most
                           ? make_room(body, (size_t)bytes, error)
                           : fv_fail(error, FV_ERROR_INPUT, "the frame has %lld bytes of voxels; at most %lld are taken",
                                     (long long)bytes, (long long)body->most);
    if (status == FV_OK) {
        fv_region whole = fv__region_whole(type);
        fv_block  block;
        fv__block_init(&block, type->dtype, &whole, body->made);
        status = fv__reader_read(reader, &block, error);
    }
    reader->format->close(reader);
    body->data = body->made;
    return status;
}

/* A file that is nowhere but in memory; HDF5's library wants one that can have a name. */
static fv_status make_file(const fv_body *body, int *fd, fv_error *error) {
    static const char hdf5[8] = "\211HDF\r\n\032\n";
    if (body->size > sizeof hdf5 && !memcmp(body->data, hdf5, sizeof hdf5)) return fv__file_open_nameless(0, fd, error);
    *fd = memfd_create("frame", MFD_CLOEXEC);
    return *fd < 0 ? fv_fail(error, FV_ERROR_IO, "no file in memory can be made") : FV_OK;
}

/* TIFF, PNG and all others by their first bytes. */
static fv_status decode_file(fv_body *body, fv_image_type *type, fv_error *error) {
    int fd;
    FV_TRY(make_file(body, &fd, error));
    char      path[64];
    fv_status status = fv__file_write_at(fd, body->data, body->size, 0, "frame", error);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (status == FV_OK) status = read_file(path, body, type, error);
    if (status != FV_OK) fv__error_rename(error, path, "the body of the message");
    close(fd);
    return status;
}

/* ---------------------------------------------------------------- packed voxels */

static fv_status unpack(fv_body *body, size_t bytes, fv_error *error) {
    int64_t got = -1;
    FV_TRY(make_room(body, bytes + 1, error));
    if (!strcmp(body->codec, "lz4"))
        got = LZ4_decompress_safe(body->data, body->made, (int)FV_MIN(body->size, INT32_MAX), (int)FV_MIN(bytes, INT32_MAX));
    else if (!strcmp(body->codec, "zstd")) {
        size_t done = ZSTD_decompress(body->made, bytes, body->data, body->size);
        got = ZSTD_isError(done) ? -1 : (int64_t)done;
    } else if (!strcmp(body->codec, "blosc")) {
        size_t there = 0;
        if (!blosc_cbuffer_validate(body->data, body->size, &there) && there == bytes)
            got = blosc_decompress_ctx(body->data, body->made, bytes, 1);
    } else
        return fv_fail(error, FV_ERROR_INPUT, "fovea-codec is \"%s\"; known are none, lz4, zstd and blosc", body->codec);
    if (got != (int64_t)bytes)
        return fv_fail(error, FV_ERROR_INPUT, "the body does not unpack by %s to the %zu bytes that shape and type say",
                       body->codec, bytes);
    body->data = body->made;
    return FV_OK;
}

static fv_status decode_raw(fv_body *body, fv_error *error) {
    int64_t bytes = fv_image_type_bytes(body->type);
    if (bytes <= 0 || bytes > body->most)
        return fv_fail(error, FV_ERROR_INPUT, "shape and type make a frame of %lld bytes; at most %lld are taken",
                       (long long)bytes, (long long)body->most);
    if (*body->codec && strcmp(body->codec, "none")) return unpack(body, (size_t)bytes, error);
    if ((int64_t)body->size != bytes)
        return fv_fail(error, FV_ERROR_INPUT, "the body has %zu bytes, and shape and type say %lld", body->size,
                       (long long)bytes);
    return FV_OK;
}

fv_status fv__body_decode(fv_body *body, fv_image_type *type, fv_error *error) {
    size_t begin, wanted;
    bool   npy = !body->type && body->size > 6 && !memcmp(body->data, "\x93NUMPY", 6) &&
               fv__npy_look(body->data, body->size, type, &begin, &wanted, NULL) == FV_OK && type->ndim;
    fv_status status;
    if (body->type)
        status = decode_raw(body, error);
    else if (npy) {
        fv_body voxels = {
            .data = (const char *)body->data + begin, .size = body->size - begin, .codec = "", .type = type, .most = body->most
        };
        status = decode_raw(&voxels, error);
        body->data = voxels.data;
        body->made = voxels.made;
        body->room = voxels.room;
    } else
        status = decode_file(body, type, error);
    if (status != FV_OK) {
        fv__buffer_free(body->made, body->room);
        body->made = NULL;
    }
    return status;
}
