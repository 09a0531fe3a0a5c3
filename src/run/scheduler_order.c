/* What comes first, where the longest shall. */
#include "run/scheduler_parts.h"
#include <stdlib.h>

typedef struct ranked {
    double  weight;
    int64_t index;
} ranked;

static int heaviest(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    return x->weight != y->weight ? (x->weight < y->weight ? 1 : -1) : x->index < y->index ? -1 : x->index > y->index;
}

void fv__order_by_weight(const double *weights, int64_t first, int64_t count, int64_t *order) {
    ranked *all = fv__calloc((size_t)(count + 1) * sizeof *all);
    for (int64_t k = 0; k < count; k++) all[k] = (ranked){ weights[first + k], first + k };
    qsort(all, (size_t)count, sizeof *all, heaviest);
    for (int64_t k = 0; k < count; k++) order[first + k] = all[k].index;
    free(all);
}

int *fv__stage_order(const fv_scheduler *s, const fv_item *item) {
    const fv_plan *plan = item->instance->plan;
    if (s->settings->order != FV_ORDER_LONGEST) return NULL;
    double  *weights = fv__calloc((size_t)(plan->nstages + 1) * sizeof *weights);
    int64_t *order = fv__calloc((size_t)(plan->nstages + 1) * sizeof *order);
    int     *stages = fv__calloc((size_t)(plan->nstages + 1) * sizeof *stages);
    for (int k = 0; k < plan->nstages; k++) weights[k] = plan->stages[k].work / (double)FV_MAX(plan->stages[k].ntasks, 1);
    fv__order_by_weight(weights, 0, plan->nstages, order);
    for (int k = 0; k < plan->nstages; k++) stages[k] = (int)order[k];
    free(order);
    free(weights);
    return stages;
}
