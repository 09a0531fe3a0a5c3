/* Opening an item: what of it has to be done at all, and where its files begin. */
#include "run/scheduler_parts.h"
#include "run/series.h"
#include <stdlib.h>

bool fv__stage_complete(const fv_instance *instance, const fv_stage *stage) {
    bool finished = fv__stage_finished(instance, stage); /* asked first: tasks rely on it that results are all there or none */
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        if (target->kind == FV_TARGET_SINK && !fv__output_current(fv__instance_output(instance, target))) return false;
        if (target->kind != FV_TARGET_STORE) continue;
        for (int64_t task = 0; task < stage->ntasks; task++) {
            int64_t index;
            fv__stage_chunk(stage, task, &index);
            if (!fv__store_has(instance->context->store, fv__key_chunk(target->node, &stage->lattice, index))) return false;
        }
    }
    return finished;
}

/* Stages whose values the sinks take directly. */
static void demand_value(const fv_instance *instance, const fv_node *node, fv_stage_state *stages, bool *seen) {
    const fv_plan *plan = instance->plan;
    if (!node->op || seen[node->id]) return;
    seen[node->id] = true;
    if (node->type.kind == FV_KIND_IMAGE) {
        stages[plan->store_stage[node->id]].needed = true;
        return;
    }
    int finish = fv__op_last_finish(node->op);
    if (finish >= 0) stages[plan->pass_stage[node->id][finish]].needed = true;
    for (int i = 0; finish < 0 && i < node->ninputs; i++)
        if (node->in[i]) demand_value(instance, node->in[i], stages, seen);
}

/* Of what a stage made, a part may be gone because the only stage that still needs it has gone on: it is enough if the tasks that
 * this one has left find theirs. */
static bool is_spent(const fv_item *item, int index) {
    const fv_instance *instance = item->instance;
    const fv_plan     *plan = instance->plan;
    bool               any = false;
    if (item->stages[index].readers != 1) return false;
    for (int64_t task = 0; task < plan->stages[index].ntasks && !any; task++)
        any = fv__task_done(instance, &plan->stages[index], task);
    if (!any) return false;
    for (int s = index + 1; s < plan->nstages; s++) {
        if (!item->stages[s].needed || item->stages[s].complete) continue;
        const fv_node *spent = fv__stage_spends(plan, &plan->stages[s]);
        if (spent && plan->store_stage[spent->id] == index) return fv__stage_can_go_on(instance, &plan->stages[s], spent);
    }
    return false;
}

static void find_needed(const fv_scheduler *scheduler, fv_item *item) {
    const fv_instance *instance = item->instance;
    const fv_plan     *plan = instance->plan;
    bool              *seen = fv__calloc((size_t)instance->graph->nnodes + 1);
    item->stages = fv__calloc((size_t)(plan->nstages + 1) * sizeof *item->stages);
    for (int k = 0; k < instance->graph->nsinks; k++) {
        const fv_sink *sink = &instance->graph->sinks[k];
        if (sink->kind != FV_SINK_FILE || sink->value->type.kind != FV_KIND_IMAGE)
            demand_value(instance, sink->value, item->stages, seen);
    }
    free(seen);
    for (int s = plan->nstages - 1; s >= 0; s--) {
        const fv_stage *stage = &plan->stages[s];
        fv_stage_state *state = &item->stages[s];
        for (int t = 0; t < stage->ntargets; t++)
            if (stage->targets[t].kind == FV_TARGET_SINK &&
                !fv__output_current(fv__instance_output(instance, &stage->targets[t])))
                state->needed = true;
        state->complete = !state->needed || fv__stage_complete(instance, stage) || is_spent(item, s);
        if (state->needed && state->complete)
            fv__stage_record(instance, stage, scheduler->record, NULL); /* made by another run */
        state->limit = stage->serial ? 1 : stage->ntasks;
        if (state->complete) continue;
        item->tasks += state->limit;
        item->work += stage->work;
        for (int i = 0; i < stage->nneeds; i++) {
            item->stages[stage->needs[i]].needed = true;
            item->stages[stage->needs[i]].readers++;
        }
    }
}

static void record_stages(const fv_scheduler *s, const fv_item *item) {
    int part = fv__bindings_unit(s->context->bindings, item->number).segment;
    for (int k = 0; s->record && k < item->instance->plan->nstages; k++) {
        const fv_stage_state *state = &item->stages[k];
        fv_stage_facts        facts = { .part = part, .stage = k, .items = 1 };
        *(!state->complete ? &facts.tasks : state->needed ? &facts.found : &facts.spared) = state->limit;
        fv__record_stage(s->record, &facts);
    }
}

static fv_status begin_output(fv_scheduler *s, const fv_instance *instance, fv_output *output, fv_error *error) {
    if (fv__outputs_current(s->outputs, output)) {
        if (s->source->shared && s->gathers) fv__outputs_disclaim(output->path);
        fv__output_is_current(output);
        return FV_OK;
    }
    FV_TRY(fv__outputs_check(s->outputs, output->path, error));
    if (!s->context->bindings->collection) fv__outputs_explain(s->outputs, output->file->sink, instance->graph);
    FV_TRY(fv__outputs_begin(s->outputs, output, s->source->way, s->context->written, error));
    return output->writer->layout.parallel ? output->writer->format->begin(output->writer, error) : FV_OK;
}

static fv_status begin_outputs(fv_scheduler *s, fv_item *item, fv_error *error) {
    const fv_plan *plan = item->instance->plan;
    for (int st = 0; st < plan->nstages; st++)
        for (int t = 0; t < plan->stages[st].ntargets; t++) {
            const fv_target *target = &plan->stages[st].targets[t];
            if (target->kind != FV_TARGET_SINK) continue;
            FV_TRY(begin_output(s, item->instance, fv__instance_output(item->instance, target), error));
        }
    FV_TRY(fv__series_check(s->outputs, item->instance, error));
    return fv__series_update(s->outputs, item->instance, error); /* a kill may have come between a step and its line */
}

/* The second of those who share an item finds the temporaries of the first, and never one that is just getting its name. */
static fv_status begin_outputs_alone(fv_scheduler *s, fv_item *item, fv_error *error) {
    fv_lease *lease = NULL;
    if (s->source->lock) FV_TRY(s->source->lock(s, &lease, error));
    fv_status status = begin_outputs(s, item, error);
    fv__lease_release(lease);
    return status;
}

static fv_status open_instance(fv_scheduler *s, fv_item *item, fv_error *error) {
    fv_diagnostics diagnostics = { 0 };
    pthread_mutex_lock(&s->mutex);
    if (s->first && s->first->item == item->number) {
        item->instance = s->first;
        s->first = NULL;
    }
    pthread_mutex_unlock(&s->mutex);
    if (item->instance) return FV_OK;
    fv_status status = fv__instance_open(s->context, item->number, &item->instance, &diagnostics, error);
    fv__diagnostics_release(&diagnostics);
    return status;
}

fv_status fv__item_open(fv_scheduler *s, fv_item *item, fv_error *error) {
    FV_TRY(open_instance(s, item, error));
    FV_TRY(fv__items_look(s, item, error));
    if (item->more) return FV_OK;
    FV_TRY(fv__budget_check(&s->tightest, item->instance->plan->memory, error));
    FV_TRY(begin_outputs_alone(s, item, error));
    fv__memory_spare(s, item);
    if (s->settings->options.transient) FV_TRY(fv__direct_begin(item->instance, error));
    find_needed(s, item);
    record_stages(s, item);
    item->order = fv__stage_order(s, item);
    return FV_OK;
}
