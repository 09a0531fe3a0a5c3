/* Engine mpi: ranks that mpiexec or srun has started share the tasks, each with threads of its own.
 *
 * Rank 0 works like the others. Beside its workers it has two threads: one gives jobs to the other ranks and hears their answers
 * (it alone speaks MPI, and never touches a file); the other opens items for them and ends stages. Short tasks are sent in
 * advance, so that no rank waits for a letter; long ones are not, so that no rank waits for another's last task.
 *
 * Invariants
 * 1. A ticket is given back exactly once: by the rank that got the job, or never, and then the run has failed.
 * 2. A file gets its name only after every rank that wrote parts of it has said that they are durable.
 * 3. No job is lost (fv__job_lost): a rank that dies ends the run. mpiexec, of MPICH and of Open MPI, then ends all ranks; under
 * srun they may live on, but MPI promises them nothing any more, and what the dead rank held for an exchange is gone. So rank 0
 * says who died at what, and stops; the same command goes on from what was committed.
 */
#include "base/session.h"
#include "engines/mpi/exchanger.h"
#include "engines/mpi/guardian.h"
#include "engines/mpi/ranks.h"
#include "run/wire.h"
#include "run/worker_threads.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define SHORT_NAP 20e-6
#define LONG_NAP 0.2e-3 /* while some rank has nothing to do or its tasks are not known */
#define LONGEST_NAP 3e-3
#define MOST_ADVANCE 1024
#define WORK_AHEAD 10e-3  /* seconds of short tasks that a rank has in advance: other processes may hold up ours for so long */
#define LEAST_TASK 5e-6   /* seconds that any task takes */
#define LONG_TASK 50e-3   /* of such, none */
#define LIVE_IMAGES 8     /* that a solve holds at once, at most: so often must what is exchanged fit into the store's memory */
#define LAST_SECONDS 10.0 /* that tasks have to end after a request to stop */

typedef struct sent {
    fv_job job;
    bool   out;
    int    next; /* free ticket; -1: none */
} sent;

typedef struct other { /* a rank that is not ours */
    int       workers;
    fv_budget budget;
    bool      ready, closed, dead;
    sent     *tickets;               /* room grows with what was in use at once */
    int       out, capacity, unused; /* unused: first free ticket; -1: none */
    double    task_seconds;          /* of a task, smoothed; 0: not known yet */
} other;

typedef struct errand { /* for the thread that may touch files */
    struct errand *next;
    fv_job         job;
    bool           ran; /* by another rank: only to be ended */
    int            worker;
    fv_status      status;
    fv_error       error;
} errand;

typedef struct leader {
    fv_scheduler          *scheduler;
    const fv_run_settings *settings;
    fv_ranks              *ranks;
    other                 *others; /* by rank; 0 is unused */
    pthread_t              helper;
    pthread_mutex_t        mutex; /* guards what follows */
    pthread_cond_t         changed;
    errand                *first, **last;
    int                    errands;                  /* not yet over */
    bool                   threads_over, over, lost; /* lost: a rank */
    uint64_t               syncs_wanted, syncs_asked, syncs_done;
    int                    syncs_left;
    fv_error               sync_error;
    double                 told; /* when the others last heard that we live */
    bool                   stopped;
    fv_exchanger          *exchanger;
    pthread_mutex_t        ordering;  /* held while an order goes to all ranks: all have the same order of orders */
    double                 patience;  /* seconds of a worker that may be uncommitted */
    double                 committed; /* when all ranks last did; guarded by ordering */
} leader;

static void send_kind(const leader *l, int rank, fv_letter_kind kind) {
    l->ranks->mpi->send(rank, &(fv_letter){ kind }, sizeof(fv_letter));
}

static void set(leader *l, bool *flag) {
    pthread_mutex_lock(&l->mutex);
    *flag = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

/* ---------------------------------------------------------------- errands */

static void add_errand(leader *l, const errand *what) {
    errand *e = fv__alloc(sizeof *e);
    *e = *what;
    e->next = NULL;
    pthread_mutex_lock(&l->mutex);
    *l->last = e;
    l->last = &e->next;
    l->errands++;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

static void *run_errands(void *argument) {
    leader    *l = argument;
    fv_worker *worker = fv__worker_new();
    pthread_mutex_lock(&l->mutex);
    for (;;) {
        while (!l->first && !l->over) pthread_cond_wait(&l->changed, &l->mutex);
        errand *e = l->first;
        if (!e) break;
        l->first = e->next;
        if (!l->first) l->last = &l->first;
        pthread_mutex_unlock(&l->mutex);
        if (!e->ran) e->status = fv__job_run(l->scheduler, &e->job, worker, &e->error);
        fv__job_done(l->scheduler, &e->job, e->worker, e->status, &e->error);
        free(e);
        pthread_mutex_lock(&l->mutex);
        l->errands--;
    }
    pthread_mutex_unlock(&l->mutex);
    fv__worker_free(worker);
    return NULL;
}

/* ---------------------------------------------------------------- durable parts */

/* Called by a thread that is about to name a file. */
static fv_status sync_others(void *context, const fv_job *job, fv_error *error) {
    leader *l = context;
    (void)job;
    pthread_mutex_lock(&l->mutex);
    uint64_t mine = ++l->syncs_wanted;
    while (l->syncs_done < mine && !l->lost && l->sync_error.code == FV_OK) pthread_cond_wait(&l->changed, &l->mutex);
    fv_status status = l->sync_error.code;
    if (status != FV_OK)
        *error = l->sync_error;
    else if (l->syncs_done < mine)
        status = fv_fail(error, FV_ERROR_CANCELLED, "stopped; the same command goes on from here");
    pthread_mutex_unlock(&l->mutex);
    return status;
}

/* One round at a time; those who ask meanwhile get the next one. */
static void ask_for_syncs(leader *l) {
    pthread_mutex_lock(&l->mutex);
    bool ask = l->syncs_left == 0 && l->syncs_wanted > l->syncs_asked;
    if (ask) {
        l->syncs_asked = l->syncs_wanted;
        l->syncs_left = l->ranks->size - 1;
    }
    pthread_mutex_unlock(&l->mutex);
    for (int r = 1; ask && r < l->ranks->size; r++) send_kind(l, r, FV_LETTER_SYNC);
}

static void take_synced(leader *l, const fv_letter_ready *synced) {
    pthread_mutex_lock(&l->mutex);
    if (synced->error.code != FV_OK) l->sync_error = synced->error;
    if (--l->syncs_left == 0) l->syncs_done = l->syncs_asked;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

/* ---------------------------------------------------------------- exchanges */

typedef struct promise { /* what the thread that ends a stage waits for; guarded by the leader's mutex */
    bool      kept;
    fv_status status;
    fv_error  error;
} promise;

static void order(leader *l, const fv_exchange_order *own, const fv_stage *stage) {
    fv_letter_exchange what = {
        .item = own->instance->item, .makers = own->makers ? stage->ntasks : 0, .stage = own->stage, .commit = own->commit
    };
    fv_bytes letter = { 0 };
    fv__bytes_append(&letter, &(fv_letter){ FV_LETTER_EXCHANGE }, sizeof(fv_letter));
    fv__bytes_append(&letter, &what, sizeof what);
    if (own->makers) fv__bytes_append(&letter, own->makers, (size_t)stage->ntasks * sizeof *own->makers);
    for (int r = 1; r < l->ranks->size; r++) l->ranks->mpi->send(r, letter.data, letter.size);
    fv__bytes_release(&letter);
    if (own->makers) fv__exchanger_add(l->exchanger, own);
}

/* Called by the thread that ends a stage. */
static fv_status exchange(void *context, const fv_job *job, const int32_t *makers, fv_error *error) {
    leader           *l = context;
    const fv_stage   *stage = &job->instance->plan->stages[job->stage];
    size_t            size = (size_t)stage->ntasks * sizeof *makers;
    promise           p = { 0 };
    fv_exchange_order own = { .instance = job->instance, .stage = job->stage, .makers = fv__alloc(size), .owner = &p };
    memcpy(own.makers, makers, size);
    pthread_mutex_lock(&l->ordering);
    own.commit = fv__now() - l->committed > l->patience / 2;
    if (own.commit) l->committed = fv__now();
    order(l, &own, stage);
    pthread_mutex_unlock(&l->ordering);
    pthread_mutex_lock(&l->mutex);
    while (!p.kept) pthread_cond_wait(&l->changed, &l->mutex);
    pthread_mutex_unlock(&l->mutex);
    if (p.status != FV_OK) *error = p.error;
    return p.status;
}

static void exchanged(void *context, const fv_exchange_order *own, fv_status status, const fv_error *error) {
    leader  *l = context;
    promise *p = own->owner;
    pthread_mutex_lock(&l->mutex);
    *p = (promise){ true, status, *error };
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

static bool given_up(void *context) {
    leader *l = context;
    pthread_mutex_lock(&l->mutex);
    bool lost = l->lost;
    pthread_mutex_unlock(&l->mutex);
    return lost;
}

/* Not while a commit goes on, which would come to nothing where it is forgotten before. */
static void forget(void *context, const fv_instance *instance, const fv_stage *stage) {
    leader           *l = context;
    fv_exchange_order own = { .instance = instance, .stage = stage->index };
    pthread_mutex_lock(&l->ordering);
    order(l, &own, stage);
    pthread_mutex_unlock(&l->ordering);
    fv__exchanger_wait(l->exchanger);
    fv__stage_forget(instance, stage);
}

/* ---------------------------------------------------------------- giving jobs */

static int64_t new_ticket(other *o, const fv_job *job) {
    if (o->unused < 0) {
        int first = o->capacity;
        o->capacity = FV_MAX(2 * first, 16);
        o->tickets = fv__realloc(o->tickets, (size_t)o->capacity * sizeof *o->tickets);
        for (int i = first; i < o->capacity; i++) o->tickets[i] = (sent){ .next = i + 1 < o->capacity ? i + 1 : -1 };
        o->unused = first;
    }
    int at = o->unused;
    o->unused = o->tickets[at].next;
    o->tickets[at] = (sent){ .job = *job, .out = true };
    o->out++;
    return at;
}

static void add_job(fv_bytes *letter, other *o, fv_job *job, int64_t *item) {
    if (!letter->size) fv__bytes_append(letter, &(fv_letter){ FV_LETTER_JOBS }, sizeof(fv_letter));
    job->ticket = new_ticket(o, job);
    fv__wire_put_job(letter, job, *item != job->instance->item);
    *item = job->instance->item;
}

static int wanted(const other *o) {
    double t = o->task_seconds;
    return o->workers + (t <= 0 || t > LONG_TASK ? 0 : (int)FV_MIN(1 + WORK_AHEAD / t, MOST_ADVANCE));
}

/* False: the run is over for this rank. */
static bool give_jobs(leader *l, int rank, bool *gave) {
    other   *o = &l->others[rank];
    fv_bytes letter = { 0 };
    int64_t  item = -1;
    fv_offer offer = FV_OFFER_LATER;
    fv_job   job;
    while (o->out < wanted(o) && (offer = fv__job_next(l->scheduler, rank, o->out >= o->workers, &job)) == FV_OFFER_JOB) {
        if (job.kind == FV_JOB_OPEN)
            add_errand(l, &(errand){ .job = job });
        else
            add_job(&letter, o, &job, &item);
        *gave = true;
    }
    if (letter.size) l->ranks->mpi->send(rank, letter.data, letter.size);
    fv__bytes_release(&letter);
    return offer != FV_OFFER_OVER;
}

/* ---------------------------------------------------------------- hearing answers */

static void take_done(leader *l, int rank, const uint8_t *at, const uint8_t *end) {
    other         *o = &l->others[rank];
    fv_wire_answer done;
    while (fv__wire_take_answer(&at, end, &done)) {
        errand e = { .job = o->tickets[done.ticket].job, .ran = true, .status = (fv_status)done.status, .error = done.error };
        o->tickets[done.ticket] = (sent){ .next = o->unused };
        o->unused = (int)done.ticket;
        o->out--;
        e.job.facts = done.facts;
        e.worker = rank * fv__worker_threads_threads(l->others[rank].workers) + done.worker;
        double seconds = FV_MAX(done.facts.read + done.facts.compute + done.facts.write, LEAST_TASK);
        if (e.job.kind == FV_JOB_TASK) o->task_seconds = o->task_seconds > 0 ? 0.8 * o->task_seconds + 0.2 * seconds : seconds;
        if (e.job.kind == FV_JOB_END)
            add_errand(l, &e); /* names files */
        else
            fv__job_done(l->scheduler, &e.job, e.worker, e.status, &e.error);
    }
}

static bool hear(leader *l) {
    int      from;
    size_t   size;
    uint8_t *letter = l->ranks->mpi->receive(&from, &size);
    if (!letter) return false;
    const uint8_t  *at = letter + sizeof(fv_letter);
    other          *o = &l->others[from];
    fv_letter_ready ready;
    if (size >= sizeof(fv_letter) + sizeof ready) memcpy(&ready, at, sizeof ready);
    switch ((fv_letter_kind)((fv_letter *)(void *)letter)->kind) {
    case FV_LETTER_DONE: take_done(l, from, at, letter + size); break;
    case FV_LETTER_SYNCED: take_synced(l, &ready); break;
    case FV_LETTER_READY:
        o->ready = true;
        o->workers = ready.workers;
        o->budget = ready.budget;
        if (ready.error.code != FV_OK) fv__scheduler_stop(l->scheduler, ready.error.code, &ready.error);
        break;
    case FV_LETTER_FAILED:
        fv__scheduler_stop(l->scheduler, ready.error.code, &ready.error);
        l->ranks->broken = true;
        set(l, &l->lost);
        break;
    case FV_LETTER_CLOSED:
        o->closed = true;
        if (ready.error.code != FV_OK) fv__scheduler_stop(l->scheduler, ready.error.code, &ready.error);
        break;
    default: break;
    }
    free(letter);
    return true;
}

/* ---------------------------------------------------------------- ranks that die */

static void lose(leader *l, int rank) {
    other   *o = &l->others[rank];
    char     what[200] = "while it had no task";
    fv_error error = { 0 };
    o->dead = l->ranks->broken = true;
    for (int i = 0; i < o->capacity; i++)
        if (o->tickets[i].out) {
            int n = snprintf(what, sizeof what, "at ");
            fv__job_describe(&o->tickets[i].job, what + n, sizeof what - (size_t)n);
            break;
        }
    fv_fail(&error, FV_ERROR_IO,
            "rank %d on %s died %s; the same command, with any number of ranks or with threads, goes on from there", rank,
            l->ranks->all[rank].host, what);
    error.rank = rank;
    fv__scheduler_stop(l->scheduler, FV_ERROR_IO, &error); /* first, so that this is what is told */
    set(l, &l->lost);
}

static void stop_if_asked(leader *l) {
    fv_error error = { 0 };
    if (l->stopped || !fv__guardian_asked_to_stop()) return;
    l->stopped = true;
    fv_fail(&error, FV_ERROR_CANCELLED, "stopped; the same command goes on from here");
    if (l->settings->options.cancel) *l->settings->options.cancel = 1; /* long tasks end early */
    fv__scheduler_stop(l->scheduler, FV_ERROR_CANCELLED, &error);
}

static void look_around(leader *l) {
    double now = fv__now();
    stop_if_asked(l);
    if (now - l->told < 1) return;
    l->told = now;
    for (int r = 1; r < l->ranks->size; r++) {
        if (l->others[r].dead || l->others[r].closed) continue;
        if (fv__rank_dead(l->ranks, r))
            lose(l, r);
        else
            send_kind(l, r, FV_LETTER_PING);
    }
}

/* Long enough to cost nothing, short enough that a rank that waits for a job loses little of its time. Ranks with short tasks
 * have enough in advance to wait for a while. */
static double longest_nap(const leader *l) {
    double longest = LONGEST_NAP;
    for (int r = 1; r < l->ranks->size; r++) {
        const other *o = &l->others[r];
        double       t = o->task_seconds, own = t > LONG_TASK ? 0.02 * t : 0.1 * WORK_AHEAD;
        longest = FV_MIN(longest, t <= 0 || o->out < o->workers ? LONG_NAP : own);
    }
    return longest;
}

static void nap(const leader *l, double *pause) {
    double longest = longest_nap(l);
    if (longest > LONG_NAP) *pause = longest; /* everybody is busy */
    nanosleep(&(struct timespec){ 0, (long)(*pause * 1e9) }, NULL);
    *pause = FV_MIN(1.5 * *pause, longest);
}

/* ---------------------------------------------------------------- a run */

static fv_status begin(leader *l, const char *run_folder, int64_t memory, fv_error *error) {
    fv_letter_begin b = { .memory = memory,
                          .patience = l->patience,
                          .workers = l->settings->ranks_workers,
                          .poison = l->settings->options.poison - 1 };
    fv_bytes        letter = { 0 };
    fv__bytes_append(&letter, &(fv_letter){ FV_LETTER_BEGIN }, sizeof(fv_letter));
    fv__bytes_append(&letter, &b, sizeof b);
    fv__bytes_append(&letter, run_folder, strlen(run_folder) + 1);
    for (int r = 1; r < l->ranks->size; r++) l->ranks->mpi->send(r, letter.data, letter.size);
    fv__bytes_release(&letter);
    double pause = SHORT_NAP;
    for (int r = 1; r < l->ranks->size;) {
        if (!hear(l)) nap(l, &pause);
        look_around(l);
        if (l->others[r].dead || l->others[r].ready) r++;
    }
    return fv__scheduler_status(l->scheduler, error);
}

/* Gives and hears until nothing is left. */
static void serve(leader *l) {
    double pause = SHORT_NAP;
    for (bool going = true; going;) {
        bool moved = false, errands;
        while (hear(l)) moved = true;
        going = false;
        for (int r = 1; r < l->ranks->size; r++) {
            if (l->others[r].dead) continue;
            bool gave = false;
            going = give_jobs(l, r, &gave) || going;
            moved = moved || gave;
        }
        for (int r = 1; r < l->ranks->size; r++) going = going || (l->others[r].out > 0 && !l->ranks->broken);
        pthread_mutex_lock(&l->mutex);
        errands = l->errands > 0;
        pthread_mutex_unlock(&l->mutex);
        going = going || errands;
        ask_for_syncs(l);
        look_around(l);
        if (moved)
            pause = SHORT_NAP;
        else if (going)
            nap(l, &pause);
    }
}

/* Rank 0's own workers may still be busy, and name files: others must be there to sync theirs. */
static void *serve_thread(void *argument) {
    leader *l = argument;
    prctl(PR_SET_TIMERSLACK, 1000UL); /* short naps are short */
    serve(l);
    double pause = SHORT_NAP;
    pthread_mutex_lock(&l->mutex);
    while (!l->threads_over) {
        pthread_mutex_unlock(&l->mutex);
        if (!hear(l)) nap(l, &pause);
        ask_for_syncs(l);
        look_around(l);
        pthread_mutex_lock(&l->mutex);
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

static void close_others(leader *l) {
    double pause = SHORT_NAP, asked = fv__now();
    for (int r = 1; r < l->ranks->size; r++)
        if (!l->others[r].dead) send_kind(l, r, FV_LETTER_OVER);
    for (int r = 1; r < l->ranks->size;) {
        if (!hear(l)) nap(l, &pause);
        look_around(l);
        if (fv__scheduler_status(l->scheduler, NULL) != FV_OK && fv__now() - asked > LAST_SECONDS) l->ranks->broken = true;
        if (l->others[r].closed || l->others[r].dead || l->ranks->broken) r++;
    }
}

static fv_offer ask(void *context, fv_job *job) { return fv__job_next(((leader *)context)->scheduler, 0, false, job); }
static uint64_t changes(void *context) { return fv__scheduler_changes(((leader *)context)->scheduler); }
static void     wait_for_change(void *context, uint64_t seen) { fv__scheduler_wait(((leader *)context)->scheduler, seen, 0.2); }

static fv_status run_job(void *context, fv_job *job, fv_worker *worker, int number, fv_error *error) {
    leader *l = context;
    if (job->kind != FV_JOB_OPEN) fv__guardian_note(number, job);
    fv_status status = fv__job_run(l->scheduler, job, worker, error);
    if (job->kind != FV_JOB_OPEN) fv__guardian_note(number, NULL);
    return status;
}

static void done(void *context, fv_job *job, int number, fv_status status, const fv_error *error) {
    fv__job_done(((leader *)context)->scheduler, job, number, status, error);
}

static fv_status work(leader *l, fv_error *error) {
    fv_thread_work what = { .ask = ask, .changes = changes, .wait = wait_for_change, .run = run_job, .done = done, .context = l };
    fv_worker_threads *threads;
    pthread_t          server;
    if (fv__thread_start(&l->helper, run_errands, l)) return fv_fail(error, FV_ERROR_IO, "cannot start a thread");
    bool      served = !fv__thread_start(&server, serve_thread, l);
    fv_status status = served ? fv__worker_threads_start(&what, l->settings->options.workers, &threads, error)
                              : fv_fail(error, FV_ERROR_IO, "cannot start a thread");
    if (status == FV_OK)
        fv__worker_threads_join(threads);
    else
        fv__scheduler_stop(l->scheduler, status, error);
    set(l, &l->threads_over);
    if (served) pthread_join(server, NULL); /* after the last errand */
    set(l, &l->over);
    pthread_join(l->helper, NULL);
    return status;
}

/* Of one rank alone nothing has to be exchanged, and of more only what fits into the memory of all of them. */
static fv_status open_places(leader *l, fv_error *error) {
    int                n = l->ranks->size;
    fv_exchanger_calls calls = { .done = exchanged, .given_up = given_up, .context = l };
    fv_place          *places = fv__calloc((size_t)n * sizeof *places);
    int64_t            most = l->settings->budget.store;
    places[0] = (fv_place){ l->settings->options.workers, l->settings->budget };
    for (int r = 1; r < n; r++) {
        places[r] = (fv_place){ l->others[r].workers, l->others[r].budget };
        most = FV_MIN(most, l->others[r].budget.store);
    }
    fv__scheduler_places(l->scheduler, places, n, n > 1 ? most / LIVE_IMAGES : 0, l);
    free(places);
    return n > 1 ? fv__exchanger_start(l->ranks, &calls, &l->exchanger, error) : FV_OK;
}

static fv_status run(fv_scheduler *scheduler, const fv_run_settings *settings, const char *run_folder, fv_error *error) {
    fv_ranks *ranks = fv__ranks_joined();
    leader    l = { .scheduler = scheduler,
                    .settings = settings,
                    .ranks = ranks,
                    .committed = fv__now(),
                    .patience = settings->options.patience };
    l.others = fv__calloc((size_t)ranks->size * sizeof *l.others);
    for (int r = 0; r < ranks->size; r++) l.others[r].unused = -1;
    l.last = &l.first;
    pthread_mutex_init(&l.mutex, NULL);
    pthread_mutex_init(&l.ordering, NULL);
    pthread_cond_init(&l.changed, NULL);
    fv_status status = begin(&l, run_folder, settings->options.memory, error);
    if (status == FV_OK) status = open_places(&l, error);
    if (status == FV_OK) status = work(&l, error);
    fv__exchanger_stop(l.exchanger);
    close_others(&l);
    for (int r = 1; r < ranks->size; r++) free(l.others[r].tickets);
    free(l.others);
    pthread_mutex_destroy(&l.mutex);
    pthread_mutex_destroy(&l.ordering);
    pthread_cond_destroy(&l.changed);
    return status == FV_OK ? fv__scheduler_status(scheduler, error) : status;
}

static fv_status prepare(fv_run_settings *settings, fv_error *error) {
    const fv_ranks *ranks = fv__ranks_joined();
    if (!ranks) return fv_fail(error, FV_ERROR_USAGE, "--engine mpi: start it with mpiexec -n 4 fovea ..., or with srun");
    if (ranks->rank) return fv_fail(error, FV_ERROR_USAGE, "rank %d cannot run a pipeline, only rank 0 can", ranks->rank);
    settings->options.ranks = ranks->local;
    settings->ranks_workers = settings->options.workers;
    if (settings->options.workers <= 0) settings->options.workers = ranks->workers;
    return FV_OK;
}

static bool launched(void) { return fv__ranks_joined() != NULL; }

const fv_engine fv_engine_mpi = {
    .name = "mpi",
    .brief = "ranks that mpiexec or srun has started, with threads each",
    .shared = true,
    .ranks = true,
    .prepare = prepare,
    .launched = launched,
    .run = run,
    .sync = sync_others,
    .exchange = exchange,
    .forget = forget,
};
