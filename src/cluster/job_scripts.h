/* Job scripts of a submission: one for each job, submit.sh that hands them to Slurm, request.fov that says what was asked. */
#ifndef FV_JOB_SCRIPTS_H
#define FV_JOB_SCRIPTS_H

#include "cluster/jobs.h"

/* Writes them into the submission's folder. */
fv_status fv__job_scripts_write(const fv_submission *submission, const fv_profile *profile, fv_error *error);

#endif
