/* Cuts a graph into stages. What is stored is decided in storing.c, which targets make up a stage in drafts.c, which point-wise
 * operators run together in fusing.c, and what a chunk is in lattice.c. */
#include "plan/plan.h"
#include "base/take.h"
#include "plan/fusing.h"
#include "plan/lattice.h"
#include "plan/planner.h"
#include <stdlib.h>

/* ---------------------------------------------------------------- operators */

int fv__op_passes(const fv_op *op) {
    int n = 0;
    while (op && op->passes && op->passes[n].run) n++;
    return n;
}

int fv__op_image_pass(const fv_op *op) {
    int last = fv__op_passes(op) - 1;
    return last >= 0 && !op->passes[last].finish ? last : -1;
}

int fv__op_last_finish(const fv_op *op) {
    int found = -1;
    for (int p = 0; p < fv__op_passes(op); p++)
        if (op->passes[p].finish) found = p;
    return found;
}

fv_need fv__node_need(const fv_plan *plan, const fv_node *node, int pass, const fv_region *region) {
    fv_need need = { .params = node->params, .ninputs = node->ninputs, .out = &node->type, .region = *region };
    for (int i = 0; i < node->ninputs; i++) need.in[i] = node->in_type[i];
    if (plan->pass_stage && !fv__op_is_point(node->op)) {
        int from = node->op->passes[pass].finish ? pass : fv__op_last_finish(node->op);
        int stage = from >= 0 ? plan->pass_stage[node->id][from] : -1;
        if (stage >= 0) need.lattice = &plan->stages[stage].lattice;
    }
    return need;
}

int64_t fv__node_reads(const fv_plan *plan, const fv_node *node, const fv_region *region) {
    if (node->op->layout) return fv__region_voxels(region) * (int64_t)fv_dtype_size(node->type.image.dtype);
    if (!node->op->reads) return 0;
    fv_need need = fv__node_need(plan, node, FV_MAX(fv__op_image_pass(node->op), 0), region);
    return node->op->reads(&need);
}

/* ---------------------------------------------------------------- what there is to plan */

/* Whether an image of which a part is needed takes no more than a part of its inputs. */
static bool is_made_in_parts(const fv_node *node) { return !node->op || (fv__op_last_finish(node->op) < 0 && !node->op->slab); }

static void find_sampled(fv_planner *p) {
    for (int id = p->graph->nnodes - 1; id >= 0; id--) p->sampled[id] = p->alive[id];
    for (int s = 0; s < p->graph->nsinks; s++) p->sampled[p->graph->sinks[s].value->id] = false;
    for (int id = p->graph->nnodes - 1; id >= 0; id--) {
        const fv_node *node = p->graph->nodes[id];
        bool           part = node->sampling || (p->sampled[id] && is_made_in_parts(node));
        for (int i = 0; p->alive[id] && !part && i < node->ninputs; i++)
            if (node->in[i]) p->sampled[node->in[i]->id] = false;
    }
}

static fv_status find_alive(fv_planner *p, fv_error *error) {
    int n = p->graph->nnodes;
    for (int s = 0; s < p->graph->nsinks; s++) p->alive[p->graph->sinks[s].value->id] = true;
    for (int id = n - 1; id >= 0; id--)
        for (int i = 0; p->alive[id] && i < p->graph->nodes[id]->ninputs; i++)
            if (p->graph->nodes[id]->in[i]) p->alive[p->graph->nodes[id]->in[i]->id] = true;
    find_sampled(p);
    for (int id = 0; id < n; id++) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || !fv__is_source(node)) continue;
        memcpy(p->layouts[id].chunk, node->type.image.shape, sizeof p->layouts[id].chunk);
        if (node->op->layout) FV_TRY(node->op->layout(node->params, &p->layouts[id], error));
    }
    return FV_OK;
}

/* The images that are written, and how they lie in their files. */
static fv_status list_files(fv_planner *p, fv_error *error) {
    fv_plan *plan = p->plan;
    plan->files = fv__arena_alloc(p->arena, (size_t)(p->graph->nsinks + 1) * sizeof *plan->files);
    for (int s = 0; s < p->graph->nsinks; s++) {
        const fv_sink *sink = &p->graph->sinks[s];
        if (sink->kind != FV_SINK_FILE || !fv__is_image(sink->value)) continue;
        fv_planned_file *file = &plan->files[plan->nfiles];
        fv_image_file    image = { sink->file, &sink->value->type.image, &sink->write };
        *file = (fv_planned_file){ .index = plan->nfiles++, .sink = sink };
        FV_TRY(fv__format_for_writing(sink->file, &file->format, error));
        FV_TRY(file->format->layout(&image, &file->layout, error));
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- stages */

int fv__stage_step(const fv_stage *stage, const fv_node *node) {
    int low = 0, high = stage->nsteps;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (stage->steps[middle].node->id < node->id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < stage->nsteps && stage->steps[low].node == node ? low : -1;
}

static bool cut_alike(const fv_stage *a, const fv_stage *b) {
    if (a->ntasks != b->ntasks || a->lattice.ndim != b->lattice.ndim) return false;
    for (int d = 0; d < a->lattice.ndim; d++) {
        if (a->lattice.shape[d] != b->lattice.shape[d] || a->lattice.chunk[d] != b->lattice.chunk[d]) return false;
        if (d > 0 && a->lattice.chunk[d] != a->lattice.shape[d]) return false;
    }
    return true;
}

const fv_node *fv__stage_spends(const fv_plan *plan, const fv_stage *stage) {
    const fv_node *spent = NULL;
    for (int s = 0; s < stage->nsteps && !spent; s++) {
        const fv_node *node = stage->steps[s].node;
        for (int i = 0; stage->steps[s].kind == FV_STEP_RUN && node->op->spends >> i; i++)
            if (node->op->spends >> i & 1 && node->in[i]) spent = node->in[i];
    }
    int readers = 0, from = spent ? fv__stage_step(stage, spent) : -1;
    if (from < 0 || stage->steps[from].kind != FV_STEP_STORED) return NULL;
    for (int s = 0; s < stage->nsteps; s++)
        for (int i = 0; stage->steps[s].kind != FV_STEP_STORED && i < stage->steps[s].node->ninputs; i++)
            readers += stage->steps[s].node->in[i] == spent;
    for (int t = 0; t < stage->ntargets; t++) readers += stage->targets[t].kind != FV_TARGET_STORE;
    const fv_stage *made = &plan->stages[plan->store_stage[spent->id]];
    return readers == 1 && made->ntargets == 1 && cut_alike(stage, made) ? spent : NULL;
}

/* The parts of all drafts of a group, each node once, in order of the nodes. Gives their number; the caller frees them. */
static int gather_parts(const fv_planner *p, int group, fv_part **out) {
    int count = 0, kept = 0;
    for (int k = p->first[group]; k >= 0; k = p->drafts[k].next) count += p->drafts[k].nparts;
    fv_part *parts = fv__calloc((size_t)FV_MAX(count, 1) * sizeof *parts);
    count = 0;
    for (int k = p->first[group]; k >= 0; k = p->drafts[k].next) {
        const fv_draft *d = &p->drafts[k];
        if (d->nparts) memcpy(parts + count, d->parts, (size_t)d->nparts * sizeof *parts);
        count += d->nparts;
    }
    qsort(parts, (size_t)count, sizeof *parts, fv__part_compare);
    for (int i = 0; i < count; i++)
        if (!kept || parts[kept - 1].node != parts[i].node) parts[kept++] = parts[i];
    *out = parts;
    return kept;
}

static void add_steps(fv_planner *p, fv_stage *stage, const fv_part *parts, int count) {
    stage->steps = fv__arena_alloc(p->arena, (size_t)FV_MAX(count, 1) * sizeof *stage->steps);
    for (int i = 0; i < count; i++) {
        fv_node *node = p->graph->nodes[parts[i].node];
        if (!fv__is_image(node)) continue;
        bool         stored = parts[i].use == FV_FETCHED;
        fv_step_kind kind = stored ? FV_STEP_STORED : fv__op_is_point(node->op) ? FV_STEP_POINT : FV_STEP_RUN;
        stage->steps[stage->nsteps++] = (fv_step){ .node = node, .kind = kind };
    }
}

static void make_stage(fv_planner *p, int group, fv_stage *stage) {
    int count = 0;
    for (int k = p->first[group]; k >= 0; k = p->drafts[k].next) count++;
    stage->targets = fv__arena_alloc(p->arena, (size_t)FV_MAX(count, 1) * sizeof *stage->targets);
    for (int k = p->first[group]; k >= 0; k = p->drafts[k].next) {
        fv_draft *d = &p->drafts[k];
        stage->targets[stage->ntargets++] = d->target;
        stage->gate = d->gate;
        stage->serial = stage->serial || fv__target_is_serial(p, &d->target);
    }
    fv_part *parts;
    int      nparts = gather_parts(p, group, &parts);
    add_steps(p, stage, parts, nparts);
    fv__stage_fuse(stage);
    free(parts);
}

static int by_level(const void *a, const void *b) {
    return ((const int *)a)[0] != ((const int *)b)[0] ? ((const int *)a)[0] - ((const int *)b)[0]
                                                      : ((const int *)a)[1] - ((const int *)b)[1];
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Stages come after those they need, and are asked once each. */
static void find_needs(fv_planner *p, const int *stage_of, int group, fv_stage *stage) {
    int count = 0;
    for (int k = p->first[group]; k >= 0; k = p->drafts[k].next) count += p->drafts[k].nafter;
    stage->needs = fv__arena_alloc(p->arena, (size_t)FV_MAX(count, 1) * sizeof *stage->needs);
    count = 0;
    for (int k = p->first[group]; k >= 0; k = p->drafts[k].next)
        for (int i = 0; i < p->drafts[k].nafter; i++) stage->needs[count++] = stage_of[p->drafts[p->drafts[k].after[i]].group];
    qsort(stage->needs, (size_t)count, sizeof *stage->needs, by_number);
    for (int i = 0; i < count; i++)
        if (!i || stage->needs[i] != stage->needs[i - 1]) stage->needs[stage->nneeds++] = stage->needs[i];
}

static void make_stages(fv_planner *p) {
    fv_plan *plan = p->plan;
    int(*order)[2] = fv__calloc((size_t)(p->ngroups + 1) * sizeof *order);
    int *stage_of = fv__calloc((size_t)(p->ngroups + 1) * sizeof *stage_of);
    for (int k = 0; k < p->ndrafts; k++) {
        order[p->drafts[k].group][0] = p->drafts[k].level;
        order[p->drafts[k].group][1] = p->drafts[k].group;
    }
    qsort(order, (size_t)p->ngroups, sizeof *order, by_level);
    plan->nstages = p->ngroups;
    plan->stages = fv__arena_alloc(p->arena, (size_t)FV_MAX(p->ngroups, 1) * sizeof *plan->stages);
    for (int s = 0; s < p->ngroups; s++) {
        stage_of[order[s][1]] = s;
        plan->stages[s].index = s;
        make_stage(p, order[s][1], &plan->stages[s]);
    }
    for (int k = 0; k < p->ndrafts; k++) {
        const fv_draft *d = &p->drafts[k];
        fv_stage       *stage = &plan->stages[stage_of[d->group]];
        if (d->target.kind == FV_TARGET_STORE) plan->store_stage[d->target.node->id] = stage->index;
        if (d->target.kind == FV_TARGET_PASS) plan->pass_stage[d->target.node->id][d->target.pass] = stage->index;
    }
    for (int s = 0; s < plan->nstages; s++) find_needs(p, stage_of, order[s][1], &plan->stages[s]);
    free(order);
    free(stage_of);
}

/* ---------------------------------------------------------------- demand and lattices */

/* Bounding region of every node that the sinks and reductions want. */
static void find_demand(fv_planner *p, fv_region *demand) {
    fv_plan *plan = p->plan;
    for (int s = 0; s < p->graph->nsinks; s++)
        if (fv__is_image(p->graph->sinks[s].value))
            demand[p->graph->sinks[s].value->id] = fv__region_whole(&p->graph->sinks[s].value->type.image);
    for (int id = p->graph->nnodes - 1; id >= 0; id--) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || !node->op) continue;
        for (int pass = 0; pass < FV_MAX(fv__op_passes(node->op), 1); pass++) {
            bool      reduces = fv__op_passes(node->op) && node->op->passes[pass].finish;
            fv_region in[FV_MAX_INPUTS], region = demand[id];
            if (reduces)
                region = fv__region_whole(fv__pass_space(node));
            else if (!fv__is_image(node) || !demand[id].ndim)
                continue;
            for (int i = 0; i < FV_MAX_INPUTS; i++) in[i] = region;
            if (fv__op_is_point(node->op))
                fv__point_regions(node, &region, in);
            else if (node->op->passes) {
                fv_need              need = fv__node_need(plan, node, pass, &region);
                fv_lattice           whole; /* lattices are not chosen yet; one chunk asks for most */
                const fv_image_type *space = reduces || fv__is_image(node->in[0]) ? fv__pass_space(node) : &node->type.image;
                fv__lattice_init(&whole, space->ndim, space->shape, space->shape);
                need.lattice = &whole;
                fv__pass_need(&node->op->passes[pass], &need, in);
            }
            for (int i = 0; i < node->ninputs; i++)
                if (fv__is_image(node->in[i])) demand[node->in[i]->id] = fv__region_bound(&demand[node->in[i]->id], &in[i]);
        }
    }
}

/* Whether only a part of what a stage stores may be wanted. */
static bool stores_a_part(const fv_stage *stage) { return stage->ntargets == 1 && stage->targets[0].kind == FV_TARGET_STORE; }

static void choose_lattice(fv_planner *p, fv_stage *stage, const fv_region *demand) {
    const fv_image_type *space = fv__target_space(&stage->targets[0]);
    fv_region            box = fv__region_whole(space);
    if (stores_a_part(stage)) box = demand[stage->targets[0].node->id];
    fv__stage_lattice(p->plan, stage, space, p->layouts, p->options, &box);
}

/* All that the tasks of a stage make. */
static fv_region made_by(const fv_stage *stage) {
    const fv_lattice *l = &stage->lattice;
    fv_region         made = { .ndim = l->ndim };
    for (int d = 0; d < l->ndim; d++) {
        made.start[d] = stage->first[d] * l->chunk[d];
        made.size[d] = FV_MIN(stage->count[d] * l->chunk[d], l->shape[d] - made.start[d]);
    }
    return made;
}

/* Tasks make whole chunks. Where these are more than is wanted, they also need more, and what they need must be made. */
static void widen_demand(fv_planner *p, fv_region *demand) {
    fv_plan   *plan = p->plan;
    bool      *more = fv__calloc((size_t)p->graph->nnodes * sizeof *more);
    fv_region *regions = NULL;
    for (int s = plan->nstages - 1; s >= 0; s--) {
        fv_stage *stage = &plan->stages[s];
        if (!stores_a_part(stage) || !stage->ntasks) continue;
        int id = stage->targets[0].node->id;
        if (more[id]) choose_lattice(p, stage, demand);
        fv_region made = made_by(stage);
        if (!more[id] && fv__region_equal(&made, &demand[id])) continue;
        regions = fv__realloc(regions, (size_t)stage->nsteps * sizeof *regions);
        fv__stage_regions(plan, stage, &made, regions);
        for (int k = 0; k < stage->nsteps; k++) {
            int from = stage->steps[k].node->id;
            if (stage->steps[k].kind != FV_STEP_STORED || !regions[k].ndim) continue;
            demand[from] = fv__region_bound(&demand[from], &regions[k]);
            more[from] = true;
        }
    }
    free(regions);
    free(more);
}

static fv_status choose_lattices(fv_planner *p, fv_error *error) {
    fv_plan   *plan = p->plan;
    fv_region *demand = fv__calloc((size_t)p->graph->nnodes * sizeof *demand);
    bool       countable = true;
    find_demand(p, demand);
    for (int s = 0; s < plan->nstages; s++) {
        choose_lattice(p, &plan->stages[s], demand);
        countable = countable && plan->stages[s].ntasks >= 0;
    }
    if (countable) widen_demand(p, demand);
    for (int s = 0; s < plan->nstages; s++) countable = countable && plan->stages[s].ntasks >= 0;
    free(demand);
    if (countable) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "the chunks are so small that there would be more tasks than a number can count");
}

static fv_status lay_out(fv_planner *p, fv_error *error) {
    fv_plan *plan = p->plan;
    size_t   n = (size_t)p->graph->nnodes;
    do {
        memset(plan->store_stage, -1, n * sizeof *plan->store_stage);
        memset(plan->pass_stage, -1, n * sizeof *plan->pass_stage);
        fv__planner_settle(p);
        make_stages(p);
        FV_TRY(choose_lattices(p, error));
    } while (fv__planner_store_cut_pieces(p));
    return FV_OK;
}

static void count_bytes(fv_planner *p) {
    fv_plan *plan = p->plan;
    for (int s = 0; s < plan->nstages; s++) {
        plan->memory = FV_MAX(plan->memory, plan->stages[s].memory);
        plan->work += plan->stages[s].work;
        for (int t = 0; t < plan->stages[s].ntargets; t++)
            if (plan->stages[s].targets[t].kind == FV_TARGET_SINK)
                plan->bytes_written += fv_image_type_bytes(&plan->stages[s].targets[t].node->type.image);
    }
    plan->bytes_read = fv__plan_bytes_read(plan);
}

fv_status fv__plan_make(const fv_graph *graph, const fv_plan_options *options, fv_arena *arena, const fv_plan **out,
                        fv_error *error) {
    fv_plan *plan = fv__arena_alloc(arena, sizeof *plan);
    size_t   n = (size_t)graph->nnodes;
    plan->graph = graph;
    plan->stored = fv__arena_alloc(arena, n * sizeof *plan->stored);
    plan->store_stage = fv__arena_alloc(arena, n * sizeof *plan->store_stage);
    plan->pass_stage = fv__arena_alloc(arena, n * sizeof *plan->pass_stage);
    fv_planner p = { .plan = plan, .arena = arena, .graph = graph, .options = options };
    p.layouts = fv__arena_alloc(arena, n * sizeof *p.layouts);
    p.alive = fv__arena_alloc(arena, n * sizeof *p.alive);
    p.sampled = fv__arena_alloc(arena, n * sizeof *p.sampled);
    p.counted = fv__arena_alloc(arena, n * sizeof *p.counted);
    p.costs = fv__arena_alloc(arena, n * sizeof *p.costs);
    p.gates = fv__arena_alloc(arena, n * sizeof *p.gates);
    p.gate_of = fv__arena_alloc(arena, n * sizeof *p.gate_of);
    p.draft_of = fv__arena_alloc(arena, n * sizeof *p.draft_of);
    p.uses = fv__arena_alloc(arena, n * sizeof *p.uses);
    p.makers = fv__arena_alloc(arena, n * sizeof *p.makers);
    p.maker = fv__arena_alloc(arena, n * sizeof *p.maker);
    for (int s = 0; s < graph->nsinks; s++)
        if (graph->sinks[s].kind != FV_SINK_FILE && fv__is_image(graph->sinks[s].value))
            plan->stored[graph->sinks[s].value->id] = true;
    fv_status status = find_alive(&p, error);
    fv__planner_find_costs(&p);
    fv__planner_find_gates(&p);
    if (status == FV_OK) status = list_files(&p, error);
    if (status == FV_OK) status = lay_out(&p, error);
    if (status == FV_OK) status = fv__memory_check(error);
    if (status == FV_OK) count_bytes(&p);
    fv__planner_clear_drafts(&p);
    free(p.drafts);
    free(p.first);
    if (status == FV_OK) *out = plan;
    return status;
}
