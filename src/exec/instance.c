/* One item's graph, plan and values; the keys under which processes meet. */
#include "base/file.h"
#include "exec/exec.h"
#include "exec/exports.h"
#include "exec/sampled.h"
#include <stdlib.h>

/* Nodes that are equal in several units (a flat field, its mean) have one result for all of them. */
static void find_alone(fv_instance *instance) {
    const fv_bindings *bindings = instance->context->bindings;
    const fv_graph    *graph = instance->graph;
    instance->alone = fv__calloc((size_t)instance->graph->nnodes + 1);
    for (int id = 0; id < instance->graph->nnodes; id++) {
        const fv_node *node = instance->graph->nodes[id];
        bool           alone = !bindings->collection || node->of_unit;
        for (int i = 0; i < node->ninputs; i++) alone = alone || (node->in[i] && instance->alone[node->in[i]->id]);
        const fv_param *file = node->op && node->op->identity ? fv__params_file(node->op) : NULL;
        const char     *name = file ? *(char *const *)((const char *)node->params + file->offset) : NULL;
        instance->alone[id] = alone || (name && fv__bindings_alone(bindings, name, instance->item));
    }
    for (int k = 0; k < graph->nsinks; k++)
        if (graph->sinks[k].kind == FV_SINK_EXPORT) instance->alone[graph->sinks[k].value->id] = false;
}

static fv_status open_instance(const fv_context *context, int64_t item, fv_exports *handed_take, fv_instance **out,
                               fv_diagnostics *diagnostics, fv_error *error) {
    fv_instance    *instance = fv__calloc(sizeof *instance);
    fv_plan_options options = context->plan_options;
    *instance = (fv_instance){ .context = context, .item = item, .handed = handed_take };
    pthread_mutex_init(&instance->mutex, NULL);
    options.collection = fv__bindings_unit(context->bindings, item).collection != FV_RUN && !context->bindings->live.shared;
    options.divided = context->bindings->live.shared;
    fv_status status = fv__graph_build(context->program, context->bindings, item, handed_take ? &handed_take->base : NULL,
                                       &instance->graph, diagnostics, error);
    if (status == FV_OK) status = fv__plan_make(instance->graph, &options, &instance->arena, &instance->plan, error);
    if (status != FV_OK) {
        fv__instance_close(instance);
        return status;
    }
    const fv_plan *plan = instance->plan;
    size_t         nodes = (size_t)instance->graph->nnodes;
    instance->scalars = fv__calloc(nodes * sizeof *instance->scalars);
    instance->scalar_known = fv__calloc(nodes);
    instance->looked = fv__calloc(nodes * sizeof *instance->looked);
    instance->outputs = fv__calloc((size_t)(plan->nfiles + 1) * sizeof(fv_output *));
    for (int k = 0; k < plan->nfiles; k++) instance->outputs[k] = fv__output_of(&plan->files[k]);
    find_alone(instance);
    *out = instance;
    return FV_OK;
}

fv_status fv__instance_open(const fv_context *context, int64_t item, fv_instance **out, fv_diagnostics *diagnostics,
                            fv_error *error) {
    fv_exports *handed = fv__calloc(sizeof *handed);
    fv__exports_init(handed, context->bindings, context->store);
    return open_instance(context, item, handed, out, diagnostics, error);
}

fv_status fv__instance_open_early(const fv_context *context, int64_t item, fv_instance **out, fv_diagnostics *diagnostics,
                                  fv_error *error) {
    fv_exports *handed = fv__calloc(sizeof *handed);
    fv__exports_init(handed, context->bindings, context->store);
    handed->base.partial = true;
    return open_instance(context, item, handed, out, diagnostics, error);
}

fv_status fv__instance_sample(const fv_context *context, int64_t item, fv_instance **out, fv_diagnostics *diagnostics,
                              fv_error *error) {
    return open_instance(context, item, NULL, out, diagnostics, error);
}

void fv__instance_close(fv_instance *instance) {
    if (!instance) return;
    for (int k = 0; instance->outputs && k < instance->plan->nfiles; k++) {
        fv__output_close(instance->outputs[k]);
        fv__output_leave(instance->outputs[k]);
    }
    free(instance->outputs);
    fv__direct_end(instance);
    fv__arena_release(&instance->arena);
    fv__graph_free(instance->graph);
    free(instance->handed);
    free(instance->scalars);
    free(instance->scalar_known);
    free(instance->looked);
    free(instance->alone);
    pthread_mutex_destroy(&instance->mutex);
    free(instance);
}

/* ---------------------------------------------------------------- outputs */

fv_output *fv__instance_output(const fv_instance *instance, const fv_target *target) {
    return instance->outputs[target->file->index];
}

const char *fv__output_told(const fv_output *output) {
    return output->temporary && !fv__output_current(output) ? output->temporary : "";
}

fv_status fv__instance_follow(fv_instance *instance, int output, const char *temporary, fv_hash epoch, fv_error *error) {
    if (*temporary) return fv__output_open(instance->outputs[output], temporary, epoch, instance->context->written, error);
    fv__output_is_current(instance->outputs[output]);
    return FV_OK;
}

/* ---------------------------------------------------------------- keys */

typedef struct key_parts {
    fv_hash of;
    int64_t kind, pass, index;
    fv_hash salt;
    int64_t chunk[FV_MAX_DIMS];
} key_parts;

static fv_hash make_key(fv_hash of, char kind, int pass, const fv_lattice *lattice, int64_t index, fv_hash salt) {
    key_parts parts = { .of = of, .kind = kind, .pass = pass, .index = index, .salt = salt };
    for (int d = 0; lattice && d < lattice->ndim; d++) parts.chunk[d] = lattice->chunk[d];
    return fv__hash_bytes(&parts, sizeof parts);
}

static const fv_hash no_salt = { 0, 0 };

fv_hash fv__key_chunk(const fv_node *node, const fv_lattice *lattice, int64_t chunk) {
    return make_key(node->key, 'c', 0, lattice, chunk, no_salt);
}
fv_hash fv__key_partial(const fv_node *node, int pass, const fv_lattice *lattice, int64_t chunk) {
    return make_key(node->sampling ? node->exact : node->key, 'p', pass, lattice, chunk, no_salt);
}
fv_hash fv__key_result(const fv_node *node, int pass, const fv_lattice *lattice, int64_t index) {
    return make_key(node->key, 'r', pass, lattice, index, no_salt);
}
fv_hash fv__key_notes(const fv_node *node, const fv_lattice *lattice, int64_t chunk) {
    return make_key(node->key, 'n', 0, lattice, chunk, no_salt);
}
fv_hash fv__key_piece(const fv_sink *sink, int64_t piece) { return make_key(sink->key, 'e', 0, NULL, piece, no_salt); }
fv_hash fv__key_put(const fv_output *output, const fv_lattice *lattice, int64_t chunk) {
    return make_key(output->key, 'w', 0, lattice, chunk, output->epoch);
}

/* ---------------------------------------------------------------- values */

static fv_status scalar_result(fv_instance *instance, const fv_node *node, fv_scalar *value, fv_error *error) {
    int     pass = fv__instance_estimated(instance, node) ? 0 : fv__op_last_finish(node->op);
    fv_hash key = fv__key_result(node, pass, &instance->plan->stages[instance->plan->pass_stage[node->id][pass]].lattice, 0);
    fv_blob blob;
    FV_TRY(fv__store_get(instance->context->store, key, &blob, error));
    fv_status status =
        blob.size == sizeof *value ? FV_OK : fv_fail(error, FV_ERROR_INTERNAL, "%s gave no scalar", node->op->name);
    if (status == FV_OK) memcpy(value, blob.data, sizeof *value);
    fv__store_unpin(instance->context->store, &blob);
    return status;
}

static bool scalar_known(fv_instance *instance, const fv_node *node, fv_scalar *value) {
    pthread_mutex_lock(&instance->mutex);
    bool known = instance->scalar_known[node->id];
    if (known) *value = instance->scalars[node->id];
    pthread_mutex_unlock(&instance->mutex);
    return known;
}

/* The mutex is not held meanwhile: the result may have to come from disk, and who waits for a file gives its turn away, while
 * who waits for a mutex keeps it. Two threads may find the same value. */
fv_status fv__instance_scalar(fv_instance *instance, const fv_node *node, fv_scalar *value, fv_error *error) {
    if (!node->op) {
        *value = node->value;
        return FV_OK;
    }
    if (scalar_known(instance, node, value)) return FV_OK;
    if (node->op->lazy) {
        int input;
        FV_TRY(fv__instance_chosen(instance, node, &input, error));
        FV_TRY(fv__instance_scalar(instance, node->in[input], value, error));
        *value = (fv_scalar){ .dtype = FV_FLOAT64, .real = fv__scalar_number(value) };
    } else if (fv__op_is_point(node->op)) {
        fv_scalar        in[FV_MAX_INPUTS];
        const fv_scalar *pointers[FV_MAX_INPUTS] = { NULL };
        for (int i = 0; i < node->ninputs; i++) {
            if (!node->in[i]) continue;
            FV_TRY(fv__instance_scalar(instance, node->in[i], &in[i], error));
            pointers[i] = &in[i];
        }
        FV_TRY(fv__scalar_apply(node->op, node->params, node->compute, &node->type, pointers, node->ninputs, value, error));
    } else
        FV_TRY(scalar_result(instance, node, value, error));
    pthread_mutex_lock(&instance->mutex);
    instance->scalars[node->id] = *value;
    instance->scalar_known[node->id] = 1;
    pthread_mutex_unlock(&instance->mutex);
    return FV_OK;
}

fv_status fv__instance_chosen(fv_instance *instance, const fv_node *node, int *input, fv_error *error) {
    fv_scalar condition;
    FV_TRY(fv__instance_scalar(instance, node->in[0], &condition, error));
    *input = fv__lazy_input(&condition);
    return FV_OK;
}

static fv_status gate_closed(fv_instance *instance, const fv_gate *gate, bool *closed, fv_error *error) {
    fv_scalar condition;
    *closed = false;
    if (!gate) return FV_OK;
    FV_TRY(gate_closed(instance, gate->outer, closed, error));
    if (*closed) return FV_OK; /* and the inner condition was never computed */
    FV_TRY(fv__instance_scalar(instance, gate->condition, &condition, error));
    *closed = fv__lazy_input(&condition) != gate->input;
    return FV_OK;
}

fv_status fv__stage_closed(fv_instance *instance, const fv_stage *stage, bool *closed, fv_error *error) {
    FV_TRY(gate_closed(instance, stage->gate, closed, error));
    if (fv__stage_after_sample(stage) && fv__instance_estimated(instance, stage->targets[0].node)) *closed = true;
    return FV_OK;
}

/* An estimate comes from the first pass. */
static int table_pass(const fv_node *node) { return node->sampling ? 0 : fv__op_last_finish(node->op); }

static const fv_lattice *last_lattice(const fv_instance *instance, const fv_node *node) {
    return &instance->plan->stages[instance->plan->pass_stage[node->id][table_pass(node)]].lattice;
}

fv_status fv__instance_table(fv_instance *instance, const fv_node *node, int64_t *pieces, fv_error *error) {
    fv_hash key = fv__key_result(node, table_pass(node), last_lattice(instance, node), -1);
    return fv__store_read(instance->context->store, key, 0, pieces, sizeof *pieces, error);
}

fv_hash fv__instance_table_piece(const fv_instance *instance, const fv_node *node, int64_t piece) {
    return fv__key_result(node, table_pass(node), last_lattice(instance, node), piece);
}

fv_status fv__instance_fetch(fv_instance *instance, const fv_node *node, const fv_block *block, fv_error *error) {
    const fv_lattice *lattice = &instance->plan->stages[instance->plan->store_stage[node->id]].lattice;
    return fv__store_fetch(instance->context->store, node, lattice, block, error);
}

fv_status fv__store_fetch(fv_store *store, const fv_node *node, const fv_lattice *lattice, const fv_block *block,
                          fv_error *error) {
    fv_chunk_walk walk;
    for (fv__chunk_walk_begin(&walk, lattice, &block->region); fv__chunk_walk_next(&walk);) {
        fv_region part = fv__region_intersect(&walk.chunk, &block->region);
        fv_blob   blob;
        FV_TRY(fv__store_get(store, fv__key_chunk(node, lattice, walk.index), &blob, error));
        fv_block from, to = fv__block_window(block, &part);
        fv__block_init(&from, block->dtype, &walk.chunk, (void *)(uintptr_t)blob.data);
        fv__block_copy(&to, &from);
        fv__store_unpin(store, &blob);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- what is there already */

void fv__pieces_begin(fv_chunk_walk *walk, const fv_planned_file *file, const fv_region *chunk) {
    const fv_image_type *type = &file->sink->value->type.image;
    fv_lattice           pieces;
    fv__lattice_init(&pieces, type->ndim, type->shape, file->layout.piece);
    fv__chunk_walk_begin(walk, &pieces, chunk);
}

/* Whether a chunk's part of a file is made. */
static bool written(const fv_instance *instance, const fv_stage *stage, const fv_target *target, const fv_region *chunk,
                    int64_t index) {
    const fv_output *output = fv__instance_output(instance, target);
    fv_store        *store = instance->context->store;
    fv_chunk_walk    walk;
    if (fv__output_current(output)) return true;
    if (target->file->layout.parallel) return fv__store_knows(store, fv__key_put(output, &stage->lattice, index));
    for (fv__pieces_begin(&walk, target->file, chunk); fv__chunk_walk_next(&walk);)
        if (!fv__store_knows(store, fv__key_piece(target->file->sink, walk.index))) return false;
    return true;
}

fv_hash fv__task_key(const fv_instance *instance, const fv_stage *stage, int64_t task) {
    const fv_target *target = &stage->targets[0];
    int64_t          index;
    fv__stage_chunk(stage, task, &index);
    if (target->kind == FV_TARGET_STORE) return fv__key_chunk(target->node, &stage->lattice, index);
    if (target->kind == FV_TARGET_PASS) return fv__key_partial(target->node, target->pass, &stage->lattice, index);
    return fv__key_put(fv__instance_output(instance, target), &stage->lattice, index);
}

bool fv__task_done(const fv_instance *instance, const fv_stage *stage, int64_t task) {
    fv_store *store = instance->context->store;
    int64_t   index;
    fv_region chunk = fv__stage_chunk(stage, task, &index);
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        switch (target->kind) {
        case FV_TARGET_STORE:
            if (!fv__store_knows(store, fv__key_chunk(target->node, &stage->lattice, index))) return false;
            break;
        case FV_TARGET_PASS:
            if (!fv__store_knows(store, fv__key_partial(target->node, target->pass, &stage->lattice, index)) &&
                !fv__store_knows(store, fv__key_result(target->node, target->pass, &stage->lattice, -1)))
                return false;
            break;
        case FV_TARGET_SINK:
            if (!written(instance, stage, target, &chunk, index)) return false;
            break;
        }
    }
    return true;
}

/* Results may be lost one by one: in packs of several writers, by damage. An empty result and a lost one must not be confused. */
static bool results_there(const fv_instance *instance, const fv_stage *stage, const fv_target *target) {
    fv_store *store = instance->context->store;
    fv_hash   key = fv__key_result(target->node, target->pass, &stage->lattice, -1);
    fv_blob   blob;
    if (!fv__store_has(store, key) || fv__store_get(store, key, &blob, NULL) != FV_OK) return false;
    const fv_results_list *list = blob.data;
    bool                   whole = blob.size >= sizeof *list && blob.size == fv__results_list_size(list->count);
    for (int64_t i = 0; whole && i < list->count; i++)
        if (list->there[i / 8] >> i % 8 & 1)
            whole = fv__store_has(store, fv__key_result(target->node, target->pass, &stage->lattice, i));
    fv__store_unpin(store, &blob);
    if (!whole) fv__store_drop(store, key, true);
    return whole;
}

bool fv__stage_finished(const fv_instance *instance, const fv_stage *stage) {
    bool finished = true;
    for (int t = 0; t < stage->ntargets; t++)
        if (stage->targets[t].kind == FV_TARGET_PASS) finished = results_there(instance, stage, &stage->targets[t]) && finished;
    return finished;
}

/* ---------------------------------------------------------------- what is needed no longer */

typedef struct visitor {
    void (*visit)(void *context, fv_hash key);
    void *context;
} visitor;

static void visit_pieces(const fv_planned_file *file, const fv_region *chunk, visitor v) {
    fv_chunk_walk walk;
    for (fv__pieces_begin(&walk, file, chunk); fv__chunk_walk_next(&walk);)
        v.visit(v.context, fv__key_piece(file->sink, walk.index));
}

/* Whether partials of the node are those of a sample too, which may still have to look at them, or goes on from them later. */
static bool is_sampled(const fv_instance *instance, const fv_node *node) {
    const fv_graph *graph = instance->graph;
    bool            sampled = node->sampling != NULL;
    for (int i = 0; graph->sampled && i < graph->nnodes && !sampled; i++)
        sampled = graph->nodes[i]->sampling && fv__hash_equal(graph->nodes[i]->exact, node->key);
    return sampled;
}

/* Keys of everything that a stage made on the way to its results. */
static void each_key(const fv_instance *instance, const fv_stage *stage, visitor v) {
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        if (!instance->alone[target->node->id]) continue; /* another item may be about to use it */
        if (target->kind == FV_TARGET_PASS && is_sampled(instance, target->node)) continue;
        for (int64_t task = 0; task < stage->ntasks; task++) {
            int64_t   index;
            fv_region chunk = fv__stage_chunk(stage, task, &index);
            if (target->kind == FV_TARGET_STORE) v.visit(v.context, fv__key_chunk(target->node, &stage->lattice, index));
            if (target->kind == FV_TARGET_STORE && fv__op_notes(target->node->op, target->node->params))
                v.visit(v.context, fv__key_notes(target->node, &stage->lattice, index));
            if (target->kind == FV_TARGET_PASS)
                v.visit(v.context, fv__key_partial(target->node, target->pass, &stage->lattice, index));
            if (target->kind == FV_TARGET_SINK && !target->file->layout.parallel) visit_pieces(target->file, &chunk, v);
        }
    }
}

static void drop(void *context, fv_hash key) { fv__store_drop(context, key, false); }
static void note(void *context, fv_hash key) { fv__bytes_append(context, &key, sizeof key); }

void fv__stage_forget(const fv_instance *instance, const fv_stage *stage) {
    each_key(instance, stage, (visitor){ .visit = drop, .context = instance->context->store });
}

void fv__task_forget(const fv_instance *instance, const fv_stage *stage, int64_t task, const fv_node *spent) {
    int64_t index;
    fv__stage_chunk(stage, task, &index);
    if (instance->alone[spent->id]) fv__store_drop(instance->context->store, fv__key_chunk(spent, &stage->lattice, index), false);
}

bool fv__stage_can_go_on(const fv_instance *instance, const fv_stage *stage, const fv_node *spent) {
    for (int64_t task = 0; task < stage->ntasks; task++) {
        int64_t index;
        fv__stage_chunk(stage, task, &index);
        if (!fv__store_has(instance->context->store, fv__key_chunk(spent, &stage->lattice, index)) &&
            !fv__task_done(instance, stage, task))
            return false;
    }
    return true;
}

void fv__stage_leaves(const fv_instance *instance, const fv_stage *stage, fv_bytes *keys, fv_bytes *results) {
    each_key(instance, stage, (visitor){ .visit = note, .context = keys });
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_target *target = &stage->targets[t];
        if (target->kind == FV_TARGET_PASS) note(results, fv__key_result(target->node, target->pass, &stage->lattice, -1));
    }
}
