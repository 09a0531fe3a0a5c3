/* Blobs whose bytes follow from their number, so that any reader can tell whether it got the right ones. */
#ifndef FV_TEST_BLOBS_H
#define FV_TEST_BLOBS_H

#include "store/store.h"
#include "support/test.h"
#include <unistd.h>

static inline char *test_fresh(void) { /* the name of a folder that is not there yet */
    static fv_arena names;
    static int      number;
    return fv__arena_printf(&names, "%s/store-%d-%d", test_folder(), (int)getpid(), number++);
}

static inline fv_hash blob_key(int64_t number) { return fv__hash_bytes(&number, sizeof number); }

/* Mostly small, some empty, some large enough to be written by themselves. */
static inline size_t blob_size(int64_t number) {
    uint64_t state = (uint64_t)number;
    uint64_t r = test_random(&state);
    if (r % 7 == 0) return 0;
    if (r % 31 == 0) return 100000 + r / 31 % 400000;
    return 1 + r / 7 % 3000;
}

static inline uint8_t blob_byte(int64_t number, size_t i) { return (uint8_t)((uint64_t)number * 31 + i * 7 + i / 251 + 1); }

static inline void *blob_new(int64_t number, size_t size) {
    if (!size) return NULL;
    uint8_t *data = fv__buffer_new(size);
    for (size_t i = 0; i < size; i++) data[i] = blob_byte(number, i);
    return data;
}

static inline bool blob_right(int64_t number, const void *data, size_t size, size_t offset) {
    for (size_t i = 0; i < size; i++)
        if (((const uint8_t *)data)[i] != blob_byte(number, offset + i)) return false;
    return true;
}

static inline fv_status blob_put(fv_store *store, int64_t number, double seconds, bool keep, fv_error *error) {
    size_t size = blob_size(number);
    return fv__store_put(store, blob_key(number), blob_new(number, size), size, seconds, keep, error);
}

/* Whole and right. */
static inline bool blob_whole(fv_store *store, int64_t number) {
    fv_blob blob;
    if (fv__store_get(store, blob_key(number), &blob, NULL) != FV_OK) return false;
    bool right = blob.size == blob_size(number) && blob_right(number, blob.data, blob.size, 0);
    fv__store_unpin(store, &blob);
    return right;
}

#endif
