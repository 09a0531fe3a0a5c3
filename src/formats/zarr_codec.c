/* Packing and unpacking of Zarr chunks. Nothing that a packed chunk says about itself is believed: it unpacks to exactly the
 * bytes of one chunk or it is damaged. */
#include "formats/zarr_codec.h"
#include "base/deflate.h"
#include "formats/gzip.h"
#include "formats/zarr_zstd.h"
#include <blosc.h>
#include <isa-l/crc.h>
#include <zstd.h>

enum { CHECKSUM = 4 };

const char *fv__zarr_packing_name(fv_zarr_packing packing) {
    static const char *const names[] = { "none", "zstd", "blosc", "gzip", "zlib" };
    return names[packing];
}

/* zstd adds up to 1/256, deflate as stored blocks 5 bytes to every 16 KiB. */
int64_t fv__zarr_packed_bound(int64_t size) { return (int64_t)ZSTD_compressBound((size_t)size) + BLOSC_MAX_OVERHEAD + 1024; }

int64_t fv__zarr_pack_memory(const fv_zarr_codec *codec, int64_t size) {
    return fv__zarr_packed_bound(size) + (codec->packing == FV_ZARR_GZIP ? fv__deflate_memory(size) : 0);
}

void fv__zarr_checksum(const void *data, size_t size, uint8_t sum[4]) {
    uint32_t value = ~crc32_iscsi((unsigned char *)data, (int)size, ~0u);
    for (int i = 0; i < CHECKSUM; i++) sum[i] = (uint8_t)(value >> 8 * i);
}

/* ---------------------------------------------------------------- packing */

static fv_status pack_zstd(const fv_zarr_codec *codec, const void *data, int64_t size, void *packed, int64_t *packed_size,
                           fv_error *error) {
    size_t      used;
    const char *fault = fv__zstd_pack(codec->level, true, data, (size_t)size, packed, (size_t)fv__zarr_packed_bound(size), &used);
    if (fault) return fv_fail(error, FV_ERROR_INTERNAL, "zstd cannot compress a chunk: %s", fault);
    *packed_size = (int64_t)used;
    return FV_OK;
}

static fv_status pack_blosc(const fv_zarr_codec *codec, const void *data, int64_t size, void *packed, int64_t *packed_size,
                            fv_error *error) {
    int shuffle = codec->element > 1 ? BLOSC_SHUFFLE : BLOSC_NOSHUFFLE;
    int used = blosc_compress_ctx(codec->level, shuffle, (size_t)codec->element, (size_t)size, data, packed,
                                  (size_t)fv__zarr_packed_bound(size), codec->inner, 0, 1);
    if (used <= 0) return fv_fail(error, FV_ERROR_INTERNAL, "blosc cannot compress a chunk of %lld bytes", (long long)size);
    *packed_size = used;
    return FV_OK;
}

static void pack_gzip(const fv_zarr_codec *codec, const void *data, int64_t size, void *packed, int64_t *packed_size) {
    fv_bytes out = { 0 };
    fv__deflate(data, (size_t)size, codec->level, FV_DEFLATE_GZIP, &out);
    memcpy(packed, out.data, out.size);
    *packed_size = (int64_t)out.size;
    fv__bytes_release(&out);
}

fv_status fv__zarr_pack(const fv_zarr_codec *codec, const void *data, int64_t size, void *room, const void **packed,
                        int64_t *packed_size, fv_error *error) {
    *packed = room;
    if (codec->packing == FV_ZARR_ZSTD) return pack_zstd(codec, data, size, room, packed_size, error);
    if (codec->packing == FV_ZARR_BLOSC) return pack_blosc(codec, data, size, room, packed_size, error);
    if (codec->packing == FV_ZARR_GZIP) {
        pack_gzip(codec, data, size, room, packed_size);
        return FV_OK;
    }
    *packed = data;
    *packed_size = size;
    return FV_OK;
}

/* ---------------------------------------------------------------- unpacking */

static const char *unpack_zstd(const void *packed, size_t packed_size, void *data, size_t size) {
    fv_zstd_stream *stream = fv__zstd_begin(data, size);
    if (!stream) return "there is no memory to decompress it";
    const char *fault = fv__zstd_feed(stream, packed, packed_size), *short_of = fv__zstd_end(stream);
    return fault ? fault : short_of;
}

static const char *unpack_blosc(const void *packed, size_t packed_size, void *data, size_t size) {
    size_t claimed;
    if (packed_size < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(packed, packed_size, &claimed) < 0)
        return "it is not blosc";
    if (claimed != size) return "blosc holds another size than the chunk has";
    return blosc_decompress_ctx(packed, data, size, 1) == (int)size ? NULL : "blosc cannot decompress it";
}

const char *fv__zarr_unpack(const fv_zarr_codec *codec, const void *packed, int64_t packed_size, void *data, int64_t size) {
    size_t from = (size_t)packed_size, to = (size_t)size;
    if (codec->crc32c) {
        if (from < CHECKSUM) return "its checksum is missing";
        from -= CHECKSUM;
        uint8_t sum[CHECKSUM];
        fv__zarr_checksum(packed, from, sum);
        if (memcmp(sum, (const uint8_t *)packed + from, CHECKSUM)) return "its checksum is wrong";
    }
    switch (codec->packing) {
    case FV_ZARR_ZSTD: return unpack_zstd(packed, from, data, to);
    case FV_ZARR_BLOSC: return unpack_blosc(packed, from, data, to);
    case FV_ZARR_GZIP:
    case FV_ZARR_ZLIB:
        return fv__gzip_inflate(packed, from, codec->packing == FV_ZARR_ZLIB, data, to) ? NULL
                                                                                        : "it cannot be inflated to one chunk";
    default: break;
    }
    if (from != to) return "it has another size than the chunk";
    memcpy(data, packed, to);
    return NULL;
}
