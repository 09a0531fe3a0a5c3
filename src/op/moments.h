/* Exact count, sum and sum of squares of an image: the partial of sum, mean, var and std. */
#ifndef FV_MOMENTS_H
#define FV_MOMENTS_H

#include "base/exact_sum.h"
#include "op/reduce.h"

typedef struct fv_moments {
    int64_t    count;
    fv_sum_any sum, squares;
} fv_moments;

void fv__moments_init(fv_moments *moments, fv_dtype dtype);
/* A combine: both are fv_moments. */
void fv__moments_combine(const void *params, fv_bytes *into, const void *partial, size_t size);

/* Integers are added in blocks that cannot overflow the plain types named here; a square fits SQUARE, and a block's sums of
 * its lower and upper halves fit 64 bits. */
#define FV__MOMENTS(NAME, TYPE, SUM, SQUARE, BLOCK)                                                                              \
    static inline void NAME(fv_moments *m, const void *data, int64_t n, bool squares) {                                          \
        const TYPE *x = data;                                                                                                    \
        for (int64_t done = 0; done < n; done += (BLOCK)) {                                                                      \
            int64_t  end = FV_MIN(n, done + (BLOCK));                                                                            \
            SUM      sum = 0;                                                                                                    \
            uint64_t low = 0, high = 0;                                                                                          \
            for (int64_t i = done; i < end; i++) sum += (SUM)x[i];                                                               \
            for (int64_t i = done; squares && i < end; i++) {                                                                    \
                SQUARE square = (SQUARE)((SQUARE)x[i] * (SQUARE)x[i]);                                                           \
                low += square & 0xffffffff;                                                                                      \
                high += sizeof square > 4 ? (uint64_t)square >> 32 : 0;                                                          \
            }                                                                                                                    \
            fv__sum_add_integer(&m->sum.sum, sum < 0, sum < 0 ? -(unsigned __int128)sum : (unsigned __int128)sum);               \
            if (squares) fv__sum_add_integer(&m->squares.sum, false, ((unsigned __int128)high << 32) + low);                     \
        }                                                                                                                        \
    }
FV__MOMENTS(fv__moments_uint8, uint8_t, uint32_t, uint32_t, 1 << 16)
FV__MOMENTS(fv__moments_int8, int8_t, int32_t, uint32_t, 1 << 16)
FV__MOMENTS(fv__moments_uint16, uint16_t, uint32_t, uint32_t, 1 << 16)
FV__MOMENTS(fv__moments_int16, int16_t, int32_t, uint32_t, 1 << 15)
FV__MOMENTS(fv__moments_uint32, uint32_t, int64_t, uint64_t, 1 << 16)
FV__MOMENTS(fv__moments_int32, int32_t, int64_t, uint64_t, 1 << 16)
#undef FV__MOMENTS

static inline void fv__moments_wide(fv_moments *m, const void *data, int64_t n, bool is_signed, bool squares) {
    __int128 sum = 0; /* 2^63 values of 64 bits fit */
    for (int64_t i = 0; i < n; i++)
        sum += is_signed ? (__int128)((const int64_t *)data)[i] : (__int128)((const uint64_t *)data)[i];
    fv__sum_add_integer(&m->sum.sum, sum < 0, sum < 0 ? -(unsigned __int128)sum : (unsigned __int128)sum);
    for (int64_t i = 0; squares && i < n; i++) {
        int64_t  value = ((const int64_t *)data)[i];
        uint64_t size = is_signed && value < 0 ? -(uint64_t)value : (uint64_t)value;
        fv__sum_add_integer(&m->squares.sum, false, (unsigned __int128)size * size);
    }
}

static inline void fv__moments_add(fv_moments *m, const fv_block *block, bool squares) {
    int64_t n = block->region.ndim ? block->region.size[block->region.ndim - 1] : 1;
    fv_rows rows;
    for (fv__rows_begin(&rows, &block->region); fv__rows_next(&rows);) {
        const void *data = fv__block_at(block, rows.position);
        m->count += n;
        switch (block->dtype) {
        case FV_BOOL:
        case FV_UINT8: fv__moments_uint8(m, data, n, squares); break;
        case FV_INT8: fv__moments_int8(m, data, n, squares); break;
        case FV_UINT16: fv__moments_uint16(m, data, n, squares); break;
        case FV_INT16: fv__moments_int16(m, data, n, squares); break;
        case FV_UINT32: fv__moments_uint32(m, data, n, squares); break;
        case FV_INT32: fv__moments_int32(m, data, n, squares); break;
        case FV_UINT64:
        case FV_INT64: fv__moments_wide(m, data, n, block->dtype == FV_INT64, squares); break;
        case FV_FLOAT32: fv__sum_add_floats(&m->sum.sum, squares ? &m->squares.sum : NULL, data, n); break;
        default: fv__sum_add_doubles(&m->sum.sum, squares ? &m->squares.sum : NULL, data, n); break;
        }
    }
}

/* A run of a pass whose partial is one fv_moments. */
static inline fv_status fv__moments_run(fv_run *r, bool squares) {
    fv_moments *m = fv__bytes_append(r->partial, NULL, sizeof *m);
    fv__moments_init(m, r->in[0]->dtype);
    fv__moments_add(m, r->in[0], squares);
    return FV_OK;
}

#endif
