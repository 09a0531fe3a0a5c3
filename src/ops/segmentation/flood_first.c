/* The first step of a watershed: every own voxel is joined to its lowest neighbour, the earliest of equal ones; see flood.h.
 *
 * Own voxels of a row that are joined along the row make a stretch. It has one end: a marker, a voxel that goes to another row
 * or to the halo, or two voxels that go to each other. So links are followed from stretch to stretch, of which there are several
 * times fewer than voxels. After NOWHERE come the halo voxels, one by one, then the stretches of own voxels in raster order.
 */
#include "kernels/bits.h"
#include "ops/segmentation/flood.h"

#define BLOCK FV__FLOOD_BLOCK
#define ITSELF 26 /* where others count neighbours */
#define NOWHERE 0 /* the stretch of cells beside voxels that are none */

enum { OWN, HALO, MARKED }; /* kinds of stretches, and of regions: closed, open, marked */

/* ---------------------------------------------------------------- lowest neighbours */

/* For n cells: which neighbour is the lowest. Bit i of the result: the cell is a voxel. What lies behind the n cells is looked
 * at as well, and forgotten. */
#define LOWEST(name, KEY)                                                                                                        \
    typedef KEY     name##_keys __attribute__((vector_size(FV_VECTOR_BYTES), aligned(sizeof(KEY)), may_alias));                  \
    static uint64_t name(const fv__flood *f, int64_t first, int64_t n, uint8_t *to) {                                            \
        enum { LANES = FV_VECTOR_BYTES / sizeof(KEY), AT_ONCE = 4 };                                                             \
        const KEY *key = (const KEY *)f->key + first;                                                                            \
        KEY        lowest[BLOCK], all = (KEY) ~(KEY)0;                                                                           \
        uint8_t    voxel[BLOCK] = { 0 };                                                                                         \
        for (int64_t i = 0; i < n; i++) all &= key[i];                                                                           \
        if (all == (KEY) ~(KEY)0) return 0;                                                                                      \
        for (int64_t i = 0; i < n; i += AT_ONCE * LANES) {                                                                       \
            name##_keys best[AT_ONCE], which[AT_ONCE];                                                                           \
            for (int v = 0; v < AT_ONCE; v++) best[v] = ~(name##_keys){ 0 }, which[v] = ITSELF - (name##_keys){ 0 };             \
            for (int k = 0; k < f->noffsets; k++) {                                                                              \
                name##_keys here = (KEY)k - (name##_keys){ 0 };                                                                  \
                for (int v = 0; v < AT_ONCE; v++) {                                                                              \
                    name##_keys near = *(const name##_keys *)(key + i + v * LANES + f->offset[k]);                               \
                    name##_keys lower = (name##_keys)(near < best[v]);                                                           \
                    which[v] = (here & lower) | (which[v] & ~lower);                                                             \
                    best[v] = (near & lower) | (best[v] & ~lower);                                                               \
                }                                                                                                                \
            }                                                                                                                    \
            for (int v = 0; v < AT_ONCE; v++) *(name##_keys *)(lowest + i + v * LANES) = which[v];                               \
        }                                                                                                                        \
        for (int64_t i = 0; i < BLOCK; i++) to[i] = (uint8_t)lowest[i];                                                          \
        for (int64_t i = 0; i < n; i++) voxel[i] = key[i] != (KEY) ~(KEY)0;                                                      \
        return fv__bits_pack(voxel);                                                                                             \
    }
LOWEST(lowest_narrow, uint32_t)
LOWEST(lowest_wide, uint64_t)

static uint64_t which_are(const uint8_t *to, uint8_t value) {
    uint8_t bytes[BLOCK];
    for (int i = 0; i < BLOCK; i++) bytes[i] = to[i] == value;
    return fv__bits_pack(bytes);
}

/* ---------------------------------------------------------------- stretches */

/* end: the cell that a stretch goes to, its own if it goes nowhere. link: the stretch of that cell. */
typedef struct {
    fv__flood *f;
    uint32_t  *end, *link, *name;
    uint32_t   count, linked; /* stretches, and those whose links are known */
    uint8_t    left, right;   /* which neighbours these are */
    uint64_t   joined;        /* 1: the last voxel goes right */
} walk;

/* Bit i of a byte becomes byte i of a word, 0 or 1. */
static uint64_t spread(uint64_t bits) {
    uint64_t apart = (bits & 255) * 0x0101010101010101u & 0x8040201008040201u;
    return (apart + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
}

/* node[i] of a block: the number of the stretch, which `starts` counts, or NOWHERE. `last`: the stretch before. */
static void name_block(uint32_t *node, uint64_t starts, uint64_t voxels, uint32_t last, int64_t n) {
    uint32_t number[BLOCK];
    for (int part = 0; part < BLOCK; part += 8) {
        uint64_t sums = spread(starts >> part) * 0x0101010101010101u, there = spread(voxels >> part);
        uint8_t  sum[8], voxel[8];
        memcpy(sum, &sums, sizeof sum);
        memcpy(voxel, &there, sizeof voxel);
        for (int i = 0; i < 8; i++) number[part + i] = (last + sum[i]) & (0 - (uint32_t)voxel[i]);
        last += (uint32_t)(sums >> 56);
    }
    memcpy(node, number, (size_t)n * sizeof *node);
}

static void walk_block(walk *w, int64_t cell, int64_t n, uint64_t marked, bool first, bool last) {
    fv__flood *f = w->f;
    uint8_t    to[BLOCK];
    uint64_t   voxels = f->wide ? lowest_wide(f, cell, n, to) : lowest_narrow(f, cell, n, to);
    if (!voxels) {
        memset(f->node + cell, 0xff, (size_t)n * sizeof *f->node);
        w->joined = 0;
        return;
    }
    f->block[f->nblocks++] = (fv__flood_block){ (uint32_t)cell, (uint32_t)n };
    marked &= voxels;
    uint64_t own = voxels & ~marked, before = first ? 0 : w->joined;
    uint64_t left = which_are(to, w->left) & own & ~(uint64_t)first;
    uint64_t right = which_are(to, w->right) & own & ~((uint64_t)last << (n - 1));
    uint64_t from_left = right << 1 | before, starts = voxels & ~(left | from_left), mutual = left & from_left;
    uint64_t ends = (voxels & ~left & ~right) | mutual;
    name_block(f->node + cell, starts, voxels, w->count - 1, n);
    for (uint64_t rest = ends; rest; rest &= rest - 1) {
        int      i = __builtin_ctzll(rest);
        bool     stays = (marked | mutual) >> i & 1;
        uint32_t stretch = f->node[cell + i];
        w->end[stretch] = (uint32_t)(cell + i + (stays || to[i] == ITSELF ? 0 : f->offset[to[i]]));
        f->kind[stretch] = marked >> i & 1 ? MARKED : OWN;
    }
    w->count += (uint32_t)__builtin_popcountll(starts);
    w->joined = right >> (BLOCK - 1);
}

static void walk_row(walk *w, int64_t first, const char *markers, size_t size, int64_t stride) {
    int64_t width = w->f->size[2];
    for (int64_t from = 0; from < width; from += BLOCK) {
        int64_t  n = FV_MIN(BLOCK, width - from);
        uint64_t marked;
        fv__bits_row(&marked, (const uint8_t *)markers + from * stride * (int64_t)size, size, stride, n);
        walk_block(w, first + from, n, marked, from == 0, from + n == width);
    }
}

/* Links stretches, in order, as far as all cells before `done` are known, while these are still in the cache. A link to an
 * earlier stretch goes one step further. Of two that go to each other the later one thus becomes a root. */
static void link_stretches(walk *w, int64_t done) {
    for (; w->linked < w->count && w->end[w->linked] < done; w->linked++) {
        uint32_t to = w->f->node[w->end[w->linked]];
        w->link[w->linked] = to < w->linked ? w->link[to] : to;
    }
}

static void walk_box(walk *w, const fv_block *markers) {
    fv__flood *f = w->f;
    for (int64_t group = 0; group < f->groups; group++)
        for (int64_t z = 0; z < f->size[0]; z++)
            for (int64_t y = 0; y < f->size[1]; y++) {
                int64_t first = fv__flood_row(f, group, z, y), position[FV_MAX_DIMS];
                fv__flood_position(f, first, position);
                walk_row(w, first, fv__block_at(markers, position), fv_dtype_size(markers->dtype), markers->stride[f->axis[2]]);
                link_stretches(w, first + f->size[2]);
            }
    link_stretches(w, f->cells);
}

/* ---------------------------------------------------------------- the shell */

/* Calls visit for the cells between own rows, where halo may be. */
static void each_gap(walk *w, void (*visit)(walk *w, int64_t from, int64_t to)) {
    fv__flood *f = w->f;
    int64_t    done = 0;
    for (int64_t group = 0; group < f->groups; group++)
        for (int64_t z = 0; z < f->size[0]; z++)
            for (int64_t y = 0; y < f->size[1]; y++) {
                int64_t first = fv__flood_row(f, group, z, y);
                visit(w, done, first);
                done = first + f->size[2];
            }
    visit(w, done, f->cells);
}

static bool key_is_set(const fv__flood *f, int64_t cell) {
    return f->wide ? ((uint64_t *)f->key)[cell] != UINT64_MAX : ((uint32_t *)f->key)[cell] != UINT32_MAX;
}

static void name_halo(walk *w, int64_t from, int64_t to) {
    fv__flood *f = w->f;
    for (int64_t v = from; v < to; v++) {
        bool there = f->has_halo && key_is_set(f, v);
        f->node[v] = there ? w->count : FV__NO_NODE;
        if (!there) continue;
        f->kind[w->count] = HALO;
        w->end[w->count] = (uint32_t)v;
        w->link[w->count] = w->count;
        w->count++;
    }
}

static void number_halo(walk *w, int64_t from, int64_t to) {
    for (int64_t v = from; v < to; v++)
        if (w->f->node[v] != FV__NO_NODE) w->f->node[v] = w->link[w->f->node[v]];
}

/* ---------------------------------------------------------------- regions */

/* Follows links to a root, and links all on the way to it. */
static uint32_t find_root(uint32_t *link, uint32_t from) {
    uint32_t root = link[from], next;
    while ((next = link[root]) != root) root = next;
    while ((next = link[from]) != root) {
        link[from] = root;
        from = next;
    }
    return root;
}

/* link[s] becomes the number of the region of a stretch. A root's name is its kind and its number among these. */
static void number(walk *w) {
    fv__flood *f = w->f;
    uint32_t   count[3] = { 0 };
    for (uint32_t s = w->count; s-- > 1;) w->link[s] = w->link[w->link[s]]; /* later ones are short already */
    for (uint32_t s = 1; s < w->count; s++)
        if (find_root(w->link, s) == s) w->name[s] = (uint32_t)f->kind[s] << 30 | count[f->kind[s]]++;
    uint32_t base[3] = { 0, count[OWN], count[OWN] + count[HALO] };
    for (uint32_t s = 1; s < w->count; s++) {
        uint32_t root = w->link[s];
        w->link[s] = base[w->name[root] >> 30] + (w->name[root] & 0x3fffffff);
        if (root == s) f->seat[w->link[s]] = w->end[s];
    }
    w->link[NOWHERE] = FV__NO_NODE;
    f->closed = count[OWN];
    f->open = count[HALO];
    f->marked = count[MARKED];
}

void fv__flood_first(fv__flood *f, const fv_block *markers) {
    walk w = {
        .f = f, .end = f->active, .link = f->up, .name = f->choice, .count = NOWHERE + 1, .left = UINT8_MAX, .right = UINT8_MAX
    };
    for (uint8_t k = 0; k < f->noffsets; k++) {
        if (f->offset[k] == -1) w.left = k;
        if (f->offset[k] == 1) w.right = k;
    }
    memset(f->node - f->room, 0xff, (size_t)f->room * sizeof *f->node);
    memset(f->node + f->cells, 0xff, (size_t)f->room * sizeof *f->node);
    f->nblocks = 0;
    each_gap(&w, name_halo);
    w.linked = w.count;
    walk_box(&w, markers);
    number(&w);
    for (int64_t b = 0; b < f->nblocks; b++) {
        uint32_t *node = f->node + f->block[b].first;
        for (uint32_t i = 0; i < f->block[b].count; i++) node[i] = w.link[node[i]];
    }
    if (f->has_halo) each_gap(&w, number_halo);
    for (uint32_t r = 0, all = (uint32_t)(f->closed + f->open + f->marked); r < all; r++) f->up[r] = r;
}
