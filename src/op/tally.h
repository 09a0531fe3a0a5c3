/* Counts of small keys: how often each value of 8 or 16 bits occurs, as a partial that can be merged.
 *
 * A tally is { first, count, counts of keys first ... first + count - 1 }, all of 64 bits, without the zeros at both ends. A
 * partial holds one or more tallies, one after the other. */
#ifndef FV_TALLY_H
#define FV_TALLY_H

#include "op/reduce.h"

typedef struct fv_tally {
    int64_t  first, count;
    uint64_t counts[];
} fv_tally;

/* Appends a tally; counts[t * keys + k] of all tables t are added up. */
void fv__tally_append(fv_bytes *partial, const uint32_t *counts, int tables, int64_t keys);
/* Counts while a task runs have 32 bits, because large tables leave the cache: a block must have fewer than 2^32 voxels. */
fv_status fv__tally_check(const fv_block *block, fv_error *error);
/* A combine: each tally of the partial is added to its counterpart. */
void fv__tally_combine(const void *params, fv_bytes *into, const void *partial, size_t size);
/* The i-th tally of a partial; NULL behind the last. */
const fv_tally *fv__tally_at(const void *partial, size_t size, int i);
uint64_t        fv__tally_total(const fv_tally *tally);

/* Keys of an integer image of at most 16 bits, and of bool: value - offset, in the same order. */
static inline bool    fv__tally_fits(fv_dtype dtype) { return fv_dtype_size(dtype) <= 2; }
static inline int64_t fv__tally_keys(fv_dtype dtype) { return (int64_t)1 << 8 * fv_dtype_size(dtype); }
static inline int64_t fv__tally_offset(fv_dtype dtype) { return dtype == FV_INT8 ? INT8_MIN : dtype == FV_INT16 ? INT16_MIN : 0; }

/* Several tables of bytes, so that equal neighbours do not wait for each other; of 16 bits they would leave the cache. */
static inline int    fv__tally_tables(fv_dtype dtype) { return fv_dtype_size(dtype) == 1 ? 4 : 1; }
static inline size_t fv__tally_scratch(fv_dtype dtype) {
    return (size_t)(fv__tally_tables(dtype) * fv__tally_keys(dtype)) * sizeof(uint32_t);
}

#define FV__TALLY(NAME, FLIP)                                                                                                    \
    static inline void NAME(uint32_t *counts, const void *data, int64_t n) {                                                     \
        const uint8_t *x = data;                                                                                                 \
        int64_t        i = 0;                                                                                                    \
        for (; i + 4 <= n; i += 4)                                                                                               \
            for (int t = 0; t < 4; t++) counts[t * 256 + (x[i + t] ^ (FLIP))]++;                                                 \
        for (; i < n; i++) counts[x[i] ^ (FLIP)]++;                                                                              \
    }
FV__TALLY(fv__tally_uint8, 0)
FV__TALLY(fv__tally_int8, 0x80)
#undef FV__TALLY

/* Four keys are loaded at once, because loads are what limits it: 1.2 times as fast. Their order does not matter. */
#define FV__TALLY(NAME, FLIP)                                                                                                    \
    static inline void NAME(uint32_t *counts, const void *data, int64_t n) {                                                     \
        const uint16_t *x = data;                                                                                                \
        int64_t         i = 0;                                                                                                   \
        for (; i + 4 <= n; i += 4) {                                                                                             \
            uint64_t four;                                                                                                       \
            memcpy(&four, x + i, sizeof four);                                                                                   \
            for (int t = 0; t < 4; t++) counts[(uint16_t)(four >> 16 * t) ^ (FLIP)]++;                                           \
        }                                                                                                                        \
        for (; i < n; i++) counts[x[i] ^ (FLIP)]++;                                                                              \
    }
FV__TALLY(fv__tally_uint16, 0)
FV__TALLY(fv__tally_int16, 0x8000)
#undef FV__TALLY

/* A run of a pass whose partial is one tally of all values of an image of a fitting type. */
static inline fv_status fv__tally_run(fv_run *r, fv_error *error) {
    const fv_block *block = r->in[0];
    int64_t         n = block->region.ndim ? block->region.size[block->region.ndim - 1] : 1;
    uint32_t       *counts = r->scratch;
    fv_rows         rows;
    FV_TRY(fv__tally_check(block, error));
    memset(counts, 0, fv__tally_scratch(block->dtype));
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);) {
        const void *data = fv__block_at(block, rows.position);
        switch (block->dtype) {
        case FV_INT8: fv__tally_int8(counts, data, n); break;
        case FV_UINT16: fv__tally_uint16(counts, data, n); break;
        case FV_INT16: fv__tally_int16(counts, data, n); break;
        default: fv__tally_uint8(counts, data, n); break;
        }
    }
    fv__tally_append(r->partial, counts, fv__tally_tables(block->dtype), fv__tally_keys(block->dtype));
    return FV_OK;
}

#endif
