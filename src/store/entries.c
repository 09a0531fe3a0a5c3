/* Entries in slabs, found through open addressing. */
#include "store/entries.h"
#include "base/take.h"
#include <assert.h>
#include <stdlib.h>

/* Slabs are aligned to their own size and their first entry is a header whose `file` is the slab's number, so that an entry's
 * number follows from its address. Number 0 is such a header and means none. An entry in use has `newer` and `older` 0 while it
 * is outside the order of use, unless it is the only one in it. */
enum { SLAB = 1 << 8 };
_Static_assert(sizeof(fv_entry) == 64, "an entry is one cache line");

static fv_entry *entry_at(const fv_entries *entries, uint32_t number) { return &entries->slabs[number / SLAB][number % SLAB]; }

static uint32_t number_of(const fv_entry *entry) {
    const fv_entry *slab = (const fv_entry *)((uintptr_t)entry & ~(uintptr_t)(SLAB * sizeof *entry - 1));
    return slab->file * SLAB + (uint32_t)(entry - slab);
}

void fv__entries_release(fv_entries *entries) {
    for (uint32_t i = 0; i < entries->nslabs; i++) free(entries->slabs[i]);
    free(entries->slabs);
    free(entries->table.slot);
    *entries = (fv_entries){ 0 };
}

/* ---------------------------------------------------------------- table */

void fv__entries_reserve(fv_entries *entries, int64_t extra) {
    fv__hash_table_reserve(&entries->table, 1024, entries->count + extra);
}

typedef struct {
    const fv_entries *entries;
    fv_hash           key;
} wanted;

/* The table's numbers begin with 0, those of entries with 1. */
static bool is_wanted(const void *context, uint32_t number) {
    const wanted *w = context;
    return fv__hash_equal(entry_at(w->entries, number + 1)->key, w->key);
}

fv_entry *fv__entries_find(const fv_entries *entries, fv_hash key) {
    wanted  w = { entries, key };
    int64_t number = fv__hash_table_number(&entries->table, key.low, is_wanted, &w);
    return number < 0 ? NULL : entry_at(entries, (uint32_t)number + 1);
}

static uint32_t new_number(fv_entries *entries) {
    uint32_t number = entries->unused;
    if (number) {
        entries->unused = entry_at(entries, number)->older;
        return number;
    }
    if (entries->next % SLAB == 0) {
        assert(entries->next <= UINT32_MAX - SLAB);
        fv_entry *slab = aligned_alloc(SLAB * sizeof *slab, SLAB * sizeof *slab);
        if (!slab) {
            fv__memory_lend(SLAB * sizeof *slab);
            slab = aligned_alloc(SLAB * sizeof *slab, SLAB * sizeof *slab);
        }
        if (!slab) fv__out_of_memory(SLAB * sizeof *slab);
        entries->slabs = fv__realloc(entries->slabs, (entries->nslabs + 1) * sizeof *entries->slabs);
        slab->file = entries->nslabs;
        entries->slabs[entries->nslabs++] = slab;
        entries->next++;
    }
    return entries->next++;
}

fv_entry *fv__entries_add(fv_entries *entries, fv_hash key) {
    fv__entries_reserve(entries, 1);
    uint32_t  number = new_number(entries);
    fv_entry *entry = entry_at(entries, number);
    *entry = (fv_entry){ .key = key };
    fv__hash_table_add(&entries->table, true, (uint32_t)key.low, number - 1);
    entries->count++;
    return entry;
}

void fv__entries_unlink(fv_entries *entries, fv_entry *entry) {
    wanted w = { entries, entry->key };
    fv__hash_table_remove(&entries->table, fv__hash_table_find(&entries->table, true, (uint32_t)entry->key.low, is_wanted, &w));
    entries->count--;
    entry->flags |= FV_ENTRY_FORGOTTEN;
}

void fv__entries_free(fv_entries *entries, fv_entry *entry) {
    entry->flags = FV_ENTRY_FORGOTTEN;
    entry->older = entries->unused;
    entries->unused = number_of(entry);
}

fv_entry *fv__entries_next(const fv_entries *entries, const fv_entry *entry) {
    for (uint32_t number = entry ? number_of(entry) + 1 : 1; number < entries->next; number++) {
        fv_entry *next = entry_at(entries, number);
        if (number % SLAB && !(next->flags & FV_ENTRY_FORGOTTEN)) return next;
    }
    return NULL;
}

/* ---------------------------------------------------------------- order of use */

void fv__entries_use(fv_entries *entries, fv_entry *entry) {
    uint32_t number = number_of(entry);
    entry->newer = 0;
    entry->older = entries->newest;
    if (entries->newest) entry_at(entries, entries->newest)->newer = number;
    entries->newest = number;
    if (!entries->oldest) entries->oldest = number;
}

void fv__entries_shelve(fv_entries *entries, fv_entry *entry) {
    uint32_t number = number_of(entry);
    entry->older = 0;
    entry->newer = entries->oldest;
    if (entries->oldest) entry_at(entries, entries->oldest)->older = number;
    entries->oldest = number;
    if (!entries->newest) entries->newest = number;
}

void fv__entries_take(fv_entries *entries, fv_entry *entry) {
    uint32_t number = number_of(entry);
    if (!entry->newer && !entry->older && entries->newest != number) return;
    if (entry->newer)
        entry_at(entries, entry->newer)->older = entry->older;
    else
        entries->newest = entry->older;
    if (entry->older)
        entry_at(entries, entry->older)->newer = entry->newer;
    else
        entries->oldest = entry->newer;
    entry->newer = entry->older = 0;
}

fv_entry *fv__entries_oldest(const fv_entries *entries) { return entries->oldest ? entry_at(entries, entries->oldest) : NULL; }
