/* The header of a numpy array: a magic word, a length, and a Python dictionary as text; see npy_header.h. */
#include "formats/npy_header.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGNMENT = 64, LONGEST_HEADER = 1 << 20 };

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

static fv_status check_shape(const fv_dense *dense, const char *path, fv_error *error) {
    if (dense->ndim == 0) return fv_fail(error, FV_ERROR_INPUT, "%s: the array is a single number, not an image", path);
    for (int d = 0; d < dense->ndim; d++)
        if (dense->shape[d] == 0) return fv_fail(error, FV_ERROR_INPUT, "%s: axis %d of the array is empty", path, d);
    return FV_OK;
}

fv_status fv__npy_read_header(fv_volume *v, int64_t offset, int64_t end, int *version, fv_hash *hash, fv_error *error) {
    const char *path = v->path;
    uint8_t     start[12];
    int64_t     size = end - offset;
    if (size < 10) return fv_fail(error, FV_ERROR_INPUT, "%s: %lld bytes are too few for an NPY file", path, (long long)size);
    FV_TRY(fv__volume_fetch(v, offset, start, FV_MIN(sizeof start, (size_t)size), error));
    if (memcmp(start, magic, 6))
        return fv_fail(error, FV_ERROR_INPUT, "%s: not an NPY file (its first bytes are different)", path);
    *version = start[6];
    if (*version < 1 || *version > 3)
        return fv_fail(error, FV_ERROR_INPUT, "%s: NPY version %d is unknown; 1, 2 and 3 can be read", path, *version);
    int64_t begin = *version == 1 ? 10 : 12;
    int64_t length = start[8] | start[9] << 8;
    if (*version > 1) length |= (int64_t)start[10] << 16 | (int64_t)start[11] << 24;
    if (size < begin || length > LONGEST_HEADER || begin + length > size)
        return fv_fail(error, FV_ERROR_INPUT, "%s: the NPY header claims %lld bytes, the file has %lld", path, (long long)length,
                       (long long)size);
    fv_bytes text = { 0 };
    fv__bytes_append(&text, NULL, (size_t)length + 1);
    fv_status status = fv__volume_fetch(v, offset + begin, text.data, (size_t)length, error);
    text.data[length] = 0;
    if (status == FV_OK) {
        *hash = fv__hash_bytes(text.data, (size_t)length);
        status = parse(&(parser){ (char *)text.data, path, &v->dense, error });
    }
    fv__bytes_release(&text);
    v->dense.offset = offset + begin + length;
    return status == FV_OK ? check_shape(&v->dense, path, error) : status;
}

/* ---------------------------------------------------------------- writing */

void fv__npy_make_header(const fv_image_type *type, fv_bytes *h) {
    char kind = 0;
    for (int i = 0; i < FV_COUNT(descriptions); i++)
        if (descriptions[i].dtype == type->dtype) kind = descriptions[i].kind;
    size_t size = fv_dtype_size(type->dtype);
    char   order = size == 1 ? '|' : __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
    fv__bytes_append(h, magic, 6);
    fv__bytes_append(h, "\x01\x00\x00\x00", 4);
    fv__bytes_printf(h, "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (", order, kind, size);
    for (int d = 0; d < type->ndim; d++) fv__bytes_printf(h, "%s%lld", d ? ", " : "", (long long)type->shape[d]);
    fv__bytes_printf(h, "%s), }", type->ndim == 1 ? "," : "");
    while ((h->size + 1) % ALIGNMENT) fv__bytes_append(h, " ", 1);
    fv__bytes_append(h, "\n", 1);
    uint16_t length = (uint16_t)(h->size - 10);
    h->data[8] = length & 255;
    h->data[9] = length >> 8;
}
