/* Vectors of the instruction set that the including file is compiled for, and the few things GNU vector extensions lack:
 * unaligned access, a fused multiply-add with the same bits on every processor, transposition in registers, minimum and maximum,
 * and subtraction that stops at zero.
 *
 * LANES of float is FV_F32_LANES (4, 8, 16), of double FV_F64_LANES (2, 4, 8).
 */
#ifndef FV_VECTORS_H
#define FV_VECTORS_H

#include "base/isa.h"
#include <math.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define FV_INLINE static inline __attribute__((always_inline))
#define FV_F32_LANES (FV_VECTOR_BYTES / 4)
#define FV_F64_LANES (FV_VECTOR_BYTES / 8)

typedef float  fv_f32v __attribute__((vector_size(FV_VECTOR_BYTES)));
typedef double fv_f64v __attribute__((vector_size(FV_VECTOR_BYTES)));
typedef float  fv_f32v_unaligned __attribute__((vector_size(FV_VECTOR_BYTES), aligned(4), may_alias));
typedef double fv_f64v_unaligned __attribute__((vector_size(FV_VECTOR_BYTES), aligned(8), may_alias));

FV_INLINE fv_f32v fv_f32v_load(const float *p) { return *(const fv_f32v_unaligned *)p; }
FV_INLINE fv_f64v fv_f64v_load(const double *p) { return *(const fv_f64v_unaligned *)p; }
FV_INLINE void    fv_f32v_store(float *p, fv_f32v v) { *(fv_f32v_unaligned *)p = v; }
FV_INLINE void    fv_f64v_store(double *p, fv_f64v v) { *(fv_f64v_unaligned *)p = v; }

/* All lanes the same. (Adding a scalar to zero would really be added.) */
#if FV_VECTOR_BYTES == 16
FV_INLINE fv_f32v fv_f32v_splat(float a) { return (fv_f32v){ a, a, a, a }; }
FV_INLINE fv_f64v fv_f64v_splat(double a) { return (fv_f64v){ a, a }; }
#elif FV_VECTOR_BYTES == 32
FV_INLINE fv_f32v fv_f32v_splat(float a) { return (fv_f32v){ a, a, a, a, a, a, a, a }; }
FV_INLINE fv_f64v fv_f64v_splat(double a) { return (fv_f64v){ a, a, a, a }; }
#else
FV_INLINE fv_f32v fv_f32v_splat(float a) { return (fv_f32v){ a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a }; }
FV_INLINE fv_f64v fv_f64v_splat(double a) { return (fv_f64v){ a, a, a, a, a, a, a, a }; }
#endif

/* ---------------------------------------------------------------- a * b + c, rounded once */

#if defined(FV_ISA_avx512)
FV_INLINE fv_f32v fv_f32v_fma(fv_f32v a, fv_f32v b, fv_f32v c) { return _mm512_fmadd_ps(a, b, c); }
FV_INLINE fv_f64v fv_f64v_fma(fv_f64v a, fv_f64v b, fv_f64v c) { return _mm512_fmadd_pd(a, b, c); }
#elif defined(FV_ISA_avx2)
FV_INLINE fv_f32v fv_f32v_fma(fv_f32v a, fv_f32v b, fv_f32v c) { return _mm256_fmadd_ps(a, b, c); }
FV_INLINE fv_f64v fv_f64v_fma(fv_f64v a, fv_f64v b, fv_f64v c) { return _mm256_fmadd_pd(a, b, c); }
#else
FV_INLINE fv_f64v fv_f64v_fma(fv_f64v a, fv_f64v b, fv_f64v c) {
    for (int l = 0; l < FV_F64_LANES; l++) c[l] = fma(a[l], b[l], c[l]);
    return c;
}
#if defined(__FP_FAST_FMAF)
FV_INLINE fv_f32v fv_f32v_fma(fv_f32v a, fv_f32v b, fv_f32v c) {
    for (int l = 0; l < FV_F32_LANES; l++) c[l] = fmaf(a[l], b[l], c[l]);
    return c;
}
#else
/* The product of two floats is exact in double. Their sum with c is made round-to-odd (the last bit tells that something was
 * cut off), so that the final rounding to float is that of the exact value. */
typedef double    fv__wide __attribute__((vector_size(2 * FV_VECTOR_BYTES)));
typedef int64_t   fv__wide_bits __attribute__((vector_size(2 * FV_VECTOR_BYTES)));
FV_INLINE fv_f32v fv_f32v_fma(fv_f32v a, fv_f32v b, fv_f32v c) {
    fv__wide      product = __builtin_convertvector(a, fv__wide) * __builtin_convertvector(b, fv__wide);
    fv__wide      term = __builtin_convertvector(c, fv__wide);
    fv__wide      sum = product + term, back = sum - product;
    fv__wide      error = (product - (sum - back)) + (term - back);
    fv__wide_bits inexact = (error < 0) | (error > 0), bits = (fv__wide_bits)sum;
    fv__wide_bits outward = (error > 0) == (sum > 0); /* -1 where the exact value is further from zero than the sum */
    fv__wide_bits even = (bits & 1) - 1;              /* -1 where the last bit is 0 */
    bits += inexact & even & ((outward & 2) - 1);
    return __builtin_convertvector((fv__wide)bits, fv_f32v);
}
#endif
#endif

/* ---------------------------------------------------------------- transposition of LANES vectors */

#if FV_F32_LANES == 4
#define FV__LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define FV__HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define FV__PAIR_LOW(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define FV__PAIR_HIGH(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#define FV__DOUBLE_LOW(a, b) __builtin_shufflevector(a, b, 0, 2)
#define FV__DOUBLE_HIGH(a, b) __builtin_shufflevector(a, b, 1, 3)
#elif FV_F32_LANES == 8
#define FV__LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define FV__HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define FV__PAIR_LOW(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define FV__PAIR_HIGH(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define FV__DOUBLE_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define FV__DOUBLE_HIGH(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#else
#define FV__LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define FV__HIGH(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define FV__PAIR_LOW(a, b) __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define FV__PAIR_HIGH(a, b) __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define FV__DOUBLE_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define FV__DOUBLE_HIGH(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#endif

/* Exchanges 16-byte units between vectors i and i + step of the group: what remains after the transposition inside them. */
#if FV_VECTOR_BYTES == 32
#define FV__UNITS_1(a, b, low, high)                                                                                             \
    do {                                                                                                                         \
        fv_f64v x_ = (fv_f64v)(a), y_ = (fv_f64v)(b);                                                                            \
        low = (__typeof__(low))__builtin_shufflevector(x_, y_, 0, 1, 4, 5);                                                      \
        high = (__typeof__(high))__builtin_shufflevector(x_, y_, 2, 3, 6, 7);                                                    \
    } while (0)
#elif FV_VECTOR_BYTES == 64
#define FV__UNITS_1(a, b, low, high)                                                                                             \
    do {                                                                                                                         \
        fv_f64v x_ = (fv_f64v)(a), y_ = (fv_f64v)(b);                                                                            \
        low = (__typeof__(low))__builtin_shufflevector(x_, y_, 0, 1, 8, 9, 4, 5, 12, 13);                                        \
        high = (__typeof__(high))__builtin_shufflevector(x_, y_, 2, 3, 10, 11, 6, 7, 14, 15);                                    \
    } while (0)
#define FV__UNITS_2(a, b, low, high)                                                                                             \
    do {                                                                                                                         \
        fv_f64v x_ = (fv_f64v)(a), y_ = (fv_f64v)(b);                                                                            \
        low = (__typeof__(low))__builtin_shufflevector(x_, y_, 0, 1, 2, 3, 8, 9, 10, 11);                                        \
        high = (__typeof__(high))__builtin_shufflevector(x_, y_, 4, 5, 6, 7, 12, 13, 14, 15);                                    \
    } while (0)
#endif

/* units: elements of one 16-byte unit, 4 or 2. Vectors i and i + units hold neighbouring units of one column group. */
#if FV_VECTOR_BYTES == 16
#define FV__EXCHANGE_UNITS(v, units)
#else
#if FV_VECTOR_BYTES == 64
#define FV__EXCHANGE_FAR(v, units)                                                                                               \
    _Pragma("GCC unroll 16") for (int i_ = 0; i_ < 2 * (units); i_++)                                                            \
        FV__UNITS_2(v[i_], v[i_ + 2 * (units)], v[i_], v[i_ + 2 * (units)]);
#else
#define FV__EXCHANGE_FAR(v, units)
#endif
#define FV__EXCHANGE_UNITS(v, units)                                                                                             \
    _Pragma("GCC unroll 16") for (int i_ = 0; i_ < FV_VECTOR_BYTES / 32; i_++)                                                   \
        _Pragma("GCC unroll 16") for (int j_ = i_ * 2 * (units); j_ < i_ * 2 * (units) + (units); j_++)                          \
            FV__UNITS_1(v[j_], v[j_ + (units)], v[j_], v[j_ + (units)]);                                                         \
    FV__EXCHANGE_FAR(v, units)
#endif

FV_INLINE void fv_f32v_transpose(fv_f32v v[FV_F32_LANES]) {
#pragma GCC    unroll 16
    for (int i = 0; i < FV_F32_LANES; i += 4) {
           fv_f32v a = FV__LOW(v[i], v[i + 1]), b = FV__HIGH(v[i], v[i + 1]);
           fv_f32v c = FV__LOW(v[i + 2], v[i + 3]), d = FV__HIGH(v[i + 2], v[i + 3]);
           v[i] = FV__PAIR_LOW(a, c);
           v[i + 1] = FV__PAIR_HIGH(a, c);
           v[i + 2] = FV__PAIR_LOW(b, d);
           v[i + 3] = FV__PAIR_HIGH(b, d);
    }
    FV__EXCHANGE_UNITS(v, 4)
}

FV_INLINE void fv_f64v_transpose(fv_f64v v[FV_F64_LANES]) {
#pragma GCC    unroll 16
    for (int i = 0; i < FV_F64_LANES; i += 2) {
           fv_f64v a = FV__DOUBLE_LOW(v[i], v[i + 1]), b = FV__DOUBLE_HIGH(v[i], v[i + 1]);
           v[i] = a;
           v[i + 1] = b;
    }
    FV__EXCHANGE_UNITS(v, 2)
}

/* ---------------------------------------------------------------- smaller and larger of integers */

typedef uint8_t  fv_u8v __attribute__((vector_size(FV_VECTOR_BYTES)));
typedef uint16_t fv_u16v __attribute__((vector_size(FV_VECTOR_BYTES)));
typedef uint32_t fv_u32v __attribute__((vector_size(FV_VECTOR_BYTES)));
typedef int32_t  fv_i32v __attribute__((vector_size(FV_VECTOR_BYTES)));
typedef int64_t  fv_i64v __attribute__((vector_size(FV_VECTOR_BYTES)));
typedef uint8_t  fv_u8v_unaligned __attribute__((vector_size(FV_VECTOR_BYTES), aligned(1), may_alias));
typedef uint16_t fv_u16v_unaligned __attribute__((vector_size(FV_VECTOR_BYTES), aligned(2), may_alias));
typedef uint32_t fv_u32v_unaligned __attribute__((vector_size(FV_VECTOR_BYTES), aligned(4), may_alias));
typedef int32_t  fv_i32v_unaligned __attribute__((vector_size(FV_VECTOR_BYTES), aligned(4), may_alias));
typedef int64_t  fv_i64v_unaligned __attribute__((vector_size(FV_VECTOR_BYTES), aligned(8), may_alias));

#define FV__GENERIC(V)                                                                                                           \
    FV_INLINE V V##_min(V a, V b) {                                                                                              \
        V less = (V)(a < b);                                                                                                     \
        return (a & less) | (b & ~less);                                                                                         \
    }                                                                                                                            \
    FV_INLINE V V##_max(V a, V b) {                                                                                              \
        V less = (V)(a < b);                                                                                                     \
        return (b & less) | (a & ~less);                                                                                         \
    }
#define FV__NATIVE(V, M, prefix, suffix)                                                                                         \
    FV_INLINE V V##_min(V a, V b) { return (V)prefix##_min_##suffix((M)a, (M)b); }                                               \
    FV_INLINE V V##_max(V a, V b) { return (V)prefix##_max_##suffix((M)a, (M)b); }
#if defined(FV_ISA_avx512)
FV__NATIVE(fv_u8v, __m512i, _mm512, epu8)
FV__NATIVE(fv_u16v, __m512i, _mm512, epu16)
FV__NATIVE(fv_i32v, __m512i, _mm512, epi32)
FV__NATIVE(fv_i64v, __m512i, _mm512, epi64)
#elif defined(FV_ISA_avx2)
FV__NATIVE(fv_u8v, __m256i, _mm256, epu8)
FV__NATIVE(fv_u16v, __m256i, _mm256, epu16)
FV__NATIVE(fv_i32v, __m256i, _mm256, epi32)
FV_INLINE fv_i64v fv_i64v_min(fv_i64v a, fv_i64v b) {
    return (fv_i64v)_mm256_blendv_epi8((__m256i)a, (__m256i)b, (__m256i)(a > b));
}
FV_INLINE fv_i64v fv_i64v_max(fv_i64v a, fv_i64v b) {
    return (fv_i64v)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)(a > b));
}
#elif defined(__SSE2__)
FV__NATIVE(fv_u8v, __m128i, _mm, epu8)
FV_INLINE fv_u16v fv_u16v_min(fv_u16v a, fv_u16v b) { return a - (fv_u16v)_mm_subs_epu16((__m128i)a, (__m128i)b); }
FV_INLINE fv_u16v fv_u16v_max(fv_u16v a, fv_u16v b) { return b + (fv_u16v)_mm_subs_epu16((__m128i)a, (__m128i)b); }
FV__GENERIC(fv_i32v)
FV__GENERIC(fv_i64v)
#else
FV__GENERIC(fv_u8v)
FV__GENERIC(fv_u16v)
FV__GENERIC(fv_i32v)
FV__GENERIC(fv_i64v)
#endif
FV__GENERIC(fv_u32v)

/* ---------------------------------------------------------------- what is left of a without b, at least 0 */

#if defined(FV_ISA_avx512)
FV_INLINE fv_u8v  fv_u8v_less(fv_u8v a, fv_u8v b) { return (fv_u8v)_mm512_subs_epu8((__m512i)a, (__m512i)b); }
FV_INLINE fv_u16v fv_u16v_less(fv_u16v a, fv_u16v b) { return (fv_u16v)_mm512_subs_epu16((__m512i)a, (__m512i)b); }
#elif defined(FV_ISA_avx2)
FV_INLINE fv_u8v  fv_u8v_less(fv_u8v a, fv_u8v b) { return (fv_u8v)_mm256_subs_epu8((__m256i)a, (__m256i)b); }
FV_INLINE fv_u16v fv_u16v_less(fv_u16v a, fv_u16v b) { return (fv_u16v)_mm256_subs_epu16((__m256i)a, (__m256i)b); }
#elif defined(__SSE2__)
FV_INLINE fv_u8v  fv_u8v_less(fv_u8v a, fv_u8v b) { return (fv_u8v)_mm_subs_epu8((__m128i)a, (__m128i)b); }
FV_INLINE fv_u16v fv_u16v_less(fv_u16v a, fv_u16v b) { return (fv_u16v)_mm_subs_epu16((__m128i)a, (__m128i)b); }
#else
FV_INLINE fv_u8v  fv_u8v_less(fv_u8v a, fv_u8v b) { return (a - b) & (fv_u8v)(a > b); }
FV_INLINE fv_u16v fv_u16v_less(fv_u16v a, fv_u16v b) { return (a - b) & (fv_u16v)(a > b); }
#endif
FV_INLINE fv_u32v fv_u32v_less(fv_u32v a, fv_u32v b) { return (a - b) & (fv_u32v)(a > b); }

#endif
