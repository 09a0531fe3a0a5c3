/* A thread of each rank that takes part in exchanges, in the order that rank 0 has decided, so that no worker waits in them.
 *
 * Ranks commit what they hold at the same exchanges: each then has its chunks of the same iteration in the store, and a killed
 * solve finds all of it. That happens behind the exchange, while tasks go on; what comes next in the queue waits for it, so that
 * nothing is forgotten that is being committed.
 */
#ifndef FV_EXCHANGER_H
#define FV_EXCHANGER_H

#include "engines/mpi/ranks.h"
#include "exec/exec.h"

typedef struct fv_exchange_order {
    const fv_instance *instance;
    int                stage;
    int32_t           *makers; /* owned; NULL: the stage is to be forgotten */
    bool               commit; /* everything that is held */
    void              *owner;  /* for the caller's own use */
} fv_exchange_order;

typedef struct fv_exchanger_calls {
    /* An order was carried out; what it was about may be used, before it is committed. */
    void (*done)(void *context, const fv_exchange_order *order, fv_status status, const fv_error *error);
    bool (*given_up)(void *context); /* no more exchange can end */
    void *context;
} fv_exchanger_calls;

typedef struct fv_exchanger fv_exchanger;

fv_status fv__exchanger_start(const fv_ranks *ranks, const fv_exchanger_calls *calls, fv_exchanger **exchanger, fv_error *error);
void      fv__exchanger_add(fv_exchanger *exchanger, const fv_exchange_order *order);
/* Waits until nothing is left to do. */
void fv__exchanger_wait(fv_exchanger *exchanger);
/* The same, and ends the thread. NULL: nothing. */
void fv__exchanger_stop(fv_exchanger *exchanger);

#endif
