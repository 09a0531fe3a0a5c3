/* The merge of watershed: every open region of a chunk is part of a region of the chunk that owns its halo voxel; the edges that
 * the chunks kept then grow the forest to its end, by Borůvka's rule again.
 */
#include "ops/segmentation/watershed_merge.h"
#include <stdlib.h>

typedef struct {
    fv_finish      *f;
    int64_t         chunks, nodes, edges;
    fv__flood_head *head;
    int64_t        *base;  /* first node of each chunk */
    int64_t        *parent;
    int64_t        *label; /* per root, 0: none yet */
    struct merge_edge *edge;
    int64_t        *least; /* per root: an edge, -1: none */
} merge;

typedef struct merge_edge { uint64_t high, low, place; int64_t a, b; } merge_edge;

static int64_t find(int64_t *parent, int64_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void unite(merge *m, int64_t a, int64_t b) {
    a = find(m->parent, a);
    b = find(m->parent, b);
    if (a == b) return;
    m->parent[b] = a;
    if (!m->label[a]) m->label[a] = m->label[b];
}

static size_t cells_offset(const fv__flood_head *h) { return sizeof *h + (size_t)h->edges * sizeof(fv__flood_edge); }
static size_t faces_offset(const fv__flood_head *h) { return cells_offset(h) + (size_t)h->open * sizeof(uint32_t); }

/* ---------------------------------------------------------------- reading */

static fv_status read_regions(merge *m, fv_error *error) {
    for (int64_t c = 0; c < m->chunks; c++) {
        FV_TRY(m->f->read(m->f, c, 0, &m->head[c], sizeof *m->head, error));
        m->base[c] = m->nodes;
        m->nodes += m->head[c].open + m->head[c].marked;
    }
    m->parent = fv_alloc((size_t)m->nodes * sizeof *m->parent + 1);
    m->label = fv_calloc((size_t)m->nodes * sizeof *m->label + 1);
    for (int64_t i = 0; i < m->nodes; i++) m->parent[i] = i;
    for (int64_t c = 0; c < m->chunks; c++) {
        size_t size = (size_t)m->head[c].marked * sizeof(int64_t);
        FV_TRY(m->f->read(m->f, c, m->f->size(m->f, c) - size, m->label + m->base[c] + m->head[c].open, size, error));
    }
    return FV_OK;
}

/* Edges inside a tree, or between trees that both have a label, are of no use. */
static bool is_useful(const merge *m, int64_t a, int64_t b) { return a != b && !(m->label[a] && m->label[b]); }

/* Counts the useful edges, and takes them where there is room. */
static fv_status read_edges(merge *m, fv_error *error) {
    m->edges = 0;
    for (int64_t c = 0; c < m->chunks; c++) {
        const void *data;
        FV_TRY(m->f->partial(m->f, c, &data, error));
        for (int64_t i = 0; i < m->head[c].edges; i++) {
            fv__flood_edge e;
            memcpy(&e, (const char *)data + sizeof *m->head + (size_t)i * sizeof e, sizeof e);
            int64_t a = find(m->parent, m->base[c] + e.a), b = find(m->parent, m->base[c] + e.b);
            if (!is_useful(m, a, b)) continue;
            if (m->edge) m->edge[m->edges] = (merge_edge){ e.high, e.low, e.place, a, b };
            m->edges++;
        }
    }
    return FV_OK;
}

/* After the chunks are joined, so that as few edges as possible are held. */
static fv_status read_useful_edges(merge *m, fv_error *error) {
    FV_TRY(read_edges(m, error));
    m->edge = fv_alloc((size_t)m->edges * sizeof *m->edge + 1);
    m->least = fv_alloc((size_t)m->nodes * sizeof *m->least + 1);
    return read_edges(m, error);
}

/* ---------------------------------------------------------------- open regions */

/* Where the region of a voxel is found in a partial of the chunk that owns it; the chunk was left across axis d. */
static size_t face_entry(const fv_image_type *image, const fv__flood_head *h, const fv_region *own, const int64_t *position,
                         int axis, int far) {
    int     spatial[FV_MAX_DIMS], n = fv_image_type_spatial(image, spatial);
    int64_t entries = 0, index = 0;
    for (int k = 0; k < n; k++)
        for (int side = 0; side < 2; side++) {
            if (spatial[k] == axis && side == far) goto found;
            fv_region face = fv__flood_face(own, spatial[k], side);
            if (fv__flood_goes_on(image, own, spatial[k], side)) entries += fv_region_voxels(&face);
        }
found:;
    fv_region face = fv__flood_face(own, axis, far);
    for (int d = 0; d < face.ndim; d++) index = index * face.size[d] + position[d] - face.start[d];
    return faces_offset(h) + (size_t)(entries + index) * sizeof(uint32_t);
}

/* Open regions of a chunk, by the neighbouring chunk that owns their voxels. */
typedef struct { int64_t chunk, open; size_t entry; } passage;

static int by_chunk(const void *a, const void *b) {
    const passage *x = a, *y = b;
    if (x->chunk != y->chunk) return x->chunk < y->chunk ? -1 : 1;
    return x->open < y->open ? -1 : x->open > y->open;
}

static void find_passage(merge *m, const fv__flood *box, int64_t cell, passage *p) {
    const fv_lattice *lattice = m->f->lattice;
    int64_t           position[FV_MAX_DIMS];
    int               axis = -1, far = 0;
    fv__flood_position(box, cell, position);
    for (int k = 0; k < 3; k++) {
        int d = box->axis[k];
        if (d < 0 || (position[d] >= box->own.start[d] && position[d] < box->own.start[d] + box->own.size[d])) continue;
        axis = d;
        far = position[d] < box->own.start[d];
    }
    p->chunk = fv_lattice_index(lattice, position);
    fv_region own = fv_lattice_chunk(lattice, p->chunk);
    p->entry = face_entry(box->image, &m->head[p->chunk], &own, position, axis, far);
}

static fv_status join_chunk(merge *m, int64_t chunk, fv_error *error) {
    fv__flood   box;
    fv_region   own = fv_lattice_chunk(m->f->lattice, chunk);
    int64_t     open = m->head[chunk].open;
    uint32_t   *cells = fv_alloc((size_t)open * sizeof *cells + 1);
    passage    *list = fv_alloc((size_t)open * sizeof *list + 1);
    const void *data = NULL;
    fv_status   status = m->f->read(m->f, chunk, cells_offset(&m->head[chunk]), cells, (size_t)open * sizeof *cells, error);
    fv__flood_init(&box, &m->f->in[0]->image, &own, 1, NULL);
    for (int64_t i = 0; i < open && status == FV_OK; i++) {
        list[i].open = i;
        find_passage(m, &box, cells[i], &list[i]);
    }
    if (status == FV_OK) qsort(list, (size_t)open, sizeof *list, by_chunk);
    for (int64_t i = 0; i < open && status == FV_OK; i++) {
        uint32_t node;
        if (!i || list[i].chunk != list[i - 1].chunk) status = m->f->partial(m->f, list[i].chunk, &data, error);
        if (status != FV_OK) break;
        memcpy(&node, (const char *)data + list[i].entry, sizeof node);
        if (node != FV__NO_NODE) unite(m, m->base[list[i].chunk] + node, m->base[chunk] + list[i].open);
    }
    free(cells);
    free(list);
    return status;
}

/* ---------------------------------------------------------------- growing the forest */

static bool less(const merge_edge *a, const merge_edge *b) {
    if (a->high != b->high) return a->high < b->high;
    return a->low != b->low ? a->low < b->low : a->place < b->place;
}

static void offer(merge *m, int64_t root, int64_t edge) {
    if (m->label[root]) return;
    if (m->least[root] < 0 || less(&m->edge[edge], &m->edge[m->least[root]])) m->least[root] = edge;
}

static bool grow(merge *m) {
    int64_t left = 0;
    bool    any = false;
    for (int64_t i = 0; i < m->nodes; i++) m->least[i] = -1;
    for (int64_t i = 0; i < m->edges; i++) {
        merge_edge e = m->edge[i];
        e.a = find(m->parent, e.a);
        e.b = find(m->parent, e.b);
        if (!is_useful(m, e.a, e.b)) continue;
        m->edge[left] = e;
        offer(m, e.a, left);
        offer(m, e.b, left);
        left++;
    }
    m->edges = left;
    for (int64_t i = 0; i < m->nodes; i++) {
        if (m->parent[i] != i || m->least[i] < 0) continue;
        const merge_edge *e = &m->edge[m->least[i]];
        m->least[i] = -1;
        unite(m, e->a, e->b);
        any = true;
    }
    return any;
}

static fv_status put_labels(merge *m, fv_error *error) {
    for (int64_t c = 0; c < m->chunks; c++)
        for (int64_t i = 0; i < m->head[c].open; i++) {
            int64_t label = m->label[find(m->parent, m->base[c] + i)];
            FV_TRY(m->f->put(m->f, c, &label, sizeof label, error));
        }
    return FV_OK;
}

fv_status fv__watershed_finish(fv_finish *f, fv_error *error) {
    merge m = { .f = f, .chunks = f->npartials };
    if (!fv__flood_is_cut(f->lattice, &f->in[0]->image)) return FV_OK;
    m.head = fv_alloc((size_t)m.chunks * sizeof *m.head);
    m.base = fv_alloc((size_t)m.chunks * sizeof *m.base);
    fv_status status = read_regions(&m, error);
    for (int64_t c = 0; c < m.chunks && status == FV_OK; c++) status = join_chunk(&m, c, error);
    if (status == FV_OK) status = read_useful_edges(&m, error);
    while (status == FV_OK && grow(&m)) {}
    if (status == FV_OK) status = put_labels(&m, error);
    free(m.head);
    free(m.base);
    free(m.parent);
    free(m.label);
    free(m.least);
    free(m.edge);
    return status;
}
