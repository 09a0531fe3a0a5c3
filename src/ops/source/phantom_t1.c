/* The t1 phantom: a head as T1-weighted magnetic resonance shows it, fitted to the shape of the image.
 *
 * Nested ellipsoids are the tissues; smooth lattice noise folds the cortex; the noise is Rician, as in magnitude images. */
#include "ops/source/phantom.h"

enum { SEGMENT = 256, NODES = 34 };

/* Smooth noise from -1 to 1 on a lattice of nodes, cubic between them, prepared for the x of one row. */
typedef struct {
    float node[NODES];
} folds;

typedef struct {
    int64_t node;
    float   weight;
} between;

/* Which two nodes an index of an axis lies between. */
static inline between locate(int64_t i, int64_t n, int nodes) {
    double  at = ((double)i + 0.5) / (double)n * (double)(nodes - 2);
    int64_t node = (int64_t)at;
    float   f = (float)(at - (double)node);
    return (between){ node, f * f * (3 - 2 * f) };
}

static inline float blend(float a, float b, float t) { return a + (b - a) * t; }

static float node_value(uint64_t seed, uint64_t stream, int64_t z, int64_t y, int64_t x) {
    return (float)(fv__place_hash(seed, stream, z, y, x) >> 40) * 0x1p-23f - 1;
}

static void prepare_folds(const fv_phantom *p, uint64_t stream, int nodes, int64_t z, int64_t y, folds *f) {
    between bz = locate(z, p->shape[0], nodes), by = locate(y, p->shape[1], nodes);
    for (int i = 0; i < nodes; i++) {
        float low = blend(node_value(p->seed, stream, bz.node, by.node, i), node_value(p->seed, stream, bz.node, by.node + 1, i),
                          by.weight);
        float high = blend(node_value(p->seed, stream, bz.node + 1, by.node, i),
                           node_value(p->seed, stream, bz.node + 1, by.node + 1, i), by.weight);
        f->node[i] = blend(low, high, bz.weight);
    }
}

static inline float fold(const folds *f, between b) { return blend(f->node[b.node], f->node[b.node + 1], b.weight); }

/* 1 well inside (depth positive), 0 outside, a soft edge of about a voxel. */
static inline float inside(float depth, float sharp) { return fv__clamp01(depth * sharp + 0.5f); }

static inline float square(float v) { return v * v; }

/* Intensity of the tissue at a place from -1 to 1 on each axis. */
static inline float tissue(float z, float y, float x, float coarse, float fine, float sharp) {
    float side = fabsf(x);
    float radius = sqrtf(square(z / 0.9f) + square(y / 0.92f) + square(x / 0.76f));
    float cleft = 0.82f - 0.10f * fv__clamp01(1 - side * 30) - 0.14f * fv__clamp01(-3 * fine - 0.7f); /* sulci and the middle */
    float white = 0.64f + 0.07f * coarse + 0.16f * fine;
    float value = blend(0, 600, inside(1 - radius, sharp));
    value = blend(value, 60, inside(0.92f - radius, sharp));
    value = blend(value, 160, inside(0.86f - radius, sharp));
    value = blend(value, 520, inside(cleft - radius, sharp));
    value = blend(value, 800, inside(FV_MIN(white, cleft - 0.06f) - radius, sharp));
    float thalamus = sqrtf(square((z - 0.02f) / 0.13f) + square((y - 0.02f) / 0.17f) + square((side - 0.15f) / 0.09f));
    value = blend(value, 560, inside((1 - thalamus) * 0.1f, sharp));
    float ventricle = sqrtf(square((z + 0.10f) / 0.12f) + square((y + 0.02f) / 0.30f) + square((side - 0.09f) / 0.06f));
    return blend(value, 160, inside((1 - ventricle) * 0.08f, sharp));
}

static void fill_segment(const fv_phantom *p, int64_t z, int64_t y, int64_t first, int64_t n, const folds *coarse,
                         const folds *fine, int16_t *row) {
    uint64_t key = fv__place_hash(p->seed, 3, z, y, 0), other = fv__place_hash(p->seed, 4, z, y, 0), tilt = fv__mix(p->seed);
    float    uz = p->flat ? -0.05f : (float)(((double)z + 0.5) / (double)p->shape[0] * 2 - 1);
    float    uy = (float)(((double)y + 0.5) / (double)p->shape[1] * 2 - 1);
    float    slope[3], value[SEGMENT];
    int64_t  least = FV_MIN(p->shape[1], p->shape[2]);
    float    sharp = (float)(p->flat ? least : FV_MIN(least, p->shape[0])) * 0.4f;
    for (int d = 0; d < 3; d++) slope[d] = (float)fv__hash_part(tilt, d, 2001) * 0.00015f - 0.15f;
    for (int64_t i = 0; i < n; i++) {
        float ux = (float)(((double)(first + i) + 0.5) / (double)p->shape[2] * 2 - 1);
        float large = fold(coarse, locate(first + i, p->shape[2], NODES / 2)),
              small = fold(fine, locate(first + i, p->shape[2], NODES));
        float bias = 1 + slope[0] * uz + slope[1] * uy + slope[2] * ux - 0.1f * (uy * uy + ux * ux);
        value[i] = tissue(uz, uy, ux, large, small, sharp) * bias;
    }
    for (int64_t i = 0; i < n; i++) {
        float real = value[i] + 16 * p->noise * fv__bell(fv__voxel_hash(key, (uint32_t)(first + i)));
        float imaginary = 16 * p->noise * fv__bell(fv__voxel_hash(other, (uint32_t)(first + i)));
        row[i] = (int16_t)fv__grey(sqrtf(real * real + imaginary * imaginary), INT16_MAX);
    }
}

void FV_ISA_NAME(fv__phantom_t1)(const fv_phantom *p) {
    folds coarse, fine;
    for (int64_t z = p->start[0]; z < p->start[0] + p->size[0]; z++)
        for (int64_t y = p->start[1]; y < p->start[1] + p->size[1]; y++) {
            prepare_folds(p, 1, NODES / 2, z, y, &coarse);
            prepare_folds(p, 2, NODES, z, y, &fine);
            for (int64_t x = 0; x < p->size[2]; x += SEGMENT)
                fill_segment(p, z, y, p->start[2] + x, FV_MIN(SEGMENT, p->size[2] - x), &coarse, &fine,
                             (int16_t *)p->data + fv__phantom_at(p, z, y, p->start[2] + x));
        }
}
