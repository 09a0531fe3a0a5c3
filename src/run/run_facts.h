/* What the record of a run says about the run as a whole: where and how it ran, its graph, how it ended. */
#ifndef FV_RUN_FACTS_H
#define FV_RUN_FACTS_H

#include "run/run.h"

/* Version, machine, process, when, and the settings. role: "run", or "worker" of one that is shared. */
void fv__facts_begin(fv_record *record, const fv_run_settings *settings, const char *role);
/* How it ended, printed numbers, and what the process took at most. last: it has brought the run to its end. */
void fv__facts_end(fv_record *record, fv_status status, const fv_error *error, const fv_result *result, bool last);

/* Parts (one for each segment), with nodes, stages, sinks and files that are read, as JSON; samples: an instance of each, or
 * NULL. The caller frees. */
char *fv__facts_graph(const fv_bindings *bindings, fv_instance *const *samples);
/* Puts it into the run's folder, where everybody who shares the run finds it. graph NULL: leaves what is there. */
fv_status fv__facts_keep_graph(const char *run_folder, const char *graph, fv_error *error);

#endif
