/* Vectors of unsigned lanes with the two operations that distances need: maximum, and subtraction that stops at zero.
 * fv__u8s, fv__u16s and fv__u32s are FV_VECTOR_BYTES wide and may lie at any address.
 */
#ifndef FV_LANES_H
#define FV_LANES_H

#include "base/isa.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

typedef uint8_t  fv__u8s __attribute__((vector_size(FV_VECTOR_BYTES), aligned(1), may_alias));
typedef uint16_t fv__u16s __attribute__((vector_size(FV_VECTOR_BYTES), aligned(2), may_alias));
typedef uint32_t fv__u32s __attribute__((vector_size(FV_VECTOR_BYTES), aligned(4), may_alias));

#define FV_LANES_GENERIC(type, name)                                                                                             \
    static inline type name##_max(type a, type b) {                                                                              \
        type m = (type)(a > b);                                                                                                  \
        return (a & m) | (b & ~m);                                                                                               \
    }                                                                                                                            \
    static inline type name##_less(type a, type b) { return (a - b) & (type)(a > b); }

#if defined(FV_ISA_avx512)
static inline fv__u8s  fv__u8s_max(fv__u8s a, fv__u8s b) { return (fv__u8s)_mm512_max_epu8((__m512i)a, (__m512i)b); }
static inline fv__u8s  fv__u8s_less(fv__u8s a, fv__u8s b) { return (fv__u8s)_mm512_subs_epu8((__m512i)a, (__m512i)b); }
static inline fv__u16s fv__u16s_max(fv__u16s a, fv__u16s b) { return (fv__u16s)_mm512_max_epu16((__m512i)a, (__m512i)b); }
static inline fv__u16s fv__u16s_less(fv__u16s a, fv__u16s b) { return (fv__u16s)_mm512_subs_epu16((__m512i)a, (__m512i)b); }
#elif defined(FV_ISA_avx2)
static inline fv__u8s  fv__u8s_max(fv__u8s a, fv__u8s b) { return (fv__u8s)_mm256_max_epu8((__m256i)a, (__m256i)b); }
static inline fv__u8s  fv__u8s_less(fv__u8s a, fv__u8s b) { return (fv__u8s)_mm256_subs_epu8((__m256i)a, (__m256i)b); }
static inline fv__u16s fv__u16s_max(fv__u16s a, fv__u16s b) { return (fv__u16s)_mm256_max_epu16((__m256i)a, (__m256i)b); }
static inline fv__u16s fv__u16s_less(fv__u16s a, fv__u16s b) { return (fv__u16s)_mm256_subs_epu16((__m256i)a, (__m256i)b); }
#elif defined(__SSE2__)
static inline fv__u8s  fv__u8s_max(fv__u8s a, fv__u8s b) { return (fv__u8s)_mm_max_epu8((__m128i)a, (__m128i)b); }
static inline fv__u8s  fv__u8s_less(fv__u8s a, fv__u8s b) { return (fv__u8s)_mm_subs_epu8((__m128i)a, (__m128i)b); }
static inline fv__u16s fv__u16s_less(fv__u16s a, fv__u16s b) { return (fv__u16s)_mm_subs_epu16((__m128i)a, (__m128i)b); }
static inline fv__u16s fv__u16s_max(fv__u16s a, fv__u16s b) { return fv__u16s_less(a, b) + b; }
#else
FV_LANES_GENERIC(fv__u8s, fv__u8s)
FV_LANES_GENERIC(fv__u16s, fv__u16s)
#endif
FV_LANES_GENERIC(fv__u32s, fv__u32s)

#endif
