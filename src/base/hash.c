/* 128-bit identity hashing on XXH3. */
#include "base/take.h"
#include <stdio.h>
#include <xxhash.h>

enum { STATE = 576 }; /* bytes of a state, which the library does not tell */

fv_hash fv__hash_bytes(const void *data, size_t size) {
    XXH128_hash_t h = XXH3_128bits(data, size);
    return (fv_hash){ h.low64, h.high64 };
}

void fv__hasher_init(fv_hasher *hasher) {
    hasher->state = XXH3_createState();
    if (!hasher->state) {
        fv__memory_lend(STATE);
        hasher->state = XXH3_createState();
    }
    if (!hasher->state) fv__out_of_memory(STATE);
    XXH3_128bits_reset(hasher->state);
}

void fv__hasher_add(fv_hasher *hasher, const void *data, size_t size) { XXH3_128bits_update(hasher->state, data, size); }

void fv__hasher_int(fv_hasher *hasher, int64_t value) { fv__hasher_add(hasher, &value, sizeof value); }

void fv__hasher_text(fv_hasher *hasher, const char *text) {
    size_t length = strlen(text);
    fv__hasher_int(hasher, (int64_t)length);
    fv__hasher_add(hasher, text, length);
}

fv_hash fv__hasher_finish(fv_hasher *hasher) {
    XXH128_hash_t h = XXH3_128bits_digest(hasher->state);
    XXH3_freeState(hasher->state);
    hasher->state = NULL;
    return (fv_hash){ h.low64, h.high64 };
}

void fv__hash_format(fv_hash hash, char text[33]) {
    snprintf(text, 33, "%016llx%016llx", (unsigned long long)hash.high, (unsigned long long)hash.low);
}
