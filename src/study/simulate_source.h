/* What a simulation plays: the tasks of a recorded run, or of trial runs of a pipeline. */
#ifndef FV_SIMULATE_SOURCE_H
#define FV_SIMULATE_SOURCE_H

#include "story/simulated_work.h"
#include "study/simulation.h"

fv_status fv__sim_from_run(const char *run_folder, fv_sim_size size, fv_sim_work *work, fv_simulation *told, fv_error *error);
/* Runs the pipeline on one and on two workers. */
fv_status fv__sim_from_trials(fv_pipeline *pipeline, const fv_simulate_options *options, fv_sim_work *work, fv_simulation *told,
                              fv_error *error);

#endif
