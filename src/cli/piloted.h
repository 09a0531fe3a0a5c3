/* Work that is brought to a pilot. */
#ifndef FV_PILOTED_H
#define FV_PILOTED_H

#include "execute.h"
#include <fovea/units.h>

/* Runs a pipeline on a pilot and waits for it. Frees the pipeline. */
int fv_execute_piloted(const char *command, fv_pipeline *pipeline, const char *pilot, const fv_execute *options);
/* As fv_units_run, by a pilot. */
fv_status fv_units_piloted(const char *pilot, fv_units_options *options, fv_units_state *state, fv_error *error);

/* Programs by workers that live as long as the call. */
typedef struct fv_units_engine {
    const char *name;    /* processes, mpi or slurm */
    const char *profile; /* of the cluster */
    bool        one_job; /* on Slurm: one for all, instead of an array */
} fv_units_engine;
/* As fv_units_run. *speaks: false in ranks of MPI that only work for the first. */
fv_status fv_units_engine_run(const fv_units_engine *engine, fv_units_options *options, fv_units_state *state, bool *speaks,
                              fv_error *error);

#endif
