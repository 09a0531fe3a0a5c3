/* zstd frames of chunks and strips: packed whole, unpacked whole or piece by piece as they come from a file. */
#ifndef FV_ZARR_ZSTD_H
#define FV_ZARR_ZSTD_H

#include "base/base.h"

/* Into room for ZSTD_compressBound(size) bytes, with a checksum if that is asked for. Gives NULL, or why it cannot. */
const char *fv__zstd_pack(int level, bool checksum, const void *data, size_t size, void *packed, size_t room,
                          size_t *packed_size);

/* Exactly size bytes from a frame that is given in pieces. begin gives NULL for want of memory; feed and end give NULL, or why
 * the frame is damaged; end releases the stream, also after a fault. */
typedef struct fv_zstd_stream fv_zstd_stream;
fv_zstd_stream               *fv__zstd_begin(void *data, size_t size);
const char                   *fv__zstd_feed(fv_zstd_stream *stream, const void *piece, size_t size);
const char                   *fv__zstd_end(fv_zstd_stream *stream);

#endif
