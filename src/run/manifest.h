/* The frozen manifest of a run: text, parameters, items, lattice. Workers elsewhere and later runs read it.
 *
 * A run's folder is named by the hash of its manifest, so the same command finds the same folder.
 */
#ifndef FV_MANIFEST_H
#define FV_MANIFEST_H

#include "run/run.h"

/* Makes FOLDER/runs/HASH with manifest.json in it, if it is not there. *run_folder: caller frees. */
fv_status fv__manifest_freeze(const char *folder, const fv_program *program, fv_bindings *bindings,
                              const fv_plan_options *plan_options, char **run_folder, fv_error *error);
/* Puts arrays that the program holds in memory into the run's folder, for workers that are other processes. */
fv_status fv__manifest_spool(const char *run_folder, const fv_bindings *bindings, fv_error *error);
/* Reads one. The program and the bindings are the caller's to free. */
fv_status fv__manifest_load(const char *run_folder, fv_program **program, fv_bindings *bindings, fv_plan_options *plan_options,
                            fv_error *error);

#endif
