/* NPY, numpy's own file: versions 1.0 to 3.0 are read by region in either order of axes and either byte order (float16 as
 * float32); version 1.0 is written, in C order, by many workers at once.
 *
 * The format has no room for axis names, spacing or units: axes get the default names (z y x), and these facts are lost. */
#include "op/dense_writer.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ALIGNMENT = 64, LONGEST_HEADER = 1 << 20 };
extern const fv_format fv_format_npy;

static const char magic[] = "\x93NUMPY";

static const struct {
    char     kind;
    int      size;
    fv_dtype dtype;
} descriptions[] = {
    { 'b', 1, FV_BOOL },    { 'u', 1, FV_UINT8 },     { 'i', 1, FV_INT8 },        { 'u', 2, FV_UINT16 }, { 'i', 2, FV_INT16 },
    { 'u', 4, FV_UINT32 },  { 'i', 4, FV_INT32 },     { 'u', 8, FV_UINT64 },      { 'i', 8, FV_INT64 },  { 'f', 4, FV_FLOAT32 },
    { 'f', 8, FV_FLOAT64 }, { 'c', 8, FV_COMPLEX64 }, { 'c', 16, FV_COMPLEX128 },
};

typedef struct {
    fv_reader base;
    int       fd;
    fv_dense  dense;
} reader;

/* ---------------------------------------------------------------- the header: a Python dictionary as text */

typedef struct {
    const char *at;
    const char *path;
    fv_dense   *dense;
    fv_error   *error;
} parser;

static fv_status damaged(const parser *p, const char *why) {
    return fv_fail(p->error, FV_ERROR_INPUT, "%s: the NPY header is damaged: %s", p->path, why);
}

static void skip_space(parser *p) { p->at += strspn(p->at, " \t\r\n"); }

static bool take(parser *p, char c) {
    skip_space(p);
    if (*p->at != c) return false;
    p->at++;
    return true;
}

static bool take_text(parser *p, char *text, size_t size) {
    skip_space(p);
    char quote = *p->at;
    if (quote != '\'' && quote != '"') return false;
    const char *end = strchr(p->at + 1, quote);
    if (!end) return false;
    snprintf(text, size, "%.*s", (int)FV_MIN(end - p->at - 1, 1000), p->at + 1);
    p->at = end + 1;
    return true;
}

static fv_status take_descr(parser *p) {
    char text[32];
    if (!take_text(p, text, sizeof text))
        return fv_fail(p->error, FV_ERROR_INPUT, "%s: the array has named fields; only arrays of numbers can be read", p->path);
    const char *kind = text + (strchr("<>|=", text[0]) && text[0] != 0);
    int         size = *kind ? atoi(kind + 1) : 0;
    bool        little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    p->dense->swapped = size > 1 && ((text[0] == '>' && little) || (text[0] == '<' && !little));
    p->dense->half = *kind == 'f' && size == 2;
    if (p->dense->half) {
        p->dense->dtype = FV_FLOAT32;
        return FV_OK;
    }
    for (int i = 0; i < FV_COUNT(descriptions); i++)
        if (descriptions[i].kind == *kind && descriptions[i].size == size) {
            p->dense->dtype = descriptions[i].dtype;
            return FV_OK;
        }
    return fv_fail(p->error, FV_ERROR_INPUT, "%s: element type '%s' cannot be read; known are bool, integers, floats and complex",
                   p->path, text);
}

static fv_status take_shape(parser *p) {
    if (!take(p, '(')) return damaged(p, "the shape is no tuple");
    p->dense->ndim = 0;
    while (!take(p, ')')) {
        char *end;
        skip_space(p);
        if (!isdigit((unsigned char)*p->at)) return damaged(p, "the shape holds something that is no number");
        long long size = strtoll(p->at, &end, 10);
        if (p->dense->ndim == FV_MAX_DIMS)
            return fv_fail(p->error, FV_ERROR_INPUT, "%s: the array has more than %d axes", p->path, FV_MAX_DIMS);
        p->dense->shape[p->dense->ndim++] = size;
        p->at = end + (*end == 'L');
        if (!take(p, ',') && !strchr(")", *p->at)) return damaged(p, "the shape is no tuple");
        if (!*p->at) return damaged(p, "the shape has no end");
    }
    return FV_OK;
}

static fv_status take_order(parser *p) {
    skip_space(p);
    bool yes = !strncmp(p->at, "True", 4), no = !strncmp(p->at, "False", 5);
    if (!yes && !no) return damaged(p, "fortran_order is neither True nor False");
    p->dense->fortran = yes;
    p->at += yes ? 4 : 5;
    return FV_OK;
}

static fv_status parse(parser *p) {
    char key[32];
    int  seen = 0;
    if (!take(p, '{')) return damaged(p, "it does not begin with {");
    while (!take(p, '}')) {
        if (!take_text(p, key, sizeof key) || !take(p, ':')) return damaged(p, "a key was expected");
        if (!strcmp(key, "descr")) {
            FV_TRY(take_descr(p));
            seen |= 1;
        } else if (!strcmp(key, "fortran_order")) {
            FV_TRY(take_order(p));
            seen |= 2;
        } else if (!strcmp(key, "shape")) {
            FV_TRY(take_shape(p));
            seen |= 4;
        } else
            return damaged(p, "it has a key other than descr, fortran_order and shape");
        take(p, ',');
    }
    return seen == 7 ? FV_OK : damaged(p, "descr, fortran_order or shape is missing");
}

/* ---------------------------------------------------------------- reading */

/* Reads and parses everything before the voxels. */
static fv_status read_header(reader *r, int64_t file_size, int *version, fv_error *error) {
    const char *path = r->base.path;
    uint8_t     start[12];
    if (file_size < 10)
        return fv_fail(error, FV_ERROR_INPUT, "%s: %lld bytes are too few for an NPY file", path, (long long)file_size);
    FV_TRY(fv_file_read_at(r->fd, start, FV_MIN(sizeof start, (size_t)file_size), 0, path, error));
    if (memcmp(start, magic, 6))
        return fv_fail(error, FV_ERROR_INPUT, "%s: not an NPY file (its first bytes are different)", path);
    *version = start[6];
    if (*version < 1 || *version > 3)
        return fv_fail(error, FV_ERROR_INPUT, "%s: NPY version %d is unknown; 1, 2 and 3 can be read", path, *version);
    int64_t begin = *version == 1 ? 10 : 12;
    int64_t length = start[8] | start[9] << 8;
    if (*version > 1) length |= (int64_t)start[10] << 16 | (int64_t)start[11] << 24;
    if (file_size < begin || length > LONGEST_HEADER || begin + length > file_size)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the NPY header claims %lld bytes, the file has %lld", path, (long long)length,
                       (long long)file_size);
    fv_bytes text = { 0 };
    fv_bytes_append(&text, NULL, (size_t)length + 1);
    fv_status status = fv_file_read_at(r->fd, text.data, (size_t)length, begin, path, error);
    text.data[length] = 0;
    if (status == FV_OK) {
        r->base.header = fv_hash_bytes(text.data, (size_t)length);
        status = parse(&(parser){ (char *)text.data, path, &r->dense, error });
    }
    fv_bytes_release(&text);
    r->dense.offset = begin + length;
    return status;
}

static fv_status check_size(const reader *r, int64_t file_size, fv_error *error) {
    const char *path = r->base.path;
    if (r->dense.ndim == 0) return fv_fail(error, FV_ERROR_INPUT, "%s: the array is a single number, not an image", path);
    for (int d = 0; d < r->dense.ndim; d++)
        if (r->dense.shape[d] == 0) return fv_fail(error, FV_ERROR_INPUT, "%s: axis %d of the array is empty", path, d);
    int64_t bytes = fv_dense_bytes(&r->dense);
    if (bytes < 0 || fv_image_type_bytes(&r->base.type) < 0 || bytes > file_size - r->dense.offset)
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: its shape needs %lld bytes of voxels, it has %lld", path,
                       (long long)bytes, (long long)(file_size - r->dense.offset));
    return FV_OK;
}

static void close_reader(fv_reader *base) {
    reader *r = (reader *)base;
    if (r->fd >= 0) close(r->fd);
    fv_reader_free(base);
}

static fv_status open_reader(const char *path, const fv_read_options *options, fv_reader **out, fv_error *error) {
    (void)options;
    reader    *r = fv_reader_new(sizeof *r, &fv_format_npy, path);
    fv_file_id id;
    int        version = 0;
    r->fd = -1;
    fv_status status = fv_file_open_read(path, &r->fd, error);
    if (status == FV_OK) status = fv_file_identify(path, &id, error);
    if (status == FV_OK) status = read_header(r, id.size, &version, error);
    if (status == FV_OK) {
        fv_image_type_init(&r->base.type, r->dense.dtype, r->dense.ndim, r->dense.shape);
        status = check_size(r, id.size, error);
    }
    if (status != FV_OK) {
        close_reader(&r->base);
        return status;
    }
    memcpy(r->base.chunk, r->base.type.shape, sizeof r->base.chunk);
    r->base.read_memory = FV_DENSE_MEMORY;
    fv_bytes_printf(&r->base.facts, "version: %d.0\norder: %s\nbyte order: %s\n%s", version,
                    r->dense.fortran ? "Fortran (first axis contiguous)" : "C (last axis contiguous)",
                    r->dense.swapped ? "swapped" : "native", r->dense.half ? "stored as: float16\n" : "");
    *out = &r->base;
    return FV_OK;
}

static fv_status read_block(fv_reader *base, const fv_block *block, fv_error *error) {
    reader *r = (reader *)base;
    return fv_dense_read(&r->dense, r->fd, base->path, block, error);
}

/* ---------------------------------------------------------------- writing */

static void make_header(const fv_image_type *type, fv_bytes *h) {
    char kind = 0;
    for (int i = 0; i < FV_COUNT(descriptions); i++)
        if (descriptions[i].dtype == type->dtype) kind = descriptions[i].kind;
    size_t size = fv_dtype_size(type->dtype);
    char   order = size == 1 ? '|' : __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
    fv_bytes_append(h, magic, 6);
    fv_bytes_append(h, "\x01\x00\x00\x00", 4);
    fv_bytes_printf(h, "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (", order, kind, size);
    for (int d = 0; d < type->ndim; d++) fv_bytes_printf(h, "%s%lld", d ? ", " : "", (long long)type->shape[d]);
    fv_bytes_printf(h, "%s), }", type->ndim == 1 ? "," : "");
    while ((h->size + 1) % ALIGNMENT) fv_bytes_append(h, " ", 1);
    fv_bytes_append(h, "\n", 1);
    uint16_t length = (uint16_t)(h->size - 10);
    h->data[8] = length & 255;
    h->data[9] = length >> 8;
}

static fv_status create(const char *path, const fv_image_type *type, const fv_write_options *options, fv_writer **out,
                        fv_error *error) {
    int compression;
    FV_TRY(fv_compression_choose(&fv_format_npy, options, &compression, error));
    if (type->ndim < 1 || fv_image_type_bytes(type) < 0)
        return fv_fail(error, FV_ERROR_USAGE, "%s: an image without axes or beyond 2^63 bytes cannot be written", path);
    fv_bytes header = { 0 };
    make_header(type, &header);
    *out = fv_dense_writer_new(&fv_format_npy, path, type, options, &header);
    return FV_OK;
}

const fv_format fv_format_npy = {
    .name = "npy",
    .extensions = "npy",
    .magic = { { 0, 6, "\x93NUMPY" } },
    .brief = "numpy array",
    .open = open_reader,
    .read = read_block,
    .close = close_reader,
    .create = create,
    .begin = fv_dense_begin,
    .put = fv_dense_put,
    .sync = fv_dense_sync,
    .finish = fv_dense_sync,
    .free_writer = fv_dense_free,
};
