/* The store as its callers see it: putting, getting, dropping.
 *
 * 1. An entry in the table is in memory, in a pack, or both; a fact (size 0) needs neither.
 * 2. In the order of use are exactly the entries in memory that nobody has pinned.
 * 3. An entry lives on after it was forgotten while it is pinned or in the queue of commits; its memory goes with the last pin.
 */
#include "store/store.h"
#include "base/file.h"
#include "base/take.h"
#include "store/parts.h"
#include <stdlib.h>

/* ---------------------------------------------------------------- entries */

void fv__store_pin(fv_store *store, fv_entry *entry) {
    if (entry->pins++ == 0) fv__entries_take(&store->entries, entry);
}

void fv__store_evict(fv_store *store, fv_entry *entry, fv_bytes *debris) {
    if (!entry->data) return;
    fv_debris piece = { .data = entry->data, .size = entry->size };
    fv__entries_take(&store->entries, entry);
    fv__bytes_append(debris, &piece, sizeof piece);
    store->resident -= fv__footprint(entry->size);
    entry->data = NULL;
}

void fv__store_scrap(fv_store *store, fv_entry *entry, fv_bytes *debris) {
    fv__store_evict(store, entry, debris);
    fv_debris piece = { .offset = entry->offset, .length = entry->size };
    if (entry->flags & FV_ENTRY_PLACED) store->sources[entry->file]->live -= entry->size;
    if (entry->flags & FV_ENTRY_PLACED && entry->file == 0) fv__bytes_append(debris, &piece, sizeof piece);
    fv__entries_free(&store->entries, entry);
}

static void release_forgotten(fv_store *store, fv_entry *entry, fv_bytes *debris) {
    if (entry->pins) return;
    if (entry->flags & FV_ENTRY_QUEUED)
        fv__store_evict(store, entry, debris); /* the commit scraps the rest */
    else
        fv__store_scrap(store, entry, debris);
}

void fv__store_unpin_held(fv_store *store, fv_entry *entry, fv_bytes *debris) {
    if (--entry->pins) return;
    if (entry->flags & FV_ENTRY_FORGOTTEN)
        release_forgotten(store, entry, debris);
    else if (entry->data)
        fv__entries_use(&store->entries, entry);
}

void fv__store_forget(fv_store *store, fv_entry *entry, fv_bytes *debris) {
    fv__entries_unlink(&store->entries, entry);
    release_forgotten(store, entry, debris);
}

void fv__store_dispose(fv_store *store, fv_bytes *debris) {
    const fv_debris *pieces = (const fv_debris *)(const void *)debris->data;
    for (size_t i = 0; i < debris->size / sizeof *pieces; i++) {
        fv__buffer_free(pieces[i].data, (size_t)pieces[i].size);
        if (pieces[i].length) fv__pack_punch(store->pack.pack_fd, pieces[i].offset, pieces[i].length);
    }
    fv__bytes_release(debris);
}

/* ---------------------------------------------------------------- opening and closing */

fv_status fv__store_open(const fv_store_options *options, fv_store **result, fv_error *error) {
    *result = NULL;
    fv_status status = FV_OK;
    if (!options->writer[0] || strchr(options->writer, '/'))
        status =
            fv_fail(error, FV_ERROR_INTERNAL, "writer = \"%s\": the name of the store's files must be one word", options->writer);
    if (status == FV_OK && !options->transient) status = fv__path_make_folders(options->folder, error);
    if (status != FV_OK) {
        fv__mirror_close(options->mirror);
        return status;
    }
    fv_store *store = fv__calloc(sizeof *store);
    store->folder = fv__strdup(options->folder);
    store->memory = FV_MAX(options->memory, 0);
    store->patience = options->patience;
    store->shared = options->shared;
    store->late = options->late;
    store->transient = options->transient;
    store->home = options->home;
    store->mirror = options->mirror;
    store->folder_time = -1;
    pthread_mutex_init(&store->lock, NULL);
    pthread_mutex_init(&store->files, NULL);
    pthread_mutex_init(&store->committing, NULL);
    pthread_mutex_init(&store->scanning, NULL);
    pthread_cond_init(&store->loaded, NULL);
    fv__pack_init(&store->pack, store->folder, options->writer, options->transient);
    fv__folder_add_source(store, NULL);
    if (!options->transient) fv__folder_remove_orphans(store->folder);
    status = fv__store_refresh(store, error);
    if (status != FV_OK) {
        fv__store_close(store);
        return status;
    }
    fv__folder_sweep(store); /* of other writers, which a transient store has none of */
    *result = store;
    return FV_OK;
}

void fv__store_bound(fv_store *store, int64_t memory) { store->memory = FV_MAX(memory, 0); }

void fv__store_close(fv_store *store) {
    if (!store) return;
    for (fv_entry *entry = NULL; (entry = fv__entries_next(&store->entries, entry));) {
        fv__buffer_free(entry->data, (size_t)entry->size);
        bool lost = entry->file == 0 && entry->flags & FV_ENTRY_PLACED && !(entry->flags & FV_ENTRY_LOGGED);
        if (lost) fv__pack_punch(store->pack.pack_fd, entry->offset, entry->size);
    }
    fv__pack_release(&store->pack);
    for (uint32_t i = 0; i < store->nsources; i++) fv__source_free(store->sources[i]);
    free(store->sources);
    fv__mirror_close(store->mirror);
    fv__entries_release(&store->entries);
    fv__entries_release(&store->dropped);
    fv__entries_release(&store->names);
    fv__bytes_release(&store->dirty);
    fv__bytes_release(&store->lines);
    fv__bytes_release(&store->voids);
    fv__bytes_release(&store->lost);
    pthread_mutex_destroy(&store->lock);
    pthread_mutex_destroy(&store->files);
    pthread_mutex_destroy(&store->committing);
    pthread_mutex_destroy(&store->scanning);
    pthread_cond_destroy(&store->loaded);
    free(store->folder);
    free(store);
}

fv_status fv__store_refresh(fv_store *store, fv_error *error) {
    if (store->transient) return FV_OK;
    fv__io_lock(&store->scanning);
    fv_status status = fv__folder_scan(store, error);
    pthread_mutex_unlock(&store->scanning);
    return status;
}

/* ---------------------------------------------------------------- putting */

/* Lock held. What is known already is kept, since equal keys mean equal bytes; only what another process may still lose is
 * replaced by our own copy. */
static fv_entry *enter(fv_store *store, fv_hash key, void *buffer, size_t size, bool keep, bool *fresh, fv_bytes *debris) {
    fv_entry *entry = fv__entries_find(&store->entries, key);
    bool      theirs = entry && entry->file && !(entry->flags & FV_ENTRY_COMMITTED);
    if (theirs && keep) {
        fv__store_forget(store, entry, debris);
        entry = NULL;
    }
    *fresh = !entry;
    fv_debris surplus = { .data = buffer, .size = (int64_t)size };
    if (buffer && (entry || !size)) fv__bytes_append(debris, &surplus, sizeof surplus);
    if (entry) {
        entry->flags &= ~FV_ENTRY_LEAVING;
        return entry;
    }
    entry = fv__entries_add(&store->entries, key);
    if (!size) return entry;
    entry->data = buffer;
    entry->size = (int64_t)size;
    store->resident += fv__footprint(entry->size);
    fv__entries_use(&store->entries, entry);
    return entry;
}

static fv_status put(fv_store *store, fv_hash key, void *buffer, size_t size, double seconds, bool keep, bool shared,
                     fv_error *error) {
    if (size && !buffer) return fv_fail(error, FV_ERROR_INTERNAL, "a result of %zu bytes without the bytes", size);
    fv_bytes  debris = { 0 };
    bool      fresh;
    fv_status status = FV_OK, spilled = FV_OK;
    pthread_mutex_lock(&store->lock);
    fv_entry *entry = enter(store, key, buffer, size, keep, &fresh, &debris);
    if (fresh && shared) {
        fv__store_pin(store, entry);
        pthread_mutex_unlock(&store->lock);
        status = fv__store_publish(store, entry, seconds, error);
        pthread_mutex_lock(&store->lock);
    }
    bool waits = entry->flags & (FV_ENTRY_QUEUED | FV_ENTRY_COMMITTED | FV_ENTRY_FORGOTTEN);
    if (keep && !waits && !store->transient) fv__store_queue(store, entry, seconds);
    if (fresh && shared) fv__store_unpin_held(store, entry, &debris);
    if (store->resident - store->leaving > store->memory) spilled = fv__store_make_room(store, status == FV_OK ? error : NULL);
    bool due = store->queued > store->patience;
    pthread_mutex_unlock(&store->lock);
    fv__store_dispose(store, &debris);
    if (status == FV_OK) status = spilled;
    if (status == FV_OK && due) status = fv__store_commit_due(store, error);
    return status;
}

fv_status fv__store_put(fv_store *store, fv_hash key, void *buffer, size_t size, double seconds, bool keep, fv_error *error) {
    fv_status given = FV_OK;
    if (store->home) given = store->home->give(store->home->context, key, buffer, size, seconds, keep, error);
    if (given != FV_OK) {
        fv__buffer_free(buffer, size);
        return given;
    }
    return put(store, key, buffer, size, seconds, keep, store->shared && !store->late, error);
}

fv_status fv__store_hold(fv_store *store, fv_hash key, void *buffer, size_t size, double seconds, bool keep, fv_error *error) {
    return put(store, key, buffer, size, seconds, keep, false, error);
}

/* ---------------------------------------------------------------- asking */

/* Lock held, released meanwhile. */
static fv_entry *ask_home(fv_store *store, fv_hash key) {
    void    *buffer = NULL;
    size_t   size = 0;
    fv_bytes debris = { 0 };
    bool     fresh;
    pthread_mutex_unlock(&store->lock);
    bool there = store->home->ask(store->home->context, key, &buffer, &size);
    pthread_mutex_lock(&store->lock);
    fv_entry *entry = there ? enter(store, key, buffer, size, false, &fresh, &debris) : NULL;
    fv__store_dispose(store, &debris);
    return entry;
}

/* Lock held. In a shared store a miss looks at the folder first; the lock is released meanwhile. */
static fv_entry *find(fv_store *store, fv_hash key) {
    fv_entry *entry = fv__entries_find(&store->entries, key);
    if (!entry && store->home) entry = ask_home(store, key);
    if (!entry && store->shared) {
        pthread_mutex_unlock(&store->lock);
        fv__store_refresh(store, NULL);
        pthread_mutex_lock(&store->lock);
        entry = fv__entries_find(&store->entries, key);
    }
    if (entry && entry->file) fv__source_touch(store, store->sources[entry->file]);
    return entry;
}

bool fv__store_has(fv_store *store, fv_hash key) {
    pthread_mutex_lock(&store->lock);
    bool found = find(store, key) != NULL;
    pthread_mutex_unlock(&store->lock);
    return found;
}

bool fv__store_is_part(const fv_store *store) { return store->home; }

bool fv__store_knows(fv_store *store, fv_hash key) {
    if (store->home) return false;
    pthread_mutex_lock(&store->lock);
    bool found = fv__entries_find(&store->entries, key) != NULL;
    pthread_mutex_unlock(&store->lock);
    return found;
}

bool fv__store_committed(fv_store *store, fv_hash key) {
    pthread_mutex_lock(&store->lock);
    const fv_entry *entry = find(store, key);
    bool            committed = entry && entry->flags & FV_ENTRY_COMMITTED;
    pthread_mutex_unlock(&store->lock);
    return committed;
}

size_t fv__store_size(fv_store *store, fv_hash key) {
    pthread_mutex_lock(&store->lock);
    const fv_entry *entry = find(store, key);
    size_t          size = entry ? (size_t)entry->size : 0;
    pthread_mutex_unlock(&store->lock);
    return size;
}

int64_t fv__store_resident(fv_store *store) {
    pthread_mutex_lock(&store->lock);
    int64_t bytes = store->resident;
    pthread_mutex_unlock(&store->lock);
    return bytes;
}

/* ---------------------------------------------------------------- getting */

static fv_status damaged(const fv_store *store, fv_hash key, fv_error *error) {
    char text[33];
    fv__hash_format(key, text);
    return fv_fail(error, FV_ERROR_INPUT, "the result %s in the store %s is damaged and has to be made again", text,
                   store->folder);
}

static bool is_lost(const fv_store *store, fv_hash key) { /* lock held */
    const fv_hash *lost = (const void *)store->lost.data;
    for (size_t i = 0; i < store->lost.size / sizeof *lost; i++)
        if (!memcmp(&lost[i], &key, sizeof key)) return true;
    return false;
}

fv_status fv__store_check_lost(fv_store *store, fv_hash key, fv_error *error) {
    pthread_mutex_lock(&store->lock);
    bool lost = is_lost(store, key);
    pthread_mutex_unlock(&store->lock);
    return lost ? damaged(store, key, error) : FV_OK;
}

static fv_status pin_key(fv_store *store, fv_hash key, fv_entry **entry, fv_error *error) { /* lock held */
    char text[33];
    *entry = find(store, key);
    fv__hash_format(key, text);
    if (!*entry && is_lost(store, key)) return damaged(store, key, error);
    if (!*entry) return fv_fail(error, FV_ERROR_INTERNAL, "the store %s has no result %s", store->folder, text);
    if ((*entry)->pins == UINT16_MAX) return fv_fail(error, FV_ERROR_INTERNAL, "too many users of the result %s", text);
    fv__store_pin(store, *entry);
    return FV_OK;
}

/* Bytes of an entry, from its pack here (fd) or elsewhere. */
static fv_status read_bytes(fv_store *store, const fv_entry *entry, int fd, size_t at, void *data, size_t size, fv_error *error) {
    int64_t offset = entry->offset + (int64_t)at;
    pthread_mutex_lock(&store->lock);
    const fv_source *source = store->sources[entry->file];
    bool             away = source->away;
    pthread_mutex_unlock(&store->lock);
    if (away) return fv__mirror_read(store->mirror, source->writer, offset, data, size, error);
    return fv__file_read_at(fd, data, size, offset, store->folder, error);
}

/* Reads a pinned entry's bytes, whole, into data, or in small pieces if data is NULL, and checks them. */
static fv_status load(fv_store *store, fv_entry *entry, int fd, void *data, fv_error *error) {
    enum { PIECE = 1 << 20 };
    size_t    size = (size_t)entry->size, step = data ? size : FV_MIN(size, (size_t)PIECE);
    void     *piece = data ? data : fv__alloc(step);
    fv_hasher hasher;
    fv_status status = FV_OK;
    fv__hasher_init(&hasher);
    for (size_t at = 0; status == FV_OK && at < size; at += step) {
        size_t n = FV_MIN(step, size - at);
        status = read_bytes(store, entry, fd, at, piece, n, error);
        if (status == FV_OK) fv__hasher_add(&hasher, piece, n);
    }
    uint64_t content = fv__hasher_finish(&hasher).low;
    if (!data) free(piece);
    if (status == FV_ERROR_INPUT || (status == FV_OK && content != entry->content)) return damaged(store, entry->key, error);
    return status;
}

/* What was found damaged is absent from now on, also for those who come later. Unpins the entry. */
static void give_up(fv_store *store, fv_entry *entry) {
    fv_bytes debris = { 0 };
    pthread_mutex_lock(&store->lock);
    bool voids = false;
    if (!(entry->flags & FV_ENTRY_FORGOTTEN)) {
        voids = entry->flags & FV_ENTRY_LOGGED;
        if (voids) fv__store_void(store, entry);
        fv__bytes_append(&store->lost, &entry->key, sizeof entry->key);
        fv__store_forget(store, entry, &debris);
    }
    fv__store_unpin_held(store, entry, &debris);
    pthread_mutex_unlock(&store->lock);
    if (voids) fv__store_write_voids(store);
    fv__store_dispose(store, &debris);
}

static fv_status read_whole(fv_store *store, fv_entry *entry, void *data, fv_error *error) {
    int       fd;
    fv_status status = fv__source_enter(store, entry->file, &fd, error);
    if (status == FV_ERROR_INPUT) return damaged(store, entry->key, error); /* no pack there */
    if (status != FV_OK) return status;
    status = load(store, entry, fd, data, error);
    fv__source_leave(store, entry->file);
    return status;
}

/* Lock held, released meanwhile; the entry is pinned and nobody else loads it. */
static fv_status make_resident(fv_store *store, fv_entry *entry, fv_error *error) {
    entry->flags |= FV_ENTRY_LOADING;
    store->resident += fv__footprint(entry->size);
    fv__store_make_room(store, NULL); /* if the others cannot leave, reading must still work */
    pthread_mutex_unlock(&store->lock);
    void     *data;
    fv_status status = FV_TAKE_BUFFER(data, (size_t)entry->size, error);
    if (status == FV_OK) status = read_whole(store, entry, data, error);
    if (status != FV_OK) fv__buffer_free(data, (size_t)entry->size);
    pthread_mutex_lock(&store->lock);
    entry->flags &= ~FV_ENTRY_LOADING;
    if (status == FV_OK) {
        entry->data = data;
        entry->flags |= FV_ENTRY_VERIFIED;
    } else
        store->resident -= fv__footprint(entry->size);
    pthread_cond_broadcast(&store->loaded);
    return status;
}

static void wait_for_loader(fv_store *store, const fv_entry *entry) { /* lock held, released meanwhile */
    pthread_mutex_unlock(&store->lock);
    fv__io_enter();
    pthread_mutex_lock(&store->lock);
    while (entry->flags & FV_ENTRY_LOADING) pthread_cond_wait(&store->loaded, &store->lock);
    pthread_mutex_unlock(&store->lock);
    fv__io_leave();
    pthread_mutex_lock(&store->lock);
}

fv_status fv__store_get(fv_store *store, fv_hash key, fv_blob *blob, fv_error *error) {
    fv_entry *entry;
    *blob = (fv_blob){ 0 };
    pthread_mutex_lock(&store->lock);
    fv_status status = pin_key(store, key, &entry, error);
    if (status != FV_OK) {
        pthread_mutex_unlock(&store->lock);
        return status;
    }
    while (entry->flags & FV_ENTRY_LOADING) wait_for_loader(store, entry);
    if (entry->size && !entry->data) {
        if (entry->flags & FV_ENTRY_FORGOTTEN)
            status = damaged(store, entry->key, error);
        else
            status = make_resident(store, entry, error);
    }
    *blob = (fv_blob){ entry->data, (size_t)entry->size, entry };
    pthread_mutex_unlock(&store->lock);
    if (status == FV_OK) return FV_OK;
    *blob = (fv_blob){ .entry = entry };
    if (status == FV_ERROR_INPUT) {
        give_up(store, entry);
        *blob = (fv_blob){ 0 };
    } else
        fv__store_unpin(store, blob);
    return status;
}

void fv__store_unpin(fv_store *store, fv_blob *blob) {
    if (!blob->entry) return;
    fv_bytes debris = { 0 };
    pthread_mutex_lock(&store->lock);
    fv__store_unpin_held(store, blob->entry, &debris);
    if (store->resident - store->leaving > store->memory)
        fv__store_make_room(store, NULL); /* if it fails, the next put says so */
    pthread_mutex_unlock(&store->lock);
    fv__store_dispose(store, &debris);
    *blob = (fv_blob){ 0 };
}

/* Part of a pinned entry that is not in memory. Bytes that this process neither wrote nor checked are checked once as a whole. */
static fv_status read_part(fv_store *store, fv_entry *entry, bool verified, size_t offset, void *data, size_t size,
                           fv_error *error) {
    int fd;
    if (!verified) {
        FV_TRY(read_whole(store, entry, NULL, error));
        pthread_mutex_lock(&store->lock);
        entry->flags |= FV_ENTRY_VERIFIED;
        pthread_mutex_unlock(&store->lock);
    }
    fv_status status = fv__source_enter(store, entry->file, &fd, error);
    if (status == FV_OK) {
        status = read_bytes(store, entry, fd, offset, data, size, error);
        fv__source_leave(store, entry->file);
    }
    return status == FV_ERROR_INPUT ? damaged(store, entry->key, error) : status;
}

fv_status fv__store_read(fv_store *store, fv_hash key, size_t offset, void *data, size_t size, fv_error *error) {
    fv_entry *entry;
    pthread_mutex_lock(&store->lock);
    fv_status   status = pin_key(store, key, &entry, error);
    const char *resident = status == FV_OK ? entry->data : NULL;
    bool        verified = status == FV_OK && entry->flags & FV_ENTRY_VERIFIED;
    pthread_mutex_unlock(&store->lock);
    if (status != FV_OK) return status;
    if (offset > (size_t)entry->size || size > (size_t)entry->size - offset)
        status = fv_fail(error, FV_ERROR_INTERNAL, "%zu bytes at %zu asked from a result of %lld bytes", size, offset,
                         (long long)entry->size);
    else if (resident)
        memcpy(data, resident + offset, size);
    else if (size)
        status = read_part(store, entry, verified, offset, data, size, error);
    if (status == FV_ERROR_INPUT) {
        give_up(store, entry);
        return status;
    }
    fv_blob blob = { .entry = entry };
    fv__store_unpin(store, &blob);
    return status;
}

/* ---------------------------------------------------------------- dropping */

void fv__store_drop(fv_store *store, fv_hash key, bool durably) {
    fv_bytes debris = { 0 };
    pthread_mutex_lock(&store->lock);
    fv_entry *entry = fv__entries_find(&store->entries, key);
    bool      voids = false;
    if (entry && entry->flags & FV_ENTRY_COMMITTED && !durably) {
        if (!entry->pins) fv__store_evict(store, entry, &debris);
    } else if (entry && entry->flags & FV_ENTRY_IN_BATCH && !durably) {
        entry->flags |= FV_ENTRY_LEAVING;
        if (!entry->pins && entry->flags & FV_ENTRY_PLACED) fv__store_evict(store, entry, &debris);
    } else if (entry) {
        voids = entry->flags & FV_ENTRY_LOGGED && (entry->file == 0 || durably);
        if (voids) fv__store_void(store, entry);
        fv__store_forget(store, entry, &debris);
    }
    pthread_mutex_unlock(&store->lock);
    if (voids) fv__store_write_voids(store);
    fv__store_dispose(store, &debris);
}
