/* How the bytes of a Zarr chunk are packed, and packing and unpacking them. */
#ifndef FV_ZARR_CODEC_H
#define FV_ZARR_CODEC_H

#include "base/base.h"
#include <fovea/image.h>

typedef enum fv_zarr_packing { FV_ZARR_NONE, FV_ZARR_ZSTD, FV_ZARR_BLOSC, FV_ZARR_GZIP, FV_ZARR_ZLIB } fv_zarr_packing;

const char *fv__zarr_packing_name(fv_zarr_packing packing); /* as in the metadata; "none" */

/* Chunks of more bytes are neither read nor written: blosc cannot, and no task could hold them. */
#define FV_ZARR_LARGEST_CHUNK ((int64_t)1 << 30)

typedef struct fv_zarr_codec {
    fv_zarr_packing packing;
    int             level;
    const char     *inner;   /* blosc, for writing: "lz4" or "zstd" */
    int             element; /* blosc, for writing: bytes of one element, which its shuffle needs */
    bool            crc32c;  /* four bytes of checksum follow */
} fv_zarr_codec;

/* The most bytes that a chunk of that size takes when packed by any sensible program. */
int64_t fv__zarr_packed_bound(int64_t size);

/* Bytes that packing needs beside the data, what is packed included. */
int64_t fv__zarr_pack_memory(const fv_zarr_codec *codec, int64_t size);
/* CRC-32C as Zarr stores it. */
void fv__zarr_checksum(const void *data, size_t size, uint8_t sum[4]);

/* Packs into memory that has room for fv__zarr_packed_bound(size) bytes. Gives what is packed and its size; without a compression
 * that is the data itself. */
fv_status fv__zarr_pack(const fv_zarr_codec *codec, const void *data, int64_t size, void *room, const void **packed,
                        int64_t *packed_size, fv_error *error);
/* Unpacks exactly size bytes. Gives NULL, or why it cannot. */
const char *fv__zarr_unpack(const fv_zarr_codec *codec, const void *packed, int64_t packed_size, void *data, int64_t size);

#endif
