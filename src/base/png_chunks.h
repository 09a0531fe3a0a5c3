/* Chunks of PNG files that are written, and what an encoded band of rows is: for PNG and for APNG, which is made of the same. */
#ifndef FV_PNG_CHUNKS_H
#define FV_PNG_CHUNKS_H

#include "base/base.h"
#include <zlib.h>

enum { FV_PNG_SIGNATURE = 8 };

/* In front of an encoded band, for the zlib checksum; an IDAT chunk follows. */
typedef struct fv_png_band {
    uint64_t size; /* of the rows before they were compressed */
    uint32_t adler, unused;
} fv_png_band;

static inline void fv__png_append_number(fv_bytes *out, uint32_t value) {
    fv__bytes_append(out, (uint8_t[]){ (uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value },
                     4);
}

/* Turns what was appended since `begin` (4 bytes of room, the chunk's type, its data) into a chunk. */
static inline void fv__png_close_chunk(fv_bytes *out, size_t begin) {
    uint32_t length = (uint32_t)(out->size - begin - 8);
    for (int i = 0; i < 4; i++) out->data[begin + (size_t)i] = (uint8_t)(length >> (24 - 8 * i));
    fv__png_append_number(out, (uint32_t)crc32(0, out->data + begin + 4, (uInt)(out->size - begin - 4)));
}

#endif
