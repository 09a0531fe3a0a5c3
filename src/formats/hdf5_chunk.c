/* Chunks of HDF5 files as their filters leave them. What the library would do under its lock happens here, in the thread that
 * wants the chunk. Nothing that a chunk says about its size is believed. */
#include "formats/hdf5_parts.h"
#include "formats/zarr_codec.h"

enum { CHECKSUM = 4 };

static const struct {
    int         id;
    const char *name;
} names[] = {
    { FV_HDF5_DEFLATE, "deflate" }, { FV_HDF5_SHUFFLE, "shuffle" }, { FV_HDF5_FLETCHER32, "fletcher32" },
    { FV_HDF5_SZIP, "szip" },       { FV_HDF5_NBIT, "nbit" },       { FV_HDF5_SCALEOFFSET, "scaleoffset" },
    { FV_HDF5_LZF, "lzf" },         { FV_HDF5_BLOSC, "blosc" },     { FV_HDF5_ZSTD, "zstd" },
};

void fv__hdf5_filter_names(const fv_hdf5_about *about, fv_bytes *out) {
    if (about->nfilters <= 0) fv__bytes_printf(out, about->nfilters ? "many filters" : "none");
    for (int i = 0; i < about->nfilters; i++) {
        const char *name = NULL;
        for (int k = 0; k < FV_COUNT(names); k++)
            if (names[k].id == about->filters[i].id) name = names[k].name;
        if (i) fv__bytes_printf(out, ", ");
        if (name)
            fv__bytes_printf(out, "%s", name);
        else
            fv__bytes_printf(out, "filter %d", about->filters[i].id);
    }
}

static bool compresses(int id) { return id == FV_HDF5_DEFLATE || id == FV_HDF5_LZF || id == FV_HDF5_BLOSC || id == FV_HDF5_ZSTD; }

/* At most one compressor: what lies before it has a known size. */
bool fv__hdf5_unpacks(const fv_hdf5_about *about) {
    int compressors = 0;
    for (int i = 0; i < about->nfilters; i++) {
        int id = about->filters[i].id;
        if (!compresses(id) && id != FV_HDF5_SHUFFLE && id != FV_HDF5_FLETCHER32) return false;
        compressors += compresses(id);
    }
    return about->nfilters >= 0 && compressors <= 1;
}

int64_t fv__hdf5_chunk_bytes(const fv_hdf5_about *about) {
    int64_t bytes = about->size;
    for (int d = 0; d < about->ndim; d++)
        if (!fv__mul(bytes, about->chunk[d], &bytes)) return -1;
    return bytes <= FV_ZARR_LARGEST_CHUNK ? bytes : -1;
}

int64_t fv__hdf5_room(const fv_hdf5_about *about) {
    return fv__zarr_packed_bound(fv__hdf5_chunk_bytes(about)) + FV_HDF5_MOST_FILTERS * CHECKSUM;
}
int64_t fv__hdf5_chunk_memory(const fv_hdf5_about *about) { return 2 * fv__hdf5_room(about); }

/* ---------------------------------------------------------------- filters */

static inline void gather_bytes(const uint8_t *from, uint8_t *to, size_t n, size_t element) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < element; k++) to[i * element + k] = from[k * n + i];
}

/* The same loop with the size known, which the compiler turns into interleaving. */
static void unshuffle(const uint8_t *from, uint8_t *to, size_t size, size_t element) {
    size_t n = size / element;
    switch (element) {
    case 2: gather_bytes(from, to, n, 2); break;
    case 4: gather_bytes(from, to, n, 4); break;
    case 8: gather_bytes(from, to, n, 8); break;
    default: gather_bytes(from, to, n, element); break;
    }
    memcpy(to + n * element, from + n * element, size - n * element);
}

void fv__hdf5_shuffle(const uint8_t *from, uint8_t *to, size_t size, size_t element) {
    size_t n = size / element;
    for (size_t k = 0; k < element; k++)
        for (size_t i = 0; i < n; i++) to[k * n + i] = from[i * element + k];
    memcpy(to + n * element, from + n * element, size - n * element);
}

/* Marc Lehmann's LZF: runs of bytes, or copies of what lies up to 8 KiB back. True if exactly to_size bytes come out. */
static bool unpack_lzf(const uint8_t *from, size_t size, uint8_t *to, size_t to_size) {
    size_t in = 0, out = 0;
    while (in < size) {
        size_t control = from[in++];
        if (control < 32) {
            size_t run = control + 1;
            if (run > size - in || run > to_size - out) return false;
            memcpy(to + out, from + in, run);
            in += run;
            out += run;
            continue;
        }
        size_t length = control >> 5;
        if (length == 7) {
            if (in >= size) return false;
            length += from[in++];
        }
        if (in >= size) return false;
        size_t back = ((control & 31) << 8) + from[in++] + 1;
        length += 2;
        if (back > out || length > to_size - out) return false;
        for (; length; length--, out++) to[out] = to[out - back]; /* may overlap what it makes */
    }
    return out == to_size;
}

static uint32_t fletcher32(const uint8_t *data, size_t size) {
    uint32_t one = 0, two = 0;
    size_t   words = size / 2;
    while (words) {
        size_t run = FV_MIN(words, (size_t)360);
        words -= run;
        for (; run; run--, data += 2) {
            one += (uint32_t)data[0] << 8 | data[1];
            two += one;
        }
        one = (one & 0xffff) + (one >> 16);
        two = (two & 0xffff) + (two >> 16);
    }
    if (size % 2) {
        one += (uint32_t)*data << 8;
        two += one;
        one = (one & 0xffff) + (one >> 16);
        two = (two & 0xffff) + (two >> 16);
    }
    one = (one & 0xffff) + (one >> 16);
    two = (two & 0xffff) + (two >> 16);
    return two << 16 | one;
}

/* Old versions stored the bytes of each half the other way round. */
static bool sum_is_right(const uint8_t *data, size_t size) {
    uint32_t sum = fletcher32(data, size), turned = (sum & 0x00ff00ff) << 8 | (sum & 0xff00ff00) >> 8;
    uint32_t stored = 0;
    for (int i = 0; i < CHECKSUM; i++) stored |= (uint32_t)data[size + (size_t)i] << 8 * i;
    return stored == sum || stored == turned;
}

/* Bytes of a chunk before filter i has seen it. */
static size_t size_before(const fv_hdf5_about *about, unsigned mask, int i) {
    size_t size = (size_t)fv__hdf5_chunk_bytes(about);
    for (int k = 0; k < i; k++)
        if (about->filters[k].id == FV_HDF5_FLETCHER32 && !(mask >> k & 1)) size += CHECKSUM;
    return size;
}

static const char *decompress(int id, const void *from, size_t size, void *to, size_t to_size) {
    fv_zarr_codec codec = { .packing = id == FV_HDF5_DEFLATE ? FV_ZARR_ZLIB
                                       : id == FV_HDF5_BLOSC ? FV_ZARR_BLOSC
                                                             : FV_ZARR_ZSTD };
    if (id == FV_HDF5_LZF) return unpack_lzf(from, size, to, to_size) ? NULL : "a chunk is no whole LZF";
    return fv__zarr_unpack(&codec, from, (int64_t)size, to, (int64_t)to_size);
}

const char *fv__hdf5_unpack(const fv_hdf5_about *about, unsigned mask, void *packed, size_t size, void *scratch, void *to) {
    uint8_t *at = packed, *free_space = scratch;
    for (int i = about->nfilters - 1; i >= 0; i--) {
        size_t   before = size_before(about, mask, i), element = about->filters[i].nvalues ? about->filters[i].values[0] : 0;
        int      id = about->filters[i].id;
        uint8_t *into = i ? free_space : to;
        if (mask >> i & 1) continue;
        if (id == FV_HDF5_FLETCHER32) {
            if (size < CHECKSUM) return "a chunk is too short for its checksum";
            size -= CHECKSUM;
            if (!sum_is_right(at, size)) return "the checksum of a chunk is wrong";
            continue;
        }
        if (id == FV_HDF5_SHUFFLE) {
            if (size != before) return "a chunk has the wrong size";
            if (element < 2 || element > size) continue;
            unshuffle(at, into, size, element);
        } else {
            const char *fault = decompress(id, at, size, into, before);
            if (fault) return fault;
            size = before;
        }
        free_space = at;
        at = into;
    }
    if (size != (size_t)fv__hdf5_chunk_bytes(about)) return "a chunk has the wrong size";
    if (at != to) memcpy(to, at, size);
    return NULL;
}
