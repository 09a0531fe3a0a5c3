/* An engine: how the jobs of a run reach workers. One C file or one folder in src/engines each, found by its place; a program
 * that is linked with Fovea may add its own (fv__engine_add).
 *
 * An engine asks for jobs, has them run, by fv__job_run in this process or by a worker of its own kind elsewhere (run/wire.h),
 * and gives each back exactly once: done, failed or lost. Where jobs come from is not its concern: they may be all of a run, or
 * what this process has claimed of a run that it shares with others. Everything here is safe with threads.
 *
 * 1. A job may run anywhere, in any order with the others that are out, and more than once: what counts is what is committed.
 * 2. FV_JOB_OPEN belongs to this process and is never lost.
 * 3. A job that was lost is handed out again, to any place; after FV_MOST_LOST times its item has failed.
 * 4. An engine whose other workers cannot go on without one that died ends the run with fv__scheduler_stop, and loses no job.
 */
#ifndef FV_ENGINE_H
#define FV_ENGINE_H

#include "exec/exec.h"
#include "run/run.h"

typedef struct fv_scheduler fv_scheduler; /* hands out the jobs of one run */

typedef enum fv_job_kind { FV_JOB_OPEN, FV_JOB_TASK, FV_JOB_END } fv_job_kind; /* an item; a task of it; the end of a stage */

typedef struct fv_job {
    fv_job_kind     kind;
    struct fv_item *item;
    fv_instance    *instance; /* TASK, END */
    int             stage;
    int64_t         task;
    int64_t         memory; /* bytes that it needs */
    int64_t         cpus;   /* processors beyond one, for a program that it runs */
    int             place;  /* where it runs */
    bool            held;   /* what it stores is exchanged by all places at the stage's end */
    int             lost;   /* so often already */
    int64_t         ticket; /* for the engine's own use */
    fv_task_facts   facts;  /* what it took: whoever runs it fills them in */
    double          handed; /* the rest is the scheduler's own */
    bool            alone;
    void           *of_source;
} fv_job;

typedef enum fv_offer { FV_OFFER_JOB, FV_OFFER_LATER, FV_OFFER_OVER } fv_offer;
enum { FV_MOST_LOST = 3 };

/* Next: a job for a place, if there is one now. ahead: it will wait there, so it is not taken from other places. */
fv_offer fv__job_next(fv_scheduler *scheduler, int place, bool ahead, fv_job *job);
/* Runs a job in this process. scheduler NULL: one that another process was given. */
fv_status fv__job_run(fv_scheduler *scheduler, fv_job *job, fv_worker *worker, fv_error *error);
/* Done, or failed with a status and an error. worker: a number for the record. */
void fv__job_done(fv_scheduler *scheduler, fv_job *job, int worker, fv_status status, const fv_error *error);
/* Lost: whoever had it will never answer. */
void fv__job_lost(fv_scheduler *scheduler, fv_job *job, int worker);

/* A number that grows with everything that may make a job possible, and waiting until it is more than what was seen, at most so
 * many seconds (below one). */
uint64_t fv__scheduler_changes(fv_scheduler *scheduler);
void     fv__scheduler_wait(fv_scheduler *scheduler, uint64_t seen, double seconds);
/* Whether there is never more than one job at a time that is worth another worker. Before the first one is asked for. */
bool fv__scheduler_single(const fv_scheduler *scheduler);
/* Ends the run; the first reason counts. What the run came to: FV_OK, or the first error that is not an item's own. */
void      fv__scheduler_stop(fv_scheduler *scheduler, fv_status status, const fv_error *error);
fv_status fv__scheduler_status(fv_scheduler *scheduler, fv_error *error);

/* A place: a process with memory of its own. Place 0 is this one, and there is no other unless the engine says so before it asks
 * for the first job. A place is given the tasks whose inputs it has probably made, as long as there are any. most: bytes of an
 * image that places exchange in memory; 0: none. context: for the engine's sync, exchange and forget. */
typedef struct fv_place {
    int       workers;
    fv_budget budget;
} fv_place;
void fv__scheduler_places(fv_scheduler *scheduler, const fv_place *places, int count, int64_t most, void *context);

typedef struct fv_engine {
    const char *name, *brief;
    /* Asks for jobs until they are over. */
    fv_status (*run)(fv_scheduler *scheduler, const fv_run_settings *settings, const char *run_folder, fv_error *error);
    bool shared;   /* workers are other processes: what they need goes through the store on disk */
    bool children; /* each worker is a process of its own beside this one */
    bool ranks;    /* this process is one of several that MPI has started */
    /* All that follows may be NULL. Whether this process was started for this engine, as a rank by mpiexec: it is the default. */
    bool (*launched)(void);
    /* Fills in what the engine decides itself, before the defaults: workers and ranks of this host. */
    fv_status (*prepare)(fv_run_settings *settings, fv_error *error);
    /* Makes parts of files durable that other places have written, before the file gets its name. */
    fv_status (*sync)(void *context, const fv_job *job, fv_error *error);
    /* All tasks of a stage are done: brings what they made to all places. makers: by task the place that made it, -1: none. */
    fv_status (*exchange)(void *context, const fv_job *job, const int32_t *makers, fv_error *error);
    void (*forget)(void *context, const fv_instance *instance, const fv_stage *stage); /* no stage needs it any more */
} fv_engine;

/* Adds an engine of the program's own, before the first run. */
void             fv__engine_add(const fv_engine *engine);
int              fv__engine_count(void);
const fv_engine *fv__engine_at(int index);
const fv_engine *fv__engine_find(const char *name);
/* The same, with an error that lists the names. */
fv_status   fv__engine_named(const char *name, const fv_engine **engine, fv_error *error);
const char *fv__engine_default(void); /* the name of the one that runs where none is asked for */
/* Who uses the memory of a host in a run on this engine. ranks: of that host, if the engine has any; 0: one. */
fv_sharers fv__engine_sharers(const fv_engine *engine, int workers, int ranks, const fv_bindings *bindings);

#endif
