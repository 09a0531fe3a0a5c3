/* Which run of a store is meant: the latest, or the one whose name begins so. */
#ifndef FV_LATEST_RUN_H
#define FV_LATEST_RUN_H

#include <fovea/status.h>

/* When a run, by its folder, last did what is looked for; 0: never. */
typedef double fv__run_time(const char *folder);

/* The folder of the run (the caller frees); NULL: there is none. name: a folder, the beginning of a name, or NULL for the latest.
 * An error if several begin so. */
fv_status fv__find_run(const char *runs, const char *name, fv__run_time *time_of, char **folder, fv_error *error);

#endif
