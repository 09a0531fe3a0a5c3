/* An image seen through the axes of a result. */
#include "exec/spread.h"
#include <string.h>

fv_spread fv__spread_of(const fv_block *block, const fv_matching *matching, const fv_region *region) {
    fv_region in = fv__matched_region(matching, region);
    fv_spread spread = { .region = *region, .size = fv_dtype_size(block->dtype), .data = fv__block_at(block, in.start) };
    for (int d = 0; d < region->ndim; d++) spread.stride[d] = matching->from[d] < 0 ? 0 : block->stride[matching->from[d]];
    return spread;
}

const void *fv__spread_at(const fv_spread *spread, const int64_t *position) {
    int64_t offset = 0;
    for (int d = 0; d < spread->region.ndim; d++) offset += (position[d] - spread->region.start[d]) * spread->stride[d];
    return spread->data + offset * (int64_t)spread->size;
}

int fv__spread_run(const int64_t *stride, const fv_region *region, int least) {
    int64_t next = 1;
    int     first = region->ndim;
    while (first > least && (region->size[first - 1] == 1 || stride[first - 1] == next)) next *= region->size[--first];
    return first;
}

int64_t fv__spread_length(const fv_region *region, int first) {
    int64_t length = 1;
    for (int d = first; d < region->ndim; d++) length *= region->size[d];
    return length;
}

/* The voxels of a row, each W times, as those of a mask for each colour. W is a number where loops are to be unrolled. */
#define REPEAT(W)                                                                                                                \
    for (int64_t i = 0; i < count; i++) {                                                                                        \
        for (int64_t k = 0; k < (W); k++) place[i * (W) + k] = row[i * across];                                                  \
    }

/* Stretches along the last axis, one after the other; `at` counts in the axes of the run. */
#define LAY_OUT(TYPE)                                                                                                            \
    {                                                                                                                            \
        TYPE *restrict place = to;                                                                                               \
        while (n > 0) {                                                                                                          \
            const TYPE *restrict row = (const TYPE *)from + offset;                                                              \
            int64_t part = FV_MIN(size[last] - at[last], n), count = 0;                                                          \
            if (pixels && !at[last]) count = FV_MIN(size[last - 1] - at[last - 1], n / size[last]);                              \
            if (count > 1) {                                                                                                     \
                if (size[last] == 2)                                                                                             \
                    REPEAT(2)                                                                                                    \
                else if (size[last] == 3)                                                                                        \
                    REPEAT(3)                                                                                                    \
                else if (size[last] == 4)                                                                                        \
                    REPEAT(4)                                                                                                    \
                else                                                                                                             \
                    REPEAT(size[last])                                                                                           \
                part = count * size[last];                                                                                       \
                offset += (count - 1) * across;                                                                                  \
                at[last - 1] += count - 1;                                                                                       \
                at[last] = size[last];                                                                                           \
            } else {                                                                                                             \
                for (int64_t i = 0; i < part; i++) place[i] = row[i * step];                                                     \
                offset += part * step;                                                                                           \
                at[last] += part;                                                                                                \
            }                                                                                                                    \
            place += part;                                                                                                       \
            n -= part;                                                                                                           \
            for (int d = last; d > s->first && at[d] == size[d]; d--) {                                                          \
                offset += s->stride[d - 1] - size[d] * s->stride[d];                                                             \
                at[d] = 0;                                                                                                       \
                at[d - 1]++;                                                                                                     \
            }                                                                                                                    \
        }                                                                                                                        \
        return;                                                                                                                  \
    }

void fv__spread_strip(const fv_spread *s, const void *from, int64_t done, int64_t n, void *to) {
    const int64_t *size = s->region.size;
    int            last = s->region.ndim - 1;
    int64_t        at[FV_MAX_DIMS], offset = 0, step = s->stride[last], across = last ? s->stride[last - 1] : 0;
    bool           pixels = last > s->first && step == 0;
    for (int d = last; d >= s->first; d--) {
        at[d] = d == s->first ? done : done % size[d];
        done /= size[d];
        offset += at[d] * s->stride[d];
    }
    switch (s->size) {
    case 1: LAY_OUT(uint8_t)
    case 2: LAY_OUT(uint16_t)
    case 4: LAY_OUT(uint32_t)
    default: LAY_OUT(uint64_t)
    }
}
