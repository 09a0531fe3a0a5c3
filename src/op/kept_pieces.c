/* The table of kept pieces: found by owner and number, dropped in order of use. */
#include "op/kept_pieces.h"
#include "base/file.h"
#include <pthread.h>
#include <stdlib.h>

enum { OVERHEAD = 256, FIRST_BUCKETS = 256 };
/* A piece is given up if it was not met while so many times as many pieces as there are were asked for. */
enum { PATIENCE = 4 };

typedef struct kept {
    struct kept *next;            /* in its bucket */
    struct kept *colder, *hotter; /* in order of use */
    const void  *owner;
    int64_t      number;
    void        *data;
    size_t       bytes;
    int64_t      left; /* bytes that nobody has asked for yet */
    int64_t      met;  /* when it was used last */
    int          users;
    bool         filled;
} kept;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all that follows */
static pthread_cond_t  decoded = PTHREAD_COND_INITIALIZER;
static kept          **buckets;
static int64_t         nbuckets, count, now, held, allowed;
static kept           *coldest, *hottest;

/* ---------------------------------------------------------------- the table; the mutex is held */

static int64_t charge(size_t bytes) { return (int64_t)(bytes + bytes / 16 + OVERHEAD); } /* buffers are rounded up a little */

static kept **bucket(const void *owner, int64_t number) {
    uint64_t hash = ((uint64_t)(uintptr_t)owner ^ (uint64_t)number * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    return &buckets[(int64_t)(hash >> 32) & (nbuckets - 1)];
}

static kept *find(const void *owner, int64_t number) {
    kept *k = nbuckets ? *bucket(owner, number) : NULL;
    while (k && (k->owner != owner || k->number != number)) k = k->next;
    return k;
}

static void grow(void) {
    kept  **old = buckets;
    int64_t before = nbuckets;
    nbuckets = before ? 2 * before : FIRST_BUCKETS;
    buckets = fv__calloc((size_t)nbuckets * sizeof(kept *));
    for (int64_t i = 0; i < before; i++)
        for (kept *k = old[i], *next; k; k = next) {
            kept **place = bucket(k->owner, k->number);
            next = k->next;
            k->next = *place;
            *place = k;
        }
    free(old);
}

static void unlink_order(kept *k) {
    *(k->colder ? &k->colder->hotter : &coldest) = k->hotter;
    *(k->hotter ? &k->hotter->colder : &hottest) = k->colder;
}

static void make_hottest(kept *k) {
    k->colder = hottest;
    k->hotter = NULL;
    *(hottest ? &hottest->hotter : &coldest) = k;
    hottest = k;
    k->met = now;
}

static void make_coldest(kept *k) {
    k->hotter = coldest;
    k->colder = NULL;
    *(coldest ? &coldest->colder : &hottest) = k;
    coldest = k;
}

static void drop(kept *k) {
    kept **place = bucket(k->owner, k->number);
    while (*place != k) place = &(*place)->next;
    *place = k->next;
    unlink_order(k);
    held -= charge(k->bytes);
    count--;
    fv__buffer_free(k->data, k->bytes);
    free(k);
}

static void shrink(void) {
    for (kept *k = coldest, *next; k && held > allowed; k = next) {
        next = k->hotter;
        if (!k->users) drop(k);
    }
}

static bool make_room(size_t bytes) {
    if (charge(bytes) > allowed) return false;
    for (kept *k = coldest, *next; k && held + charge(bytes) > allowed; k = next) {
        next = k->hotter;
        if (k->users) continue;
        if (k->left > 0 && now - k->met <= PATIENCE * count) return false; /* all others were met later */
        drop(k);
    }
    return held + charge(bytes) <= allowed;
}

static kept *add(const void *owner, const fv_piece *piece, size_t bytes) {
    if (count == nbuckets) grow();
    kept *k = fv__calloc(sizeof *k), **place = bucket(owner, piece->number);
    *k = (kept){ .next = *place, .owner = owner, .number = piece->number, .bytes = bytes, .left = piece->size };
    k->data = fv__buffer_new(bytes);
    *place = k;
    make_hottest(k);
    held += charge(bytes);
    count++;
    return k;
}

/* ---------------------------------------------------------------- one piece */

/* A piece to use, with its data or (not filled) to be decoded by the caller. NULL: it is not kept, or (busy) not yet there. */
static kept *claim(const void *owner, const fv_piece *piece, size_t bytes, bool wait, bool *busy) {
    kept *k;
    pthread_mutex_lock(&mutex);
    now++;
    while ((k = find(owner, piece->number)) && !k->filled && wait) pthread_cond_wait(&decoded, &mutex);
    *busy = k && !k->filled;
    if (*busy)
        k = NULL;
    else if (k) {
        unlink_order(k);
        make_hottest(k);
    } else if (make_room(bytes))
        k = add(owner, piece, bytes);
    if (k) k->users++;
    pthread_mutex_unlock(&mutex);
    return k;
}

static void tell_decoded(kept *k) {
    pthread_mutex_lock(&mutex);
    k->filled = true;
    pthread_cond_broadcast(&decoded);
    pthread_mutex_unlock(&mutex);
}

/* Those who wait for a piece that could not be decoded try it themselves, and fail with a message of their own. */
static void release(kept *k, int64_t wanted) {
    pthread_mutex_lock(&mutex);
    k->users--;
    k->left -= wanted;
    if (!k->filled) {
        drop(k);
        pthread_cond_broadcast(&decoded);
    } else if (k->left <= 0) {
        unlink_order(k);
        make_coldest(k);
    }
    if (held > allowed) shrink();
    pthread_mutex_unlock(&mutex);
}

static fv_status read_piece(const fv_piece_source *s, int64_t i, bool wait, bool *busy, fv_error *error) {
    fv_piece piece;
    s->describe(s->context, i, &piece);
    *busy = false;
    if (piece.wanted >= piece.size) return s->read(s->context, i, error);
    if (wait) fv__io_enter(); /* whoever decodes it may need the turn */
    kept *k = claim(s->owner, &piece, s->bytes, wait, busy);
    if (wait) fv__io_leave();
    if (*busy) return FV_OK;
    if (!k) return s->read(s->context, i, error);
    fv_status status = k->filled ? FV_OK : s->decode(s->context, i, k->data, error);
    if (status == FV_OK && !k->filled) tell_decoded(k);
    if (status == FV_OK) s->place(s->context, i, k->data);
    release(k, piece.wanted);
    return status;
}

/* ---------------------------------------------------------------- all of a region */

fv_status fv__pieces_read(const fv_piece_source *source, fv_error *error) {
    int64_t   left = source->count;
    int64_t  *todo = fv__alloc((size_t)FV_MAX(left, 1) * sizeof *todo);
    fv_status status = FV_OK;
    for (int64_t i = 0; i < left; i++) todo[i] = i;
    for (bool wait = false; left && status == FV_OK; wait = true) {
        int64_t later = 0;
        for (int64_t k = 0; k < left && status == FV_OK; k++) {
            bool busy;
            status = read_piece(source, todo[k], wait, &busy, error);
            if (busy) todo[later++] = todo[k];
        }
        left = later;
    }
    free(todo);
    return status;
}

static int64_t met_along(const fv_met_chunks *met, int d) {
    const fv_region *region = &met->block->region;
    return (region->start[d] + region->size[d] - 1) / met->chunk[d] - region->start[d] / met->chunk[d] + 1;
}

int64_t fv__met_count(const fv_met_chunks *met) {
    int64_t n = 1;
    for (int d = 0; d < met->ndim; d++) n *= met_along(met, d);
    return n;
}

fv_region fv__met_chunk(const fv_met_chunks *met, int64_t i) {
    fv_region chunk = { .ndim = met->ndim };
    for (int d = met->ndim - 1; d >= 0; d--) {
        int64_t along = met_along(met, d);
        chunk.start[d] = (met->block->region.start[d] / met->chunk[d] + i % along) * met->chunk[d];
        chunk.size[d] = met->chunk[d];
        i /= along;
    }
    return chunk;
}

void fv__met_describe(const fv_met_chunks *met, int64_t i, fv_piece *piece) {
    fv_region chunk = fv__met_chunk(met, i), part = fv__region_intersect(&chunk, &met->block->region);
    int64_t   size = (int64_t)fv_dtype_size(met->block->dtype);
    *piece = (fv_piece){ .size = size, .wanted = fv__region_voxels(&part) * size };
    for (int d = 0; d < met->ndim; d++) {
        piece->number = piece->number * ((met->shape[d] + met->chunk[d] - 1) / met->chunk[d]) + chunk.start[d] / met->chunk[d];
        piece->size *= FV_MIN(chunk.size[d], met->shape[d] - chunk.start[d]);
    }
}

void fv__kept_forget(const void *owner) {
    pthread_mutex_lock(&mutex);
    for (kept *k = coldest, *next; k; k = next) {
        next = k->hotter;
        if (k->owner == owner) drop(k);
    }
    pthread_mutex_unlock(&mutex);
}

void fv__kept_allow(int64_t bytes) {
    pthread_mutex_lock(&mutex);
    allowed += bytes;
    shrink();
    if (!count) {
        free(buckets);
        buckets = NULL;
        nbuckets = 0;
    }
    pthread_mutex_unlock(&mutex);
}
