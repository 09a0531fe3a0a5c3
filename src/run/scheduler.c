/* Jobs in a good order, whatever source they come from: the oldest item first, a new item only when nothing else can be done,
 * memory never above its bound.
 * With several places, each takes what it has begun, then new items, and then helps the others.
 */
#include "base/file.h"
#include "base/take.h"
#include "exec/exports.h"
#include "exec/sampled.h"
#include "run/results.h"
#include "run/scheduler_parts.h"
#include "run/series.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

fv_scheduler *fv__scheduler_new(const fv_context *context, const fv_run_settings *settings, const fv_engine *engine,
                                fv_outputs *outputs, fv_record *record, fv_result *result) {
    fv_scheduler *s = fv__calloc(sizeof *s);
    *s = (fv_scheduler){ .context = context,
                         .settings = settings,
                         .engine = engine,
                         .source = &fv__whole_source,
                         .gathers = true,
                         .outputs = outputs,
                         .record = record,
                         .result = result,
                         .started = fv__now() };
    s->progress.items = context->bindings->nunits;
    fv__scheduler_places(s, &(fv_place){ settings->options.workers, settings->budget }, 1, 0, NULL);
    s->retired = fv__retired_items_new(context->store);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return s;
}

static void free_places(fv_scheduler *s) {
    free(s->place_memory);
    free(s->place_cpus);
    free(s->place_out);
}

void fv__scheduler_places(fv_scheduler *s, const fv_place *places, int count, int64_t most, void *context) {
    s->nplaces = count;
    s->most_exchanged = most;
    s->engine_context = context;
    s->places = fv__realloc(s->places, (size_t)count * sizeof *places);
    memcpy(s->places, places, (size_t)count * sizeof *places);
    free_places(s);
    s->place_memory = fv__calloc((size_t)count * sizeof *s->place_memory);
    s->place_cpus = fv__calloc((size_t)count * sizeof *s->place_cpus);
    s->place_out = fv__calloc((size_t)count * sizeof *s->place_out);
    s->tightest = places[0].budget;
    s->most_open = 2;
    for (int i = 0; i < count; i++) {
        if (places[i].budget.tasks < s->tightest.tasks) s->tightest = places[i].budget;
        s->most_open += 2 * places[i].workers;
    }
}

/* Mutex held: something may be possible now that was not. */
static void announce(fv_scheduler *s) {
    s->changes++;
    pthread_cond_broadcast(&s->changed);
}

static void free_item(fv_scheduler *s, fv_item *item) {
    if (s->source->leave_item) s->source->leave_item(s, item);
    for (int k = 0; item->stages && k < item->instance->plan->nstages; k++) {
        free(item->stages[k].ranges);
        free(item->stages[k].makers);
        fv__sampled_free(item->stages[k].sampled);
        fv__watched_free(item->stages[k].watched);
        fv__bytes_release(&item->stages[k].lost);
    }
    free(item->stages);
    free(item->order);
    fv__instance_close(item->instance);
    free(item);
}

void fv__scheduler_begin_with(fv_scheduler *s, fv_instance *first_take) { s->first = first_take; }

void fv__scheduler_tell_items(fv_scheduler *s, bool told) { s->items_told = told; }

void fv__scheduler_free(fv_scheduler *s) {
    while (s->items) {
        fv_item *item = s->items;
        s->items = item->next;
        free_item(s, item);
    }
    if (s->source->release) s->source->release(s->source_state);
    fv__instance_close(s->first);
    fv__retired_items_free(s->retired);
    fv__memory_take_back(s);
    free(s->places);
    free_places(s);
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
    s->place_out[job->place]++;
    s->place_cpus[job->place] += job->cpus;
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
    if ((!stage->gate && !fv__stage_after_sample(stage)) || state->open || state->closed) return state->closed;
    if (fv__stage_closed(item->instance, stage, &state->closed, NULL) != FV_OK) state->closed = false; /* its tasks will tell */
    state->open = !state->closed;
    return state->closed;
}

/* A task that was lost goes before all others. */
static bool lost_job(fv_scheduler *s, fv_item *item, int index, int place, fv_job *job) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    fv_lost_task    lost;
    memcpy(&lost, state->lost.data + state->lost.size - sizeof lost, sizeof lost);
    if (lost.alone && s->out > 0) s->quiet = true; /* it comes when nothing else is out */
    if (s->quiet || !fv__task_fits(s, place, stage)) return false;
    state->lost.size -= sizeof lost;
    *job = (fv_job){ .kind = FV_JOB_TASK,
                     .item = item,
                     .instance = item->instance,
                     .stage = index,
                     .place = place,
                     .task = lost.task,
                     .memory = stage->memory,
                     .cpus = stage->cpus - 1,
                     .lost = lost.times,
                     .of_source = lost.of_source,
                     .alone = lost.alone };
    s->alone = lost.alone;
    return true;
}

/* Whatever source a task comes from. */
static void note_task(fv_item *item, fv_job *job) {
    fv_stage_state *state = &item->stages[job->stage];
    job->held = state->makers != NULL;
    if (job->held) state->makers[job->task] = job->place;
    state->out++;
    if (has_sink(&item->instance->plan->stages[job->stage])) item->written_by |= (uint64_t)1 << job->place % 64;
}

static bool stage_job(fv_scheduler *s, fv_item *item, int index, int place, bool help, fv_job *job) {
    fv_stage_state *state = &item->stages[index];
    if (!state->needed || state->complete || (state->ending && !state->sampled) || !can_start(item, index)) return false;
    if (fv__item_stage_closed(item, index)) s->source->skip(s, item, index);
    bool found = state->lost.size ? lost_job(s, item, index, place, job) : s->source->job(s, item, index, place, help, job);
    if (found && job->kind == FV_JOB_TASK) note_task(item, job);
    if (found && job->kind == FV_JOB_END) {
        job->lost = state->end_lost;
        state->ending = true;
    }
    return found;
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
    if (s->nopen >= s->most_open || s->lone || !s->source->item(s, &next))
        return s->nplaces > 1 && !ahead && find_open(s, place, true, job);
    fv_item *item = fv__calloc(sizeof *item), **last = &s->items;
    *item = next;
    if (item->alone) s->lone = item;
    while (*last) last = &(*last)->next;
    *last = item;
    s->nopen++;
    *job = (fv_job){ .kind = FV_JOB_OPEN, .item = item, .place = place };
    return true;
}

static void tell(fv_scheduler *s, bool force) {
    double now = fv__now();
    if (!s->settings->options.progress || (!force && now - s->told < 0.1)) return;
    s->told = now;
    fv_run_state *p = &s->progress;
    double        open = 0;
    for (fv_item *item = s->items; item; item = item->next)
        if (item->ready && item->tasks > 0) open += (double)item->tasks_done / (double)item->tasks;
    p->fraction = ((double)p->items_done + FV_MIN(open, (double)s->nopen)) / (double)FV_MAX(p->items, 1);
    p->memory = s->memory + fv__store_resident(s->context->store);
    p->seconds = now - s->started;
    fv__watched_tell(s);
    s->settings->options.progress(s->settings->options.context, p);
}

void fv__scheduler_tell(fv_scheduler *s) {
    pthread_mutex_lock(&s->mutex);
    tell(s, true);
    pthread_mutex_unlock(&s->mutex);
}

static void close_over(fv_scheduler *s);

static bool must_stop(fv_scheduler *s) {
    if (s->settings->options.cancel && *s->settings->options.cancel && !s->stopping) {
        s->stopping = true;
        s->status = fv_fail(&s->error, FV_ERROR_CANCELLED, "stopped; the same command goes on from here");
    }
    return s->stopping;
}

/* Mutex held; released where the source looks for something on disk. */
static fv_offer offer(fv_scheduler *s, int place, bool ahead, fv_job *job) {
    for (bool looked = true; looked;) {
        if (must_stop(s)) return FV_OFFER_OVER;
        if (find_job(s, place, ahead, job)) {
            hand_out(s, job);
            return FV_OFFER_JOB;
        }
        looked = s->source->look && s->source->look(s);
        if (looked) announce(s);
    }
    if (s->source->settle) close_over(s);
    return !s->items && s->source->items_over(s) ? FV_OFFER_OVER : FV_OFFER_LATER;
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

fv_offer fv__job_next(fv_scheduler *s, int place, bool ahead, fv_job *job) {
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

fv_status fv__job_perform(fv_scheduler *s, fv_job *job, fv_worker *worker, fv_error *error) {
    FV_TRY(fv__memory_check(error));
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

fv_status fv__job_run(fv_scheduler *s, fv_job *job, fv_worker *worker, fv_error *error) {
    return s && s->source->run ? s->source->run(s, job, worker, error) : fv__job_perform(s, job, worker, error);
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

static bool reads_file(const fv_stage *stage) {
    for (int s = 0; s < stage->nsteps; s++)
        if (stage->steps[s].kind == FV_STEP_RUN && stage->steps[s].node->op->layout) return true;
    return false;
}

/* Marks a stage complete and lets go of what only it needed; that may touch the disk, so the mutex is not held then. The job
 * that ends the stage still counts as out, so the item stays. Of a joint item nothing is let go: others may still look for what
 * is there, and the store's budget is kept at the end. */
static void complete_stage(fv_scheduler *s, fv_item *item, int index) {
    const fv_plan  *plan = item->instance->plan;
    const fv_stage *stage = &plan->stages[index];
    bool           *unneeded = fv__calloc((size_t)plan->nstages);
    pthread_mutex_lock(&s->mutex);
    item->stages[index].complete = true;
    fv__watched_over(s, item, index);
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
            s->engine->forget(s->engine_context, item->instance, &plan->stages[k]);
        else if (unneeded[k] && !s->source->joint) {
            fv__stage_forget(item->instance, &plan->stages[k]);
            /* what was read is read once: buffers of its size would lie idle from now on */
            if (!s->context->bindings->collection && reads_file(&plan->stages[k])) fv__buffer_trim();
        }
    free(unneeded);
}

/* A task is done: the chunk that only it needed makes room for the one that it made. */
static void forget_spent(fv_scheduler *s, const fv_job *job) {
    const fv_plan *plan = job->instance->plan;
    const fv_node *spent = fv__stage_spends(plan, &plan->stages[job->stage]);
    if (!spent || s->source->joint || s->engine->shared || s->nplaces > 1) return;
    int from = plan->store_stage[spent->id];
    pthread_mutex_lock(&s->mutex);
    bool last = job->item->stages[from].readers == 1 && !job->item->stages[from].makers;
    pthread_mutex_unlock(&s->mutex);
    if (last && !holds_kept_image(job->instance, &plan->stages[from]))
        fv__task_forget(job->instance, &plan->stages[job->stage], job->task, spent);
}

static bool taken_over(const fv_scheduler *s, const fv_job *job) { return s->source->taken_over && s->source->taken_over(job); }

/* What is complete gets its name at once, not when the whole item is done: a kill later on finds it finished. */
static fv_status hand_over(fv_scheduler *s, const fv_job *job, fv_error *error) {
    const fv_instance *instance = job->instance;
    const fv_stage    *stage = &instance->plan->stages[job->stage];
    bool               any = false;
    if (taken_over(s, job)) return FV_OK; /* we stood still so long that another has done it */
    for (int t = 0; t < stage->ntargets; t++) {
        if (stage->targets[t].kind != FV_TARGET_SINK) continue;
        fv_output *output = fv__instance_output(instance, &stage->targets[t]);
        if (!output->temporary) continue;
        bool by_others = job->item->written_by & ~((uint64_t)1 << job->place % 64) || s->nplaces > 64;
        if (s->engine->sync && !any && by_others) FV_TRY(s->engine->sync(s->engine_context, job, error));
        any = true;
        FV_TRY(fv__outputs_done(s->outputs, output, error));
    }
    bool lists = any && fv__series_of(instance, stage);
    if (any && (lists || !s->context->bindings->collection)) FV_TRY(fv__outputs_commit(s->outputs, error));
    return lists ? fv__series_update(s->outputs, instance, error) : FV_OK;
}

static fv_status hand_over_alone(fv_scheduler *s, const fv_job *job, fv_error *error) {
    fv_lease *lease = NULL;
    if (s->source->lock) FV_TRY(s->source->lock(s, &lease, error));
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

static fv_status collect(fv_scheduler *s, fv_item *item, fv_error *error) {
    FV_TRY(fv__exports_put(item->instance, error));
    if (!s->gathers) return FV_OK;
    if (s->source->whole) FV_TRY(s->source->whole(s, item, error));
    return fv__collect_item(s->result, item->instance, error);
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
    return !s->context->bindings->collection || s->settings->options.stop_on_error || status == FV_ERROR_FULL ||
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
    if (!s->gathers) return;
    for (int k = 0; k < item->instance->plan->nfiles; k++) {
        const fv_output *output = item->instance->outputs[k];
        fv__collect_output(s->result, output->path, fv__output_made(output));
    }
}

/* Mutex held. */
static void remove_item(fv_scheduler *s, const fv_item *item) {
    for (fv_item **i = &s->items; *i; i = &(*i)->next)
        if (*i == item) {
            *i = item->next;
            break;
        }
    s->nopen--;
    if (item == s->lone) s->lone = NULL;
}

/* It has done nothing yet. */
static void reopen_later(fv_scheduler *s, fv_item *item) {
    pthread_mutex_lock(&s->mutex);
    remove_item(s, item);
    fv__items_more(s);
    announce(s);
    pthread_mutex_unlock(&s->mutex);
    free_item(s, item);
}

/* Called without the mutex: nobody else touches an item that is closing. */
static void close_item(fv_scheduler *s, fv_item *item) {
    if (item->more) {
        reopen_later(s, item);
        return;
    }
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
    for (int k = 0; made && k < item->instance->plan->nfiles; k++) fv__record_output(s->record, item->instance->outputs[k]->path);
    pthread_mutex_lock(&s->mutex);
    if (status != FV_OK) count_failure(s, item, status, &error, said);
    if (made) list_outputs(s, item);
    s->progress.items_done++;
    remove_item(s, item);
    fv__watched_over(s, item, -1);
    tell(s, false);
    announce(s);
    pthread_mutex_unlock(&s->mutex);
    if (made && s->context->bindings->collection) put_aside(s, item);
    free_item(s, item);
    if (made) fv__watched_items(s);
}

static bool item_over(const fv_scheduler *s, const fv_item *item) {
    if (item->out > 0 || item->closing) return false;
    return item->failed || item->more || (item->ready && s->source->over(item));
}

/* Closes an item that is over because others have done the rest. Mutex held, released meanwhile. */
static void close_over(fv_scheduler *s) {
    fv_item *item = s->items;
    while (item && !item_over(s, item)) item = item->next;
    if (item) item->closing = true;
    pthread_mutex_unlock(&s->mutex);
    if (item) close_item(s, item);
    s->source->settle(s);
    pthread_mutex_lock(&s->mutex);
}

/* place: of the spender in its stage. */
static void spend(fv_scheduler *s, const fv_item *item, const fv_stage *stage, int place, double seconds) {
    const char    *op = fv__stage_spender(stage, place);
    const fv_node *node = fv__stage_spending_node(stage, place);
    if (!op) return;
    fv__spent_add(s->result->spent, &s->result->nspent, op, seconds);
    fv__record_spent(s->record, op, seconds);
    if (node) fv__record_node(s->record, fv__bindings_unit(s->context->bindings, item->number).segment, node->id, seconds);
}

/* Merges belong to the operator whose partials are merged, the rest of a stage's end to the files that it makes. */
static void spend_end(fv_scheduler *s, const fv_item *item, const fv_stage *stage, double seconds) {
    for (int wanted = FV_TARGET_PASS; wanted <= FV_TARGET_SINK; wanted++)
        for (int t = 0; t < stage->ntargets; t++)
            if (stage->targets[t].kind == (fv_target_kind)wanted) {
                spend(s, item, stage, stage->nsteps + t, seconds);
                return;
            }
}

static void account(fv_scheduler *s, fv_job *job) {
    fv_item        *item = job->item;
    const fv_stage *stage = &job->instance->plan->stages[job->stage];
    for (int k = 0; k < FV_FACT_STEPS; k++)
        if (job->facts.spent[k] > 0) spend(s, item, stage, k, (double)job->facts.spent[k]);
    item->tasks_done++;
    s->progress.tasks_done++;
    s->result->facts.tasks_run++;
    s->progress.bytes_read += job->facts.bytes_read;
    s->progress.bytes_written += job->facts.bytes_written;
    s->result->facts.bytes_read += job->facts.bytes_read;
    s->result->facts.bytes_written += job->facts.bytes_written;
}

/* Mutex held: the job is not out any more. */
static void take_back(fv_scheduler *s, const fv_job *job) {
    job->item->out--;
    s->out--;
    s->place_out[job->place]--;
    s->place_cpus[job->place] -= job->cpus;
    fv__memory_use(s, job->place, -job->memory);
    if (job->alone) s->alone = false;
    if (job->kind == FV_JOB_TASK) job->item->stages[job->stage].out--;
}

void fv__job_done(fv_scheduler *s, fv_job *job, int worker, fv_status status, const fv_error *error) {
    fv_item *item = job->item;
    fv_error naming = { 0 };
    bool     spared = false, last = false;
    if (status != FV_OK && status != FV_ERROR_CANCELLED && taken_over(s, job)) {
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
        if (status == FV_OK && makers) status = s->engine->exchange(s->engine_context, job, makers, &naming);
        if (status == FV_OK && (!item->stages[job->stage].sampled || fv__sampled_ended(s, item, job->stage)))
            complete_stage(s, item, job->stage);
    }
    if (job->kind == FV_JOB_TASK && item->stages[job->stage].sampled) {
        spared = status != FV_OK && status != FV_ERROR_CANCELLED && fv__sampled_spared(s, job, &last);
        if (spared) status = FV_OK;
        if (status == FV_OK && !spared) last = fv__sampled_done(s, job);
        if (last) complete_stage(s, item, job->stage);
    }
    if (job->kind == FV_JOB_TASK && !spared) {
        if (status == FV_OK && item->stages[job->stage].watched) fv__watched_done(s, job);
        job->facts.key = fv__task_key(job->instance, &job->instance->plan->stages[job->stage], job->task);
        job->facts.item = item->number;
        job->facts.stage = job->stage;
        job->facts.task = job->task;
        job->facts.worker = worker;
        job->facts.status = (int)status;
        fv__record_task(s->record, &job->facts);
        if (status == FV_OK) forget_spent(s, job);
    }
    double took = fv__now() - job->handed;
    pthread_mutex_lock(&s->mutex);
    if (job->kind == FV_JOB_OPEN) s->result->facts.seconds_opening += took;
    if (job->kind == FV_JOB_END) {
        s->result->facts.seconds_merging += took;
        spend_end(s, item, &job->instance->plan->stages[job->stage], took);
    }
    take_back(s, job);
    if (s->source->leave) s->source->leave(s, job->of_source);
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
    if (job->kind == FV_JOB_OPEN && status == FV_OK && !item->more) {
        item->ready = true;
        s->progress.tasks += item->tasks;
    }
    if (job->kind != FV_JOB_OPEN) s->result->facts.started = true;
    if (job->kind == FV_JOB_TASK && !spared) {
        item->stages[job->stage].done++;
        if (status == FV_OK) account(s, job);
    }
    bool over = item_over(s, item);
    if (over) item->closing = true;
    bool unsettled = s->source->unsettled && s->source->unsettled(s);
    tell(s, false);
    announce(s);
    pthread_mutex_unlock(&s->mutex);
    if (over) close_item(s, item);
    if (unsettled) s->source->settle(s);
}

void fv__job_lost(fv_scheduler *s, fv_job *job, int worker) {
    if (job->kind == FV_JOB_OPEN || job->lost + 1 == FV_MOST_LOST) {
        fv_error error = { 0 };
        fv_fail(&error, FV_ERROR_INTERNAL, "three worker processes died on stage %d, task %lld", job->stage + 1,
                (long long)job->task);
        fv__job_done(s, job, worker, error.code, &error);
        return;
    }
    fv__log_verbose("fovea: worker %d died; its task runs again", worker);
    pthread_mutex_lock(&s->mutex);
    fv_stage_state *state = &job->item->stages[job->stage];
    fv_lost_task    lost = { .task = job->task, .times = job->lost + 1, .of_source = job->of_source, .alone = job->alone };
    take_back(s, job);
    if (job->kind == FV_JOB_TASK) {
        fv__bytes_append(&state->lost, &lost, sizeof lost);
    } else {
        state->ending = false;
        state->end_lost = lost.times;
        if (s->source->leave) s->source->leave(s, job->of_source);
    }
    bool over = item_over(s, job->item); /* it had failed already */
    if (over) job->item->closing = true;
    announce(s);
    pthread_mutex_unlock(&s->mutex);
    if (over) close_item(s, job->item);
}

static bool needs(const fv_stage *stage, int other) {
    for (int i = 0; i < stage->nneeds; i++)
        if (stage->needs[i] == other) return true;
    return false;
}

bool fv__scheduler_single(const fv_scheduler *s) {
    const double   brief = 1e5; /* nanoseconds of work that are not worth a thread */
    const fv_plan *plan = s->first && s->context->bindings->nunits == 1 ? s->first->plan : NULL;
    bool           chain = plan != NULL;
    for (int k = 0; chain && k < plan->nstages; k++) {
        const fv_stage *stage = &plan->stages[k];
        chain = (stage->serial || stage->ntasks <= 1) && (k == 0 || needs(stage, k - 1));
    }
    return chain || (plan && plan->work < brief);
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
