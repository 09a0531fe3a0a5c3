/* An order of frames by chance, the same for frames and for their positions. */
#ifndef FV_FRAME_ORDER_H
#define FV_FRAME_ORDER_H

#include "op/random.h"

/* Which of n frames comes at place i: a Feistel cipher of four rounds on the least even number of bits that has room for n, gone
 * through until it gives a number below n. */
static inline int64_t fv__frame_order(int64_t i, int64_t n, int64_t seed) {
    int half = 1;
    while (half < 31 && ((int64_t)1 << 2 * half) < n) half++;
    uint64_t mask = ((uint64_t)1 << half) - 1, at = (uint64_t)i;
    do {
        uint64_t left = at >> half, right = at & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t next = left ^ (fv__mix(fv__mix((uint64_t)seed * 4 + round) + right) & mask);
            left = right;
            right = next;
        }
        at = left << half | right;
    } while (at >= (uint64_t)n);
    return (int64_t)at;
}

#endif
