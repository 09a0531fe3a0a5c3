/* The merge of a reconstruction: the final level of every voxel on a plane that chunks share.
 *
 * A partial is: the head; uint64 level of each terminal so far; per group (position along the other axes) the range of values;
 * the edges of the tree; then per shared plane (spatial axes in order, near before far) uint32 terminal of every voxel, in C
 * order.
 *
 * Terminals that are the same voxel are joined. Then the trees' edges are taken from the highest level down: each joins two parts
 * into a new one, whose level is the edge's and whose seed is the higher of theirs. A terminal ends at the highest
 * min(level, seed) of the parts it lies in.
 */
#include "ops/morphology/rebuild.h"
#include <stdlib.h>

typedef struct { int64_t up; uint64_t level, seed; } part; /* up: the part it became part of, itself at the top */
typedef struct { uint64_t level; int64_t a, b; } join;

typedef struct {
    fv_finish         *f;
    int64_t            chunks, nodes, edges, parts;
    fv__rebuild_head  *head;
    int64_t           *base, *root; /* first terminal of each chunk; union-find over terminals and parts */
    part              *part;
    join              *edge;
    fv__rebuild_range *range; /* per group of the whole image */
} merge;

static int64_t find(int64_t *root, int64_t i) {
    while (root[i] != i) {
        root[i] = root[root[i]];
        i = root[i];
    }
    return i;
}

static size_t ranges_offset(const fv__rebuild_head *h) { return sizeof *h + (size_t)h->terminals * 8; }
static size_t edges_offset(const fv__rebuild_head *h) { return ranges_offset(h) + (size_t)h->groups * sizeof(fv__rebuild_range); }
static size_t planes_offset(const fv__rebuild_head *h) { return edges_offset(h) + (size_t)h->edges * sizeof(fv__rebuild_edge); }

/* ---------------------------------------------------------------- groups */

/* Number of a chunk's group among those of the whole image. */
static int64_t group_number(const fv_image_type *image, const fv_region *chunk, int64_t group) {
    int     spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    int64_t at[FV_MAX_DIMS] = { 0 }, number = 0;
    for (int d = image->ndim - 1; d >= 0; d--) {
        bool is_spatial = false;
        for (int k = 0; k < n; k++) is_spatial = is_spatial || spatial[k] == d;
        at[d] = is_spatial ? -1 : chunk->start[d] + group % chunk->size[d];
        if (!is_spatial) group /= chunk->size[d];
    }
    for (int d = 0; d < image->ndim; d++)
        if (at[d] >= 0) number = number * image->shape[d] + at[d];
    return number;
}

static int64_t count_groups(const fv_image_type *image) {
    int     spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    int64_t groups = fv_image_type_voxels(image);
    for (int k = 0; k < n; k++) groups /= FV_MAX(image->shape[spatial[k]], 1);
    return groups;
}

/* ---------------------------------------------------------------- reading */

static fv_status read_heads(merge *m, fv_error *error) {
    for (int64_t c = 0; c < m->chunks; c++) {
        FV_TRY(m->f->read(m->f, c, 0, &m->head[c], sizeof *m->head, error));
        m->base[c] = m->nodes;
        m->nodes += m->head[c].terminals;
        m->edges += m->head[c].edges;
    }
    return FV_OK;
}

static fv_status read_chunks(merge *m, fv_error *error) {
    int64_t edge = 0;
    for (int64_t c = 0; c < m->chunks; c++) {
        const fv__rebuild_head *h = &m->head[c];
        fv_region               chunk = fv_lattice_chunk(m->f->lattice, c);
        const void             *data;
        FV_TRY(m->f->partial(m->f, c, &data, error));
        const uint64_t *level = (const uint64_t *)((const char *)data + sizeof *h);
        for (int64_t i = 0; i < h->terminals; i++) m->part[m->base[c] + i] = (part){ m->base[c] + i, level[i], level[i] };
        const fv__rebuild_range *range = (const void *)((const char *)data + ranges_offset(h));
        for (int64_t g = 0; g < h->groups; g++) {
            fv__rebuild_range *all = &m->range[group_number(&m->f->in[0]->image, &chunk, g)];
            all->low = FV_MIN(all->low, range[g].low);
            all->high = FV_MAX(all->high, range[g].high);
        }
        const fv__rebuild_edge *from = (const void *)((const char *)data + edges_offset(h));
        for (int64_t i = 0; i < h->edges; i++)
            m->edge[edge++] = (join){ from[i].level, m->base[c] + from[i].a, m->base[c] + from[i].b };
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- joining */

/* Where a plane's terminals lie in a partial. */
static size_t plane_offset(const merge *m, int64_t chunk, int axis, int side) {
    const fv_image_type *image = &m->f->in[0]->image;
    fv_region            own = fv_lattice_chunk(m->f->lattice, chunk), region = fv__rebuild_region(&own, image), plane;
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    int64_t              before = 0;
    for (int k = 0; k < n; k++)
        for (int s = 0; s < 2; s++) {
            if (spatial[k] == axis && s == side) return planes_offset(&m->head[chunk]) + (size_t)before * 4;
            if (fv__rebuild_plane(&own, &region, image, spatial[k], s, &plane)) before += fv_region_voxels(&plane);
        }
    return 0;
}

/* The far plane of one chunk is the near plane of the next. */
static fv_status join_planes(merge *m, int64_t chunk, int64_t next, int axis, int64_t count, fv_error *error) {
    enum { WINDOW = 4096 };
    uint32_t a[WINDOW], b[WINDOW];
    size_t   from = plane_offset(m, chunk, axis, 1), to = plane_offset(m, next, axis, 0);
    for (int64_t done = 0; done < count; done += WINDOW) {
        int64_t n = FV_MIN(WINDOW, count - done);
        FV_TRY(m->f->read(m->f, chunk, from + (size_t)done * 4, a, (size_t)n * 4, error));
        FV_TRY(m->f->read(m->f, next, to + (size_t)done * 4, b, (size_t)n * 4, error));
        for (int64_t i = 0; i < n; i++) {
            int64_t x = find(m->root, m->base[chunk] + a[i]), y = find(m->root, m->base[next] + b[i]);
            if (x == y) continue;
            m->root[y] = x;
            m->part[x].level = m->part[x].seed = FV_MAX(m->part[x].seed, m->part[y].seed);
        }
    }
    return FV_OK;
}

static fv_status join_chunks(merge *m, fv_error *error) {
    const fv_lattice    *lattice = m->f->lattice;
    const fv_image_type *image = &m->f->in[0]->image;
    int                  spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    for (int64_t c = 0; c < m->chunks; c++)
        for (int k = 0; k < n; k++) {
            fv_region own = fv_lattice_chunk(lattice, c), region = fv__rebuild_region(&own, image), plane;
            int64_t   step = 1;
            for (int d = spatial[k] + 1; d < lattice->ndim; d++) step *= fv_lattice_count_axis(lattice, d);
            if (fv__rebuild_plane(&own, &region, image, spatial[k], 1, &plane))
                FV_TRY(join_planes(m, c, c + step, spatial[k], fv_region_voxels(&plane), error));
        }
    return FV_OK;
}

static int by_level(const void *a, const void *b) {
    uint64_t x = ((const join *)a)->level, y = ((const join *)b)->level;
    return x > y ? -1 : x < y;
}

static void grow(merge *m) {
    qsort(m->edge, (size_t)m->edges, sizeof *m->edge, by_level);
    m->parts = m->nodes;
    for (int64_t i = 0; i < m->edges; i++) {
        int64_t a = find(m->root, m->edge[i].a), b = find(m->root, m->edge[i].b), made = m->parts;
        if (a == b) continue;
        m->part[made] = (part){ made, m->edge[i].level, FV_MAX(m->part[a].seed, m->part[b].seed) };
        m->root[made] = m->root[a] = m->root[b] = made;
        m->part[a].up = m->part[b].up = made;
        m->parts++;
    }
    for (int64_t i = m->parts - 1; i >= 0; i--) { /* from the top: a part comes after those it is made of */
        part *p = &m->part[i];
        p->level = FV_MIN(p->level, p->seed);
        if (p->up != i) p->level = FV_MAX(p->level, m->part[p->up].level);
    }
}

static fv_status put_levels(merge *m, const int64_t *first, fv_error *error) {
    const fv_image_type *image = &m->f->in[0]->image;
    for (int64_t c = 0; c < m->chunks; c++) {
        fv_region chunk = fv_lattice_chunk(m->f->lattice, c);
        for (int64_t i = 0; i < m->head[c].terminals; i++)
            FV_TRY(m->f->put(m->f, c, &m->part[first[m->base[c] + i]].level, sizeof(uint64_t), error));
        for (int64_t g = 0; g < m->head[c].groups; g++)
            FV_TRY(m->f->put(m->f, c, &m->range[group_number(image, &chunk, g)], sizeof *m->range, error));
    }
    return FV_OK;
}

static fv_status merge_all(merge *m, fv_error *error) {
    int64_t groups = count_groups(&m->f->in[0]->image);
    FV_TRY(read_heads(m, error));
    m->part = fv_alloc((size_t)m->nodes * 2 * sizeof *m->part + 1);
    m->root = fv_alloc((size_t)m->nodes * 2 * sizeof *m->root + 1);
    m->edge = fv_alloc((size_t)m->edges * sizeof *m->edge + 1);
    m->range = fv_alloc((size_t)groups * sizeof *m->range + 1);
    for (int64_t g = 0; g < groups; g++) m->range[g] = (fv__rebuild_range){ UINT64_MAX, 0 };
    for (int64_t i = 0; i < m->nodes; i++) m->root[i] = i;
    FV_TRY(read_chunks(m, error));
    FV_TRY(join_chunks(m, error));
    int64_t *first = fv_alloc((size_t)m->nodes * sizeof *first + 1); /* of the terminals that are one voxel */
    for (int64_t i = 0; i < m->nodes; i++) first[i] = find(m->root, i);
    grow(m);
    fv_status status = put_levels(m, first, error);
    free(first);
    return status;
}

fv_status fv__rebuild_finish(fv_finish *f, fv_error *error) {
    int   spatial[FV_MAX_DIMS], n = fv_image_type_spatial(&f->in[0]->image, spatial);
    bool  cut = false;
    merge m = { .f = f, .chunks = f->npartials };
    for (int k = 0; k < n; k++) cut = cut || fv_lattice_count_axis(f->lattice, spatial[k]) > 1;
    if (!cut) return FV_OK;
    m.head = fv_alloc((size_t)m.chunks * sizeof *m.head);
    m.base = fv_alloc((size_t)m.chunks * sizeof *m.base);
    fv_status status = merge_all(&m, error);
    free(m.head);
    free(m.base);
    free(m.root);
    free(m.part);
    free(m.edge);
    free(m.range);
    return status;
}
