/* Element type conversion and byte look-up. */
#include "base/isa.h"
#include "op/kernels.h"
#include <math.h>

/* Saturating casts of a value v of any arithmetic type to an integer type with limits lo and hi. The comparisons are made
 * in a type that holds both sides exactly, so that nothing wraps. */
#define CAST_FROM_FLOAT(type, lo, hi, below, v)                                                                                  \
    ((v) != (v) ? 0 : (v) < (lo) ? (type)(lo) : (v) >= (below) ? (type)(hi) : (type)(v))

#define LOOP(TO, FROM, EXPRESSION)                                                                                               \
    {                                                                                                                            \
        TO *restrict t = to;                                                                                                     \
        const FROM *restrict f = from;                                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                                                        \
            FROM v = f[i];                                                                                                       \
            t[i] = (TO)(EXPRESSION);                                                                                             \
        }                                                                                                                        \
        return;                                                                                                                  \
    }

#define CLAMP(LO, HI) (v < (LO) ? (LO) : v > (HI) ? (HI) : v)
#define CLAMP_TOP(HI) (v > (HI) ? (HI) : v)
#define CLAMP_BOTTOM(LO) (v < (LO) ? (LO) : v)

static void from_bool(void *restrict to, fv_dtype to_type, const void *restrict from, int64_t n) {
    switch (to_type) {
    case FV_BOOL:
    case FV_UINT8:
    case FV_INT8: LOOP(uint8_t, uint8_t, v)
    case FV_UINT16:
    case FV_INT16: LOOP(uint16_t, uint8_t, v)
    case FV_UINT32:
    case FV_INT32: LOOP(uint32_t, uint8_t, v)
    case FV_UINT64:
    case FV_INT64: LOOP(uint64_t, uint8_t, v)
    case FV_FLOAT32: LOOP(float, uint8_t, v)
    case FV_FLOAT64: LOOP(double, uint8_t, v)
    default: return;
    }
}

#define FROM_UNSIGNED(NAME, FROM, BITS)                                                                                          \
    static void NAME(void *restrict to, fv_dtype to_type, const void *restrict from, int64_t n) {                                \
        switch (to_type) {                                                                                                       \
        case FV_BOOL: LOOP(uint8_t, FROM, v != 0)                                                                                \
        case FV_UINT8: LOOP(uint8_t, FROM, CLAMP_TOP(UINT8_MAX))                                                                 \
        case FV_INT8: LOOP(int8_t, FROM, CLAMP_TOP(INT8_MAX))                                                                    \
        case FV_UINT16: LOOP(uint16_t, FROM, (BITS) > 16 ? CLAMP_TOP((FROM)UINT16_MAX) : v)                                      \
        case FV_INT16: LOOP(int16_t, FROM, (BITS) > 8 ? CLAMP_TOP((FROM)INT16_MAX) : v)                                          \
        case FV_UINT32: LOOP(uint32_t, FROM, (BITS) > 32 ? CLAMP_TOP((FROM)UINT32_MAX) : v)                                      \
        case FV_INT32: LOOP(int32_t, FROM, (BITS) > 16 ? CLAMP_TOP((FROM)INT32_MAX) : v)                                         \
        case FV_UINT64: LOOP(uint64_t, FROM, v)                                                                                  \
        case FV_INT64: LOOP(int64_t, FROM, (BITS) > 32 ? CLAMP_TOP((FROM)INT64_MAX) : v)                                         \
        case FV_FLOAT32: LOOP(float, FROM, v)                                                                                    \
        case FV_FLOAT64: LOOP(double, FROM, v)                                                                                   \
        default: return;                                                                                                         \
        }                                                                                                                        \
    }

#define FROM_SIGNED(NAME, FROM, BITS)                                                                                            \
    static void NAME(void *restrict to, fv_dtype to_type, const void *restrict from, int64_t n) {                                \
        switch (to_type) {                                                                                                       \
        case FV_BOOL: LOOP(uint8_t, FROM, v != 0)                                                                                \
        case FV_UINT8: LOOP(uint8_t, FROM, (BITS) > 8 ? CLAMP(0, (FROM)UINT8_MAX) : CLAMP_BOTTOM(0))                             \
        case FV_INT8: LOOP(int8_t, FROM, CLAMP(INT8_MIN, INT8_MAX))                                                              \
        case FV_UINT16: LOOP(uint16_t, FROM, (BITS) > 16 ? CLAMP(0, (FROM)UINT16_MAX) : CLAMP_BOTTOM(0))                         \
        case FV_INT16: LOOP(int16_t, FROM, (BITS) > 16 ? CLAMP((FROM)INT16_MIN, (FROM)INT16_MAX) : v)                            \
        case FV_UINT32: LOOP(uint32_t, FROM, (BITS) > 32 ? CLAMP(0, (FROM)UINT32_MAX) : CLAMP_BOTTOM(0))                         \
        case FV_INT32: LOOP(int32_t, FROM, (BITS) > 32 ? CLAMP((FROM)INT32_MIN, (FROM)INT32_MAX) : v)                            \
        case FV_UINT64: LOOP(uint64_t, FROM, CLAMP_BOTTOM(0))                                                                    \
        case FV_INT64: LOOP(int64_t, FROM, v)                                                                                    \
        case FV_FLOAT32: LOOP(float, FROM, v)                                                                                    \
        case FV_FLOAT64: LOOP(double, FROM, v)                                                                                   \
        default: return;                                                                                                         \
        }                                                                                                                        \
    }

#define FROM_FLOAT(NAME, FROM)                                                                                                   \
    static void NAME(void *restrict to, fv_dtype to_type, const void *restrict from, int64_t n) {                                \
        switch (to_type) {                                                                                                       \
        case FV_BOOL: LOOP(uint8_t, FROM, v != 0)                                                                                \
        case FV_UINT8: LOOP(uint8_t, FROM, CAST_FROM_FLOAT(uint8_t, 0, UINT8_MAX, 256, v))                                       \
        case FV_INT8: LOOP(int8_t, FROM, CAST_FROM_FLOAT(int8_t, INT8_MIN, INT8_MAX, 128, v))                                    \
        case FV_UINT16: LOOP(uint16_t, FROM, CAST_FROM_FLOAT(uint16_t, 0, UINT16_MAX, 65536, v))                                 \
        case FV_INT16: LOOP(int16_t, FROM, CAST_FROM_FLOAT(int16_t, INT16_MIN, INT16_MAX, 32768, v))                             \
        case FV_UINT32: LOOP(uint32_t, FROM, CAST_FROM_FLOAT(uint32_t, 0, UINT32_MAX, 0x1p32f, v))                               \
        case FV_INT32: LOOP(int32_t, FROM, CAST_FROM_FLOAT(int32_t, INT32_MIN, INT32_MAX, 0x1p31f, v))                           \
        case FV_UINT64: LOOP(uint64_t, FROM, CAST_FROM_FLOAT(uint64_t, 0, UINT64_MAX, 0x1p64f, v))                               \
        case FV_INT64: LOOP(int64_t, FROM, CAST_FROM_FLOAT(int64_t, INT64_MIN, INT64_MAX, 0x1p63f, v))                           \
        case FV_FLOAT32: LOOP(float, FROM, v)                                                                                    \
        case FV_FLOAT64: LOOP(double, FROM, v)                                                                                   \
        default: return;                                                                                                         \
        }                                                                                                                        \
    }

FROM_UNSIGNED(from_uint8, uint8_t, 8)
FROM_UNSIGNED(from_uint16, uint16_t, 16)
FROM_UNSIGNED(from_uint32, uint32_t, 32)
FROM_UNSIGNED(from_uint64, uint64_t, 64)
FROM_SIGNED(from_int8, int8_t, 8)
FROM_SIGNED(from_int16, int16_t, 16)
FROM_SIGNED(from_int32, int32_t, 32)
FROM_SIGNED(from_int64, int64_t, 64)
FROM_FLOAT(from_float32, float)
FROM_FLOAT(from_float64, double)

static void convert(void *restrict to, fv_dtype to_type, const void *restrict from, fv_dtype from_type, int64_t n) {
    if (to_type == from_type) {
        memcpy(to, from, (size_t)n * fv_dtype_size(to_type));
        return;
    }
    switch (from_type) {
    case FV_BOOL: from_bool(to, to_type, from, n); return;
    case FV_UINT8: from_uint8(to, to_type, from, n); return;
    case FV_INT8: from_int8(to, to_type, from, n); return;
    case FV_UINT16: from_uint16(to, to_type, from, n); return;
    case FV_INT16: from_int16(to, to_type, from, n); return;
    case FV_UINT32: from_uint32(to, to_type, from, n); return;
    case FV_INT32: from_int32(to, to_type, from, n); return;
    case FV_UINT64: from_uint64(to, to_type, from, n); return;
    case FV_INT64: from_int64(to, to_type, from, n); return;
    case FV_FLOAT32: from_float32(to, to_type, from, n); return;
    case FV_FLOAT64: from_float64(to, to_type, from, n); return;
    default: return;
    }
}

#define LOOKUP(KEY, TYPE)                                                                                                        \
    {                                                                                                                            \
        const TYPE *restrict values = table;                                                                                     \
        const KEY *restrict f = from;                                                                                            \
        TYPE *restrict t = to;                                                                                                   \
        for (int64_t i = 0; i < n; i++) t[i] = values[f[i]];                                                                     \
        return;                                                                                                                  \
    }
#define LOOKUPS(NAME, KEY)                                                                                                       \
    static void NAME(void *restrict to, const void *restrict from, int64_t n, const void *table, size_t size) {                  \
        switch (size) {                                                                                                          \
        case 1: LOOKUP(KEY, uint8_t)                                                                                             \
        case 2: LOOKUP(KEY, uint16_t)                                                                                            \
        case 4: LOOKUP(KEY, uint32_t)                                                                                            \
        case 8: LOOKUP(KEY, uint64_t)                                                                                            \
        default: return;                                                                                                         \
        }                                                                                                                        \
    }
LOOKUPS(look_up_1, uint8_t)
LOOKUPS(look_up_2, uint16_t)

static void lookup(void *restrict to, const void *restrict from, size_t key, int64_t n, const void *table, size_t size) {
    if (key == 1)
        look_up_1(to, from, n, table, size);
    else
        look_up_2(to, from, n, table, size);
}

const fv_kernels FV_ISA_NAME(fv_kernels) = { .convert = convert, .lookup = lookup };
