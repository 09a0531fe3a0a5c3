/* Stages of which a part of the tasks may be enough: they are handed out in random order, up to the next size at which the sample
 * is looked at, or until the time is over. What is known then is decided at the end of the stage (exec/sampled.c), by whoever
 * runs it; here only more tasks are handed out if that was not enough.
 *
 * A worker that would wait for the last tasks before a look, or for the look, takes one of those that may come next: up to the
 * size that is expected to be enough, and half as many again where tasks are brief. What counts is the sample that is looked at,
 * so no result depends on this; tasks that were not needed are known to whoever asks for more. */
#include "exec/sampled.h"
#include "run/scheduler_parts.h"
#include <stdlib.h>

enum { HANDED = 1, BACK = 2 };
static const double BRIEF = 0.02; /* seconds of a task that are no matter */

typedef struct fv_sampled {
    int64_t *order;
    uint8_t *marks;       /* by task */
    int64_t  next, limit; /* handed out, and to be handed out before the sample is looked at */
    int64_t  ready;       /* so many of the first ones are back */
    int64_t  expected;    /* the size that may be enough; 0: unknown */
    int64_t  out;
    bool     careful; /* a task failed that may not be needed: no further one is handed out before the others are looked at */
    bool     over;    /* the sample is good enough */
    bool     timed;
    double   deadline; /* 0: none */
    double   started;
    double   longest; /* seconds of a task, of late */
} fv_sampled;

/* A file that the value is made of and that is read from its start on whatever is asked of it; NULL: there is none. */
static const char *read_in_order(const fv_node *node) {
    const fv_param *file = node->op && !node->ninputs && node->op->layout ? fv__params_file(node->op) : NULL;
    const int64_t   brief = 1 << 20; /* bytes that are read in no time */
    fv_layout       layout = { 0 };
    const char     *found = NULL;
    if (file && fv_image_type_bytes(&node->type.image) >= brief && node->op->layout(node->params, &layout, NULL) == FV_OK &&
        layout.sequential)
        found = *(const char *const *)((const char *)node->params + file->offset);
    for (int i = 0; i < node->ninputs && !found; i++)
        if (node->in[i]) found = read_in_order(node->in[i]);
    return found;
}

static void say_order(fv_scheduler *s, const fv_stage *stage) {
    const char *file = s->said_order || stage->ntasks < 2 ? NULL : read_in_order(stage->targets[0].node);
    if (!file) return;
    s->said_order = true;
    fv__log("fovea: %s can only be read in order, from its start: a sample of it saves computing, but no reading. Of many such "
            "files, "
            "whole files are sampled where they are one image: approx(mean(together(c)), error = 0.01)",
            file);
}

/* A time is that of the whole run, or begins with the value's own tasks. If nothing was done before these, what it took to
 * prepare the run (to start ranks, say) is part of it: whoever asks for a second waits for the command. */
static double start_of_time(const fv_scheduler *s, const fv_sampling *sampling) {
    return sampling->whole || !s->progress.tasks_done ? s->settings->began : fv__now();
}

/* Tasks that may run at once. */
static double workers_of(const fv_scheduler *s) {
    double workers = 0;
    for (int p = 0; p < s->nplaces; p++) workers += s->places[p].workers;
    return workers;
}

/* Seconds for the estimate itself and the end of the run. That of ranks takes longer the longer their start took. */
static double reserve_of(const fv_scheduler *s, const fv_sampled *sampled) {
    const double least = 0.01, of_start = 0.35, most = 0.5, resampling = 3e-5;
    double       ranks = s->engine->ranks ? FV_MIN(of_start * (s->started - s->settings->began), most) : 0;
    return least + ranks + resampling * (double)FV_MIN(sampled->next, 1024);
}

void fv__sampled_begin(fv_scheduler *s, fv_item *item, int index) {
    const fv_stage    *stage = &item->instance->plan->stages[index];
    const fv_sampling *sampling = fv__stage_sampling(stage);
    fv_sampled        *sampled = fv__calloc(sizeof *sampled);
    *sampled = (fv_sampled){ .order = fv__sampling_order(fv__sample_seed(item->instance, stage->targets[0].node), stage->ntasks),
                             .marks = fv__calloc((size_t)stage->ntasks + 1),
                             .timed = sampling->time > 0,
                             .started = fv__now() };
    sampled->limit = sampling->time ? stage->ntasks : fv__sampling_next(0, stage->ntasks);
    int64_t recorded = fv__sample_recorded(item->instance, stage, stage->targets[0].node);
    if (recorded)
        sampled->limit = FV_MIN(recorded, stage->ntasks); /* of items, which are no tasks of this stage, there may be more */
    else if (sampling->time)
        sampled->deadline = start_of_time(s, sampling) + sampling->time;
    item->stages[index].sampled = sampled;
    say_order(s, stage);
}

void fv__sampled_free(fv_sampled *sampled) {
    if (sampled) free(sampled->order);
    if (sampled) free(sampled->marks);
    free(sampled);
}

void fv__sampled_back(fv_sampled *sampled, int64_t task) {
    sampled->marks[task] = BACK;
    sampled->out--;
}

bool fv__sampled_done(fv_scheduler *s, const fv_job *job) {
    const double forgotten = 0.8; /* from one task to the next */
    fv_sampled  *sampled = job->item->stages[job->stage].sampled;
    double       took = fv__now() - job->handed;
    pthread_mutex_lock(&s->mutex);
    sampled->longest = FV_MAX(took, forgotten * sampled->longest);
    fv__sampled_back(sampled, job->task);
    bool last = sampled->over && !sampled->out;
    pthread_mutex_unlock(&s->mutex);
    return last;
}

bool fv__sampled_spared(fv_scheduler *s, const fv_job *job, bool *last) {
    fv_sampled   *sampled = job->item->stages[job->stage].sampled;
    const int64_t tasks = job->instance->plan->stages[job->stage].ntasks;
    pthread_mutex_lock(&s->mutex);
    int64_t place = sampled->limit;
    while (place < tasks && sampled->order[place] != job->task) place++;
    bool spared = place < tasks;
    if (spared) {
        sampled->marks[job->task] = 0;
        sampled->next = FV_MIN(sampled->next, place);
        sampled->out--;
        sampled->careful = true;
        *last = sampled->over && !sampled->out;
    }
    pthread_mutex_unlock(&s->mutex);
    return spared;
}

/* One that would be over too late is not begun, even if it takes as long as the longest of late: on a busy machine some take much
 * longer than others. The first one always is. */
static bool in_time(const fv_scheduler *s, const fv_stage_state *state, const fv_sampled *sampled) {
    double now = fv__now();
    if (!sampled->deadline || !sampled->next) return true;
    int64_t done = state->done - state->found;
    double  each = done ? (now - sampled->started) / (double)done * FV_MIN(workers_of(s), (double)done) : 0;
    return now + FV_MAX(1.25 * each, sampled->longest) + reserve_of(s, sampled) <= sampled->deadline;
}

/* So many tasks may be handed out now. The first look may well find enough: until it is taken, nothing comes before it. */
static int64_t limit_of(const fv_sampled *sampled, bool looking, int64_t tasks) {
    if (sampled->over) return 0;
    if (sampled->careful) return sampled->limit;
    bool    brief = sampled->longest > 0 && sampled->longest < BRIEF;
    int64_t more = brief && (looking || sampled->expected) ? sampled->limit / 2 : 0;
    return FV_MIN(FV_MAX(sampled->expected, sampled->limit + more), tasks);
}

bool fv__sampled_take(fv_scheduler *s, fv_item *item, int index, int64_t *task) {
    fv_stage_state *state = &item->stages[index];
    fv_sampled     *sampled = state->sampled;
    if (sampled->next < sampled->limit && !in_time(s, state, sampled)) sampled->limit = sampled->next;
    int64_t limit =
        sampled->timed ? sampled->limit : limit_of(sampled, state->ending, item->instance->plan->stages[index].ntasks);
    while (sampled->next < limit && sampled->marks[sampled->order[sampled->next]]) sampled->next++;
    if (sampled->next >= limit) return false;
    *task = sampled->order[sampled->next++];
    sampled->marks[*task] = HANDED;
    sampled->out++;
    return true;
}

bool fv__sampled_at_end(const fv_stage_state *state) {
    fv_sampled *sampled = state->sampled;
    if (state->ending || sampled->over) return false;
    while (sampled->ready < sampled->limit && sampled->marks[sampled->order[sampled->ready]] == BACK) sampled->ready++;
    return sampled->ready >= sampled->limit;
}

bool fv__sampled_ended(fv_scheduler *s, fv_item *item, int index) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    fv_sampled     *sampled = state->sampled;
    bool            ended = fv__stage_finished(item->instance, stage);
    pthread_mutex_lock(&s->mutex);
    if (ended) {
        int64_t rest = state->limit - state->done - state->out; /* those that are out count when they are back */
        item->tasks_done += rest;
        s->progress.tasks_done += rest;
        state->done += rest;
    } else {
        sampled->limit = fv__sampling_next(sampled->limit, stage->ntasks);
        sampled->expected = fv__sample_expected(item->instance, stage);
        state->ending = false;
        state->end_memory = 0;
    }
    sampled->over = ended;
    ended = ended && !sampled->out;
    pthread_mutex_unlock(&s->mutex);
    return ended;
}
