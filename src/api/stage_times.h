/* Seconds of operators, put together as people speak of them. Internal to api. */
#ifndef FV_STAGE_TIMES_H
#define FV_STAGE_TIMES_H

#include "record/record.h"
#include <fovea/pipeline.h>

/* "read", "filter", "reconstruct", "store", "write", ... */
const char *fv__stage_of(const char *op);
int         fv__stage_times(const fv_spent *spent, int nspent, fv_stage_time stages[FV_MOST_STAGES]);

#endif
