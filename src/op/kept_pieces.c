/* The table of kept pieces: found by owner and number, dropped in order of use. */
#include "op/kept_pieces.h"
#include "base/file.h"
#include "base/hash_table.h"
#include "base/session.h"
#include "base/take.h"
#include <stdlib.h>

enum { OVERHEAD = 256 };
/* A piece is given up if it was not met while so many times as many pieces as there are were asked for. */
enum { PATIENCE = 4 };

typedef struct kept {
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

typedef struct shelf {     /* of a session */
    pthread_mutex_t mutex; /* guards all that follows */
    pthread_cond_t  decoded;
    kept          **pieces; /* in any order */
    fv_hash_table   table;  /* of pieces by owner and number */
    int64_t         count, capacity, now, held, allowed;
    kept           *coldest, *hottest;
} shelf;

/* ---------------------------------------------------------------- the table; the mutex is held */

static void begin(void *part) {
    shelf *s = part;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->decoded, NULL);
}

static void end(void *part);

static shelf *shelf_here(void) {
    static const fv_session_type type = { sizeof(shelf), begin, end };
    return fv__session_part(FV_PART_KEPT, &type);
}

static int64_t charge(size_t bytes) { return (int64_t)(bytes + bytes / 16 + OVERHEAD); } /* buffers are rounded up a little */

static uint32_t hash_of(const void *owner, int64_t number) {
    return (uint32_t)fv__labels_hash(number, (int64_t)(uintptr_t)owner);
}

typedef struct piece_name {
    const shelf *shelf;
    const void  *owner;
    int64_t      number;
} piece_name;

static bool is_wanted(const void *context, uint32_t number) {
    const piece_name *w = context;
    const kept       *k = w->shelf->pieces[number];
    return k->owner == w->owner && k->number == w->number;
}

static kept *find(const shelf *s, const void *owner, int64_t number) {
    piece_name w = { s, owner, number };
    int64_t    at = fv__hash_table_number(&s->table, hash_of(owner, number), is_wanted, &w);
    return at < 0 ? NULL : s->pieces[at];
}

static uint64_t place_of(const shelf *s, const kept *k) {
    piece_name w = { s, k->owner, k->number };
    return fv__hash_table_find(&s->table, true, hash_of(k->owner, k->number), is_wanted, &w);
}

static void add_to_table(shelf *s, kept *k) {
    if (s->count == s->capacity) {
        s->capacity = FV_MAX(2 * s->capacity, 64);
        s->pieces = fv__realloc(s->pieces, (size_t)s->capacity * sizeof(kept *));
    }
    fv__hash_table_reserve(&s->table, 128, s->count + 1);
    fv__hash_table_add(&s->table, true, hash_of(k->owner, k->number), (uint32_t)s->count);
    s->pieces[s->count++] = k;
}

/* The last piece takes its number. */
static void remove_from_table(shelf *s, const kept *k) {
    uint64_t place = place_of(s, k);
    uint32_t number = *fv__hash_table_at(&s->table, true, place);
    kept    *last = s->pieces[s->count - 1];
    *fv__hash_table_at(&s->table, true, place_of(s, last)) = number;
    fv__hash_table_remove(&s->table, place);
    s->pieces[number - 1] = last;
    s->count--;
}

static void forget_table(shelf *s) {
    free(s->pieces);
    free(s->table.slot);
    s->pieces = NULL;
    s->capacity = 0;
    s->table = (fv_hash_table){ 0 };
}

static void unlink_order(shelf *s, kept *k) {
    *(k->colder ? &k->colder->hotter : &s->coldest) = k->hotter;
    *(k->hotter ? &k->hotter->colder : &s->hottest) = k->colder;
}

static void make_hottest(shelf *s, kept *k) {
    k->colder = s->hottest;
    k->hotter = NULL;
    *(s->hottest ? &s->hottest->hotter : &s->coldest) = k;
    s->hottest = k;
    k->met = s->now;
}

static void make_coldest(shelf *s, kept *k) {
    k->hotter = s->coldest;
    k->colder = NULL;
    *(s->coldest ? &s->coldest->colder : &s->hottest) = k;
    s->coldest = k;
}

static void drop(shelf *s, kept *k) {
    remove_from_table(s, k);
    unlink_order(s, k);
    s->held -= charge(k->bytes);
    fv__buffer_free(k->data, k->bytes);
    free(k);
}

static void end(void *part) {
    shelf *s = part;
    while (s->coldest) drop(s, s->coldest);
    forget_table(s);
}

static void shrink(shelf *s) {
    for (kept *k = s->coldest, *next; k && s->held > s->allowed; k = next) {
        next = k->hotter;
        if (!k->users) drop(s, k);
    }
}

static bool make_room(shelf *s, size_t bytes) {
    if (charge(bytes) > s->allowed) return false;
    for (kept *k = s->coldest, *next; k && s->held + charge(bytes) > s->allowed; k = next) {
        next = k->hotter;
        if (k->users) continue;
        if (k->left > 0 && s->now - k->met <= PATIENCE * s->count) return false; /* all others were met later */
        drop(s, k);
    }
    return s->held + charge(bytes) <= s->allowed;
}

static kept *add(shelf *s, const void *owner, const fv_piece *piece, size_t bytes) {
    void *data = fv__buffer_new(bytes);
    if (!data) return NULL; /* then it is not kept */
    kept *k = fv__calloc(sizeof *k);
    *k = (kept){ .owner = owner, .number = piece->number, .bytes = bytes, .left = piece->size, .data = data };
    add_to_table(s, k);
    make_hottest(s, k);
    s->held += charge(bytes);
    return k;
}

/* ---------------------------------------------------------------- one piece */

/* A piece to use, with its data or (not filled) to be decoded by the caller. NULL: it is not kept, or (busy) not yet there. */
static kept *claim(shelf *s, const void *owner, const fv_piece *piece, size_t bytes, bool wait, bool *busy) {
    kept *k;
    pthread_mutex_lock(&s->mutex);
    s->now++;
    while ((k = find(s, owner, piece->number)) && !k->filled && wait) pthread_cond_wait(&s->decoded, &s->mutex);
    *busy = k && !k->filled;
    if (*busy)
        k = NULL;
    else if (k) {
        unlink_order(s, k);
        make_hottest(s, k);
    } else if (make_room(s, bytes))
        k = add(s, owner, piece, bytes);
    if (k) k->users++;
    pthread_mutex_unlock(&s->mutex);
    return k;
}

static void tell_decoded(shelf *s, kept *k) {
    pthread_mutex_lock(&s->mutex);
    k->filled = true;
    pthread_cond_broadcast(&s->decoded);
    pthread_mutex_unlock(&s->mutex);
}

/* Those who wait for a piece that could not be decoded try it themselves, and fail with a message of their own. */
static void release(shelf *s, kept *k, int64_t wanted) {
    pthread_mutex_lock(&s->mutex);
    k->users--;
    k->left -= wanted;
    if (!k->filled) {
        drop(s, k);
        pthread_cond_broadcast(&s->decoded);
    } else if (k->left <= 0) {
        unlink_order(s, k);
        make_coldest(s, k);
    }
    if (s->held > s->allowed) shrink(s);
    pthread_mutex_unlock(&s->mutex);
}

static fv_status read_piece(const fv_piece_source *s, int64_t i, bool wait, bool *busy, fv_error *error) {
    fv_piece piece;
    s->describe(s->context, i, &piece);
    *busy = false;
    if (piece.wanted >= piece.size) return s->read(s->context, i, error);
    if (wait) fv__io_enter(); /* whoever decodes it may need the turn */
    shelf *own = shelf_here();
    kept  *k = claim(own, s->owner, &piece, s->bytes, wait, busy);
    if (wait) fv__io_leave();
    if (*busy) return FV_OK;
    if (!k) return s->read(s->context, i, error);
    fv_status status = k->filled ? FV_OK : s->decode(s->context, i, k->data, error);
    if (status == FV_OK && !k->filled) tell_decoded(own, k);
    if (status == FV_OK) s->place(s->context, i, k->data);
    release(own, k, piece.wanted);
    return status;
}

/* ---------------------------------------------------------------- all of a region */

fv_status fv__pieces_read(const fv_piece_source *source, fv_error *error) {
    int64_t   left = source->count;
    int64_t  *todo;
    fv_status status = FV_OK;
    FV_TRY(FV_TAKE(todo, (size_t)FV_MAX(left, 1) * sizeof *todo, error));
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
    shelf *s = shelf_here();
    pthread_mutex_lock(&s->mutex);
    for (kept *k = s->coldest, *next; k; k = next) {
        next = k->hotter;
        if (k->owner == owner) drop(s, k);
    }
    pthread_mutex_unlock(&s->mutex);
}

void fv__kept_allow(int64_t bytes) {
    shelf *s = shelf_here();
    pthread_mutex_lock(&s->mutex);
    s->allowed += bytes;
    shrink(s);
    if (!s->count) forget_table(s);
    pthread_mutex_unlock(&s->mutex);
}
