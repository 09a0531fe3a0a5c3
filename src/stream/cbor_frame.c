/* Frames in CBOR (RFC 8949): only what such messages hold is understood, everything else is passed over. */
#include "stream/cbor_frame.h"
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>

enum { UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE };
enum { SELF_DESCRIBED = 55799, ROW_MAJOR = 40, PACKED = 56500 };

typedef struct reader { /* nothing behind `end` is touched, whatever the bytes say */
    const uint8_t *at, *end;
    bool           bad;
} reader;

typedef struct head {
    int      major, more;
    uint64_t value; /* a number, a length or a tag */
    bool     open;  /* its length is not told: a break ends it */
} head;

static uint64_t big_endian(const uint8_t *from, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | from[i];
    return value;
}

static head next(reader *r) {
    head h = { SIMPLE, 31, 0, false };
    if (r->bad || r->at == r->end) {
        r->bad = true;
        return h;
    }
    h.major = *r->at >> 5;
    h.more = *r->at++ & 31;
    h.open = h.more == 31 && h.major >= BYTES && h.major <= MAP;
    int bytes = h.more >= 24 && h.more <= 27 ? 1 << (h.more - 24) : 0;
    if (h.more > 27 && h.more < 31) r->bad = true;
    if (r->end - r->at < bytes) r->bad = true;
    if (r->bad) return h;
    h.value = bytes ? big_endian(r->at, bytes) : (uint64_t)h.more;
    r->at += bytes;
    bool run = (h.major == BYTES || h.major == TEXT) && (h.open || h.value > (uint64_t)(r->end - r->at));
    if (run) r->bad = true; /* texts in pieces are not used here */
    return h;
}

static bool is_break(reader *r) {
    bool ends = r->at < r->end && *r->at == 0xff;
    if (ends) r->at++;
    return ends;
}

/* Whether an array or a map has one more entry. */
static bool has_entry(reader *r, head *h) {
    if (r->bad) return false;
    if (h->open) return !is_break(r);
    return h->value-- > 0;
}

static void skip(reader *r, int depth) {
    head h = next(r);
    if (depth > 32) r->bad = true;
    if (r->bad) return;
    if (h.major == BYTES || h.major == TEXT) r->at += h.value;
    if (h.major == TAG) skip(r, depth + 1);
    while ((h.major == ARRAY || h.major == MAP) && has_entry(r, &h)) {
        skip(r, depth + 1);
        if (h.major == MAP) skip(r, depth + 1);
    }
}

static void take_text(reader *r, char *to, size_t room) {
    head h = next(r);
    if (h.major != TEXT) r->bad = true;
    if (r->bad) return;
    snprintf(to, room, "%.*s", (int)FV_MIN(h.value, (uint64_t)room), (const char *)r->at);
    r->at += h.value;
}

static int64_t take_number(reader *r) {
    head h = next(r);
    if (h.major != UNSIGNED || h.value > INT64_MAX) r->bad = true;
    return r->bad ? -1 : (int64_t)h.value;
}

/* ---------------------------------------------------------------- pixels */

static const struct {
    uint64_t tag;
    fv_dtype dtype;
} typed[] = { { 64, FV_UINT8 }, { 69, FV_UINT16 }, { 70, FV_UINT32 }, { 71, FV_UINT64 },  { 72, FV_INT8 },
              { 77, FV_INT16 }, { 78, FV_INT32 },  { 79, FV_INT64 },  { 85, FV_FLOAT32 }, { 86, FV_FLOAT64 } };

static bool find_type(uint64_t tag, fv_dtype *dtype) {
    for (int i = 0; i < FV_COUNT(typed); i++)
        if (typed[i].tag == tag) {
            *dtype = typed[i].dtype;
            return true;
        }
    return false;
}

/* The bytes of a typed array: as they are, or [codec, bytes of an element, packed bytes]. */
static void take_bytes(reader *r, fv_cbor_frame *f) {
    head h = next(r);
    if (h.major == TAG && h.value == PACKED) {
        head list = next(r);
        if (list.major != ARRAY || list.value != 3) r->bad = true;
        take_text(r, f->codec, sizeof f->codec);
        if (take_number(r) != (int64_t)fv_dtype_size(f->pixels.dtype)) r->bad = true;
        h = next(r);
    }
    if (h.major != BYTES) r->bad = true;
    if (r->bad) return;
    f->data = r->at;
    f->size = (size_t)h.value;
    r->at += h.value;
}

static void take_pixels(reader *r, fv_cbor_frame *f) {
    int64_t  shape[FV_MAX_DIMS];
    int      ndim = 0;
    fv_dtype dtype = FV_UINT8;
    head     h = next(r), list = next(r), sizes = next(r);
    if (h.major != TAG || h.value != ROW_MAJOR || list.major != ARRAY || list.value != 2 || sizes.major != ARRAY) r->bad = true;
    while (has_entry(r, &sizes)) {
        int64_t size = take_number(r);
        if (ndim == FV_MAX_DIMS || size < 1 || size > 1 << 30) r->bad = true;
        if (!r->bad) shape[ndim++] = size;
    }
    h = next(r);
    if (h.major != TAG || !find_type(h.value, &dtype) || !ndim) r->bad = true;
    if (r->bad) return;
    fv_image_type_init(&f->pixels, dtype, ndim, shape);
    take_bytes(r, f);
}

/* Images by name of the channel; the first one counts. */
static void take_channels(reader *r, fv_cbor_frame *f) {
    head h = next(r);
    if (h.major != MAP) r->bad = true;
    for (bool first = true; has_entry(r, &h); first = false) {
        skip(r, 0);
        if (first)
            take_pixels(r, f);
        else
            skip(r, 0);
    }
}

/* ---------------------------------------------------------------- messages */

bool fv__cbor_is(const void *data, size_t size) { return size > 4 && !memcmp(data, "\xd9\xd9\xf7", 3); }

static void take_entry(reader *r, fv_cbor_frame *f) {
    char name[32] = "";
    take_text(r, name, sizeof name);
    if (!strcmp(name, "type"))
        take_text(r, f->type, sizeof f->type);
    else if (!strcmp(name, "series_id"))
        f->series = take_number(r);
    else if (!strcmp(name, "image_id"))
        f->image = take_number(r);
    else if (!strcmp(name, "number_of_images"))
        f->images = take_number(r);
    else if (!strcmp(name, "data"))
        take_channels(r, f);
    else
        skip(r, 0);
}

fv_status fv__cbor_frame_read(const void *data, size_t size, fv_cbor_frame *f, fv_error *error) {
    reader r = { data, (const uint8_t *)data + size, false };
    head   h = next(&r);
    *f = (fv_cbor_frame){ .series = -1, .image = -1 };
    if (h.major == TAG && h.value == SELF_DESCRIBED) h = next(&r);
    if (h.major != MAP) r.bad = true;
    while (has_entry(&r, &h)) take_entry(&r, f);
    if (r.bad) return fv_fail(error, FV_ERROR_INPUT, "the body is CBOR, but not a message of a detector that is understood");
    if (strcmp(f->type, "image") && strcmp(f->type, "start") && strcmp(f->type, "end"))
        return fv_fail(error, FV_ERROR_INPUT, "the body is CBOR of type \"%s\"; start, image and end are known", f->type);
    if (!strcmp(f->type, "image") && !f->data) return fv_fail(error, FV_ERROR_INPUT, "the image has no data");
    return FV_OK;
}

/* ---------------------------------------------------------------- packed pixels */

/* Bits of n elements lie together by their place in the element: those of bit 0, then those of bit 1. */
static void unshuffle(const uint8_t *from, uint8_t *to, size_t n, size_t element) {
    memset(to, 0, n * element);
    for (size_t bit = 0; bit < 8 * element; bit++) {
        const uint8_t *plane = from + bit * (n / 8);
        uint8_t       *byte = to + bit / 8;
        for (size_t i = 0; i < n; i++, byte += element) *byte |= (uint8_t)((plane[i / 8] >> (i % 8) & 1) << (bit % 8));
    }
}

/* Blocks with their lengths before them, as the HDF5 filters lz4 and bitshuffle write them. */
static bool unpack_blocks(const fv_cbor_frame *f, uint8_t *to, size_t bytes, bool shuffled, uint8_t *block) {
    const uint8_t *at = f->data, *end = at + f->size;
    size_t         element = fv_dtype_size(f->pixels.dtype), longest, done = 0, rest = shuffled ? bytes % (8 * element) : 0;
    if (f->size < 12 || big_endian(at, 8) != bytes) return false;
    longest = (size_t)big_endian(at + 8, 4);
    if (!longest || (shuffled && longest % (8 * element))) return false;
    for (at += 12; done < bytes - rest;) {
        size_t size = FV_MIN(longest, bytes - rest - done), packed = end - at < 4 ? SIZE_MAX : (size_t)big_endian(at, 4);
        if (packed > INT32_MAX || packed > (size_t)(end - at - 4)) return false;
        uint8_t *here = shuffled ? block : to + done;
        bool     plain = !shuffled && packed == size;
        if (plain) memcpy(here, at + 4, size);
        if (!plain && LZ4_decompress_safe((const char *)at + 4, (char *)here, (int)packed, (int)size) != (int)size) return false;
        if (shuffled) unshuffle(block, to + done, size / element, element);
        at += 4 + packed;
        done += size;
    }
    if ((size_t)(end - at) < rest) return false;
    memcpy(to + done, at, rest);
    return true;
}

fv_status fv__cbor_frame_unpack(const fv_cbor_frame *f, void *to, size_t bytes, fv_error *error) {
    bool shuffled = !strcmp(f->codec, "bslz4"), good;
    if (!*f->codec) {
        good = f->size == bytes;
        if (good) memcpy(to, f->data, bytes);
    } else if (shuffled || !strcmp(f->codec, "lz4")) {
        uint8_t *block = fv__alloc(bytes); /* no block is longer than all of them */
        good = unpack_blocks(f, to, bytes, shuffled, block);
        free(block);
    } else
        return fv_fail(error, FV_ERROR_INPUT, "the image is packed by %s; known are lz4 and bslz4", f->codec);
    return good ? FV_OK : fv_fail(error, FV_ERROR_INPUT, "the image does not unpack to the %zu bytes that its shape says", bytes);
}
