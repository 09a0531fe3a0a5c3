/* The merge of label: joins components across chunks, then numbers them in raster order, streaming.
 *
 * Memory holds the components on shared planes and a window of the others; never all components.
 */
#include "ops/segmentation/label_merge.h"
#include <stdlib.h>

#define WINDOW 4096            /* entries read at a time */
#define BATCH ((int64_t)1 << 20) /* labels held before they are put */

typedef struct {
    fv_finish      *f;
    int64_t         chunks;
    fv__label_head *head;
    int64_t        *base;   /* first node of each chunk */
    int64_t        *parent; /* per node: union-find over components on shared planes */
    int64_t        *label;  /* per root, 0 until it is met */
    int64_t         count;  /* labels given so far */
    int64_t         batch, held;
} merge;

/* One chunk while it is being numbered. */
typedef struct {
    int64_t  chunk, next, node;  /* entries read, and components on shared planes among them */
    int64_t  window[WINDOW];
    int      at, have;
    fv_bytes labels;             /* waiting to be put */
} cursor;

/* ---------------------------------------------------------------- joining */

static int64_t find(int64_t *parent, int64_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static size_t plane_offset(const fv__label_head *head, int axis, int side) {
    int64_t runs = 0;
    for (int d = 0; d < axis; d++) runs += head->plane[d][0] + head->plane[d][1];
    if (side) runs += head->plane[axis][0];
    return sizeof *head + (size_t)head->components * sizeof(int64_t) + (size_t)runs * sizeof(uint32_t);
}

/* The far plane of one chunk is the near plane of the next. */
static fv_status join_planes(merge *m, int64_t chunk, int64_t next, int axis, fv_error *error) {
    uint32_t       a[WINDOW], b[WINDOW];
    fv__label_head *head = &m->head[chunk], *other = &m->head[next];
    int64_t        runs = head->plane[axis][1];
    if (runs != other->plane[axis][0])
        return fv_fail(error, FV_ERROR_INTERNAL, "chunks %lld and %lld do not share a plane", (long long)chunk, (long long)next);
    for (int64_t done = 0; done < runs; done += WINDOW) {
        int64_t n = FV_MIN(WINDOW, runs - done);
        size_t  skip = (size_t)done * sizeof *a, size = (size_t)n * sizeof *a;
        FV_TRY(m->f->read(m->f, chunk, plane_offset(head, axis, 1) + skip, a, size, error));
        FV_TRY(m->f->read(m->f, next, plane_offset(other, axis, 0) + skip, b, size, error));
        for (int64_t i = 0; i < n; i++) {
            int64_t x = find(m->parent, m->base[chunk] + a[i]), y = find(m->parent, m->base[next] + b[i]);
            m->parent[FV_MAX(x, y)] = FV_MIN(x, y);
        }
    }
    return FV_OK;
}

static fv_status join_chunks(merge *m, fv_error *error) {
    const fv_lattice *lattice = m->f->lattice;
    int64_t           nodes = 0;
    for (int64_t c = 0; c < m->chunks; c++) {
        FV_TRY(m->f->read(m->f, c, 0, &m->head[c], sizeof *m->head, error));
        m->base[c] = nodes;
        nodes += m->head[c].shared;
    }
    m->parent = fv_alloc((size_t)nodes * sizeof *m->parent + 1);
    m->label = fv_calloc((size_t)nodes * sizeof *m->label + 1);
    for (int64_t i = 0; i < nodes; i++) m->parent[i] = i;
    for (int64_t c = 0; c < m->chunks; c++)
        for (int axis = 0, d; axis < lattice->ndim; axis++) {
            int64_t step = 1;
            for (d = axis + 1; d < lattice->ndim; d++) step *= fv_lattice_count_axis(lattice, d);
            if (m->head[c].plane[axis][1]) FV_TRY(join_planes(m, c, c + step, axis, error));
        }
    return FV_OK;
}

/* ---------------------------------------------------------------- numbering */

/* Chunks that differ only on axes behind the first that is cut to more than one voxel interleave in raster order; all others
 * lie wholly before or after them. Returns how many these are, and `axis` for group_end. */
static int64_t interleaved(const fv_lattice *lattice, int *axis) {
    int64_t n = 1;
    int     d = 0;
    while (d < lattice->ndim - 1 && lattice->chunk[d] == 1) d++;
    *axis = d;
    for (d++; d < lattice->ndim; d++) n *= fv_lattice_count_axis(lattice, d);
    return n;
}

/* Raster index behind the voxels of a group of interleaved chunks, as an entry. */
static int64_t group_end(const fv_lattice *lattice, int64_t chunk, int axis) {
    fv_region region = fv_lattice_chunk(lattice, chunk);
    int64_t   index = 0;
    for (int d = 0; d < lattice->ndim; d++)
        index = index * lattice->shape[d] + (d <= axis ? region.start[d] + (d == axis ? region.size[d] : 0) : 0);
    return 2 * index;
}

static fv_status fill(merge *m, cursor *c, fv_error *error) {
    int64_t left = m->head[c->chunk].components - c->next;
    c->at = 0;
    c->have = (int)FV_MIN(WINDOW, left);
    size_t offset = sizeof(fv__label_head) + (size_t)c->next * sizeof *c->window;
    c->next += c->have;
    return c->have ? m->f->read(m->f, c->chunk, offset, c->window, (size_t)c->have * sizeof *c->window, error) : FV_OK;
}

static void sift(cursor **heap, int64_t root, int64_t count) {
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && heap[child + 1]->window[heap[child + 1]->at] < heap[child]->window[heap[child]->at]) child++;
        if (heap[root]->window[heap[root]->at] <= heap[child]->window[heap[child]->at]) return;
        cursor *swap = heap[root];
        heap[root] = heap[child];
        heap[child] = swap;
    }
}

static fv_status put(merge *m, cursor *cursors, int64_t n, fv_error *error) {
    for (int64_t i = 0; i < n; i++) {
        if (!cursors[i].labels.size) continue;
        FV_TRY(m->f->put(m->f, m->batch * m->chunks + cursors[i].chunk, cursors[i].labels.data, cursors[i].labels.size, error));
        fv_bytes_clear(&cursors[i].labels);
    }
    m->held = 0;
    return FV_OK;
}

/* A component whose first voxel lies behind the group has all its voxels there: it was seen, but belongs to later chunks, and
 * nobody asks for its label here. */
static int64_t next_label(merge *m, cursor *c, int64_t end) {
    int64_t entry = c->window[c->at++];
    if (!(entry & 1)) return ++m->count;
    int64_t root = find(m->parent, m->base[c->chunk] + c->node++);
    if (entry >= end) return 0;
    if (!m->label[root]) m->label[root] = ++m->count;
    return m->label[root];
}

static fv_status number_group(merge *m, cursor *cursors, cursor **heap, int64_t first, int64_t n, int64_t end, fv_error *error) {
    int64_t live = 0;
    bool    wide = m->f->out->image.dtype == FV_INT64;
    for (int64_t i = 0; i < n; i++) {
        cursor *c = &cursors[i];
        c->chunk = first + i;
        c->next = c->node = 0;
        FV_TRY(fill(m, c, error));
        if (c->have) heap[live++] = c;
    }
    for (int64_t i = live / 2 - 1; i >= 0; i--) sift(heap, i, live);
    while (live) {
        cursor *c = heap[0];
        int64_t label = next_label(m, c, end);
        int32_t narrow = (int32_t)label;
        fv_bytes_append(&c->labels, wide ? (void *)&label : (void *)&narrow, wide ? 8 : 4);
        if (c->at == c->have) FV_TRY(fill(m, c, error));
        if (!c->have) heap[0] = heap[--live];
        sift(heap, 0, live);
        if (++m->held < BATCH) continue;
        FV_TRY(put(m, cursors, n, error));
        m->batch++; /* the same chunks may come again, so their next labels need a later index */
    }
    return put(m, cursors, n, error);
}

fv_status fv__label_finish(fv_finish *f, fv_error *error) {
    int      axis;
    int64_t  at_once = interleaved(f->lattice, &axis);
    merge    m = { .f = f, .chunks = f->npartials };
    cursor  *cursors = fv_calloc((size_t)at_once * sizeof *cursors);
    cursor **heap = fv_alloc((size_t)at_once * sizeof *heap);
    m.head = fv_alloc((size_t)m.chunks * sizeof *m.head);
    m.base = fv_alloc((size_t)m.chunks * sizeof *m.base);
    fv_status status = join_chunks(&m, error);
    for (int64_t first = 0; first < m.chunks && status == FV_OK; first += at_once)
        status =
            number_group(&m, cursors, heap, first, FV_MIN(at_once, m.chunks - first), group_end(f->lattice, first, axis), error);
    for (int64_t i = 0; i < at_once; i++) fv_bytes_release(&cursors[i].labels);
    free(cursors);
    free(heap);
    free(m.head);
    free(m.base);
    free(m.parent);
    free(m.label);
    return status;
}

fv_status fv__label_table(fv_results *results, const fv_lattice *lattice, int64_t chunk, void *labels, int64_t count, size_t size,
                          fv_error *error) {
    int64_t chunks = fv_lattice_count(lattice), batches = 1;
    size_t  wanted = (size_t)count * size, have = 0;
    for (int d = 0; d < lattice->ndim; d++) batches *= lattice->shape[d];
    batches = 8 * (batches / BATCH + 1); /* a voxel is seen by eight chunks at most */
    for (int64_t batch = 0; have < wanted; batch++) {
        const void *data = NULL;
        size_t      more = 0;
        if (batch < batches) FV_TRY(results->get(results, batch * chunks + chunk, &data, &more, error));
        if (more > wanted - have || batch == batches)
            return fv_fail(error, FV_ERROR_INTERNAL, "the table of chunk %lld does not fit its components", (long long)chunk);
        if (more) memcpy((char *)labels + have, data, more);
        have += more;
    }
    return FV_OK;
}
