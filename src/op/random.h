/* Random numbers that are a function of seed and place alone, so that any part of an image can be made by itself.
 *
 * Integer arithmetic only: the bits are the same on every instruction set. */
#ifndef FV_RANDOM_H
#define FV_RANDOM_H

#include <stdint.h>

static inline uint64_t fv__mix(uint64_t h) { /* the finish of splitmix64 */
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

/* 64 random bits for a place; streams are independent of each other. */
static inline uint64_t fv__place_hash(uint64_t seed, uint64_t stream, int64_t z, int64_t y, int64_t x) {
    uint64_t h = fv__mix(seed + stream * 0x9e3779b97f4a7c15u);
    h = fv__mix(h + (uint64_t)z * 0xd1342543de82ef95u);
    h = fv__mix(h + (uint64_t)y * 0xaf251af3b0f025b5u);
    return fv__mix(h + (uint64_t)x * 0x9fb21c651e98df25u);
}

/* Number k of a sequence that belongs to a hash, above 0 and below 1. */
static inline double fv__uniform(uint64_t hash, uint64_t k) {
    return ((double)(fv__mix(hash + (k + 1) * 0x9e3779b97f4a7c15u) >> 12) + 0.5) * 0x1p-52;
}

#endif
