/* Stages of which a part of the tasks may be enough: they are handed out in random order, up to the next size at which the sample
 * is looked at, or until the time is over. What is known then is decided at the end of the stage (exec/sampled.c), by whoever
 * runs it; here only more tasks are handed out if that was not enough. */
#include "exec/sampled.h"
#include "run/scheduler_parts.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct fv_sampled {
    int64_t *order;
    int64_t  next, limit; /* handed out, and to be handed out before the sample is looked at */
    double   deadline;    /* 0: none */
    double   started;
    int64_t  looks, due; /* at it while it goes on, and how many tasks the next one waits for */
} fv_sampled;

void fv__sampled_begin(fv_scheduler *s, fv_item *item, int index) {
    const fv_stage    *stage = &item->instance->plan->stages[index];
    const fv_sampling *sampling = fv__stage_sampling(stage);
    fv_sampled        *sampled = fv__calloc(sizeof *sampled);
    *sampled = (fv_sampled){ .order = fv__sampling_order((uint64_t)sampling->seed, stage->ntasks), .started = fv__now() };
    sampled->limit = sampling->time ? stage->ntasks : fv__sampling_next(0, stage->ntasks);
    if (sampling->time) sampled->deadline = (sampling->whole ? s->started : sampled->started) + sampling->time;
    item->stages[index].sampled = sampled;
}

void fv__sampled_free(fv_sampled *sampled) {
    if (sampled) free(sampled->order);
    free(sampled);
}

/* One that would be over too late is not begun; the first one always is. */
static bool in_time(const fv_scheduler *s, const fv_stage_state *state, const fv_sampled *sampled) {
    double now = fv__now();
    if (!sampled->deadline || !sampled->next) return true;
    int64_t done = state->done - state->found;
    double  each = done ? (now - sampled->started) / (double)done * FV_MIN(s->places[0].workers, (double)done) : 0;
    return now + each <= sampled->deadline;
}

bool fv__sampled_take(fv_scheduler *s, fv_item *item, int index, int64_t *task) {
    fv_stage_state *state = &item->stages[index];
    fv_sampled     *sampled = state->sampled;
    if (sampled->next < sampled->limit && !in_time(s, state, sampled)) sampled->limit = sampled->next;
    if (sampled->next >= sampled->limit) return false;
    *task = sampled->order[sampled->next++];
    return true;
}

bool fv__sampled_at_end(const fv_stage_state *state) { return state->sampled->next >= state->sampled->limit && state->out == 0; }

bool fv__sampled_ended(fv_scheduler *s, fv_item *item, int index) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    bool            ended = fv__stage_finished(item->instance, stage);
    pthread_mutex_lock(&s->mutex);
    if (ended) {
        item->tasks_done += state->limit - state->done;
        s->progress.tasks_done += state->limit - state->done;
        state->done = state->limit;
    } else {
        state->sampled->limit = fv__sampling_next(state->sampled->limit, stage->ntasks);
        state->ending = false;
        state->end_memory = 0;
    }
    pthread_mutex_unlock(&s->mutex);
    return ended;
}

/* Mutex held. */
static bool is_due(const fv_scheduler *s, fv_stage_state *state, int64_t tasks) {
    const double patience = 1; /* seconds that need no comment */
    fv_sampled  *sampled = state->sampled;
    int64_t      done = state->done + 1;
    if (!sampled || !s->settings->options.progress || done < sampled->due || fv__now() - s->started < patience) return false;
    sampled->due = fv__sampling_next(done, tasks);
    sampled->looks++;
    return true;
}

void fv__sampled_watch(fv_scheduler *s, fv_item *item, int index) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    const fv_node  *node = stage->targets[0].node;
    fv_interval     e;
    pthread_mutex_lock(&s->mutex);
    bool    due = is_due(s, state, stage->ntasks);
    int64_t look = due ? state->sampled->looks : 0;
    pthread_mutex_unlock(&s->mutex);
    if (!due || !fv__sample_so_far(item->instance, stage, node, look, &e) || isnan(e.low)) return;
    pthread_mutex_lock(&s->mutex);
    snprintf(s->so_far, sizeof s->so_far, "%s %.6g ± %.2g", fv__node_label(node), e.value,
             FV_MAX(e.high - e.value, e.value - e.low));
    s->progress.estimate = s->so_far;
    pthread_mutex_unlock(&s->mutex);
}

static void say_so_far(const fv_node *node, const fv_interval *e) {
    const char *name = fv__node_label(node);
    if (isnan(e->low))
        fv__log("fovea: %s so far: %g (no interval: %lld of %lld chunks are too few to tell one)", name, e->value,
                (long long)e->seen, (long long)e->population);
    else
        fv__log("fovea: %s so far: %g, between %g and %g (%g %%, %lld of %lld chunks)", name, e->value, e->low, e->high,
                100 * e->confidence, (long long)e->seen, (long long)e->population);
}

void fv__scheduler_so_far(fv_scheduler *s) {
    for (fv_item *item = s->items; item; item = item->next)
        for (int k = 0; item->ready && k < item->instance->plan->nstages; k++) {
            const fv_stage *stage = &item->instance->plan->stages[k];
            fv_interval     so_far;
            for (int t = 0; t < stage->ntargets && item->stages[k].sampled && !item->stages[k].complete; t++)
                if (fv__sample_so_far(item->instance, stage, stage->targets[t].node, item->stages[k].sampled->looks + 1, &so_far))
                    say_so_far(stage->targets[t].node, &so_far);
        }
}
