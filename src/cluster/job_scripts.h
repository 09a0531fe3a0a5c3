/* Job scripts of a submission: one for each job, submit.sh that hands them to Slurm, request.fov that says what was asked. */
#ifndef FV_JOB_SCRIPTS_H
#define FV_JOB_SCRIPTS_H

#include "cluster/jobs.h"

/* Writes them into the submission's folder. */
fv_status fv__job_scripts_write(const fv_submission *submission, const fv_profile *profile, fv_error *error);

/* Writes the script of a pilot that others bring work to, and hands it to Slurm: an agent on each node, or in each element of an
 * array. cpus and memory of the profile 0: whole nodes; memory -1: as Slurm likes. seconds that it lives 0: as Slurm says. */
fv_status fv__pilot_script_submit(const char *folder, const fv_profile *profile, bool array, double seconds, int64_t *id,
                                  fv_error *error);

#endif
