/* Jobs of a run, handed out in a good order under a memory bound. For engines. */
#ifndef FV_SCHEDULER_H
#define FV_SCHEDULER_H

#include "engines/claims.h"
#include "engines/outputs.h"
#include "engines/run.h"

typedef enum fv_job_kind { FV_JOB_OPEN, FV_JOB_TASK, FV_JOB_END } fv_job_kind;

typedef struct fv_item fv_item;

typedef struct fv_job {
    fv_job_kind    kind;
    fv_item       *item;
    fv_instance   *instance; /* TASK, END */
    int            stage;
    int64_t        task;
    int64_t        memory;
    double         handed; /* when */
    fv_claim      *claim; /* of a run shared with other processes */
    bool           alone;   /* nothing else may be out */
    fv_task_facts  facts;
} fv_job;

typedef struct fv_scheduler fv_scheduler;

fv_scheduler *fv_scheduler_new(const fv_context *context, const fv_run_settings *settings, fv_outputs *outputs, fv_record *record,
                               fv_run_result *result, int64_t task_memory);
void          fv_scheduler_free(fv_scheduler *scheduler);
/* Takes only what the claims give. Before the first job. */
void fv_scheduler_share(fv_scheduler *scheduler, fv_claims *claims, const fv_share *share);

/* Blocks until there is a job; false when the run is over. */
bool fv_scheduler_next(fv_scheduler *scheduler, fv_job *job);
/* Runs a job in this process. */
fv_status fv_job_run(fv_scheduler *scheduler, fv_job *job, fv_worker *worker, fv_error *error);
void      fv_scheduler_done(fv_scheduler *scheduler, fv_job *job, int worker, fv_status status, const fv_error *error);
/* Makes everything durable that items which are over have made, and forgets what they needed on the way. */
void fv_scheduler_settle(fv_scheduler *scheduler);
/* First error of the run that is not an item's own; FV_OK if none. */
fv_status fv_scheduler_status(fv_scheduler *scheduler, fv_error *error);
/* Asks everybody to stop. */
void fv_scheduler_stop(fv_scheduler *scheduler, fv_status status, const fv_error *error);

/* ---- engines: one C file each, found by its place ---- */
typedef struct fv_engine {
    const char *name, *brief;
    bool        shared; /* workers are other processes: what they need goes through the store on disk */
    fv_status (*run)(fv_scheduler *scheduler, const fv_run_settings *settings, const char *run_folder, fv_error *error);
} fv_engine;

const fv_engine *fv_engine_find(const char *name);
int              fv_engine_count(void);
const fv_engine *fv_engine_at(int index);

#endif
