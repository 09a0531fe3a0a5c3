/* Jobs in a good order: the oldest item first, a new item only when nothing else can be done, memory never above its bound.
 * With several places, each takes what it has begun, then new items, and then helps the others.
 */
#include "base/file.h"
#include "exec/exports.h"
#include "run/results.h"
#include "run/scheduler_parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

fv_scheduler *fv__scheduler_new(const fv_context *context, const fv_run_settings *settings, fv_outputs *outputs,
                                fv_record *record, fv_run_result *result) {
    fv_scheduler *s = fv__calloc(sizeof *s);
    *s = (fv_scheduler){
        .context = context, .settings = settings, .outputs = outputs, .record = record, .result = result, .started = fv__now()
    };
    s->progress.items = context->bindings->nunits;
    fv__scheduler_places(s, &(fv_place){ settings->workers, settings->budget }, 1);
    s->retired = fv__retired_items_new(context->store);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return s;
}

void fv__scheduler_places(fv_scheduler *s, const fv_place *places, int count) {
    s->nplaces = count;
    s->places = fv__realloc(s->places, (size_t)count * sizeof *places);
    memcpy(s->places, places, (size_t)count * sizeof *places);
    free(s->place_memory);
    s->place_memory = fv__calloc((size_t)count * sizeof *s->place_memory);
    s->tightest = places[0].budget;
    s->most_open = 2;
    for (int i = 0; i < count; i++) {
        if (places[i].budget.tasks < s->tightest.tasks) s->tightest = places[i].budget;
        s->most_open += 2 * places[i].workers;
    }
}

void fv__scheduler_on_naming(fv_scheduler *s, fv_naming_hook *hook, void *context) {
    s->naming = hook;
    s->naming_context = context;
}

void fv__scheduler_on_sharing(fv_scheduler *s, const fv_sharing *sharing) { s->sharing = *sharing; }

/* Mutex held: something may be possible now that was not. */
static void announce(fv_scheduler *s) {
    s->changes++;
    pthread_cond_broadcast(&s->changed);
}

static void free_item(fv_item *item) {
    for (int k = 0; item->stages && k < item->instance->plan->nstages; k++) {
        free(item->stages[k].ranges);
        free(item->stages[k].makers);
    }
    free(item->stages);
    free(item->order);
    fv__instance_close(item->instance);
    free(item);
}

void fv__scheduler_share(fv_scheduler *s, fv_claims *claims, const fv_share *share) {
    s->claims = claims;
    s->share = share;
}

void fv__scheduler_free(fv_scheduler *s) {
    while (s->items) {
        fv_item *item = s->items;
        s->items = item->next;
        free_item(item);
    }
    fv__retired_items_free(s->retired);
    fv__memory_take_back(s);
    free(s->taken);
    free(s->places);
    free(s->place_memory);
    free(s->order);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->changed);
    free(s);
}

/* ---------------------------------------------------------------- handing out */

static bool can_start(const fv_item *item, int stage) {
    const fv_stage *st = &item->instance->plan->stages[stage];
    for (int i = 0; i < st->nneeds; i++)
        if (!item->stages[st->needs[i]].complete) return false;
    return true;
}

static void hand_out(fv_scheduler *s, fv_job *job) {
    job->item->out++;
    job->handed = fv__now();
    s->out++;
    fv__memory_use(s, job->place, job->memory);
}

static bool has_sink(const fv_stage *stage) {
    for (int t = 0; t < stage->ntargets; t++)
        if (stage->targets[t].kind == FV_TARGET_SINK) return true;
    return false;
}

bool fv__item_stage_closed(fv_item *item, int index) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    if (!stage->gate || state->open || state->closed) return state->closed;
    if (fv__stage_closed(item->instance, stage, &state->closed, NULL) != FV_OK) state->closed = false; /* its tasks will tell */
    state->open = !state->closed;
    return state->closed;
}

/* A task that has to be run; passes over those that are done. */
static bool take_task(fv_scheduler *s, fv_item *item, int index, int place, bool help, int64_t *task) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    if (!fv__fits(s, place, stage->memory, stage->shared)) return false;
    while (fv__task_ranges_take(state->ranges, place, help, task)) {
        if (stage->serial || !fv__task_done(item->instance, stage, *task)) return true;
        state->done++;
        item->tasks_done++;
        s->progress.tasks_done++;
    }
    return false;
}

/* Of a stage that is not needed after all only the end is left, which lets what it would have read go. */
static void skip_tasks(fv_scheduler *s, fv_item *item, int index) {
    fv_stage_state *state = &item->stages[index];
    if (fv__tasks_shared(s)) {
        state->complete = true;
        return;
    }
    item->tasks_done += state->limit - state->done;
    s->progress.tasks_done += state->limit - state->done;
    state->done = state->limit;
    if (!state->ranges) state->ranges = fv__task_ranges_new(0, s->nplaces, item->home);
}

/* Whether places exchange what the stage stores. */
static bool is_shared(const fv_scheduler *s, const fv_stage *stage) {
    int64_t bytes = s->sharing.most && !s->context->bindings->collection ? fv__stage_joint(stage) : 0;
    return bytes > 0 && bytes <= s->sharing.most;
}

static void begin_stage(fv_scheduler *s, fv_item *item, int index) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    state->ranges = fv__task_ranges_new(state->limit, s->nplaces, item->home);
    if (!is_shared(s, stage)) return;
    state->makers = fv__alloc((size_t)(stage->ntasks + 1) * sizeof *state->makers);
    for (int64_t i = 0; i < stage->ntasks; i++) state->makers[i] = -1;
}

/* help: also what other places would rather do. */
static bool stage_job(fv_scheduler *s, fv_item *item, int index, int place, bool help, fv_job *job) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    int64_t         task;
    if (!state->needed || state->complete || state->ending || !can_start(item, index)) return false;
    if (fv__item_stage_closed(item, index)) skip_tasks(s, item, index);
    if (fv__tasks_shared(s)) return fv__shared_job(s, item, index, job);
    if (!state->ranges) begin_stage(s, item, index);
    *job = (fv_job){ .kind = FV_JOB_TASK, .item = item, .instance = item->instance, .stage = index, .place = place };
    if (take_task(s, item, index, place, help, &task)) {
        job->task = task;
        job->memory = stage->memory;
        job->held = state->makers != NULL;
        if (job->held) state->makers[task] = place;
        state->out++;
        if (has_sink(stage)) item->written_by |= (uint64_t)1 << place % 64;
        return true;
    }
    if (state->ranges->left > 0 || state->out > 0 || state->done < state->limit) return false;
    if (place != item->home && !help) return false;
    if (!state->end_memory) state->end_memory = 1 + fv__stage_end_memory(item->instance, stage);
    if (!fv__fits(s, place, state->end_memory, 0)) return false;
    job->kind = FV_JOB_END;
    job->memory = state->end_memory;
    state->ending = true;
    return true;
}

/* Units of a segment begin when those of all earlier ones are over: they may use what these have made. */
bool fv__segment_reached(fv_scheduler *s, int64_t unit) {
    int segment = fv__bindings_unit(s->context->bindings, unit).segment;
    if (segment > s->segment && s->items) return false;
    s->segment = FV_MAX(s->segment, segment);
    return true;
}

static bool next_item(fv_scheduler *s, fv_item *item) {
    if (s->nopen >= s->most_open) return false;
    if (s->claims) return fv__shared_item(s, item);
    if (s->next_item >= s->context->bindings->nunits) return false;
    if (s->next_item == 0) s->order = fv__item_order(s);
    item->number = s->order ? s->order[s->next_item] : s->next_item;
    if (!fv__segment_reached(s, item->number)) return false;
    s->next_item++;
    return true;
}

static bool items_over(const fv_scheduler *s) {
    return s->claims ? fv__shared_items_over(s) : s->next_item >= s->context->bindings->nunits;
}

static bool find_open(fv_scheduler *s, int place, bool help, fv_job *job) {
    bool fifo = s->settings->order == FV_ORDER_FIFO;
    for (fv_item *item = s->items; item; item = item->next) {
        if (!item->ready || item->failed || item->closing) continue;
        for (int k = 0; k < item->instance->plan->nstages; k++) {
            if (stage_job(s, item, item->order ? item->order[k] : k, place, help, job)) return true;
            if (fifo && s->full) return false;
        }
    }
    return false;
}

static bool find_job(fv_scheduler *s, int place, bool ahead, fv_job *job) {
    if (s->alone || (s->quiet && s->out > 0)) return false;
    s->quiet = s->full = false;
    if (find_open(s, place, s->nplaces == 1, job)) return true;
    if (s->full && s->settings->order == FV_ORDER_FIFO) return false;
    fv_item next = { .home = place };
    if (!next_item(s, &next)) return s->nplaces > 1 && !ahead && find_open(s, place, true, job);
    fv_item *item = fv__calloc(sizeof *item), **last = &s->items;
    *item = next;
    if (item->strikes) s->suspect = item;
    while (*last) last = &(*last)->next;
    *last = item;
    s->nopen++;
    *job = (fv_job){ .kind = FV_JOB_OPEN, .item = item, .place = place };
    return true;
}

static void tell(fv_scheduler *s, bool force) {
    double now = fv__now();
    if (!s->settings->progress || (!force && now - s->told < 0.1)) return;
    s->told = now;
    fv_progress *p = &s->progress;
    double       open = 0;
    for (fv_item *item = s->items; item; item = item->next)
        if (item->ready && item->tasks > 0) open += (double)item->tasks_done / (double)item->tasks;
    p->fraction = ((double)p->items_done + FV_MIN(open, (double)s->nopen)) / (double)FV_MAX(p->items, 1);
    p->memory = s->memory + fv__store_resident(s->context->store);
    p->seconds = now - s->started;
    s->settings->progress(s->settings->context, p);
}

static void close_over(fv_scheduler *s);

/* Mutex held. */
static fv_offer offer(fv_scheduler *s, int place, bool ahead, fv_job *job) {
    if (s->settings->cancel && *s->settings->cancel && !s->stopping) {
        s->stopping = true;
        s->status = fv_fail(&s->error, FV_ERROR_CANCELLED, "stopped; the same command goes on from here");
    }
    if (s->stopping) return FV_OFFER_OVER;
    if (find_job(s, place, ahead, job)) {
        hand_out(s, job);
        return FV_OFFER_JOB;
    }
    if (s->claims) close_over(s);
    return !s->items && items_over(s) ? FV_OFFER_OVER : FV_OFFER_LATER;
}

static void wait_for_change(fv_scheduler *s, double seconds) {
    struct timespec soon;
    clock_gettime(CLOCK_MONOTONIC, &soon);
    soon.tv_nsec += (long)(seconds * 1e9);
    if (soon.tv_nsec >= 1000000000) {
        soon.tv_sec++;
        soon.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&s->changed, &s->mutex, &soon);
    tell(s, false);
}

bool fv__scheduler_next(fv_scheduler *s, fv_job *job) {
    fv_offer found;
    pthread_mutex_lock(&s->mutex);
    while ((found = offer(s, 0, false, job)) == FV_OFFER_LATER)
        wait_for_change(s, 0.2); /* wakes up now and then for a request to stop and for progress */
    if (found == FV_OFFER_OVER) announce(s);
    pthread_mutex_unlock(&s->mutex);
    return found == FV_OFFER_JOB;
}

fv_offer fv__scheduler_ask(fv_scheduler *s, int place, bool ahead, fv_job *job) {
    pthread_mutex_lock(&s->mutex);
    fv_offer found = offer(s, place, ahead, job);
    pthread_mutex_unlock(&s->mutex);
    return found;
}

uint64_t fv__scheduler_changes(fv_scheduler *s) {
    pthread_mutex_lock(&s->mutex);
    uint64_t changes = s->changes;
    pthread_mutex_unlock(&s->mutex);
    return changes;
}

void fv__scheduler_wait(fv_scheduler *s, uint64_t seen, double seconds) {
    pthread_mutex_lock(&s->mutex);
    if (s->changes == seen) wait_for_change(s, seconds);
    pthread_mutex_unlock(&s->mutex);
}

/* ---------------------------------------------------------------- running and taking back */

static fv_status run_job(fv_scheduler *s, fv_job *job, fv_worker *worker, fv_error *error) {
    switch (job->kind) {
    case FV_JOB_OPEN: return fv__item_open(s, job->item, error);
    case FV_JOB_TASK:
        FV_TRY(fv__fault_point("task", error));
        fv__worker_hold(worker, job->held);
        return fv__task_run(job->instance, &job->instance->plan->stages[job->stage], job->task, worker, &job->facts, error);
    case FV_JOB_END: return fv__stage_end(job->instance, &job->instance->plan->stages[job->stage], error);
    }
    return FV_ERROR_INTERNAL;
}

static const char *item_point(const fv_job *job, char name[40]) { /* for tests: where a certain item kills its worker */
    snprintf(name, 40, "item-%lld", (long long)job->item->number);
    return name;
}

fv_status fv__job_run(fv_scheduler *s, fv_job *job, fv_worker *worker, fv_error *error) {
    if (!s || !s->claims) return run_job(s, job, worker, error);
    if (job->kind == FV_JOB_OPEN && job->item->strikes > s->share->level) {
        fv__shared_left(s, job->item->claim);
        fv__claims_blame(s->claims, job->item->number, -1, -1, error);
        return error->code;
    }
    char name[40];
    int  slot, stage = job->kind == FV_JOB_OPEN ? -1 : job->stage;
    fv__claims_do(s->claims, job->item->number, stage, job->kind == FV_JOB_TASK ? job->task : -1, &slot);
    if (job->kind == FV_JOB_END && fv__tasks_shared(s)) fv__shared_tidy(job);
    fv_status status = fv__fault_point(item_point(job, name), error);
    if (status == FV_OK) status = run_job(s, job, worker, error);
    fv__claims_did(s->claims, slot);
    return status;
}

static bool holds_kept_image(const fv_instance *instance, const fv_stage *stage) {
    for (int i = 0; i < instance->graph->nsinks; i++) {
        const fv_sink *sink = &instance->graph->sinks[i];
        if (sink->kind != FV_SINK_FILE && sink->value->type.kind == FV_KIND_IMAGE &&
            instance->plan->store_stage[sink->value->id] == stage->index)
            return true;
    }
    return false;
}

/* Marks a stage complete and lets go of what only it needed; that may touch the disk, so the mutex is not held then. The job
 * that ends the stage still counts as out, so the item stays. Of a shared item nothing is let go: others may still look for what
 * is there, and the store's budget is kept at the end. */
static void complete_stage(fv_scheduler *s, fv_item *item, int index) {
    const fv_plan  *plan = item->instance->plan;
    const fv_stage *stage = &plan->stages[index];
    bool           *unneeded = fv__calloc((size_t)plan->nstages);
    pthread_mutex_lock(&s->mutex);
    item->stages[index].complete = true;
    for (int k = 0; k < stage->nneeds; k++) {
        int needed = stage->needs[k];
        if (--item->stages[needed].readers == 0) unneeded[needed] = !holds_kept_image(item->instance, &plan->stages[needed]);
    }
    announce(s);
    pthread_mutex_unlock(&s->mutex);
    bool stores = false;
    for (int t = 0; t < stage->ntargets; t++) stores = stores || stage->targets[t].kind == FV_TARGET_STORE;
    if (!stores) unneeded[index] = true;
    for (int k = 0; k < plan->nstages; k++)
        if (unneeded[k] && item->stages[k].makers)
            s->sharing.forget(s->sharing.context, item->instance, &plan->stages[k]);
        else if (unneeded[k] && !fv__tasks_shared(s))
            fv__stage_forget(item->instance, &plan->stages[k]);
    free(unneeded);
}

/* What is complete gets its name at once, not when the whole item is done: a kill later on finds it finished. */
static fv_status hand_over(fv_scheduler *s, const fv_job *job, fv_error *error) {
    const fv_instance *instance = job->instance;
    const fv_stage    *stage = &instance->plan->stages[job->stage];
    bool               any = false;
    if (job->claim && !fv__claim_held(job->claim)) return FV_OK; /* we stood still so long that another has done it */
    for (int t = 0; t < stage->ntargets; t++) {
        if (stage->targets[t].kind != FV_TARGET_SINK) continue;
        fv_output *output = fv__instance_output(instance, &stage->targets[t]);
        if (!output->temporary) continue;
        bool by_others = job->item->written_by & ~((uint64_t)1 << job->place % 64) || s->nplaces > 64;
        if (s->naming && !any && by_others) FV_TRY(s->naming(s->naming_context, job, error));
        any = true;
        FV_TRY(fv__outputs_done(s->outputs, output, error));
    }
    return any && !s->context->bindings->collection ? fv__outputs_commit(s->outputs, error) : FV_OK;
}

static fv_status hand_over_alone(fv_scheduler *s, const fv_job *job, fv_error *error) {
    fv_lease *lease;
    FV_TRY(fv__shared_lock(s, &lease, error));
    fv_status status = hand_over(s, job, error);
    fv__lease_release(lease);
    return status;
}

static void put_aside(fv_scheduler *s, const fv_item *item) {
    int   nstages = item->instance->plan->nstages;
    bool *needed = fv__calloc((size_t)nstages + 1);
    for (int k = 0; k < nstages; k++) needed[k] = item->stages[k].needed;
    fv__retired_items_add(s->retired, item->instance, needed);
    free(needed);
}

/* Of a shared run tables are gathered at its end. */
static fv_status collect(fv_scheduler *s, fv_item *item, fv_error *error) {
    FV_TRY(fv__exports_put(item->instance, error));
    if (!s->claims || s->share->finish) {
        if (fv__tasks_shared(s)) FV_TRY(fv__shared_whole(s, item, error));
        FV_TRY(fv__collect_item(s->result, item->instance, error));
    }
    return FV_OK;
}

/* An item that fails because others did, or in another segment for the same reason, says nothing new. */
static bool is_new(fv_scheduler *s, const char *name, const fv_error *error) {
    bool known = !strcmp(error->message, fv__lost_with_run);
    pthread_mutex_lock(&s->mutex);
    for (int i = 0; i < s->result->nfailures && !known && s->segment; i++)
        known = !strcmp(s->result->failures[i].item, name) && !strcmp(s->result->failures[i].error.message, error->message);
    pthread_mutex_unlock(&s->mutex);
    return !known;
}

static bool is_fatal(const fv_scheduler *s, fv_status status) {
    return !s->context->bindings->collection || s->settings->stop_on_error || status == FV_ERROR_FULL ||
           status == FV_ERROR_CANCELLED;
}

/* Most messages begin with the file, which is the name of the item. */
static char *with_name(const char *name, const char *message) {
    return strncmp(message, name, strlen(name)) ? fv__sprintf("%s: %s", name, message) : fv__strdup(message);
}

/* Before the mutex is taken: it may write. What ends the run is said at its end. */
static bool say_failure(fv_scheduler *s, const fv_item *item, const fv_error *error) {
    const char *name = fv__bindings_item(s->context->bindings, item->number);
    if (!is_new(s, name, error)) return false;
    if (!s->context->bindings->collection) return true;
    char *sentence = with_name(name, error->message);
    if (!is_fatal(s, error->code)) fv__log_failure("fovea: %s", sentence);
    free(sentence);
    char *fact = fv__sprintf("error %s", name);
    fv__record_fact(s->record, fact, error->message);
    free(fact);
    return true;
}

/* Mutex held. */
static void count_failure(fv_scheduler *s, const fv_item *item, fv_status status, const fv_error *error, bool said) {
    if (said) fv__collect_failure(s->result, fv__bindings_item(s->context->bindings, item->number), error);
    s->progress.items_failed++;
    if (!is_fatal(s, status) || s->stopping) return;
    s->stopping = true;
    s->status = status;
    s->error = *error;
    if (!s->context->bindings->collection) return;
    char *sentence = with_name(fv__bindings_item(s->context->bindings, item->number), error->message);
    snprintf(s->error.message, sizeof s->error.message, "%s", sentence);
    free(sentence);
}

/* Mutex held. */
static void list_outputs(fv_scheduler *s, const fv_item *item) {
    if (s->claims && !s->share->finish) return;
    for (int k = 0; k < item->instance->plan->nfiles; k++) {
        const fv_output *output = item->instance->outputs[k];
        fv__collect_output(s->result, output->path, fv__output_made(output));
    }
}

/* Called without the mutex: nobody else touches an item that is closing. */
static void close_item(fv_scheduler *s, fv_item *item) {
    fv_error  error = item->error;
    fv_status status = item->failed ? error.code : collect(s, item, &error);
    bool      made = status == FV_OK;
    for (int k = 0; !made && item->instance && k < item->instance->plan->nfiles; k++) {
        fv_output *output = item->instance->outputs[k];
        if (!output->temporary) continue;
        fv__error_rename(&error, output->temporary, output->path);
        if (!fv__output_made(output)) fv__outputs_abandon(s->outputs, output);
    }
    if (made && item->instance->graph->lost) status = fv_fail(&error, FV_ERROR_INPUT, "%s", item->instance->graph->lost);
    bool said = status != FV_OK && say_failure(s, item, &error);
    pthread_mutex_lock(&s->mutex);
    if (status != FV_OK) count_failure(s, item, status, &error, said);
    if (made) list_outputs(s, item);
    s->progress.items_done++;
    for (fv_item **i = &s->items; *i; i = &(*i)->next)
        if (*i == item) {
            *i = item->next;
            break;
        }
    s->nopen--;
    if (item == s->suspect) s->suspect = NULL;
    tell(s, false);
    announce(s);
    pthread_mutex_unlock(&s->mutex);
    if (made && s->context->bindings->collection) put_aside(s, item);
    if (item->claim) fv__shared_leave(s, item->claim);
    free_item(item);
}

static bool item_over(const fv_scheduler *s, const fv_item *item) {
    if (item->out > 0 || item->closing) return false;
    if (item->failed) return true;
    if (!item->ready) return false;
    if (fv__tasks_shared(s)) return fv__shared_over(item);
    for (int k = 0; k < item->instance->plan->nstages; k++)
        if (item->stages[k].needed && !item->stages[k].complete) return false;
    return true;
}

/* Closes an item that is over because others have done the rest. Mutex held, released meanwhile. */
static void close_over(fv_scheduler *s) {
    fv_item *item = s->items;
    while (item && !item_over(s, item)) item = item->next;
    if (item) item->closing = true;
    pthread_mutex_unlock(&s->mutex);
    if (item) close_item(s, item);
    fv__shared_settle(s);
    pthread_mutex_lock(&s->mutex);
}

static void spend(fv_scheduler *s, const char *op, double seconds) {
    fv__spent_add(s->result->spent, &s->result->nspent, op, seconds);
    fv__record_spent(s->record, op, seconds);
}

/* Merges belong to the operator whose partials are merged, the rest of a stage's end to the files that it makes. */
static void spend_end(fv_scheduler *s, const fv_stage *stage, double seconds) {
    for (int wanted = FV_TARGET_PASS; wanted <= FV_TARGET_SINK; wanted++)
        for (int t = 0; t < stage->ntargets; t++)
            if (stage->targets[t].kind == (fv_target_kind)wanted) {
                spend(s, fv__stage_spender(stage, stage->nsteps + t), seconds);
                return;
            }
}

static void account(fv_scheduler *s, fv_job *job) {
    fv_item        *item = job->item;
    const fv_stage *stage = &job->instance->plan->stages[job->stage];
    for (int k = 0; k < FV_FACT_STEPS; k++) {
        const char *name = job->facts.spent[k] > 0 ? fv__stage_spender(stage, k) : NULL;
        if (name) spend(s, name, (double)job->facts.spent[k]);
    }
    item->tasks_done++;
    s->progress.tasks_done++;
    s->result->tasks_run++;
    s->progress.bytes_read += job->facts.bytes_read;
    s->progress.bytes_written += job->facts.bytes_written;
    s->result->bytes_read += job->facts.bytes_read;
    s->result->bytes_written += job->facts.bytes_written;
}

void fv__scheduler_done(fv_scheduler *s, fv_job *job, int worker, fv_status status, const fv_error *error) {
    fv_item *item = job->item;
    fv_error naming = { 0 };
    if (status != FV_OK && status != FV_ERROR_CANCELLED && job->claim && !fv__claim_held(job->claim)) {
        fv__log_verbose("fovea: stage %d, task %lld was taken over by another worker: %s", job->stage + 1, (long long)job->task,
                        error->message);
        status = FV_OK;
    }
    if (job->kind == FV_JOB_END && status == FV_OK) {
        status = hand_over_alone(s, job, &naming);
        error = &naming;
        const fv_stage *stage = &job->instance->plan->stages[job->stage];
        if (status == FV_OK) status = fv__stage_record(job->instance, stage, s->record, &naming);
        const int32_t *makers = item->stages[job->stage].makers;
        if (status == FV_OK && makers) status = s->sharing.exchange(s->sharing.context, job, makers, &naming);
        if (status == FV_OK) complete_stage(s, item, job->stage);
    }
    if (job->kind == FV_JOB_TASK) {
        job->facts.key = fv__task_key(job->instance, &job->instance->plan->stages[job->stage], job->task);
        job->facts.item = item->number;
        job->facts.stage = job->stage;
        job->facts.task = job->task;
        job->facts.worker = worker;
        job->facts.status = (int)status;
        fv__record_task(s->record, &job->facts);
    }
    double took = fv__now() - job->handed;
    pthread_mutex_lock(&s->mutex);
    if (job->kind == FV_JOB_OPEN) s->result->opening += took;
    if (job->kind == FV_JOB_END) {
        s->result->merging += took;
        spend_end(s, &job->instance->plan->stages[job->stage], took);
    }
    item->out--;
    s->out--;
    fv__memory_use(s, job->place, -job->memory);
    if (job->alone) s->alone = false;
    if (job->claim) fv__claim_leave(s->claims, job->claim);
    if (status == FV_ERROR_CANCELLED && !s->stopping) {
        s->stopping = true;
        s->status = status;
        s->error = *error;
    }
    if (status != FV_OK && status != FV_ERROR_CANCELLED && !item->failed) {
        item->failed = true;
        item->error = *error;
        item->error.code = status;
    }
    if (job->kind == FV_JOB_OPEN && status == FV_OK) {
        item->ready = true;
        s->progress.tasks += item->tasks;
        s->result->tasks_total += item->tasks;
    }
    if (job->kind != FV_JOB_OPEN) s->result->started = true;
    if (job->kind == FV_JOB_TASK) {
        item->stages[job->stage].out--;
        item->stages[job->stage].done++;
        if (status == FV_OK) account(s, job);
    }
    bool over = item_over(s, item);
    if (over) item->closing = true;
    bool unsettled = s->claims && fv__claims_unsettled(s->claims) && fv__now() - s->settled > 1;
    tell(s, false);
    announce(s);
    pthread_mutex_unlock(&s->mutex);
    if (over) close_item(s, item);
    if (unsettled) fv__shared_settle(s);
}

fv_status fv__scheduler_status(fv_scheduler *s, fv_error *error) {
    if (s->status != FV_OK && error) *error = s->error;
    return s->status;
}

void fv__scheduler_settle(fv_scheduler *s) { fv__retired_items_settle(s->retired); }

void fv__scheduler_stop(fv_scheduler *s, fv_status status, const fv_error *error) {
    pthread_mutex_lock(&s->mutex);
    if (!s->stopping) {
        s->stopping = true;
        s->status = status;
        s->error = *error;
    }
    announce(s);
    pthread_mutex_unlock(&s->mutex);
}
