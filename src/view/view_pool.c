/* The threads of a view. */
#include "view/view_pool.h"
#include "base/base.h"
#include "base/session.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MOST_WAITING = 256, MOST_THREADS = 16 };

typedef struct shared { /* of one fv_view_pool_share; helpers that come late find nothing to do */
    atomic_llong next;
    int64_t      count;
    int          helpers; /* that have not left yet */
    void (*work)(void *context, int64_t index);
    void          *context;
    struct shared *other;
} shared;

struct fv_view_pool {
    pthread_mutex_t mutex;
    pthread_cond_t  more, left;
    fv_view_job    *newest, *ahead;
    shared         *open; /* that want help, the newest first */
    int             waiting, nthreads;
    bool            looking_ahead, over;
    pthread_t       threads[MOST_THREADS];
};

static void work_on(shared *s) {
    for (int64_t i; (i = atomic_fetch_add(&s->next, 1)) < s->count;) s->work(s->context, i);
}

static bool wants_help(const shared *s) { return s && atomic_load(&s->next) < s->count; }

/* The mutex is held, and again on return. */
static void help(fv_view_pool *p, shared *s) {
    s->helpers++;
    pthread_mutex_unlock(&p->mutex);
    work_on(s);
    pthread_mutex_lock(&p->mutex);
    if (!--s->helpers) pthread_cond_broadcast(&p->left);
}

static shared *find_open(const fv_view_pool *p) {
    for (shared *s = p->open; s; s = s->other)
        if (wants_help(s)) return s;
    return NULL;
}

static void run_ahead(fv_view_pool *p) {
    fv_view_job *job = p->ahead;
    p->ahead = NULL;
    p->looking_ahead = true;
    pthread_mutex_unlock(&p->mutex);
    job->run(job, false);
    pthread_mutex_lock(&p->mutex);
    p->looking_ahead = false;
}

static void *serve(void *argument) {
    fv_view_pool *p = argument;
    pthread_mutex_lock(&p->mutex);
    while (!p->over) {
        fv_view_job *job = p->newest;
        shared      *s = find_open(p);
        if (s)
            help(p, s);
        else if (job) {
            p->newest = job->next;
            p->waiting--;
            pthread_mutex_unlock(&p->mutex);
            job->run(job, false);
            pthread_mutex_lock(&p->mutex);
        } else if (p->ahead && !p->looking_ahead)
            run_ahead(p);
        else
            pthread_cond_wait(&p->more, &p->mutex);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

fv_view_pool *fv_view_pool_new(int threads) {
    fv_view_pool *p = fv__calloc(sizeof *p);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->more, NULL);
    pthread_cond_init(&p->left, NULL);
    while (p->nthreads < FV_MIN(threads, MOST_THREADS) && !fv__thread_start(&p->threads[p->nthreads], serve, p)) p->nthreads++;
    return p;
}

/* Takes the oldest job off; the mutex is held. */
static fv_view_job *take_oldest(fv_view_pool *p) {
    fv_view_job **place = &p->newest;
    while (*place && (*place)->next) place = &(*place)->next;
    fv_view_job *job = *place;
    *place = NULL;
    if (job) p->waiting--;
    return job;
}

void fv_view_pool_free(fv_view_pool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->mutex);
    p->over = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->mutex);
    for (int i = 0; i < p->nthreads; i++) pthread_join(p->threads[i], NULL);
    for (fv_view_job *job; (job = take_oldest(p));) job->run(job, true);
    if (p->ahead) p->ahead->run(p->ahead, true);
    pthread_mutex_destroy(&p->mutex);
    pthread_cond_destroy(&p->more);
    pthread_cond_destroy(&p->left);
    free(p);
}

void fv_view_pool_give(fv_view_pool *p, fv_view_job *job) {
    pthread_mutex_lock(&p->mutex);
    fv_view_job *dropped = p->waiting == MOST_WAITING ? take_oldest(p) : NULL;
    job->next = p->newest;
    p->newest = job;
    p->waiting++;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->mutex);
    if (dropped) dropped->run(dropped, true);
}

void fv_view_pool_ahead(fv_view_pool *p, fv_view_job *job) {
    pthread_mutex_lock(&p->mutex);
    fv_view_job *dropped = p->ahead;
    p->ahead = job;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->mutex);
    if (dropped) dropped->run(dropped, true);
}

bool fv_view_pool_waits(fv_view_pool *p) {
    pthread_mutex_lock(&p->mutex);
    bool waits = p->newest != NULL;
    pthread_mutex_unlock(&p->mutex);
    return waits;
}

void fv_view_pool_share(fv_view_pool *p, int64_t count, void (*work)(void *context, int64_t index), void *context) {
    shared *s = fv__calloc(sizeof *s);
    s->count = count;
    s->work = work;
    s->context = context;
    pthread_mutex_lock(&p->mutex);
    s->other = p->open;
    p->open = s;
    if (count > 1) pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->mutex);
    work_on(s);
    pthread_mutex_lock(&p->mutex);
    shared **place = &p->open;
    while (*place != s) place = &(*place)->other;
    *place = s->other;
    while (s->helpers) pthread_cond_wait(&p->left, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
    free(s);
}
