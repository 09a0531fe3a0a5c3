/* One task: regions backwards, blocks forwards, then what the stage is for. */
#include "base/file.h"
#include "base/take.h"
#include "devices/device_pool.h"
#include "exec/earlier_results.h"
#include "exec/fused_points.h"
#include "exec/growing_sums.h"
#include "exec/late_values.h"
#include "op/array.h"
#include "op/device_kernel.h"
#include <stdlib.h>

typedef struct held { /* a step's pixels inside a task */
    fv_block block;
    void    *buffer; /* owned, or NULL */
    size_t   size;
    fv_blob  pin; /* a chunk of the store seen directly */
} held;

struct fv_worker {
    fv_region *regions;
    held      *held;
    int        nsteps;
    uint8_t   *points; /* scratch of fused groups */
    fv_bytes   bytes;  /* partial or encoded piece being made */
    fv_bytes   notes;  /* of the operator that runs */
    bool       joint;  /* chunks are for an exchange */
};

typedef struct task {
    fv_instance    *instance;
    const fv_stage *stage;
    fv_worker      *worker;
    fv_task_facts  *facts;
    int64_t         chunk_index;
    fv_region       chunk;
    fv_scalar       scalars[FV_POINTS_MOST];
    int             nscalars;
    fv_pins         pins;      /* results borrowed by operators */
    int             summing;   /* step whose sum grows; -1: none */
    fv_kept_sum    *sum;       /* its */
    int             sum_axis;  /* of the step's first input */
    int64_t         sum_until; /* planes that it will have */
} task;

fv_worker *fv__worker_new(void) { return fv__calloc(sizeof(fv_worker)); }

void fv__worker_free(fv_worker *worker) {
    if (!worker) return;
    free(worker->regions);
    free(worker->held);
    fv__buffer_free(worker->points, fv__points_scratch());
    fv__bytes_release(&worker->bytes);
    fv__bytes_release(&worker->notes);
    free(worker);
}

void fv__worker_hold(fv_worker *worker, bool joint) { worker->joint = joint; }

static void reserve(fv_worker *worker, int nsteps) {
    if (nsteps > worker->nsteps) {
        worker->regions = fv__realloc(worker->regions, (size_t)nsteps * sizeof *worker->regions);
        worker->held = fv__realloc(worker->held, (size_t)nsteps * sizeof *worker->held);
        worker->nsteps = nsteps;
    }
    if (nsteps) memset(worker->held, 0, (size_t)nsteps * sizeof *worker->held);
}

static void release(task *t, held *h) {
    if (h->buffer) fv__buffer_free(h->buffer, h->size);
    if (h->pin.entry) fv__store_unpin(t->instance->context->store, &h->pin);
    *h = (held){ 0 };
}

/* ---------------------------------------------------------------- blocks */

/* With poison, a block lies in a margin that shows what is read or left unwritten outside its region. */
static fv_status new_block(const task *t, fv_dtype dtype, const fv_region *region, fv_block *block, void **buffer, size_t *size,
                           fv_error *error) {
    int       poison = t->instance->context->poison;
    fv_region outer = *region;
    int64_t   margin[FV_MAX_DIMS];
    for (int d = 0; d < region->ndim; d++) margin[d] = d == region->ndim - 1 ? 8 : 2;
    if (poison >= 0) outer = fv__region_grow(region, margin, margin);
    *size = (size_t)fv__region_voxels(&outer) * fv_dtype_size(dtype);
    FV_TRY(FV_TAKE_BUFFER(*buffer, *size, error));
    if (poison >= 0) memset(*buffer, poison, *size);
    fv__block_init(block, dtype, &outer, *buffer);
    if (poison >= 0) *block = fv__block_window(block, region);
    return FV_OK;
}

static fv_status fetch(task *t, const fv_node *node, const fv_region *region, held *h, fv_error *error) {
    const fv_plan    *plan = t->instance->plan;
    const fv_lattice *lattice = &plan->stages[plan->store_stage[node->id]].lattice;
    int64_t           index = fv__lattice_index(lattice, region->start);
    fv_region         chunk = fv__lattice_chunk(lattice, index);
    if (t->instance->context->poison < 0 && fv__region_inside(region, &chunk)) { /* no copy needed */
        FV_TRY(fv__store_get(t->instance->context->store, fv__key_chunk(node, lattice, index), &h->pin, error));
        fv_block whole;
        fv__block_init(&whole, node->type.image.dtype, &chunk, (void *)(uintptr_t)h->pin.data);
        h->block = fv__block_window(&whole, region);
        return FV_OK;
    }
    FV_TRY(new_block(t, node->type.image.dtype, region, &h->block, &h->buffer, &h->size, error));
    return fv__instance_fetch(t->instance, node, &h->block, error);
}

/* ---------------------------------------------------------------- running a pass */

/* The same pass by the operator's kernel for devices. */
static fv_status run_on_device(const task *t, const fv_node *node, fv_run *r, fv_error *error) {
    const fv_bindings      *bindings = t->instance->context->bindings;
    const fv_device_kernel *kernel = node->op->device;
    fv_device_pool         *pool;
    fv_device_hold          hold;
    FV_TRY(fv__device_pool_of(bindings->device, &pool, error));
    if (strcmp(fv__device_pool_kind(pool), bindings->on.kind))
        return fv_fail(error, FV_ERROR_DEVICE, "%s is \"%s\" here; the run was begun with \"%s\"", bindings->device,
                       fv__device_pool_kind(pool), bindings->on.kind);
    int64_t memory = FV_MAX(kernel->least(&r->need), FV_MIN(kernel->wanted(&r->need), bindings->on.memory));
    double  asked = fv__now();
    FV_TRY(fv__device_pool_take(pool, memory, &hold, error));
    double    given = fv__now();
    fv_status status = fv__fault_point("device", NULL) == FV_OK ? kernel->run(r, hold.device, error)
                                                                : fv_fail(error, FV_ERROR_DEVICE, "the device fails, for a test");
    fv__device_pool_give(pool, &hold);
    t->facts->leases++;
    t->facts->queued += (float)(given - asked);
    t->facts->leased += (float)(fv__now() - given);
    return status;
}

/* The planes of its input that a sum lacks. */
static void narrow_sum(const task *t, const fv_node *node, fv_region *in) {
    if (t->summing < 0 || node != t->stage->steps[t->summing].node) return;
    in[0].start[t->sum_axis] = t->sum->until;
    in[0].size[t->sum_axis] = t->sum_until - t->sum->until;
}

/* Adds what is there to the sum, and makes the image of it if it is wanted. */
static fv_status run_sum(task *t, const fv_pass *p, fv_run *r, fv_error *error) {
    if (t->sum_until == t->sum->until) {
        if (r->out) p->sum->image(r, t->sum->bytes);
        return FV_OK;
    }
    fv_status status = p->sum->add(r, t->sum->until, t->sum_until, t->sum->bytes, error);
    if (status != FV_OK) memset(t->sum->bytes, 0, t->sum->size); /* nobody knows how far it came */
    t->sum->until = status == FV_OK ? t->sum_until : 0;
    return status;
}

fv_status fv__program_refused(const fv_op *op, fv_error *error) {
    return fv_fail(
        error, FV_ERROR_USAGE,
        "%s runs a program of this machine, which happens only with --allow-commands (allow_commands = True in Python) or after "
        "`fovea trust` of this text",
        op->name);
}

/* The operator is about to run a program. log: start of the names of files for what it prints; the caller frees. */
static fv_status allow_program(const task *t, const fv_node *node, fv_run *r, char **log, fv_error *error) {
    const fv_context *context = t->instance->context;
    char              hex[33];
    if (!context->bindings->commands) return fv__program_refused(node->op, error);
    r->cancel = context->cancel;
    if (!context->run_folder) return FV_OK;
    fv__hash_format(fv__key_chunk(node, &t->stage->lattice, t->chunk_index), hex);
    r->log = *log = fv__sprintf("%s/commands/%.16s", context->run_folder, hex);
    return FV_OK;
}

static fv_status run_pass(task *t, const fv_node *node, int pass, const fv_region *region, const fv_block *out, fv_bytes *partial,
                          fv_error *error) {
    const fv_pass     *p = &node->op->passes[pass];
    fv_run             r = { .need = fv__node_need(t->instance->plan, node, pass, region),
                             .out = out,
                             .partial = partial,
                             .notes = fv__op_notes(node->op, node->params) && out ? &t->worker->notes : NULL,
                             .chunk = partial ? t->chunk_index : -1 };
    fv_region          need[FV_MAX_INPUTS];
    fv_block           windows[FV_MAX_INPUTS];
    fv_scalar          scalars[FV_MAX_INPUTS];
    void              *copies[FV_MAX_INPUTS] = { NULL };
    size_t             sizes[FV_MAX_INPUTS];
    fv_status          status = FV_OK;
    fv_earlier_results earlier;
    if (fv__earlier_results_init(&earlier, t->instance, node, pass, &t->pins)) r.results = &earlier.base;
    bool sums = t->summing >= 0 && node == t->stage->steps[t->summing].node;
    fv__pass_need(p, &r.need, need);
    narrow_sum(t, node, need);
    int chosen = 0;
    if (node->op->lazy) FV_TRY(fv__instance_chosen(t->instance, node, &chosen, error));
    for (int i = 0; i < node->ninputs && status == FV_OK; i++) {
        if (!node->in[i]) continue;
        if (node->in[i]->type.kind == FV_KIND_SCALAR) {
            status = fv__instance_scalar(t->instance, node->in[i], &scalars[i], error);
            r.scalar[i] = &scalars[i];
        } else if (node->in[i]->type.kind == FV_KIND_IMAGE) {
            int             step = fv__stage_step(t->stage, node->in[i]);
            const fv_block *block = &t->worker->held[step].block;
            if (node->op->lazy && i != chosen) continue; /* what it holds, if anything, is what others need */
            if (fv__region_empty(&need[i])) memcpy(need[i].start, block->region.start, sizeof need[i].start); /* nowhere */
            windows[i] = fv__block_window(block, &need[i]);
            if (t->instance->context->poison >= 0) { /* exactly the declared region, nothing valid around it */
                fv_block copy;
                status = new_block(t, block->dtype, &need[i], &copy, &copies[i], &sizes[i], error);
                if (status != FV_OK) break;
                fv__block_copy(&copy, &windows[i]);
                windows[i] = copy;
            }
            r.in[i] = &windows[i];
        }
    }
    void *late = NULL;
    if (status == FV_OK) status = fv__late_params(node, r.scalar, &r.need.params, &late, error);
    size_t scratch = sums ? p->sum->scratch(&r.need, t->sum_until - t->sum->until) : p->scratch ? p->scratch(&r.need) : 0;
    if (scratch && status == FV_OK) status = FV_TAKE_BUFFER(r.scratch, scratch, error);
    if (r.scratch && t->instance->context->poison >= 0) memset(r.scratch, t->instance->context->poison, scratch);
    char *log = NULL;
    if (node->op->program && status == FV_OK) status = allow_program(t, node, &r, &log, error);
    if (status == FV_OK)
        status = node->on_device ? run_on_device(t, node, &r, error) : sums ? run_sum(t, p, &r, error) : p->run(&r, error);
    free(log);
    if (status != FV_OK && error && !error->op[0]) strncpy(error->op, node->op->name, sizeof error->op - 1);
    if (r.scratch) fv__buffer_free(r.scratch, scratch);
    free(late);
    for (int i = 0; i < node->ninputs; i++)
        if (copies[i]) fv__buffer_free(copies[i], sizes[i]);
    return status;
}

/* ---------------------------------------------------------------- fused groups */

static bool is_inner(void *context, const fv_node *node) {
    const task *t = context;
    int         step = node->type.kind == FV_KIND_IMAGE ? fv__stage_step(t->stage, node) : -1;
    return step >= 0 && t->stage->steps[step].kind == FV_STEP_INNER;
}

static fv_status resolve(void *context, const fv_node *node, fv_points_input *input, fv_error *error) {
    task *t = context;
    if (node->type.kind == FV_KIND_IMAGE) {
        input->block = &t->worker->held[fv__stage_step(t->stage, node)].block;
        return FV_OK;
    }
    if (t->nscalars == FV_POINTS_MOST)
        return fv_fail(error, FV_ERROR_USAGE, "an expression with more than %d numbers", FV_POINTS_MOST);
    fv_scalar *place = &t->scalars[t->nscalars++];
    input->scalar = place;
    return fv__instance_scalar(t->instance, node, place, error);
}

static fv_status run_points(task *t, const fv_node *root, const fv_block *out, fv_error *error) {
    if (!t->worker->points) FV_TRY(FV_TAKE_BUFFER(t->worker->points, fv__points_scratch(), error));
    t->nscalars = 0;
    return fv__points_run(root, is_inner, resolve, t, out, t->worker->points, error);
}

/* ---------------------------------------------------------------- steps */

/* Seconds of a step, or of a target: these are counted behind the steps. */
static void spend(task *t, int place, double seconds) { t->facts->spent[FV_MIN(place, FV_FACT_STEPS - 1)] += (float)seconds; }

static fv_status store_bytes(task *t, fv_hash key, const fv_bytes *bytes, fv_error *error);

/* What the operator that has just run told goes to the store before the chunk itself: a chunk that is there has its notes. */
static fv_status store_notes(task *t, const fv_node *node, fv_error *error) {
    if (!t->worker->notes.size) return FV_OK;
    fv_status status = store_bytes(t, fv__key_notes(node, &t->stage->lattice, t->chunk_index), &t->worker->notes, error);
    fv__bytes_clear(&t->worker->notes);
    return status;
}

static bool array_block(const fv_array_params *array, const fv_region *region, fv_block *block) {
    fv_region all = fv__region_whole(&array->type);
    fv_block  whole;
    if ((uintptr_t)array->data % fv_dtype_size(array->type.dtype)) return false; /* kernels rely on whole elements */
    fv__block_init(&whole, array->type.dtype, &all, (void *)(uintptr_t)array->data);
    *block = fv__block_window(&whole, region);
    return true;
}

/* The caller's array is seen where it lies, and what the caller wants back is made where it will lie. */
static bool find_place(const task *t, const fv_step *step, const fv_region *region, fv_block *block) {
    const fv_node *node = step->node;
    if (t->instance->context->poison >= 0) return false;
    if (step->kind == FV_STEP_RUN && node->op->role == FV_OP_ARRAY) return array_block(node->params, region, block);
    return !node->on_device && fv__region_equal(region, &t->chunk) && fv__direct_block(t->instance, node, region, block);
}

static fv_status run_step(task *t, int s, fv_error *error) {
    const fv_step *step = &t->stage->steps[s];
    fv_region     *region = &t->worker->regions[s];
    held          *h = &t->worker->held[s];
    if (!region->ndim || step->kind == FV_STEP_INNER) return FV_OK;
    if (fv__region_empty(region))
        return new_block(t, step->node->type.image.dtype, region, &h->block, &h->buffer, &h->size, error);
    double start = fv__now();
    if (step->kind == FV_STEP_STORED) {
        FV_TRY(fetch(t, step->node, region, h, error));
        t->facts->read += fv__now() - start;
        spend(t, s, fv__now() - start);
        return FV_OK;
    }
    bool placed = find_place(t, step, region, &h->block);
    if (placed && step->node->op->role == FV_OP_ARRAY) return FV_OK;
    if (!placed) FV_TRY(new_block(t, step->node->type.image.dtype, region, &h->block, &h->buffer, &h->size, error));
    bool file = step->node->op->layout != NULL;
    if (step->kind == FV_STEP_POINT)
        FV_TRY(run_points(t, step->node, &h->block, error));
    else
        FV_TRY(run_pass(t, step->node, fv__op_image_pass(step->node->op), region, &h->block, NULL, error));
    *(file ? &t->facts->read : &t->facts->compute) += fv__now() - start;
    spend(t, s, fv__now() - start);
    FV_TRY(store_notes(t, step->node, error));
    t->facts->bytes_read += fv__node_reads(t->instance->plan, step->node, region);
    return FV_OK;
}

static fv_status run_steps(task *t, fv_error *error) {
    for (int s = 0; s < t->stage->nsteps; s++) {
        FV_TRY(run_step(t, s, error));
        for (int k = 0; k <= s; k++)
            if (t->stage->steps[k].last_use == s) release(t, &t->worker->held[k]);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- targets */

static double seconds_so_far(const task *t) { return t->facts->read + t->facts->compute + t->facts->write; }

static bool buffer_is_shared(const task *t, const fv_node *node) {
    int uses = 0;
    for (int k = 0; k < t->stage->ntargets; k++) {
        const fv_target *target = &t->stage->targets[k];
        if (target->kind != FV_TARGET_PASS) uses += target->node == node;
        for (int i = 0; target->kind == FV_TARGET_PASS && i < target->node->ninputs; i++) uses += target->node->in[i] == node;
    }
    return uses > 1;
}

static fv_status store_chunk(task *t, const fv_target *target, fv_error *error) {
    held   *h = &t->worker->held[fv__stage_step(t->stage, target->node)];
    size_t  size = (size_t)fv__region_voxels(&t->chunk) * fv_dtype_size(h->block.dtype);
    void   *buffer;
    fv_hash key = fv__key_chunk(target->node, &t->stage->lattice, t->chunk_index);
    if (fv__direct_put(t->instance, target->node, &t->chunk, &h->block))
        return fv__store_put(t->instance->context->store, key, NULL, 0, seconds_so_far(t), false, error);
    if (h->buffer && h->size == size && fv__region_equal(&h->block.region, &t->chunk) && !buffer_is_shared(t, target->node)) {
        buffer = h->buffer;
        h->buffer = NULL;
    } else {
        fv_block copy;
        FV_TRY(FV_TAKE_BUFFER(buffer, size, error));
        fv__block_init(&copy, h->block.dtype, &t->chunk, buffer);
        fv__block_copy(&copy, &h->block);
    }
    return (t->worker->joint ? fv__store_hold : fv__store_put)(t->instance->context->store, key, buffer, size, seconds_so_far(t),
                                                               true, error);
}

static fv_status store_bytes(task *t, fv_hash key, const fv_bytes *bytes, fv_error *error) {
    void *buffer = NULL;
    if (bytes->size) FV_TRY(FV_TAKE_BUFFER(buffer, bytes->size, error));
    if (buffer) memcpy(buffer, bytes->data, bytes->size);
    return fv__store_put(t->instance->context->store, key, buffer, bytes->size, seconds_so_far(t), true, error);
}

static fv_status make_partial(task *t, const fv_target *target, fv_error *error) {
    fv_bytes *partial = &t->worker->bytes;
    double    start = fv__now();
    fv__bytes_clear(partial);
    const fv_pass *pass = &target->node->op->passes[target->pass];
    fv_need        need = fv__node_need(t->instance->plan, target->node, target->pass, &t->chunk);
    FV_TRY(fv__bytes_need(partial, pass->bound ? pass->bound(&need) : 4096, error)); /* pages are used as they are written */
    FV_TRY(run_pass(t, target->node, target->pass, &t->chunk, NULL, partial, error));
    t->facts->compute += fv__now() - start;
    return store_bytes(t, fv__key_partial(target->node, target->pass, &t->stage->lattice, t->chunk_index), partial, error);
}

static fv_status encode_piece(task *t, const fv_target *target, fv_writer *writer, int64_t piece, const fv_block *window,
                              fv_error *error) {
    fv_bytes *bytes = &t->worker->bytes;
    double    start = fv__now();
    fv_hash   key = fv__key_piece(target->file->sink, piece);
    if (fv__store_knows(t->instance->context->store, key)) return FV_OK;
    fv__bytes_clear(bytes);
    fv_status status = fv__bytes_need(bytes, (size_t)writer->layout.piece_memory, error); /* more than the output */
    if (status == FV_OK) status = writer->format->encode(writer, piece, window, bytes, error);
    t->facts->write += fv__now() - start;
    t->facts->bytes_written += (int64_t)bytes->size;
    return status == FV_OK ? store_bytes(t, key, bytes, error) : status;
}

static fv_status encode_chunk(task *t, const fv_target *target, fv_writer *writer, const fv_block *block, fv_error *error) {
    fv_chunk_walk walk;
    for (fv__pieces_begin(&walk, target->file, &t->chunk); fv__chunk_walk_next(&walk);) {
        fv_block window = fv__block_window(block, &walk.chunk);
        FV_TRY(encode_piece(t, target, writer, walk.index, &window, error));
    }
    return FV_OK;
}

/* A process that does not see the file gives the voxels to the one that writes it (receive.c). */
static fv_status hand_over(task *t, fv_hash key, const fv_block *window, fv_error *error) {
    size_t   size = (size_t)fv__region_voxels(&t->chunk) * fv_dtype_size(window->dtype);
    fv_block copy;
    void    *buffer;
    FV_TRY(FV_TAKE_BUFFER(buffer, size, error));
    fv__block_init(&copy, window->dtype, &t->chunk, buffer);
    fv__block_copy(&copy, window);
    return fv__store_put(t->instance->context->store, key, buffer, size, seconds_so_far(t), true, error);
}

static fv_status write_chunk(task *t, const fv_target *target, fv_error *error) {
    fv_block   window = fv__block_window(&t->worker->held[fv__stage_step(t->stage, target->node)].block, &t->chunk);
    fv_output *output = fv__instance_output(t->instance, target);
    fv_writer *writer = output->writer;
    if (!writer->layout.parallel) return encode_chunk(t, target, writer, &window, error);
    double  start = fv__now();
    fv_hash key = fv__key_put(output, &t->stage->lattice, t->chunk_index);
    t->facts->bytes_written += fv__region_voxels(&t->chunk) * (int64_t)fv_dtype_size(window.dtype);
    if (fv__store_is_part(t->instance->context->store)) return hand_over(t, key, &window, error);
    FV_TRY(writer->format->put(writer, &window, error));
    t->facts->write += fv__now() - start;
    return fv__store_put(t->instance->context->store, key, NULL, 0, seconds_so_far(t), true, error);
}

/* After a kill some targets of a task may be there already. What a sample has come to may be there before tasks that it turns out
 * not to need are over: these are kept for whoever goes on. */
static bool reached(const task *t, const fv_target *target) {
    fv_store *store = t->instance->context->store;
    switch (target->kind) {
    case FV_TARGET_STORE: return fv__store_knows(store, fv__key_chunk(target->node, &t->stage->lattice, t->chunk_index));
    case FV_TARGET_PASS:
        return fv__store_knows(store, fv__key_partial(target->node, target->pass, &t->stage->lattice, t->chunk_index)) ||
               (!target->node->sampling &&
                fv__store_knows(store, fv__key_result(target->node, target->pass, &t->stage->lattice, -1)));
    case FV_TARGET_SINK: {
        const fv_output *output = fv__instance_output(t->instance, target);
        return fv__output_current(output) ||
               (target->file->layout.parallel && fv__store_knows(store, fv__key_put(output, &t->stage->lattice, t->chunk_index)));
    }
    }
    return false;
}

static fv_status reach_targets(task *t, fv_error *error) {
    for (int k = 0; k < t->stage->ntargets; k++) {
        const fv_target *target = &t->stage->targets[k];
        double           start = fv__now();
        if (reached(t, target)) continue;
        if (target->kind == FV_TARGET_STORE) FV_TRY(store_chunk(t, target, error));
        if (target->kind == FV_TARGET_PASS) FV_TRY(make_partial(t, target, error));
        if (target->kind == FV_TARGET_SINK) FV_TRY(write_chunk(t, target, error));
        spend(t, t->stage->nsteps + k, fv__now() - start);
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- the task */

typedef struct choosing {
    task     *t;
    fv_status status;
    fv_error *error;
} choosing;

static int choose(void *context, const fv_node *node) {
    choosing *c = context;
    int       input = 0;
    if (c->status == FV_OK) c->status = fv__instance_chosen(c->t->instance, node, &input, c->error);
    return input;
}

/* Operators declare what they need, and nobody may need what is not there: a wrong declaration is told here, whatever the source
 * or the store would have made of it. */
static fv_status check_regions(const task *t, fv_error *error) {
    for (int s = 0; s < t->stage->nsteps; s++) {
        const fv_region *region = &t->worker->regions[s];
        const fv_node   *node = t->stage->steps[s].node;
        if (!region->ndim || fv__region_empty(region)) continue;
        fv_region whole = fv__region_whole(&node->type.image);
        if (fv__region_inside(region, &whole)) continue;
        char asked[256], there[256];
        fv__region_format(region, asked, sizeof asked);
        fv__region_format(&whole, there, sizeof there);
        return fv_fail(error, FV_ERROR_INTERNAL, "the voxels %s of %s are needed, but it has %s", asked, node->op->name, there);
    }
    return FV_OK;
}

static void narrow(void *context, const fv_node *node, fv_region *in) { narrow_sum(((choosing *)context)->t, node, in); }

/* The sum of this task, and how far it can go now. Whole images that were there from the start have none. */
static fv_status find_sum(task *t, int64_t number, fv_error *error) {
    t->summing = t->instance->sums ? fv__stage_summing(t->stage) : -1;
    if (t->summing < 0) return FV_OK;
    const fv_node     *node = t->stage->steps[t->summing].node;
    int                pass = fv__op_image_pass(node->op);
    const fv_pass_sum *sum = node->op->passes[pass].sum;
    fv__stage_regions(t->instance->plan, t->stage, &t->chunk, t->worker->regions);
    fv_region region = t->worker->regions[t->summing];
    fv_need   need = fv__node_need(t->instance->plan, node, pass, &region);
    FV_TRY(fv__sums_of(t->instance->sums, t->stage, number, sum->bytes(&need), &t->sum, error));
    t->sum_axis = sum->axis(&need);
    t->sum_until = fv__sum_until(t->instance, t->stage, t->summing, &region, t->sum->until);
    return FV_OK;
}

static fv_status begin(task *t, int64_t number, fv_error *error) {
    FV_TRY(fv__memory_check(error));
    t->chunk = fv__stage_chunk(t->stage, number, &t->chunk_index);
    reserve(t->worker, t->stage->nsteps);
    fv__bytes_clear(&t->worker->notes); /* of a task that failed */
    return find_sum(t, number, error);
}

static void end(task *t) {
    for (int s = 0; s < t->stage->nsteps; s++) release(t, &t->worker->held[s]);
    fv__pins_release(&t->pins, t->instance->context->store);
}

static fv_status run_chunk(task *t, int64_t number, fv_error *error) {
    FV_TRY(begin(t, number, error));
    choosing c = { t, FV_OK, error };
    fv__stage_regions_chosen(t->instance->plan, t->stage, &t->chunk, (fv_chosen){ choose, narrow, &c }, t->worker->regions);
    fv_status status = c.status == FV_OK ? check_regions(t, error) : c.status;
    if (status == FV_OK) status = run_steps(t, error);
    if (status == FV_OK) status = reach_targets(t, error);
    end(t);
    return status;
}

fv_status fv__task_sum(fv_instance *instance, const fv_stage *stage, int64_t number, fv_worker *worker, fv_error *error) {
    fv_task_facts facts = { 0 };
    task          t = { .instance = instance, .stage = stage, .worker = worker, .facts = &facts };
    FV_TRY(begin(&t, number, error));
    if (t.summing < 0 || t.sum_until <= t.sum->until) return FV_OK;
    choosing  c = { &t, FV_OK, error };
    fv_region region = worker->regions[t.summing];
    fv__stage_regions_of_step(instance->plan, stage, t.summing, &region, (fv_chosen){ choose, narrow, &c }, worker->regions);
    fv_status status = c.status == FV_OK ? check_regions(&t, error) : c.status;
    for (int s = 0; s < t.summing && status == FV_OK; s++) status = run_step(&t, s, error);
    if (status == FV_OK)
        status = run_pass(&t, stage->steps[t.summing].node, fv__op_image_pass(stage->steps[t.summing].node->op), &region, NULL,
                          NULL, error);
    end(&t);
    free(t.pins.blobs);
    return status;
}

fv_status fv__task_run(fv_instance *instance, const fv_stage *stage, int64_t number, fv_worker *worker, fv_task_facts *facts,
                       fv_error *error) {
    task      t = { .instance = instance, .stage = stage, .worker = worker, .facts = facts };
    fv_status status = FV_OK;
    facts->memory = stage->memory;
    if (!stage->serial)
        status = run_chunk(&t, number, error);
    else
        for (int64_t slab = 0; slab < stage->ntasks && status == FV_OK; slab++)
            if (instance->context->cancel && __atomic_load_n(instance->context->cancel, __ATOMIC_RELAXED))
                status = fv_fail(error, FV_ERROR_CANCELLED, "stopped; the same command goes on from here");
            else if (!fv__task_done(instance, stage, slab)) {
                facts->read = facts->compute = facts->write = 0; /* each slab carries its own work */
                status = run_chunk(&t, slab, error);
            }
    free(t.pins.blobs);
    facts->status = (int)status;
    return status;
}
