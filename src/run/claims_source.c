/* Sources of jobs: what a process takes of a run that it shares with others.
 *
 * A process walks the batches of a stage in rounds, from a place of its own: those that are done are passed over, those of others
 * are left to them. When a round finds nothing to do, either all is done and somebody takes the end of the stage, or others are
 * at work: then a new round begins a little later, or, where waiting is not our duty, we are through with the stage.
 *
 * What only files can tell is a question: whether a batch can be had, whether others have completed a stage. `item` and `job` ask
 * it under the scheduler's mutex and go no further; `look` finds the answer without the mutex, and notes it under the mutex
 * again.
 *
 * 1. There is one question at a time. While it is asked and nobody looks yet, nothing is handed out: what was asked comes first.
 * 2. An item that a question is about counts as having a job out, so that it stays open.
 * 3. Whether a stage is complete is asked only while none of its tasks is out, and none goes out before the answer.
 */
#include "run/claims_source.h"
#include "base/file.h"
#include "run/near_batches.h"
#include "run/scheduler_parts.h"
#include "run/temporaries.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAUSE 0.25         /* seconds between rounds, at most */
#define FIRST_PAUSE 0.01   /* the first one; each is twice as long as the one before */
#define LONGEST_WAIT 120.0 /* for others who name outputs */
#define NEIGHBOURS 16      /* batches from which the one that lies nearest is taken */

typedef enum question_kind { NOTHING, ITEMS, TASKS, COMPLETE, END, BLAME } question_kind;

typedef struct question {
    question_kind kind;
    fv_item      *item;
    int           stage;
    int64_t       number; /* of a batch, or (BLAME) of a task */
} question;

typedef struct answer {
    fv_claim *claim;          /* NULL: others have it */
    bool      over, complete; /* the batch of items; the stage */
    int       strikes;        /* END */
    fv_error  error;          /* BLAME, and END after so many strikes */
} answer;

/* The state of the source. All of it is guarded by the scheduler's mutex. */
typedef struct claimed {
    fv_claims      *claims;
    const fv_share *share;
    question        asked;
    bool            looking; /* a thread finds the answer */
    double          settled;
    /* of claimed items */
    fv_claim        *batch; /* being handed out: items from next to end */
    int64_t          next, end, walked;
    bool            *taken;        /* by batch: by us */
    int64_t         *order;        /* of batches; NULL: as they come */
    fv_near_batches *near;         /* NULL: nobody knows where files lie */
    bool             others;       /* have batches that were met in this round */
    bool             over;         /* the batch was, before we took it */
    double           again, pause; /* when the next round may begin, and how long that was away */
} claimed;

typedef struct claimed_stage {
    fv_claim *claim; /* batch being handed out: tasks from cursor to end */
    int64_t   cursor, end;
    int64_t   walked;       /* batches looked at in this round */
    fv_claim *end_claim;    /* of the stage's end, which is handed out next */
    bool      looked;       /* found in this round: it was not complete */
    bool      others, left; /* found in this round: batches of others, work that is left to a later try */
    bool      given_up;     /* nothing here for this process any more */
    double    again, pause; /* as those of items */
} claimed_stage;

typedef struct claimed_unit { /* of an item */
    fv_claim      *claim;     /* of its batch; NULL: its tasks are claimed */
    int            strikes;   /* somebody died on it */
    claimed_stage *stages;
    int            nstages;
} claimed_unit;

static claimed *state_of(const fv_scheduler *s) { return s->source_state; }

static claimed_stage *stage_of(const fv_item *item, int index) { return &((claimed_unit *)item->of_source)->stages[index]; }

static bool ask(fv_scheduler *s, question_kind kind, fv_item *item, int stage, int64_t number) {
    claimed *c = state_of(s);
    if (!c->asked.kind) c->asked = (question){ kind, item, stage, number };
    return false;
}

/* Whether what was asked has to be looked at first. */
static bool must_look(const claimed *c) { return c->asked.kind && !c->looking; }

static int64_t batches(int64_t count) { return (count + fv__claims_batch(count) - 1) / fv__claims_batch(count); }

/* Where this process begins: equals meet rarely, unless what comes first is what matters. */
static int64_t first_batch(const fv_scheduler *s, int64_t nbatches) {
    return s->settings->order == FV_ORDER_MEMORY ? fv__claims_first(state_of(s)->claims, nbatches) : 0;
}

/* ---------------------------------------------------------------- a stage of a shared item */

/* Without the mutex. Whether everything the stage is for is there, perhaps by others. */
static bool complete_now(fv_scheduler *s, const fv_item *item, const fv_stage *stage) {
    const fv_instance *instance = item->instance;
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

/* Next task of the batch being handed out. */
static bool task_of_batch(fv_scheduler *s, fv_item *item, int index, fv_job *job) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    claimed_stage  *own = stage_of(item, index);
    claimed        *c = state_of(s);
    for (; own->cursor < own->end; own->cursor++) {
        if (!stage->serial && fv__task_done(item->instance, stage, own->cursor)) continue;
        int strikes = fv__claims_strikes(c->claims, item->number, index, own->cursor);
        if (strikes >= FV_STRIKES) return ask(s, BLAME, item, index, own->cursor);
        if (strikes > c->share->level) {
            own->left = true;
            continue;
        }
        if (strikes && s->out > 0) s->quiet = true; /* it comes when nothing else is out */
        if (s->quiet) return false;
        job->task = own->cursor++;
        job->alone = s->alone = strikes > 0;
        job->of_source = own->claim;
        fv__claim_use(c->claims, own->claim);
        return true;
    }
    return false;
}

/* Next task of the batch being handed out, or a question for the next batch. */
static bool next_task(fv_scheduler *s, fv_item *item, int index, fv_job *job) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    claimed_stage  *own = stage_of(item, index);
    int64_t         limit = item->stages[index].limit, size = fv__claims_batch(limit), nbatches = batches(limit);
    if (task_of_batch(s, item, index, job)) return true;
    if (own->cursor < own->end) return false;
    if (own->claim) fv__claim_leave(state_of(s)->claims, own->claim);
    own->claim = NULL;
    for (; own->walked < nbatches; own->walked++) {
        int64_t batch = (first_batch(s, nbatches) + own->walked) % nbatches, from = batch * size;
        if (!batch_done(item, stage, from, FV_MIN(from + size, limit))) return ask(s, TASKS, item, index, batch);
    }
    return false;
}

/* Others are at work: when to look again. The first pause is short, because the last ones end at nearly the same time. */
static double later(double *pause) {
    *pause = FV_MIN(FV_MAX(2 * *pause, FIRST_PAUSE), PAUSE);
    return fv__now() + *pause;
}

/* Looks again later, or never. */
static void try_later(const claimed *c, claimed_stage *own, int index) {
    own->walked = 0;
    own->others = own->looked = false;
    own->again = later(&own->pause);
    own->given_up = !c->share->wait && index >= c->share->stage; /* earlier stages hinder us: we wait for them */
}

static bool give_up(claimed_stage *own) {
    own->given_up = true;
    return false;
}

/* All tasks are done: the end of the stage, by one of us. */
static bool end_job(fv_scheduler *s, fv_item *item, int index, fv_job *job) {
    fv_stage_state *state = &item->stages[index];
    claimed_stage  *own = stage_of(item, index);
    const claimed  *c = state_of(s);
    if (index == c->share->stage && !c->share->end) return give_up(own);
    if (!state->end_memory) state->end_memory = 1 + fv__stage_end_memory(item->instance, &item->instance->plan->stages[index]);
    if (!fv__fits(s, 0, state->end_memory, 0)) return false;
    if (!own->end_claim) return ask(s, END, item, index, -1);
    job->kind = FV_JOB_END;
    job->task = state->limit;
    job->memory = state->end_memory;
    job->of_source = own->end_claim;
    own->end_claim = NULL;
    return true;
}

static void begin_stages(fv_item *item) {
    claimed_unit *unit = item->of_source;
    if (unit->stages) return;
    unit->nstages = item->instance->plan->nstages;
    unit->stages = fv__calloc((size_t)(unit->nstages + 1) * sizeof *unit->stages);
}

static bool claimed_job(fv_scheduler *s, fv_item *item, int index, int place, bool help, fv_job *job) {
    const fv_stage       *stage = &item->instance->plan->stages[index];
    const fv_stage_state *state = &item->stages[index];
    const claimed        *c = state_of(s);
    (void)place; /* there is no other where tasks are claimed */
    (void)help;
    begin_stages(item);
    claimed_stage *own = stage_of(item, index);
    if (must_look(c) || (c->asked.item == item && c->asked.stage == index)) return false;
    if (state->complete || own->given_up || item->failed || fv__now() < own->again) return false;
    if (c->share->stage >= 0 && index > c->share->stage) return give_up(own);
    if (own->walked == 0 && state->out == 0 && !own->looked) return ask(s, COMPLETE, item, index, -1);
    *job = (fv_job){ .kind = FV_JOB_TASK, .item = item, .instance = item->instance, .stage = index, .memory = stage->memory };
    if (!fv__task_fits(s, 0, stage)) return false;
    job->cpus = stage->cpus - 1;
    if (next_task(s, item, index, job)) return true;
    job->cpus = 0;
    if (state->out > 0 || s->quiet || own->cursor < own->end || own->walked < batches(state->limit)) return false;
    if (own->left) return give_up(own);
    if (!own->others) return end_job(s, item, index, job);
    try_later(c, own, index);
    return false;
}

/* Others may need a branch that is not ours; there is nothing to let go. */
static void skip(fv_scheduler *s, fv_item *item, int index) {
    (void)s;
    item->stages[index].complete = true;
}

/* Stages come after those they need. */
static bool claimed_over(const fv_item *item) {
    const fv_plan      *plan = item->instance->plan;
    const claimed_unit *unit = item->of_source;
    bool               *blocked = fv__calloc((size_t)plan->nstages + 1), over = true;
    for (int k = 0; k < plan->nstages && over; k++) {
        if (!item->stages[k].needed || item->stages[k].complete) continue;
        blocked[k] = unit->stages && unit->stages[k].given_up;
        for (int i = 0; i < plan->stages[k].nneeds; i++) blocked[k] = blocked[k] || blocked[plan->stages[k].needs[i]];
        over = blocked[k];
    }
    free(blocked);
    return over;
}

static fv_status whole(fv_scheduler *s, const fv_item *item, fv_error *error) {
    const claimed *c = state_of(s);
    for (int k = 0; k < item->instance->plan->nstages; k++) {
        const fv_stage_state *state = &item->stages[k];
        if (!state->needed || state->complete) continue;
        for (int64_t task = -1; task < state->limit; task++)
            if (fv__claims_strikes(c->claims, item->number, k, task) > c->share->level) {
                fv__claims_blame(c->claims, item->number, k, task, error);
                return error->code;
            }
        return fv_fail(error, FV_ERROR_INTERNAL, "stage %d could not be completed", k + 1);
    }
    return FV_OK;
}

static fv_status lock(const fv_scheduler *s, fv_lease **lease, fv_error *error) {
    char     *path = fv__sprintf("%s/claims/outputs", state_of(s)->share->run_folder);
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
    next->of_source = fv__calloc(sizeof(claimed_unit));
    return true;
}

static bool only_item_over(const fv_scheduler *s) { return s->next_item > 0; }

/* Next item of the batch being handed out. */
static bool item_of_batch(fv_scheduler *s, fv_item *next) {
    claimed *c = state_of(s);
    while (c->next < c->end) {
        int64_t number = c->next;
        int     strikes = c->over ? 0 : fv__claims_strikes(c->claims, number, -1, -1); /* done in spite of them */
        if (strikes && strikes <= c->share->level && s->nopen > 0) return false;       /* it comes when nothing else is open */
        c->next++;
        if (strikes > c->share->level && !c->share->finish) {
            fv__claim_left(c->claims, c->batch);
            continue;
        }
        claimed_unit *unit = fv__calloc(sizeof *unit);
        *unit = (claimed_unit){ .claim = c->batch, .strikes = strikes };
        fv__claim_use(c->claims, c->batch);
        next->number = number;
        next->alone = strikes > 0;
        next->of_source = unit;
        return true;
    }
    return false;
}

/* All batches of the segment were looked at: whether there is a next one to look at. */
static bool next_segment(fv_scheduler *s) {
    claimed *c = state_of(s);
    bool     last = s->segment + 1 == s->context->bindings->nsegments;
    if (c->others && (c->share->wait || !last)) { /* later segments use what others still make */
        c->walked = 0;
        c->others = false;
        c->again = later(&c->pause);
        return false;
    }
    if (last || s->items) return false;
    s->segment++;
    c->walked = 0;
    return true;
}

static int64_t count_batches(const fv_bindings *bindings) {
    fv_lot last = fv__lot_of(bindings, bindings->nsegments - 1);
    return last.batch + last.batches;
}

/* By the size of the files of their items, each segment in an order of its own; NULL: as they come. */
static int64_t *order_batches(const fv_scheduler *s) {
    const fv_bindings *bindings = s->context->bindings;
    int64_t            count = count_batches(bindings), first, end;
    if (s->settings->order != FV_ORDER_LONGEST) return NULL;
    double  *weights = fv__calloc((size_t)(count + 1) * sizeof *weights);
    int64_t *order = fv__calloc((size_t)(count + 1) * sizeof *order);
    for (int64_t batch = 0; batch < count; batch++) {
        fv__lot_units(bindings, batch, &first, &end);
        for (int64_t unit = first; unit < end; unit++) weights[batch] += (double)fv__bindings_size(bindings, unit);
    }
    for (int segment = 0; segment < bindings->nsegments; segment++) {
        fv_lot lot = fv__lot_of(bindings, segment);
        fv__order_by_weight(weights, lot.batch, lot.batches, order);
    }
    free(weights);
    return order;
}

static int64_t *plain_order(int64_t count) {
    int64_t *order = fv__calloc((size_t)(count + 1) * sizeof *order);
    for (int64_t i = 0; i < count; i++) order[i] = i;
    return order;
}

/* The first batch. */
static void begin_items(fv_scheduler *s) {
    const fv_bindings *bindings = s->context->bindings;
    claimed           *c = state_of(s);
    c->taken = fv__calloc((size_t)count_batches(bindings) + 1);
    c->order = order_batches(s);
    if (s->settings->order == FV_ORDER_MEMORY && !c->share->finish) c->near = fv__near_batches_new(bindings);
    if (c->near) c->order = plain_order(count_batches(bindings));
}

/* Where the batch stands that comes so many after the first of this process. */
static int64_t place_of(const fv_scheduler *s, fv_lot lot, int64_t walked) {
    return lot.batch + (first_batch(s, lot.batches) + walked) % lot.batches;
}

/* Without the mutex: `order` rests while something is asked. A batch that lies here and soon comes is taken before the one whose
 * turn it is. */
static int64_t take_near(fv_scheduler *s, int64_t batch) {
    const claimed *c = state_of(s);
    fv_lot         lot = fv__lot_of(s->context->bindings, s->segment);
    for (int64_t k = c->walked; c->near && k < FV_MIN(c->walked + NEIGHBOURS, lot.batches); k++) {
        int64_t found = c->order[place_of(s, lot, k)];
        if (c->taken[found] || !fv__near_batches_has(c->near, found)) continue;
        for (int64_t i = k; i > c->walked; i--) c->order[place_of(s, lot, i)] = c->order[place_of(s, lot, i - 1)];
        c->order[place_of(s, lot, c->walked)] = found;
        return found;
    }
    return batch;
}

static bool claimed_item(fv_scheduler *s, fv_item *next) {
    const fv_bindings *bindings = s->context->bindings;
    claimed           *c = state_of(s);
    if (c->asked.kind || fv__now() < c->again) return false;
    if (!c->taken) begin_items(s);
    for (;;) {
        if (item_of_batch(s, next)) return true;
        if (c->next < c->end) return false;
        if (c->batch) fv__claim_leave(c->claims, c->batch);
        c->batch = NULL;
        fv_lot lot = fv__lot_of(bindings, s->segment);
        if (c->walked == lot.batches) {
            if (!next_segment(s)) return false;
            continue;
        }
        int64_t place = place_of(s, lot, c->walked), batch = c->order ? c->order[place] : place;
        if (!c->taken[batch]) return ask(s, ITEMS, NULL, -1, batch);
        c->walked++;
    }
}

static bool claimed_items_over(const fv_scheduler *s) {
    const fv_bindings *bindings = s->context->bindings;
    const claimed     *c = state_of(s);
    return !c->batch && s->segment + 1 == bindings->nsegments && c->walked == fv__lot_of(bindings, s->segment).batches &&
           !(c->others && c->share->wait);
}

/* ---------------------------------------------------------------- questions */

/* Without the mutex: the questions that files answer. */
static void find_answer(fv_scheduler *s, const question *q, answer *a) {
    claimed        *c = state_of(s);
    fv_claims      *claims = c->claims;
    const fv_stage *stage = q->item ? &q->item->instance->plan->stages[q->stage] : NULL;
    switch (q->kind) {
    case ITEMS:
        a->over = fv__claims_over(claims, q->number);
        if (!a->over || c->share->finish)
            a->claim = fv__claims_take(claims, -1, q->number); /* the last one looks at all itself */
        break;
    case TASKS: a->claim = fv__claims_take(claims, q->stage, q->number); break;
    case COMPLETE: a->complete = complete_now(s, q->item, stage); break;
    case END:
        a->claim = fv__claims_take(claims, q->stage, -1);
        if (!a->claim) break;
        a->strikes = fv__claims_strikes(claims, q->item->number, q->stage, -1);
        if (a->strikes >= FV_STRIKES) fv__claims_blame(claims, q->item->number, q->stage, -1, &a->error);
        a->complete = a->strikes <= c->share->level && complete_now(s, q->item, stage);
        break;
    case BLAME: fv__claims_blame(claims, q->item->number, q->stage, q->number, &a->error); break;
    case NOTHING: break;
    }
}

static void fail_item(fv_item *item, const fv_error *error) {
    if (item->failed) return;
    item->failed = true;
    item->error = *error;
}

static void note_items(fv_scheduler *s, const question *q, const answer *a) {
    claimed *c = state_of(s);
    c->walked++;
    c->batch = a->claim;
    c->over = a->over;
    if (a->claim) {
        c->taken[q->number] = true;
        c->pause = 0;
        fv__lot_units(s->context->bindings, q->number, &c->next, &c->end);
    } else if (!a->over || c->share->finish)
        c->others = true;
}

static void note_tasks(const question *q, const answer *a) {
    claimed_stage *own = stage_of(q->item, q->stage);
    int64_t        limit = q->item->stages[q->stage].limit, size = fv__claims_batch(limit);
    own->walked++;
    own->claim = a->claim;
    if (a->claim) {
        own->cursor = q->number * size;
        own->end = FV_MIN(own->cursor + size, limit);
    } else
        own->others = true;
}

static void note_end(fv_scheduler *s, const question *q, const answer *a) {
    const claimed *c = state_of(s);
    claimed_stage *own = stage_of(q->item, q->stage);
    if (!a->claim) {
        try_later(c, own, q->stage);
        return;
    }
    if (a->strikes >= FV_STRIKES) fail_item(q->item, &a->error);
    bool left = a->strikes > c->share->level;
    if (!left && !a->complete) {
        own->end_claim = a->claim;
        return;
    }
    fv__claim_leave(c->claims, a->claim);
    q->item->stages[q->stage].complete = !left;
    own->given_up = left;
}

static bool look(fv_scheduler *s) {
    claimed *c = state_of(s);
    answer   a = { 0 };
    if (!must_look(c)) return false;
    question q = c->asked;
    c->looking = true;
    if (q.item) q.item->out++;
    pthread_mutex_unlock(&s->mutex);
    if (q.kind == ITEMS) q.number = take_near(s, q.number);
    find_answer(s, &q, &a);
    pthread_mutex_lock(&s->mutex);
    if (q.item) q.item->out--;
    c->looking = false;
    c->asked = (question){ 0 };
    switch (q.kind) {
    case ITEMS: note_items(s, &q, &a); break;
    case TASKS: note_tasks(&q, &a); break;
    case COMPLETE:
        q.item->stages[q.stage].complete = a.complete;
        stage_of(q.item, q.stage)->looked = true;
        break;
    case END: note_end(s, &q, &a); break;
    case BLAME: fail_item(q.item, &a.error); break;
    case NOTHING: break;
    }
    return true;
}

/* ---------------------------------------------------------------- running and giving back */

static const char *item_point(const fv_job *job, char name[40]) { /* for tests: where a certain item kills its worker */
    snprintf(name, 40, "item-%lld", (long long)job->item->number);
    return name;
}

/* Says what is done while it is, for those who find us dead. */
static fv_status run(fv_scheduler *s, fv_job *job, fv_worker *worker, fv_error *error) {
    const claimed_unit *unit = job->item->of_source;
    const claimed      *c = state_of(s);
    if (job->kind == FV_JOB_OPEN && unit->strikes > c->share->level) {
        fv__claim_left(c->claims, unit->claim);
        fv__claims_blame(c->claims, job->item->number, -1, -1, error);
        return error->code;
    }
    char name[40];
    int  slot, stage = job->kind == FV_JOB_OPEN ? -1 : job->stage;
    fv__claims_do(c->claims, job->item->number, stage, job->kind == FV_JOB_TASK ? job->task : -1, &slot);
    if (job->kind == FV_JOB_END && s->source->joint) tidy(job);
    fv_status status = fv__fault_point(item_point(job, name), error);
    if (status == FV_OK) status = fv__job_perform(s, job, worker, error);
    fv__claims_did(c->claims, slot);
    return status;
}

static bool taken_over(const fv_job *job) { return job->of_source && !fv__claim_held(job->of_source); }

static void leave(fv_scheduler *s, void *claim) {
    if (claim) fv__claim_leave(state_of(s)->claims, claim);
}

static void leave_item(fv_scheduler *s, fv_item *item) {
    claimed_unit *unit = item->of_source;
    leave(s, unit->claim);
    for (int k = 0; unit->stages && k < unit->nstages; k++) {
        leave(s, unit->stages[k].claim);
        leave(s, unit->stages[k].end_claim);
    }
    free(unit->stages);
    free(unit);
}

static bool unsettled(const fv_scheduler *s) {
    return fv__claims_unsettled(state_of(s)->claims) && fv__now() - state_of(s)->settled > 1;
}

static void settle(fv_scheduler *s) {
    fv_error  error = { 0 };
    fv_status status = fv__outputs_commit(s->outputs, &error);
    if (status == FV_OK) status = fv__claims_settle(state_of(s)->claims, &error);
    pthread_mutex_lock(&s->mutex);
    state_of(s)->settled = fv__now();
    pthread_mutex_unlock(&s->mutex);
    if (status != FV_OK) fv__scheduler_stop(s, status, &error);
}

static void release(void *state) {
    claimed *c = state;
    free(c->taken);
    free(c->order);
    fv__near_batches_free(c->near);
    free(c);
}

static const fv_task_source items_source = { .way = FV_OUTPUT_OWN,
                                             .shared = true,
                                             .item = claimed_item,
                                             .items_over = claimed_items_over,
                                             .job = fv__stage_next,
                                             .skip = fv__stage_skip,
                                             .over = fv__stages_over,
                                             .look = look,
                                             .leave = leave,
                                             .leave_item = leave_item,
                                             .unsettled = unsettled,
                                             .taken_over = taken_over,
                                             .run = run,
                                             .settle = settle,
                                             .release = release };

static const fv_task_source tasks_source = { .way = FV_OUTPUT_JOINT,
                                             .shared = true,
                                             .joint = true,
                                             .item = only_item,
                                             .items_over = only_item_over,
                                             .job = claimed_job,
                                             .skip = skip,
                                             .over = claimed_over,
                                             .look = look,
                                             .leave = leave,
                                             .leave_item = leave_item,
                                             .unsettled = unsettled,
                                             .taken_over = taken_over,
                                             .run = run,
                                             .settle = settle,
                                             .lock = lock,
                                             .whole = whole,
                                             .release = release };

void fv__claims_source_use(fv_scheduler *s, fv_claims *claims, const fv_share *share) {
    claimed *c = fv__calloc(sizeof *c);
    *c = (claimed){ .claims = claims, .share = share };
    s->source = s->context->bindings->collection ? &items_source : &tasks_source;
    s->source_state = c;
    s->gathers = share->finish;
}
