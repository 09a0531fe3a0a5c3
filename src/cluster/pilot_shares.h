/* Processors of a node, divided among those who work on it: equally, but nobody gets more than he can use, and who must have
 * several at once gets them when he has had the least so far. */
#ifndef FV_PILOT_SHARES_H
#define FV_PILOT_SHARES_H

#include "base/base.h"
#include <fovea/allowance.h>

typedef struct fv_share_of { /* what one who works uses, and gets */
    fv_allowance *allowance;
    double        served; /* seconds of processors that it has had */
    int           target; /* what it is to have, found here */
} fv_share_of;

/* Sets what each is allowed. What was begun is not ended, so others get more only when it is. */
void fv__shares_divide(fv_share_of *shares, int count, int cpus);

#endif
