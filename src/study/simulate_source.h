/* What a simulation plays: the tasks of a recorded run, or of trial runs of a pipeline. */
#ifndef FV_SIMULATE_SOURCE_H
#define FV_SIMULATE_SOURCE_H

#include "story/simulate.h"
#include "study/simulation.h"

/* times: as if there were so many times as many items, or for a single image as many times as many chunks. */
fv_status fv__sim_from_run(const char *run_folder, int64_t times, fv_sim_work *work, fv_simulation *told, fv_error *error);
/* Runs the pipeline on one and on two workers. */
fv_status fv__sim_from_trials(fv_pipeline *pipeline, const fv_simulate_options *options, fv_sim_work *work, fv_simulation *told,
                              fv_error *error);

#endif
