/* Rows of label images as stretches of equal labels. */
#ifndef FV_STRETCHES_H
#define FV_STRETCHES_H

#include "kernels/bits.h"
#include <fovea/image.h>

typedef struct fv_stretch {
    int64_t label, start, end;
} fv_stretch; /* voxels of one label in a row */

/* Stretches of equal labels other than 0 in a row: where a label differs from the one before it becomes a bit, and bits are taken
 * one after another, which costs no guess of how long a stretch is. */
#define STRETCHES(name, type)                                                                                                    \
    static inline int64_t name(fv_stretch *to, const type *labels, int64_t n) {                                                  \
        int64_t count = 0, start = 0;                                                                                            \
        if (!n) return 0;                                                                                                        \
        for (int64_t from = 1; from < n; from += 64) {                                                                           \
            uint8_t       changes[64] = { 0 };                                                                                   \
            const type   *row = labels + from;                                                                                   \
            const int64_t some = FV_MIN(64, n - from);                                                                           \
            if (some == 64)                                                                                                      \
                for (int i = 0; i < 64; i++) changes[i] = row[i] != row[i - 1];                                                  \
            else                                                                                                                 \
                for (int64_t i = 0; i < some; i++) changes[i] = row[i] != row[i - 1];                                            \
            for (uint64_t bits = fv__bits_pack(changes); bits; bits &= bits - 1) {                                               \
                int64_t end = from + __builtin_ctzll(bits);                                                                      \
                to[count] = (fv_stretch){ (int64_t)labels[start], start, end };                                                  \
                count += labels[start] != 0;                                                                                     \
                start = end;                                                                                                     \
            }                                                                                                                    \
        }                                                                                                                        \
        to[count] = (fv_stretch){ (int64_t)labels[start], start, n };                                                            \
        return count + (labels[start] != 0);                                                                                     \
    }
STRETCHES(fv__stretches_uint8, uint8_t)
STRETCHES(fv__stretches_int8, int8_t)
STRETCHES(fv__stretches_uint16, uint16_t)
STRETCHES(fv__stretches_int16, int16_t)
STRETCHES(fv__stretches_uint32, uint32_t)
STRETCHES(fv__stretches_int32, int32_t)
STRETCHES(fv__stretches_int64, int64_t)

static inline int64_t fv__stretches(fv_stretch *to, fv_dtype dtype, const void *labels, int64_t n) {
    switch (dtype) {
    case FV_BOOL:
    case FV_UINT8: return fv__stretches_uint8(to, labels, n);
    case FV_INT8: return fv__stretches_int8(to, labels, n);
    case FV_UINT16: return fv__stretches_uint16(to, labels, n);
    case FV_INT16: return fv__stretches_int16(to, labels, n);
    case FV_UINT32: return fv__stretches_uint32(to, labels, n);
    case FV_INT32: return fv__stretches_int32(to, labels, n);
    default: return fv__stretches_int64(to, labels, n);
    }
}

#endif
