/* Tables made from sorted runs: tasks write records sorted by key into their partials, in as many runs as they like; the merge
 * streams all runs in order of key and holds a window of each, so that neither a task nor the merge needs memory for all keys.
 */
#ifndef FV_SORTED_RUNS_H
#define FV_SORTED_RUNS_H

#include "op/table_rows.h"

/* ---- in a task ---- */
/* Begins a run; what is appended until the end are its records. */
size_t fv__sorted_run_begin(fv_bytes *partial);
void   fv__sorted_run_end(fv_bytes *partial, size_t begun); /* a run without records leaves nothing */

/* ---- at the end of the pass ---- */
typedef struct fv_run_key {
    int64_t first, second, third, fourth;
} fv_run_key;
static inline int64_t fv__run_key_unsigned(uint64_t value) { return (int64_t)(value ^ (uint64_t)1 << 63); } /* in its order */

typedef struct fv_sorted_runs {
    int64_t most; /* bytes of a record, at most */
    /* Where the one run of a partial lies that holds other things too. NULL: partials are runs and nothing else. */
    void (*where)(const void *context, int64_t partial, size_t *offset, size_t *end);
    /* The key of a record; comes in as that of the record before it in its run (zeros at first). */
    void (*key)(const void *context, const uint8_t *record, fv_run_key *key);
    /* All records of a key: start, one add for each (which returns the record's end), end. chunk: where the record was made.
     * start and end may be NULL. */
    void (*start)(void *context, const fv_run_key *key);
    const uint8_t *(*add)(void *context, const uint8_t *record, const fv_region *chunk);
    fv_status (*end)(void *context, fv_error *error);
} fv_sorted_runs;

fv_status fv__sorted_runs_merge(fv_finish *f, const fv_sorted_runs *runs, void *context, fv_error *error);

#endif
