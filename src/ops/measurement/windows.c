/* Windows of a label image; see windows.h. */
#include "ops/measurement/windows.h"
#include "op/kernels.h"
#include "op/scratch.h"

extern const fv_kernels FV_PASTE(fv_kernels_, FV_ISA);

/* ---------------------------------------------------------------- from configurations to numbers
 * Bit 4 dz + 2 dy + dx of a configuration tells whether the voxel at that place of the window belongs to the label. */

/* Both voxels of a pair, one per direction: the first has the lower coordinate along the slowest axis that differs. */
static const struct {
    int from, to;
} pairs[FV__PAIRS] = { { 0, 1 }, { 0, 2 }, { 0, 3 }, { 1, 2 }, { 0, 4 }, { 0, 5 }, { 1, 4 },
                       { 0, 6 }, { 2, 4 }, { 0, 7 }, { 1, 6 }, { 2, 5 }, { 3, 4 } };

bool fv__direction(int nspatial, int i, int step[3]) {
    if (i >= (nspatial == 3 ? FV__PAIRS : 4)) return false;
    for (int d = 0; d < 3; d++) step[d] = (pairs[i].to >> (2 - d) & 1) - (pairs[i].from >> (2 - d) & 1);
    return true;
}

/* Voxels are closed boxes, so that those that meet in a corner are connected. Corners less edges plus faces less boxes that meet
 * the middle of the window, each counted by the part of it that lies in the window: in eighths, in a plane in quarters. */
static int euler_of(int configuration, int nspatial) {
    int corners = configuration != 0, edges = 0, faces = 0, boxes = __builtin_popcount((unsigned)configuration);
    for (int d = 0; d < nspatial; d++)
        for (int side = 0; side < 2; side++) {
            int edge = 0; /* the voxels around the edge from the middle to that side */
            for (int v = 0; v < 1 << nspatial; v++)
                if ((v >> d & 1) == side) edge |= 1 << v;
            edges += (configuration & edge) != 0;
            for (int e = d + 1; e < nspatial && nspatial == 3; e++)
                for (int other = 0; other < 2; other++) {
                    int face = 0;
                    for (int v = 0; v < 8; v++)
                        if ((v >> d & 1) == side && (v >> e & 1) == other) face |= 1 << v;
                    faces += (configuration & face) != 0;
                }
        }
    return nspatial == 3 ? 8 * corners - 4 * edges + 2 * faces - boxes : 4 * corners - 2 * edges + boxes;
}

void fv__windows_settle(const fv__object_plan *p, fv__object *o) {
    uint32_t *counts = fv__object_counts(p, o);
    for (int c = 1; c < p->configurations; c++) {
        if (!counts[c]) continue;
        for (int i = 0; i < FV__PAIRS; i++)
            if (c >> pairs[i].from & c >> pairs[i].to & 1) o->pairs[i] += counts[c];
        o->euler += (int64_t)euler_of(c, p->nspatial) * counts[c];
        if (p->mesh && c < p->configurations - 1) fv__object_shapes(p, o)[c] += counts[c];
        counts[c] = 0;
    }
}

/* ---------------------------------------------------------------- a chunk with its surroundings as int64 */

static size_t lay_out(fv__windows *w, const fv__object_plan *p, const fv_region *chunk, void *scratch) {
    fv_scratch pieces = { scratch, 0 };
    for (int k = 0; k < 3; k++) w->size[k] = 1;
    for (int k = 0; k < p->nspatial; k++) w->size[3 - p->nspatial + k] = chunk->size[p->spatial[k]];
    w->pad = fv__windows_halo(p);
    int64_t rows = w->size[1] + 2 * w->pad, planes = p->nspatial == 3 ? w->size[0] + 2 * w->pad : 1;
    w->row = w->size[2] + 2 * w->pad;
    w->plane = rows * w->row;
    w->all = fv__scratch_take(&pieces, planes * w->plane * 8);
    w->alike = fv__scratch_take(&pieces, w->row);
    w->border = fv__scratch_take(&pieces, p->border ? w->plane : 0);
    w->labels = w->all ? w->all + (p->nspatial == 3 ? w->pad * w->plane : 0) + w->pad * w->row + w->pad : NULL;
    return pieces.used;
}

size_t fv__windows_scratch(const fv__object_plan *plan, const fv_region *chunk) {
    fv__windows w;
    return fv__windows_halo(plan) ? lay_out(&w, plan, chunk, NULL) : 0;
}

/* Copies what the block holds; the rest of the surroundings lies outside the image. */
static void fill(fv__windows *w, const fv_block *labels, const fv_region *chunk) {
    fv_rows rows;
    int     n = chunk->ndim;
    int64_t planes = n == 3 ? w->size[0] + 2 * w->pad : 1;
    memset(w->all, 0, (size_t)(planes * w->plane) * sizeof *w->all);
    for (fv__rows_begin(&rows, &labels->region); fv__rows_next(&rows);) {
        int64_t offset = rows.position[n - 1] - chunk->start[n - 1] + (rows.position[n - 2] - chunk->start[n - 2]) * w->row;
        if (n == 3) offset += (rows.position[0] - chunk->start[0]) * w->plane;
        FV_PASTE(fv_kernels_, FV_ISA)
            .convert(w->labels + offset, FV_INT64, fv__block_at(labels, rows.position), labels->dtype,
                     labels->region.size[n - 1]);
    }
}

/* ---------------------------------------------------------------- counting */

static void count(const fv__windows *w, int64_t label, int configuration, int64_t windows) {
    fv__object *o = w->find(w->context, label);
    fv__object_counts(w->plan, o)[configuration] += (uint32_t)windows;
}

/* One window whose voxels are not all alike. */
static void count_mixed(const fv__windows *w, const int64_t *const *rows, int nrows, int64_t x) {
    int64_t label[8];
    int     voxels = 2 * nrows, done = 0;
    for (int r = 0; r < nrows; r++) label[2 * r] = rows[r][x], label[2 * r + 1] = rows[r][x + 1];
    for (int i = 0; i < voxels; i++) {
        int configuration = 0;
        if (!label[i] || done >> i & 1) continue;
        for (int k = i; k < voxels; k++) configuration |= (label[k] == label[i]) << k;
        done |= configuration;
        count(w, label[i], configuration, 1);
    }
}

/* The windows of a row that begin at from ... to - 1. Those with one label throughout are found first, and counted together. */
static void count_row(const fv__windows *w, const int64_t *const *rows, int nrows, int64_t from, int64_t to) {
    uint8_t       *alike = w->alike;
    const int64_t *first = rows[0], *second = rows[1], *third = rows[nrows == 4 ? 2 : 0], *fourth = rows[nrows == 4 ? 3 : 0];
    for (int64_t x = from; x < to; x++) {
        int64_t label = first[x], differ = label ^ first[x + 1];
        differ |= (label ^ second[x]) | (label ^ second[x + 1]) | (label ^ third[x]) | (label ^ third[x + 1]);
        alike[x - from] = !(differ | (label ^ fourth[x]) | (label ^ fourth[x + 1]));
    }
    for (int64_t x = from; x < to;) {
        int64_t start = x;
        while (x < to && alike[x - from]) x++;
        if (x > start && first[start]) count(w, first[start], nrows == 4 ? 255 : 15, x - start);
        if (x < to) count_mixed(w, rows, nrows, x++);
    }
}

static void count_windows(const fv__windows *w, int64_t z, int64_t y) {
    const int64_t *row = w->labels + z * w->plane + y * w->row;
    const int64_t *rows[4] = { row, row + w->row, row + w->plane, row + w->plane + w->row };
    count_row(w, rows, w->plan->nspatial == 3 ? 4 : 2, -w->before[2], w->size[2]);
}

/* ---------------------------------------------------------------- the border of a label in a plane */

/* Weights of a border pixel by its neighbours on the border (2 for those beside it, 10 for those across a corner): 1, the root of
 * 2, or half of both together. */
static int border_class(int code) {
    switch (code) {
    case 5:
    case 7:
    case 15:
    case 17:
    case 25:
    case 27: return 0;
    case 21:
    case 33: return 1;
    case 13:
    case 23: return 2;
    default: return -1;
    }
}

static void mark_border(const fv__windows *w) {
    for (int64_t y = -1; y <= w->size[1]; y++)
        for (int64_t x = -1; x <= w->size[2]; x++) {
            const int64_t *at = w->labels + y * w->row + x;
            w->border[at - w->all] = *at && (at[-1] != *at || at[1] != *at || at[-w->row] != *at || at[w->row] != *at);
        }
}

static void count_border(const fv__windows *w, int64_t y) {
    for (int64_t x = 0; x < w->size[2]; x++) {
        int64_t at = w->labels - w->all + y * w->row + x, label = w->all[at];
        int     code = 1;
        if (!w->border[at]) continue;
        for (int64_t dy = -1; dy <= 1; dy++)
            for (int64_t dx = -1; dx <= 1; dx++) {
                int64_t other = at + dy * w->row + dx;
                if ((dx || dy) && w->border[other] && w->all[other] == label) code += dx && dy ? 10 : 2;
            }
        int kind = border_class(code);
        if (kind >= 0) w->find(w->context, label)->border[kind]++;
    }
}

/* ---------------------------------------------------------------- a chunk */

void fv__windows_begin(fv__windows *w, const fv_block *labels, const fv_region *chunk, void *scratch) {
    const fv__object_plan *p = w->plan;
    lay_out(w, p, chunk, scratch);
    fill(w, labels, chunk);
    for (int k = 0; k < 3; k++) w->before[k] = k - 3 + p->nspatial >= 0 && chunk->start[p->spatial[k - 3 + p->nspatial]] == 0;
    if (p->border) mark_border(w);
}

void fv__windows_row(const fv__windows *w, int64_t z, int64_t y) {
    for (int64_t i = z == 0 ? -w->before[0] : 0; w->plan->windows && i <= 0; i++)
        for (int64_t k = y == 0 ? -w->before[1] : 0; k <= 0; k++) count_windows(w, z + i, y + k);
    if (w->plan->border) count_border(w, y);
}
