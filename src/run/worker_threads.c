/* Threads with turns to compute. */
#include "run/worker_threads.h"
#include "base/file.h"
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

typedef struct thread {
    fv_crew  *crew;
    pthread_t id;
    int       number;
} thread;

struct fv_crew {
    fv_crew_work    work;
    int             workers;
    sem_t           turns; /* one per task that may compute */
    pthread_mutex_t mutex;
    pthread_cond_t  room;
    int             active; /* threads that ask for a job or have one, and do not wait for the disk */
    int             count;
    thread          threads[];
};

static _Thread_local struct {
    fv_crew *crew;
    bool     computes;
} here; /* the crew in which this thread is active, if any */
static pthread_once_t gate = PTHREAD_ONCE_INIT;

/* Before asking there must be room, so that a job does not wait here for its turn; who comes back from the disk needs none. */
static void enter(fv_crew *crew, bool wait) {
    pthread_mutex_lock(&crew->mutex);
    while (wait && crew->active >= crew->workers) pthread_cond_wait(&crew->room, &crew->mutex);
    crew->active++;
    pthread_mutex_unlock(&crew->mutex);
}

static void leave(fv_crew *crew) {
    pthread_mutex_lock(&crew->mutex);
    bool room = --crew->active < crew->workers;
    pthread_mutex_unlock(&crew->mutex);
    if (room) pthread_cond_signal(&crew->room);
}

/* Between two jobs a thread makes room if others came back from the disk meanwhile, else it goes on without waking anybody. */
static void stay(fv_crew *crew) {
    pthread_mutex_lock(&crew->mutex);
    while (crew->active > crew->workers) {
        crew->active--;
        while (crew->active >= crew->workers) pthread_cond_wait(&crew->room, &crew->mutex);
        crew->active++;
    }
    pthread_mutex_unlock(&crew->mutex);
}

static void take_turn(fv_crew *crew) {
    while (sem_wait(&crew->turns)) {
    }
}

static void lend(void) {
    if (!here.crew) return;
    if (here.computes) sem_post(&here.crew->turns);
    leave(here.crew);
}
static void take_back(void) {
    if (!here.crew) return;
    enter(here.crew, false);
    if (here.computes) take_turn(here.crew);
}

static void come_in(fv_crew *crew) {
    enter(crew, true);
    here.crew = crew;
}
static void go_out(fv_crew *crew) {
    here.crew = NULL;
    leave(crew);
}

static void install_gate(void) { fv__io_hooks(lend, take_back); }

static void run_one(fv_crew *crew, fv_job *job, fv_worker *worker, int number, double since) {
    fv_error        error = { 0 };
    struct timespec now;
    take_turn(crew);
    clock_gettime(CLOCK_REALTIME, &now);
    job->facts.start = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    job->facts.wait = fv__now() - since;
    here.computes = true;
    fv_status status = crew->work.run(crew->work.context, job, worker, number, &error);
    here.computes = false;
    sem_post(&crew->turns);
    crew->work.done(crew->work.context, job, number, status, &error);
}

static void *work(void *argument) {
    thread    *self = argument;
    fv_crew   *crew = self->crew;
    fv_worker *worker = fv__worker_new();
    double     since = fv__now();
    come_in(crew);
    for (fv_offer offer = FV_OFFER_LATER; offer != FV_OFFER_OVER;) {
        fv_job job;
        stay(crew);
        uint64_t seen = crew->work.changes(crew->work.context);
        offer = crew->work.ask(crew->work.context, &job);
        if (offer == FV_OFFER_JOB) {
            run_one(crew, &job, worker, self->number, since);
            since = fv__now();
        } else if (offer == FV_OFFER_LATER) {
            go_out(crew);
            crew->work.wait(crew->work.context, seen);
            come_in(crew);
        }
    }
    go_out(crew);
    fv__worker_free(worker);
    return NULL;
}

int fv__crew_threads(int workers) { return workers + FV_MIN(workers, 2); }

fv_status fv__crew_start(const fv_crew_work *what, int workers, fv_crew **out, fv_error *error) {
    int      count = fv__crew_threads(workers);
    fv_crew *crew = fv__calloc(sizeof *crew + (size_t)count * sizeof *crew->threads);
    crew->work = *what;
    crew->workers = workers;
    sem_init(&crew->turns, 0, (unsigned)workers);
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->room, NULL);
    pthread_once(&gate, install_gate); /* once for all runs of the process: a thread without a turn passes it freely */
    for (; crew->count < count; crew->count++) {
        thread *t = &crew->threads[crew->count];
        *t = (thread){ .crew = crew, .number = crew->count };
        if (pthread_create(&t->id, NULL, work, t)) break;
    }
    *out = crew;
    if (crew->count > 0) return FV_OK;
    fv__crew_join(crew);
    *out = NULL;
    return fv_fail(error, FV_ERROR_IO, "cannot start a thread");
}

void fv__crew_join(fv_crew *crew) {
    for (int i = 0; i < crew->count; i++) pthread_join(crew->threads[i].id, NULL);
    sem_destroy(&crew->turns);
    pthread_mutex_destroy(&crew->mutex);
    pthread_cond_destroy(&crew->room);
    free(crew);
}
