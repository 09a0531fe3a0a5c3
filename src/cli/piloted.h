/* Work that is brought to a pilot. */
#ifndef FV_PILOTED_H
#define FV_PILOTED_H

#include "execute.h"
#include <fovea/units.h>

/* Runs a pipeline on a pilot and waits for it. Frees the pipeline. */
int fv_execute_piloted(const char *command, fv_pipeline *pipeline, const char *pilot, const fv_execute *options);
/* As fv_units_run, by a pilot. */
fv_status fv_units_piloted(const char *pilot, fv_units_options *options, fv_units_state *state, fv_error *error);

#endif
