/* Voxels to bits: which of a row's values are not 0. */
#ifndef FV_BITS_H
#define FV_BITS_H

#include "base/base.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

static inline uint64_t fv__bits_pack(const uint8_t *bytes) { /* bit i: bytes[i] is not 0 */
#if defined(__AVX2__)
    __m256i  zero = _mm256_setzero_si256();
    uint32_t low = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)bytes), zero));
    uint32_t high = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(bytes + 32)), zero));
    return ~((uint64_t)high << 32 | low);
#elif defined(__SSE2__)
    uint64_t empty = 0;
    for (int i = 0; i < 4; i++)
        empty |= (uint64_t)(uint32_t)_mm_movemask_epi8(
                     _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(bytes + 16 * i)), _mm_setzero_si128()))
                 << (16 * i);
    return ~empty;
#else
    uint64_t word = 0;
    for (int i = 0; i < 64; i++) word |= (uint64_t)(bytes[i] != 0) << i;
    return word;
#endif
}

#define FV__NONZERO(type)                                                                                                        \
    if (stride == 1)                                                                                                             \
        for (int64_t i = 0; i < n; i++) bytes[i] = ((const type *)from)[i] != 0;                                                 \
    else                                                                                                                         \
        for (int64_t i = 0; i < n; i++) bytes[i] = ((const type *)from)[i * stride] != 0;                                        \
    break;

static inline void fv__bytes_set(uint8_t *restrict bytes, const void *restrict from, size_t size, int64_t stride, int64_t n) {
    switch (size) {
    case 1: FV__NONZERO(uint8_t)
    case 2: FV__NONZERO(uint16_t)
    case 4: FV__NONZERO(uint32_t)
    default: FV__NONZERO(uint64_t)
    }
}
#undef FV__NONZERO

static inline void fv__bits_row(uint64_t *bits, const uint8_t *from, size_t size, int64_t stride, int64_t n) {
    int64_t w = 0;
    if (size == 1 && stride == 1)
        for (; w < n / 64; w++) bits[w] = fv__bits_pack(from + 64 * w);
    for (; w * 64 < n; w++) {
        uint8_t bytes[64] = { 0 };
        fv__bytes_set(bytes, from + (int64_t)size * stride * 64 * w, size, stride, FV_MIN(64, n - 64 * w));
        bits[w] = fv__bits_pack(bytes);
    }
}

#endif
