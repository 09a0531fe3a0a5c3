/* The cells phantom: soft bright ellipsoids at jittered grid points, as in a fluorescence microscope.
 *
 * Each grid cell of one pitch holds one biological cell with a probability of three quarters. No cell reaches further than 0.8
 * pitch from its centre, so a voxel looks at the grid cells around its own. Where two overlap the brighter one shows, so
 * that touching cells have a valley between them. */
#include "ops/source/phantom.h"

enum { EDGE_X = 64, EDGE = 16, MOST = 1024 };

typedef struct {
    int32_t z, y, x;    /* centre seen from a tile's first voxel */
    float   kz, ky, kx; /* 1 / squared semi-axes */
    float   bright;
} cell;

/* False where the grid cell is empty. */
static bool make_cell(const fv_phantom *p, const fv_tile *tile, const int64_t place[3], cell *made) {
    uint64_t where = fv__place_hash(p->seed, 1, place[0], place[1], place[2]);
    uint64_t what = fv__place_hash(p->seed, 2, place[0], place[1], place[2]);
    if (fv__hash_part(what, 3, 4) == 0) return false;
    int64_t s = p->pitch, margin = (s * 15 + 99) / 100, at[3];
    float   k[3];
    for (int d = 0; d < 3; d++) {
        at[d] = place[d] * s + margin + fv__hash_part(where, d, s - 2 * margin) - tile->start[d];
        float axis = (float)s * (0.42f + 0.00037f * (float)fv__hash_part(what, d, 1000));
        k[d] = 1 / (axis * axis);
    }
    *made = (cell){ p->flat ? 0 : (int32_t)at[0],
                    (int32_t)at[1],
                    (int32_t)at[2],
                    k[0],
                    k[1],
                    k[2],
                    90.0f + (float)fv__hash_part(where, 3, 120) };
    return true;
}

/* The cells that reach into a tile. */
static int find_cells(const fv_phantom *p, const fv_tile *tile, cell *found) {
    int64_t first[3], last[3], place[3];
    for (int d = 0; d < 3; d++) {
        first[d] = fv__floor_divide(tile->start[d], p->pitch) - 1;
        last[d] = fv__floor_divide(tile->start[d] + tile->size[d] - 1, p->pitch) + 1;
    }
    if (p->flat) first[0] = last[0] = 0;
    int count = 0;
    for (place[0] = first[0]; place[0] <= last[0]; place[0]++)
        for (place[1] = first[1]; place[1] <= last[1]; place[1]++)
            for (place[2] = first[2]; place[2] <= last[2]; place[2]++) {
                cell    c;
                int32_t reach = (int32_t)(p->pitch * 8 / 10);
                if (make_cell(p, tile, place, &c) && c.z >= -reach && c.z < tile->size[0] + reach && c.y >= -reach &&
                    c.y < tile->size[1] + reach && c.x >= -reach && c.x < tile->size[2] + reach)
                    found[count++] = c;
            }
    return count;
}

static void fill(const fv_phantom *p, const fv_tile *tile) {
    cell    cells[MOST];
    float   light[EDGE_X];
    int     count = find_cells(p, tile, cells);
    int64_t n = tile->size[2];
    for (int64_t z = 0; z < tile->size[0]; z++)
        for (int64_t y = 0; y < tile->size[1]; y++) {
            memset(light, 0, sizeof light);
            for (int i = 0; i < count; i++) {
                float dz = (float)(cells[i].z - (int32_t)z), dy = (float)(cells[i].y - (int32_t)y);
                float rest = 1 - (dz * dz * cells[i].kz + dy * dy * cells[i].ky), kx = cells[i].kx, bright = cells[i].bright;
                if (rest <= 0) continue;
                for (int32_t x = 0; x < n; x++) {
                    float dx = (float)(cells[i].x - x);
                    float inside = fv__clamp01(rest - dx * dx * kx), dome = bright * fv__clamp01(2.5f * inside * inside);
                    light[x] = light[x] > dome ? light[x] : dome;
                }
            }
            uint64_t key = fv__place_hash(p->seed, 3, tile->start[0] + z, tile->start[1] + y, 0);
            uint32_t first = (uint32_t)tile->start[2];
            uint8_t *row = (uint8_t *)p->data + fv__phantom_at(p, tile->start[0] + z, tile->start[1] + y, tile->start[2]);
            for (int64_t x = 0; x < n; x++) {
                float bell = fv__bell(fv__voxel_hash(key, first + (uint32_t)x)) * p->noise;
                row[x] = (uint8_t)fv__grey(16 + light[x] + (4 + 0.05f * light[x]) * bell, 255);
            }
        }
}

void FV_ISA_NAME(fv__phantom_cells)(const fv_phantom *p) {
    int64_t edge = FV_MAX(8, FV_MIN(EDGE, p->pitch / 2));
    fv__phantom_tiles(p, (int64_t[]){ edge, edge, FV_MAX(16, FV_MIN(EDGE_X, p->pitch)) }, fill);
}
