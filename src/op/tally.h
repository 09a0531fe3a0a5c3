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
void fv_tally_append(fv_bytes *partial, const uint64_t *counts, int tables, int64_t keys);
/* A combine: each tally of the partial is added to its counterpart. */
void fv_tally_combine(const void *params, fv_bytes *into, const void *partial, size_t size);
/* The i-th tally of a partial; NULL behind the last. */
const fv_tally *fv_tally_at(const void *partial, size_t size, int i);
uint64_t        fv_tally_total(const fv_tally *tally);

/* Keys of an integer image of at most 16 bits, and of bool: value - offset, in the same order. */
static inline bool    fv_tally_fits(fv_dtype dtype) { return fv_dtype_size(dtype) <= 2; }
static inline int64_t fv_tally_keys(fv_dtype dtype) { return (int64_t)1 << 8 * fv_dtype_size(dtype); }
static inline int64_t fv_tally_offset(fv_dtype dtype) { return dtype == FV_INT8 ? INT8_MIN : dtype == FV_INT16 ? INT16_MIN : 0; }

/* Several tables, so that equal neighbours do not wait for each other. */
enum { FV_TALLY_TABLES = 4 };
static inline size_t fv_tally_scratch(fv_dtype dtype) { return FV_TALLY_TABLES * (size_t)fv_tally_keys(dtype) * sizeof(uint64_t); }

#define FV__TALLY(NAME, TYPE, FLIP)                                                                      \
    static inline void NAME(uint64_t *counts, int64_t keys, const void *data, int64_t n) {              \
        const TYPE *x = data;                                                                            \
        int64_t     i = 0;                                                                               \
        uint64_t   *a = counts, *b = a + keys, *c = b + keys, *d = c + keys;                             \
        for (; i + 4 <= n; i += 4) {                                                                     \
            a[(TYPE)(x[i] ^ (FLIP))]++;                                                                  \
            b[(TYPE)(x[i + 1] ^ (FLIP))]++;                                                              \
            c[(TYPE)(x[i + 2] ^ (FLIP))]++;                                                              \
            d[(TYPE)(x[i + 3] ^ (FLIP))]++;                                                              \
        }                                                                                                \
        for (; i < n; i++) a[(TYPE)(x[i] ^ (FLIP))]++;                                                   \
    }
FV__TALLY(fv__tally_uint8, uint8_t, 0)
FV__TALLY(fv__tally_int8, uint8_t, 0x80)
FV__TALLY(fv__tally_uint16, uint16_t, 0)
FV__TALLY(fv__tally_int16, uint16_t, 0x8000)
#undef FV__TALLY

/* A run of a pass whose partial is one tally of all values of an image of a fitting type. */
static inline void fv_tally_run(fv_run *r) {
    const fv_block *block = r->in[0];
    int64_t         keys = fv_tally_keys(block->dtype), n = block->region.ndim ? block->region.size[block->region.ndim - 1] : 1;
    uint64_t       *counts = r->scratch;
    fv_rows         rows;
    memset(counts, 0, fv_tally_scratch(block->dtype));
    for (fv_rows_begin(&rows, &block->region); fv_rows_next(&rows);) {
        const void *data = fv_block_at(block, rows.position);
        switch (block->dtype) {
        case FV_INT8: fv__tally_int8(counts, keys, data, n); break;
        case FV_UINT16: fv__tally_uint16(counts, keys, data, n); break;
        case FV_INT16: fv__tally_int16(counts, keys, data, n); break;
        default: fv__tally_uint8(counts, keys, data, n); break;
        }
    }
    fv_tally_append(r->partial, counts, FV_TALLY_TABLES, keys);
}

#endif
