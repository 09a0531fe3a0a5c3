/* Sums that grow: where they are kept, and how far they can go. */
#include "exec/growing_sums.h"
#include "base/take.h"
#include <stdlib.h>

struct fv_sums {
    fv_kept_sum   **kept;
    int             count;
    pthread_mutex_t mutex;
};

fv_sums *fv__sums_new(void) {
    fv_sums *sums = fv__calloc(sizeof *sums);
    pthread_mutex_init(&sums->mutex, NULL);
    return sums;
}

void fv__sums_free(fv_sums *sums) {
    if (!sums) return;
    for (int i = 0; i < sums->count; i++) {
        fv__buffer_free(sums->kept[i]->bytes, sums->kept[i]->size);
        free(sums->kept[i]);
    }
    free(sums->kept);
    pthread_mutex_destroy(&sums->mutex);
    free(sums);
}

static fv_kept_sum *find(const fv_sums *sums, int stage, int64_t task) {
    for (int i = 0; i < sums->count; i++)
        if (sums->kept[i]->stage == stage && sums->kept[i]->task == task) return sums->kept[i];
    return NULL;
}

fv_status fv__sums_of(fv_sums *sums, const fv_stage *stage, int64_t task, size_t size, fv_kept_sum **sum, fv_error *error) {
    pthread_mutex_lock(&sums->mutex);
    *sum = find(sums, stage->index, task);
    pthread_mutex_unlock(&sums->mutex);
    if (*sum) return FV_OK;
    void *bytes;
    FV_TRY(FV_TAKE_BUFFER(bytes, size, error));
    memset(bytes, 0, size);
    *sum = fv__alloc(sizeof **sum);
    **sum = (fv_kept_sum){ stage->index, task, bytes, size, 0 };
    pthread_mutex_lock(&sums->mutex);
    sums->kept = fv__realloc(sums->kept, (size_t)(sums->count + 1) * sizeof(fv_kept_sum *));
    sums->kept[sums->count++] = *sum;
    pthread_mutex_unlock(&sums->mutex);
    return FV_OK;
}

/* ---------------------------------------------------------------- what can grow */

static const fv_pass_sum *sum_of(const fv_step *step) {
    int pass = step->kind == FV_STEP_RUN && !step->node->on_device ? fv__op_image_pass(step->node->op) : -1;
    return pass < 0 ? NULL : step->node->op->passes[pass].sum;
}

int fv__stage_summing(const fv_stage *stage) {
    int found = -1;
    for (int s = 0; s < stage->nsteps && !stage->nneeds && !stage->gate && !stage->serial; s++) {
        if (!sum_of(&stage->steps[s])) continue;
        if (found >= 0) return -1; /* one of them would wait for the other */
        found = s;
    }
    return found;
}

int64_t fv__plan_sums(const fv_plan *plan) {
    int64_t total = 0;
    for (int k = 0; k < plan->nstages; k++) {
        const fv_stage *stage = &plan->stages[k];
        int             step = fv__stage_summing(stage);
        fv_region      *regions = step < 0 ? NULL : fv__alloc((size_t)stage->nsteps * sizeof *regions);
        for (int64_t task = 0; task < stage->ntasks && step >= 0; task++) {
            int64_t        index;
            fv_region      chunk = fv__stage_chunk(stage, task, &index);
            const fv_node *node = stage->steps[step].node;
            fv__stage_regions(plan, stage, &chunk, regions);
            fv_need need = fv__node_need(plan, node, fv__op_image_pass(node->op), &regions[step]);
            total += (int64_t)sum_of(&stage->steps[step])->bytes(&need);
        }
        free(regions);
    }
    return total;
}

/* ---------------------------------------------------------------- how far it can go */

typedef struct window { /* planes of a step's first input */
    const fv_node *node;
    int            axis;
    int64_t        from, until;
} window;

static void narrow(void *context, const fv_node *node, fv_region *in) {
    const window *w = context;
    if (node != w->node) return;
    in[0].start[w->axis] = w->from;
    in[0].size[w->axis] = w->until - w->from;
}

/* Whether all that planes [from, until) are made of has come: `there` planes of the image that grows, along its first axis. */
static bool is_there(const fv_instance *instance, const fv_stage *stage, int step, const fv_region *region, window *w) {
    fv_region *regions = fv__alloc((size_t)stage->nsteps * sizeof *regions);
    bool       there = true;
    fv__stage_regions_of_step(instance->plan, stage, step, region, (fv_chosen){ .narrow = narrow, .context = w }, regions);
    for (int s = 0; s < step && there; s++) {
        bool grows = stage->steps[s].node->op->role == FV_OP_PROVIDED && regions[s].ndim;
        there = !grows || regions[s].start[0] + regions[s].size[0] <= instance->planes;
    }
    free(regions);
    return there;
}

int64_t fv__sum_until(const fv_instance *instance, const fv_stage *stage, int step, const fv_region *region, int64_t from) {
    const fv_node     *node = stage->steps[step].node;
    const fv_pass_sum *sum = sum_of(&stage->steps[step]);
    fv_need            need = fv__node_need(instance->plan, node, fv__op_image_pass(node->op), region);
    window             w = { node, sum->axis(&need), from, 0 };
    int64_t            low = from, high = node->in[0]->type.image.shape[w.axis];
    while (low < high) { /* planes before low have come */
        w.until = (low + high + 1) / 2;
        if (is_there(instance, stage, step, region, &w))
            low = w.until;
        else
            high = w.until - 1;
    }
    return FV_MAX(from, sum->until(&need, low));
}
