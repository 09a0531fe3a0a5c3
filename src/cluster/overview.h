/* Where a submitted run is: what Slurm knows of its jobs, and what the record and the claims say of its tasks. */
#ifndef FV_OVERVIEW_H
#define FV_OVERVIEW_H

#include "cluster/frozen_run.h"
#include "cluster/jobs.h"
#include "cluster/slurm.h"

typedef struct fv_overview_stage { /* of a collection there is one, whose tasks are items */
    int64_t tasks, done, running, failed;
    int64_t struck;               /* that somebody died on */
    double  read, compute, write; /* seconds, all workers */
} fv_overview_stage;

typedef struct fv_overview_job {
    fv_cluster_job job;
    int            pending, running, done, failed; /* elements */
    int            requeued;                       /* starts that were not the first */
    bool           gone;                           /* left the queue, and there is no accounting to say how */
    char           word[32];                       /* Slurm's own for what failed last */
    char           reason[64];                     /* why it waits */
    double         waited, elapsed;                /* longest of an element, seconds */
    double         cpu_seconds, core_seconds;      /* used, and had, by all elements */
    int64_t        memory_asked, memory_used;      /* of an element, most */
} fv_overview_job;

enum { FV_BUSY = 60 };

typedef struct fv_overview {
    int                tries;
    bool               collection;
    bool               over;  /* no job waits or runs */
    bool               whole; /* and the last one did all */
    fv_overview_stage *stages;
    int                nstages;
    fv_overview_job   *jobs; /* of the last try */
    int                njobs;
    int64_t            tasks_done, tasks_repeated;
    int64_t            least;         /* memory that a job with one worker must ask for */
    double             from, to;      /* first task to last, seconds since the epoch; 0: none yet */
    double             busy[FV_BUSY]; /* workers at work in each part of that time, on average */
} fv_overview;

fv_status fv__overview_make(const char *run_folder, fv_overview *overview, fv_error *error);
/* Only what the record and the claims say, of a run that other systems than Slurm work on. The overview is zeroed before. */
fv_status fv__overview_tasks(const char *run_folder, const fv_frozen_run *run, fv_overview *overview, fv_error *error);
/* Adds it up, as the progress of a run. The state is zeroed before. */
void fv__overview_state(const fv_overview *overview, fv_run_state *state);
void fv__overview_release(fv_overview *overview);

#endif
