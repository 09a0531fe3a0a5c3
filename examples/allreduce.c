/* 2,000,000 numbers of each rank are added up, element by element, and every rank has the sum: the exchange that iterative
 * reconstruction on several machines makes in every round. Prints the time of each rank.
 *
 *     cc allreduce.c $(pkg-config --cflags --libs fovea) -o allreduce
 *     mpiexec -n 4 ./allreduce
 */
#include <fovea/ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 2000000, ROUNDS = 10 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void) {
    fv_error error = { 0 };
    fv_team *team;
    if (fv_team_join(0, &team, &error) != FV_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    int                rank = fv_team_rank(team), size = fv_team_size(team), wrong = 0;
    float             *values = malloc(N * sizeof *values), *sum = malloc(N * sizeof *sum);
    fv_allreduce_block block = { .index = rank, .values = values }; /* one block per rank */
    double             best = 1e9;
    if (!values || !sum) return 1;
    for (int i = 0; i < N; i++) values[i] = (float)(rank + 1) + (float)(i % 1000);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        if (fv_allreduce(team, &block, 1, N, sum, &error) != FV_OK) {
            fprintf(stderr, "rank %d: %s\n", rank, error.message);
            return 1;
        }
        if (now() - start < best) best = now() - start;
    }
    for (int i = 0; i < N; i++) wrong += sum[i] != (float)size * (float)(size + 1) / 2 + (float)size * (float)(i % 1000);
    printf("rank %d of %d: %.2f ms for %d numbers, sum %s\n", rank, size, 1e3 * best, N, wrong ? "wrong" : "right");
    fflush(stdout);
    fv_team_leave(team);
    free(values);
    free(sum);
    return wrong > 0;
}
