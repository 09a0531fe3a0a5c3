/* Counts of small keys: making and merging partials. */
#include "op/tally.h"

static size_t bytes_of(const fv_tally *tally) { return sizeof *tally + (size_t)tally->count * sizeof *tally->counts; }

fv_status fv__tally_check(const fv_block *block, fv_error *error) {
    if (fv__region_voxels(&block->region) <= UINT32_MAX) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "a chunk has 2^32 voxels or more; choose smaller ones");
}

static uint64_t count_of(const uint32_t *counts, int tables, int64_t keys, int64_t key) {
    uint64_t total = 0;
    for (int t = 0; t < tables; t++) total += counts[t * keys + key];
    return total;
}

void fv__tally_append(fv_bytes *partial, const uint32_t *counts, int tables, int64_t keys) {
    int64_t first = 0, end = keys;
    while (first < end && !count_of(counts, tables, keys, first)) first++;
    while (end > first && !count_of(counts, tables, keys, end - 1)) end--;
    fv_tally head = { .first = first, .count = end - first };
    fv__bytes_append(partial, &head, sizeof head);
    uint64_t *to = fv__bytes_append(partial, NULL, (size_t)head.count * sizeof *to);
    for (int64_t k = 0; k < head.count; k++) to[k] = count_of(counts, tables, keys, first + k);
}

const fv_tally *fv__tally_at(const void *partial, size_t size, int i) {
    const uint8_t *p = partial;
    while (size > 0 && i-- > 0) {
        size_t bytes = bytes_of((const fv_tally *)p);
        p += bytes;
        size -= bytes;
    }
    return size > 0 ? (const fv_tally *)p : NULL;
}

uint64_t fv__tally_total(const fv_tally *tally) {
    uint64_t total = 0;
    for (int64_t k = 0; k < tally->count; k++) total += tally->counts[k];
    return total;
}

static void add_tally(fv_bytes *out, const fv_tally *a, const fv_tally *b) {
    if (!a->count || !b->count) {
        const fv_tally *only = a->count ? a : b;
        fv__bytes_append(out, only, bytes_of(only));
        return;
    }
    int64_t  first = FV_MIN(a->first, b->first), end = FV_MAX(a->first + a->count, b->first + b->count);
    fv_tally head = { .first = first, .count = end - first };
    fv__bytes_append(out, &head, sizeof head);
    uint64_t *to = fv__bytes_append(out, NULL, (size_t)head.count * sizeof *to);
    memset(to, 0, (size_t)head.count * sizeof *to);
    for (int64_t k = 0; k < a->count; k++) to[a->first - first + k] += a->counts[k];
    for (int64_t k = 0; k < b->count; k++) to[b->first - first + k] += b->counts[k];
}

void fv__tally_combine(const void *params, fv_bytes *into, const void *partial, size_t size) {
    (void)params;
    fv_bytes        merged = { 0 };
    const fv_tally *a, *b;
    for (int i = 0; (b = fv__tally_at(partial, size, i)) != NULL; i++) {
        a = fv__tally_at(into->data, into->size, i);
        if (a)
            add_tally(&merged, a, b);
        else
            fv__bytes_append(&merged, b, bytes_of(b));
    }
    if (!merged.size) return;
    fv__bytes_release(into);
    *into = merged;
}
