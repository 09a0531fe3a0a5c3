/* Which values are stored and which are computed again wherever they are needed. */
#include "plan/lattice.h"
#include "plan/planner.h"

/* A stored voxel costs about this much to write and read again, so recomputing more than that is worth storing. */
#define STORE_COST 3.0
/* Reading a file that can only be decoded in order. */
#define SEQUENTIAL_COST 12.0
#define READ_COST 1.0
/* Pieces of a file that are decoded more often than this by the tasks of one stage are stored. */
#define MOST_DECODES 3.0

/* ---------------------------------------------------------------- cost */

static double own_cost(const fv_planner *p, const fv_node *node) {
    if (!node->op) return 0;
    if (node->op->cost && node->type.kind == FV_KIND_IMAGE) {
        fv_region whole = fv__region_whole(&node->type.image);
        fv_need   need = { .params = node->params, .ninputs = node->ninputs, .out = &node->type, .region = whole };
        for (int i = 0; i < node->ninputs; i++) need.in[i] = node->in_type[i];
        return node->op->cost(&need);
    }
    if (fv__is_source(node)) return p->layouts[node->id].sequential ? SEQUENTIAL_COST : READ_COST;
    return fv__op_is_point(node->op) ? 0.5 : 1.0;
}

static double new_cost(fv_planner *p, const fv_node *node) { /* of what was not yet counted */
    if (p->counted[node->id] == p->counting) return 0;
    p->counted[node->id] = p->counting;
    if (p->plan->stored[node->id]) return READ_COST;
    double cost = p->costs[node->id];
    for (int i = 0; i < node->ninputs; i++)
        if (fv__is_image(node->in[i])) cost += new_cost(p, node->in[i]);
    return cost;
}

/* Nanoseconds to make one voxel of node from what is stored. */
static double chain_cost(fv_planner *p, const fv_node *node) {
    p->counting++;
    return new_cost(p, node);
}

void fv__planner_find_costs(fv_planner *p) {
    for (int id = 0; id < p->graph->nnodes; id++) p->costs[id] = own_cost(p, p->graph->nodes[id]);
}

/* How many more voxels of an input than of the output a typical chunk of the node's output needs. */
static double expansion(const fv_node *node, int input, const fv_plan_options *options) {
    int pass = fv__op_image_pass(node->op);
    if (fv__op_is_point(node->op) || pass < 0 || !node->op->passes[pass].need || fv__op_last_finish(node->op) >= 0) return 1;
    fv_need need = { .params = node->params, .ninputs = node->ninputs, .out = &node->type };
    for (int i = 0; i < node->ninputs; i++) need.in[i] = node->in_type[i];
    return fv__chunk_expansion(&need, &node->op->passes[pass], input, options);
}

/* ---------------------------------------------------------------- what to store */

static bool store(fv_planner *p, const fv_node *node) {
    if (p->plan->stored[node->id]) return false;
    return p->plan->stored[node->id] = true;
}

/* Sources that can only be read in order go into the store, unless the whole image is one chunk anyway. */
static bool store_sequential(fv_planner *p) {
    bool changed = false;
    for (int id = 0; id < p->graph->nnodes; id++) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || !fv__is_source(node) || !p->layouts[id].sequential) continue;
        if (!fv__chunk_is_whole(&node->type.image, p->options)) changed = store(p, node) || changed;
    }
    return changed;
}

/* An image that is made in slabs of its own is stored, unless one task makes all of it; what a program makes is in any case. */
static bool store_slabs(fv_planner *p) {
    bool changed = false;
    for (int id = 0; id < p->graph->nnodes; id++) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || !fv__is_image(node) || !node->op || !node->op->slab) continue;
        if (node->op->program || !p->options->collection || !fv__chunk_is_whole(&node->type.image, p->options))
            changed = store(p, node) || changed;
    }
    return changed;
}

/* A reducing pass walks its first image. Where it reads a much larger one along with it, as labels and a film, the first is
 * stored: chunks that suited how it is made would hold too much of the other. */
static bool store_under_larger(fv_planner *p) {
    bool changed = false;
    for (int id = 0; id < p->graph->nnodes; id++) {
        const fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || fv__op_last_finish(node->op) < 0 || !fv__is_image(node->in[0]) || fv__is_source(node->in[0]))
            continue;
        int64_t voxels = fv_image_type_voxels(&node->in[0]->type.image);
        for (int i = 1; i < node->ninputs; i++) {
            const fv_image_type *other = fv__is_image(node->in[i]) ? &node->in[i]->type.image : NULL;
            if (other && fv_image_type_voxels(other) >= 4 * voxels && fv__chunks_typical(other) > 1)
                changed = store(p, node->in[0]) || changed;
        }
    }
    return changed;
}

/* How often what a repeated image is made of would be computed, if chunks were cut along the axes where it is repeated. */
static double repeats(const fv_node *node, int input, const fv_plan_options *options) {
    if (!fv__op_is_point(node->op) || !fv__is_image(node) || fv__chunk_is_whole(&node->type.image, options)) return 1;
    fv_matching matching = fv__point_matching(node, input);
    double      times = (double)fv__matched_repeats(&matching, node->type.image.shape, node->type.image.ndim);
    return options->chunk_ndim ? times : FV_MIN(times, fv__chunks_typical(&node->type.image));
}

/* A sample needs a part of an image, and computes what overlaps in it again rather than wait for all of it. */
static bool store_before_halos(fv_planner *p) {
    bool changed = false;
    for (int id = 0; id < p->graph->nnodes; id++) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || !node->op || p->sampled[id]) continue;
        for (int i = 0; i < node->ninputs; i++) {
            if (!fv__is_image(node->in[i]) || p->plan->stored[node->in[i]->id] || fv__is_source(node->in[i])) continue;
            double times = expansion(node, i, p->options) * repeats(node, i, p->options);
            if (chain_cost(p, node->in[i]) * (times - 1) > STORE_COST) changed = store(p, node->in[i]) || changed;
        }
    }
    return changed;
}

/* How many computations storing a node saves. What an item of a collection stores in one chunk stays in memory until the item is
 * done, so each of its stages counts; a larger image has to be read again by each, which takes the gain of all but one. */
static int saved(const fv_planner *p, const fv_node *node) {
    return p->options->collection && fv__chunk_is_whole(&node->type.image, p->options) ? p->makers[node->id] - 1 : 1;
}

/* A node computed in more than one stage is stored where computing it again costs more than storing. The nodes nearest to the
 * results come first: storing one of them often makes its inputs unshared. */
static bool store_shared(fv_planner *p) {
    for (int id = p->graph->nnodes - 1; id >= 0; id--) {
        fv_node *node = p->graph->nodes[id];
        if (!p->alive[id] || !fv__is_image(node) || p->plan->stored[id]) continue;
        if (p->makers[id] < 2 || (fv__is_source(node) && !p->layouts[id].sequential && p->costs[id] <= STORE_COST)) continue;
        if (chain_cost(p, node) * saved(p, node) > STORE_COST) return store(p, node);
    }
    return false;
}

void fv__planner_settle(fv_planner *p) {
    for (;;) {
        fv__planner_clear_drafts(p);
        if (store_sequential(p)) continue;
        if (store_slabs(p)) continue;
        if (store_under_larger(p)) continue;
        if (store_before_halos(p)) continue;
        fv__planner_draft(p);
        if (!store_shared(p)) return;
    }
}

bool fv__planner_store_cut_pieces(fv_planner *p) {
    bool changed = false;
    for (int s = 0; s < p->plan->nstages; s++) {
        const fv_stage *stage = &p->plan->stages[s];
        for (int k = 0; k < stage->nsteps; k++) {
            const fv_node *node = stage->steps[k].node;
            if (stage->steps[k].kind != FV_STEP_RUN || !fv__is_source(node) || !p->layouts[node->id].whole_pieces) continue;
            if (p->plan->stored[node->id] || p->sampled[node->id]) continue;
            if (fv__stage_decodes(p->plan, stage, k, &p->layouts[node->id]) <= MOST_DECODES) continue;
            changed = store(p, node) || changed;
        }
    }
    return changed;
}
