/* Deflate by isa-l where it is fast and by zlib where somebody asks for small files. */
#include "base/deflate.h"
#include "base/take.h"
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <zlib.h>

/* Stored blocks and their headers at worst, the first bytes by themselves, headers, checksums and flushes besides. */
static size_t bound(size_t size) { return size + size / 4096 + 256; }

static const uint32_t level_memory[] = { 0, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT, ISAL_DEF_LVL3_DEFAULT };

int64_t fv__deflate_memory(int64_t size) {
    enum { STATE = sizeof(struct isal_zstream) + ISAL_DEF_LVL3_DEFAULT, ZLIB_STATE = 300000 };
    return (int64_t)bound((size_t)size) + FV_MAX((int64_t)STATE, (int64_t)ZLIB_STATE);
}

static void isal_more(struct isal_zstream *stream, size_t size, bool last) {
    stream->avail_in = (uint32_t)size;
    stream->end_of_stream = last;
    stream->flush = last ? NO_FLUSH : SYNC_FLUSH;
    /* The bound makes every other outcome our own mistake; no room left would mean an unfinished flush. */
    if (isal_deflate(stream) != COMP_OK || stream->avail_in || !stream->avail_out) abort();
}

/* Two faults of isa-l 2.30 would make the bytes differ from run to run, and are kept out of the way here:
 * it reads parts of its buffers before it writes them, so they are cleared; and the fast loop of levels 1 and 2 hashes the
 * address of the stream as if it were data when it meets the first byte without history, so the first 16 bytes, too few for
 * that loop, go in by a call of their own. */
static size_t with_isal(const void *data, size_t size, int level, fv_deflate_form form, uint8_t *out, size_t room) {
    struct isal_zstream *stream = fv__calloc(sizeof *stream);
    uint8_t             *memory = fv__calloc(level_memory[level]);
    size_t               first = FV_MIN(size, (size_t)16);
    bool                 whole = form != FV_DEFLATE_PIECE;
    isal_deflate_init(stream);
    stream->level = (uint32_t)level;
    stream->level_buf = memory;
    stream->level_buf_size = level_memory[level];
    stream->next_in = (uint8_t *)data;
    stream->next_out = out;
    stream->avail_out = (uint32_t)room;
    stream->gzip_flag = form == FV_DEFLATE_ZLIB ? IGZIP_ZLIB : form == FV_DEFLATE_GZIP ? IGZIP_GZIP : IGZIP_DEFLATE;
    isal_more(stream, first, whole && first == size);
    if (size > first) isal_more(stream, size - first, whole);
    size_t made = room - stream->avail_out;
    free(memory);
    free(stream);
    return made;
}

static size_t with_zlib(const void *data, size_t size, int level, fv_deflate_form form, uint8_t *out, size_t room) {
    z_stream         stream = { .next_in = (Bytef *)data, .avail_in = (uInt)size, .next_out = out, .avail_out = (uInt)room };
    static const int windows[] = { [FV_DEFLATE_PIECE] = -15, [FV_DEFLATE_ZLIB] = 15, [FV_DEFLATE_GZIP] = 15 + 16 };
    int              code = deflateInit2(&stream, level, Z_DEFLATED, windows[form], 9, Z_DEFAULT_STRATEGY);
    if (code == Z_MEM_ERROR) {
        fv__memory_lend(1 << 18); /* about what it takes */
        code = deflateInit2(&stream, level, Z_DEFLATED, windows[form], 9, Z_DEFAULT_STRATEGY);
    }
    if (code != Z_OK) fv__out_of_memory(1 << 18);
    code = deflate(&stream, form != FV_DEFLATE_PIECE ? Z_FINISH : Z_SYNC_FLUSH);
    if (code != (form != FV_DEFLATE_PIECE ? Z_STREAM_END : Z_OK)) abort();
    deflateEnd(&stream);
    return room - stream.avail_out;
}

void fv__deflate(const void *data, size_t size, int level, fv_deflate_form form, fv_bytes *out) {
    size_t   room = bound(size);
    uint8_t *to = fv__bytes_append(out, NULL, room);
    size_t   made = level <= 3 ? with_isal(data, size, level, form, to, room) : with_zlib(data, size, level, form, to, room);
    out->size -= room - made;
}
