/* From memory to disk: spilling what does not fit, committing what is worth keeping.
 *
 * A commit takes the queue as it is, calls the hook, writes and syncs the bytes, then writes and syncs the lines. If anything
 * fails, the whole batch goes back into the queue: nothing counts as committed that might not be.
 */
#include "base/file.h"
#include "store/parts.h"
#include <stdlib.h>

enum { SPILL = 1 << 22 }; /* bytes spilled at a time beyond what is needed, so that small blobs share a write */
enum { PART = 1 << 24 };  /* bytes of a commit that are written at a time */

static fv_status explained(fv_store *store, fv_status status, fv_error *error) {
    if (status != FV_ERROR_FULL || !error) return status;
    fv_error cause = *error;
    if (store->transient)
        return fv_fail(error, status,
                       "no space left in %s for what does not fit into memory: %.400s; free some space, name another folder with "
                       "TMPDIR, or give more memory",
                       store->folder, cause.message);
    return fv_fail(error, status,
                   "no space left for results in %s: %.400s; what was committed is kept: free some space, or choose another "
                   "folder with --store, and run the same command again",
                   store->folder, cause.message);
}

/* Writes those of the pinned entries that are not in the pack yet. */
static fv_status place(fv_store *store, fv_pack_item *items, int64_t count, fv_error *error) {
    int64_t n = 0;
    fv__io_lock(&store->files);
    pthread_mutex_lock(&store->lock);
    for (int64_t i = 0; i < count; i++)
        if (!(((fv_entry *)items[i].owner)->flags & FV_ENTRY_PLACED)) items[n++] = items[i];
    pthread_mutex_unlock(&store->lock);
    fv_status status = fv__pack_write(&store->pack, items, n, error);
    pthread_mutex_lock(&store->lock);
    for (int64_t i = 0; status == FV_OK && i < n; i++) {
        fv_entry *entry = items[i].owner;
        entry->file = 0;
        entry->offset = items[i].offset;
        entry->content = items[i].content;
        entry->flags |= FV_ENTRY_PLACED | FV_ENTRY_VERIFIED;
        store->sources[0]->live += entry->size;
    }
    store->sources[0]->pack_fd = store->pack.pack_fd;
    pthread_mutex_unlock(&store->lock);
    pthread_mutex_unlock(&store->files);
    return explained(store, status, error);
}

static void add_item(fv_bytes *items, fv_entry *entry) {
    fv_pack_item item = { .owner = entry, .data = entry->data, .size = entry->size };
    fv__bytes_append(items, &item, sizeof item);
}

/* ---------------------------------------------------------------- spilling */

/* Takes the least recently used blobs out of memory until `goal` is met. Those that are in a pack or at home go at once, the
 * others are pinned and listed. */
static void choose_victims(fv_store *store, int64_t goal, fv_bytes *items, fv_bytes *debris) {
    fv_entry *entry;
    while (store->resident - store->leaving > goal && (entry = fv__entries_oldest(&store->entries))) {
        if (entry->flags & FV_ENTRY_PLACED) {
            fv__store_evict(store, entry, debris);
            continue;
        }
        if (store->home) {
            fv__store_forget(store, entry, debris);
            continue;
        }
        fv__store_pin(store, entry);
        store->leaving += fv__footprint(entry->size);
        add_item(items, entry);
    }
}

static void finish_spill(fv_store *store, const fv_bytes *victims, fv_bytes *debris) {
    fv_pack_item *items = (fv_pack_item *)(void *)victims->data;
    for (size_t i = 0; i < victims->size / sizeof *items; i++) {
        fv_entry *entry = items[i].owner;
        store->leaving -= fv__footprint(entry->size);
        if (entry->pins == 1 && entry->flags & FV_ENTRY_PLACED && !(entry->flags & FV_ENTRY_FORGOTTEN)) {
            entry->pins = 0;
            fv__store_evict(store, entry, debris);
        } else
            fv__store_unpin_held(store, entry, debris);
    }
}

fv_status fv__store_make_room(fv_store *store, fv_error *error) {
    fv_status status = FV_OK;
    while (status == FV_OK && store->resident - store->leaving > store->memory) {
        fv_bytes victims = { 0 }, copy = { 0 }, debris = { 0 };
        choose_victims(store, store->memory - FV_MIN(store->memory / 8, SPILL), &victims, &debris);
        bool none = victims.size == 0;
        pthread_mutex_unlock(&store->lock);
        if (!none) {
            fv__bytes_append(&copy, victims.data, victims.size);
            status = place(store, (fv_pack_item *)(void *)copy.data, (int64_t)(copy.size / sizeof(fv_pack_item)), error);
        }
        pthread_mutex_lock(&store->lock);
        finish_spill(store, &victims, &debris);
        pthread_mutex_unlock(&store->lock);
        fv__store_dispose(store, &debris);
        fv__bytes_release(&victims);
        fv__bytes_release(&copy);
        pthread_mutex_lock(&store->lock);
        if (none) break;
    }
    return status;
}

/* ---------------------------------------------------------------- lines */

static fv_line line_for(const fv_entry *entry, enum fv_line_kind kind, double seconds) {
    fv_line line = { .kind = kind, .key = entry->key, .offset = entry->offset, .size = entry->size, .content = entry->content };
    line.seconds = seconds;
    return line;
}

/* Files and lock held. Whatever is written next begins with the lines that void older ones: an entry that came back under a
 * key that was dropped gets its line after that, never before. */
static int64_t take_voids(fv_store *store, fv_bytes *lines) {
    uint64_t own = fv__writer_hash(store->pack.writer);
    int64_t  count = (int64_t)(store->voids.size / sizeof(fv_line));
    fv__bytes_append(lines, store->voids.data, store->voids.size);
    fv__bytes_clear(&store->voids);
    fv_line *voids = (fv_line *)(void *)lines->data;
    for (int64_t i = 0; i < count; i++)
        if (!voids[i].source) voids[i].source = own;
    return count;
}

/* Files held. The first `voids` lines wait for the next ones if they cannot be written now. */
static fv_status append(fv_store *store, const fv_bytes *lines, int64_t voids, fv_error *error) {
    int64_t count = (int64_t)(lines->size / sizeof(fv_line));
    if (count == 0) return FV_OK;
    fv_status status = fv__pack_log(&store->pack, (fv_line *)(void *)lines->data, count, error);
    if (status == FV_OK) return FV_OK;
    fv_bytes first = { 0 };
    fv__bytes_append(&first, lines->data, (size_t)voids * sizeof(fv_line));
    pthread_mutex_lock(&store->lock);
    fv__bytes_append(&first, store->voids.data, store->voids.size);
    fv__bytes_release(&store->voids);
    store->voids = first;
    pthread_mutex_unlock(&store->lock);
    return status;
}

fv_status fv__store_publish(fv_store *store, fv_entry *entry, double seconds, fv_error *error) {
    fv_pack_item item = { .owner = entry, .data = entry->data, .size = entry->size };
    if (entry->size > 0) FV_TRY(place(store, &item, 1, error));
    fv_bytes lines = { 0 };
    fv__io_lock(&store->files);
    pthread_mutex_lock(&store->lock);
    int64_t voids = take_voids(store, &lines);
    if (!(entry->flags & FV_ENTRY_FORGOTTEN)) {
        fv_line line = line_for(entry, FV_LINE_SHARED, seconds);
        fv__bytes_append(&lines, &line, sizeof line);
        entry->flags |= FV_ENTRY_LOGGED;
    }
    pthread_mutex_unlock(&store->lock);
    fv_status status = append(store, &lines, voids, error);
    if (status != FV_OK) {
        pthread_mutex_lock(&store->lock);
        entry->flags &= ~FV_ENTRY_LOGGED;
        pthread_mutex_unlock(&store->lock);
    }
    pthread_mutex_unlock(&store->files);
    fv__bytes_release(&lines);
    return explained(store, status, error);
}

void fv__store_void(fv_store *store, const fv_entry *entry) {
    fv_line line = { .kind = FV_LINE_DROPPED, .key = entry->key };
    if (entry->file) line.source = store->sources[entry->file]->hash;
    fv__bytes_append(&store->voids, &line, sizeof line);
}

void fv__store_write_voids(fv_store *store) {
    fv_error error;
    fv_bytes lines = { 0 };
    fv__io_lock(&store->files);
    pthread_mutex_lock(&store->lock);
    int64_t voids = take_voids(store, &lines);
    pthread_mutex_unlock(&store->lock);
    fv_status status = append(store, &lines, voids, &error);
    pthread_mutex_unlock(&store->files);
    fv__bytes_release(&lines);
    if (status != FV_OK) fv__log_verbose("a result will be dropped for good with the next commit: %s", error.message);
}

/* ---------------------------------------------------------------- committing */

void fv__store_queue(fv_store *store, fv_entry *entry, double seconds) {
    fv_dirty dirty = { .entry = entry, .seconds = seconds > 0 ? seconds : 0 };
    entry->flags |= FV_ENTRY_KEEP | FV_ENTRY_QUEUED;
    fv__bytes_append(&store->dirty, &dirty, sizeof dirty);
    store->queued += dirty.seconds;
}

static fv_dirty *dirty_of(const fv_bytes *batch, int64_t *count) {
    *count = (int64_t)(batch->size / sizeof(fv_dirty));
    return (fv_dirty *)(void *)batch->data;
}

/* The queue becomes the batch; what was dropped meanwhile leaves it; what must be written is pinned and listed. What is dropped
 * from now on is committed all the same, so that a batch is whole: results may have taken the place of those they were made of
 * while it was written, and are not in it. */
static void begin_batch(fv_store *store, fv_bytes *batch, fv_bytes *items, bool *bytes, fv_bytes *debris) {
    *batch = store->dirty;
    store->dirty = (fv_bytes){ 0 };
    store->in_commit = store->queued;
    store->queued = 0;
    int64_t   count, n = 0;
    fv_dirty *dirty = dirty_of(batch, &count);
    for (int64_t i = 0; i < count; i++) {
        fv_entry *entry = dirty[i].entry;
        if (entry->flags & FV_ENTRY_FORGOTTEN) {
            entry->flags &= ~FV_ENTRY_QUEUED;
            if (!entry->pins) fv__store_scrap(store, entry, debris);
            continue;
        }
        *bytes = *bytes || entry->size > 0;
        dirty[i].pinned = entry->size > 0 && !(entry->flags & FV_ENTRY_PLACED);
        dirty[i].logged = false;
        entry->flags |= FV_ENTRY_IN_BATCH;
        if (dirty[i].pinned) {
            fv__store_pin(store, entry);
            add_item(items, entry);
        }
        dirty[n++] = dirty[i];
    }
    batch->size = (size_t)n * sizeof *dirty;
}

/* Files and lock held. What gets a line here counts as logged from now on, so that whoever drops it meanwhile voids the line. */
static void make_lines(fv_store *store, const fv_bytes *batch, int64_t shared_end) {
    int64_t   count;
    fv_dirty *dirty = dirty_of(batch, &count);
    fv__bytes_reserve(&store->lines, (size_t)(count + 1) * sizeof(fv_line));
    for (int64_t i = 0; i < count; i++) {
        fv_entry *entry = dirty[i].entry;
        if (entry->flags & (FV_ENTRY_FORGOTTEN | FV_ENTRY_LOGGED)) continue;
        fv_line line = line_for(entry, FV_LINE_COMMITTED, dirty[i].seconds);
        fv__bytes_append(&store->lines, &line, sizeof line);
        entry->flags |= FV_ENTRY_LOGGED;
        dirty[i].logged = true;
    }
    if (store->shared && count) {
        fv_line line = { .kind = FV_LINE_SYNCED, .offset = shared_end };
        fv__bytes_append(&store->lines, &line, sizeof line);
    }
}

static fv_status write_lines(fv_store *store, const fv_bytes *batch, int64_t shared_end, fv_error *error) {
    fv__io_lock(&store->files);
    fv__bytes_clear(&store->lines);
    pthread_mutex_lock(&store->lock);
    int64_t voids = take_voids(store, &store->lines);
    make_lines(store, batch, shared_end);
    pthread_mutex_unlock(&store->lock);
    fv_status status = append(store, &store->lines, voids, error);
    bool      folder = store->pack.unnamed, sync = store->pack.log_unsynced;
    if (status == FV_OK) store->pack.unnamed = store->pack.log_unsynced = false;
    pthread_mutex_unlock(&store->files);
    if (status != FV_OK || !sync) return status;
    status = fv__pack_sync_log(&store->pack, folder, error);
    if (status == FV_OK) return FV_OK;
    fv__io_lock(&store->files);
    store->pack.unnamed |= folder;
    store->pack.log_unsynced = true;
    pthread_mutex_unlock(&store->files);
    return status;
}

/* Lock held. Bytes that could not be synced may be lost although they were written: those still in memory are written again. */
static void finish_batch(fv_store *store, const fv_bytes *batch, bool committed, bool rewrite, fv_bytes *debris) {
    int64_t   count;
    fv_dirty *dirty = dirty_of(batch, &count);
    for (int64_t i = 0; i < count; i++) {
        fv_entry *entry = dirty[i].entry;
        if (committed) {
            entry->flags |= FV_ENTRY_LOGGED | FV_ENTRY_COMMITTED;
            entry->flags &= ~FV_ENTRY_QUEUED;
        } else if (dirty[i].logged) {
            entry->flags &= ~FV_ENTRY_LOGGED; /* the line may not last: the next commit writes it again */
        }
        if (rewrite && dirty[i].pinned) entry->flags &= ~FV_ENTRY_PLACED;
        bool leaving = entry->flags & FV_ENTRY_LEAVING && !(entry->flags & FV_ENTRY_FORGOTTEN);
        entry->flags &= ~(FV_ENTRY_IN_BATCH | FV_ENTRY_LEAVING);
        if (dirty[i].pinned)
            fv__store_unpin_held(store, entry, debris);
        else if (!(entry->flags & FV_ENTRY_QUEUED) && entry->flags & FV_ENTRY_FORGOTTEN && !entry->pins)
            fv__store_scrap(store, entry, debris);
        if (leaving && !committed)
            fv__store_forget(store, entry, debris);
        else if (leaving && !entry->pins)
            fv__store_evict(store, entry, debris);
    }
}

static void requeue(fv_store *store, fv_bytes *batch) { /* before what was put since */
    fv_bytes since = store->dirty;
    fv__bytes_append(batch, since.data, since.size);
    store->dirty = *batch;
    store->queued += store->in_commit;
    fv__bytes_release(&since);
    *batch = (fv_bytes){ 0 };
}

static fv_status push(fv_store *store, fv_error *error) {
    fv__io_lock(&store->files);
    int64_t end = store->pack.log_end;
    pthread_mutex_unlock(&store->files);
    fv__io_enter();
    fv_status status = fv__mirror_push(store->mirror, &store->pack, end, error);
    fv__io_leave();
    return status;
}

/* What was dropped since the batch was begun leaves memory as soon as it is in the pack. */
static void let_go(fv_store *store, const fv_bytes *batch) {
    fv_bytes  debris = { 0 };
    int64_t   count;
    fv_dirty *dirty = dirty_of(batch, &count);
    pthread_mutex_lock(&store->lock);
    for (int64_t i = 0; i < count; i++) {
        fv_entry *entry = dirty[i].entry;
        if (!dirty[i].pinned || entry->pins > 1 || entry->flags & FV_ENTRY_FORGOTTEN) continue;
        if (!(entry->flags & FV_ENTRY_LEAVING) || !(entry->flags & FV_ENTRY_PLACED)) continue;
        dirty[i].pinned = false;
        entry->pins = 0;
        fv__store_evict(store, entry, &debris);
    }
    pthread_mutex_unlock(&store->lock);
    fv__store_dispose(store, &debris);
}

/* A part at a time. */
static fv_status place_batch(fv_store *store, const fv_bytes *batch, const fv_bytes *listed, fv_error *error) {
    fv_pack_item *items = (fv_pack_item *)(void *)listed->data;
    int64_t       count = (int64_t)(listed->size / sizeof *items);
    for (int64_t i = 0, n; i < count; i += n) {
        int64_t bytes = 0;
        for (n = 0; i + n < count && (n == 0 || bytes < PART); n++) bytes += items[i + n].size;
        FV_TRY(place(store, items + i, n, error));
        let_go(store, batch);
    }
    return FV_OK;
}

/* Called by one thread at a time. */
static fv_status commit(fv_store *store, fv_error *error) {
    fv_bytes batch, items = { 0 }, debris = { 0 };
    bool     bytes = false, unsynced = false;
    pthread_mutex_lock(&store->lock);
    begin_batch(store, &batch, &items, &bytes, &debris);
    fv_status (*hook)(void *, fv_error *) = store->hook;
    void *context = store->hook_context;
    pthread_mutex_unlock(&store->lock);
    fv__io_lock(&store->files);
    int64_t shared_end = store->pack.log_end;
    pthread_mutex_unlock(&store->files);

    fv_status status = hook ? hook(context, error) : FV_OK;
    if (status == FV_OK) status = place_batch(store, &batch, &items, error);
    if (status == FV_OK && bytes) {
        status = explained(store, fv__pack_sync(&store->pack, error), error);
        unsynced = status != FV_OK;
    }
    if (status == FV_OK) status = explained(store, write_lines(store, &batch, shared_end, error), error);
    if (status == FV_OK && store->mirror) status = push(store, error);

    pthread_mutex_lock(&store->lock);
    finish_batch(store, &batch, status == FV_OK, unsynced, &debris);
    if (status != FV_OK) requeue(store, &batch);
    store->in_commit = 0;
    pthread_mutex_unlock(&store->lock);
    fv__store_dispose(store, &debris);
    fv__bytes_release(&batch);
    fv__bytes_release(&items);
    return status;
}

fv_status fv__store_flush(fv_store *store, fv_error *error) {
    if (store->transient) return FV_OK;
    fv__io_lock(&store->committing);
    fv_status status = commit(store, error);
    pthread_mutex_unlock(&store->committing);
    return status;
}

fv_status fv__store_commit_due(fv_store *store, fv_error *error) {
    fv__io_lock(&store->committing);
    pthread_mutex_lock(&store->lock);
    bool due = store->queued > store->patience; /* somebody else may have done it while we waited */
    pthread_mutex_unlock(&store->lock);
    fv_status status = due ? commit(store, error) : FV_OK;
    pthread_mutex_unlock(&store->committing);
    return status;
}

void fv__store_on_flush(fv_store *store, fv_status (*hook)(void *context, fv_error *error), void *context) {
    pthread_mutex_lock(&store->lock);
    store->hook = hook;
    store->hook_context = context;
    pthread_mutex_unlock(&store->lock);
}

double fv__store_uncommitted(fv_store *store) {
    pthread_mutex_lock(&store->lock);
    double seconds = store->queued + store->in_commit;
    pthread_mutex_unlock(&store->lock);
    return seconds;
}
