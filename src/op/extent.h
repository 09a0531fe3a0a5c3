/* Least and greatest value of an image: the partial of min and max, and what binning needs first. */
#ifndef FV_EXTENT_H
#define FV_EXTENT_H

#include "op/reduce.h"

typedef struct fv_extent {
    int64_t   mark;  /* -1: tells it from an fv_tally in a pass that makes one or the other */
    int64_t   count; /* voxels seen */
    int64_t   nan;   /* 1: one of them is nan, and low and high mean nothing */
    fv_scalar low, high;
} fv_extent;

void fv__extent_init(fv_extent *extent, fv_dtype dtype); /* of an image of this type, none seen */
void fv__extent_merge(fv_extent *into, const fv_extent *from);
/* A combine: both begin with an fv_extent. */
void fv__extent_combine(const void *params, fv_bytes *into, const void *partial, size_t size);
/* Reads the one partial, which begins with it; an image without voxels is an error. */
fv_status fv__extent_finish(fv_finish *f, fv_extent *extent, fv_error *error);

#define FV__EXTENT(NAME, TYPE, FIELD)                                                                                            \
    static inline void NAME(fv_extent *e, const void *data, int64_t n) {                                                         \
        const TYPE *x = data;                                                                                                    \
        TYPE        low = x[0], high = x[0];                                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            low = x[i] < low ? x[i] : low;                                                                                       \
            high = x[i] > high ? x[i] : high;                                                                                    \
        }                                                                                                                        \
        e->low.FIELD = low < e->low.FIELD ? low : e->low.FIELD;                                                                  \
        e->high.FIELD = high > e->high.FIELD ? high : e->high.FIELD;                                                             \
    }
FV__EXTENT(fv__extent_uint8, uint8_t, integer)
FV__EXTENT(fv__extent_int8, int8_t, integer)
FV__EXTENT(fv__extent_uint16, uint16_t, integer)
FV__EXTENT(fv__extent_int16, int16_t, integer)
FV__EXTENT(fv__extent_uint32, uint32_t, integer)
FV__EXTENT(fv__extent_int32, int32_t, integer)
FV__EXTENT(fv__extent_int64, int64_t, integer)
FV__EXTENT(fv__extent_uint64, uint64_t, natural)
#undef FV__EXTENT

/* Floats as integers in the same order (-0 below 0), because reductions of integers vectorise. The map is its own inverse. */
#define FV__EXTENT_REAL(NAME, TYPE, BITS, INFINITE, TOP)                                                                         \
    static inline void NAME(fv_extent *e, const void *data, int64_t n) {                                                         \
        BITS low = TOP, high = -TOP - 1, nan = 0;                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            BITS bits, key;                                                                                                      \
            memcpy(&bits, (const TYPE *)data + i, sizeof bits);                                                                  \
            key = bits ^ (bits < 0 ? TOP : 0);                                                                                   \
            low = key < low ? key : low;                                                                                         \
            high = key > high ? key : high;                                                                                      \
            nan |= (bits & TOP) > INFINITE ? 1 : 0;                                                                              \
        }                                                                                                                        \
        TYPE ends[2];                                                                                                            \
        low ^= low < 0 ? TOP : 0;                                                                                                \
        high ^= high < 0 ? TOP : 0;                                                                                              \
        memcpy(&ends[0], &low, sizeof low);                                                                                      \
        memcpy(&ends[1], &high, sizeof high);                                                                                    \
        e->nan |= nan;                                                                                                           \
        fv_extent row = { .low = { FV_FLOAT64, .real = ends[0] }, .high = { FV_FLOAT64, .real = ends[1] } };                     \
        fv__extent_merge(e, &row);                                                                                               \
    }
FV__EXTENT_REAL(fv__extent_float32, float, int32_t, 0x7f800000, INT32_MAX)
FV__EXTENT_REAL(fv__extent_float64, double, int64_t, 0x7ff0000000000000, INT64_MAX)
#undef FV__EXTENT_REAL

static inline void fv__extent_add(fv_extent *e, const fv_block *block) {
    int64_t n = block->region.ndim ? block->region.size[block->region.ndim - 1] : 1;
    fv_rows rows;
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);) {
        const void *data = fv__block_at(block, rows.position);
        e->count += n;
        switch (block->dtype) {
        case FV_BOOL:
        case FV_UINT8: fv__extent_uint8(e, data, n); break;
        case FV_INT8: fv__extent_int8(e, data, n); break;
        case FV_UINT16: fv__extent_uint16(e, data, n); break;
        case FV_INT16: fv__extent_int16(e, data, n); break;
        case FV_UINT32: fv__extent_uint32(e, data, n); break;
        case FV_INT32: fv__extent_int32(e, data, n); break;
        case FV_UINT64: fv__extent_uint64(e, data, n); break;
        case FV_INT64: fv__extent_int64(e, data, n); break;
        case FV_FLOAT32: fv__extent_float32(e, data, n); break;
        default: fv__extent_float64(e, data, n); break;
        }
    }
}

/* A run of a pass whose partial is one fv_extent. */
static inline fv_status fv__extent_run(fv_run *r, fv_error *error) {
    (void)error;
    fv_extent extent;
    fv__extent_init(&extent, r->in[0]->dtype);
    fv__extent_add(&extent, r->in[0]);
    fv__bytes_append(r->partial, &extent, sizeof extent);
    return FV_OK;
}

#endif
