/* Jobs of a run, handed out in a good order under a memory bound. For engines. */
#ifndef FV_SCHEDULER_H
#define FV_SCHEDULER_H

#include "run/claims.h"
#include "run/outputs.h"
#include "run/run.h"

typedef enum fv_job_kind { FV_JOB_OPEN, FV_JOB_TASK, FV_JOB_END } fv_job_kind;

typedef struct fv_item fv_item;

typedef struct fv_job {
    fv_job_kind   kind;
    fv_item      *item;
    fv_instance  *instance; /* TASK, END */
    int           stage;
    int64_t       task;
    int64_t       memory;
    double        handed; /* when */
    int           place;  /* where it runs */
    int64_t       ticket; /* for the engine's own use */
    fv_claim     *claim;  /* of a run shared with other processes */
    bool          alone;  /* nothing else may be out */
    bool          held;   /* what it stores is exchanged by all places at the stage's end */
    fv_task_facts facts;
} fv_job;

typedef struct fv_scheduler fv_scheduler;

fv_scheduler *fv__scheduler_new(const fv_context *context, const fv_run_settings *settings, fv_outputs *outputs,
                                fv_record *record, fv_run_result *result);
void          fv__scheduler_free(fv_scheduler *scheduler);
/* Takes only what the claims give. Before the first job. */
void fv__scheduler_share(fv_scheduler *scheduler, fv_claims *claims, const fv_share *share);

/* Blocks until there is a job for place 0; false when the run is over. */
bool fv__scheduler_next(fv_scheduler *scheduler, fv_job *job);

/* ---- several places: processes with memory of their own, of which place 0 is this one ---- */
typedef struct fv_place {
    int       workers;
    fv_budget budget;
} fv_place;
/* Before the first job is asked for. A place is given the tasks whose inputs it has probably made, as long as there are any. */
void fv__scheduler_places(fv_scheduler *scheduler, const fv_place *places, int count);

typedef enum fv_offer { FV_OFFER_JOB, FV_OFFER_LATER, FV_OFFER_OVER } fv_offer;
/* A job for a place if there is one now. ahead: it will wait there, so it is not taken from others. */
fv_offer fv__scheduler_ask(fv_scheduler *scheduler, int place, bool ahead, fv_job *job);
/* A number that grows with everything that may make a job possible, and waiting until it is more than what was seen, at most so
 * many seconds (below one). */
uint64_t fv__scheduler_changes(fv_scheduler *scheduler);
void     fv__scheduler_wait(fv_scheduler *scheduler, uint64_t seen, double seconds);
/* Called before a file gets its name of which places other than the one of the job have written parts: makes them durable. */
typedef fv_status fv_naming_hook(void *context, const fv_job *job, fv_error *error);
void              fv__scheduler_on_naming(fv_scheduler *scheduler, fv_naming_hook *hook, void *context);
/* Places that exchange what solves hand from stage to stage in memory; without it everything goes through the store. */
typedef struct fv_sharing {
    int64_t most; /* bytes of an image */
    /* Called when all tasks of a stage are done, before others use it. makers: by task the place that made it, -1: none. */
    fv_status (*exchange)(void *context, const fv_job *job, const int32_t *makers, fv_error *error);
    /* Called when no stage needs it any more. */
    void (*forget)(void *context, const fv_instance *instance, const fv_stage *stage);
    void *context;
} fv_sharing;
void fv__scheduler_on_sharing(fv_scheduler *scheduler, const fv_sharing *sharing);
/* Runs a job in this process. scheduler NULL: one of another process's, which is no FV_JOB_OPEN. */
fv_status fv__job_run(fv_scheduler *scheduler, fv_job *job, fv_worker *worker, fv_error *error);
void      fv__scheduler_done(fv_scheduler *scheduler, fv_job *job, int worker, fv_status status, const fv_error *error);
/* Makes everything durable that items which are over have made, and forgets what they needed on the way. */
void fv__scheduler_settle(fv_scheduler *scheduler);
/* First error of the run that is not an item's own; FV_OK if none. */
fv_status fv__scheduler_status(fv_scheduler *scheduler, fv_error *error);
/* Asks everybody to stop. */
void fv__scheduler_stop(fv_scheduler *scheduler, fv_status status, const fv_error *error);

#endif
