/* The inside of a store, shared by the files that make it up: store.c (what callers see), commit.c (spilling and committing),
 * folder.c (the files of other writers).
 *
 * Locks, in the order in which they may be taken: `committing` or `scanning`, then `files`, then `lock`. `lock` is held for
 * moments only, never while a file is touched; whoever waits for one of the others gives its core to somebody else meanwhile.
 */
#ifndef FV_STORE_PARTS_H
#define FV_STORE_PARTS_H

#include "store/entries.h"
#include "store/pack.h"
#include "store/store.h"
#include <pthread.h>

/* One writer's pair of files, as a reader sees it. Source 0 is this process's own. */
typedef struct fv_source {
    char    *writer;
    uint64_t hash; /* of the name */
    /* guarded by `lock` */
    int     pack_fd, users;
    int64_t live;    /* bytes of blobs known in the pack */
    bool    touched; /* marked as used */
    bool    settled; /* its writer is dead for sure: nothing will come any more */
    bool    doubled; /* holds blobs that are known from another source */
    bool    away;    /* its pack is not here: the mirror has it */
    /* guarded by `scanning` */
    bool     met, headed; /* looked at once; has its first line */
    bool     foreign;     /* written under another boot id than ours */
    bool     same_host;
    int64_t  seen;     /* size of the log when last looked at */
    int64_t  consumed; /* bytes of the log taken in */
    int64_t  doubted;  /* foreign: shared lines before this count only when a later line says that they are durable */
    int64_t  pack_size;
    fv_bytes open; /* shared lines not yet said to be durable: fv_open_line */
} fv_source;

typedef struct fv_open_line {
    fv_hash key;
    int64_t position;
} fv_open_line;

typedef struct fv_dirty {
    fv_entry *entry;
    double    seconds;
    bool      pinned, logged; /* by the commit that works on it */
} fv_dirty;

/* Things to be given back after `lock` was released. */
typedef struct fv_debris {
    void   *data;
    int64_t size;
    int64_t offset, length; /* of own pack; length 0: nothing */
} fv_debris;

struct fv_store {
    char   *folder;
    int64_t memory;
    double  patience;
    bool    shared, late, transient;

    const fv_store_home *home;   /* NULL: none */
    fv_mirror           *mirror; /* NULL: none */

    pthread_mutex_t lock;
    pthread_cond_t  loaded;
    fv_entries      entries;
    int64_t         resident, leaving; /* bytes in memory; of these on their way out */
    fv_bytes        dirty;             /* fv_dirty, in order of putting */
    double          queued, in_commit; /* seconds of work */
    fv_source     **sources;
    uint32_t        nsources;
    int             open_packs;
    fv_entries      dropped; /* lines voided by another log than their own: offset is the time */
    fv_bytes        voids;   /* lines to be written before all others; source 0: of the own log */
    fv_bytes        lost;    /* keys of what was found damaged */

    pthread_mutex_t files; /* appending to own files */
    fv_pack         pack;

    pthread_mutex_t committing;
    fv_bytes        lines; /* of the commit that goes on */
    fv_status (*hook)(void *context, fv_error *error);
    void *hook_context;

    pthread_mutex_t scanning;
    fv_entries      names; /* known writers: file is the source */
    int64_t         folder_time;
    bool            bereft, rereading; /* a line was voided by another log; see reread_doubled */
};

/* ---- entries; call with `lock` held; debris is an fv_bytes of fv_debris, dispose of it after unlocking ---- */
static inline int64_t fv__footprint(int64_t size) { return (size + 63) & ~(int64_t)63; }
void                  fv__store_pin(fv_store *store, fv_entry *entry);
void                  fv__store_unpin_held(fv_store *store, fv_entry *entry, fv_bytes *debris);
void                  fv__store_evict(fv_store *store, fv_entry *entry, fv_bytes *debris);  /* memory only */
void                  fv__store_forget(fv_store *store, fv_entry *entry, fv_bytes *debris); /* altogether */
void fv__store_scrap(fv_store *store, fv_entry *entry, fv_bytes *debris); /* a forgotten entry that nobody needs any more */
void fv__store_dispose(fv_store *store, fv_bytes *debris);

/* ---- commit.c ---- */
/* Spills until memory is in its budget; lock held, released meanwhile. */
fv_status fv__store_make_room(fv_store *store, fv_error *error);
/* Writes a pinned entry and its line for other processes to read. */
fv_status fv__store_publish(fv_store *store, fv_entry *entry, double seconds, fv_error *error);
/* Queues a kept entry; lock held. */
void fv__store_queue(fv_store *store, fv_entry *entry, double seconds);
/* Commits if more than patience is uncommitted. */
fv_status fv__store_commit_due(fv_store *store, fv_error *error);
/* Voids the line of a logged entry that is about to be forgotten; lock held. It is written with the next lines, or now. */
void fv__store_void(fv_store *store, const fv_entry *entry);
void fv__store_write_voids(fv_store *store);

/* ---- folder.c ---- */
void      fv__folder_remove_orphans(const char *folder); /* packs whose log is gone */
fv_status fv__folder_scan(fv_store *store, fv_error *error);
void      fv__folder_sweep(fv_store *store); /* gives back what no line of a dead writer refers to */
uint32_t  fv__folder_add_source(fv_store *store, const char *writer);
void      fv__source_free(fv_source *source);
/* Marks the files as used, so that they are not the first to go; lock held. */
void fv__source_touch(fv_store *store, fv_source *source);
/* The open pack of a source; give it back with leave. */
fv_status fv__source_enter(fv_store *store, uint32_t number, int *fd, fv_error *error);
void      fv__source_leave(fv_store *store, uint32_t number);

#endif
