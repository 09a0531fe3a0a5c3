/* The merge of label: joins components across chunks, then numbers them in raster order, streaming.
 *
 * Memory holds the components on shared planes and a window of the others; never all components.
 */
#include "ops/segmentation/label_merge.h"
#include "base/take.h"
#include <stdlib.h>

#define WINDOW 4096              /* entries read at a time */
#define BATCH ((int64_t)1 << 20) /* labels held before they are put */

typedef struct {
    fv__components joined;
    int64_t       *label; /* per root, 0 until it is met */
    int64_t        count; /* labels given so far */
    int64_t        batch, held;
} merge;

/* One chunk while it is being numbered. */
typedef struct {
    int64_t  chunk, next, node; /* entries read, and components on shared planes among them */
    int64_t  window[WINDOW];
    int      at, have;
    fv_bytes labels; /* waiting to be put */
} cursor;

/* ---------------------------------------------------------------- numbering */

/* Chunks that differ only on axes behind the first that is cut to more than one voxel interleave in raster order; all others
 * lie wholly before or after them. Returns how many these are, and `axis` for group_end. */
static int64_t interleaved(const fv_lattice *lattice, int *axis) {
    int64_t n = 1;
    int     d = 0;
    while (d < lattice->ndim - 1 && lattice->chunk[d] == 1) d++;
    *axis = d;
    for (d++; d < lattice->ndim; d++) n *= fv__lattice_count_axis(lattice, d);
    return n;
}

/* Raster index behind the voxels of a group of interleaved chunks, as an entry. */
static int64_t group_end(const fv_lattice *lattice, int64_t chunk, int axis) {
    fv_region region = fv__lattice_chunk(lattice, chunk);
    int64_t   index = 0;
    for (int d = 0; d < lattice->ndim; d++)
        index = index * lattice->shape[d] + (d <= axis ? region.start[d] + (d == axis ? region.size[d] : 0) : 0);
    return 2 * index;
}

static fv_status fill(merge *m, cursor *c, fv_error *error) {
    int64_t left = m->joined.head[c->chunk].components - c->next;
    c->at = 0;
    c->have = (int)FV_MIN(WINDOW, left);
    size_t offset = sizeof(fv__components_head) + (size_t)c->next * sizeof *c->window;
    c->next += c->have;
    if (!c->have) return FV_OK;
    return m->joined.f->read(m->joined.f, c->chunk, offset, c->window, (size_t)c->have * sizeof *c->window, error);
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
        fv_bytes *labels = &cursors[i].labels;
        int64_t   index = m->batch * m->joined.chunks + cursors[i].chunk;
        if (!labels->size) continue;
        FV_TRY(m->joined.f->put(m->joined.f, index, labels->data, labels->size, error));
        fv__bytes_clear(labels);
    }
    m->held = 0;
    return FV_OK;
}

/* A component whose first voxel lies behind the group has all its voxels there: it was seen, but belongs to later chunks, and
 * nobody asks for its label here. */
static int64_t next_label(merge *m, cursor *c, int64_t end) {
    int64_t entry = c->window[c->at++];
    if (!(entry & 1)) return ++m->count;
    int64_t root = fv__components_root(m->joined.parent, m->joined.base[c->chunk] + c->node++);
    if (entry >= end) return 0;
    if (!m->label[root]) m->label[root] = ++m->count;
    return m->label[root];
}

static fv_status number_group(merge *m, cursor *cursors, cursor **heap, int64_t first, int64_t n, int64_t end, fv_error *error) {
    int64_t live = 0;
    bool    wide = m->joined.f->out->image.dtype == FV_INT64;
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
        fv__bytes_append(&c->labels, wide ? (void *)&label : (void *)&narrow, wide ? 8 : 4);
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
    int64_t  at_once = interleaved(f->lattice, &axis), chunks = f->npartials;
    merge    m = { 0 };
    cursor  *cursors;
    cursor **heap = NULL;
    if (chunks == 1) return FV_OK;
    fv_status status = FV_TAKE_ZEROED(cursors, (size_t)at_once * sizeof *cursors, error);
    if (status == FV_OK) status = FV_TAKE(heap, (size_t)at_once * sizeof *heap, error);
    if (status == FV_OK) status = fv__components_join(&m.joined, f, error);
    if (status == FV_OK) status = FV_TAKE_ZEROED(m.label, (size_t)m.joined.nodes * sizeof *m.label + 1, error);
    for (int64_t first = 0; first < chunks && status == FV_OK; first += at_once) {
        int64_t end = group_end(f->lattice, first, axis);
        status = number_group(&m, cursors, heap, first, FV_MIN(at_once, chunks - first), end, error);
    }
    for (int64_t i = 0; cursors && i < at_once; i++) fv__bytes_release(&cursors[i].labels);
    free(cursors);
    free(heap);
    free(m.label);
    fv__components_free(&m.joined);
    return status;
}

fv_status fv__label_table(fv_results *results, const fv_lattice *lattice, int64_t chunk, void *labels, int64_t count, size_t size,
                          fv_error *error) {
    int64_t chunks = fv__lattice_count(lattice), batches = 1;
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
