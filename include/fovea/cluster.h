/* Runs that several processes do together, and runs on a cluster with Slurm.
 *
 *     char *run;                                              // .fovea/runs/0123456789abcdef
 *     fv_pipeline_freeze(pipeline, &options, &run, &error);   // checked and written down; any process can take part now
 *     fv_work(run, &work, &options, &result, &error);         // in as many processes, on as many machines, as you like
 *     work.finish = true;                                     // the last one: does what is missing, gathers tables
 *     fv_work(run, &work, &options, &result, &error);
 */
#ifndef FOVEA_CLUSTER_H
#define FOVEA_CLUSTER_H

#include <fovea/allowance.h>
#include <fovea/api.h>
#include <fovea/pipeline.h>

/* Checks a pipeline as fv_pipeline_run does, and writes all that workers need into a folder (caller frees its name). */
FV_API fv_status fv_pipeline_freeze(fv_pipeline *pipeline, const fv_run_options *options, char **run_folder, fv_error *error);

#define FV_MOST_TRIES 3 /* what as many workers died on is reported and left */

typedef struct fv_work_options { /* what one process does of a run */
    int           stage;         /* last stage whose tasks are taken, from 1; 0: all */
    bool          end;           /* takes the end of that stage too: merges, putting files together */
    bool          wait;          /* until others have done what they claim; otherwise ends when there is nothing to take */
    bool          finish;        /* checks all, gathers tables, builds the record */
    bool          alone;         /* all of it, by this process or its MPI ranks: no other process works on the run */
    int           place, places; /* where to begin, so that equals meet rarely */
    const char   *order;         /* what to take first: "fifo", "longest" or "memory"; NULL: memory */
    int           level;         /* number of earlier tries: how often workers may have died on what is taken */
    fv_allowance *allowance;     /* of processors, that who started this process may change; NULL: options.workers */
} fv_work_options;

/* Works on a run. Statuses as of fv_pipeline_run; *result is set in any case. Of the options store and fresh are not used,
 * engine only with alone. */
FV_API fv_status fv_work(const char *run_folder, const fv_work_options *work, const fv_run_options *options, fv_result **result,
                         fv_error *error);

/* Forgets who had claimed what and what workers have died on, so that all of it is looked at anew. What is done stays done. Call
 * it before the first worker of a new try. */
FV_API fv_status fv_run_renew(const char *run_folder, fv_error *error);
/* How far its workers are: items, tasks and the fraction that is done, by what they have noted in the run's folder. */
FV_API fv_status fv_run_look(const char *run_folder, fv_run_state *state, fv_error *error);
/* The same for each stage as JSON, with the name of what it does; whether all of the run is done; and the memory that a worker of
 * one thread needs (`bound`) and that whoever places it should ask for (`ask`). The caller frees. */
FV_API fv_status fv_run_describe(const char *run_folder, char **json, fv_error *error);

/* ---- Slurm ---- */
typedef struct fv_cluster_options { /* NULL and 0: as the profile says, or what the plan needs */
    const char *profile;            /* NULL: "default" if there is one */
    const char *partition, *account, *qos, *constraint, *reservation, *time, *gres, *mail_user;
    bool        device;    /* the run uses one: gpu:1 is asked for where neither gres nor the profile says what */
    const char *order;     /* fifo, longest, memory */
    const char *mpi;       /* pilots: ranks started by srun --mpi=KIND instead of workers that claim */
    int64_t     cpus;      /* of one worker */
    int64_t     memory;    /* bytes of one job, or of one node of a pilot */
    int64_t     nodes;     /* of a pilot */
    int64_t     array;     /* most elements of an array */
    int64_t     at_once;   /* most of them running at the same time */
    double      work;      /* seconds of one core that the run takes, from an estimate */
    double      minimum;   /* seconds that a job should last at least */
    bool        pilot;     /* one allocation instead of job arrays */
    bool        overwrite; /* replace files that Fovea did not make */
    bool        dry;       /* writes the scripts only */
} fv_cluster_options;

/* Writes job scripts of a frozen run and hands them to Slurm. *text: what was done, for the user; the caller frees. */
FV_API fv_status fv_cluster_submit(const char *run_folder, const fv_cluster_options *options, char **text, fv_error *error);
/* The same for what is missing of a run that was submitted before, with more memory if that was what lacked. */
FV_API fv_status fv_cluster_submit_again(const char *run_folder, char **text, fv_error *error);

/* The folder of a submitted run in a store: named by its folder or the begin of its name; NULL: the last one. Caller frees. */
FV_API fv_status fv_cluster_find(const char *store, const char *name, char **run_folder, fv_error *error);
/* Cancels all its jobs. What is committed stays. */
FV_API fv_status fv_cluster_cancel(const char *run_folder, fv_error *error);

/* Where a run is: its jobs, its tasks; after its end what was asked and what was used. The caller frees. */
FV_API fv_status fv_cluster_status(const char *run_folder, fv_form form, char **text, fv_error *error);
/* Logs of its jobs, whole, each under its name; failed: only of those that failed. The caller frees. */
FV_API fv_status fv_cluster_logs(const char *run_folder, const char *job, bool failed, char **text, fv_error *error);
/* Waits until its jobs are over. FV_OK: all is done; FV_ERROR_CANCELLED: asked to stop waiting. */
FV_API fv_status fv_cluster_wait(const char *run_folder, const fv_run_options *options, fv_error *error);

#endif
