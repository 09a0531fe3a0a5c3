/* Sums over blocks: the same bits for any number of threads and any way to share the blocks out. */
#include "base/base.h"
#include "exec/allreduce.h"
#include "support/test.h"
#include <math.h>

enum { MOST = 40, N = 300001 };

static float *random_values(int64_t n, uint64_t *state) {
    float *values = fv__alloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = ldexpf((float)(test_random(state) % 2000001) - 1e6f, (int)(test_random(state) % 40) - 30);
    return values;
}

/* The tree as the header describes it, written down recursively. */
static float tree_sum(float *const *blocks, int count, int64_t first, int level, int64_t at) {
    if (level == 0) return blocks[first][at];
    int64_t half = (int64_t)1 << (level - 1);
    if (first + half >= count) return tree_sum(blocks, count, first, level - 1, at);
    return tree_sum(blocks, count, first, level - 1, at) + tree_sum(blocks, count, first + half, level - 1, at);
}

TEST(a_sum_is_that_of_the_fixed_tree_for_any_number_of_threads) {
    uint64_t           state = 5;
    float             *values[MOST], *sum = fv__alloc(N * sizeof *sum);
    fv_allreduce_block blocks[MOST];
    fv_error           error = { 0 };
    for (int b = 0; b < MOST; b++) {
        values[b] = random_values(N, &state);
        blocks[b] = (fv_allreduce_block){ b, values[b] };
    }
    static const int counts[] = { 1, 2, 3, 5, 8, 13, 40 };
    for (int c = 0; c < FV_COUNT(counts); c++)
        for (int threads = 1; threads <= 3; threads++) {
            fv_team *team;
            CHECK(fv_team_join(threads, &team, &error) == FV_OK);
            CHECK(fv_allreduce(team, blocks, counts[c], N, sum, &error) == FV_OK);
            fv_team_leave(team);
            for (int64_t i = 0; i < N; i += 7) {
                float wanted = tree_sum(values, counts[c], 0, 6, i);
                CHECK_MESSAGE(sum[i] == wanted, "%d blocks, %d threads: element %lld is %g, not %g", counts[c], threads,
                              (long long)i, (double)sum[i], (double)wanted);
            }
        }
    for (int b = 0; b < MOST; b++) free(values[b]);
    free(sum);
}

TEST(no_blocks_are_zero_and_blocks_out_of_order_are_refused) {
    float              ones[4] = { 1, 1, 1, 1 }, sum[4] = { 9, 9, 9, 9 };
    fv_allreduce_block twice[2] = { { 3, ones }, { 3, ones } };
    fv_error           error = { 0 };
    fv_team           *team;
    CHECK(fv_team_join(1, &team, &error) == FV_OK);
    CHECK(fv_allreduce(team, NULL, 0, 4, sum, &error) == FV_OK && sum[0] == 0 && sum[3] == 0);
    CHECK(fv_allreduce(team, twice, 2, 4, sum, &error) == FV_ERROR_USAGE);
    CHECK(strstr(error.message, "rising order"));
    fv_team_leave(team);
}

TEST_MAIN
