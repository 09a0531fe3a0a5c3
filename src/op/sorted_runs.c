/* Sorted runs in partials and their merge; see sorted_runs.h. */
#include "op/sorted_runs.h"
#include "base/take.h"
#include <stdlib.h>

#define WINDOWS_BYTES ((int64_t)8 << 20) /* of all windows together, roughly */

/* ---------------------------------------------------------------- in a task: the run's size in bytes, then its records */

size_t fv__sorted_run_begin(fv_bytes *partial) {
    int64_t bytes = 0;
    fv__bytes_append(partial, &bytes, sizeof bytes);
    return partial->size;
}

void fv__sorted_run_end(fv_bytes *partial, size_t begun) {
    int64_t bytes = (int64_t)(partial->size - begun);
    if (bytes)
        memcpy(partial->data + begun - sizeof bytes, &bytes, sizeof bytes);
    else
        partial->size = begun - sizeof bytes;
}

/* ---------------------------------------------------------------- merging */

/* One run while it is merged: a window into it that holds at least one whole record. */
typedef struct {
    int64_t    partial;
    fv_run_key next;        /* of the record at `at` */
    size_t     offset, end; /* of what is not in the window yet */
    uint8_t   *window;
    size_t     at, have;
} cursor;

typedef struct {
    fv_finish            *f;
    const fv_sorted_runs *runs;
    void                 *context;
    size_t                window; /* bytes of a window */
    cursor               *cursors, **heap;
    int64_t               count, capacity;
} merge;

static bool done(const cursor *c) { return c->at == c->have && c->offset == c->end; }
static int  order(const fv_run_key *a, const fv_run_key *b) {
     if (a->first != b->first) return a->first < b->first ? -1 : 1;
    if (a->second != b->second) return a->second < b->second ? -1 : 1;
    if (a->third != b->third) return a->third < b->third ? -1 : 1;
    return a->fourth < b->fourth ? -1 : a->fourth > b->fourth;
}

static fv_status refill(merge *m, cursor *c, fv_error *error) {
    if (c->have - c->at < (size_t)m->runs->most && c->offset < c->end) {
        memmove(c->window, c->window + c->at, c->have - c->at);
        c->have -= c->at;
        c->at = 0;
        size_t more = FV_MIN(m->window - c->have, c->end - c->offset);
        FV_TRY(m->f->read(m->f, c->partial, c->offset, c->window + c->have, more, error));
        c->have += more;
        c->offset += more;
    }
    if (!done(c)) m->runs->key(m->context, c->window + c->at, &c->next);
    return FV_OK;
}

static fv_status add_run(merge *m, int64_t partial, size_t offset, size_t end, fv_error *error) {
    if (offset == end) return FV_OK;
    if (m->count == m->capacity) {
        int64_t capacity = FV_MAX(2 * m->capacity, m->f->npartials);
        FV_TRY(FV_TAKE_MORE(m->cursors, (size_t)capacity * sizeof *m->cursors, error));
        m->capacity = capacity;
    }
    m->cursors[m->count++] = (cursor){ .partial = partial, .offset = offset, .end = end };
    return FV_OK;
}

/* Finds the runs of a partial that holds nothing else. */
static fv_status find_sizes(merge *m, int64_t partial, fv_error *error) {
    for (size_t offset = 0, size = m->f->size(m->f, partial); offset < size;) {
        int64_t bytes;
        FV_TRY(m->f->read(m->f, partial, offset, &bytes, sizeof bytes, error));
        offset += sizeof bytes;
        FV_TRY(add_run(m, partial, offset, offset + (size_t)bytes, error));
        offset += (size_t)bytes;
    }
    return FV_OK;
}

static fv_status find_runs(merge *m, fv_error *error) {
    for (int64_t i = 0; i < m->f->npartials; i++) {
        size_t offset, end;
        if (!m->runs->where) {
            FV_TRY(find_sizes(m, i, error));
            continue;
        }
        m->runs->where(m->context, i, &offset, &end);
        FV_TRY(add_run(m, i, offset, end, error));
    }
    m->window = (size_t)FV_MAX(FV_MIN(WINDOWS_BYTES / FV_MAX(m->count, 1), 65536), 2 * m->runs->most);
    return FV_OK;
}

static void sift(cursor **heap, int64_t root, int64_t count) {
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && order(&heap[child + 1]->next, &heap[child]->next) < 0) child++;
        if (order(&heap[root]->next, &heap[child]->next) <= 0) return;
        cursor *swap = heap[root];
        heap[root] = heap[child];
        heap[child] = swap;
    }
}

static fv_status merge_runs(merge *m, fv_error *error) {
    int64_t live = m->count;
    for (int64_t i = 0; i < live; i++) {
        FV_TRY(FV_TAKE(m->cursors[i].window, m->window, error));
        m->heap[i] = &m->cursors[i];
        FV_TRY(refill(m, &m->cursors[i], error));
    }
    for (int64_t i = live / 2 - 1; i >= 0; i--) sift(m->heap, i, live);
    while (live) {
        fv_run_key key = m->heap[0]->next;
        if (m->runs->start) m->runs->start(m->context, &key);
        for (; live && !order(&m->heap[0]->next, &key); sift(m->heap, 0, live)) {
            cursor   *c = m->heap[0];
            fv_region chunk = fv__lattice_chunk(m->f->lattice, c->partial);
            c->at = (size_t)(m->runs->add(m->context, c->window + c->at, &chunk) - c->window);
            FV_TRY(refill(m, c, error));
            if (done(c)) m->heap[0] = m->heap[--live];
        }
        if (m->runs->end) FV_TRY(m->runs->end(m->context, error));
    }
    return FV_OK;
}

fv_status fv__sorted_runs_merge(fv_finish *f, const fv_sorted_runs *runs, void *context, fv_error *error) {
    merge     m = { .f = f, .runs = runs, .context = context };
    fv_status status = find_runs(&m, error);
    if (status == FV_OK) status = FV_TAKE(m.heap, (size_t)m.count * sizeof *m.heap + 1, error);
    if (status == FV_OK) status = merge_runs(&m, error);
    for (int64_t i = 0; i < m.count; i++) free(m.cursors[i].window);
    free(m.cursors);
    free(m.heap);
    return status;
}
