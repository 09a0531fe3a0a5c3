/* Exchanges, one after the other. */
#include "engines/mpi/exchanger.h"
#include "base/session.h"
#include "exec/allreduce.h"
#include <stdlib.h>

typedef struct waiting {
    struct waiting   *next;
    fv_exchange_order order;
} waiting;

struct fv_exchanger {
    fv_team            team;
    fv_exchanger_calls calls;
    pthread_t          thread;
    pthread_mutex_t    mutex; /* guards what follows */
    pthread_cond_t     changed;
    waiting           *first, **last;
    bool               busy, over;
};

static void carry_out(fv_exchanger *x, fv_exchange_order *order) {
    const fv_instance *instance = order->instance;
    const fv_stage    *stage = &instance->plan->stages[order->stage];
    fv_error           error = { 0 };
    fv_status          status = FV_OK;
    if (order->makers)
        status = fv__stage_exchange(instance, stage, order->makers, &x->team, x->calls.given_up, x->calls.context, &error);
    else
        fv__stage_forget(instance, stage);
    fv_store *store = instance->context->store; /* the instance may go when the order is done */
    x->calls.done(x->calls.context, order, status, &error);
    if (status == FV_OK && order->commit && fv__store_flush(store, &error) != FV_OK)
        fv__log_verbose("fovea: rank %d could not commit an iteration yet: %s", x->team.rank, error.message);
}

static void *run(void *argument) {
    fv_exchanger *x = argument;
    pthread_mutex_lock(&x->mutex);
    for (;;) {
        while (!x->first && !x->over) pthread_cond_wait(&x->changed, &x->mutex);
        waiting *w = x->first;
        if (!w) break;
        x->first = w->next;
        if (!x->first) x->last = &x->first;
        x->busy = true;
        pthread_mutex_unlock(&x->mutex);
        carry_out(x, &w->order);
        free(w->order.makers);
        free(w);
        pthread_mutex_lock(&x->mutex);
        x->busy = false;
        pthread_cond_broadcast(&x->changed);
    }
    pthread_mutex_unlock(&x->mutex);
    return NULL;
}

fv_status fv__exchanger_start(const fv_ranks *ranks, const fv_exchanger_calls *calls, fv_exchanger **exchanger, fv_error *error) {
    fv_exchanger *x = fv__calloc(sizeof *x);
    x->team = (fv_team){ .rank = ranks->rank, .size = ranks->size, .threads = 1, .exchange = { .share = ranks->mpi->share } };
    x->calls = *calls;
    x->last = &x->first;
    pthread_mutex_init(&x->mutex, NULL);
    pthread_cond_init(&x->changed, NULL);
    *exchanger = x;
    if (!fv__thread_start(&x->thread, run, x)) return FV_OK;
    pthread_mutex_destroy(&x->mutex);
    pthread_cond_destroy(&x->changed);
    free(x);
    *exchanger = NULL;
    return fv_fail(error, FV_ERROR_IO, "cannot start a thread");
}

void fv__exchanger_add(fv_exchanger *x, const fv_exchange_order *order) {
    waiting *w = fv__alloc(sizeof *w);
    *w = (waiting){ .order = *order };
    pthread_mutex_lock(&x->mutex);
    *x->last = w;
    x->last = &w->next;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->mutex);
}

void fv__exchanger_wait(fv_exchanger *x) {
    pthread_mutex_lock(&x->mutex);
    while (x->first || x->busy) pthread_cond_wait(&x->changed, &x->mutex);
    pthread_mutex_unlock(&x->mutex);
}

void fv__exchanger_stop(fv_exchanger *x) {
    if (!x) return;
    pthread_mutex_lock(&x->mutex);
    x->over = true;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->mutex);
    pthread_join(x->thread, NULL);
    pthread_mutex_destroy(&x->mutex);
    pthread_cond_destroy(&x->changed);
    free(x);
}
