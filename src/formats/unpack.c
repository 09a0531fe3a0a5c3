/* Streams of gzip, bzip2, zstd and zip, from one file into another. The sizes that they claim are not believed: unpacking stops
 * at a bound that follows from the packed size. */
#include "formats/unpack.h"
#include "base/file.h"
#include "base/take.h"
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#ifdef FV_BZIP2
#include <bzlib.h>
#endif

enum { PIECE = 1 << 18, MOST_RATIO = 250, LOCAL = 30, ENTRY = 46, END = 22, END_MOST = 65557 };

const char *fv__packing_name(fv_packing packing) {
    static const char *const names[] = { "nothing", "gzip", "bzip2", "zstd", "zip" };
    return names[packing];
}

int64_t fv__unpack_most(int64_t n) {
    int64_t most;
    return fv__mul(n, MOST_RATIO, &most) ? FV_MAX(most, (int64_t)256 << 20) : INT64_MAX;
}

/* ---------------------------------------------------------------- streams */

typedef struct {
    fv_packing    packing;
    z_stream      deflated;
    ZSTD_DStream *zstd;
#ifdef FV_BZIP2
    bz_stream bzip2;
#endif
    const uint8_t *in; /* what has come and was not unpacked yet */
    size_t         in_size;
    uint8_t       *out;
    size_t         out_size; /* unpacked by the last step */
    bool           ended;    /* a member or frame: another may follow */
} stream;

static const char *begin(stream *s) {
    if (s->packing == FV_PACKED_GZIP) return inflateInit2(&s->deflated, 15 + 16) == Z_OK ? NULL : "zlib cannot begin";
    if (s->packing == FV_PACKED_ZIP) return inflateInit2(&s->deflated, -15) == Z_OK ? NULL : "zlib cannot begin";
    if (s->packing == FV_PACKED_ZSTD) {
        s->zstd = ZSTD_createDStream();
        if (!s->zstd) return "zstd cannot begin";
        ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, 27);
        return NULL;
    }
#ifdef FV_BZIP2
    return BZ2_bzDecompressInit(&s->bzip2, 0, 0) == BZ_OK ? NULL : "bzip2 cannot begin";
#else
    return "this Fovea was built without bzip2; on Debian: apt-get install libbz2-dev, then build again";
#endif
}

static void end(stream *s) {
    if (s->packing == FV_PACKED_GZIP || s->packing == FV_PACKED_ZIP) inflateEnd(&s->deflated);
    if (s->zstd) ZSTD_freeDStream(s->zstd);
#ifdef FV_BZIP2
    if (s->packing == FV_PACKED_BZIP2) BZ2_bzDecompressEnd(&s->bzip2);
#endif
}

/* So much of the input is left. There may have been none, and no place of it. */
static void take(stream *s, size_t left) {
    if (s->in_size > left) s->in += s->in_size - left;
    s->in_size = left;
}

static const char *step_deflate(stream *s) {
    s->deflated.next_in = (Bytef *)(uintptr_t)s->in;
    s->deflated.avail_in = (uInt)s->in_size;
    s->deflated.next_out = s->out;
    s->deflated.avail_out = PIECE;
    int result = inflate(&s->deflated, Z_NO_FLUSH);
    take(s, s->deflated.avail_in);
    s->out_size = PIECE - s->deflated.avail_out;
    s->ended = result == Z_STREAM_END;
    if (s->ended && s->packing == FV_PACKED_GZIP) inflateReset(&s->deflated);
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR ? NULL : "the deflated data is wrong";
}

static const char *step_zstd(stream *s) {
    ZSTD_inBuffer  in = { s->in, s->in_size, 0 };
    ZSTD_outBuffer out = { s->out, PIECE, 0 };
    size_t         result = ZSTD_decompressStream(s->zstd, &out, &in);
    take(s, s->in_size - in.pos);
    s->out_size = out.pos;
    s->ended = result == 0;
    return ZSTD_isError(result) ? ZSTD_getErrorName(result) : NULL;
}

static const char *step_bzip2(stream *s) {
#ifdef FV_BZIP2
    s->bzip2.next_in = (char *)(uintptr_t)s->in;
    s->bzip2.avail_in = (unsigned)s->in_size;
    s->bzip2.next_out = (char *)s->out;
    s->bzip2.avail_out = PIECE;
    int result = BZ2_bzDecompress(&s->bzip2);
    take(s, s->bzip2.avail_in);
    s->out_size = PIECE - s->bzip2.avail_out;
    s->ended = result == BZ_STREAM_END;
    if (s->ended) { /* another may follow, as gzip has it */
        BZ2_bzDecompressEnd(&s->bzip2);
        s->bzip2 = (bz_stream){ 0 };
        if (BZ2_bzDecompressInit(&s->bzip2, 0, 0) != BZ_OK) return "bzip2 cannot go on";
    }
    return result == BZ_OK || result == BZ_STREAM_END ? NULL : "the bzip2 data is wrong";
#else
    return (void)s, "bzip2 is missing";
#endif
}

static const char *step(stream *s) {
    if (s->packing == FV_PACKED_ZSTD) return step_zstd(s);
    return s->packing == FV_PACKED_BZIP2 ? step_bzip2(s) : step_deflate(s);
}

static fv_status damaged(const char *path, const char *why, fv_error *error) {
    return fv_fail(error, FV_ERROR_INPUT, "%s is damaged, or not what it seems: %s", path, why);
}

typedef struct {
    int         from, to;
    int64_t     start, stop; /* of what is packed, in the file */
    int64_t     most, done;
    uint32_t    crc;
    const char *path;
} job;

static fv_status put(job *j, const void *data, size_t size, fv_error *error) {
    if ((int64_t)size > j->most - j->done)
        return fv_fail(error, FV_ERROR_INPUT,
                       "%s unpacks to more than %lld bytes, too many for its size; if that is right, unpack it first", j->path,
                       (long long)j->most);
    FV_TRY(fv__file_write_at(j->to, data, size, j->done, j->path, error));
    j->crc = (uint32_t)crc32(j->crc, data, (uInt)size);
    j->done += (int64_t)size;
    return FV_OK;
}

/* All of a stream, and of those that follow it. */
static fv_status run_stream(job *j, stream *s, uint8_t *input, fv_error *error) {
    const char *fault = begin(s);
    while (!fault) {
        if (!s->in_size && j->start < j->stop) {
            s->in_size = (size_t)FV_MIN(j->stop - j->start, (int64_t)PIECE);
            s->in = input;
            FV_TRY(fv__file_read_at(j->from, input, s->in_size, j->start, j->path, error));
            j->start += (int64_t)s->in_size;
        }
        size_t before = s->in_size;
        if (!before && s->ended) return FV_OK;
        fault = step(s);
        if (fault) break;
        FV_TRY(put(j, s->out, s->out_size, error));
        if (s->ended && s->packing == FV_PACKED_ZIP) return FV_OK;
        if (!s->ended && !s->out_size && before == s->in_size && j->start == j->stop) fault = "it ends early";
    }
    return damaged(j->path, fault, error);
}

static fv_status unpack_stream(job *j, fv_packing packing, fv_error *error) {
    uint8_t  *memory = fv__alloc(2 * PIECE);
    stream    s = { .packing = packing, .out = memory + PIECE };
    fv_status status = run_stream(j, &s, memory, error);
    end(&s);
    free(memory);
    return status;
}

static fv_status copy(job *j, fv_error *error) {
    uint8_t  *memory = fv__alloc(PIECE);
    fv_status status = FV_OK;
    while (status == FV_OK && j->start < j->stop) {
        size_t n = (size_t)FV_MIN(j->stop - j->start, (int64_t)PIECE);
        status = fv__file_read_at(j->from, memory, n, j->start, j->path, error);
        if (status == FV_OK) status = put(j, memory, n, error);
        j->start += (int64_t)n;
    }
    free(memory);
    return status;
}

/* ---------------------------------------------------------------- zip */

static uint32_t number(const uint8_t *at, int bytes) {
    uint32_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

/* The only entry of the directory, of which the archive's end tells the place. */
static fv_status read_entry(const job *j, int64_t size, uint8_t entry[ENTRY], int64_t *place, fv_error *error) {
    int64_t  most = FV_MIN(size, END_MOST), at = most - END;
    uint8_t *tail;
    FV_TRY(FV_TAKE(tail, (size_t)most + 1, error));
    fv_status status = fv__file_read_at(j->from, tail, (size_t)most, size - most, j->path, error);
    while (status == FV_OK && at >= 0 && memcmp(tail + at, "PK\5\6", 4)) at--;
    if (status == FV_OK && at < 0) status = damaged(j->path, "the end of the zip archive is missing", error);
    if (status == FV_OK && number(tail + at + 10, 2) != 1)
        status = fv_fail(error, FV_ERROR_INPUT, "%s holds %u files; archives around a single one are read, unpack others first",
                         j->path, (unsigned)number(tail + at + 10, 2));
    if (status == FV_OK) *place = number(tail + at + 16, 4);
    free(tail);
    FV_TRY(status);
    if (*place > size - ENTRY) return damaged(j->path, "its directory lies outside, or beyond 4 GB", error);
    FV_TRY(fv__file_read_at(j->from, entry, ENTRY, *place, j->path, error));
    return memcmp(entry, "PK\1\2", 4) ? damaged(j->path, "the entry of its directory", error) : FV_OK;
}

static fv_status unpack_zip(job *j, int64_t size, char **name, fv_error *error) {
    uint8_t entry[ENTRY], local[LOCAL];
    int64_t place = 0;
    FV_TRY(read_entry(j, size, entry, &place, error));
    uint32_t method = number(entry + 10, 2), packed = number(entry + 20, 4), offset = number(entry + 42, 4);
    size_t   length = FV_MIN(number(entry + 28, 2), 4096);
    if ((int64_t)length > size - place - ENTRY || offset > size - LOCAL) return damaged(j->path, "its file lies outside", error);
    *name = fv__calloc(length + 1);
    FV_TRY(fv__file_read_at(j->from, *name, length, place + ENTRY, j->path, error));
    FV_TRY(fv__file_read_at(j->from, local, LOCAL, offset, j->path, error));
    j->start = (int64_t)offset + LOCAL + number(local + 26, 2) + number(local + 28, 2);
    j->stop = j->start + packed;
    if (memcmp(local, "PK\3\4", 4) || j->stop > size) return damaged(j->path, "its file lies outside", error);
    if (number(entry + 8, 2) & 1) return fv_fail(error, FV_ERROR_INPUT, "%s is encrypted; unpack it first", j->path);
    if (method != 0 && method != 8)
        return fv_fail(error, FV_ERROR_INPUT, "%s: zip method %u cannot be read; stored and deflated can", j->path, method);
    FV_TRY(method ? unpack_stream(j, FV_PACKED_ZIP, error) : copy(j, error));
    return j->crc == number(entry + 16, 4) ? FV_OK : damaged(j->path, "the checksum of its file is wrong", error);
}

/* ---------------------------------------------------------------- all of them */

static fv_packing recognise(const uint8_t start[4]) {
    if (start[0] == 0x1f && start[1] == 0x8b) return FV_PACKED_GZIP;
    if (!memcmp(start, "BZh", 3)) return FV_PACKED_BZIP2;
    if (!memcmp(start, "\x28\xb5\x2f\xfd", 4)) return FV_PACKED_ZSTD;
    return memcmp(start, "PK\3\4", 4) ? FV_PACKED_NOT : FV_PACKED_ZIP;
}

fv_status fv__unpack(int from, int64_t size, int to, const char *path, fv_packing *packing, char **name, int64_t *unpacked,
                     fv_error *error) {
    uint8_t start[4] = { 0 };
    job     j = { .from = from, .to = to, .stop = size, .most = fv__unpack_most(size), .path = path };
    *name = NULL;
    if (size >= 4) FV_TRY(fv__file_read_at(from, start, sizeof start, 0, path, error));
    *packing = recognise(start);
    if (*packing == FV_PACKED_NOT)
        return fv_fail(error, FV_ERROR_INPUT, "%s is neither gzip nor bzip2, zstd or zip, whatever its name says", path);
    FV_TRY(*packing == FV_PACKED_ZIP ? unpack_zip(&j, size, name, error) : unpack_stream(&j, *packing, error));
    *unpacked = j.done;
    return FV_OK;
}
