/* Running a pipeline from the command line: progress, Ctrl-C, printed values, summary. */
#ifndef FV_EXECUTE_H
#define FV_EXECUTE_H

#include "cli.h"
#include <fovea/pipeline.h>

#define FV_EXECUTE_FIELDS                                                                                                        \
    const char *engine;                                                                                                          \
    int64_t     workers;                                                                                                         \
    fv_size     memory;                                                                                                          \
    double      patience;                                                                                                        \
    const char *store;                                                                                                           \
    bool        fresh;                                                                                                           \
    bool        overwrite;                                                                                                       \
    bool        stop_on_error;                                                                                                   \
    bool        allow_commands;                                                                                                  \
    int64_t     items;                                                                                                           \
    const char *into;                                                                                                            \
    const char *device;                                                                                                          \
    bool        quiet;                                                                                                           \
    bool        verbose;                                                                                                         \
    bool        json

#define FV_EXECUTE_OPTIONS(type)                                                                                                 \
    FV_OPTION(type, engine, .argument = "NAME",                                                                                  \
              .doc = "threads, processes, slurm, spark or dask (on a cluster), or mpi where mpiexec or srun has started it"),    \
        FV_OPTION(type, workers, .min = 1, .max = 4096, .argument = "N",                                                         \
                  .doc = "how many tasks run at once; under mpiexec for each rank, with slurm the number of jobs; all cores "    \
                         "if left out"),                                                                                         \
        FV_OPTION(type, memory,                                                                                                  \
                  .doc = "how much memory the run may use, such as 512M or 4G; half of the free memory if left "                 \
                         "out"),                                                                                                 \
        FV_OPTION(type, patience, .min = 0.001, .max = 3600, .argument = "SECONDS",                                              \
                  .doc = "how many seconds of a worker's work may be lost if it is killed; 2.5 if left out"),                    \
        FV_OPTION(type, store, .argument = "FOLDER",                                                                             \
                  .doc = "where the run keeps what it needs to continue later: a folder, .fovea if left out, or an s3:// or "    \
                         "hdfs:// address"),                                                                                     \
        FV_OPTION(type, fresh, .doc = "forget what earlier runs computed and start over"),                                       \
        FV_OPTION(type, overwrite, .doc = "replace files that Fovea did not make"),                                              \
        FV_OPTION(type, stop_on_error, .doc = "stop at the first item that fails instead of going on with the others"),          \
        FV_OPTION(type, items, .min = 1, .argument = "N",                                                                        \
                  .doc = "process only N items of a collection, chosen evenly over their sizes; to try something out"),          \
        FV_OPTION(type, into, .argument = "FOLDER",                                                                              \
                  .doc = "write all results below this folder instead of where the pipeline says"),                              \
        FV_OPTION(type, device, .argument = "auto|cpu|opencl[:N]",                                                               \
                  .doc = "where to run operators that can use a device; cpu if left out"),                                       \
        FV_OPTION(type, quiet, .letter = 'q', .doc = "show errors only, no progress and no messages"),                           \
        FV_OPTION(type, verbose, .letter = 'v', .doc = "say more about what happens"),                                           \
        FV_OPTION(type, json, .doc = "print values and a summary as JSON")

typedef struct fv_execute {
    FV_EXECUTE_FIELDS;
    double within, within_error; /* seconds, or part of each value: as in fv_run_options */
} fv_execute;

/* Runs, prints, and frees the pipeline. The exit status. */
int fv_execute_pipeline(const char *command, fv_pipeline *pipeline, const fv_execute *options);
/* The same for other ways to run something: what the call gives back is shown as a run's result. pipeline: whose messages are
 * shown; NULL: none. */
typedef fv_status (*fv_work_call)(void *context, const fv_run_options *options, fv_result **result, fv_error *error);
int fv_execute_work(const char *command, fv_work_call call, void *context, fv_pipeline *pipeline, const fv_execute *options);

#endif
