/* The foam phantom: a power diagram of jittered grid points with thick, rounded walls.
 *
 * Each grid cell of one pitch holds one bubble centre, away from the cell's rim, with a random weight. The power of a centre at
 * a voxel is its squared distance minus its weight; the voxel belongs to the bubble of least power. With a and b the excess
 * of the second and third least power, h = ab / (a + b) is near 0 on walls and smaller still along the edges where three walls
 * meet, which gives the rounded bubbles and the thick edges of a wet foam.
 *
 * A centre two cells away or further is never among the three of least power (margin and weights see to that), and a tile
 * drops centres that can be none of the three anywhere in it, so the cut into tiles does not show. */
#include "ops/source/phantom.h"

enum { EDGE_X = 64, EDGE = 16, REACH = 2, MOST = 1024 };

/* A bubble centre seen from a tile's first voxel; pitch is at most 4000, so squares fit 32 bits. */
typedef struct {
    int32_t z, y, x, weight;
} centre;

static centre make_centre(const fv_phantom *p, const fv_tile *tile, const int64_t cell[3]) {
    uint64_t h = fv__place_hash(p->seed, 1, cell[0], cell[1], cell[2]);
    int64_t  s = p->pitch, margin = (s * 15 + 99) / 100, room = s - 2 * margin, at[3];
    for (int d = 0; d < 3; d++) at[d] = cell[d] * s + margin + fv__hash_part(h, d, room) - tile->start[d];
    return (centre){ p->flat ? 0 : (int32_t)at[0], (int32_t)at[1], (int32_t)at[2], (int32_t)fv__hash_part(h, 3, s * s * 4 / 10) };
}

/* Least and greatest squared distance along one axis from a centre to the voxels 0..n-1. */
static void distance_range(int32_t at, int64_t n, int64_t *least, int64_t *most) {
    int64_t first = FV_MAX(at, -(int64_t)at), last = FV_MAX(at - (n - 1), n - 1 - at);
    bool    inside = at >= 0 && at < n;
    *least += inside ? 0 : FV_MIN(first, last) * FV_MIN(first, last);
    *most += FV_MAX(first, last) * FV_MAX(first, last);
}

/* The centres that matter in a tile. */
static int find_centres(const fv_phantom *p, const fv_tile *tile, centre *found) {
    int64_t first[3], last[3], cell[3], least[MOST], third[3] = { INT64_MAX, INT64_MAX, INT64_MAX };
    for (int d = 0; d < 3; d++) {
        first[d] = fv__floor_divide(tile->start[d], p->pitch) - REACH;
        last[d] = fv__floor_divide(tile->start[d] + tile->size[d] - 1, p->pitch) + REACH;
    }
    if (p->flat) first[0] = last[0] = 0;
    int count = 0;
    for (cell[0] = first[0]; cell[0] <= last[0]; cell[0]++)
        for (cell[1] = first[1]; cell[1] <= last[1]; cell[1]++)
            for (cell[2] = first[2]; cell[2] <= last[2]; cell[2]++) {
                centre  c = make_centre(p, tile, cell);
                int64_t low = -c.weight, high = -c.weight;
                distance_range(c.z, tile->size[0], &low, &high);
                distance_range(c.y, tile->size[1], &low, &high);
                distance_range(c.x, tile->size[2], &low, &high);
                found[count] = c;
                least[count++] = low;
                third[2] = FV_MIN(third[2], FV_MAX(third[1], high));
                third[1] = FV_MIN(third[1], FV_MAX(third[0], high));
                third[0] = FV_MIN(third[0], high);
            }
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (least[i] <= third[2]) found[kept++] = found[i];
    return kept;
}

/* Adds the centres of a row to the three least powers of each voxel. The square of x itself is the same for all centres and
 * is left out. */
static void least_powers(const centre *centres, int count, int32_t z, int32_t y, int64_t n, int32_t low[3][EDGE_X]) {
    int32_t *restrict m0 = low[0], *restrict m1 = low[1], *restrict m2 = low[2];
    for (int64_t x = 0; x < EDGE_X; x++) m0[x] = m1[x] = m2[x] = INT32_MAX / 2;
    for (int i = 0; i < count; i++) {
        int32_t dz = centres[i].z - z, dy = centres[i].y - y, cx = centres[i].x;
        int32_t base = dz * dz + dy * dy + cx * cx - centres[i].weight, slope = -2 * cx;
        for (int32_t x = 0; x < n; x++) {
            int32_t power = base + slope * x;
            int32_t over0 = FV_MAX(m0[x], power), over1 = FV_MAX(m1[x], over0);
            m0[x] = FV_MIN(m0[x], power);
            m1[x] = FV_MIN(m1[x], over0);
            m2[x] = FV_MIN(m2[x], over1);
        }
    }
}

static void fill(const fv_phantom *p, const fv_tile *tile) {
    centre  centres[MOST];
    int32_t low[3][EDGE_X];
    int     count = find_centres(p, tile, centres);
    int64_t n = tile->size[2];
    float   to_voxels = 1.0f / (2.2f * (float)p->pitch); /* the excess grows by twice the distance of two centres per voxel */
    float   half = 1.0f + 0.015f * (float)p->pitch;
    for (int64_t z = 0; z < tile->size[0]; z++)
        for (int64_t y = 0; y < tile->size[1]; y++) {
            least_powers(centres, count, (int32_t)z, (int32_t)y, n, low);
            uint64_t key = fv__place_hash(p->seed, 2, tile->start[0] + z, tile->start[1] + y, 0);
            uint32_t first = (uint32_t)tile->start[2];
            uint8_t *row = (uint8_t *)p->data + fv__phantom_at(p, tile->start[0] + z, tile->start[1] + y, tile->start[2]);
            for (int64_t x = 0; x < n; x++) {
                float a = (float)(low[1][x] - low[0][x]), b = (float)(low[2][x] - low[0][x]);
                float wall = fv__clamp01(0.5f + half - a * b / (a + b + 1) * to_voxels);
                float bell = fv__bell(fv__voxel_hash(key, first + (uint32_t)x)) * p->noise;
                row[x] = (uint8_t)fv__grey(6 + 204 * wall + (4 + 8 * wall) * bell, 255);
            }
        }
}

void FV_ISA_NAME(fv__phantom_foam)(const fv_phantom *p) {
    int64_t edge = FV_MAX(8, FV_MIN(EDGE, p->pitch / 2));
    fv__phantom_tiles(p, (int64_t[]){ edge, edge, FV_MAX(16, FV_MIN(EDGE_X, p->pitch)) }, fill);
}
