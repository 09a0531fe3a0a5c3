/* Threads that answer requests, the newest first: who scrolls wants the plane of now, not those of before.
 *
 * Invariants
 * 1. A job that was given is run once, or dropped once.
 * 2. Work ahead of time begins only where no job waits, and on one thread at a time.
 * 3. What a job has shared out is over when fv_view_pool_share returns.
 */
#ifndef FV_VIEW_POOL_H
#define FV_VIEW_POOL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fv_view_pool fv_view_pool;

typedef struct fv_view_job {
    struct fv_view_job *next;
    void (*run)(struct fv_view_job *job, bool drop); /* drop: too many wait, or the pool ends */
} fv_view_job;

fv_view_pool *fv_view_pool_new(int threads);
/* Drops what waits, waits for what runs. */
void fv_view_pool_free(fv_view_pool *pool);
void fv_view_pool_give(fv_view_pool *pool, fv_view_job *job);
/* Replaces what was to be done ahead of time and has not begun, which is dropped. */
void fv_view_pool_ahead(fv_view_pool *pool, fv_view_job *job);
bool fv_view_pool_waits(fv_view_pool *pool); /* a job waits for a thread */
/* Runs work(context, i) for each i below count, here and on threads that have nothing to do. */
void fv_view_pool_share(fv_view_pool *pool, int64_t count, void (*work)(void *context, int64_t index), void *context);

#endif
