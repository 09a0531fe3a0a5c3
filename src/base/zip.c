/* Zip archives; see zip.h. */
#include "base/zip.h"
#include "base/file.h"
#include "base/take.h"
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

enum { END = 22, END_MOST = END + 65535, ENTRY = 46, LOCATOR = 20, MOST_DIRECTORY = 64 << 20, INPUT = 1 << 16 };
/* What packs better than this, beyond the first, is no data: a file that claims it was made to fill a memory or a disk. */
enum { MOST_RATIO = 250, FREE = 256 << 20 };

static uint64_t number(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

static fv_status damaged(const fv_zip *zip, const char *why, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s: not %s, or damaged: %s", zip->path, zip->kind, why);
}

/* ---------------------------------------------------------------- the directory */

/* Where the directory lies: from the record at the end of the file, or the larger one that it points to. */
static fv_status find_directory(const fv_zip *zip, int64_t *start, int64_t *size, fv_error *error) {
    int64_t  most = FV_MIN(zip->size, END_MOST);
    uint8_t *tail, large[FV_ZIP_END64];
    FV_TRY(FV_TAKE(tail, (size_t)most + 1, error));
    fv_status status = fv__file_read_at(zip->fd, tail, (size_t)most, zip->size - most, zip->path, error);
    int64_t   at = most - END;
    while (status == FV_OK && at >= 0 && memcmp(tail + at, "PK\5\6", 4)) at--;
    if (status == FV_OK && at < 0) status = damaged(zip, "the end of a zip archive is missing", error);
    if (status == FV_OK) {
        *size = (int64_t)number(tail + at + 12, 4);
        *start = (int64_t)number(tail + at + 16, 4);
        bool     wide = *start == UINT32_MAX && at >= LOCATOR && !memcmp(tail + at - LOCATOR, "PK\6\7", 4);
        uint64_t where = wide ? number(tail + at - LOCATOR + 8, 8) : 0;
        if (wide && where > (uint64_t)(zip->size - FV_ZIP_END64))
            status = damaged(zip, "its directory lies outside", error);
        else if (wide)
            status = fv__file_read_at(zip->fd, large, FV_ZIP_END64, (int64_t)where, zip->path, error);
        if (wide && status == FV_OK) {
            *size = (int64_t)number(large + 40, 8);
            *start = (int64_t)number(large + 48, 8);
        }
    }
    free(tail);
    FV_TRY(status);
    if (*size < 0 || *start < 0 || *size > MOST_DIRECTORY || *start > zip->size || *size > zip->size - *start)
        return damaged(zip, "its directory lies outside", error);
    return FV_OK;
}

/* Sizes beyond 4 GB stand in an extra field, in this order, those that do not fit only. */
static void take_wide(const uint8_t *extra, int64_t length, fv_zip_member *m) {
    int64_t *wide[] = { &m->size, &m->packed, &m->local };
    for (int64_t at = 0; at + 4 <= length;) {
        int64_t n = (int64_t)number(extra + at + 2, 2), field = at + 4;
        if (number(extra + at, 2) == 1)
            for (int i = 0; i < 3; i++)
                if (*wide[i] == UINT32_MAX && field + 8 <= FV_MIN(at + 4 + n, length)) {
                    *wide[i] = (int64_t)number(extra + field, 8);
                    field += 8;
                }
        at += 4 + n;
    }
}

fv_status fv__zip_each(const fv_zip *zip, fv_zip_visit visit, void *context, fv_error *error) {
    int64_t start, size;
    FV_TRY(find_directory(zip, &start, &size, error));
    uint8_t *directory;
    FV_TRY(FV_TAKE(directory, (size_t)size + 1, error));
    fv_status status = fv__file_read_at(zip->fd, directory, (size_t)size, start, zip->path, error);
    for (int64_t at = 0; status == FV_OK && at + ENTRY <= size;) {
        const uint8_t *e = directory + at;
        int64_t        name = (int64_t)number(e + 28, 2), extra = (int64_t)number(e + 30, 2);
        int64_t        next = at + ENTRY + name + extra + (int64_t)number(e + 32, 2);
        if (memcmp(e, "PK\1\2", 4) || next > size) {
            status = damaged(zip, "an entry of its directory", error);
            break;
        }
        fv_zip_member m = { .method = (int)number(e + 10, 2),
                            .packed = (int64_t)number(e + 20, 4),
                            .size = (int64_t)number(e + 24, 4),
                            .local = (int64_t)number(e + 42, 4) };
        take_wide(e + ENTRY + name, extra, &m);
        snprintf(m.name, sizeof m.name, "%.*s", (int)FV_MIN(name, 255), (const char *)e + ENTRY);
        if (!visit(context, &m)) break;
        at = next;
    }
    free(directory);
    return status;
}

fv_status fv__zip_start(const fv_zip *zip, const fv_zip_member *m, int64_t *start, fv_error *error) {
    uint8_t local[FV_ZIP_LOCAL];
    if (m->local < 0 || m->packed < 0 || m->size < 0 || m->local > zip->size - FV_ZIP_LOCAL)
        return damaged(zip, "a part of it lies outside", error);
    FV_TRY(fv__file_read_at(zip->fd, local, FV_ZIP_LOCAL, m->local, zip->path, error));
    *start = m->local + FV_ZIP_LOCAL + (int64_t)number(local + 26, 2) + (int64_t)number(local + 28, 2);
    if (memcmp(local, "PK\3\4", 4) || m->packed > zip->size - *start) return damaged(zip, "a part of it lies outside", error);
    if (m->method != FV_ZIP_STORED && m->method != FV_ZIP_DEFLATED)
        return fv_fail(error, FV_ERROR_INPUT, "%s: zip method %d cannot be read; stored and deflated can", zip->path, m->method);
    return FV_OK;
}

/* ---------------------------------------------------------------- a member */

struct fv_zip_stream {
    fv_zip   zip;
    int64_t  at, end; /* of what is still in the file */
    int64_t  given, most;
    bool     deflated, ended;
    z_stream z;
    uint8_t  input[INPUT];
};

fv_status fv__zip_stream_new(const fv_zip *zip, const fv_zip_member *m, fv_zip_stream **out, fv_error *error) {
    int64_t start = 0;
    FV_TRY(fv__zip_start(zip, m, &start, error));
    fv_zip_stream *s;
    FV_TRY(FV_TAKE_ZEROED(s, sizeof *s, error));
    s->zip = *zip;
    s->at = start;
    s->end = start + m->packed;
    s->deflated = m->method == FV_ZIP_DEFLATED;
    s->most = FV_MAX((int64_t)FREE, MOST_RATIO * m->packed);
    if (s->deflated && inflateInit2(&s->z, -MAX_WBITS) != Z_OK) {
        free(s);
        return fv_fail(error, FV_ERROR_MEMORY, "%s: no memory to unpack it", zip->path);
    }
    *out = s;
    return FV_OK;
}

void fv__zip_stream_free(fv_zip_stream *s) {
    if (!s) return;
    if (s->deflated) inflateEnd(&s->z);
    free(s);
}

static fv_status refill(fv_zip_stream *s, fv_error *error) {
    size_t n = (size_t)FV_MIN(s->end - s->at, INPUT);
    FV_TRY(fv__file_read_at(s->zip.fd, s->input, n, s->at, s->zip.path, error));
    s->at += (int64_t)n;
    s->z.next_in = s->input;
    s->z.avail_in = (unsigned)n;
    return FV_OK;
}

static fv_status inflate_some(fv_zip_stream *s, void *to, size_t size, size_t *got, fv_error *error) {
    s->z.next_out = to;
    s->z.avail_out = (unsigned)size;
    while (s->z.avail_out && !s->ended) {
        if (!s->z.avail_in && s->at < s->end) FV_TRY(refill(s, error));
        int result = inflate(&s->z, Z_NO_FLUSH);
        s->ended = result == Z_STREAM_END;
        if (result != Z_OK && result != Z_STREAM_END) return damaged(&s->zip, "its packed data end early or are wrong", error);
    }
    *got = size - s->z.avail_out;
    return FV_OK;
}

fv_status fv__zip_stream_read(fv_zip_stream *s, void *to, size_t size, size_t *got, fv_error *error) {
    size = FV_MIN(size, (size_t)1 << 30);
    if (s->deflated)
        FV_TRY(inflate_some(s, to, size, got, error));
    else {
        *got = (size_t)FV_MIN((int64_t)size, s->end - s->at);
        FV_TRY(fv__file_read_at(s->zip.fd, to, *got, s->at, s->zip.path, error));
        s->at += (int64_t)*got;
    }
    s->given += (int64_t)*got;
    if (s->given > s->most)
        return fv_fail(error, FV_ERROR_INPUT, "%s would unpack to more than %d times its size, which no such file does",
                       s->zip.path, MOST_RATIO);
    return FV_OK;
}
