/* What a simulation plays: the tasks of a recorded run, or of trial runs of a pipeline. */
#ifndef FV_SIMULATE_SOURCE_H
#define FV_SIMULATE_SOURCE_H

#include "story/simulate.h"
#include "study/simulation.h"

/* times: as if there were so many times as many items, or for a single image as many times as many chunks. volumes: and so many
 * of them that do not wait for each other. 0: 1. Where copies of tasks are very many, each one that is played stands for several.
 */
typedef struct fv_sim_size {
    int64_t times, volumes;
} fv_sim_size;
fv_status fv__sim_from_run(const char *run_folder, fv_sim_size size, fv_sim_work *work, fv_simulation *told, fv_error *error);
/* Runs the pipeline on one and on two workers. */
fv_status fv__sim_from_trials(fv_pipeline *pipeline, const fv_simulate_options *options, fv_sim_work *work, fv_simulation *told,
                              fv_error *error);

#endif
