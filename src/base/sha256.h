/* SHA-256 (FIPS 180-4), for hashes that people compare with those of other programs (`sha256sum`). */
#ifndef FV_SHA256_H
#define FV_SHA256_H

#include "base/base.h"

typedef struct fv_sha256 {
    uint32_t state[8];
    uint8_t  block[64];
    uint64_t size; /* bytes so far */
} fv_sha256;

void fv__sha256_init(fv_sha256 *sha);
void fv__sha256_add(fv_sha256 *sha, const void *data, size_t size);
void fv__sha256_finish(fv_sha256 *sha, uint8_t digest[32]);

#endif
