/* Deflated pieces: the same bytes wherever the working memory lies and whatever it held, and what went in comes out. */
#include "base/deflate.h"
#include "support/test.h"
#include <zlib.h>

enum { KINDS = 8, LARGEST = 2600 };

static void fill(uint8_t data[KINDS][LARGEST]) {
    uint64_t state = 1;
    for (int i = 0; i < KINDS * LARGEST; i++)
        data[i / LARGEST][i % LARGEST] = (uint8_t)(test_random(&state) % (3 + (uint64_t)i / LARGEST));
    memset(data[KINDS - 1] + 600, 1, 1300); /* a long run in the midst of noise */
}

/* Memory of the size that the next call will ask for, full of something else each time. */
static void *occupy(int round) {
    size_t size = (size_t)fv__deflate_memory(0);
    return memset(fv__alloc(size), round, size);
}

static void check_addresses(int level, fv_deflate_form form, size_t size) {
    enum { ROUNDS = 60 };
    static uint8_t data[KINDS][LARGEST];
    static void   *occupied[ROUNDS];
    fv_bytes       first[KINDS] = { { 0 } };
    fill(data);
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < KINDS; k++) {
            fv_bytes out = { 0 };
            fv__deflate(data[k], size, level, form, &out);
            if (round) {
                bool same = out.size == first[k].size && !memcmp(out.data, first[k].data, out.size);
                CHECK_MESSAGE(same, "level %d form %d size %zu", level, (int)form, size);
                fv__bytes_release(&out);
            } else
                first[k] = out;
        }
        free(occupy(round));
        occupied[round] = occupy(round); /* sends the next working memory elsewhere */
    }
    for (int round = 0; round < ROUNDS; round++) free(occupied[round]);
    for (int k = 0; k < KINDS; k++) fv__bytes_release(&first[k]);
}

TEST(deflated_bytes_do_not_depend_on_addresses) {
    for (int level = 1; level <= 4; level++)
        for (int form = FV_DEFLATE_PIECE; form <= FV_DEFLATE_GZIP; form++) {
            check_addresses(level, (fv_deflate_form)form, 256);
            check_addresses(level, (fv_deflate_form)form, LARGEST);
        }
}

TEST(deflated_pieces_of_any_size_inflate_to_what_they_held) {
    static const int window[] = { [FV_DEFLATE_PIECE] = -15, [FV_DEFLATE_ZLIB] = 15, [FV_DEFLATE_GZIP] = 31 };
    static uint8_t   data[KINDS][LARGEST], back[LARGEST + 1];
    fill(data);
    for (int level = 1; level <= FV_DEFLATE_LEVELS; level++)
        for (int form = FV_DEFLATE_PIECE; form <= FV_DEFLATE_GZIP; form++)
            for (size_t size = 0; size <= LARGEST; size += size < 40 ? 1 : 512) {
                fv_bytes out = { 0 };
                fv__deflate(data[size % KINDS], size, level, (fv_deflate_form)form, &out);
                z_stream stream = { .next_in = out.data, .avail_in = (uInt)out.size, .next_out = back, .avail_out = sizeof back };
                CHECK(inflateInit2(&stream, window[form]) == Z_OK);
                int code = inflate(&stream, Z_SYNC_FLUSH);
                CHECK_MESSAGE((form ? code == Z_STREAM_END : code == Z_OK) && stream.total_out == size && !stream.avail_in &&
                                  !memcmp(back, data[size % KINDS], size),
                              "level %d form %d size %zu: %d, %lu bytes", level, form, size, code, stream.total_out);
                inflateEnd(&stream);
                fv__bytes_release(&out);
            }
}

TEST_MAIN
