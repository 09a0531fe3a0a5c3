/* fovea work: takes part in a run that others work on too. What the jobs of `fovea submit` do. */
#include "execute.h"
#include <errno.h>
#include <fovea/cluster.h>
#include <fovea/ranks.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GRACE = 2 }; /* seconds */

typedef struct {
    int64_t     stage;
    bool        end;
    bool        wait;
    bool        finish;
    bool        alone;
    const char *order;
    const char *engine;
    int64_t     level;
    const char *place;
    bool        tied;
    int64_t     workers;
    fv_size     memory;
    double      patience;
    bool        overwrite, stop_on_error, quiet, verbose, json;
} work_options;

static const fv_option options[] = {
    FV_OPTION(work_options, stage, .min = 1, .max = 1e6, .argument = "N",
              .doc = "take only tasks of this stage and earlier ones"),
    FV_OPTION(work_options, end, .doc = "also finish that stage: merge results and complete files"),
    FV_OPTION(work_options, wait, .doc = "wait for the other workers until everything is done"),
    FV_OPTION(work_options, finish, .doc = "do whatever is missing, then gather the tables and write the record"),
    FV_OPTION(work_options, alone, .doc = "do everything alone, or with the ranks of an MPI job"),
    FV_OPTION(work_options, order, .choices = "fifo|longest|memory", .argument = "POLICY",
              .doc = "which tasks to take first: in their order, the longest, or those that fit into memory"),
    FV_OPTION(work_options, engine, .argument = "NAME", .doc = "with --alone: how tasks are run"),
    FV_OPTION(work_options, level, .min = 0, .max = 9, .argument = "N", .doc = "also take tasks on which N workers have died"),
    FV_OPTION(work_options, place, .argument = "I/N", .doc = "begin as worker I, from 0, of N, so that equals meet rarely"),
    FV_OPTION(work_options, tied,
              .doc = "end when standard input ends, which it does when the program that started this one is gone"),
    FV_OPTION(work_options, workers, .min = 1, .max = 4096, .argument = "N",
              .doc = "how many tasks run at once; all cores "
                     "if left out"),
    FV_OPTION(work_options, memory,
              .doc = "how much memory this process may use, such as 512M or 4G; half of the free "
                     "memory if left out"),
    FV_OPTION(work_options, patience, .min = 0.001, .max = 3600, .argument = "SECONDS",
              .doc = "how many seconds of a worker's work may be lost if it is killed; 2.5 if left out"),
    FV_OPTION(work_options, overwrite, .doc = "replace files that Fovea did not make"),
    FV_OPTION(work_options, stop_on_error, .doc = "stop at the first item that fails instead of going on with the others"),
    FV_OPTION(work_options, quiet, .letter = 'q', .doc = "show errors only, no progress and no messages"),
    FV_OPTION(work_options, verbose, .letter = 'v', .doc = "say more about what happens"),
    FV_OPTION(work_options, json, .doc = "print values and a summary as JSON"),
    FV_OPTION_END,
};

/* A job that was queued again tries once more what its first start died on. */
static int level_here(int level) {
    const char *restarts = getenv("SLURM_RESTART_COUNT");
    level += restarts ? atoi(restarts) : 0;
    return level < FV_MOST_TRIES ? level : FV_MOST_TRIES - 1;
}

/* Place of this process among its equals: as given, in a job array, or in a job step. */
static bool find_place(const char *given, fv_work_options *work) {
    char end;
    if (given) return sscanf(given, "%d/%d%c", &work->place, &work->places, &end) == 2 && work->place >= 0 && work->places > 0;
    const char *array = getenv("SLURM_ARRAY_TASK_ID"), *tasks = getenv("SLURM_ARRAY_TASK_COUNT");
    const char *rank = getenv("SLURM_PROCID"), *ranks = getenv("SLURM_NTASKS");
    if (array && tasks) {
        work->place = atoi(array);
        work->places = atoi(tasks);
    } else if (rank && ranks) {
        work->place = atoi(rank);
        work->places = atoi(ranks);
    }
    return true;
}

/* Reads until nobody can write any more. Then what is begun may be committed, for a moment. */
static void *watch_input(void *unused) {
    (void)unused;
    char    bytes[64];
    ssize_t count;
    do count = read(0, bytes, sizeof bytes);
    while (count > 0 || (count < 0 && errno == EINTR));
    kill(getpid(), SIGTERM);
    sleep(GRACE);
    _Exit(FV_EXIT_INTERRUPTED);
}

static bool tie_to_input(void) {
    pthread_t thread;
    return !pthread_create(&thread, NULL, watch_input, NULL) && !pthread_detach(thread);
}

typedef struct job {
    const char     *run;
    fv_work_options work;
} job;

static fv_status work_on(void *context, const fv_run_options *run, fv_result **result, fv_error *error) {
    const job *j = context;
    return fv_work(j->run, &j->work, run, result, error);
}

static int run(const void *options_, int nargs, char **args) {
    (void)nargs;
    const work_options *o = options_;
    int                 status;
    if (o->alone && !fv_ranks_lead(o->engine, &status)) return status;
    job j = { args[0],
              { .stage = (int)o->stage,
                .end = o->end,
                .wait = o->wait,
                .finish = o->finish,
                .alone = o->alone,
                .order = o->order,
                .level = level_here((int)o->level) } };
    if (!find_place(o->place, &j.work)) {
        fv_complain("work", "--place %s: expected I/N, as 0/4", o->place);
        return FV_EXIT_REFUSED;
    }
    if (o->tied && !tie_to_input()) {
        fv_complain("work", "no thread can be started");
        return FV_EXIT_REFUSED;
    }
    fv_execute execute = { .engine = o->engine,
                           .workers = o->workers,
                           .memory = o->memory,
                           .patience = o->patience,
                           .overwrite = o->overwrite,
                           .stop_on_error = o->stop_on_error,
                           .quiet = o->quiet,
                           .verbose = o->verbose,
                           .json = o->json };
    status = fv_execute_work("work", work_on, &j, NULL, &execute);
    if (o->alone) fv_ranks_end(status);
    return status == FV_EXIT_INTERRUPTED && getenv("SLURM_JOB_ID") ? FV_EXIT_AGAIN : status;
}

const fv_command fv_cmd_work = {
    .name = "work",
    .brief = "take part in a run that others work on too",
    .usage = "RUN_FOLDER",
    .least = 1,
    .most = 1,
    .doc = "Takes tasks of a run that `fovea submit` has prepared, until none is left. Any number of workers may do this at "
           "once, on any number of machines that share the folder; the result is the same. If Slurm asks a job to stop, the "
           "command ends with status 99, so that the job is queued again.",
    .examples = "fovea work .fovea/runs/0123456789abcdef --wait\nfovea work .fovea/runs/0123456789abcdef --finish",
    .options = options,
    .options_size = sizeof(work_options),
    .hidden = true,
    .run = run,
};
