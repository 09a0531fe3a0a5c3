/* Threads that run jobs one after the other.
 *
 * As many compute at once as there are workers. A few more threads than that exist, so that while one waits for the disk another
 * computes: a thread gives its turn back around every blocking call (the I/O gate). A job is asked for only when there is room to
 * compute it, so that no job waits here while another process has nothing to do; but nobody has a turn while he asks or is done,
 * since he may hold locks then that others need who wait for a turn. Who is done goes on with the next job himself: waking
 * another costs more than a small job.
 */
#ifndef FV_WORKER_THREADS_H
#define FV_WORKER_THREADS_H

#include "run/engine.h"
#include <fovea/allowance.h>

typedef struct fv_thread_work {
    fv_offer (*ask)(void *context, fv_job *job);
    uint64_t (*changes)(void *context);         /* a number that grows whenever there may be a job */
    void (*wait)(void *context, uint64_t seen); /* until it has grown */
    fv_status (*run)(void *context, fv_job *job, fv_worker *worker, int number, fv_error *error);
    void (*done)(void *context, fv_job *job, int number, fv_status status, const fv_error *error);
    void         *context;
    fv_allowance *allowance; /* how many may compute at once, at most the workers; NULL: all of them */
} fv_thread_work;

typedef struct fv_worker_threads fv_worker_threads;

/* Fails if not even one thread can be started. */
fv_status fv__worker_threads_start(const fv_thread_work *work, int workers, fv_worker_threads **threads, fv_error *error);
/* Waits until ask has told all of them that there is no more. */
void fv__worker_threads_join(fv_worker_threads *threads);
/* The same in this thread alone. */
void fv__worker_threads_here(const fv_thread_work *work);
/* Number of threads, from which run's number comes. */
int fv__worker_threads_threads(int workers);

#endif
