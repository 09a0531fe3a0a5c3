/* Frames from a pipe: NPY files one after another, or frames with lines of headers before them.
 *
 *     fovea-key: beads
 *     fovea-shape: 512,512
 *     fovea-dtype: uint16
 *     fovea-bytes: 524288
 *                                  (an empty line, then so many bytes)
 */
#include "base/file.h"
#include "base/take.h"
#include "stream/frame.h"
#include "stream/frame_body.h"
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_HEADERS = 32, LONGEST_HEADERS = 1 << 16, PIECE = 1 << 18 };

typedef struct pipe_source {
    fv_frame_source   base;
    fv_source_options options;
    int               fd;
    bool              ended;
    fv_bytes          bytes; /* of the next frame, as far as they came */
    size_t            wanted;
    int64_t           number;
    fv_frame         *ready;
} pipe_source;

/* ---------------------------------------------------------------- what came */

static void drop(pipe_source *s, size_t size) {
    memmove(s->bytes.data, s->bytes.data + size, s->bytes.size - size);
    s->bytes.size -= size;
    s->wanted = 0;
}

/* The first `begin + body` bytes are a frame. They are copied: the buffer goes on to the next. */
static fv_status give(pipe_source *s, const fv_header *headers, int nheaders, const char *key, size_t begin, size_t body,
                      fv_error *error) {
    char     *where = fv__sprintf("frame %lld of standard input", (long long)s->number);
    void     *copy;
    fv_status status = FV_TAKE(copy, body + 1, error);
    if (status == FV_OK) {
        memcpy(copy, s->bytes.data + begin, body);
        fv_message message = { .headers = headers,
                               .nheaders = nheaders,
                               .key = key,
                               .key_size = key ? strlen(key) : 0,
                               .body = copy,
                               .body_size = body,
                               .fallback = "frame",
                               .number = s->number,
                               .most = s->options.most,
                               .offset = s->number,
                               .where = where,
                               .held = copy,
                               .release = free };
        s->ready = fv__message_frames(&message, s->options.names);
        s->number++;
        drop(s, begin + body);
    }
    free(where);
    return status;
}

static fv_status take_npy(pipe_source *s, fv_error *error) {
    fv_image_type type;
    size_t        begin;
    fv_error      why = { 0 };
    fv_status     status = fv__npy_look(s->bytes.data, s->bytes.size, &type, &begin, &s->wanted, &why);
    if (status == FV_ERROR_MISSING) return FV_OK;
    if (status != FV_OK) return fv_fail(error, status, "frame %lld of standard input: %s", (long long)s->number, why.message);
    if (s->wanted - begin > (size_t)s->options.most)
        return fv_fail(error, FV_ERROR_INPUT, "frame %lld of standard input has %zu bytes; at most %lld are taken",
                       (long long)s->number, s->wanted - begin, (long long)s->options.most);
    return s->bytes.size < s->wanted ? FV_OK : give(s, NULL, 0, NULL, 0, s->wanted, error);
}

/* Lines "name: value" of a text that is changed: each value ends where its line does. */
static int split_headers(char *text, fv_header *headers, const char **key, int64_t *bytes) {
    int n = 0;
    for (char *line = text; *line && n < MOST_HEADERS;) {
        char *end = line + strcspn(line, "\n"), *next = *end ? end + 1 : end, *colon = memchr(line, ':', (size_t)(end - line));
        if (end > line && end[-1] == '\r') end[-1] = 0;
        *end = 0;
        if (!colon) return -1;
        *colon = 0;
        char *value = colon + 1 + strspn(colon + 1, " \t");
        if (!strcmp(line, "fovea-key")) *key = value;
        if (!strcmp(line, "fovea-bytes")) *bytes = strtoll(value, NULL, 10);
        headers[n++] = (fv_header){ line, value, strlen(value) };
        line = next;
    }
    return n;
}

/* Lines of headers begin with a name and a colon. What does not is a file of another kind: nobody waits for the end of its
 * headers. */
static bool may_be_headed(const uint8_t *bytes, size_t size) {
    size_t n = 0;
    while (n < size && (isalnum(bytes[n]) || bytes[n] == '-')) n++;
    return n == size || (n && bytes[n] == ':');
}

static fv_status take_headed(pipe_source *s, fv_error *error) {
    const char *text = (const char *)s->bytes.data;
    if (!may_be_headed(s->bytes.data, s->bytes.size))
        return fv_fail(
            error, FV_ERROR_INPUT,
            "frame %lld of standard input is neither an NPY file nor begins with lines as \"fovea-bytes: 524288\"; files "
            "of other formats are taken from a folder (watch:FOLDER)",
            (long long)s->number);
    const char *blank = memmem(text, s->bytes.size, "\n\n", 2);
    s->wanted = s->bytes.size + 1;
    if (!blank && s->bytes.size > LONGEST_HEADERS)
        return fv_fail(error, FV_ERROR_INPUT,
                       "standard input holds neither NPY files nor frames with lines of headers: no "
                       "empty line ends them");
    if (!blank) return FV_OK;
    fv_header   headers[MOST_HEADERS];
    size_t      begin = (size_t)(blank - text) + 2;
    char       *lines = fv__sprintf("%.*s", (int)(begin - 1), text);
    const char *key = NULL;
    int64_t     bytes = -1;
    int         n = split_headers(lines, headers, &key, &bytes);
    fv_status   status = FV_OK;
    if (n < 0 || bytes < 0 || bytes > s->options.most)
        status = fv_fail(error, FV_ERROR_INPUT,
                         "frame %lld of standard input: expected lines as \"fovea-bytes: 524288\", and at "
                         "most %lld bytes",
                         (long long)s->number, (long long)s->options.most);
    s->wanted = begin + (size_t)FV_MAX(bytes, 0);
    if (status == FV_OK && s->bytes.size >= s->wanted) status = give(s, headers, n, key, begin, (size_t)bytes, error);
    free(lines);
    return status;
}

static fv_status take_next(pipe_source *s, fv_error *error) {
    if (!s->bytes.size || s->bytes.size < s->wanted) return FV_OK;
    return s->bytes.data[0] == 0x93 ? take_npy(s, error) : take_headed(s, error);
}

/* ---------------------------------------------------------------- the source */

static fv_status read_more(pipe_source *s, double seconds, fv_error *error) {
    struct pollfd ready = { .fd = s->fd, .events = POLLIN };
    if (poll(&ready, 1, (int)(seconds * 1000)) <= 0) return FV_OK;
    FV_TRY(fv__bytes_need(&s->bytes, FV_MAX(PIECE, s->wanted), error));
    ssize_t got = read(s->fd, s->bytes.data + s->bytes.size, s->bytes.capacity - s->bytes.size);
    if (got < 0 && errno != EINTR && errno != EAGAIN) return fv_fail(error, FV_ERROR_IO, "standard input cannot be read");
    if (got > 0) s->bytes.size += (size_t)got;
    s->ended = got == 0;
    return FV_OK;
}

static fv_status next(fv_frame_source *source, double seconds, fv_frame **frame, bool *over, fv_error *error) {
    pipe_source *s = (pipe_source *)source;
    double       until = fv__now() + seconds;
    for (double left = seconds;; left = until - fv__now()) {
        if (!s->ready) FV_TRY(take_next(s, error));
        *frame = s->ready;
        *over = !s->ready && s->ended;
        if (*frame) s->ready = (*frame)->next;
        if (*over && s->bytes.size)
            return fv_fail(error, FV_ERROR_INPUT, "standard input ends in the middle of frame %lld", (long long)s->number);
        if (*frame || s->ended || left < 0) return FV_OK;
        FV_TRY(read_more(s, left, error));
    }
}

static void close_source(fv_frame_source *source) {
    pipe_source *s = (pipe_source *)source;
    for (fv_frame *frame; (frame = s->ready);) {
        s->ready = frame->next;
        fv__frame_free(frame);
    }
    fv__bytes_release(&s->bytes);
    free(source);
}

fv_status fv__pipe_source(const fv_source_options *options, int fd, fv_frame_source **out, fv_error *error) {
    pipe_source *s = fv__calloc(sizeof *s);
    (void)error;
    s->base = (fv_frame_source){ .next = next, .close = close_source };
    s->options = *options;
    s->fd = fd;
    *out = &s->base;
    return FV_OK;
}
