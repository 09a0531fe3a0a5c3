/* The value that would be at a place if all were sorted, for floats and doubles without nan.
 *
 *     FV_FIND_PLACE(find_place, float)
 *     float lower_middle = find_place(values, n, (n - 1) / 2);
 *
 * Reorders the values: none before the place is larger than it, and none after it is less (C. A. R. Hoare, Algorithm 65: find).
 */
#ifndef FV_FIND_PLACE_H
#define FV_FIND_PLACE_H

#include <stdint.h>

#define FV_FIND_PLACE(NAME, TYPE)                                                                                                \
    static TYPE NAME(TYPE *values, int64_t count, int64_t place) {                                                               \
        for (int64_t low = 0, high = count - 1; low < high;) {                                                                   \
            TYPE    pivot = values[(low + high) / 2];                                                                            \
            int64_t i = low, j = high;                                                                                           \
            while (i <= j) {                                                                                                     \
                while (values[i] < pivot) i++;                                                                                   \
                while (pivot < values[j]) j--;                                                                                   \
                if (i > j) break;                                                                                                \
                TYPE other = values[i];                                                                                          \
                values[i++] = values[j];                                                                                         \
                values[j--] = other;                                                                                             \
            }                                                                                                                    \
            if (place <= j)                                                                                                      \
                high = j;                                                                                                        \
            else if (place >= i)                                                                                                 \
                low = i;                                                                                                         \
            else                                                                                                                 \
                break;                                                                                                           \
        }                                                                                                                        \
        return values[place];                                                                                                    \
    }

#endif
