/* What rank 1 and above do: jobs that rank 0 sends, by threads of this process, with a store of their own in the run's folder.
 *
 * The main thread hears letters and sends answers. Workers take jobs from a queue and leave answers; a job waits in the queue
 * only if rank 0 sends some in advance. Parts of files are synced by a thread of their own, which says so itself when they are,
 * so that nobody waits for the disk.
 */
#include "base/session.h"
#include "engines/mpi/exchanger.h"
#include "engines/mpi/guardian.h"
#include "engines/mpi/ranks.h"
#include "run/manifest.h"
#include "run/wire.h"
#include "run/worker_threads.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SHORT_NAP 20e-6
#define HUNGRY_NAP 0.2e-3 /* while a worker waits for a job */
#define BUSY_NAP 3e-3     /* less than the work that a rank has in advance */
#define IDLE_NAP 10e-3

typedef struct open_item {
    struct open_item *next; /* most recently used first */
    fv_instance      *instance;
    int               users;
} open_item;

typedef struct waiting {
    struct waiting *next;
    fv_wire_job     letter;
    fv_bytes        outputs;
    int64_t         after; /* so many exchanges */
} waiting;

typedef struct follower {
    fv_ranks       *ranks;
    fv_context      context;
    fv_bindings     bindings;
    fv_program     *program;
    int             workers;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t  jobs_came, changed;
    waiting        *first, **last;
    int             nwaiting;
    fv_bytes        answers; /* for rank 0 */
    int64_t         buffers; /* bytes that they may take */
    bool            urgent;  /* it should have them now */
    bool            over, sync_wanted, sync_over;
    int             running;
    open_item      *items;
    int             nitems;
    uint64_t        changes;
    fv_exchanger   *exchanger;
    int64_t         ordered, exchanged; /* exchanges heard of and made: jobs that came after one wait for it */
} follower;

/* ---------------------------------------------------------------- items */

/* Mutex held. Closes items that nobody has used for long. */
static void close_old(follower *f) {
    int most = 8 + 2 * f->workers;
    for (open_item **i = &f->items; *i && f->nitems > most;) {
        open_item *item = *i;
        bool       last = true;
        for (open_item *j = item->next; j; j = j->next) last = last && j->users > 0;
        if (item->users || !last) {
            i = &item->next;
            continue;
        }
        *i = item->next;
        f->nitems--;
        fv__instance_close(item->instance);
        free(item);
        i = &f->items;
    }
}

/* Mutex held. What is found becomes the first, as the one used last. */
static open_item *find_item(follower *f, int64_t number) {
    for (open_item **i = &f->items; *i; i = &(*i)->next)
        if ((*i)->instance->item == number) {
            open_item *item = *i;
            *i = item->next;
            item->next = f->items;
            return f->items = item;
        }
    return NULL;
}

/* Mutex held. */
static fv_status use_item(follower *f, int64_t number, const fv_bytes *outputs, open_item **out, fv_error *error) {
    open_item *item = find_item(f, number);
    if (!item) {
        fv_diagnostics diagnostics = { 0 };
        fv_instance   *instance;
        fv_status      status = fv__instance_open(&f->context, number, &instance, &diagnostics, error);
        fv__diagnostics_release(&diagnostics);
        if (status != FV_OK) return status;
        item = fv__calloc(sizeof *item);
        *item = (open_item){ .next = f->items, .instance = instance };
        f->items = item;
        f->nitems++;
        close_old(f);
    }
    FV_TRY(fv__wire_follow(item->instance, outputs->data, outputs->size, NULL, error));
    item->users++;
    *out = item;
    return FV_OK;
}

/* ---------------------------------------------------------------- jobs */

static void answer(follower *f, const fv_job *job, fv_status status, int worker, const fv_error *error) {
    pthread_mutex_lock(&f->mutex);
    if (!f->answers.size) fv__bytes_append(&f->answers, &(fv_letter){ FV_LETTER_DONE }, sizeof(fv_letter));
    fv__wire_put_answer(&f->answers, job, worker, status, error);
    /* While there is enough to do, answers may wait for others: a letter each would cost more than short tasks. */
    f->urgent = f->urgent || status != FV_OK || f->nwaiting <= f->workers;
    if (f->urgent) pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->mutex);
}

static uint64_t changes(void *context) {
    follower *f = context;
    pthread_mutex_lock(&f->mutex);
    uint64_t seen = f->changes;
    pthread_mutex_unlock(&f->mutex);
    return seen;
}

static void wait_for_jobs(void *context, uint64_t seen) {
    follower *f = context;
    pthread_mutex_lock(&f->mutex);
    while (f->changes == seen) pthread_cond_wait(&f->jobs_came, &f->mutex);
    pthread_mutex_unlock(&f->mutex);
}

static void take_back(follower *f, open_item *item) {
    pthread_mutex_lock(&f->mutex);
    item->users--;
    f->running--;
    pthread_mutex_unlock(&f->mutex);
}

static fv_offer ask(void *context, fv_job *job) {
    follower *f = context;
    fv_error  error = { 0 };
    pthread_mutex_lock(&f->mutex);
    waiting *first = f->over ? NULL : f->first;
    if (!first || first->after > f->exchanged) {
        fv_offer offer = f->over ? FV_OFFER_OVER : FV_OFFER_LATER;
        pthread_mutex_unlock(&f->mutex);
        return offer;
    }
    f->first = first->next;
    f->nwaiting--;
    if (!f->first) f->last = &f->first;
    *job = (fv_job){ .kind = (fv_job_kind)first->letter.kind,
                     .stage = first->letter.stage,
                     .task = first->letter.task,
                     .ticket = first->letter.ticket,
                     .held = first->letter.held };
    open_item *item = NULL;
    fv_status  status = use_item(f, first->letter.item, &first->outputs, &item, &error);
    if (status == FV_OK) {
        f->running++;
        job->instance = item->instance;
        job->item = (struct fv_item *)(void *)item; /* only ours to look into */
    }
    pthread_mutex_unlock(&f->mutex);
    fv__bytes_release(&first->outputs);
    free(first);
    if (status == FV_OK) return FV_OFFER_JOB;
    answer(f, job, status, 0, &error);
    return ask(context, job);
}

static fv_status run_job(void *context, fv_job *job, fv_worker *worker, int number, fv_error *error) {
    (void)context;
    fv__guardian_note(number, job);
    fv_status status = fv__job_run(NULL, job, worker, error);
    fv__guardian_note(number, NULL);
    return status;
}

static void done(void *context, fv_job *job, int number, fv_status status, const fv_error *error) {
    answer(context, job, status, number, error);
    take_back(context, (open_item *)(void *)job->item);
}

/* ---------------------------------------------------------------- letters */

static void take_jobs(follower *f, const uint8_t *at, const uint8_t *end) {
    pthread_mutex_lock(&f->mutex);
    const uint8_t *outputs;
    for (fv_wire_job letter; fv__wire_take_job(&at, end, &letter, &outputs);) {
        waiting *w = fv__calloc(sizeof *w);
        w->letter = letter;
        if (letter.outputs) fv__bytes_append(&w->outputs, outputs, (size_t)letter.outputs);
        w->after = f->ordered;
        *f->last = w;
        f->last = &w->next;
        f->nwaiting++;
    }
    f->changes++;
    pthread_cond_broadcast(&f->jobs_came);
    pthread_mutex_unlock(&f->mutex);
}

static void finish_jobs(follower *f) {
    pthread_mutex_lock(&f->mutex);
    f->over = true;
    f->changes++;
    pthread_cond_broadcast(&f->jobs_came);
    pthread_mutex_unlock(&f->mutex);
}

static void send_answers(follower *f) {
    pthread_mutex_lock(&f->mutex);
    fv_bytes answers = f->answers;
    f->answers = (fv_bytes){ 0 };
    f->urgent = false;
    pthread_mutex_unlock(&f->mutex);
    if (answers.size) f->ranks->mpi->send(0, answers.data, answers.size);
    fv__bytes_release(&answers);
}

static void tell(const fv_ranks *ranks, fv_letter_kind kind, const fv_letter_ready *ready) {
    struct {
        fv_letter       letter;
        fv_letter_ready ready;
    } whole = { { kind }, *ready };
    ranks->mpi->send(0, &whole, sizeof whole);
}

/* ---------------------------------------------------------------- exchanges */

static void fail_exchange(const follower *f, const fv_error *cause) {
    fv_letter_ready ready = { 0 };
    fv_fail(&ready.error, cause->code, "rank %d on %s: %.300s", f->ranks->rank, fv__host_self()->name, cause->message);
    ready.error.rank = f->ranks->rank;
    tell(f->ranks, FV_LETTER_FAILED, &ready);
}

static void take_order(follower *f, const uint8_t *at) {
    fv_letter_exchange letter;
    fv_error           error = { 0 };
    open_item         *item;
    memcpy(&letter, at, sizeof letter);
    pthread_mutex_lock(&f->mutex);
    f->ordered += letter.makers > 0;
    fv_status status = use_item(f, letter.item, &(fv_bytes){ 0 }, &item, &error);
    pthread_mutex_unlock(&f->mutex);
    if (status != FV_OK) {
        fail_exchange(f, &error);
        return;
    }
    fv_exchange_order order = { .instance = item->instance, .stage = letter.stage, .commit = letter.commit, .owner = item };
    size_t            size = (size_t)letter.makers * sizeof *order.makers;
    if (letter.makers) order.makers = memcpy(fv__alloc(size), at + sizeof letter, size);
    fv__exchanger_add(f->exchanger, &order);
}

/* If it failed, no job passes that needs what did not come; rank 0 knows why, and ends the run. */
static void exchanged(void *context, const fv_exchange_order *order, fv_status status, const fv_error *error) {
    follower *f = context;
    (void)error;
    pthread_mutex_lock(&f->mutex);
    ((open_item *)order->owner)->users--;
    f->exchanged += status == FV_OK && order->makers;
    f->changes++;
    pthread_cond_broadcast(&f->jobs_came);
    pthread_mutex_unlock(&f->mutex);
}

static bool given_up(void *context) {
    follower *f = context;
    pthread_mutex_lock(&f->mutex);
    bool over = f->over;
    pthread_mutex_unlock(&f->mutex);
    return over;
}

/* Sleeps until an answer must be sent, or the time is over. */
static void nap(follower *f, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(seconds * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&f->mutex);
    if (!f->urgent) pthread_cond_timedwait(&f->changed, &f->mutex, &until);
    pthread_mutex_unlock(&f->mutex);
}

static void *sync_files(void *argument) {
    follower *f = argument;
    pthread_mutex_lock(&f->mutex);
    for (;;) {
        while (!f->sync_wanted && !f->sync_over) pthread_cond_wait(&f->jobs_came, &f->mutex);
        if (!f->sync_wanted) break;
        f->sync_wanted = false;
        pthread_mutex_unlock(&f->mutex);
        fv_letter_ready ready = { 0 };
        if (fv__output_list_sync(f->context.written, &ready.error) == FV_OK) ready.error.code = FV_OK;
        tell(f->ranks, FV_LETTER_SYNCED, &ready);
        pthread_mutex_lock(&f->mutex);
    }
    pthread_mutex_unlock(&f->mutex);
    return NULL;
}

static void want_sync(follower *f, bool over) {
    pthread_mutex_lock(&f->mutex);
    f->sync_wanted = f->sync_wanted || !over;
    f->sync_over = over;
    pthread_cond_broadcast(&f->jobs_came);
    pthread_mutex_unlock(&f->mutex);
}

/* ---------------------------------------------------------------- a run */

static void leave_now(follower *f) {
    if (f && f->context.store) fv__store_flush(f->context.store, NULL);
    _exit(1);
}

static bool hungry(follower *f) {
    pthread_mutex_lock(&f->mutex);
    bool waits = f->running < f->workers;
    pthread_mutex_unlock(&f->mutex);
    return waits;
}

static void serve(follower *f) {
    double pause = SHORT_NAP, heard = fv__now(), looked = heard;
    for (bool over = false; !over;) {
        size_t   size;
        int      from;
        uint8_t *letter = f->ranks->mpi->receive(&from, &size);
        if (letter) {
            fv_letter_kind kind = (fv_letter_kind)((fv_letter *)(void *)letter)->kind;
            if (kind == FV_LETTER_JOBS) take_jobs(f, letter + sizeof(fv_letter), letter + size);
            if (kind == FV_LETTER_SYNC) want_sync(f, false);
            if (kind == FV_LETTER_EXCHANGE) take_order(f, letter + sizeof(fv_letter));
            over = kind == FV_LETTER_OVER;
            free(letter);
            heard = fv__now();
            pause = SHORT_NAP;
        } else {
            bool waits = hungry(f);
            nap(f, waits ? pause : BUSY_NAP);
            pause = waits ? FV_MIN(1.5 * pause, HUNGRY_NAP) : SHORT_NAP;
        }
        send_answers(f);
        double now = fv__now();
        if (now - looked < 0.2) continue;
        looked = now;
        if (fv__guardian_asked_to_stop() || fv__rank_dead(f->ranks, 0) || now - heard > 60) leave_now(f);
    }
}

static fv_status open_run(follower *f, const fv_letter_begin *begin, const char *run_folder, fv_letter_ready *ready,
                          fv_error *error) {
    char      name[128];
    fv_status status = fv__manifest_load(run_folder, &f->program, &f->bindings, &f->context.plan_options, error);
    if (status != FV_OK) {
        fv_error cause = *error;
        return fv_fail(error, status, "rank %d on %s: %.300s (all ranks need one file system)", f->ranks->rank,
                       fv__host_self()->name, cause.message);
    }
    f->workers = begin->workers > 0 ? begin->workers : f->ranks->workers;
    f->context.program = f->program;
    f->context.bindings = &f->bindings;
    f->context.poison = begin->poison;
    f->context.run_folder = fv__arena_strdup(&f->bindings.arena, run_folder);
    ready->workers = f->workers;
    fv_sharers sharers = { .ranks = f->ranks->local, .driver = fv__budget_driver(&f->bindings) };
    ready->budget = fv__budget_divide(begin->memory, &sharers);
    f->buffers = ready->budget.buffers;
    fv__buffer_allow(f->buffers);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, sizeof name, "%.40s-%d-%llx", fv__host_self()->name, (int)getpid(),
             (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
    char            *folder = fv__sprintf("%s/../../store", run_folder);
    fv_store_options options = {
        .folder = folder, .writer = name, .memory = ready->budget.store, .patience = begin->patience * f->workers, .shared = true
    };
    f->context.written = fv__output_list_new();
    status = fv__store_open(&options, &f->context.store, error);
    if (status == FV_OK) fv__store_on_flush(f->context.store, fv__output_list_sync, f->context.written);
    free(folder);
    return status;
}

static void work(follower *f, fv_letter_ready *ready) {
    fv_thread_work what = { .ask = ask, .changes = changes, .wait = wait_for_jobs, .run = run_job, .done = done, .context = f };
    fv_worker_threads *threads;
    pthread_t          syncer;
    bool               started = !fv__thread_start(&syncer, sync_files, f);
    fv_exchanger_calls calls = { .done = exchanged, .given_up = given_up, .context = f };
    fv_status          status = started ? fv__exchanger_start(f->ranks, &calls, &f->exchanger, &ready->error)
                                        : fv_fail(&ready->error, FV_ERROR_IO, "cannot start a thread");
    if (status == FV_OK) status = fv__worker_threads_start(&what, f->workers, &threads, &ready->error);
    tell(f->ranks, FV_LETTER_READY, ready);
    serve(f);
    finish_jobs(f);
    if (status == FV_OK) fv__worker_threads_join(threads);
    fv__exchanger_stop(f->exchanger);
    want_sync(f, true);
    if (started) pthread_join(syncer, NULL);
    send_answers(f);
}

static void close_run(follower *f) {
    while (f->items) {
        open_item *item = f->items;
        f->items = item->next;
        fv__instance_close(item->instance);
        free(item);
    }
    while (f->first) {
        waiting *w = f->first;
        f->first = w->next;
        fv__bytes_release(&w->outputs);
        free(w);
    }
    if (f->context.store) fv__store_close(f->context.store);
    fv__output_list_free(f->context.written);
    fv__program_free(f->program);
    fv__bindings_release(&f->bindings);
    fv__bytes_release(&f->answers);
    pthread_mutex_destroy(&f->mutex);
    pthread_cond_destroy(&f->jobs_came);
    pthread_cond_destroy(&f->changed);
    fv__buffer_allow(-f->buffers);
    fv__buffer_trim();
}

static void follow_run(fv_ranks *ranks, const fv_letter_begin *begin, const char *run_folder) {
    follower           f = { .ranks = ranks };
    fv_letter_ready    ready = { 0 }, closed = { 0 };
    pthread_condattr_t attributes;
    f.last = &f.first;
    pthread_mutex_init(&f.mutex, NULL);
    pthread_cond_init(&f.jobs_came, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&f.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (open_run(&f, begin, run_folder, &ready, &ready.error) == FV_OK) {
        work(&f, &ready);
        if (fv__store_flush(f.context.store, &closed.error) == FV_OK) closed.error.code = FV_OK;
    } else {
        tell(ranks, FV_LETTER_READY, &ready);
        serve(&f);
    }
    close_run(&f);
    tell(ranks, FV_LETTER_CLOSED, &closed);
}

int fv__follow(fv_ranks *ranks) {
    double looked = fv__now(), pause = 1e-4;
    signal(SIGINT, SIG_IGN); /* rank 0 decides when to stop */
    signal(SIGTERM, SIG_IGN);
    for (;;) {
        size_t   size;
        int      from;
        uint8_t *letter = ranks->mpi->receive(&from, &size);
        if (!letter) {
            nanosleep(&(struct timespec){ 0, (long)(pause * 1e9) }, NULL);
            pause = FV_MIN(1.2 * pause, IDLE_NAP);
            if (fv__now() - looked > 0.5) {
                looked = fv__now();
                if (fv__guardian_asked_to_stop() || fv__rank_dead(ranks, 0)) leave_now(NULL);
            }
            continue;
        }
        fv_letter_kind kind = (fv_letter_kind)((fv_letter *)(void *)letter)->kind;
        if (kind == FV_LETTER_BEGIN) {
            fv_letter_begin begin;
            memcpy(&begin, letter + sizeof(fv_letter), sizeof begin);
            follow_run(ranks, &begin, (char *)letter + sizeof(fv_letter) + sizeof begin);
        }
        free(letter);
        pause = 1e-4;
        if (kind == FV_LETTER_BYE) return 0;
    }
}
