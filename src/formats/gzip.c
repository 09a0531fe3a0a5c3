/* gzip by isa-l: a stream read by offset, and one member made of flushed pieces. */
#include "formats/gzip.h"
#include "base/deflate.h"
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <zlib.h>

enum {
    INPUT = 1 << 18,  /* compressed bytes read at once */
    WINDOW = 1 << 17, /* small requests are served from this much contents */
    SMALL = 1 << 15,
    STEP = 1 << 19,      /* inflated at once, so that the checksum finds it in the cache */
    AFTER_END = 1 << 20, /* contents after the last voxel that are inflated to reach the checksum */
};

/* Invariants: 1. position is the offset of the next byte that isa-l gives; 2. the window holds contents
 * [window_start, window_start + window_size), whatever the position. */
struct fv_gzip {
    int                  fd;
    const char          *path;
    int64_t              start; /* of the stream in the file */
    fv_gzip_form         form;
    int64_t              file_size, file_position; /* file_position: what was given to isa-l or waits in input */
    int64_t              position;
    int64_t              window_start;
    size_t               window_size;
    bool                 ended;
    struct inflate_state state;
    uint8_t              input[INPUT], window[WINDOW];
};

static void start_over(fv_gzip *gzip) {
    isal_inflate_init(&gzip->state);
    gzip->state.crc_flag = gzip->form == FV_GZIP_ZLIB ? ISAL_ZLIB : gzip->form == FV_GZIP_RAW ? ISAL_DEFLATE : ISAL_GZIP;
    gzip->state.next_in = gzip->input;
    gzip->state.avail_in = 0;
    gzip->file_position = gzip->start;
    gzip->position = 0;
    gzip->ended = false;
}

fv_gzip *fv__gzip_new(int fd, int64_t size, const char *path) { return fv__gzip_new_at(fd, 0, size, FV_GZIP_GZIP, path); }

fv_gzip *fv__gzip_new_at(int fd, int64_t start, int64_t end, fv_gzip_form form, const char *path) {
    fv_gzip *gzip = fv__alloc(sizeof *gzip);
    gzip->fd = fd;
    gzip->start = start;
    gzip->form = form;
    gzip->path = path;
    gzip->file_size = end;
    gzip->window_start = 0;
    gzip->window_size = 0;
    start_over(gzip);
    return gzip;
}

const char *fv__gzip_name(const fv_gzip *gzip) {
    return gzip->form == FV_GZIP_GZIP ? "gzip" : gzip->form == FV_GZIP_ZLIB ? "zlib" : "deflate";
}

void   fv__gzip_free(fv_gzip *gzip) { free(gzip); }
size_t fv__gzip_memory(void) { return sizeof(fv_gzip); }

/* ---------------------------------------------------------------- inflating in order */

/* More compressed bytes behind those not used yet. */
static fv_status refill(fv_gzip *gzip, fv_error *error) {
    size_t kept = gzip->state.avail_in, room = INPUT - kept;
    room = (size_t)FV_MIN((int64_t)room, gzip->file_size - gzip->file_position);
    memmove(gzip->input, gzip->state.next_in, kept);
    gzip->state.next_in = gzip->input;
    FV_TRY(fv__file_read_at(gzip->fd, gzip->input + kept, room, gzip->file_position, gzip->path, error));
    gzip->file_position += (int64_t)room;
    gzip->state.avail_in += (uint32_t)room;
    return FV_OK;
}

/* After a member: another one, or the end. What follows and is no member is padding that gzip ignores too. */
static fv_status next_member(fv_gzip *gzip, fv_error *error) {
    if (gzip->state.avail_in < 2) FV_TRY(refill(gzip, error));
    const uint8_t *in = gzip->state.next_in;
    uint32_t       waiting = gzip->state.avail_in;
    if (gzip->form != FV_GZIP_GZIP || waiting < 2 || in[0] != 0x1f || in[1] != 0x8b) {
        gzip->ended = true;
        return FV_OK;
    }
    isal_inflate_init(&gzip->state);
    gzip->state.crc_flag = ISAL_GZIP;
    gzip->state.next_in = (uint8_t *)in;
    gzip->state.avail_in = waiting;
    return FV_OK;
}

static const char *reason(int code) {
    switch (code) {
    case ISAL_INVALID_BLOCK: return "an invalid block";
    case ISAL_INVALID_SYMBOL: return "an invalid symbol";
    case ISAL_INVALID_LOOKBACK: return "an invalid distance";
    case ISAL_INVALID_WRAPPER: return "an invalid gzip header";
    case ISAL_UNSUPPORTED_METHOD: return "an unknown compression method";
    case ISAL_INCORRECT_CHECKSUM: return "a wrong checksum";
    default: return "an unknown fault";
    }
}

/* The next bytes of the contents, at most size; *got is less only at the end. */
static fv_status inflate_next(fv_gzip *gzip, uint8_t *to, size_t size, size_t *got, fv_error *error) {
    *got = 0;
    while (*got < size && !gzip->ended) {
        struct inflate_state *state = &gzip->state;
        if (state->block_state == ISAL_BLOCK_FINISH) {
            FV_TRY(next_member(gzip, error));
            continue;
        }
        if (!state->avail_in) FV_TRY(refill(gzip, error));
        size_t step = FV_MIN(size - *got, (size_t)STEP);
        bool   last = !state->avail_in;
        state->next_out = to + *got;
        state->avail_out = (uint32_t)step;
        int    code = isal_inflate(state);
        size_t made = step - state->avail_out;
        if (code < 0)
            return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: %s in the gzip stream near byte %lld", gzip->path, reason(code),
                           (long long)(gzip->file_position - state->avail_in));
        *got += made;
        gzip->position += (int64_t)made;
        if (last && !made && state->block_state != ISAL_BLOCK_FINISH)
            return fv_fail(error, FV_ERROR_INPUT, "%s ends early: its gzip stream is cut at byte %lld", gzip->path,
                           (long long)gzip->file_size);
    }
    return FV_OK;
}

static fv_status too_short(const fv_gzip *gzip, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s ends early: its contents have only %lld bytes", gzip->path,
                   (long long)gzip->position);
}

static fv_status fill_window(fv_gzip *gzip, fv_error *error) {
    gzip->window_start = gzip->position;
    gzip->window_size = 0;
    size_t got;
    FV_TRY(inflate_next(gzip, gzip->window, WINDOW, &got, error));
    gzip->window_size = got;
    return got ? FV_OK : too_short(gzip, error);
}

fv_status fv__gzip_read(fv_gzip *gzip, int64_t offset, void *to, size_t size, fv_error *error) {
    uint8_t *out = to;
    while (size > 0) {
        int64_t inside = offset - gzip->window_start;
        if (inside >= 0 && inside < (int64_t)gzip->window_size) {
            size_t n = FV_MIN(size, gzip->window_size - (size_t)inside);
            memcpy(out, gzip->window + inside, n);
            out += n;
            offset += (int64_t)n;
            size -= n;
        } else if (offset == gzip->position && size >= SMALL) {
            size_t got;
            FV_TRY(inflate_next(gzip, out, size, &got, error));
            return got == size ? FV_OK : too_short(gzip, error);
        } else {
            if (offset < gzip->position) start_over(gzip);
            FV_TRY(fill_window(gzip, error));
        }
    }
    return FV_OK;
}

fv_status fv__gzip_check_end(fv_gzip *gzip, fv_error *error) {
    gzip->window_size = 0;
    for (int passed = 0; passed < AFTER_END && !gzip->ended; passed += WINDOW) {
        size_t got;
        FV_TRY(inflate_next(gzip, gzip->window, WINDOW, &got, error));
    }
    return FV_OK;
}

bool fv__gzip_inflate(const void *from, size_t from_size, bool zlib, void *to, size_t to_size) {
    if (from_size > UINT32_MAX || to_size > UINT32_MAX) return false;
    struct inflate_state *state = fv__alloc(sizeof *state);
    isal_inflate_init(state);
    state->crc_flag = zlib ? ISAL_ZLIB : ISAL_GZIP;
    state->next_in = (uint8_t *)from;
    state->avail_in = (uint32_t)from_size;
    state->next_out = to;
    state->avail_out = (uint32_t)to_size;
    bool    good = isal_inflate(state) == ISAL_DECOMP_OK && !state->avail_out;
    uint8_t beyond; /* the trailer is only looked at while there is room */
    state->next_out = &beyond;
    state->avail_out = 1;
    if (good && state->block_state != ISAL_BLOCK_FINISH) good = isal_inflate(state) == ISAL_DECOMP_OK;
    good = good && state->block_state == ISAL_BLOCK_FINISH && state->avail_out == 1;
    free(state);
    return good;
}

/* ---------------------------------------------------------------- pieces of one member */

typedef struct {
    uint32_t crc, unused;
    uint64_t size;
} piece_head;

int64_t fv__gzip_encode_memory(int64_t size) { return (int64_t)sizeof(piece_head) + fv__deflate_memory(size); }

void fv__gzip_encode(int level, const void *data, size_t size, fv_bytes *out) {
    piece_head head = { .crc = crc32_gzip_refl(0, data, size), .size = size };
    fv__bytes_append(out, &head, sizeof head);
    if (size) fv__deflate(data, size, level, FV_DEFLATE_PIECE, out);
}

static void put_u32(uint8_t *to, uint32_t value) {
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> 8 * i);
}

fv_status fv__gzip_write_stream(int fd, const char *path, fv_pieces *pieces, int64_t *offset, uint32_t *crc, uint64_t *total,
                                fv_error *error) {
    static const uint8_t end[2] = { 3, 0 }; /* an empty last block */
    *crc = 0;
    *total = 0;
    for (int64_t i = 0; i < pieces->count; i++) {
        const void *data;
        size_t      size;
        piece_head  head;
        FV_TRY(pieces->get(pieces, i, &data, &size, error));
        if (size < sizeof head)
            return fv_fail(error, FV_ERROR_INTERNAL, "%s: piece %lld is not a gzip piece", path, (long long)i);
        memcpy(&head, data, sizeof head);
        FV_TRY(fv__file_write_at(fd, (const char *)data + sizeof head, size - sizeof head, *offset, path, error));
        *offset += (int64_t)(size - sizeof head);
        *crc = (uint32_t)crc32_combine(*crc, head.crc, (z_off_t)head.size);
        *total += head.size;
    }
    FV_TRY(fv__file_write_at(fd, end, sizeof end, *offset, path, error));
    *offset += (int64_t)sizeof end;
    return FV_OK;
}

static fv_status write_pieces(int fd, const char *path, const fv_bytes *prefix, fv_pieces *pieces, fv_error *error) {
    /* deflate, no flags, no time, no extra flags, unknown system */
    static const uint8_t start[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255 };
    uint8_t              end[8]; /* checksum, length */
    int64_t              offset = prefix ? (int64_t)prefix->size : 0;
    uint32_t             crc;
    uint64_t             total;
    if (offset) FV_TRY(fv__file_write_at(fd, prefix->data, prefix->size, 0, path, error));
    FV_TRY(fv__file_write_at(fd, start, sizeof start, offset, path, error));
    offset += (int64_t)sizeof start;
    FV_TRY(fv__gzip_write_stream(fd, path, pieces, &offset, &crc, &total, error));
    put_u32(end, crc);
    put_u32(end + 4, (uint32_t)total);
    FV_TRY(fv__file_write_at(fd, end, sizeof end, offset, path, error));
    fv__file_start_sync(fd);
    return FV_OK;
}

fv_status fv__gzip_assemble(const char *path, const fv_bytes *prefix, fv_pieces *pieces, fv_error *error) {
    int fd;
    FV_TRY(fv__file_open_write(path, &fd, error));
    fv_status status = write_pieces(fd, path, prefix, pieces, error);
    fv_status closed = fv__file_close(fd, path, status == FV_OK ? error : NULL);
    return status == FV_OK ? closed : status;
}
