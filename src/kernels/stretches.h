/* Rows of label images as stretches of equal labels. */
#ifndef FV_STRETCHES_H
#define FV_STRETCHES_H

#include <fovea/image.h>

typedef struct fv_stretch {
    int64_t label, start, end;
} fv_stretch; /* voxels of one label in a row */

static inline uint64_t fv__eight_bytes(const void *place) {
    uint64_t word;
    memcpy(&word, place, sizeof word);
    return word;
}

/* Stretches of equal labels other than 0 in a row. Long ones are passed 16 bytes at a time. */
#define STRETCHES(name, type, bits)                                                                                              \
    static inline int64_t name(fv_stretch *to, const type *labels, int64_t n) {                                                  \
        enum { STEP = 16 / sizeof(type) };                                                                                       \
        const uint64_t each = ~(uint64_t)0 / (bits) ~(bits)0; /* a one in each label's place */                                  \
        int64_t        count = 0;                                                                                                \
        for (int64_t i = 0; i < n;) {                                                                                            \
            type     label = labels[i];                                                                                          \
            uint64_t same = each * (bits)label;                                                                                  \
            int64_t  start = i++;                                                                                                \
            while (i + STEP <= n && !((fv__eight_bytes(labels + i) ^ same) | (fv__eight_bytes(labels + i + STEP / 2) ^ same)))   \
                i += STEP;                                                                                                       \
            while (i < n && labels[i] == label) i++;                                                                             \
            if (label) to[count++] = (fv_stretch){ (int64_t)label, start, i };                                                   \
        }                                                                                                                        \
        return count;                                                                                                            \
    }
STRETCHES(fv__stretches_uint8, uint8_t, uint8_t)
STRETCHES(fv__stretches_int8, int8_t, uint8_t)
STRETCHES(fv__stretches_uint16, uint16_t, uint16_t)
STRETCHES(fv__stretches_int16, int16_t, uint16_t)
STRETCHES(fv__stretches_uint32, uint32_t, uint32_t)
STRETCHES(fv__stretches_int32, int32_t, uint32_t)
STRETCHES(fv__stretches_int64, int64_t, uint64_t)

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
