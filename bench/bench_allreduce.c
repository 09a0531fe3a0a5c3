/* The engine's allreduce against plain MPI_Allreduce on the same numbers, in turns: mpiexec -n 4 build/bench/bench_allreduce.
 * Without arguments 2,000,000 floats per rank. With a folder it also writes the sum of 12 blocks there, for the tests. */
#include "engines/mpi/ranks.h"
#include "exec/allreduce.h"
#include <stdio.h>
#include <stdlib.h>

enum { N = 2000000, ROUNDS = 15, BLOCKS = 12, SMALL = 100003 };

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times) {
    qsort(times, ROUNDS, sizeof *times, by_value);
    return times[ROUNDS / 2];
}

/* The same 12 blocks whatever the number of ranks, in runs or dealt out one by one. */
static void write_sum(fv_team *team, const char *folder, bool dealt) {
    fv_allreduce_block blocks[BLOCKS];
    float             *sum = fv__alloc(SMALL * sizeof *sum);
    int64_t            count = 0;
    fv_error           error = { 0 };
    for (int b = 0; b < BLOCKS; b++) {
        if ((dealt ? b % team->size : b * team->size / BLOCKS) != team->rank) continue;
        float *values = fv__alloc(SMALL * sizeof *values);
        for (int i = 0; i < SMALL; i++) values[i] = (float)((i * 7919 + b * 104729) % 1000003) / (float)(1 + (i + b) % 997);
        blocks[count++] = (fv_allreduce_block){ b, values };
    }
    if (fv_allreduce(team, blocks, count, SMALL, sum, &error) != FV_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    char *path = fv__sprintf("%s/sum-%d", folder, team->rank);
    FILE *file = fopen(path, dealt ? "ab" : "wb");
    if (!file || fwrite(sum, sizeof *sum, SMALL, file) != SMALL || fclose(file)) exit(1);
    for (int64_t i = 0; i < count; i++) free((void *)(uintptr_t)blocks[i].values);
    free(path);
    free(sum);
}

static void compare(fv_team *team) {
    const fv_ranks    *ranks = fv__ranks_joined();
    float             *values = fv__alloc(N * sizeof *values), *sum = fv__alloc(N * sizeof *sum);
    float             *plain = fv__alloc(N * sizeof *plain);
    double             own[ROUNDS], mpi[ROUNDS];
    fv_allreduce_block block = { team->rank, values };
    for (int i = 0; i < N; i++) values[i] = (float)(team->rank + 1) / (float)(1 + i % 1000);
    for (int round = -1; round < ROUNDS; round++) {
        int at = round < 0 ? 0 : round;
        memcpy(plain, values, N * sizeof *plain);
        ranks->mpi->barrier();
        double start = fv__now();
        ranks->mpi->sum_floats(plain, N);
        ranks->mpi->barrier();
        mpi[at] = fv__now() - start;
        start = fv__now();
        fv_allreduce(team, &block, 1, N, sum, NULL);
        ranks->mpi->barrier();
        own[at] = fv__now() - start;
    }
    double ours = median(own), theirs = median(mpi);
    if (team->rank == 0)
        printf("allreduce, %d ranks, %d floats each: %s %.2f ms, fovea %.2f ms (order-independent), ratio %.2f\n", team->size, N,
               ranks->mpi->flavour, 1e3 * theirs, 1e3 * ours, ours / theirs);
    free(values);
    free(sum);
    free(plain);
}

int main(int argc, char **argv) {
    fv_error error = { 0 };
    fv_team *team;
    if (fv_team_join(argc > 2 ? atoi(argv[2]) : 0, &team, &error) != FV_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    if (argc > 1) {
        write_sum(team, argv[1], false);
        write_sum(team, argv[1], true);
    } else if (fv__ranks_joined())
        compare(team);
    else
        fprintf(stderr, "start it with mpiexec -n 2 %s\n", argv[0]);
    fv_team_leave(team);
    return 0;
}
