/* What a plan asks of the memory of a run. */
#ifndef FV_DEMAND_H
#define FV_DEMAND_H

#include "plan/plan.h"

typedef struct fv_demand {
    int64_t task;   /* bytes of the largest task */
    int64_t tasks;  /* how many there are */
    int64_t kept;   /* bytes that tasks hand to the store, at most */
    int64_t shared; /* bytes of decoded files that they keep for one another, if there is room */
} fv_demand;

/* For a run of so many items of this kind; running: tasks, and so items, that run at once. */
fv_demand fv__plan_demand(const fv_plan *plan, int64_t items, int64_t running);

#endif
