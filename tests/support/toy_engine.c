/* Engine toy: workers that take a bag of jobs, run them in random order, some of them twice, and die now and then. A worker that
 * dies loses its whole bag, also jobs that it had done and not yet told. It knows run/engine.h and nothing else of Fovea; it is
 * the example of docs/developing.md.
 */
#include "support/toy_engine.h"
#include "run/engine.h"
#include "support/test.h"

enum { BAG = 8 };

atomic_int  toy_lost, toy_repeated;
atomic_bool toy_hopeless;

typedef struct worker {
    fv_scheduler *scheduler;
    fv_worker    *own; /* memory that tasks use again */
    pthread_t     thread;
    int           number, count;
    uint64_t      state; /* of the dice */
    fv_job        bag[BAG];
} worker;

static bool one_in(worker *w, uint64_t n) { return test_random(&w->state) % n == 0; }

/* Whoever sends jobs to workers that can die opens items itself. */
static void open_item(worker *w, fv_job *job) {
    fv_error  error = { 0 };
    fv_status status = fv__job_run(w->scheduler, job, w->own, &error);
    fv__job_done(w->scheduler, job, w->number, status, &error);
}

static void run_job(worker *w, fv_job *job) {
    fv_error  error = { 0 };
    fv_status status = fv__job_run(w->scheduler, job, w->own, &error);
    if (status == FV_OK && job->kind == FV_JOB_TASK && one_in(w, 4)) {
        status = fv__job_run(w->scheduler, job, w->own, &error);
        toy_repeated++;
    }
    fv__job_done(w->scheduler, job, w->number, status, &error);
}

static bool may_die(worker *w) {
    if (toy_hopeless) return true;
    for (int i = 0; i < w->count; i++)
        if (w->bag[i].lost + 1 == FV_MOST_LOST) return false; /* the next loss would be the end of its item */
    return one_in(w, 6);
}

/* The first job is lost when it has run, the others before. */
static void die(worker *w) {
    fv_error error = { 0 };
    if (one_in(w, 2)) fv__job_run(w->scheduler, &w->bag[0], w->own, &error);
    fv__worker_free(w->own);
    w->own = fv__worker_new();
    toy_lost += w->count;
    while (w->count) fv__job_lost(w->scheduler, &w->bag[--w->count], w->number);
}

static void empty_bag(worker *w) {
    while (w->count && !may_die(w)) {
        int    at = (int)(test_random(&w->state) % (uint64_t)w->count);
        fv_job job = w->bag[at];
        w->bag[at] = w->bag[--w->count];
        run_job(w, &job);
    }
    if (w->count) die(w);
}

static void *work(void *argument) {
    worker *w = argument;
    w->own = fv__worker_new();
    for (fv_offer offer = FV_OFFER_LATER; offer != FV_OFFER_OVER;) {
        uint64_t seen = fv__scheduler_changes(w->scheduler);
        for (fv_job job; w->count < BAG && (offer = fv__job_next(w->scheduler, 0, false, &job)) == FV_OFFER_JOB;) {
            if (job.kind == FV_JOB_OPEN)
                open_item(w, &job);
            else
                w->bag[w->count++] = job;
        }
        if (w->count)
            empty_bag(w);
        else if (offer == FV_OFFER_LATER)
            fv__scheduler_wait(w->scheduler, seen, 0.2);
    }
    fv__worker_free(w->own);
    return NULL;
}

static fv_status run(fv_scheduler *scheduler, const fv_run_settings *settings, const char *run_folder, fv_error *error) {
    worker *workers = fv__calloc((size_t)settings->options.workers * sizeof *workers);
    (void)run_folder;
    for (int i = 0; i < settings->options.workers; i++) {
        workers[i] = (worker){ .scheduler = scheduler, .number = i, .state = (uint64_t)i + 1 };
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < settings->options.workers; i++) pthread_join(workers[i].thread, NULL);
    free(workers);
    return fv__scheduler_status(scheduler, error);
}

static const fv_engine toy = { .name = "toy", .brief = "careless workers, for tests", .run = run };

void toy_engine_add(void) {
    if (!fv__engine_find(toy.name)) fv__engine_add(&toy);
}
