/* Slurm, by its own commands: sbatch, squeue, sacct, scontrol, scancel. All knowledge of their options and output is here. */
#ifndef FV_SLURM_H
#define FV_SLURM_H

#include "base/base.h"

/* Runs a program and gives what it printed (ended by NUL). An error names the program and holds what it said. */
fv_status fv__slurm_call(char *const *arguments, fv_bytes *output, fv_error *error);

/* FV_ERROR_USAGE: there is no Slurm on this machine. */
fv_status fv__slurm_there(fv_error *error);

typedef enum fv_slurm_state { FV_SLURM_PENDING, FV_SLURM_RUNNING, FV_SLURM_DONE, FV_SLURM_FAILED } fv_slurm_state;

typedef struct fv_slurm_job { /* one job, or one element of an array */
    int64_t        id;        /* of the array, or of the job */
    int            element;   /* -1: no array, or all elements that still wait */
    int            elements;  /* that this stands for */
    fv_slurm_state state;
    char           word[32];   /* Slurm's own: "OUT_OF_MEMORY" */
    char           reason[64]; /* why it waits */
    char           node[64];
    int            restarts;
    double         eligible, started, ended; /* seconds since the epoch; 0: not yet */
    double         cpu_seconds;              /* used */
    int64_t        memory_used;              /* bytes; 0: not known */
    int            cpus;
    bool           queued; /* the queue knows it */
} fv_slurm_job;

typedef struct fv_slurm_jobs {
    fv_slurm_job *items;
    int           count;
    bool          accounting; /* there is some: then also jobs that have left the queue are known, after a while */
} fv_slurm_jobs;

/* Everything that squeue and sacct know of these jobs. Accounting lags behind the queue, which is believed where they differ. */
fv_status fv__slurm_look(const int64_t *ids, int count, fv_slurm_jobs *jobs, fv_error *error);
void      fv__slurm_jobs_release(fv_slurm_jobs *jobs);
fv_status fv__slurm_cancel(const int64_t *ids, int count, fv_error *error);
/* Most elements of an array; 1001 if Slurm does not say. */
int64_t fv__slurm_most_elements(void);

#endif
