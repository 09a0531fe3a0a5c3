/* Gathering records in a task that writes them as sorted runs (op/sorted_runs.h). Records of the same key are put together, and a
 * run is written only when that no longer makes room:
 *
 *     typedef struct { fv_run_key key; int64_t voxels; } record;
 *     static int  compare(const record *a, const record *b) { return fv__run_key_compare(&a->key, &b->key); }
 *     static void join(record *into, const record *from) { into->voxels += from->voxels; }
 *     FV_RECORD_GATHER(record, compare, join, fv__records_append)
 *
 *     records_lay_out(&g->records, &pieces, most);        most: records that there can be; in scratch and bound
 *     *records_next(&g->records) = (record){ ... };
 *     records_settle(&g->records, true);                  at the end of the task
 */
#ifndef FV_RECORD_GATHER_H
#define FV_RECORD_GATHER_H

#include "op/merge_sort.h"
#include "op/scratch.h"
#include "op/sorted_runs.h"

enum { FV_RECORDS_GATHERED = 1 << 15 }; /* at most, before a run is written */

static inline int fv__run_key_compare(const fv_run_key *a, const fv_run_key *b) {
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    if (a->second != b->second) return a->second < b->second ? -1 : 1;
    if (a->third != b->third) return a->third < b->third ? -1 : 1;
    return a->fourth < b->fourth ? -1 : a->fourth > b->fourth;
}

/* Records as they are in memory. */
#define fv__records_append(partial, all, n) fv__bytes_append(partial, all, (size_t)(n) * sizeof *(all))

/* put(partial, records, count) writes a run of records in order. */
#define FV_RECORD_GATHER(type, compare, join, put)                                                                               \
    typedef struct {                                                                                                             \
        int64_t   capacity, count;                                                                                               \
        type     *all, *room;                                                                                                    \
        fv_bytes *partial;                                                                                                       \
    } records;                                                                                                                   \
                                                                                                                                 \
    static void records_lay_out(records *g, fv_scratch *pieces, int64_t most) {                                                  \
        g->capacity = FV_MAX(FV_MIN(most, FV_RECORDS_GATHERED), 1);                                                              \
        g->all = fv__scratch_take(pieces, g->capacity * (int64_t)sizeof *g->all);                                                \
        g->room = fv__scratch_take(pieces, g->capacity * (int64_t)sizeof *g->room);                                              \
    }                                                                                                                            \
                                                                                                                                 \
    /* Bytes of a partial with so many records of so many bytes: a run but for the last has at least capacity / 2. */            \
    static size_t records_bound(const records *g, int64_t most, int64_t bytes) {                                                 \
        return (size_t)(most * bytes + (2 * most / g->capacity + 2) * (int64_t)sizeof(int64_t));                                 \
    }                                                                                                                            \
                                                                                                                                 \
    static inline bool records_before(const type *a, const type *b) { return compare(b, a) < 0; }                                \
    FV_MERGE_SORT(records_sort, type, records_before)                                                                            \
                                                                                                                                 \
    static void records_settle(records *g, bool last) {                                                                          \
        int64_t count = 0;                                                                                                       \
        records_sort(g->all, g->room, g->count);                                                                                 \
        for (int64_t i = 0; i < g->count; i++)                                                                                   \
            if (count && !compare(&g->all[count - 1], &g->all[i]))                                                               \
                join(&g->all[count - 1], &g->all[i]);                                                                            \
            else                                                                                                                 \
                g->all[count++] = g->all[i];                                                                                     \
        g->count = count;                                                                                                        \
        if (!last && count < g->capacity / 2) return;                                                                            \
        size_t begun = fv__sorted_run_begin(g->partial);                                                                         \
        put(g->partial, g->all, count);                                                                                          \
        fv__sorted_run_end(g->partial, begun);                                                                                   \
        g->count = 0;                                                                                                            \
    }                                                                                                                            \
                                                                                                                                 \
    static type *records_next(records *g) {                                                                                      \
        if (g->count == g->capacity) records_settle(g, false);                                                                   \
        return &g->all[g->count++];                                                                                              \
    }

#endif
