/* zstd with contexts that are used again: one takes as long to make, for its fresh pages, as to unpack a small chunk.
 *
 * Unpacking goes straight to the result, so a piece is all that must be held of a packed chunk, and it stays in the cache. */
#define ZSTD_STATIC_LINKING_ONLY /* names the parameter for a result that stays where it is */
#include "formats/zarr_zstd.h"
#include "base/session.h"
#include <pthread.h>
#include <stdlib.h>
#include <zstd.h>

enum { IDLE = 16 };

typedef struct {
    void *context[IDLE];
    int   count;
} shelf;

struct fv_zstd_stream {
    ZSTD_DCtx     *context;
    ZSTD_outBuffer out;
    bool           begun, ended; /* some bytes have come; the frame is complete */
};

typedef struct {           /* of a session */
    pthread_mutex_t mutex; /* guards both */
    shelf           packers, unpackers;
} shelves;

static void begin(void *part) { pthread_mutex_init(&((shelves *)part)->mutex, NULL); }

static void end(void *part) {
    shelves *s = part;
    while (s->packers.count) ZSTD_freeCCtx(s->packers.context[--s->packers.count]);
    while (s->unpackers.count) ZSTD_freeDCtx(s->unpackers.context[--s->unpackers.count]);
    pthread_mutex_destroy(&s->mutex);
}

static shelves *here(void) {
    static const fv_session_type type = { sizeof(shelves), begin, end };
    return fv__session_part(FV_PART_ZSTD, &type);
}

static void *take(shelves *s, shelf *from) {
    pthread_mutex_lock(&s->mutex);
    void *context = from->count ? from->context[--from->count] : NULL;
    pthread_mutex_unlock(&s->mutex);
    return context;
}

static bool put_back(shelves *s, shelf *to, void *context) {
    pthread_mutex_lock(&s->mutex);
    bool room = to->count < IDLE;
    if (room) to->context[to->count++] = context;
    pthread_mutex_unlock(&s->mutex);
    return room;
}

const char *fv__zstd_pack(int level, bool checksum, const void *data, size_t size, void *packed, size_t room,
                          size_t *packed_size) {
    shelves   *s = here();
    ZSTD_CCtx *context = take(s, &s->packers);
    if (!context) context = ZSTD_createCCtx();
    if (!context) return "no memory";
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum);
    *packed_size = ZSTD_compress2(context, packed, room, data, size);
    if (!put_back(s, &s->packers, context)) ZSTD_freeCCtx(context);
    return ZSTD_isError(*packed_size) ? ZSTD_getErrorName(*packed_size) : NULL;
}

fv_zstd_stream *fv__zstd_begin(void *data, size_t size) {
    shelves   *s = here();
    ZSTD_DCtx *context = take(s, &s->unpackers);
    if (!context) context = ZSTD_createDCtx();
    if (!context) return NULL;
    ZSTD_DCtx_reset(context, ZSTD_reset_session_and_parameters);
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
    ZSTD_DCtx_setParameter(context, ZSTD_d_stableOutBuffer, 1); /* a library that refuses this makes a copy */
    fv_zstd_stream *stream = fv__calloc(sizeof *stream);
    *stream = (fv_zstd_stream){ .context = context, .out = { data, size, 0 } };
    return stream;
}

static const char *check_header(const fv_zstd_stream *stream, const void *piece, size_t size) {
    unsigned long long claimed = ZSTD_getFrameContentSize(piece, size);
    if (claimed == ZSTD_CONTENTSIZE_ERROR) return "it is not zstd";
    bool wrong = claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed != stream->out.size;
    return wrong ? "zstd holds another size than the chunk has" : NULL;
}

const char *fv__zstd_feed(fv_zstd_stream *stream, const void *piece, size_t size) {
    ZSTD_inBuffer in = { piece, size, 0 };
    const char   *fault = stream->begun ? NULL : check_header(stream, piece, size);
    stream->begun = true;
    while (!fault && in.pos < in.size) {
        size_t before = in.pos, left = ZSTD_decompressStream(stream->context, &stream->out, &in);
        stream->ended = left == 0;
        if (ZSTD_isError(left))
            fault = ZSTD_getErrorName(left);
        else if (in.pos == before)
            fault = "zstd holds more bytes than the chunk has";
    }
    return fault;
}

const char *fv__zstd_end(fv_zstd_stream *stream) {
    shelves *s = here();
    bool     complete = stream->ended && stream->out.pos == stream->out.size;
    if (!put_back(s, &s->unpackers, stream->context)) ZSTD_freeDCtx(stream->context);
    free(stream);
    return complete ? NULL : "zstd holds fewer bytes than the chunk has";
}
