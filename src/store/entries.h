/* What the store knows about each key: 64 bytes an entry, a hash table over them, and the order of use of those in memory.
 *
 * Not thread-safe: the store's lock guards it. Entries do not move, so that a pointer stays good until fv__entries_free.
 */
#ifndef FV_ENTRIES_H
#define FV_ENTRIES_H

#include "base/hash_table.h"

enum fv_entry_flags {
    FV_ENTRY_PLACED = 1,      /* its bytes lie in a pack at file, offset */
    FV_ENTRY_LOGGED = 2,      /* a log record says so */
    FV_ENTRY_COMMITTED = 4,   /* both are synced */
    FV_ENTRY_KEEP = 8,        /* worth committing */
    FV_ENTRY_QUEUED = 16,     /* waits for a commit or is in the middle of one */
    FV_ENTRY_LOADING = 32,    /* somebody reads it into memory */
    FV_ENTRY_VERIFIED = 64,   /* the bytes in the pack were seen whole by this process */
    FV_ENTRY_FORGOTTEN = 128, /* no longer in the table; freed when nobody needs it any more */
    FV_ENTRY_IN_BATCH = 256,  /* of the commit that is being made */
    FV_ENTRY_LEAVING = 512    /* was dropped meanwhile: it is committed with the rest of its batch, and then out of memory */
};

typedef struct fv_entry {
    fv_hash  key;
    void    *data; /* NULL: not in memory */
    int64_t  size;
    int64_t  offset;       /* in the pack */
    uint64_t content;      /* hash of the bytes, once placed */
    uint32_t newer, older; /* neighbours in order of use; 0: none */
    uint32_t file;         /* whose pack: number of a source */
    uint16_t pins, flags;
} fv_entry;

typedef struct fv_entries {
    fv_hash_table table; /* tagged with low bits of the key */
    int64_t       count; /* in the table */
    fv_entry    **slabs;
    uint32_t      nslabs, next, unused; /* next: first number never given out; unused: head of the free list */
    uint32_t      newest, oldest;
} fv_entries;

void      fv__entries_release(fv_entries *entries);
void      fv__entries_reserve(fv_entries *entries, int64_t extra);
fv_entry *fv__entries_find(const fv_entries *entries, fv_hash key);
fv_entry *fv__entries_add(fv_entries *entries, fv_hash key);        /* zeroed; the key must not be there */
void      fv__entries_unlink(fv_entries *entries, fv_entry *entry); /* out of the table, still allocated */
void      fv__entries_free(fv_entries *entries, fv_entry *entry);   /* after unlink */
/* Fetches what find will touch, for loops that know the next keys. */
static inline void fv__entries_prefetch(const fv_entries *entries, fv_hash key) {
    if (entries->table.slot) __builtin_prefetch(&entries->table.slot[2 * ((uint32_t)key.low & entries->table.mask)]);
}
/* All entries in the table: for (fv_entry *e = NULL; (e = fv__entries_next(entries, e));) */
fv_entry *fv__entries_next(const fv_entries *entries, const fv_entry *entry);

/* Order of use. */
void      fv__entries_use(fv_entries *entries, fv_entry *entry);    /* puts it in as the newest */
void      fv__entries_shelve(fv_entries *entries, fv_entry *entry); /* puts it in as the oldest */
void      fv__entries_take(fv_entries *entries, fv_entry *entry);   /* takes it out, if in */
fv_entry *fv__entries_oldest(const fv_entries *entries);

#endif
