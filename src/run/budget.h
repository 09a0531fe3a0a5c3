/* How the memory of a run is divided. Nothing else divides --memory: plans, engines, jobs and estimates ask here, so that what
 * one of them names is what another keeps to, to the byte.
 *
 *     memory of the host = what ranks have in common + ranks x (own + store + tasks)
 *
 * own is for programs and libraries, a quarter of the rest for what is stored on the way, the remainder for tasks.
 */
#ifndef FV_BUDGET_H
#define FV_BUDGET_H

#include "graph/graph.h"
#include "plan/demand.h"

/* OpenCL in a process: not there; a device was looked for; or operators run there, and their kernels are compiled when this
 * machine has not met them before. */
typedef enum fv_driver { FV_DRIVER_NONE, FV_DRIVER_LOADED, FV_DRIVER_USED } fv_driver;

typedef struct fv_sharers { /* who uses the memory of a host */
    int       children;     /* processes that run the tasks of this one; 0: its own threads do */
    int       ranks;        /* processes like this one that MPI has started, itself among them; 0: MPI is not there */
    fv_driver driver;       /* of those that run tasks */
} fv_sharers;

fv_driver fv__budget_driver(const fv_bindings *bindings);

typedef struct fv_budget {
    int64_t    memory;  /* of the host */
    int64_t    own;     /* of this process and its children, for themselves */
    int64_t    store;   /* of the store of this process, and of each child's */
    int64_t    tasks;   /* of the tasks that are out at once; too little: below what fv__budget_check wants */
    int64_t    buffers; /* that this process may hold, idle ones among them */
    fv_sharers sharers;
    bool       cut_small; /* tasks are as small as --chunk makes them: no smaller ones are recommended */
} fv_budget;

/* What a run may use if nobody says: half of what is free, or what the job leaves that Slurm has given us. */
int64_t fv__budget_default(void);
/* memory 0: the default. */
fv_budget fv__budget_divide(int64_t memory, const fv_sharers *sharers);
/* What a default is never below, and whether a plan that needs so much would gain nothing from more. */
fv_budget fv__budget_smallest(const fv_sharers *sharers);
bool      fv__budget_suffices(const fv_budget *budget, int workers, const fv_demand *demand);
/* The least memory of a host with which a task of so many bytes can run. */
int64_t fv__budget_least(const fv_sharers *sharers, int64_t task);
/* An error that names the least, if a task of so many bytes cannot run. */
fv_status fv__budget_check(const fv_budget *budget, int64_t task, fv_error *error);
/* Tasks of so many bytes that run at once, of so many workers, and what the run of a plan uses with them at most. */
int     fv__budget_at_once(const fv_budget *budget, int workers, int64_t task);
int64_t fv__budget_peak(const fv_budget *budget, int workers, const fv_demand *demand);

/* ---- jobs of a cluster, which are killed for what a bound forgives: they ask for more than their worker may use ---- */
int64_t fv__budget_ask(int64_t bound);    /* bytes to ask for, for a worker with such a bound */
int64_t fv__budget_inside(int64_t asked); /* the largest bound of a worker in a job that was given so much; whole mebibytes */
/* The bound of a worker that runs so many tasks of so many bytes at once. */
int64_t fv__budget_bound(const fv_sharers *sharers, int64_t task, int64_t at_once);
/* The least to ask for, for one task at a time. */
int64_t fv__budget_least_job(const fv_sharers *sharers, int64_t task);

#endif
