/* Values as whole numbers in the same order, so that one kernel serves all types: uint32_t for values of up to 32 bits, uint64_t
 * for the others (or for 32-bit integers too, where the greatest key must stay free). nan is higher than infinity, -0 is 0.
 */
#ifndef FV_KEYS_H
#define FV_KEYS_H

#include "base/base.h"
#include <fovea/image.h>

static inline uint32_t fv__key_f32(float x) {
    uint32_t bits;
    if (x != x) return UINT32_MAX - 1;
    x += 0.0f;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}
static inline uint64_t fv__key_f64(double x) {
    uint64_t bits;
    if (x != x) return UINT64_MAX - 1;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | 0x8000000000000000u;
}
static inline float fv__key_to_f32(uint32_t key) {
    uint32_t bits = key >> 31 ? key & 0x7fffffffu : ~key;
    float    x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline double fv__key_to_f64(uint64_t key) {
    uint64_t bits = key >> 63 ? key & 0x7fffffffffffffffu : ~key;
    double   x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define FV__KEYS(KEY, type, expression)                                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                                                            \
        type x = ((const type *)from)[i * stride];                                                                               \
        ((KEY *)to)[i] = (KEY)(expression);                                                                                      \
    }                                                                                                                            \
    break;
/* n keys from n values that lie stride apart; wide: as uint64_t. */
static inline void fv__keys_load(void *restrict to, bool wide, const void *restrict from, fv_dtype dtype, int64_t stride,
                                 int64_t n) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: FV__KEYS(uint32_t, uint8_t, x)
    case FV_INT8: FV__KEYS(uint32_t, int8_t, x + 128)
    case FV_UINT16: FV__KEYS(uint32_t, uint16_t, x)
    case FV_INT16: FV__KEYS(uint32_t, int16_t, x + 32768)
    case FV_FLOAT32:
        if (stride == 1) {
            for (int64_t i = 0; i < n; i++) ((uint32_t *)to)[i] = fv__key_f32(((const float *)from)[i]);
            return;
        }
        FV__KEYS(uint32_t, float, fv__key_f32(x))
    case FV_UINT32:
        if (wide) {
            FV__KEYS(uint64_t, uint32_t, x)
        }
        FV__KEYS(uint32_t, uint32_t, x)
    case FV_INT32:
        if (wide) {
            FV__KEYS(uint64_t, int32_t, (uint32_t)x ^ 0x80000000u)
        }
        FV__KEYS(uint32_t, int32_t, (uint32_t)x ^ 0x80000000u)
    case FV_UINT64: FV__KEYS(uint64_t, uint64_t, x)
    case FV_INT64: FV__KEYS(uint64_t, int64_t, (uint64_t)x ^ 0x8000000000000000u)
    default: FV__KEYS(uint64_t, double, fv__key_f64(x))
    }
}
#undef FV__KEYS

/* One value back from its key. */
static inline void fv__key_store(void *to, fv_dtype dtype, uint64_t key) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: *(uint8_t *)to = (uint8_t)key; break;
    case FV_INT8: *(int8_t *)to = (int8_t)((int64_t)key - 128); break;
    case FV_UINT16: *(uint16_t *)to = (uint16_t)key; break;
    case FV_INT16: *(int16_t *)to = (int16_t)((int64_t)key - 32768); break;
    case FV_UINT32: *(uint32_t *)to = (uint32_t)key; break;
    case FV_INT32: *(int32_t *)to = (int32_t)((uint32_t)key ^ 0x80000000u); break;
    case FV_FLOAT32: *(float *)to = fv__key_to_f32((uint32_t)key); break;
    case FV_UINT64: *(uint64_t *)to = key; break;
    case FV_INT64: *(int64_t *)to = (int64_t)(key ^ 0x8000000000000000u); break;
    default: *(double *)to = fv__key_to_f64(key); break;
    }
}

#endif
