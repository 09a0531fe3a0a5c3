/* Blocks of LZ4: those of the definition, and damaged ones. */
#include "formats/lz4_block.h"
#include "support/test.h"

TEST(literals_and_copies_come_out_as_the_definition_says) {
    /* "abc", then nine from three back; at the end five literals. */
    static const uint8_t packed[] = { 0x35, 'a', 'b', 'c', 3, 0, 0x50, '1', '2', '3', '4', '5' };
    char                 out[17];
    CHECK(fv_lz4_unpack(packed, sizeof packed, out, sizeof out));
    CHECK(!memcmp(out, "abcabcabcabc12345", sizeof out));
}

TEST(long_literals_and_long_runs_are_counted_byte_by_byte) {
    enum { LITERALS = 15 + 255 + 7, RUN = 4 + 15 + 255 + 255 + 3 };
    uint8_t packed[LITERALS + 20] = { 0xff, 255, 7 }, out[LITERALS + RUN];
    size_t  n = 3;
    for (int i = 0; i < LITERALS; i++) packed[n++] = (uint8_t)(i * 7);
    static const uint8_t run[] = { 1, 0, 255, 255, 3, 0 };
    memcpy(packed + n, run, sizeof run);
    CHECK(fv_lz4_unpack(packed, n + sizeof run, out, sizeof out));
    for (int i = 0; i < LITERALS; i++) CHECK(out[i] == (uint8_t)(i * 7));
    for (int i = LITERALS; i < LITERALS + RUN; i++) CHECK(out[i] == out[LITERALS - 1]);
}

TEST(a_block_that_is_too_short_too_long_or_points_outside_is_refused) {
    static const uint8_t good[] = { 0x35, 'a', 'b', 'c', 3, 0, 0x50, '1', '2', '3', '4', '5' };
    static const uint8_t back[] = { 0x10, 'a', 2, 0, 0x00 }, none[] = { 0x10, 'a', 0, 0, 0x00 };
    static const uint8_t endless[] = { 0xf0, 255, 255, 255 };
    char                 out[64];
    for (size_t n = 0; n < sizeof good; n++) CHECK(!fv_lz4_unpack(good, n, out, 17));
    CHECK(!fv_lz4_unpack(good, sizeof good, out, 16));
    CHECK(!fv_lz4_unpack(good, sizeof good, out, 18));
    CHECK(!fv_lz4_unpack(back, sizeof back, out, 5));
    CHECK(!fv_lz4_unpack(none, sizeof none, out, 5));
    CHECK(!fv_lz4_unpack(endless, sizeof endless, out, sizeof out));
}

TEST(random_bytes_never_lead_out_of_the_memory) {
    uint64_t state = 5;
    for (int i = 0; i < 20000; i++) {
        uint8_t from[24], to[40];
        for (size_t k = 0; k < sizeof from; k++) from[k] = (uint8_t)(test_random(&state) >> 11);
        fv_lz4_unpack(from, sizeof from, to, sizeof to);
    }
}

TEST_MAIN
