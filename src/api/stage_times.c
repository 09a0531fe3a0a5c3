/* Where the time of a run went. */
#include "api/stage_times.h"
#include "op/op.h"

const char *fv__stage_of(const char *op) {
    const fv_op *found = fv__op_find(op);
    return found ? fv__op_stage(found) : op; /* the store and "others" are no operators */
}

/* Reading comes first, what the store took last but one, writing last. */
static int rank(const char *stage) {
    return !strcmp(stage, FV_STAGE_READ) ? 0 : !strcmp(stage, FV_STAGE_WRITE) ? 3 : !strcmp(stage, FV_STAGE_STORE) ? 2 : 1;
}

int fv__stage_times(const fv_spent *spent, int nspent, fv_stage_time stages[FV_MOST_STAGES]) {
    int count = 0;
    for (int wanted = 0; wanted <= 3; wanted++)
        for (int i = 0; i < nspent; i++) {
            const char *stage = fv__stage_of(spent[i].op);
            int         at = 0;
            if (rank(stage) != wanted) continue;
            while (at < count && strcmp(stages[at].stage, stage)) at++;
            if (at == FV_MOST_STAGES) continue;
            if (at == count) stages[count++] = (fv_stage_time){ .stage = stage };
            stages[at].seconds += spent[i].seconds;
        }
    return count;
}
