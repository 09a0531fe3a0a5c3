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

int *fv__stage_order(const fv_scheduler *s, const fv_item *item) {
    const fv_plan *plan = item->instance->plan;
    if (s->settings->order != FV_ORDER_LONGEST) return NULL;
    ranked *stages = fv__calloc((size_t)(plan->nstages + 1) * sizeof *stages);
    int    *order = fv__calloc((size_t)(plan->nstages + 1) * sizeof *order);
    for (int k = 0; k < plan->nstages; k++)
        stages[k] = (ranked){ plan->stages[k].work / (double)FV_MAX(plan->stages[k].ntasks, 1), k };
    qsort(stages, (size_t)plan->nstages, sizeof *stages, heaviest);
    for (int k = 0; k < plan->nstages; k++) order[k] = (int)stages[k].index;
    free(stages);
    return order;
}

int64_t fv__item_batches(const fv_bindings *bindings) {
    fv_lot last = fv__lot_of(bindings, bindings->nsegments - 1);
    return last.batch + last.batches;
}

int64_t *fv__item_order(const fv_scheduler *s, bool batches) {
    const fv_bindings *bindings = s->context->bindings;
    if (s->settings->order != FV_ORDER_LONGEST) return NULL;
    int64_t  count = batches ? fv__item_batches(bindings) : bindings->nunits;
    ranked  *all = fv__calloc((size_t)(count + 1) * sizeof *all);
    int64_t *order = fv__calloc((size_t)(count + 1) * sizeof *order);
    for (int64_t k = 0; k < count; k++) {
        int64_t first = k, end = k + 1;
        if (batches) fv__lot_units(bindings, k, &first, &end);
        all[k].index = k;
        for (int64_t unit = first; unit < end; unit++) all[k].weight += (double)fv__bindings_size(bindings, unit);
    }
    for (int segment = 0; segment < bindings->nsegments; segment++) { /* each in an order of its own */
        fv_lot  lot = fv__lot_of(bindings, segment);
        int64_t from = batches ? lot.batch : lot.first, n = batches ? lot.batches : lot.count;
        qsort(all + from, (size_t)n, sizeof *all, heaviest);
    }
    for (int64_t k = 0; k < count; k++) order[k] = all[k].index;
    free(all);
    return order;
}
