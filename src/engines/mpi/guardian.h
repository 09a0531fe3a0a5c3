/* A guardian: the process that a launcher has started forks, and its child does the work. When the child dies of a signal (out of
 * memory, kill -9, a crash), the guardian says which rank it was, where, and at which task, and dies the same way, so that the
 * launcher ends the other ranks. When the guardian is killed, the child says it instead.
 */
#ifndef FV_GUARDIAN_H
#define FV_GUARDIAN_H

#include "run/engine.h"

/* Returns in the child only. Call before there are threads. */
void fv__guardian_start(int rank);
/* What a worker of this process is at; NULL: nothing. Does nothing without a guardian. */
void fv__guardian_note(int worker, const fv_job *job);
/* True once the launcher has asked this rank to end. */
bool fv__guardian_asked_to_stop(void);
/* "stage 2, task 17 of scan.png" */
void fv__job_describe(const fv_job *job, char *text, size_t size);

#endif
