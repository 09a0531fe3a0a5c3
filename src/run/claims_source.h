/* The sources of jobs of a process that shares its run with others: whole items of a collection, or tasks of a single item, as
 * the process can claim them. */
#ifndef FV_CLAIMS_SOURCE_H
#define FV_CLAIMS_SOURCE_H

#include "run/claims.h"
#include "run/scheduler.h"

/* From now on the scheduler takes only what the claims give. Before the first job; both are borrowed. */
void fv__claims_source_use(fv_scheduler *scheduler, fv_claims *claims, const fv_share *share);

#endif
