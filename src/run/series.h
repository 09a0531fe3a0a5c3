/* The file that lists the steps of a solver which are there (.pvd): ParaView follows it, and `fovea view` shows the last of them.
 *
 * A step is in the list only if its file has its own name and is what this run makes, so a reader never meets a step that is
 * half there or another run's. The list is replaced as a whole after each step. */
#ifndef FV_SERIES_H
#define FV_SERIES_H

#include "run/outputs.h"

/* Whether a stage makes a step that is listed. */
bool fv__series_of(const fv_instance *instance, const fv_stage *stage);
/* Fails if a list of that name is there and not ours. */
fv_status fv__series_check(const fv_outputs *outputs, const fv_instance *instance, fv_error *error);
/* Writes the lists of an instance again where they have changed. */
fv_status fv__series_update(fv_outputs *outputs, const fv_instance *instance, fv_error *error);

#endif
