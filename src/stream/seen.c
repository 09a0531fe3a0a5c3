/* Sets of frames. */
#include "stream/seen.h"

typedef struct wanted {
    const fv_seen *seen;
    const char    *name;
} wanted;

static bool is_same(const void *context, uint32_t number) {
    const wanted *w = context;
    return !strcmp(w->seen->scans[number].name, w->name);
}

static uint64_t hash_of(const char *name) { return fv__hash_bytes(name, strlen(name)).low; }

const fv_seen_scan *fv__seen_scan(const fv_seen *seen, const char *scan) {
    wanted  w = { seen, scan };
    int64_t number = fv__hash_table_number(&seen->table, hash_of(scan), is_same, &w);
    return number < 0 ? NULL : &seen->scans[number];
}

static fv_seen_scan *scan_of(fv_seen *seen, const char *name) {
    wanted   w = { seen, name };
    uint64_t hash = hash_of(name);
    int64_t  number = fv__hash_table_number(&seen->table, hash, is_same, &w);
    if (number >= 0) return &seen->scans[number];
    if (seen->nscans == seen->capacity) {
        seen->capacity = FV_MAX(16, 2 * seen->capacity);
        seen->scans = fv__realloc(seen->scans, (size_t)seen->capacity * sizeof *seen->scans);
    }
    fv__hash_table_reserve(&seen->table, 256, seen->nscans + 1);
    fv__hash_table_add(&seen->table, true, (uint32_t)hash, (uint32_t)seen->nscans);
    seen->scans[seen->nscans] = (fv_seen_scan){ .name = fv__strdup(name), .hash = hash };
    return &seen->scans[seen->nscans++];
}

/* The first range that ends at or after a number; nranges: none does. */
static int64_t place_of(const fv_seen_scan *scan, int64_t index) {
    int64_t low = 0, high = scan->nranges;
    if (high && scan->range[2 * high - 1] < index) return high; /* the usual one: a frame after all others */
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (scan->range[2 * middle + 1] < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool fv__seen_has(const fv_seen *seen, const char *name, int64_t index) {
    const fv_seen_scan *scan = fv__seen_scan(seen, name);
    if (!scan) return false;
    int64_t at = place_of(scan, index + 1);
    return at < scan->nranges && scan->range[2 * at] <= index;
}

static void insert(fv_seen_scan *scan, int64_t at, int64_t first, int64_t end) {
    if (scan->nranges == scan->capacity) {
        scan->capacity = FV_MAX(2, 2 * scan->capacity);
        scan->range = fv__realloc(scan->range, (size_t)(2 * scan->capacity) * sizeof *scan->range);
    }
    memmove(scan->range + 2 * at + 2, scan->range + 2 * at, (size_t)(2 * (scan->nranges - at)) * sizeof *scan->range);
    scan->range[2 * at] = first;
    scan->range[2 * at + 1] = end;
    scan->nranges++;
}

void fv__seen_add_range(fv_seen *seen, const char *name, int64_t first, int64_t end) {
    fv_seen_scan *scan = scan_of(seen, name);
    int64_t       at = place_of(scan, first), until = at;
    for (; until < scan->nranges && scan->range[2 * until] <= end; until++) {
        first = FV_MIN(first, scan->range[2 * until]);
        end = FV_MAX(end, scan->range[2 * until + 1]);
        scan->count -= scan->range[2 * until + 1] - scan->range[2 * until];
    }
    scan->count += end - first;
    if (until == at) {
        insert(scan, at, first, end);
        return;
    }
    scan->range[2 * at] = first;
    scan->range[2 * at + 1] = end;
    memmove(scan->range + 2 * at + 2, scan->range + 2 * until, (size_t)(2 * (scan->nranges - until)) * sizeof *scan->range);
    scan->nranges -= until - at - 1;
}

bool fv__seen_add(fv_seen *seen, const char *scan, int64_t index) {
    if (fv__seen_has(seen, scan, index)) return false;
    fv__seen_add_range(seen, scan, index, index + 1);
    return true;
}

void fv__seen_remove(fv_seen *seen, const char *name, int64_t index) {
    if (!fv__seen_has(seen, name, index)) return;
    fv_seen_scan *scan = scan_of(seen, name);
    int64_t       at = place_of(scan, index + 1), end = scan->range[2 * at + 1];
    scan->count--;
    scan->range[2 * at + 1] = index;
    if (index + 1 < end) insert(scan, at + 1, index + 1, end);
    if (scan->range[2 * at] < index) return;
    memmove(scan->range + 2 * at, scan->range + 2 * at + 2, (size_t)(2 * (scan->nranges - at - 1)) * sizeof *scan->range);
    scan->nranges--;
}

void fv__seen_release(fv_seen *seen) {
    for (int64_t i = 0; i < seen->nscans; i++) {
        free(seen->scans[i].name);
        free(seen->scans[i].range);
    }
    free(seen->scans);
    free(seen->table.slot);
    *seen = (fv_seen){ 0 };
}
