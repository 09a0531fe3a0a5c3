/* Trial runs: a pipeline, or a part of its work, is really run in a process of its own with a store and outputs that are thrown
 * away, and what happened is told. Nothing of the user's is touched, and nothing is found in a cache.
 *
 *     fv_trials *trials;
 *     fv__trials_new(pipeline, ".fovea", NULL, NULL, &trials, &error);
 *     fv_trial_result result;
 *     fv__trial_run(trials, &(fv_trial){ .workers = 2, .items = 8 }, &result, &error);
 *     ... fv__trial_result_release(&result); fv__trials_free(trials);
 *
 * One thread at a time.
 */
#ifndef FV_TRIAL_H
#define FV_TRIAL_H

#include "record/record.h"
#include "story/run_graph.h"
#include <fovea/pipeline.h>

typedef struct fv_trials fv_trials;

/* folder: where the trials live while they last, best on the disk of the results; NULL: .fovea. command: the fovea command;
 * NULL: this program. cancel: NULL, or set to non-zero to end a trial. */
fv_status fv__trials_new(const fv_pipeline *pipeline, const char *folder, const char *command, const volatile int *cancel,
                         fv_trials **trials, fv_error *error);
void      fv__trials_free(fv_trials *trials); /* removes everything */

typedef struct fv_trial {
    const char *engine;   /* NULL: threads */
    const char *launcher; /* words before the command, "mpiexec -n 4"; NULL: none */
    int         workers;  /* 0: all cores */
    int64_t     items;    /* 0: all */
    int64_t     memory;   /* 0: half of what is free */
    const char *part;     /* as in fv_run_options */
} fv_trial;

typedef struct fv_trial_result {
    double         seconds;          /* of the run */
    double         elapsed;          /* of the process, from its start to its end */
    double         opening, merging; /* of workers */
    int64_t        peak_memory, tasks_run, failures;
    fv_task_facts *tasks;
    int64_t        ntasks;
    fv_run_graph  *graph; /* NULL: there was none */
} fv_trial_result;

fv_status fv__trial_run(fv_trials *trials, const fv_trial *trial, fv_trial_result *result, fv_error *error);
void      fv__trial_result_release(fv_trial_result *result);

#endif
