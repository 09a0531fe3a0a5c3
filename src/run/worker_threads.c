/* Threads with turns to compute. */
#include "run/worker_threads.h"
#include "base/file.h"
#include "base/session.h"
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

enum { ALLOWANCE_LOOK = 50000000 }; /* nanoseconds */

typedef struct thread {
    fv_worker_threads *threads;
    pthread_t          id;
    int                number;
} thread;

struct fv_worker_threads {
    fv_thread_work  work;
    int             workers;
    sem_t           turns; /* one per task that may compute */
    pthread_mutex_t mutex;
    pthread_cond_t  room;
    int             active; /* threads that ask for a job or have one, and do not wait for the disk */
    int             idle;   /* those that were told that there is no job now */
    int             count;
    thread          threads[];
};

static _Thread_local struct {
    fv_worker_threads *threads;
    bool               computes;
} here; /* the threads in which this thread is active, if any */

/* How many may be active; with an allowance that changes while they work. */
static int most_active(const fv_worker_threads *threads) {
    const fv_allowance *allowance = threads->work.allowance;
    return allowance ? FV_MIN(allowance->allowed, threads->workers) : threads->workers;
}

/* Nobody tells when an allowance grows, so it is looked at now and then. */
static void wait_for_room(fv_worker_threads *threads) {
    struct timespec until;
    if (!threads->work.allowance) {
        pthread_cond_wait(&threads->room, &threads->mutex);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ALLOWANCE_LOOK;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&threads->room, &threads->mutex, &until);
}

static void tell_use(fv_worker_threads *threads) {
    fv_allowance *allowance = threads->work.allowance;
    if (!allowance) return;
    allowance->used = threads->active;
    allowance->wanted = threads->idle ? threads->active + 1 : threads->workers;
}

/* Before asking there must be room, so that a job does not wait here for its turn; who comes back from the disk needs none. */
static void enter(fv_worker_threads *threads, bool wait) {
    pthread_mutex_lock(&threads->mutex);
    while (wait && threads->active >= most_active(threads)) wait_for_room(threads);
    threads->active++;
    tell_use(threads);
    pthread_mutex_unlock(&threads->mutex);
}

static void leave(fv_worker_threads *threads) {
    pthread_mutex_lock(&threads->mutex);
    bool room = --threads->active < threads->workers;
    tell_use(threads);
    pthread_mutex_unlock(&threads->mutex);
    if (room) pthread_cond_signal(&threads->room);
}

/* Between two jobs a thread makes room if others came back from the disk meanwhile, else it goes on without waking anybody. */
static void stay(fv_worker_threads *threads) {
    pthread_mutex_lock(&threads->mutex);
    while (threads->active > most_active(threads)) {
        threads->active--;
        tell_use(threads);
        while (threads->active >= most_active(threads)) wait_for_room(threads);
        threads->active++;
        tell_use(threads);
    }
    pthread_mutex_unlock(&threads->mutex);
}

static void take_turn(fv_worker_threads *threads) {
    while (sem_wait(&threads->turns)) {
    }
}

static void lend(void) {
    if (!here.threads) return;
    if (here.computes) sem_post(&here.threads->turns);
    leave(here.threads);
}
static void take_back(void) {
    if (!here.threads) return;
    enter(here.threads, false);
    if (here.computes) take_turn(here.threads);
}

static void come_in(fv_worker_threads *threads) {
    enter(threads, true);
    here.threads = threads;
}
static void go_out(fv_worker_threads *threads) {
    here.threads = NULL;
    leave(threads);
}

static void change_idle(fv_worker_threads *threads, int by) {
    pthread_mutex_lock(&threads->mutex);
    threads->idle += by;
    pthread_mutex_unlock(&threads->mutex);
}

static void run_one(fv_worker_threads *threads, fv_job *job, fv_worker *worker, int number, double since) {
    fv_error        error = { 0 };
    struct timespec now;
    take_turn(threads);
    clock_gettime(CLOCK_REALTIME, &now);
    job->facts.start = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    job->facts.wait = fv__now() - since;
    here.computes = true;
    fv_status status = threads->work.run(threads->work.context, job, worker, number, &error);
    here.computes = false;
    sem_post(&threads->turns);
    threads->work.done(threads->work.context, job, number, status, &error);
}

static void *work(void *argument) {
    thread            *self = argument;
    fv_worker_threads *threads = self->threads;
    fv_worker         *worker = fv__worker_new();
    double             since = fv__now();
    fv__io_hooks(lend, take_back);
    come_in(threads);
    for (fv_offer offer = FV_OFFER_LATER; offer != FV_OFFER_OVER;) {
        fv_job job;
        stay(threads);
        uint64_t seen = threads->work.changes(threads->work.context);
        offer = threads->work.ask(threads->work.context, &job);
        if (offer == FV_OFFER_JOB) {
            run_one(threads, &job, worker, self->number, since);
            since = fv__now();
        } else if (offer == FV_OFFER_LATER) {
            change_idle(threads, 1);
            go_out(threads);
            threads->work.wait(threads->work.context, seen);
            change_idle(threads, -1);
            come_in(threads);
        }
    }
    go_out(threads);
    fv__worker_free(worker);
    return NULL;
}

int fv__worker_threads_threads(int workers) { return workers + FV_MIN(workers, 2); }

static fv_worker_threads *new_threads(const fv_thread_work *what, int workers, int count) {
    fv_worker_threads *threads = fv__calloc(sizeof *threads + (size_t)count * sizeof *threads->threads);
    threads->work = *what;
    threads->workers = workers;
    sem_init(&threads->turns, 0, (unsigned)workers);
    pthread_mutex_init(&threads->mutex, NULL);
    pthread_cond_init(&threads->room, NULL);
    return threads;
}

void fv__worker_threads_here(const fv_thread_work *what) {
    fv_worker_threads *threads = new_threads(what, 1, 0);
    work(&(thread){ .threads = threads });
    fv__io_hooks(NULL, NULL);
    fv__worker_threads_join(threads);
}

fv_status fv__worker_threads_start(const fv_thread_work *what, int workers, fv_worker_threads **out, fv_error *error) {
    int                count = fv__worker_threads_threads(workers);
    fv_worker_threads *threads = new_threads(what, workers, count);
    for (; threads->count < count; threads->count++) {
        thread *t = &threads->threads[threads->count];
        *t = (thread){ .threads = threads, .number = threads->count };
        if (fv__thread_start(&t->id, work, t)) break;
    }
    *out = threads;
    if (threads->count > 0) return FV_OK;
    fv__worker_threads_join(threads);
    *out = NULL;
    return fv_fail(error, FV_ERROR_IO, "cannot start a thread");
}

void fv__worker_threads_join(fv_worker_threads *threads) {
    for (int i = 0; i < threads->count; i++) pthread_join(threads->threads[i].id, NULL);
    sem_destroy(&threads->turns);
    pthread_mutex_destroy(&threads->mutex);
    pthread_cond_destroy(&threads->room);
    free(threads);
}
