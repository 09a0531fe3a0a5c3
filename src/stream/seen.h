/* Which frames of which scans were met: ranges of numbers under the name of a scan, so that a stream without end stays small. */
#ifndef FV_SEEN_H
#define FV_SEEN_H

#include "base/hash_table.h"

typedef struct fv_seen_scan {
    char    *name;
    uint64_t hash;
    int64_t *range; /* pairs first, last + 1; in order, and none touches the next */
    int64_t  nranges, capacity;
    int64_t  count; /* of frames */
} fv_seen_scan;

typedef struct fv_seen {
    fv_seen_scan *scans;
    int64_t       nscans, capacity;
    fv_hash_table table;
} fv_seen;

bool fv__seen_has(const fv_seen *seen, const char *scan, int64_t index);
/* False: it was there already. */
bool fv__seen_add(fv_seen *seen, const char *scan, int64_t index);
/* All numbers from first on, before end. */
void fv__seen_add_range(fv_seen *seen, const char *scan, int64_t first, int64_t end);
void fv__seen_remove(fv_seen *seen, const char *scan, int64_t index);
/* NULL: none of its frames was met. */
const fv_seen_scan *fv__seen_scan(const fv_seen *seen, const char *scan);
void                fv__seen_release(fv_seen *seen);

#endif
