/* The jobs of a run: which there are, their scripts, and how they are handed to Slurm.
 *
 * A run becomes a chain. Each stage that is worth it is a job array of workers (`fovea work RUN --stage N`) that claim its tasks;
 * merges, ends of files and small stages are single jobs between; the last one (`--finish`) does whatever is missing. Of a
 * collection, whole items are claimed: one array and the last job. Every job starts when the one before is over, however that
 * ended, since workers make good what others left; if the last job fails, a job `again` submits the run once more, with more
 * memory if memory was what lacked. Nothing is resident anywhere.
 *
 * All of it lies in RUN/slurm/N for the Nth submission: scripts, logs, submit.sh (which is what is run), and `jobs`, one line
 * "ID NAME STAGE ELEMENTS CPUS MEMORY" for each job that was submitted.
 */
#ifndef FV_JOBS_H
#define FV_JOBS_H

#include "cluster/cluster_profile.h"
#include "run/budget.h"

typedef enum fv_job_role {
    FV_ROLE_ARRAY,
    FV_ROLE_MERGE,
    FV_ROLE_FINISH,
    FV_ROLE_PILOT,
    FV_ROLE_AGAIN,
    FV_ROLE_AGENTS,
    FV_ROLE_AGENT_ARRAY
} fv_job_role;

typedef struct fv_cluster_job {
    char        name[32]; /* stage-2, stage-2-merge, finish */
    fv_job_role role;
    int         stage;    /* last one it works on, from 1; 0: all */
    int64_t     elements; /* 1 unless it is an array or a pilot */
    int64_t     cpus, memory;
    double      seconds; /* that one element should take, by what was measured; 0: not known */
    int64_t     id;      /* in Slurm; 0: not submitted */
} fv_cluster_job;

/* Bytes that it asks Slurm for; `memory` is the bound that its worker keeps. */
int64_t fv__job_memory(const fv_cluster_job *job);

typedef struct fv_stage_work { /* what the chain follows from */
    int64_t tasks;
    int64_t memory;  /* of one task */
    double  seconds; /* on one core */
    bool    merges;  /* its end takes work */
} fv_stage_work;

/* Plans the chain for stages (of a collection: one entry, whose tasks are items). jobs has room for 2 * nstages + 2. */
int fv__jobs_plan(const fv_profile *profile, const fv_sharers *sharers, const fv_stage_work *stages, int nstages, bool collection,
                  bool pilot, int64_t most_elements, fv_cluster_job *jobs);

typedef struct fv_submission {
    const char     *run_folder;
    int             number; /* of the try, from 1 */
    char           *folder; /* RUN/slurm/N; owned */
    fv_cluster_job *jobs;   /* owned */
    int             njobs;
} fv_submission;

void fv__submission_release(fv_submission *submission);
/* Writes scripts of a new try. FV_ERROR_USAGE if the memory asked for is less than what one task needs. */
fv_status fv__jobs_write(const char *run_folder, const fv_profile *profile, bool pilot, fv_submission *submission,
                         fv_error *error);
/* Hands them to Slurm and fills in the ids. */
fv_status fv__jobs_submit(fv_submission *submission, fv_error *error);
/* What was asked in the last try, for the next one. */
fv_status fv__jobs_request(const char *run_folder, fv_profile *profile, fv_error *error);
/* Reads what was submitted in the last try (number 0) or another. FV_ERROR_INPUT if there is none. */
fv_status fv__jobs_read(const char *run_folder, int number, fv_submission *submission, fv_error *error);

#endif
