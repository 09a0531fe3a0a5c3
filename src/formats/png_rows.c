/* Chunks, inflating and unfiltering, as the PNG specification (W3C, third edition, clauses 5, 9 and 10) has them. */
#include "formats/png_rows.h"
#include "base/file.h"
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

enum { INPUT = 1 << 16, OUTPUT = 1 << 16, FIRST_CHUNK = 8 };

/* Invariants: 1. position is that of the next byte of the file not yet in input; 2. `left` bytes of the IDAT chunk that is being
 * read follow there; 3. output holds rows, unfiltered, of which `given` were given; the last of them is in `row` too. */
struct fv_png_rows {
    int                  fd;
    const char          *path;
    int64_t              file_size, position, rows_left;
    uint32_t             left, crc;
    bool                 inside; /* a chunk, whose crc follows */
    bool                 ended;  /* another chunk follows the last IDAT */
    size_t               stored, pixel;
    size_t               room, held, given; /* rows in output */
    uint8_t             *output, *row;
    struct inflate_state state;
    uint8_t              input[INPUT];
};

static size_t rows_at_once(size_t row_bytes) { return FV_MAX(OUTPUT / (row_bytes + 1), (size_t)1); }

int64_t fv__png_rows_memory(size_t row_bytes) {
    return (int64_t)(sizeof(fv_png_rows) + rows_at_once(row_bytes) * (row_bytes + 1) + row_bytes);
}

fv_png_rows *fv__png_rows_new(int fd, int64_t file_size, const char *path, int64_t rows, size_t row_bytes, size_t pixel_bytes) {
    size_t   room = rows_at_once(row_bytes);
    uint8_t *bytes = fv__try_alloc(room * (row_bytes + 1) + row_bytes);
    if (!bytes) return NULL;
    fv_png_rows *r = fv__alloc(sizeof *r);
    r->fd = fd;
    r->path = path;
    r->file_size = file_size;
    r->position = FIRST_CHUNK;
    r->rows_left = rows;
    r->left = r->crc = 0;
    r->inside = r->ended = false;
    r->stored = row_bytes;
    r->pixel = pixel_bytes;
    r->room = room;
    r->held = r->given = 0;
    r->output = bytes;
    r->row = bytes + room * (row_bytes + 1);
    memset(r->row, 0, row_bytes); /* above the first row there is nothing */
    isal_inflate_init(&r->state);
    r->state.crc_flag = ISAL_ZLIB;
    return r;
}

void fv__png_rows_free(fv_png_rows *rows) {
    if (!rows) return;
    free(rows->output);
    free(rows);
}

static fv_status damaged(const fv_png_rows *r, const char *how, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s: damaged PNG file: %s", r->path, how);
}

/* ---------------------------------------------------------------- chunks */

static fv_status fetch(fv_png_rows *r, void *to, size_t size, fv_error *error) {
    if ((int64_t)size > r->file_size - r->position) return damaged(r, "the file ends early", error);
    FV_TRY(fv__file_read_at(r->fd, to, size, r->position, r->path, error));
    r->position += (int64_t)size;
    return FV_OK;
}

static uint32_t number(const uint8_t *b) { return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]; }

/* To the data of the next IDAT chunk, if there is one. All of them follow each other; what comes before is libpng's to
 * understand. */
static fv_status next_chunk(fv_png_rows *r, fv_error *error) {
    bool    within = r->inside;
    uint8_t bytes[12];
    for (;;) {
        size_t trailer = r->inside ? 4 : 0; /* the last chunk's crc and the head of the next in one go */
        FV_TRY(fetch(r, bytes, trailer + 8, error));
        if (trailer && number(bytes) != r->crc) return damaged(r, "a chunk of pixels has a wrong checksum", error);
        r->inside = false;
        const uint8_t *head = bytes + trailer;
        r->left = number(head);
        if (!memcmp(head + 4, "IDAT", 4)) {
            r->crc = crc32_gzip_refl(0, head + 4, 4);
            r->inside = true;
            if (r->left) return FV_OK;
        } else if (within || !memcmp(head + 4, "IEND", 4)) {
            r->ended = true;
            return FV_OK;
        } else
            r->position += (int64_t)r->left + 4;
    }
}

static fv_status refill(fv_png_rows *r, fv_error *error) {
    if (!r->left && !r->ended) FV_TRY(next_chunk(r, error));
    if (r->ended) return FV_OK;
    uint32_t n = FV_MIN(r->left, (uint32_t)INPUT);
    FV_TRY(fetch(r, r->input, n, error));
    r->crc = crc32_gzip_refl(r->crc, r->input, n);
    r->left -= n;
    r->state.next_in = r->input;
    r->state.avail_in = n;
    return FV_OK;
}

/* Exactly size bytes of the stream; all that is left of it, up to size, if it may end (some writers leave its checksum out). */
static fv_status inflate_bytes(fv_png_rows *r, uint8_t *to, size_t size, bool may_end, fv_error *error) {
    r->state.next_out = to;
    r->state.avail_out = (uint32_t)size;
    while (r->state.avail_out && r->state.block_state != ISAL_BLOCK_FINISH) {
        if (!r->state.avail_in) FV_TRY(refill(r, error));
        uint32_t before = r->state.avail_out;
        int      code = isal_inflate(&r->state); /* it may still hold bytes when the input is used up */
        if (r->ended && r->state.avail_out == before) break;
        if (code == ISAL_INCORRECT_CHECKSUM) return damaged(r, "the checksum of its pixels is wrong", error);
        if (code < 0) return damaged(r, "its pixels cannot be inflated", error);
    }
    return r->state.avail_out && !may_end ? damaged(r, "its pixels end early", error) : FV_OK;
}

/* ---------------------------------------------------------------- filters, taken off in place */

enum { LEFT = 1, ABOVE = 2, AVERAGE = 3, NEAREST = 4, TOGETHER = 4 };

static void add_left(uint8_t *row, size_t n, size_t pixel) {
    for (size_t i = pixel; i < n; i++) row[i] = (uint8_t)(row[i] + row[i - pixel]);
}

static void add_above(uint8_t *restrict row, const uint8_t *restrict above, size_t n) {
    for (size_t i = 0; i < n; i++) row[i] = (uint8_t)(row[i] + above[i]);
}

static void add_average(uint8_t *row, const uint8_t *above, size_t n, size_t pixel) {
    for (size_t i = 0; i < n && i < pixel; i++) row[i] = (uint8_t)(row[i] + above[i] / 2);
    for (size_t i = pixel; i < n; i++) row[i] = (uint8_t)(row[i] + (above[i] + row[i - pixel]) / 2);
}

static inline int size_of(int a) { return a < 0 ? -a : a; }

/* Of left, above and above left the one nearest to left + above - above left, ties in that order. */
static inline int nearest(int left, int above, int corner) {
    int rise = above - corner, run = left - corner;
    int to_left = size_of(rise), to_above = size_of(run), to_corner = size_of(rise + run);
    int other = to_above <= to_corner ? above : corner;
    return to_left <= to_above && to_left <= to_corner ? left : other;
}

static void add_nearest(uint8_t *row, const uint8_t *above, size_t n, size_t pixel) {
    for (size_t i = 0; i < n && i < pixel; i++) row[i] = (uint8_t)(row[i] + above[i]);
    for (size_t i = pixel; i < n; i++) row[i] = (uint8_t)(row[i] + nearest(row[i - pixel], above[i], above[i - pixel]));
}

/* A byte waits for the one at its left, so that a row alone leaves the processor idle. Rows of one byte a pixel go together, each
 * one byte behind the one above it; what it needs of that one was made in the step before. */
#define INLINE static inline __attribute__((always_inline))
typedef struct {
    int left, corner;
} front;

INLINE void step(uint8_t *first, size_t pitch, const uint8_t *above, int64_t n, int rows, int filter, front *f, int64_t x,
                 bool inner) {
#pragma GCC unroll 4
    for (int k = rows - 1; k >= 0; k--) {
        int64_t at = x - k;
        if (!inner && (at < 0 || at >= n)) continue;
        uint8_t *byte = first + (size_t)k * pitch + at;
        int      up = k ? f[k - 1].left : above[at];
        int      guess = filter == AVERAGE ? (up + f[k].left) / 2 : nearest(f[k].left, up, f[k].corner);
        f[k] = (front){ (*byte + guess) & 255, up };
        *byte = (uint8_t)f[k].left;
    }
}

INLINE void add_in_steps(uint8_t *first, size_t pitch, const uint8_t *above, int64_t n, int rows, int filter) {
    front   f[TOGETHER] = { 0 };
    int64_t x = 0;
    for (; x < rows - 1; x++) step(first, pitch, above, n, rows, filter, f, x, false);
    for (; x < n; x++) step(first, pitch, above, n, rows, filter, f, x, true);
    for (; x < n + rows - 1; x++) step(first, pitch, above, n, rows, filter, f, x, false);
}

static void add_together(uint8_t *first, size_t pitch, const uint8_t *above, size_t n, int rows, int filter) {
    if (rows == TOGETHER && filter == AVERAGE)
        add_in_steps(first, pitch, above, (int64_t)n, TOGETHER, AVERAGE);
    else if (rows == TOGETHER)
        add_in_steps(first, pitch, above, (int64_t)n, TOGETHER, NEAREST);
    else if (filter == AVERAGE)
        add_in_steps(first, pitch, above, (int64_t)n, 1, AVERAGE);
    else
        add_in_steps(first, pitch, above, (int64_t)n, 1, NEAREST);
}

/* Takes the filter off one row, or off several at once: how many; 0 if the filter is unknown. Each row begins with its filter. */
static int unfilter(uint8_t *row, const uint8_t *above, size_t n, size_t pixel, size_t rows) {
    int filter = row[0], alike = 1;
    while (alike < TOGETHER && (size_t)alike < rows && row[(size_t)alike * (n + 1)] == filter) alike++;
    if (alike < TOGETHER) alike = 1;
    switch (filter) {
    case 0: return 1;
    case LEFT: add_left(row + 1, n, pixel); return 1;
    case ABOVE: add_above(row + 1, above, n); return 1;
    case AVERAGE:
    case NEAREST:
        if (pixel == 1) {
            add_together(row + 1, n + 1, above, n, alike, filter);
            return alike;
        }
        if (filter == AVERAGE)
            add_average(row + 1, above, n, pixel);
        else
            add_nearest(row + 1, above, n, pixel);
        return 1;
    default: return 0;
    }
}

static fv_status unfilter_all(fv_png_rows *r, fv_error *error) {
    const uint8_t *above = r->row;
    for (size_t i = 0; i < r->held;) {
        uint8_t *row = r->output + i * (r->stored + 1);
        int      done = unfilter(row, above, r->stored, r->pixel, r->held - i);
        if (!done) return damaged(r, "a row has an unknown filter", error);
        i += (size_t)done;
        above = r->output + (i - 1) * (r->stored + 1) + 1;
    }
    memcpy(r->row, above, r->stored);
    return FV_OK;
}

/* ---------------------------------------------------------------- rows */

fv_status fv__png_rows_next(fv_png_rows *r, const uint8_t **row, fv_error *error) {
    if (r->given == r->held) {
        r->held = (size_t)FV_MIN((int64_t)r->room, r->rows_left);
        r->given = 0;
        FV_TRY(inflate_bytes(r, r->output, r->held * (r->stored + 1), false, error));
        r->rows_left -= (int64_t)r->held;
        FV_TRY(unfilter_all(r, error));
    }
    *row = r->output + r->given++ * (r->stored + 1) + 1;
    if (r->rows_left || r->given < r->held) return FV_OK;
    uint8_t beyond[64]; /* nothing, but reading on makes isa-l look at the checksum */
    return inflate_bytes(r, beyond, sizeof beyond, true, error);
}
