/* Engine threads: workers of this process share everything.
 *
 * As many tasks compute at once as there are workers. A few more threads than that exist, so that while one waits for the disk
 * another computes: a thread gives its turn back around every blocking call (the I/O gate).
 */
#include "base/file.h"
#include "engines/scheduler.h"
#include <semaphore.h>
#include <stdlib.h>

static _Thread_local sem_t *turn; /* held by this thread */
static pthread_once_t       gate = PTHREAD_ONCE_INIT;

static void lend(void) {
    if (turn) sem_post(turn);
}
static void take_back(void) {
    if (turn)
        while (sem_wait(turn)) {}
}

static void install_gate(void) { fv_io_hooks(lend, take_back); }

typedef struct thread {
    fv_scheduler *scheduler;
    sem_t        *turns; /* one per task that may compute */
    pthread_t     id;
    int           number;
} thread;

static void *work(void *argument) {
    thread    *self = argument;
    fv_worker *worker = fv_worker_new();
    fv_job     job;
    while (fv_scheduler_next(self->scheduler, &job)) {
        fv_error error = { 0 };
        double   asked = fv_now();
        while (sem_wait(self->turns)) {}
        turn = self->turns;
        job.facts.wait = fv_now() - asked;
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        job.facts.start = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
        fv_status status = fv_job_run(self->scheduler, &job, worker, &error);
        turn = NULL;
        sem_post(self->turns); /* before the rest: who holds a lock must never wait for a turn */
        fv_scheduler_done(self->scheduler, &job, self->number, status, &error);
    }
    fv_worker_free(worker);
    return NULL;
}

static fv_status run(fv_scheduler *scheduler, const fv_run_settings *settings, const char *run_folder, fv_error *error) {
    (void)run_folder;
    int     count = settings->workers + FV_MIN(settings->workers, 2);
    thread *threads = fv_calloc((size_t)count * sizeof *threads);
    sem_t   turns;
    sem_init(&turns, 0, (unsigned)settings->workers);
    pthread_once(&gate, install_gate); /* once for all runs of the process: a thread without a turn passes it freely */
    for (int i = 0; i < count; i++) {
        threads[i] = (thread){ .scheduler = scheduler, .turns = &turns, .number = i };
        if (pthread_create(&threads[i].id, NULL, work, &threads[i])) {
            fv_fail(error, FV_ERROR_IO, "cannot start a thread");
            fv_scheduler_stop(scheduler, FV_ERROR_IO, error);
            count = i;
        }
    }
    for (int i = 0; i < count; i++) pthread_join(threads[i].id, NULL);
    sem_destroy(&turns);
    free(threads);
    return fv_scheduler_status(scheduler, error);
}

const fv_engine fv_engine_threads = { .name = "threads", .brief = "all cores of this machine, one process", .run = run };
