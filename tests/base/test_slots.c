/* Hashes, and slots that are checked with them. */
#include "base/file.h"
#include "base/slots.h"
#include "support/test.h"
#include <unistd.h>

TEST(a_hash_in_pieces_is_the_hash_of_the_whole) {
    uint8_t  data[3000];
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)test_random(&seed);
    for (int round = 0; round < 200; round++) {
        size_t    size = test_random(&seed) % sizeof data;
        fv_hasher hasher;
        fv__hasher_init(&hasher);
        for (size_t at = 0; at < size;) {
            size_t wanted = 1 + test_random(&seed) % 500, n = FV_MIN(wanted, size - at);
            fv__hasher_add(&hasher, data + at, n);
            at += n;
        }
        CHECK(fv__hash_equal(fv__hasher_finish(&hasher), fv__hash_bytes(data, size)));
    }
}

TEST(texts_are_hashed_with_their_bounds) {
    fv_hasher a, b;
    fv__hasher_init(&a);
    fv__hasher_init(&b);
    fv__hasher_text(&a, "ab");
    fv__hasher_text(&a, "c");
    fv__hasher_text(&b, "a");
    fv__hasher_text(&b, "bc");
    CHECK(!fv__hash_equal(fv__hasher_finish(&a), fv__hasher_finish(&b)));
}

TEST(a_hash_is_the_same_on_every_machine_and_release) {
    char text[33];
    fv__hash_format(fv__hash_bytes("fovea", 5), text);
    CHECK_TEXT(text, "b86cebb71707a8befefc876d2feefd35");
}

TEST(any_changed_bit_of_a_slot_is_noticed) {
    struct {
        uint32_t magic, kind;
        uint8_t  rest[112];
        uint64_t check;
    } slot = { 0x1234, 5, { 1, 2, 3 }, 0 };
    _Static_assert(sizeof slot == FV_SLOT, "a slot");
    fv__slot_seal(&slot);
    CHECK(fv__slot_valid(&slot, 0x1234) && !fv__slot_valid(&slot, 0x1235));
    for (int bit = 0; bit < FV_SLOT * 8; bit++) {
        ((uint8_t *)&slot)[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(!fv__slot_valid(&slot, 0x1234));
        ((uint8_t *)&slot)[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    uint8_t zeros[FV_SLOT] = { 0 };
    CHECK(!fv__slot_valid(zeros, 0x1234));
}

TEST(slots_are_read_whole_whatever_the_end) {
    enum { N = 40000 }; /* more than one piece */
    char    *path = fv__sprintf("%s/slots", test_folder());
    fv_bytes file = { 0 }, piece = { 0 };
    for (int i = 0; i < N; i++) {
        int32_t slot[FV_SLOT / 4] = { 7, i };
        fv__slot_seal(slot);
        fv__bytes_append(&file, slot, sizeof slot);
    }
    fv__bytes_append(&file, "torn", 4);
    CHECK_INT(fv__file_write_all(path, file.data, file.size, false, NULL), FV_OK);
    int fd;
    CHECK_INT(fv__file_open_read(path, &fd, NULL), FV_OK);
    int64_t at = FV_SLOT * 3, count = 3;
    for (;;) {
        CHECK_INT(fv__slots_read(fd, path, &at, INT64_MAX, &piece, NULL), FV_OK);
        if (piece.size == 0) break;
        for (size_t i = 0; i < piece.size; i += FV_SLOT, count++) {
            int32_t number;
            memcpy(&number, piece.data + i + 4, sizeof number);
            CHECK(fv__slot_valid(piece.data + i, 7) && number == count);
        }
    }
    CHECK_INT(count, N);
    CHECK_INT(at, (int64_t)N * FV_SLOT);
    at = 0;
    CHECK_INT(fv__slots_read(fd, path, &at, 300, &piece, NULL), FV_OK);
    CHECK(piece.size == 256 && at == 256);
    close(fd);
    fv__bytes_release(&file);
    fv__bytes_release(&piece);
    free(path);
}

TEST_MAIN
