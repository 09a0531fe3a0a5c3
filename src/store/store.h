/* Where results live between stages: blobs under 128-bit keys, in memory while they fit, in append-only pack files otherwise.
 *
 *     fv__store_put(store, key, buffer, size, seconds, true, &error);   // takes a buffer of fv__buffer_new
 *     fv__store_get(store, key, &blob, &error); ... fv__store_unpin(store, &blob);
 *
 * A blob is committed once its record is in the synced log: it is then never made again. What is not yet committed is written
 * and synced in batches, as soon as it is worth more than `patience` seconds of work, so that a kill loses at most that.
 * All functions are thread-safe.
 *
 * Invariants
 * 1. A log record is written only after the bytes it points at, and synced only after them.
 * 2. A torn or damaged record, or one whose blob fails its checksum, counts as absent; the work is done again.
 * 3. Each process appends only to files that it created itself; it reads all of them.
 * 4. Memory used by resident blobs stays below the budget except for pinned ones.
 */
#ifndef FV_STORE_H
#define FV_STORE_H

#include "store/mirror.h"

typedef struct fv_store fv_store;

/* The store of another process that this one is only a part of: what is put goes there, what is missing is asked for there, and
 * what does not fit into memory is forgotten here. */
typedef struct fv_store_home {
    fv_status (*give)(void *context, fv_hash key, const void *data, size_t size, double seconds, bool keep, fv_error *error);
    /* *buffer is one of fv__buffer_new, taken over. False: there is none. */
    bool (*ask)(void *context, fv_hash key, void **buffer, size_t *size);
    void *context;
} fv_store_home;

typedef struct fv_store_options {
    const char *folder;    /* .fovea/store; made if missing */
    const char *writer;    /* unique name of this process's files */
    int64_t     memory;    /* budget for resident blobs */
    double      patience;  /* seconds of work that may be uncommitted */
    bool        shared;    /* other processes read what this one puts: every put goes to the pack at once (not synced) */
    bool        late;      /* of a shared one: others read it once it is committed, and no put goes to the pack before */
    bool        transient; /* nothing is committed: what does not fit into memory is in a file without a name, made in the folder
                              when it is needed and gone with the process */
    fv_mirror           *mirror; /* NULL: none; of one that is not shared; taken over, also on error */
    const fv_store_home *home;   /* NULL: none; with one it must be transient, and outlive the store */
} fv_store_options;

/* Removes files of dead writers from a folder, least recently used first, until the rest is within the budget. 0: all
 * of them, also those of other hosts that are not known to be dead. */
void fv__store_trim(const char *folder, int64_t budget);

/* What dead writers have left in a folder and did not use for so many seconds: how many bytes that is; removed unless it is only
 * to be told. */
int64_t fv__store_clean(const char *folder, double older, bool tell_only);
/* Whether the writer of that name lives, or may. */
bool fv__store_writer_lives(const char *folder, const char *writer);

fv_status fv__store_open(const fv_store_options *options, fv_store **store, fv_error *error);
/* Another budget for resident blobs, before the first put. */
void fv__store_bound(fv_store *store, int64_t memory);
/* Does not flush: call fv__store_flush first if what is in memory should outlive the process. */
void fv__store_close(fv_store *store);

/* Takes the buffer over, also on error (FV_ERROR_FULL: it is in memory, but could not be written or committed). seconds: work
 * that went into it. size 0 with NULL is a mere fact ("task done"). keep false: the blob is not worth committing by itself (it
 * may be lost with the process), but may be spilled. A key that is there already keeps its bytes, since equal keys mean equal
 * bytes. */
fv_status fv__store_put(fv_store *store, fv_hash key, void *buffer, size_t size, double seconds, bool keep, fv_error *error);
/* The same for what other processes get in another way: a shared store shows it to them only once it is committed. */
fv_status fv__store_hold(fv_store *store, fv_hash key, void *buffer, size_t size, double seconds, bool keep, fv_error *error);
bool      fv__store_has(fv_store *store, fv_hash key);
/* An error if it was there and another thread has found it damaged, so that nobody takes it for one that never was. */
fv_status fv__store_check_lost(fv_store *store, fv_hash key, fv_error *error);
/* The same from memory alone: never looks at what other processes may have put since, and never waits. With a home it is always
 * false, since only what was given there counts. */
bool fv__store_knows(fv_store *store, fv_hash key);
bool fv__store_is_part(const fv_store *store);          /* whether it has a home */
bool fv__store_committed(fv_store *store, fv_hash key); /* synced on disk */

typedef struct fv_blob {
    const void *data;
    size_t      size;
    void       *entry; /* private */
} fv_blob;
/* Pins the blob in memory, loading it if need be. FV_ERROR_INTERNAL if there is none, FV_ERROR_INPUT if it is damaged. */
fv_status fv__store_get(fv_store *store, fv_hash key, fv_blob *blob, fv_error *error);
void      fv__store_unpin(fv_store *store, fv_blob *blob);
/* Part of a blob without making it resident. */
fv_status fv__store_read(fv_store *store, fv_hash key, size_t offset, void *data, size_t size, fv_error *error);
size_t    fv__store_size(fv_store *store, fv_hash key); /* 0 if absent */
/* Forgets a blob: memory is freed, its space in the own pack is given back (a hole), a later has() is false. Of a committed one
 * only the memory is freed, unless `durably`: then the log says so at once (synced with the next flush). */
void fv__store_drop(fv_store *store, fv_hash key, bool durably);

/* Commits everything kept so far: calls the hook (which makes results outside the store durable and must not flush itself),
 * writes, syncs, logs, syncs. Called by put when patience is exceeded, in the thread that put; others go on meanwhile. */
fv_status fv__store_flush(fv_store *store, fv_error *error);
void      fv__store_on_flush(fv_store *store, fv_status (*hook)(void *context, fv_error *error), void *context);
double    fv__store_uncommitted(fv_store *store); /* seconds of work */
/* Looks for what other processes have put since. has() and get() do this themselves on a miss in a shared store. */
fv_status fv__store_refresh(fv_store *store, fv_error *error);
int64_t   fv__store_resident(fv_store *store); /* bytes */

#endif
