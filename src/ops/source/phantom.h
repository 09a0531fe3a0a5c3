/* What the phantoms share: a block seen as a volume, and random numbers that are a function of seed and place alone.
 *
 * Everything is integer arithmetic or single IEEE operations, so the bits are the same on every instruction set. */
#ifndef FV_PHANTOM_H
#define FV_PHANTOM_H

#include "op/op.h"
#include "op/random.h"

/* The part to fill. Two-dimensional images are volumes of one slice. */
typedef struct fv_phantom {
    int64_t  shape[3], start[3], size[3]; /* z y x, of the image and of the part */
    int64_t  stride[2];                   /* elements between slices and between rows of data */
    void    *data;
    bool     flat; /* two-dimensional */
    uint64_t seed;
    int64_t  pitch; /* typical distance between objects, voxels */
    float    noise; /* 1: as in a typical recording */
} fv_phantom;

void FV_ISA_NAME(fv__phantom_foam)(const fv_phantom *p);        /* uint8 */
void FV_ISA_NAME(fv__phantom_cells)(const fv_phantom *p);       /* uint8 */
void FV_ISA_NAME(fv__phantom_t1)(const fv_phantom *p);          /* int16 */
void FV_ISA_NAME(fv__phantom_noise)(const fv_phantom *p);       /* float32 */
void FV_ISA_NAME(fv__phantom_shepp_logan)(const fv_phantom *p); /* float32 */

/* ---- boxes of a volume that a kind fills one after the other ---- */

typedef struct fv_tile {
    int64_t start[3], size[3];
} fv_tile;

/* Calls fill for every box of at most edge voxels that the part is cut into. */
static inline void fv__phantom_tiles(const fv_phantom *p, const int64_t edge[3],
                                     void (*fill)(const fv_phantom *, const fv_tile *)) {
    int64_t offset[3];
    for (offset[0] = 0; offset[0] < p->size[0]; offset[0] += edge[0])
        for (offset[1] = 0; offset[1] < p->size[1]; offset[1] += edge[1])
            for (offset[2] = 0; offset[2] < p->size[2]; offset[2] += edge[2]) {
                fv_tile tile;
                for (int d = 0; d < 3; d++) {
                    tile.start[d] = p->start[d] + offset[d];
                    tile.size[d] = FV_MIN(edge[d], p->size[d] - offset[d]);
                }
                fill(p, &tile);
            }
}

/* Index in data of a voxel given by image coordinates. */
static inline int64_t fv__phantom_at(const fv_phantom *p, int64_t z, int64_t y, int64_t x) {
    return (z - p->start[0]) * p->stride[0] + (y - p->start[1]) * p->stride[1] + (x - p->start[2]);
}

static inline int64_t fv__floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* ---- random numbers: op/random.h, and cheaper ones ---- */

/* A number from 0 to below limit out of 16 bits of a hash; part 0..3. */
static inline int64_t fv__hash_part(uint64_t hash, int part, int64_t limit) {
    return (int64_t)(hash >> part * 16 & 0xffff) * limit >> 16;
}

/* 32 random bits for each voxel of a row, cheap and vectorisable along x. */
static inline uint32_t fv__voxel_hash(uint64_t row, uint32_t x) {
    uint32_t h = x * 0x9e3779b1u + (uint32_t)row;
    h = (h ^ h >> 16) * 0x7feb352du;
    h = (h ^ h >> 15 ^ (uint32_t)(row >> 32)) * 0x846ca68bu;
    return h ^ h >> 16;
}

/* Nearly normal, mean 0 and deviation 1: the sum of the four bytes of a hash. */
static inline float fv__bell(uint32_t hash) {
    uint32_t pairs = (hash & 0x00ff00ffu) + (hash >> 8 & 0x00ff00ffu);
    int32_t  sum = (int32_t)((pairs & 0xffff) + (pairs >> 16)) - 510;
    return (float)sum * (1.0f / 147.8f);
}

/* Rounds a grey value of at least -0.5 into 0..limit. */
static inline int32_t fv__grey(float value, float limit) {
    value = value > 0 ? value : 0;
    return (int32_t)((value < limit ? value : limit) + 0.5f);
}

static inline float fv__clamp01(float value) {
    value = value > 0 ? value : 0;
    return value < 1 ? value : 1;
}

#endif
