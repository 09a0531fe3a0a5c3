/* Cuts a graph into stages: what is stored, what is fused, and in which order. */
#include "plan/plan.h"
#include "base/take.h"
#include "plan/fusing.h"
#include "plan/lattice.h"
#include <stdlib.h>

/* A stored voxel costs about this much to write and read again, so recomputing more than that is worth storing. */
#define STORE_COST 3.0
/* Reading a file that can only be decoded in order. */
#define SEQUENTIAL_COST 12.0
#define READ_COST 1.0
/* Pieces of a file that are decoded more often than this by the tasks of one stage are stored. */
#define MOST_DECODES 3.0

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

static bool is_source(const fv_node *node) { return node->op && !node->ninputs && node->type.kind == FV_KIND_IMAGE; }
static bool is_image(const fv_node *node) { return node && node->type.kind == FV_KIND_IMAGE; }

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

/* ---------------------------------------------------------------- planning state */

typedef struct draft { /* a target before stages are made */
    fv_target      target;
    int            level;
    int            group;
    const fv_gate *gate;
    uint8_t       *cone;  /* by node id: 1 computed here, 2 fetched from the store, 3 a scalar that is waited for */
    uint8_t       *after; /* by draft index: must be complete before */
} draft;

typedef struct planner {
    fv_plan               *plan;
    fv_arena              *arena;
    const fv_graph        *graph;
    const fv_plan_options *options;
    fv_layout             *layouts; /* by node id, of sources */
    bool                  *alive;
    draft                 *drafts;
    int                    ndrafts, capacity;
    int                    ngroups;
    int                   *counted; /* by node id: the sum of costs that it was part of last */
    int                    counting;
    double                *costs;       /* by node id, of it alone */
    const fv_gate        **gates;       /* by node id; NULL: needed in any case */
    const fv_gate *(*gate_of)[2];       /* by node id of a condition and input: that has no gate of another around it */
    int (*draft_of)[1 + FV_MAX_PASSES]; /* by node id: that stores it, and of each pass; -1: none */
} planner;

static fv_status find_alive(planner *p, fv_error *error) {
    int n = p->graph->nnodes;
    for (int s = 0; s < p->graph->nsinks; s++) p->alive[p->graph->sinks[s].value->id] = true;
    for (int id = n - 1; id >= 0; id--)
        for (int i = 0; p->alive[id] && i < p->graph->nodes[id]->ninputs; i++)
            if (p->graph->nodes[id]->in[i]) p->alive[p->graph->nodes[id]->in[i]->id] = true;
    for (int id = 0; id < n; id++) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || !is_source(node)) continue;
        memcpy(p->layouts[id].chunk, node->type.image.shape, sizeof p->layouts[id].chunk);
        if (node->op->layout) FV_TRY(node->op->layout(node->params, &p->layouts[id], error));
    }
    return FV_OK;
}

/* The images that are written, and how they lie in their files. */
static fv_status list_files(planner *p, fv_error *error) {
    fv_plan *plan = p->plan;
    plan->files = fv__arena_alloc(p->arena, (size_t)(p->graph->nsinks + 1) * sizeof *plan->files);
    for (int s = 0; s < p->graph->nsinks; s++) {
        const fv_sink *sink = &p->graph->sinks[s];
        if (sink->kind != FV_SINK_FILE || !is_image(sink->value)) continue;
        fv_planned_file *file = &plan->files[plan->nfiles];
        fv_image_file    image = { sink->file, &sink->value->type.image, &sink->write };
        *file = (fv_planned_file){ .index = plan->nfiles++, .sink = sink };
        FV_TRY(fv__format_for_writing(sink->file, &file->format, error));
        FV_TRY(file->format->layout(&image, &file->layout, error));
    }
    return FV_OK;
}

/* ---------------------------------------------------------------- gates: what is needed under a condition only */

/* A condition that is choose(other condition, value, 0) is never behind a closed gate of that one: such gates form a chain, and
 * the gates of a condition are the same objects wherever it stands. */
static const fv_gate *make_gate(planner *p, const fv_node *condition, int input, const fv_gate *outer) {
    const fv_gate **known = &p->gate_of[condition->id][input - 1], *same = outer ? NULL : *known;
    if (same) return same;
    fv_gate *gate = fv__arena_alloc(p->arena, sizeof *gate);
    if (!outer) {
        const fv_node *last = condition->op && condition->op->lazy ? condition->in[2] : NULL;
        bool           chain = last && !last->op && fv__scalar_number(&last->value) == 0 && input == 1;
        if (chain) outer = make_gate(p, condition->in[0], 1, NULL);
        *known = gate;
    }
    *gate = (fv_gate){ condition, input, outer, outer ? outer->depth + 1 : 1 };
    return gate;
}

static bool same_gate(const fv_gate *a, const fv_gate *b) {
    for (; a && b && a != b; a = a->outer, b = b->outer)
        if (a->condition != b->condition || a->input != b->input) return false;
    return a == b;
}

/* The innermost gate that holds for both. */
static const fv_gate *common_gate(const fv_gate *a, const fv_gate *b) {
    while (a && b && !same_gate(a, b)) {
        int depth = FV_MAX(a->depth, b->depth);
        if (a->depth == depth) a = a->outer;
        if (b->depth == depth) b = b->outer;
    }
    return a && b ? a : NULL;
}

/* Readers come after what they read. What a condition itself is computed from is never behind its gate. */
static void find_gates(planner *p) {
    bool *reached = fv__calloc((size_t)p->graph->nnodes + 1);
    for (int s = 0; s < p->graph->nsinks; s++) reached[p->graph->sinks[s].value->id] = true;
    for (int id = p->graph->nnodes - 1; id >= 0; id--) {
        const fv_node *node = p->graph->nodes[id];
        for (int i = 0; p->alive[id] && i < node->ninputs; i++) {
            if (!node->in[i]) continue;
            const fv_gate *gate = p->gates[id];
            if (node->op->lazy && i) gate = make_gate(p, node->in[0], i, gate);
            int in = node->in[i]->id;
            p->gates[in] = reached[in] ? common_gate(p->gates[in], gate) : gate;
            reached[in] = true;
        }
    }
    free(reached);
}

/* ---------------------------------------------------------------- cost */

static double own_cost(const planner *p, const fv_node *node) {
    if (!node->op) return 0;
    if (node->op->cost && node->type.kind == FV_KIND_IMAGE) {
        fv_region whole = fv__region_whole(&node->type.image);
        fv_need   need = { .params = node->params, .ninputs = node->ninputs, .out = &node->type, .region = whole };
        for (int i = 0; i < node->ninputs; i++) need.in[i] = node->in_type[i];
        return node->op->cost(&need);
    }
    if (is_source(node)) return p->layouts[node->id].sequential ? SEQUENTIAL_COST : READ_COST;
    return fv__op_is_point(node->op) ? 0.5 : 1.0;
}

static double new_cost(planner *p, const fv_node *node) { /* of what was not yet counted */
    if (p->counted[node->id] == p->counting) return 0;
    p->counted[node->id] = p->counting;
    if (p->plan->stored[node->id]) return READ_COST;
    double cost = p->costs[node->id];
    for (int i = 0; i < node->ninputs; i++)
        if (is_image(node->in[i])) cost += new_cost(p, node->in[i]);
    return cost;
}

/* Nanoseconds to make one voxel of node from what is stored. */
static double chain_cost(planner *p, const fv_node *node) {
    p->counting++;
    return new_cost(p, node);
}

/* How many more voxels of an input than of the output a typical chunk of the node's output needs. */
static double expansion(const fv_node *node, int input, const fv_plan_options *options) {
    int pass = fv__op_image_pass(node->op);
    if (fv__op_is_point(node->op) || pass < 0 || !node->op->passes[pass].need || fv__op_last_finish(node->op) >= 0) return 1;
    fv_need need = { .params = node->params, .ninputs = node->ninputs, .out = &node->type };
    for (int i = 0; i < node->ninputs; i++) need.in[i] = node->in_type[i];
    return fv__chunk_expansion(&need, &node->op->passes[pass], input, options);
}

/* ---------------------------------------------------------------- targets and their cones */

static draft *add_draft(planner *p, fv_target target) {
    if (p->ndrafts == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 16;
        p->drafts = fv__realloc(p->drafts, (size_t)p->capacity * sizeof *p->drafts);
    }
    draft *d = &p->drafts[p->ndrafts++];
    *d = (draft){ .target = target, .cone = fv__calloc((size_t)p->graph->nnodes) };
    if (target.kind == FV_TARGET_SINK) return d;
    d->gate = p->gates[target.node->id];
    p->draft_of[target.node->id][target.kind == FV_TARGET_PASS ? 1 + target.pass : 0] = p->ndrafts - 1;
    return d;
}

static void clear_drafts(planner *p) {
    for (int d = 0; d < p->ndrafts; d++) {
        free(p->drafts[d].cone);
        free(p->drafts[d].after);
    }
    p->ndrafts = 0;
    memset(p->draft_of, -1, (size_t)p->graph->nnodes * sizeof *p->draft_of);
}

static void add_targets(planner *p) {
    for (int id = 0; id < p->graph->nnodes; id++) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id]) continue;
        for (int pass = 0; pass < fv__op_passes(node->op); pass++)
            if (node->op->passes[pass].finish) add_draft(p, (fv_target){ .kind = FV_TARGET_PASS, .node = node, .pass = pass });
        if (p->plan->stored[id]) add_draft(p, (fv_target){ .kind = FV_TARGET_STORE, .node = node });
    }
    for (int f = 0; f < p->plan->nfiles; f++) {
        const fv_planned_file *file = &p->plan->files[f];
        add_draft(p, (fv_target){ .kind = FV_TARGET_SINK, .node = file->sink->value, .file = file });
    }
}

static int find_draft(const planner *p, fv_target_kind kind, const fv_node *node, int pass) {
    return p->draft_of[node->id][kind == FV_TARGET_PASS ? 1 + pass : 0];
}

/* What must be complete before a value of a scalar or of an operator's own earlier passes can be used. */
static void wait_for(planner *p, draft *d, const fv_node *node) {
    if (!node->op || d->cone[node->id] == 3) return;
    int finish = fv__op_last_finish(node->op);
    if (finish >= 0) {
        d->after[find_draft(p, FV_TARGET_PASS, node, finish)] = 1;
        return;
    }
    if (node->type.kind != FV_KIND_SCALAR) return;
    d->cone[node->id] = 3;
    for (int i = 0; i < node->ninputs; i++) /* point-wise on scalars */
        if (node->in[i]) wait_for(p, d, node->in[i]);
}

static void visit(planner *p, draft *d, const fv_node *node, bool top) {
    if (d->cone[node->id]) return;
    if (p->plan->stored[node->id] && !top) {
        d->cone[node->id] = 2;
        d->after[find_draft(p, FV_TARGET_STORE, node, 0)] = 1;
        return;
    }
    d->cone[node->id] = 1;
    if (fv__op_last_finish(node->op) >= 0) wait_for(p, d, node);
    for (int i = 0; i < node->ninputs; i++) {
        if (!node->in[i]) continue;
        if (is_image(node->in[i]))
            visit(p, d, node->in[i], false);
        else
            wait_for(p, d, node->in[i]);
    }
}

static void find_cones(planner *p) {
    for (int k = 0; k < p->ndrafts; k++) {
        draft *d = &p->drafts[k];
        d->after = fv__calloc((size_t)p->ndrafts);
        const fv_target *t = &d->target;
        for (const fv_gate *gate = d->gate; gate; gate = gate->outer) wait_for(p, d, gate->condition);
        if (t->kind != FV_TARGET_PASS) {
            visit(p, d, t->node, t->kind == FV_TARGET_STORE);
            continue;
        }
        for (int pass = t->pass - 1; pass >= 0; pass--)
            if (t->node->op->passes[pass].finish) {
                d->after[find_draft(p, FV_TARGET_PASS, t->node, pass)] = 1;
                break;
            }
        for (int i = 0; i < t->node->ninputs; i++) {
            if (!t->node->in[i]) continue;
            if (is_image(t->node->in[i]))
                visit(p, d, t->node->in[i], false);
            else
                wait_for(p, d, t->node->in[i]);
        }
    }
}

static int level_of(planner *p, int index) {
    draft *d = &p->drafts[index];
    if (d->level) return d->level;
    int level = 1;
    for (int k = 0; k < p->ndrafts; k++)
        if (d->after[k]) level = FV_MAX(level, level_of(p, k) + 1);
    return d->level = level;
}

/* ---------------------------------------------------------------- groups: targets that share a pass over the data */

/* The image whose chunks a reducing pass walks. Without an image to walk, as in a join of tables, it is a single voxel: one task,
 * and the end of the pass does the work. */
static const fv_image_type *space_of_pass(const fv_node *node) {
    static const fv_image_type voxel = { .dtype = FV_UINT8, .ndim = 1, .shape = { 1 }, .axis = { "x" }, .spacing = { 1 } };
    return node->ninputs && is_image(node->in[0]) ? &node->in[0]->type.image : &voxel;
}

/* The image whose chunks a target walks. */
static const fv_image_type *space_of(const fv_target *t) {
    return t->kind == FV_TARGET_PASS ? space_of_pass(t->node) : &t->node->type.image;
}

static bool is_serial(const planner *p, const fv_target *t) {
    return t->kind == FV_TARGET_STORE && is_source(t->node) && p->layouts[t->node->id].sequential;
}

/* Made in chunks of its own choice. */
static bool in_slabs(const planner *p, const fv_target *t) {
    return t->kind == FV_TARGET_STORE && ((t->node->op && t->node->op->slab) || fv__target_in_pieces(t, p->layouts));
}

static bool share_work(const planner *p, const draft *a, const draft *b) {
    for (int id = 0; id < p->graph->nnodes; id++)
        if (a->cone[id] == 1 && b->cone[id] == 1)
            return true;
        else if (a->cone[id] && b->cone[id] && p->graph->nodes[id]->type.kind == FV_KIND_IMAGE)
            return true;
    return false;
}

static bool can_join(const planner *p, const draft *a, const draft *b) {
    const fv_image_type *s = space_of(&a->target), *t = space_of(&b->target);
    if (a->level != b->level || !same_gate(a->gate, b->gate)) return false;
    if (s->ndim != t->ndim || memcmp(s->shape, t->shape, sizeof(int64_t) * (size_t)s->ndim)) return false;
    if (is_serial(p, &a->target) || is_serial(p, &b->target)) return false;
    if (in_slabs(p, &a->target) != in_slabs(p, &b->target)) return false;
    return share_work(p, a, b) && fv__pieces_fit(a->target.file, b->target.file);
}

static void make_groups(planner *p) {
    p->ngroups = 0;
    for (int k = 0; k < p->ndrafts; k++) p->drafts[k].group = -1;
    for (int k = 0; k < p->ndrafts; k++) {
        if (p->drafts[k].group >= 0) continue;
        int group = p->ngroups++;
        p->drafts[k].group = group;
        for (int m = k + 1; m < p->ndrafts; m++) {
            bool joins = p->drafts[m].group < 0;
            for (int q = k; q < m && joins; q++)
                if (p->drafts[q].group == group && !can_join(p, &p->drafts[q], &p->drafts[m])) joins = false;
            if (joins) p->drafts[m].group = group;
        }
    }
}

/* ---------------------------------------------------------------- what to store */

static bool store(planner *p, const fv_node *node) {
    if (p->plan->stored[node->id]) return false;
    return p->plan->stored[node->id] = true;
}

/* Sources that can only be read in order go into the store, unless the whole image is one chunk anyway. */
static bool store_sequential(planner *p) {
    bool changed = false;
    for (int id = 0; id < p->graph->nnodes; id++) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || !is_source(node) || !p->layouts[id].sequential) continue;
        if (!fv__chunk_is_whole(&node->type.image, p->options)) changed = store(p, node) || changed;
    }
    return changed;
}

/* An image that is made in slabs of its own is stored, unless one task makes all of it. */
static bool store_slabs(planner *p) {
    bool changed = false;
    for (int id = 0; id < p->graph->nnodes; id++) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || !is_image(node) || !node->op || !node->op->slab) continue;
        if (!p->options->collection || !fv__chunk_is_whole(&node->type.image, p->options)) changed = store(p, node) || changed;
    }
    return changed;
}

/* A reducing pass walks its first image. Where it reads a much larger one along with it, as labels and a film, the first is
 * stored: chunks that suited how it is made would hold too much of the other. */
static bool store_under_larger(planner *p) {
    bool changed = false;
    for (int id = 0; id < p->graph->nnodes; id++) {
        const fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || fv__op_last_finish(node->op) < 0 || !is_image(node->in[0]) || is_source(node->in[0])) continue;
        int64_t voxels = fv_image_type_voxels(&node->in[0]->type.image);
        for (int i = 1; i < node->ninputs; i++) {
            const fv_image_type *other = is_image(node->in[i]) ? &node->in[i]->type.image : NULL;
            if (other && fv_image_type_voxels(other) >= 4 * voxels && fv__chunks_typical(other) > 1)
                changed = store(p, node->in[0]) || changed;
        }
    }
    return changed;
}

/* How often what a repeated image is made of would be computed, if chunks were cut along the axes where it is repeated. */
static double repeats(const fv_node *node, int input, const fv_plan_options *options) {
    if (!fv__op_is_point(node->op) || !is_image(node) || fv__chunk_is_whole(&node->type.image, options)) return 1;
    fv_matching matching = fv__point_matching(node, input);
    double      times = (double)fv__matched_repeats(&matching, node->type.image.shape, node->type.image.ndim);
    return options->chunk_ndim ? times : FV_MIN(times, fv__chunks_typical(&node->type.image));
}

static bool store_before_halos(planner *p) {
    bool changed = false;
    for (int id = 0; id < p->graph->nnodes; id++) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || !node->op) continue;
        for (int i = 0; i < node->ninputs; i++) {
            if (!is_image(node->in[i]) || p->plan->stored[node->in[i]->id] || is_source(node->in[i])) continue;
            double times = expansion(node, i, p->options) * repeats(node, i, p->options);
            if (chain_cost(p, node->in[i]) * (times - 1) > STORE_COST) changed = store(p, node->in[i]) || changed;
        }
    }
    return changed;
}

/* A node computed in more than one stage is stored where computing it again costs more than storing. The nodes nearest to the
 * results come first: storing one of them often makes its inputs unshared. */
static bool store_shared(planner *p) {
    for (int id = p->graph->nnodes - 1; id >= 0; id--) {
        fv_node *node = p->graph->nodes[id];
        int      first = -1;
        bool     shared = false;
        if (!p->alive[id] || !is_image(node) || p->plan->stored[id]) continue;
        for (int k = 0; k < p->ndrafts; k++) {
            if (p->drafts[k].cone[id] != 1) continue;
            shared = shared || (first >= 0 && p->drafts[k].group != first);
            first = p->drafts[k].group;
        }
        if (!shared || (is_source(node) && !p->layouts[id].sequential && p->costs[id] <= STORE_COST)) continue;
        if (chain_cost(p, node) > STORE_COST) return store(p, node);
    }
    return false;
}

static void settle(planner *p) {
    for (;;) {
        clear_drafts(p);
        if (store_sequential(p)) continue;
        if (store_slabs(p)) continue;
        if (store_under_larger(p)) continue;
        if (store_before_halos(p)) continue;
        add_targets(p);
        find_cones(p);
        for (int k = 0; k < p->ndrafts; k++) level_of(p, k);
        make_groups(p);
        if (!store_shared(p)) return;
    }
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

static void add_steps(planner *p, fv_stage *stage, const uint8_t *cone) {
    int n = p->graph->nnodes;
    int count = 0;
    for (int id = 0; id < n; id++) count += cone[id] && is_image(p->graph->nodes[id]);
    stage->steps = fv__arena_alloc(p->arena, (size_t)FV_MAX(count, 1) * sizeof *stage->steps);
    for (int id = 0; id < n; id++) {
        fv_node *node = p->graph->nodes[id];
        if (!cone[id] || !is_image(node)) continue;
        fv_step_kind kind = cone[id] == 2 ? FV_STEP_STORED : fv__op_is_point(node->op) ? FV_STEP_POINT : FV_STEP_RUN;
        stage->steps[stage->nsteps++] = (fv_step){ .node = node, .kind = kind };
    }
}

static void make_stage(planner *p, int group, fv_stage *stage) {
    int      n = p->graph->nnodes;
    uint8_t *cone = fv__calloc((size_t)n);
    int      count = 0;
    for (int k = 0; k < p->ndrafts; k++) count += p->drafts[k].group == group;
    stage->targets = fv__arena_alloc(p->arena, (size_t)FV_MAX(count, 1) * sizeof *stage->targets);
    for (int k = 0; k < p->ndrafts; k++) {
        draft *d = &p->drafts[k];
        if (d->group != group) continue;
        stage->targets[stage->ntargets++] = d->target;
        stage->gate = d->gate;
        stage->serial = stage->serial || is_serial(p, &d->target);
        for (int id = 0; id < n; id++)
            if (d->cone[id]) cone[id] = cone[id] == 1 ? 1 : d->cone[id];
    }
    add_steps(p, stage, cone);
    fv__stage_fuse(stage);
    free(cone);
}

static int by_level(const void *a, const void *b) {
    return ((const int *)a)[0] != ((const int *)b)[0] ? ((const int *)a)[0] - ((const int *)b)[0]
                                                      : ((const int *)a)[1] - ((const int *)b)[1];
}

/* Stages come after those they need, and are asked once each. */
static void find_needs(planner *p, const int *stage_of, fv_stage *stage) {
    uint8_t *needed = fv__calloc((size_t)p->ngroups + 1);
    for (int k = 0; k < p->ndrafts; k++)
        for (int m = 0; m < p->ndrafts && stage_of[p->drafts[k].group] == stage->index; m++)
            if (p->drafts[k].after[m]) needed[stage_of[p->drafts[m].group]] = 1;
    for (int s = 0; s < p->ngroups; s++) stage->nneeds += needed[s];
    stage->needs = fv__arena_alloc(p->arena, (size_t)FV_MAX(stage->nneeds, 1) * sizeof *stage->needs);
    stage->nneeds = 0;
    for (int s = 0; s < p->ngroups; s++)
        if (needed[s]) stage->needs[stage->nneeds++] = s;
    free(needed);
}

static void make_stages(planner *p) {
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
        const draft *d = &p->drafts[k];
        fv_stage    *stage = &plan->stages[stage_of[d->group]];
        if (d->target.kind == FV_TARGET_STORE) plan->store_stage[d->target.node->id] = stage->index;
        if (d->target.kind == FV_TARGET_PASS) plan->pass_stage[d->target.node->id][d->target.pass] = stage->index;
    }
    for (int s = 0; s < plan->nstages; s++) find_needs(p, stage_of, &plan->stages[s]);
    free(order);
    free(stage_of);
}

/* ---------------------------------------------------------------- demand and lattices */

/* Bounding region of every node that the sinks and reductions want. */
static void find_demand(planner *p, fv_region *demand) {
    fv_plan *plan = p->plan;
    for (int s = 0; s < p->graph->nsinks; s++)
        if (is_image(p->graph->sinks[s].value))
            demand[p->graph->sinks[s].value->id] = fv__region_whole(&p->graph->sinks[s].value->type.image);
    for (int id = p->graph->nnodes - 1; id >= 0; id--) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || !node->op) continue;
        for (int pass = 0; pass < FV_MAX(fv__op_passes(node->op), 1); pass++) {
            bool      reduces = fv__op_passes(node->op) && node->op->passes[pass].finish;
            fv_region in[FV_MAX_INPUTS], region = demand[id];
            if (reduces)
                region = fv__region_whole(space_of_pass(node));
            else if (!is_image(node) || !demand[id].ndim)
                continue;
            for (int i = 0; i < FV_MAX_INPUTS; i++) in[i] = region;
            if (fv__op_is_point(node->op))
                fv__point_regions(node, &region, in);
            else if (node->op->passes) {
                fv_need              need = fv__node_need(plan, node, pass, &region);
                fv_lattice           whole; /* lattices are not chosen yet; one chunk asks for most */
                const fv_image_type *space = reduces || is_image(node->in[0]) ? space_of_pass(node) : &node->type.image;
                fv__lattice_init(&whole, space->ndim, space->shape, space->shape);
                need.lattice = &whole;
                fv__pass_need(&node->op->passes[pass], &need, in);
            }
            for (int i = 0; i < node->ninputs; i++)
                if (is_image(node->in[i])) demand[node->in[i]->id] = fv__region_bound(&demand[node->in[i]->id], &in[i]);
        }
    }
}

static fv_status choose_lattices(planner *p, fv_error *error) {
    fv_plan   *plan = p->plan;
    fv_region *demand = fv__calloc((size_t)p->graph->nnodes * sizeof *demand);
    find_demand(p, demand);
    for (int s = 0; s < plan->nstages; s++) {
        fv_stage            *stage = &plan->stages[s];
        const fv_image_type *space = space_of(&stage->targets[0]);
        fv_region            box = fv__region_whole(space);
        if (stage->ntargets == 1 && stage->targets[0].kind == FV_TARGET_STORE) box = demand[stage->targets[0].node->id];
        fv__stage_lattice(plan, stage, space, p->layouts, p->options, &box);
        if (stage->ntasks < 0) {
            free(demand);
            return fv_fail(error, FV_ERROR_USAGE,
                           "the chunks are so small that there would be more tasks than a number can count");
        }
    }
    free(demand);
    return FV_OK;
}

/* A file whose pieces the chunks of a stage cut so often that most of the work would be decoding them again goes into the store,
 * piece by piece. Tells whether there is one that was not stored before: what was planned so far is void then. */
static bool store_cut_pieces(planner *p) {
    bool changed = false;
    for (int s = 0; s < p->plan->nstages; s++) {
        const fv_stage *stage = &p->plan->stages[s];
        for (int k = 0; k < stage->nsteps; k++) {
            const fv_node *node = stage->steps[k].node;
            if (stage->steps[k].kind != FV_STEP_RUN || !is_source(node) || !p->layouts[node->id].whole_pieces) continue;
            if (p->plan->stored[node->id] || fv__stage_decodes(p->plan, stage, k, &p->layouts[node->id]) <= MOST_DECODES)
                continue;
            changed = store(p, node) || changed;
        }
    }
    return changed;
}

static fv_status lay_out(planner *p, fv_error *error) {
    fv_plan *plan = p->plan;
    size_t   n = (size_t)p->graph->nnodes;
    do {
        memset(plan->store_stage, -1, n * sizeof *plan->store_stage);
        memset(plan->pass_stage, -1, n * sizeof *plan->pass_stage);
        settle(p);
        make_stages(p);
        FV_TRY(choose_lattices(p, error));
    } while (store_cut_pieces(p));
    return FV_OK;
}

static void count_bytes(planner *p) {
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
    planner p = { .plan = plan, .arena = arena, .graph = graph, .options = options };
    p.layouts = fv__arena_alloc(arena, n * sizeof *p.layouts);
    p.alive = fv__arena_alloc(arena, n * sizeof *p.alive);
    p.counted = fv__arena_alloc(arena, n * sizeof *p.counted);
    p.costs = fv__arena_alloc(arena, n * sizeof *p.costs);
    p.gates = fv__arena_alloc(arena, n * sizeof *p.gates);
    p.gate_of = fv__arena_alloc(arena, n * sizeof *p.gate_of);
    p.draft_of = fv__arena_alloc(arena, n * sizeof *p.draft_of);
    for (int s = 0; s < graph->nsinks; s++)
        if (graph->sinks[s].kind != FV_SINK_FILE && is_image(graph->sinks[s].value))
            plan->stored[graph->sinks[s].value->id] = true;
    fv_status status = find_alive(&p, error);
    for (int id = 0; id < graph->nnodes; id++) p.costs[id] = own_cost(&p, graph->nodes[id]);
    find_gates(&p);
    if (status == FV_OK) status = list_files(&p, error);
    if (status == FV_OK) status = lay_out(&p, error);
    if (status == FV_OK) status = fv__memory_check(error);
    if (status == FV_OK) count_bytes(&p);
    clear_drafts(&p);
    free(p.drafts);
    if (status == FV_OK) *out = plan;
    return status;
}
