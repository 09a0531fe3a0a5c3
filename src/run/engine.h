/* An engine: how the tasks of a run reach workers. One C file or one folder in src/engines each, found by its place.
 *
 * An engine asks the scheduler for jobs (fv__scheduler_ask, or fv__scheduler_next, which waits), has them run by fv__job_run in
 * this process or by a worker of its own kind elsewhere, and gives each back with fv__scheduler_done: done or failed. A job whose
 * worker was lost is run again by the engine. That is all; whatever else is special about an engine is a field below.
 */
#ifndef FV_ENGINE_H
#define FV_ENGINE_H

#include "run/scheduler.h"

typedef struct fv_engine {
    const char *name, *brief;
    bool        shared;   /* workers are other processes: what they need goes through the store on disk */
    bool        children; /* each worker is a process of its own beside this one */
    bool        ranks;    /* this process is one of several that MPI has started */
    /* Whether this process was started for this engine, as a rank by mpiexec: it is then the default. May be NULL. */
    bool (*launched)(void);
    /* Fills in what the engine decides itself: workers and memory of this process. May be NULL. */
    fv_status (*prepare)(fv_run_settings *settings, const fv_run_settings *given, fv_error *error);
    fv_status (*run)(fv_scheduler *scheduler, const fv_run_settings *settings, const char *run_folder, fv_error *error);
} fv_engine;

const fv_engine *fv__engine_find(const char *name);
/* The same, with an error that lists the names. */
fv_status fv__engine_named(const char *name, const fv_engine **engine, fv_error *error);
/* The name of the engine that runs where none is asked for. */
const char      *fv__engine_default(void);
int              fv__engine_count(void);
const fv_engine *fv__engine_at(int index);

/* Who uses the memory of a host in a run on this engine. ranks: of that host, if the engine has any; 0: one. */
fv_sharers fv__engine_sharers(const fv_engine *engine, int workers, int ranks, const fv_bindings *bindings);

#endif
