/* Questions to the model: many numbers of workers, what is worth it, and whether it is right where it can be checked. */
#include "study/simulation.h"
#include "study/simulate_source.h"
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* What engines cost, roughly, as measured where they were built (docs/cluster.md); jobs of Slurm wait for nodes and start. */
static const struct {
    const char *name;
    double      dispatch, start;
} engines[] = { { "slurm", 0, 10 }, { "mpi", 13e-6, 2 }, { "processes", 60e-6, 0.1 }, { "threads", 8e-6, 0 } };

static fv_status assume(const fv_simulate_options *o, fv_simulation *s, fv_error *error) {
    const char *name = o->engine ? o->engine : engines[0].name;
    int         e = 0;
    while (e < FV_COUNT(engines) && strcmp(engines[e].name, name)) e++;
    if (e == FV_COUNT(engines))
        return fv_fail(error, FV_ERROR_USAGE, "--engine %s: slurm, mpi, processes and threads can be simulated", name);
    s->engine = engines[e].name;
    s->dispatch = engines[e].dispatch;
    s->start = engines[e].start;
    int most = 1; /* threads are of one process */
    for (int i = 0; i < o->nworkers; i++) most = FV_MAX(most, o->workers[i]);
    s->cores = !strcmp(s->engine, "threads") ? most : o->cores > 0 ? o->cores : (int)FV_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    s->disk = o->disk > 0 ? o->disk : 20e9;
    s->network = o->network > 0 ? o->network : 1.25e9;
    s->stragglers = o->stragglers >= 0 ? o->stragglers : 0.001;
    s->slow = 3;
    s->failures = o->failures > 0 ? o->failures : 20000;
    return FV_OK;
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Those that were asked for, and powers of two between them for the curve. */
static void make_rows(const fv_simulate_options *o, fv_simulation *s) {
    int list[128], count = 0, most = 1;
    for (int i = 0; i < o->nworkers && count < 64; i++) list[count++] = o->workers[i];
    for (int i = 0; i < count; i++) most = FV_MAX(most, list[i]);
    for (int w = 1; w <= most && count<128; w = w> most / 2 ? most + 1 : 2 * w) list[count++] = w;
    qsort(list, (size_t)count, sizeof *list, by_number);
    s->rows = fv__calloc((size_t)count * sizeof *s->rows);
    for (int i = 0; i < count; i++) {
        if (i && list[i] == list[i - 1]) continue;
        fv_simulated *row = &s->rows[s->nrows++];
        row->workers = list[i];
        for (int k = 0; k < o->nworkers; k++) row->asked = row->asked || o->workers[k] == list[i];
    }
}

/* Batches let volumes beside each other come to the disk in another order than single tasks do. In plays of both kinds
 * (docs/cluster.md) this changed times by up to 14 %, beside what the length of batches explains; nothing proves a bound. */
static const double by_order = 0.2;
/* The same of tasks of one volume that wait for the disk: up to 1.0 % was seen. */
static const double by_waiting = 0.02;

static void play(const fv_sim_work *work, fv_simulation *s, fv_simulated *row) {
    bool           one_node = row->workers <= s->cores;
    fv_sim_machine machine = { .workers = row->workers,
                               .cores = s->cores,
                               .dispatch = s->dispatch,
                               .disk = s->disk,
                               .network = s->network,
                               .start = one_node ? 0 : s->start,
                               .stragglers = one_node ? 0 : s->stragglers,
                               .slow = s->slow,
                               .failures = s->failures,
                               .repair = 3600,
                               .seed = 1 };
    fv_sim_answer  a;
    fv__simulate(work, &machine, &a);
    row->nodes = (row->workers + s->cores - 1) / s->cores;
    row->seconds = a.seconds;
    row->speedup = a.seconds > 0 ? s->one / a.seconds : 0;
    row->efficiency = row->speedup / row->workers;
    row->compute = a.costs[FV_SIM_COMPUTE];
    row->disk = a.costs[FV_SIM_DISK];
    row->handing = a.costs[FV_SIM_HANDING];
    row->start = a.costs[FV_SIM_START];
    row->straggle = a.costs[FV_SIM_STRAGGLE];
    row->lost = a.costs[FV_SIM_LOST];
    row->idle = a.costs[FV_SIM_IDLE];
    row->failed = a.failed;
    row->redone = a.redone;
    row->unsure = a.seconds > 0 ? work->unsure / a.seconds : 0;
    if (work->together > 1) row->unsure += work->nunits > 1 ? by_order : by_waiting;
    row->bottleneck = fv__sim_bottleneck(work, &machine, &a);
}

static void judge(fv_simulation *s) {
    double best = INFINITY;
    for (int i = 0; i < s->nrows; i++) best = fmin(best, s->rows[i].seconds);
    for (int i = 0; i < s->nrows; i++) {
        if (s->rows[i].efficiency >= 0.5) s->worth = s->rows[i].workers;
        if (!s->fastest && s->rows[i].seconds <= 1.05 * best) s->fastest = s->rows[i].workers;
    }
}

/* On this machine, where nothing has to be assumed. */
static double seconds_here(const fv_sim_work *work, int workers) {
    fv_sim_answer a;
    fv__simulate(work, &(fv_sim_machine){ .workers = workers, .cores = workers }, &a);
    return a.seconds;
}

fv_status fv_simulate(fv_pipeline *pipeline, const fv_simulate_options *o, fv_simulation **result, fv_error *error) {
    fv_simulation *s = *result = fv__calloc(sizeof *s);
    fv_sim_work    work = { 0 };
    FV_TRY(assume(o, s, error));
    fv_status status = o->run ? fv__sim_from_run(o->run, (fv_sim_size){ o->times, o->volumes, o->most }, &work, s, error)
                              : fv__sim_from_trials(pipeline, o, &work, s, error);
    if (status == FV_OK) {
        s->tasks = work.ntasks;
        s->all_tasks = work.all;
        s->together = FV_MAX(work.together, 1);
        s->one = seconds_here(&work, 1);
        if (s->measured_two > 0 && o->times <= 1 && o->volumes <= 1) s->predicted_two = seconds_here(&work, 2);
        make_rows(o, s);
        for (int i = 0; i < s->nrows && !(o->cancel && *o->cancel); i++) play(&work, s, &s->rows[i]);
        judge(s);
    }
    fv__sim_work_release(&work);
    return status;
}

void fv_simulation_free(fv_simulation *s) {
    if (!s) return;
    free(s->rows);
    free(s);
}
