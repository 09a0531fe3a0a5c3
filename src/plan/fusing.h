/* Which point-wise operators of a stage are computed together, for the planner alone. */
#ifndef FV_PLAN_FUSING_H
#define FV_PLAN_FUSING_H

#include "plan/plan.h"

/* The stage has its steps and targets: finds where each step is read last, and makes point-wise steps with one reader that is
 * point-wise itself a part of its group. */
void fv__stage_fuse(fv_stage *stage);

#endif
