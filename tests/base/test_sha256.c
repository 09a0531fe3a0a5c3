/* SHA-256: the examples of the standard, and pieces of any length. */
#include "base/sha256.h"
#include "support/test.h"

static const char *hash_of(const char *data, size_t size, size_t piece) {
    static char hex[65];
    uint8_t     digest[32];
    fv_sha256   sha;
    fv__sha256_init(&sha);
    for (size_t at = 0; at < size; at += piece) fv__sha256_add(&sha, data + at, FV_MIN(piece, size - at));
    fv__sha256_finish(&sha, digest);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return hex;
}

TEST(hashes_are_those_of_the_standard) {
    const char *two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char       *million = fv__alloc(1000000);
    memset(million, 'a', 1000000);
    CHECK(!strcmp(hash_of("", 0, 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    CHECK(!strcmp(hash_of("abc", 3, 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    CHECK(!strcmp(hash_of(two_blocks, 56, 56), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
    CHECK(!strcmp(hash_of(million, 1000000, 999), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
    free(million);
}

TEST(pieces_do_not_matter) {
    char data[200], whole[65];
    for (int i = 0; i < 200; i++) data[i] = (char)(i * 7);
    for (size_t size = 0; size <= 200; size += 1) {
        strcpy(whole, hash_of(data, size, 200));
        for (size_t piece = 1; piece < 70; piece += 23) CHECK(!strcmp(hash_of(data, size, piece), whole));
    }
}

TEST_MAIN
