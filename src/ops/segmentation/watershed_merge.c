/* The merge of watershed: every open region of a chunk is part of a region of the chunk that owns its halo voxel; the edges that
 * the chunks kept, taken from the least up, then grow the forest to its end. Memory: two numbers for every region; edges are
 * streamed.
 */
#include "ops/segmentation/watershed_merge.h"
#include "base/take.h"
#include "op/sorted_runs.h"
#include <stdlib.h>

typedef struct {
    fv_finish      *f;
    int64_t         chunks, nodes;
    fv__flood_head *head;
    int64_t        *base; /* first node of each chunk */
    uint32_t       *parent;
    bool            wide;  /* labels have 8 bytes, else 4 */
    void           *label; /* per root, 0: none yet */
} merge;

static size_t label_size(const merge *m) { return m->wide ? 8 : 4; }

static int64_t label_get(const merge *m, int64_t i) {
    return m->wide ? ((const int64_t *)m->label)[i] : (int64_t)((const uint32_t *)m->label)[i];
}

/* Four bytes are enough for labels of narrow types: only these are painted. */
static void label_set(const merge *m, int64_t i, int64_t label) {
    if (m->wide)
        ((int64_t *)m->label)[i] = label;
    else
        ((uint32_t *)m->label)[i] = (uint32_t)label;
}

static uint32_t find(uint32_t *parent, uint32_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void unite(merge *m, int64_t a, int64_t b) {
    a = find(m->parent, (uint32_t)a);
    b = find(m->parent, (uint32_t)b);
    if (a == b) return;
    m->parent[b] = (uint32_t)a;
    if (!label_get(m, a)) label_set(m, a, label_get(m, b));
}

static size_t cells_offset(const fv__flood_head *h) { return sizeof *h + (size_t)h->edges * sizeof(fv__flood_edge); }
static size_t faces_offset(const fv__flood_head *h) { return cells_offset(h) + (size_t)h->open * sizeof(uint32_t); }

/* ---------------------------------------------------------------- reading */

static fv_status read_labels(merge *m, int64_t chunk, fv_error *error) {
    int64_t  marked = m->head[chunk].marked;
    size_t   size = (size_t)marked * sizeof(int64_t);
    int64_t *labels;
    FV_TRY(FV_TAKE(labels, size + 1, error));
    fv_status status = m->f->read(m->f, chunk, m->f->size(m->f, chunk) - size, labels, size, error);
    for (int64_t i = 0; i < marked && status == FV_OK; i++) label_set(m, m->base[chunk] + m->head[chunk].open + i, labels[i]);
    free(labels);
    return status;
}

static fv_status read_regions(merge *m, fv_error *error) {
    for (int64_t c = 0; c < m->chunks; c++) {
        FV_TRY(m->f->read(m->f, c, 0, &m->head[c], sizeof *m->head, error));
        m->base[c] = m->nodes;
        m->nodes += m->head[c].open + m->head[c].marked;
    }
    if (m->nodes > UINT32_MAX)
        return fv_fail(error, FV_ERROR_MEMORY,
                       "the chunks have %lld regions, more than can be merged; use larger chunks (--chunk)", (long long)m->nodes);
    FV_TRY(FV_TAKE_BUFFER(m->parent, (size_t)m->nodes * sizeof *m->parent, error));
    FV_TRY(FV_TAKE_BUFFER(m->label, (size_t)m->nodes * label_size(m), error));
    for (int64_t i = 0; i < m->nodes; i++) m->parent[i] = (uint32_t)i;
    memset(m->label, 0, (size_t)m->nodes * label_size(m));
    for (int64_t c = 0; c < m->chunks; c++) FV_TRY(read_labels(m, c, error));
    return FV_OK;
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
            if (fv__flood_goes_on(image, own, spatial[k], side)) entries += fv__region_voxels(&face);
        }
found:;
    fv_region face = fv__flood_face(own, axis, far);
    for (int d = 0; d < face.ndim; d++) index = index * face.size[d] + position[d] - face.start[d];
    return faces_offset(h) + (size_t)(entries + index) * sizeof(uint32_t);
}

/* Open regions of a chunk, by the neighbouring chunk that owns their voxels. */
typedef struct {
    int64_t chunk, open;
    size_t  entry;
} passage;

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
    p->chunk = fv__lattice_index(lattice, position);
    fv_region own = fv__lattice_chunk(lattice, p->chunk);
    p->entry = face_entry(box->image, &m->head[p->chunk], &own, position, axis, far);
}

static fv_status join_chunk(merge *m, int64_t chunk, fv_error *error) {
    fv__flood   box;
    fv_region   own = fv__lattice_chunk(m->f->lattice, chunk);
    int64_t     open = m->head[chunk].open;
    uint32_t   *cells;
    passage    *list = NULL;
    const void *data = NULL;
    fv_status   status = FV_TAKE(cells, (size_t)open * sizeof *cells + 1, error);
    if (status == FV_OK) status = FV_TAKE(list, (size_t)open * sizeof *list + 1, error);
    if (status == FV_OK)
        status = m->f->read(m->f, chunk, cells_offset(&m->head[chunk]), cells, (size_t)open * sizeof *cells, error);
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

static void edges_where(const void *context, int64_t chunk, size_t *offset, size_t *end) {
    const fv__flood_head *h = &((const merge *)context)->head[chunk];
    *offset = sizeof *h;
    *end = cells_offset(h);
}

static void edge_key(const void *context, const uint8_t *record, fv_run_key *key) {
    fv__flood_edge e;
    (void)context;
    memcpy(&e, record, sizeof e);
    *key = (fv_run_key){ fv__run_key_unsigned(e.high), fv__run_key_unsigned(e.low), fv__run_key_unsigned(e.place) };
}

/* The least edge that is left belongs to the forest if it joins trees of which one at least has no label. */
static const uint8_t *add_edge(void *context, const uint8_t *record, const fv_region *chunk) {
    merge         *m = context;
    int64_t        base = m->base[fv__lattice_index(m->f->lattice, chunk->start)];
    fv__flood_edge e;
    memcpy(&e, record, sizeof e);
    uint32_t a = find(m->parent, (uint32_t)(base + e.a)), b = find(m->parent, (uint32_t)(base + e.b));
    if (!label_get(m, a) || !label_get(m, b)) unite(m, a, b);
    return record + sizeof e;
}

static fv_status put_labels(merge *m, int64_t chunk, fv_error *error) {
    int64_t  open = m->head[chunk].open;
    int64_t *labels;
    FV_TRY(FV_TAKE(labels, (size_t)open * sizeof *labels + 1, error));
    for (int64_t i = 0; i < open; i++) labels[i] = label_get(m, find(m->parent, (uint32_t)(m->base[chunk] + i)));
    fv_status status = m->f->put(m->f, chunk, labels, (size_t)open * sizeof *labels, error);
    free(labels);
    return status;
}

static fv_status merge_all(merge *m, fv_error *error) {
    static const fv_sorted_runs runs = { .most = sizeof(fv__flood_edge), .where = edges_where, .key = edge_key, .add = add_edge };
    FV_TRY(read_regions(m, error));
    for (int64_t c = 0; c < m->chunks; c++) FV_TRY(join_chunk(m, c, error));
    FV_TRY(fv__sorted_runs_merge(m->f, &runs, m, error));
    for (int64_t c = 0; c < m->chunks; c++) FV_TRY(put_labels(m, c, error));
    return FV_OK;
}

fv_status fv__watershed_finish(fv_finish *f, fv_error *error) {
    merge m = { .f = f, .chunks = f->npartials, .wide = fv_dtype_size(f->out->image.dtype) == 8 };
    if (!fv__flood_is_cut(f->lattice, &f->in[0]->image)) return FV_OK;
    fv_status status = FV_TAKE(m.head, (size_t)m.chunks * sizeof *m.head, error);
    if (status == FV_OK) status = FV_TAKE(m.base, (size_t)m.chunks * sizeof *m.base, error);
    if (status == FV_OK) status = merge_all(&m, error);
    free(m.head);
    free(m.base);
    fv__buffer_free(m.parent, (size_t)m.nodes * sizeof *m.parent);
    fv__buffer_free(m.label, (size_t)m.nodes * label_size(&m));
    return status;
}
