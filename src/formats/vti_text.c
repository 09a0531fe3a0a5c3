/* Voxels as text; see vti_text.h. */
#include "formats/vti_text.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT = 1 << 16, LONGEST = 400 }; /* read at once; characters of one number */

typedef struct {
    int         from, to;
    const char *path;
    int64_t     at, end; /* of the text in the file */
    int64_t     written;
    uint8_t    *out; /* what comes next in the decoded file */
    size_t      filled, room;
} decoding;

static fv_status flush(decoding *d, fv_error *error) {
    FV_TRY(fv__file_write_at(d->to, d->out, d->filled, d->written, d->path, error));
    d->written += (int64_t)d->filled;
    d->filled = 0;
    return FV_OK;
}

/* ---------------------------------------------------------------- base64 */

static int digit_of(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

typedef struct {
    uint32_t bits;
    int      digits, padding;
} group;

/* Four characters are three bytes; = stands for what is missing at the end of a stream, behind which another may begin. */
static bool take_character(group *g, char c, uint8_t **out) {
    int digit = digit_of(c);
    if (digit < 0 && c != '=') return false;
    if (digit >= 0 && g->padding) return false;
    g->bits = g->bits << 6 | (uint32_t)(digit < 0 ? 0 : digit);
    g->padding += digit < 0;
    if (++g->digits < 4) return true;
    if (g->padding > 2) return false;
    for (int i = 0; i < 3 - g->padding; i++) *(*out)++ = (uint8_t)(g->bits >> (16 - 8 * i));
    *g = (group){ 0 };
    return true;
}

/* Up to the tag behind the text, or until there is enough. */
static fv_status decode_base64(decoding *d, char *text, int64_t most, fv_error *error) {
    group g = { 0 };
    while (d->at < d->end && d->written < most) {
        size_t   n = (size_t)FV_MIN(d->end - d->at, TEXT);
        uint8_t *out = d->out;
        FV_TRY(fv__file_read_at(d->from, text, n, d->at, d->path, error));
        const char *tag = memchr(text, '<', n);
        if (tag) n = (size_t)(tag - text);
        for (size_t i = 0; i < n; i++)
            if (!isspace((unsigned char)text[i]) && !take_character(&g, text[i], &out))
                return fv_fail(error, FV_ERROR_INPUT, "%s: the base64 text of its voxels is damaged at byte %lld", d->path,
                               (long long)(d->at + (int64_t)i));
        d->filled = (size_t)(out - d->out);
        FV_TRY(flush(d, error));
        d->at = tag ? d->end : d->at + (int64_t)n;
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- numbers */

static bool put_integer(fv_dtype dtype, const char *word, void *to) {
    char  *end;
    size_t bits = 8 * fv_dtype_size(dtype);
    bool   with_sign = fv_dtype_is_signed(dtype), negative = *word == '-';
    errno = 0;
    uint64_t value = negative ? (uint64_t)strtoll(word, &end, 10) : strtoull(word, &end, 10);
    if (end == word || *end || errno || (negative && !with_sign && value)) return false;
    uint64_t most = with_sign ? ((uint64_t)1 << (bits - 1)) - 1 : bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    if (negative ? (int64_t)value < -(int64_t)most - 1 : value > most) return false;
    switch (bits) {
    case 8: *(uint8_t *)to = (uint8_t)value; break;
    case 16: *(uint16_t *)to = (uint16_t)value; break;
    case 32: *(uint32_t *)to = (uint32_t)value; break;
    default: *(uint64_t *)to = value;
    }
    return true;
}

static bool put_number(fv_dtype dtype, const char *word, void *to) {
    char *end;
    if (!fv_dtype_is_float(dtype)) return put_integer(dtype, word, to);
    if (dtype == FV_FLOAT32)
        *(float *)to = strtof(word, &end);
    else
        *(double *)to = strtod(word, &end);
    return end != word && !*end;
}

typedef struct {
    char    word[LONGEST + 1];
    size_t  length;
    int64_t count;
} numbers;

static fv_status end_number(decoding *d, numbers *n, fv_dtype dtype, int64_t values, fv_error *error) {
    size_t size = fv_dtype_size(dtype);
    if (!n->length) return FV_OK;
    n->word[n->length] = 0;
    n->length = 0;
    if (n->count == values)
        return fv_fail(error, FV_ERROR_INPUT, "%s: its text holds more than the %lld values that the Extent asks for", d->path,
                       (long long)values);
    if (d->filled + size > d->room) FV_TRY(flush(d, error));
    if (!put_number(dtype, n->word, d->out + d->filled))
        return fv_fail(error, FV_ERROR_INPUT, "%s: value %lld of its text is \"%.40s\", which is no %s", d->path,
                       (long long)n->count, n->word, fv_dtype_name(dtype));
    d->filled += size;
    n->count++;
    return FV_OK;
}

static fv_status decode_numbers(decoding *d, char *text, fv_dtype dtype, int64_t values, fv_error *error) {
    numbers n = { .length = 0 };
    bool    over = false;
    while (d->at < d->end && !over) {
        size_t size = (size_t)FV_MIN(d->end - d->at, TEXT);
        FV_TRY(fv__file_read_at(d->from, text, size, d->at, d->path, error));
        for (size_t i = 0; i < size && !over; i++) {
            over = text[i] == '<';
            if (over || isspace((unsigned char)text[i]))
                FV_TRY(end_number(d, &n, dtype, values, error));
            else if (n.length == LONGEST)
                return fv_fail(error, FV_ERROR_INPUT, "%s: value %lld of its text has more than %d characters", d->path,
                               (long long)n.count, LONGEST);
            else
                n.word[n.length++] = text[i];
        }
        d->at += (int64_t)size;
    }
    FV_TRY(end_number(d, &n, dtype, values, error));
    FV_TRY(flush(d, error));
    if (n.count == values) return FV_OK;
    return fv_fail(error, FV_ERROR_INPUT, "%s ends early: its text holds %lld of the %lld values that the Extent asks for",
                   d->path, (long long)n.count, (long long)values);
}

/* ---------------------------------------------------------------- both */

fv_status fv__vti_decode(const fv_vti_facts *f, int fd, const char *path, int64_t file_size, int64_t values, int *decoded,
                         int64_t *size, fv_error *error) {
    decoding d = { .from = fd, .to = -1, .path = path, .at = f->place, .end = file_size, .room = TEXT };
    int64_t  bytes = values * (int64_t)fv_dtype_size(f->dtype);
    if (f->coding == FV_VTI_ASCII && values > (file_size - f->place + 1) / 2) /* a digit and a blank each */
        return fv_fail(error, FV_ERROR_INPUT, "%s ends early: its Extent asks for %lld values, and %lld bytes of text follow",
                       path, (long long)values, (long long)(file_size - f->place));
    FV_TRY(fv__file_open_nameless(0, &d.to, error));
    char *text = fv__alloc(TEXT);
    d.out = fv__alloc(TEXT);
    /* Behind unpacked voxels that are appended there are those of other arrays. */
    int64_t   most = f->packing == FV_VTI_PLAIN && f->appended ? bytes + 8 : INT64_MAX;
    fv_status status =
        f->coding == FV_VTI_ASCII ? decode_numbers(&d, text, f->dtype, values, error) : decode_base64(&d, text, most, error);
    free(text);
    free(d.out);
    if (status != FV_OK) {
        close(d.to);
        return status;
    }
    *decoded = d.to;
    *size = d.written;
    return FV_OK;
}
