/* Numbers of things, found by a hash of what they are: the one hash table of Fovea.
 *
 * The things lie with the caller, numbered from 0; the table holds number + 1, or 0 where nothing is. Slots are a power of two,
 * searched one after the other from the hash's own (open addressing). A tagged table keeps 32 bits of the hash beside each
 * number, so that things far away in memory are looked at only if they are very likely meant; kernels, whose things lie close by,
 * do without. The functions become part of the caller, with `tagged` and `same` known, because they are inner loops.
 *
 *     fv_hash_table table = { slots, fv__hash_table_slots(most) - 1 };
 *     uint64_t      place = fv__hash_table_find(&table, false, hash, same, things);
 *     if (!table.slot[place]) things[count] = ..., table.slot[place] = ++count;
 *
 * A tagged table can grow. It begins empty, { NULL, 0 }:
 *
 *     fv__hash_table_reserve(&table, 256, count + 1);
 *     fv__hash_table_add(&table, true, (uint32_t)hash, count++);
 */
#ifndef FV_HASH_TABLE_H
#define FV_HASH_TABLE_H

#include "base/base.h"
#include <assert.h>
#include <stdlib.h>

typedef struct fv_hash_table {
    uint32_t *slot; /* number + 1; tagged: also the tag behind it */
    uint64_t  mask; /* slots - 1 */
} fv_hash_table;

#define FV__HERE static inline __attribute__((always_inline))

/* For so many things at most: half of the slots stay free. */
FV__HERE int64_t fv__hash_table_slots(int64_t most) {
    int64_t slots = 16;
    while (slots < 2 * most) slots *= 2;
    return slots;
}

/* Of one label or two. */
FV__HERE uint64_t fv__label_hash(int64_t label) { return (uint64_t)label * 0x9e3779b97f4a7c15u >> 32; }
FV__HERE uint64_t fv__labels_hash(int64_t a, int64_t b) {
    return (((uint64_t)a * 0x9e3779b97f4a7c15u ^ (uint64_t)b) * 0xd6e8feb86659fd93u) >> 32;
}

FV__HERE uint32_t *fv__hash_table_at(const fv_hash_table *table, bool tagged, uint64_t place) {
    return &table->slot[tagged ? 2 * place : place];
}

/* Where the thing is, or the empty place at which it belongs. */
FV__HERE uint64_t fv__hash_table_find(const fv_hash_table *table, bool tagged, uint64_t hash,
                                      bool (*same)(const void *context, uint32_t number), const void *context) {
    uint64_t place = hash & table->mask;
    for (;; place = (place + 1) & table->mask) {
        const uint32_t *slot = fv__hash_table_at(table, tagged, place);
        if (!slot[0]) return place;
        if (tagged && slot[1] != (uint32_t)hash) continue;
        if (same(context, slot[0] - 1)) return place;
    }
}

/* Puts in what is known not to be there. There must be room. */
FV__HERE void fv__hash_table_add(const fv_hash_table *table, bool tagged, uint64_t hash, uint32_t number) {
    uint64_t place = hash & table->mask;
    while (*fv__hash_table_at(table, tagged, place)) place = (place + 1) & table->mask;
    uint32_t *slot = fv__hash_table_at(table, tagged, place);
    slot[0] = number + 1;
    if (tagged) slot[1] = (uint32_t)hash;
}

/* Makes room for so many things in a tagged table: at least a quarter of the slots stays free. least: slots to begin with, a
 * power of two. */
static inline void fv__hash_table_reserve(fv_hash_table *table, int64_t least, int64_t wanted) {
    int64_t size = table->slot ? (int64_t)table->mask + 1 : 0, larger = FV_MAX(size, least);
    while (wanted > larger / 4 * 3) larger *= 2;
    if (larger == size) return;
    assert(larger <= (int64_t)1 << 32);
    uint32_t *old = table->slot;
    table->slot = fv__calloc((size_t)larger * 2 * sizeof *old);
    table->mask = (uint64_t)larger - 1;
    for (int64_t i = 0; i < size; i++)
        if (old[2 * i]) fv__hash_table_add(table, true, old[2 * i + 1], old[2 * i] - 1);
    free(old);
}

/* The number of the thing in a tagged table, or -1. The table may be empty. */
FV__HERE int64_t fv__hash_table_number(const fv_hash_table *table, uint64_t                            hash,
                                       bool (*same)(const void *context, uint32_t number), const void *context) {
    if (!table->slot) return -1;
    return (int64_t)*fv__hash_table_at(table, true, fv__hash_table_find(table, true, (uint32_t)hash, same, context)) - 1;
}

/* Empties a place of a tagged table of at most 2^32 slots, and closes the gap, which would end searches too early. */
FV__HERE void fv__hash_table_remove(const fv_hash_table *table, uint64_t hole) {
    uint64_t mask = table->mask;
    for (uint64_t i = (hole + 1) & mask; table->slot[2 * i]; i = (i + 1) & mask) {
        uint64_t home = table->slot[2 * i + 1] & mask;
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        table->slot[2 * hole] = table->slot[2 * i];
        table->slot[2 * hole + 1] = table->slot[2 * i + 1];
        hole = i;
    }
    table->slot[2 * hole] = table->slot[2 * hole + 1] = 0;
}

#endif
