/* Sources of jobs: what a process takes of a run that it shares with others.
 *
 * A process walks the batches of a stage in rounds, from a place of its own: those that are done are passed over, those of others
 * are left to them. When a round finds nothing to do, either all is done and somebody takes the end of the stage, or others are
 * at work: then a new round begins a little later, or, where waiting is not our duty, we are through with the stage.
 */
#include "base/file.h"
#include "run/scheduler_parts.h"
#include "run/temporaries.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAUSE 0.25         /* seconds between rounds */
#define LONGEST_WAIT 120.0 /* for others who name outputs */

static int64_t batches(int64_t count) { return (count + fv__claims_batch(count) - 1) / fv__claims_batch(count); }

/* Where this process begins: equals meet rarely, unless what comes first is what matters. */
static int64_t first_batch(const fv_scheduler *s, int64_t nbatches) {
    return s->settings->order == FV_ORDER_MEMORY ? fv__claims_first(s->claims, nbatches) : 0;
}

/* ---------------------------------------------------------------- a stage of a shared item */

static void fail_item(fv_scheduler *s, fv_item *item, int stage, int64_t task) {
    item->failed = true;
    fv__claims_blame(s->claims, item->number, stage, task, &item->error);
}

/* Whether somebody died on it so often that it is not tried here, or not any more. */
static bool is_left(fv_scheduler *s, fv_item *item, int stage, int64_t task, int *strikes) {
    *strikes = fv__claims_strikes(s->claims, item->number, stage, task);
    if (*strikes >= FV_STRIKES) fail_item(s, item, stage, task);
    return *strikes > s->share->level || item->failed;
}

/* Whether everything the stage is for is there, perhaps by others. No task of it may be out. */
static bool complete_now(fv_scheduler *s, fv_item *item, const fv_stage *stage) {
    fv_instance *instance = item->instance;
    for (int t = 0; t < stage->ntargets; t++) {
        if (stage->targets[t].kind != FV_TARGET_SINK) continue;
        fv_output *output = fv__instance_output(instance, &stage->targets[t]);
        if (fv__output_current(output)) continue;
        if (!fv__outputs_current(s->outputs, output)) return false;
        fv__output_is_current(output);
    }
    return fv__stage_complete(instance, stage);
}

static bool batch_done(const fv_item *item, const fv_stage *stage, int64_t from, int64_t to) {
    if (stage->serial) return false; /* complete_now has looked */
    for (int64_t t = from; t < to; t++)
        if (!fv__task_done(item->instance, stage, t)) return false;
    return true;
}

/* Next task of the batch being handed out, or of the next batch that can be had. */
static bool next_task(fv_scheduler *s, fv_item *item, int index, fv_job *job) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    int64_t         size = fv__claims_batch(state->limit), nbatches = batches(state->limit);
    for (;;) {
        for (; state->cursor < state->end; state->cursor++) {
            int strikes;
            if (!stage->serial && fv__task_done(item->instance, stage, state->cursor)) continue;
            if (is_left(s, item, index, state->cursor, &strikes)) {
                state->left = true;
                continue;
            }
            if (strikes && s->out > 0) s->quiet = true; /* it comes when nothing else is out */
            if (s->quiet) return false;
            job->task = state->cursor++;
            job->alone = s->alone = strikes > 0;
            job->claim = state->claim;
            fv__claim_use(job->claim);
            return true;
        }
        if (state->claim) fv__claim_leave(s->claims, state->claim);
        state->claim = NULL;
        if (state->walked == nbatches || item->failed) return false;
        int64_t batch = (first_batch(s, nbatches) + state->walked++) % nbatches;
        int64_t from = batch * size, to = FV_MIN(from + size, state->limit);
        if (batch_done(item, stage, from, to)) continue;
        state->claim = fv__claims_take(s->claims, index, batch);
        if (!state->claim)
            state->others = true;
        else {
            fv__store_refresh(s->context->store, NULL); /* somebody may have done it who is through with it */
            state->cursor = from;
            state->end = to;
        }
    }
}

/* Others are at work: looks again later, or never. */
static bool later(const fv_scheduler *s, fv_stage_state *state, int index) {
    state->walked = 0;
    state->others = false;
    state->again = fv__now() + PAUSE;
    state->given_up = !s->share->wait && index >= s->share->stage; /* earlier stages hinder us: we wait for them */
    return false;
}

static bool give_up(fv_stage_state *state) {
    state->given_up = true;
    return false;
}

/* All tasks are done: the end of the stage, by one of us. */
static bool end_job(fv_scheduler *s, fv_item *item, int index, fv_job *job) {
    fv_stage_state *state = &item->stages[index];
    int             strikes;
    if (index == s->share->stage && !s->share->end) return give_up(state);
    if (!state->end_memory) state->end_memory = 1 + fv__stage_end_memory(item->instance, &item->instance->plan->stages[index]);
    if (!fv__fits(s, 0, state->end_memory, 0)) return false;
    fv_claim *claim = fv__claims_take(s->claims, index, -1);
    if (!claim) return later(s, state, index);
    bool left = is_left(s, item, index, -1, &strikes);
    if (!left && !complete_now(s, item, &item->instance->plan->stages[index])) {
        job->kind = FV_JOB_END;
        job->task = state->limit;
        job->memory = state->end_memory;
        job->claim = claim;
        return true;
    }
    fv__claim_leave(s->claims, claim);
    state->complete = !left;
    return left ? give_up(state) : false;
}

static bool claimed_job(fv_scheduler *s, fv_item *item, int index, int place, bool help, fv_job *job) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    if (state->complete || state->given_up || item->failed || fv__now() < state->again) return false;
    if (s->share->stage >= 0 && index > s->share->stage) return give_up(state);
    if (state->walked == 0 && state->out == 0 && complete_now(s, item, stage)) {
        state->complete = true;
        return false;
    }
    *job = (fv_job){ .kind = FV_JOB_TASK, .item = item, .instance = item->instance, .stage = index, .memory = stage->memory };
    if (!fv__fits(s, 0, stage->memory, stage->shared)) return false;
    (void)place; /* there is no other where tasks are claimed */
    (void)help;
    if (next_task(s, item, index, job)) return true;
    if (state->out > 0 || s->quiet || item->failed || state->walked < batches(state->limit)) return false;
    if (state->left) return give_up(state);
    return state->others ? later(s, state, index) : end_job(s, item, index, job);
}

/* Others may need a branch that is not ours; there is nothing to let go. */
static void skip(fv_scheduler *s, fv_item *item, int index) {
    (void)s;
    item->stages[index].complete = true;
}

/* Stages come after those they need. */
static bool claimed_over(const fv_item *item) {
    const fv_plan *plan = item->instance->plan;
    bool          *blocked = fv__calloc((size_t)plan->nstages + 1), over = true;
    for (int k = 0; k < plan->nstages && over; k++) {
        if (!item->stages[k].needed || item->stages[k].complete) continue;
        blocked[k] = item->stages[k].given_up;
        for (int i = 0; i < plan->stages[k].nneeds; i++) blocked[k] = blocked[k] || blocked[plan->stages[k].needs[i]];
        over = blocked[k];
    }
    free(blocked);
    return over;
}

static fv_status whole(fv_scheduler *s, const fv_item *item, fv_error *error) {
    for (int k = 0; k < item->instance->plan->nstages; k++) {
        const fv_stage_state *state = &item->stages[k];
        if (!state->needed || state->complete) continue;
        for (int64_t task = -1; task < state->limit; task++)
            if (fv__claims_strikes(s->claims, item->number, k, task) > s->share->level) {
                fv__claims_blame(s->claims, item->number, k, task, error);
                return error->code;
            }
        return fv_fail(error, FV_ERROR_INTERNAL, "stage %d could not be completed", k + 1);
    }
    return FV_OK;
}

static fv_status lock(const fv_scheduler *s, fv_lease **lease, fv_error *error) {
    char     *path = fv__sprintf("%s/claims/outputs", s->share->run_folder);
    fv_hash   dead;
    fv_status status;
    double    start = fv__now();
    while ((status = fv__lease_try(path, lease, &dead, error)) == FV_ERROR_BUSY && fv__now() - start < LONGEST_WAIT)
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    free(path);
    return status;
}

/* Before the end of a stage: removes what others left who died while they put its files together. */
static void tidy(const fv_job *job) {
    const fv_stage *stage = &job->instance->plan->stages[job->stage];
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        if (target->kind != FV_TARGET_SINK || target->file->layout.parallel) continue;
        const fv_output *output = fv__instance_output(job->instance, target);
        if (!fv__output_current(output)) fv__temporaries_tidy(output->path);
    }
}

/* ---------------------------------------------------------------- items */

static bool only_item(fv_scheduler *s, fv_item *next) {
    if (s->next_item > 0) return false;
    next->number = s->next_item++;
    return true;
}

static bool only_item_over(const fv_scheduler *s) { return s->next_item > 0; }

/* Next item of the batch being handed out. */
static bool item_of_batch(fv_scheduler *s, fv_item *next) {
    while (s->next_item < s->batch_end) {
        int64_t number = s->next_item;
        int     strikes = s->batch_over ? 0 : fv__claims_strikes(s->claims, number, -1, -1); /* done in spite of them */
        if (strikes && strikes <= s->share->level && s->nopen > 0) return false; /* it comes when nothing else is open */
        s->next_item++;
        if (strikes > s->share->level && !s->share->finish) {
            fv__claim_left(s->batch);
            continue;
        }
        next->number = number;
        next->strikes = strikes;
        next->claim = s->batch;
        fv__claim_use(s->batch);
        return true;
    }
    return false;
}

/* All batches of the segment were looked at: whether there is a next one to look at. */
static bool next_segment(fv_scheduler *s) {
    bool last = s->segment + 1 == s->context->bindings->nsegments;
    if (s->others && (s->share->wait || !last)) { /* later segments use what others still make */
        s->walked = 0;
        s->others = false;
        s->again = fv__now() + PAUSE;
        return false;
    }
    if (last || s->items) return false;
    s->segment++;
    s->walked = 0;
    return true;
}

static bool claimed_item(fv_scheduler *s, fv_item *next) {
    const fv_bindings *bindings = s->context->bindings;
    if (s->suspect || fv__now() < s->again) return false;
    if (!s->taken) {
        s->taken = fv__calloc((size_t)fv__item_batches(bindings) + 1);
        s->order = fv__item_order(s, true);
    }
    for (;;) {
        if (item_of_batch(s, next)) return true;
        if (s->next_item < s->batch_end) return false;
        if (s->batch) fv__claim_leave(s->claims, s->batch);
        s->batch = NULL;
        fv_lot lot = fv__lot_of(bindings, s->segment);
        if (s->walked == lot.batches) {
            if (!next_segment(s)) return false;
            continue;
        }
        int64_t place = lot.batch + (first_batch(s, lot.batches) + s->walked++) % lot.batches;
        int64_t batch = s->order ? s->order[place] : place;
        bool    over = fv__claims_over(s->claims, batch);
        if (s->taken[batch] || (over && !s->share->finish)) continue; /* the last process looks at everything itself */
        s->batch = fv__claims_take(s->claims, -1, batch);
        if (!s->batch)
            s->others = true;
        else {
            s->taken[batch] = true;
            s->batch_over = over;
            fv__lot_units(bindings, batch, &s->next_item, &s->batch_end);
        }
    }
}

static bool claimed_items_over(const fv_scheduler *s) {
    const fv_bindings *bindings = s->context->bindings;
    return !s->batch && s->segment + 1 == bindings->nsegments && s->walked == fv__lot_of(bindings, s->segment).batches &&
           !(s->others && s->share->wait);
}

/* ---------------------------------------------------------------- running and giving back */

static const char *item_point(const fv_job *job, char name[40]) { /* for tests: where a certain item kills its worker */
    snprintf(name, 40, "item-%lld", (long long)job->item->number);
    return name;
}

static void set_left(fv_scheduler *s, fv_claim *claim) {
    pthread_mutex_lock(&s->mutex);
    fv__claim_left(claim);
    pthread_mutex_unlock(&s->mutex);
}

/* Says what is done while it is, for those who find us dead. */
static fv_status run(fv_scheduler *s, fv_job *job, fv_worker *worker, fv_error *error) {
    if (job->kind == FV_JOB_OPEN && job->item->strikes > s->share->level) {
        set_left(s, job->item->claim);
        fv__claims_blame(s->claims, job->item->number, -1, -1, error);
        return error->code;
    }
    char name[40];
    int  slot, stage = job->kind == FV_JOB_OPEN ? -1 : job->stage;
    fv__claims_do(s->claims, job->item->number, stage, job->kind == FV_JOB_TASK ? job->task : -1, &slot);
    if (job->kind == FV_JOB_END && s->source->joint) tidy(job);
    fv_status status = fv__fault_point(item_point(job, name), error);
    if (status == FV_OK) status = fv__job_perform(s, job, worker, error);
    fv__claims_did(s->claims, slot);
    return status;
}

static bool taken_over(const fv_job *job) { return job->claim && !fv__claim_held(job->claim); }
static void leave(fv_scheduler *s, fv_claim *claim) { fv__claim_leave(s->claims, claim); }
static bool unsettled(const fv_scheduler *s) { return fv__claims_unsettled(s->claims) && fv__now() - s->settled > 1; }

static void settle(fv_scheduler *s) {
    fv_error  error = { 0 };
    fv_status status = fv__outputs_commit(s->outputs, &error);
    if (status == FV_OK) status = fv__claims_settle(s->claims, &s->mutex, &error);
    pthread_mutex_lock(&s->mutex);
    s->settled = fv__now();
    pthread_mutex_unlock(&s->mutex);
    if (status != FV_OK) fv__scheduler_stop(s, status, &error);
}

const fv_task_source fv__claimed_items_source = { .way = FV_OUTPUT_OWN,
                                                  .item = claimed_item,
                                                  .items_over = claimed_items_over,
                                                  .job = fv__stage_next,
                                                  .skip = fv__stage_skip,
                                                  .over = fv__stages_over,
                                                  .taken_over = taken_over,
                                                  .leave = leave,
                                                  .unsettled = unsettled,
                                                  .run = run,
                                                  .settle = settle };

const fv_task_source fv__claimed_tasks_source = { .way = FV_OUTPUT_JOINT,
                                                  .joint = true,
                                                  .item = only_item,
                                                  .items_over = only_item_over,
                                                  .job = claimed_job,
                                                  .skip = skip,
                                                  .over = claimed_over,
                                                  .taken_over = taken_over,
                                                  .leave = leave,
                                                  .unsettled = unsettled,
                                                  .run = run,
                                                  .settle = settle,
                                                  .lock = lock,
                                                  .whole = whole };
