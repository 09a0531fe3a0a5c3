/* A pipeline taken apart: its tasks one by one, with everything that goes in and out of them as plain bytes.
 *
 * The store is what makes this simple: tasks find what they need in it, whoever has put it there. Here it is the caller.
 *
 * Invariants
 * 1. The store is in memory and holds what was given and made since the last fv_tasks_forget, and all results that were ever
 * given.
 * 2. Keys never leave the process: what crosses is named by stage, task and target, and each process has its own keys for that.
 */
#include "api/pipeline_parts.h"
#include "base/file.h"
#include "base/take.h"
#include "op/array.h"
#include "run/results.h"
#include "store/store_place.h"
#include <fovea/tasks.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct given { /* voxels of an array, borrowed */
    int      array;
    fv_block block;
} given;

typedef struct array_reader { /* what the operator of an array calls */
    fv_tasks *tasks;
    int       array;
} array_reader;

struct fv_tasks {
    fv_pipeline  *pipeline;
    fv_bindings   bindings;
    fv_context    context;
    fv_instance  *instance;
    fv_worker    *worker;
    array_reader *readers;
    fv_bytes      given; /* of type given */
    fv_bytes      keys;  /* fv_hash: what forget drops */
    fv_bytes      pins;  /* fv_blob: what the caller may be looking at */
    fv_bytes      package;
};

/* ---------------------------------------------------------------- arrays */

static fv_status read_given(void *context, const int64_t *start, const int64_t *count, const int64_t *stride, void *data,
                            fv_error *error) {
    const array_reader *reader = context;
    const fv_array     *array = &reader->tasks->bindings.arrays[reader->array];
    const given        *all = (const given *)reader->tasks->given.data;
    size_t              ngiven = reader->tasks->given.size / sizeof *all;
    fv_block            to = { .dtype = array->type.dtype, .region.ndim = array->type.ndim, .data = data };
    int64_t             found = 0;
    memcpy(to.region.start, start, (size_t)array->type.ndim * sizeof *start);
    memcpy(to.region.size, count, (size_t)array->type.ndim * sizeof *count);
    memcpy(to.stride, stride, (size_t)array->type.ndim * sizeof *stride);
    for (size_t k = 0; k < ngiven; k++) {
        if (all[k].array != reader->array) continue;
        fv_region part = fv__region_intersect(&all[k].block.region, &to.region);
        if (fv__region_empty(&part)) continue;
        fv_block window = fv__block_window(&to, &part);
        fv__block_copy(&window, &all[k].block);
        found += fv__region_voxels(&part);
    }
    if (found == fv__region_voxels(&to.region)) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "array %s: not all voxels that the task needs were given", array->name);
}

/* ---------------------------------------------------------------- opening */

static void take_arrays_apart(fv_tasks *t) {
    t->readers = fv__calloc((size_t)(t->bindings.narrays + 1) * sizeof *t->readers);
    for (int a = 0; a < t->bindings.narrays; a++) {
        fv_array *array = &t->bindings.arrays[a];
        if (array->data) continue; /* every process has it */
        t->readers[a] = (array_reader){ t, a };
        if (!array->read) memcpy(array->chunk, array->type.shape, sizeof array->chunk);
        array->read = read_given;
        array->context = &t->readers[a];
    }
}

static fv_status check_plan(const fv_tasks *t, fv_error *error) {
    const fv_plan *plan = t->instance->plan;
    if (plan->nfiles) return fv_fail(error, FV_ERROR_USAGE, "a pipeline that is taken apart into tasks cannot write files");
    for (int s = 0; s < plan->nstages; s++)
        if (plan->stages[s].serial)
            return fv_fail(error, FV_ERROR_USAGE,
                           "%s can only be read in order, by one process: `fovea convert` makes a Zarr or TIFF file of it first",
                           fv__node_label(plan->stages[s].targets[0].node));
    return FV_OK;
}

static fv_status open_tasks(fv_tasks *t, fv_diagnostics *diagnostics, fv_error *error) {
    fv_store_options options = { .folder = fv__temporary_place(), .writer = "tasks", .memory = INT64_MAX / 4, .transient = true };
    FV_TRY(fv__pipeline_resolve(t->pipeline, NULL, &t->bindings, diagnostics, error));
    if (t->bindings.nunits != 1)
        return fv_fail(error, FV_ERROR_USAGE, "a pipeline that is taken apart into tasks cannot read a collection of files");
    take_arrays_apart(t);
    FV_TRY(fv__store_open(&options, &t->context.store, error));
    t->context.program = t->pipeline->program;
    t->context.bindings = &t->bindings;
    t->context.plan_options = t->pipeline->plan_options;
    t->context.poison = -1;
    FV_TRY(fv__instance_open(&t->context, 0, &t->instance, diagnostics, error));
    t->worker = fv__worker_new();
    return check_plan(t, error);
}

fv_status fv_tasks_open(fv_pipeline *pipeline, fv_tasks **tasks, fv_error *error) {
    fv_diagnostics diagnostics = { 0 };
    fv_tasks      *t = fv__calloc(sizeof *t);
    fv_session    *before = fv__session_enter(pipeline->session);
    t->pipeline = pipeline;
    fv_status status = open_tasks(t, &diagnostics, error);
    fv__session_enter(before);
    status = fv__pipeline_report(pipeline, &diagnostics, status);
    *tasks = status == FV_OK ? t : NULL;
    if (status != FV_OK) fv_tasks_close(t);
    return status;
}

void fv_tasks_close(fv_tasks *t) {
    if (!t) return;
    fv_session *before = fv__session_enter(t->pipeline->session);
    if (t->context.store) fv_tasks_forget(t);
    fv__worker_free(t->worker);
    fv__instance_close(t->instance);
    if (t->context.store) fv__store_close(t->context.store);
    fv__bindings_release(&t->bindings);
    fv__bytes_release(&t->given);
    fv__bytes_release(&t->keys);
    fv__bytes_release(&t->pins);
    fv__bytes_release(&t->package);
    free(t->readers);
    free(t);
    fv__session_enter(before);
}

/* ---------------------------------------------------------------- what there is */

static bool ends(const fv_stage *stage) {
    for (int k = 0; k < stage->ntargets; k++)
        if (stage->targets[k].kind == FV_TARGET_PASS) return true;
    return false;
}

int fv_tasks_stages(const fv_tasks *t) { return t->instance->plan->nstages; }

/* The operators that a task computes, in their order. */
static void describe(const fv_stage *stage, char *text, size_t size) {
    fv_bytes    all = { 0 };
    const char *last = "";
    for (int s = 0; s < stage->nsteps + stage->ntargets; s++) {
        bool step = s < stage->nsteps;
        if (step && stage->steps[s].kind == FV_STEP_STORED) continue;
        if (!step && stage->targets[s - stage->nsteps].kind != FV_TARGET_PASS) continue;
        const fv_node *node = step ? stage->steps[s].node : stage->targets[s - stage->nsteps].node;
        const char    *name = fv__node_called(node, NULL)->name;
        if (node->op->role != FV_OP_NONE || !strcmp(name, last)) continue;
        fv__bytes_printf(&all, "%s%s", all.size ? "." : "", name);
        last = name;
    }
    fv__bytes_append(&all, "", 1);
    fv_text_cut((char *)all.data, text, (int)size);
    fv__bytes_release(&all);
}

fv_tasks_stage fv_tasks_stage_facts(const fv_tasks *t, int number) {
    const fv_stage *stage = &t->instance->plan->stages[number];
    fv_tasks_stage  facts = { stage->ntasks, stage->ntargets, ends(stage), stage->memory, "" };
    fv_session     *before = fv__session_enter(t->pipeline->session);
    describe(stage, facts.brief, sizeof facts.brief);
    fv__session_enter(before);
    return facts;
}

static int target_that_stores(const fv_stage *stage, const fv_node *node) {
    int k = 0;
    while (stage->targets[k].kind != FV_TARGET_STORE || stage->targets[k].node != node) k++;
    return k;
}

bool fv_tasks_find(const fv_tasks *t, const char *name, fv_tasks_image *image) {
    const fv_plan *plan = t->instance->plan;
    for (int k = 0; k < t->instance->graph->nsinks; k++) {
        const fv_sink *sink = &t->instance->graph->sinks[k];
        if (sink->kind != FV_SINK_KEEP || sink->value->type.kind != FV_KIND_IMAGE || strcmp(sink->name, name)) continue;
        const fv_stage *stage = &plan->stages[plan->store_stage[sink->value->id]];
        *image = (fv_tasks_image){ stage->index, target_that_stores(stage, sink->value), sink->value->type.image, { 0 } };
        memcpy(image->chunk, stage->lattice.chunk, sizeof image->chunk);
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------- needs */

static void add_need(fv_bytes *needs, fv_task_need need) { fv__bytes_append(needs, &need, sizeof need); }

/* The task of a stage that makes a chunk: stages may make only a box of their lattice. */
static int64_t task_of(const fv_stage *stage, const fv_region *chunk) {
    int64_t task = 0;
    for (int d = 0; d < stage->lattice.ndim; d++)
        task = task * stage->count[d] + chunk->start[d] / stage->lattice.chunk[d] - stage->first[d];
    return task;
}

static void add_chunks(const fv_tasks *t, const fv_node *node, const fv_region *region, fv_bytes *needs) {
    const fv_plan  *plan = t->instance->plan;
    const fv_stage *from = &plan->stages[plan->store_stage[node->id]];
    fv_chunk_walk   walk;
    for (fv__chunk_walk_begin(&walk, &from->lattice, region); fv__chunk_walk_next(&walk);)
        add_need(needs, (fv_task_need){ .kind = FV_NEED_CHUNK,
                                        .stage = from->index,
                                        .target = target_that_stores(from, node),
                                        .task = task_of(from, &walk.chunk),
                                        .region = fv__region_intersect(region, &walk.chunk),
                                        .chunk = walk.chunk });
}

static void add_array(const fv_tasks *t, const fv_node *node, const fv_region *region, fv_bytes *needs) {
    const fv_array_params *params = node->params;
    if (params->read != read_given) return;
    add_need(needs, (fv_task_need){ .kind = FV_NEED_ARRAY,
                                    .array = (int)((const array_reader *)params->context - t->readers),
                                    .region = *region });
}

static void add_results(fv_bytes *needs, int stage) {
    const fv_task_need *all = (const fv_task_need *)needs->data;
    for (size_t k = 0; k < needs->size / sizeof *all; k++)
        if (all[k].kind == FV_NEED_RESULTS && all[k].stage == stage) return;
    add_need(needs, (fv_task_need){ .kind = FV_NEED_RESULTS, .stage = stage });
}

static void needs_of_stage(const fv_tasks *t, const fv_stage *stage, fv_bytes *needs) {
    for (int n = 0; n < stage->nneeds; n++)
        if (ends(&t->instance->plan->stages[stage->needs[n]])) add_results(needs, stage->needs[n]);
}

static void needs_of_task(const fv_tasks *t, const fv_stage *stage, int64_t task, fv_bytes *needs) {
    fv_region *regions = fv__alloc((size_t)(stage->nsteps + 1) * sizeof *regions);
    int64_t    index;
    fv_region  chunk = fv__stage_chunk(stage, task, &index);
    fv__stage_regions(t->instance->plan, stage, &chunk, regions);
    for (int s = 0; s < stage->nsteps; s++) {
        const fv_step *step = &stage->steps[s];
        if (!regions[s].ndim || fv__region_empty(&regions[s])) continue;
        if (step->kind == FV_STEP_STORED) add_chunks(t, step->node, &regions[s], needs);
        if (step->kind == FV_STEP_RUN && step->node->op->role == FV_OP_PROVIDED) add_array(t, step->node, &regions[s], needs);
    }
    free(regions);
}

static void needs_of_end(const fv_stage *stage, fv_bytes *needs) {
    for (int k = 0; k < stage->ntargets; k++)
        for (int64_t task = 0; stage->targets[k].kind == FV_TARGET_PASS && task < stage->ntasks; task++)
            add_need(needs, (fv_task_need){ .kind = FV_NEED_PARTIAL, .stage = stage->index, .target = k, .task = task });
}

static void needs_of_value(const fv_tasks *t, const fv_node *node, fv_bytes *needs) {
    if (!node->op) return;
    int pass = fv__op_last_finish(node->op);
    if (pass >= 0) {
        add_results(needs, t->instance->plan->pass_stage[node->id][pass]);
        return;
    }
    for (int i = 0; i < node->ninputs; i++)
        if (node->in[i] && node->in[i]->type.kind == FV_KIND_SCALAR) needs_of_value(t, node->in[i], needs);
}

fv_status fv_tasks_needs(fv_tasks *t, int number, int64_t task, fv_task_need **needs, int64_t *count, fv_error *error) {
    fv_bytes        all = { 0 };
    fv_session     *before = fv__session_enter(t->pipeline->session);
    const fv_graph *graph = t->instance->graph;
    if (number == FV_TASK_VALUES) {
        for (int k = 0; k < graph->nsinks; k++)
            if (graph->sinks[k].value->type.kind != FV_KIND_IMAGE) needs_of_value(t, graph->sinks[k].value, &all);
    } else {
        const fv_stage *stage = &t->instance->plan->stages[number];
        needs_of_stage(t, stage, &all);
        if (task == FV_TASK_END)
            needs_of_end(stage, &all);
        else
            needs_of_task(t, stage, task, &all);
    }
    fv_status status = fv__memory_check(error);
    fv__session_enter(before);
    *count = (int64_t)(all.size / sizeof **needs);
    *needs = (fv_task_need *)all.data;
    return status;
}

/* ---------------------------------------------------------------- giving */

static fv_hash key_of(const fv_stage *stage, int64_t task, int number) {
    const fv_target *target = &stage->targets[number];
    int64_t          index;
    fv__stage_chunk(stage, task, &index);
    return target->kind == FV_TARGET_STORE ? fv__key_chunk(target->node, &stage->lattice, index)
                                           : fv__key_partial(target->node, target->pass, &stage->lattice, index);
}

static fv_status put(fv_tasks *t, fv_hash key, void *buffer_take, size_t size, fv_error *error) {
    fv__bytes_append(&t->keys, &key, sizeof key);
    return fv__store_put(t->context.store, key, buffer_take, size, 0, false, error);
}

static fv_status give_array(fv_tasks *t, const fv_task_need *need, const void *data, int64_t size, fv_error *error) {
    if (need->array < 0 || need->array >= t->bindings.narrays || need->region.ndim != t->bindings.arrays[need->array].type.ndim)
        return fv_fail(error, FV_ERROR_USAGE, "the pipeline has no such array");
    const fv_array *array = &t->bindings.arrays[need->array];
    given           g = { .array = need->array };
    if (size != fv__region_voxels(&need->region) * (int64_t)fv_dtype_size(array->type.dtype))
        return fv_fail(error, FV_ERROR_USAGE, "array %s: %lld bytes do not fill the voxels that they are for", array->name,
                       (long long)size);
    fv__block_init(&g.block, array->type.dtype, &need->region, (void *)(uintptr_t)data);
    fv__bytes_append(&t->given, &g, sizeof g);
    return FV_OK;
}

/* The chunk has room for all its voxels, but only those that are needed are filled in. */
static fv_status give_chunk(fv_tasks *t, const fv_stage *stage, const fv_task_need *need, const void *data, int64_t size,
                            fv_error *error) {
    fv_dtype  dtype = stage->targets[need->target].node->type.image.dtype;
    int64_t   index;
    fv_region chunk = fv__stage_chunk(stage, need->task, &index);
    if (!fv__region_inside(&need->region, &chunk) || size != fv__region_voxels(&need->region) * (int64_t)fv_dtype_size(dtype))
        return fv_fail(error, FV_ERROR_USAGE, "%lld bytes do not fill the voxels of a chunk that they are for", (long long)size);
    size_t   room = (size_t)fv__region_voxels(&chunk) * fv_dtype_size(dtype);
    void    *buffer;
    fv_block from, to;
    FV_TRY(FV_TAKE_BUFFER(buffer, room, error));
    fv__block_init(&from, dtype, &need->region, (void *)(uintptr_t)data);
    fv__block_init(&to, dtype, &chunk, buffer);
    to = fv__block_window(&to, &need->region);
    fv__block_copy(&to, &from);
    return put(t, key_of(stage, need->task, need->target), buffer, room, error);
}

static fv_status give_partial(fv_tasks *t, const fv_stage *stage, const fv_task_need *need, const void *data, int64_t size,
                              fv_error *error) {
    void *buffer;
    FV_TRY(FV_TAKE_BUFFER(buffer, (size_t)FV_MAX(size, 1), error));
    if (size) memcpy(buffer, data, (size_t)size);
    return put(t, key_of(stage, need->task, need->target), buffer, (size_t)size, error);
}

/* ---------------------------------------------------------------- results: of each pass its numbered blobs, packed */

typedef struct packed { /* before each blob, whose bytes are padded to whole eights */
    int64_t target, index, size;
} packed;

static size_t padded(int64_t size) { return (size_t)(size + 7) & ~(size_t)7; }

static fv_status pack(fv_tasks *t, const fv_stage *stage, int target, int64_t index, fv_error *error) {
    fv_hash key = fv__key_result(stage->targets[target].node, stage->targets[target].pass, &stage->lattice, index);
    fv_blob blob;
    if (!fv__store_has(t->context.store, key)) return FV_OK; /* empty */
    FV_TRY(fv__store_get(t->context.store, key, &blob, error));
    packed    head = { target, index, (int64_t)blob.size };
    fv_status status = fv__bytes_need(&t->package, sizeof head + padded(head.size), error);
    if (status == FV_OK) {
        fv__bytes_append(&t->package, &head, sizeof head);
        fv__bytes_append(&t->package, blob.data, blob.size);
        fv__bytes_append(&t->package, "\0\0\0\0\0\0\0", padded(head.size) - blob.size);
    }
    fv__store_unpin(t->context.store, &blob);
    return status;
}

static fv_status pack_results(fv_tasks *t, const fv_stage *stage, fv_error *error) {
    fv__bytes_clear(&t->package);
    for (int k = 0; k < stage->ntargets; k++) {
        const fv_target *target = &stage->targets[k];
        if (target->kind != FV_TARGET_PASS) continue;
        fv_hash list = fv__key_result(target->node, target->pass, &stage->lattice, -1);
        int64_t count;
        if (!fv__store_has(t->context.store, list)) continue; /* of a branch that was not chosen */
        FV_TRY(fv__store_read(t->context.store, list, 0, &count, sizeof count, error));
        for (int64_t index = 0; index < count; index++) FV_TRY(pack(t, stage, k, index, error));
        FV_TRY(pack(t, stage, k, -1, error));
    }
    return FV_OK;
}

static fv_status give_results(fv_tasks *t, const fv_stage *stage, const uint8_t *data, int64_t size, fv_error *error) {
    packed head;
    for (size_t at = 0; at < (size_t)size; at += sizeof head + padded(head.size)) {
        if ((size_t)size - at < sizeof head) return fv_fail(error, FV_ERROR_USAGE, "results of a stage are cut short");
        memcpy(&head, data + at, sizeof head);
        if (head.target < 0 || head.target >= stage->ntargets || stage->targets[head.target].kind != FV_TARGET_PASS ||
            head.size < 0 || (size_t)head.size > (size_t)size - at - sizeof head)
            return fv_fail(error, FV_ERROR_USAGE, "results of a stage are damaged");
        const fv_target *target = &stage->targets[head.target];
        fv_hash          key = fv__key_result(target->node, target->pass, &stage->lattice, head.index);
        void            *buffer;
        if (fv__store_knows(t->context.store, key)) continue;
        FV_TRY(FV_TAKE_BUFFER(buffer, (size_t)FV_MAX(head.size, 1), error));
        memcpy(buffer, data + at + sizeof head, (size_t)head.size);
        FV_TRY(fv__store_put(t->context.store, key, buffer, (size_t)head.size, 0, false, error));
    }
    return FV_OK;
}

fv_status fv_tasks_give(fv_tasks *t, const fv_task_need *need, const void *data, int64_t size, fv_error *error) {
    const fv_plan *plan = t->instance->plan;
    fv_session    *before = fv__session_enter(t->pipeline->session);
    fv_status      status = FV_OK;
    if (need->kind == FV_NEED_ARRAY)
        status = give_array(t, need, data, size, error);
    else if (need->stage < 0 || need->stage >= plan->nstages || need->target < 0 ||
             need->target >= plan->stages[need->stage].ntargets || need->task < 0 ||
             need->task >= plan->stages[need->stage].ntasks)
        status = fv_fail(error, FV_ERROR_USAGE, "the pipeline has no such task");
    else if (need->kind == FV_NEED_RESULTS)
        status = give_results(t, &plan->stages[need->stage], data, size, error);
    else if (need->kind == FV_NEED_PARTIAL)
        status = give_partial(t, &plan->stages[need->stage], need, data, size, error);
    else if (size)
        status = give_chunk(t, &plan->stages[need->stage], need, data, size, error);
    fv__session_enter(before);
    return status;
}

/* ---------------------------------------------------------------- running */

/* Of all that a task will put into the store. */
static void note_keys(fv_tasks *t, const fv_stage *stage, int64_t task) {
    int64_t index;
    fv__stage_chunk(stage, task, &index);
    for (int k = 0; k < stage->ntargets; k++) {
        fv_hash key = key_of(stage, task, k);
        fv__bytes_append(&t->keys, &key, sizeof key);
    }
    for (int s = 0; s < stage->nsteps; s++) {
        const fv_node *node = stage->steps[s].node;
        if (stage->steps[s].kind != FV_STEP_RUN || !fv__op_notes(node->op, node->params)) continue;
        fv_hash key = fv__key_notes(node, &stage->lattice, index);
        fv__bytes_append(&t->keys, &key, sizeof key);
    }
}

static fv_status run_task(fv_tasks *t, const fv_stage *stage, int64_t task, fv_error *error) {
    bool          closed;
    fv_task_facts facts = { 0 };
    FV_TRY(fv__stage_closed(t->instance, stage, &closed, error));
    if (closed) return FV_OK;
    note_keys(t, stage, task);
    return fv__task_run(t->instance, stage, task, t->worker, &facts, error);
}

/* A pass whose results are there counts as done, and its tasks would make nothing; but whoever asks for them has lost what they
 * made. */
static void reopen(const fv_tasks *t, const fv_stage *stage) {
    for (int k = 0; k < stage->ntargets; k++) {
        const fv_target *target = &stage->targets[k];
        if (target->kind != FV_TARGET_PASS) continue;
        fv__store_drop(t->context.store, fv__key_result(target->node, target->pass, &stage->lattice, -1), false);
    }
}

fv_status fv_tasks_run(fv_tasks *t, int number, int64_t task, fv_error *error) {
    const fv_stage *stage = &t->instance->plan->stages[number];
    fv_session     *before = fv__session_enter(t->pipeline->session);
    reopen(t, stage);
    fv_status status = task == FV_TASK_END ? fv__stage_end(t->instance, stage, error) : run_task(t, stage, task, error);
    fv__session_enter(before);
    return status;
}

static fv_status find_made(fv_tasks *t, const fv_stage *stage, int64_t task, int target, fv_task_made *made, fv_error *error) {
    if (task == FV_TASK_END) {
        FV_TRY(pack_results(t, stage, error));
        *made = (fv_task_made){ .data = t->package.data, .size = (int64_t)t->package.size };
        return FV_OK;
    }
    fv_hash key = key_of(stage, task, target);
    fv_blob blob;
    int64_t index;
    if (!fv__store_has(t->context.store, key)) return FV_OK;
    FV_TRY(fv__store_get(t->context.store, key, &blob, error));
    fv__bytes_append(&t->pins, &blob, sizeof blob);
    *made = (fv_task_made){ .data = blob.data, .size = (int64_t)blob.size };
    if (stage->targets[target].kind != FV_TARGET_STORE) return FV_OK;
    made->voxels = true;
    made->dtype = stage->targets[target].node->type.image.dtype;
    made->chunk = fv__stage_chunk(stage, task, &index);
    return FV_OK;
}

fv_status fv_tasks_made(fv_tasks *t, int number, int64_t task, int target, fv_task_made *made, fv_error *error) {
    fv_session *before = fv__session_enter(t->pipeline->session);
    *made = (fv_task_made){ 0 };
    fv_status status = find_made(t, &t->instance->plan->stages[number], task, target, made, error);
    fv__session_enter(before);
    return status;
}

fv_status fv_tasks_values(fv_tasks *t, fv_result **result, fv_error *error) {
    fv_session *before = fv__session_enter(t->pipeline->session);
    *result = fv__calloc(sizeof **result);
    fv_status status = fv__collect_values(*result, t->instance, error);
    if (status == FV_OK) status = fv__collect_finish(*result, &t->context, NULL, error);
    fv__session_enter(before);
    return status;
}

void fv_tasks_forget(fv_tasks *t) {
    fv_session *before = fv__session_enter(t->pipeline->session);
    fv_blob    *pins = (fv_blob *)t->pins.data;
    fv_hash    *keys = (fv_hash *)t->keys.data;
    for (size_t k = 0; k < t->pins.size / sizeof *pins; k++) fv__store_unpin(t->context.store, &pins[k]);
    for (size_t k = 0; k < t->keys.size / sizeof *keys; k++) fv__store_drop(t->context.store, keys[k], false);
    fv__bytes_clear(&t->pins);
    fv__bytes_clear(&t->keys);
    fv__bytes_clear(&t->given);
    fv__session_enter(before);
}
