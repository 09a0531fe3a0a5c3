/* How often all intervals hold at once that a run shows while its sample grows (docs/approximate.md).
 *
 *     bench_running [SEEDS]
 *
 * Populations of 1,024 chunks. Shown: half as many chunks more from look to look, as the progress line does. Often: a fifth more.
 */
#include "base/math.h"
#include "exec/strata.h"
#include "op/interval.h"
#include "op/random.h"
#include <stdio.h>
#include <stdlib.h>

enum { CHUNKS = 1024 };

static const fv_stage stage = { .lattice = { .ndim = 3 }, .count = { 16, 8, 8 }, .ntasks = CHUNKS };

static double random_number(uint64_t k) { return fv__uniform(fv__place_hash(11, 4, 0, 0, 0), k); }

/* About normal, of deviation 1. */
static double noise(uint64_t k) {
    double sum = 0;
    for (uint64_t i = 0; i < 12; i++) sum += random_number(12 * k + i);
    return sum - 6;
}

typedef struct population {
    const char *name;
    double (*value)(int64_t chunk);
} population;

static double uniform(int64_t i) { return 0.5 + 0.003 * noise((uint64_t)i); }
static double heavy(int64_t i) { return fv__exp(noise((uint64_t)i)); }
static double gradient(int64_t i) { return 0.5 + 5 * (double)(i / 64) / 15 + 0.01 * noise((uint64_t)i); }
static double periodic(int64_t i) { return 3 + (double)(i % 8 % 3) + 0.1 * noise((uint64_t)i); }
static double rare(int64_t i) { return random_number((uint64_t)i) < 0.12 ? random_number((uint64_t)(i + CHUNKS)) : 0; }

static const population populations[] = {
    { "uniform", uniform },   { "heavy-tailed", heavy }, { "gradient", gradient },
    { "periodic", periodic }, { "rare objects", rare },
};
/* Whether all intervals of one order hold the truth. */
static bool hold(const double *value, double truth, uint64_t seed, int64_t part) {
    int64_t  *order = fv__sampling_order(seed, CHUNKS);
    double    x[CHUNKS], y[CHUNKS];
    fv_strata strata = { 0 };
    bool      held = true;
    for (int64_t n = fv__sampling_next(0, CHUNKS); n < CHUNKS && held; n += FV_MAX(n / part, 1)) {
        fv_image_type image = { .ndim = 3 };
        fv_interval   e = { 0 };
        fv_sample     s = { .seen = n, .population = CHUNKS, .confidence = fv__sampling_look(0.95, n, CHUNKS), .seed = seed };
        for (int64_t i = 0; i < n; i++) x[i] = 1, y[i] = value[order[i]];
        if (fv__strata_find(&strata, &stage, &image, order, n)) s.stratum = strata.stratum;
        s.of_stratum = strata.chunks;
        s.strata = strata.count;
        if (fv__estimate_ratio(&s, x, y, &e, NULL) != FV_OK) abort();
        e.seen = n;
        e.population = CHUNKS;
        held = !fv__sampling_sound(&e) || (e.low <= truth && truth <= e.high);
    }
    fv__strata_release(&strata);
    free(order);
    return held;
}

int main(int argc, char **argv) {
    int seeds = argc > 1 ? atoi(argv[1]) : 1000;
    if (seeds < 1) {
        fprintf(stderr, "bench_running [SEEDS]: at least one\n");
        return 2;
    }
    printf("| population | shown: all held | often: all held |\n|---|---|---|\n");
    for (size_t p = 0; p < sizeof populations / sizeof *populations; p++) {
        double value[CHUNKS], truth = 0;
        int    held[2] = { 0 };
        for (int64_t i = 0; i < CHUNKS; i++) truth += (value[i] = populations[p].value(i)) / CHUNKS;
        for (int k = 0; k < 2; k++)
            for (int seed = 1; seed <= seeds; seed++) held[k] += hold(value, truth, (uint64_t)seed, k ? 5 : 2);
        printf("| %s | %.3f | %.3f |\n", populations[p].name, (double)held[0] / seeds, (double)held[1] / seeds);
        fflush(stdout);
    }
    return 0;
}
