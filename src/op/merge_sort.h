/* A stable sort for kernels, which must not allocate: it takes room for as many elements as there are. before(a, b) tells whether
 * b must come before a; it is inlined. */
#ifndef FV_MERGE_SORT_H
#define FV_MERGE_SORT_H

#include "base/base.h"

#define FV_MERGE_SORT(name, type, before)                                                                                        \
    static void name(type *data, type *room, int64_t n) {                                                                        \
        for (int64_t i = 1; i < n; i++) { /* short stretches by insertion */                                                     \
            type    one = data[i];                                                                                               \
            int64_t k = i, first = i & ~(int64_t)7;                                                                              \
            for (; k > first && before(&data[k - 1], &one); k--) data[k] = data[k - 1];                                          \
            data[k] = one;                                                                                                       \
        }                                                                                                                        \
        type *from = data, *to = room;                                                                                           \
        for (int64_t width = 8; width < n; width *= 2) {                                                                         \
            for (int64_t start = 0; start < n; start += 2 * width) {                                                             \
                int64_t a = start, middle = FV_MIN(start + width, n), b = middle, end = FV_MIN(start + 2 * width, n);            \
                for (int64_t k = start; k < end; k++)                                                                            \
                    to[k] = b == end || (a < middle && !before(&from[a], &from[b])) ? from[a++] : from[b++];                     \
            }                                                                                                                    \
            type *swap = from;                                                                                                   \
            from = to;                                                                                                           \
            to = swap;                                                                                                           \
        }                                                                                                                        \
        if (from != data) memcpy(data, from, (size_t)n * sizeof *data);                                                          \
    }

#endif
