/* Boundary modes against extending an axis by hand. */
#include "op/border.h"
#include "support/test.h"

static const fv_border all[] = { FV_BORDER_REFLECT, FV_BORDER_NEAREST, FV_BORDER_MIRROR, FV_BORDER_CONSTANT, FV_BORDER_WRAP };

/* One step back over the end that it lies beyond, until it is inside. */
static int64_t by_steps(fv_border border, int64_t i, int64_t n) {
    while (i < 0 || i >= n) {
        bool before = i < 0;
        switch (border) {
        case FV_BORDER_REFLECT: i = before ? -1 - i : 2 * n - 1 - i; break;
        case FV_BORDER_MIRROR:
            if (n == 1) return 0;
            i = before ? -i : 2 * n - 2 - i;
            break;
        case FV_BORDER_NEAREST: i = before ? 0 : n - 1; break;
        case FV_BORDER_WRAP: i = before ? i + n : i - n; break;
        case FV_BORDER_CONSTANT: return -1;
        }
    }
    return i;
}

TEST(an_index_at_any_distance_comes_from_where_steps_lead) {
    for (int b = 0; b < FV_COUNT(all); b++)
        for (int64_t n = 1; n < 9; n++)
            for (int64_t i = -50; i < 60; i++) CHECK_INT(fv__border_index(all[b], i, n), by_steps(all[b], i, n));
}

TEST(the_modes_are_scipys) { /* a b c d and two beyond each end; a point stands for the constant */
    static const char *const expected[] = { "baabcddc", "aaabcddd", "cbabcdcb", "..abcd..", "cdabcdab" };
    for (int b = 0; b < FV_COUNT(all); b++) {
        int64_t map[8];
        char    text[9] = { 0 };
        fv__border_map(all[b], 4, -2, 8, map);
        for (int k = 0; k < 8; k++) text[k] = map[k] < 0 ? '.' : (char)('a' + map[k]);
        CHECK_TEXT(text, expected[b]);
    }
}

TEST(the_needed_region_holds_every_source_and_little_more) {
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        int64_t   shape[2], before[2], after[2];
        fv_region r = { .ndim = 2 };
        for (int d = 0; d < 2; d++) {
            shape[d] = 1 + (int64_t)(test_random(&seed) % 8);
            r.start[d] = (int64_t)(test_random(&seed) % (uint64_t)shape[d]);
            r.size[d] = 1 + (int64_t)(test_random(&seed) % (uint64_t)(shape[d] - r.start[d]));
            before[d] = (int64_t)(test_random(&seed) % 12);
            after[d] = (int64_t)(test_random(&seed) % 12);
        }
        for (int b = 0; b < FV_COUNT(all); b++) {
            fv_region need = fv__border_need(all[b], &r, before, after, shape);
            for (int d = 0; d < 2; d++) {
                int64_t low = r.start[d], high = low + r.size[d] - 1;
                for (int64_t i = r.start[d] - before[d]; i < r.start[d] + r.size[d] + after[d]; i++) {
                    int64_t source = fv__border_index(all[b], i, shape[d]);
                    if (source >= 0) low = FV_MIN(low, source), high = FV_MAX(high, source);
                }
                int64_t end = need.start[d] + need.size[d];
                CHECK(need.start[d] >= 0 && end <= shape[d] && need.start[d] <= low && end > high);
                bool exact =
                    all[b] != FV_BORDER_WRAP || (r.start[d] >= before[d] && r.start[d] + r.size[d] + after[d] <= shape[d]);
                if (exact)
                    CHECK_MESSAGE(need.start[d] == low && end == high + 1, "mode %d needs %lld:%lld, not %lld:%lld", (int)all[b],
                                  (long long)need.start[d], (long long)end, (long long)low, (long long)high + 1);
                else
                    CHECK(need.start[d] == 0 && end == shape[d]);
            }
        }
    }
}

TEST_MAIN
