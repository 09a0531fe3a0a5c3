/* A source of jobs: all of a run, for this process and its workers alone. */
#include "exec/sampled.h"
#include "run/scheduler_parts.h"
#include <stdlib.h>

/* ---------------------------------------------------------------- stages */

/* A task that has to be run; passes over those that are done. */
static bool take_task(fv_scheduler *s, fv_item *item, int index, int place, bool help, int64_t *task) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    if (!fv__task_fits(s, place, stage)) return false;
    while (state->sampled ? fv__sampled_take(s, item, index, task) : fv__watched_take(s, item, index, place, help, task)) {
        if (stage->serial || !fv__task_done(item->instance, stage, *task)) return true;
        if (state->sampled) fv__sampled_back(state->sampled, *task);
        state->done++;
        state->found++;
        item->tasks_done++;
        s->progress.tasks_done++;
    }
    return false;
}

/* Of a stage that is not needed after all only the end is left, which lets what it would have read go. */
void fv__stage_skip(fv_scheduler *s, fv_item *item, int index) {
    fv_stage_state *state = &item->stages[index];
    item->tasks_done += state->limit - state->done;
    s->progress.tasks_done += state->limit - state->done;
    state->done = state->limit;
    if (!state->ranges) state->ranges = fv__task_ranges_new(0, s->nplaces, item->home);
}

/* Whether places exchange what the stage stores. */
static bool is_shared(const fv_scheduler *s, const fv_stage *stage) {
    int64_t bytes = s->most_exchanged && !s->context->bindings->collection ? fv__stage_joint(stage) : 0;
    return bytes > 0 && bytes <= s->most_exchanged;
}

static void begin_stage(fv_scheduler *s, fv_item *item, int index) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    state->ranges = fv__task_ranges_new(state->limit, s->nplaces, item->home);
    if (fv__stage_sampling(stage)) fv__sampled_begin(s, item, index);
    if (is_shared(s, stage)) {
        state->makers = fv__alloc((size_t)(stage->ntasks + 1) * sizeof *state->makers);
        for (int64_t i = 0; i < stage->ntasks; i++) state->makers[i] = -1;
    }
    fv__watched_begin(s, item, index);
}

static bool end_job(fv_scheduler *s, fv_item *item, int index, int place, bool help, fv_job *job) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    if (state->sampled ? !fv__sampled_at_end(state) : state->ranges->left > 0 || state->out > 0 || state->done < state->limit)
        return false;
    if (place != item->home && !help) return false;
    if (!state->end_memory) state->end_memory = 1 + fv__stage_end_memory(item->instance, stage);
    if (!fv__fits(s, place, state->end_memory, 0)) return false;
    job->kind = FV_JOB_END;
    job->memory = state->end_memory;
    return true;
}

bool fv__stage_next(fv_scheduler *s, fv_item *item, int index, int place, bool help, fv_job *job) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    int64_t         task;
    if (!state->ranges) begin_stage(s, item, index);
    *job = (fv_job){ .kind = FV_JOB_TASK, .item = item, .instance = item->instance, .stage = index, .place = place };
    if (state->sampled && end_job(s, item, index, place, help, job)) return true; /* rather than tasks that may not be needed */
    if (!take_task(s, item, index, place, help, &task)) return end_job(s, item, index, place, help, job);
    job->task = task;
    job->memory = stage->memory;
    job->cpus = stage->cpus - 1;
    return true;
}

bool fv__stages_over(const fv_item *item) {
    for (int k = 0; k < item->instance->plan->nstages; k++)
        if (item->stages[k].needed && !item->stages[k].complete) return false;
    return true;
}

/* ---------------------------------------------------------------- items */

/* Units of a segment begin when those of all earlier ones are over: they may use what these have made. */
static bool segment_reached(fv_scheduler *s, int64_t unit) {
    int segment = fv__bindings_unit(s->context->bindings, unit).segment;
    if (segment > s->segment && s->items) return false;
    s->segment = FV_MAX(s->segment, segment);
    return true;
}

/* By the size of their files, each segment in an order of its own; NULL: as they come. */
static int64_t *order_items(const fv_scheduler *s) {
    const fv_bindings *bindings = s->context->bindings;
    if (s->settings->order != FV_ORDER_LONGEST) return NULL;
    double  *weights = fv__calloc((size_t)(bindings->nunits + 1) * sizeof *weights);
    int64_t *order = fv__calloc((size_t)(bindings->nunits + 1) * sizeof *order);
    for (int64_t unit = 0; unit < bindings->nunits; unit++) weights[unit] = (double)fv__bindings_size(bindings, unit);
    for (int k = 0; k < bindings->nsegments; k++)
        fv__order_by_weight(weights, bindings->segments[k].first, bindings->segments[k].count, order);
    free(weights);
    return order;
}

static bool next_item(fv_scheduler *s, fv_item *item) {
    if (s->next_item >= s->context->bindings->nunits) return false;
    if (s->next_item == 0 && !s->order) s->order = fv__items_order(s);
    if (s->next_item == 0 && !s->order) s->order = order_items(s);
    int64_t next = fv__items_next(s);
    item->number = s->order ? s->order[next] : next;
    if (!segment_reached(s, item->number)) return false;
    s->items_given = s->next_item;
    s->next_item = next + 1;
    return true;
}

static bool items_over(const fv_scheduler *s) { return s->next_item >= s->context->bindings->nunits; }

const fv_task_source fv__whole_source = { .way = FV_OUTPUT_ALONE,
                                          .item = next_item,
                                          .items_over = items_over,
                                          .job = fv__stage_next,
                                          .skip = fv__stage_skip,
                                          .over = fv__stages_over };
