/* Targets and what each of them is made of, which of them wait for others, and which share a stage. */
#include "plan/lattice.h"
#include "plan/planner.h"
#include <stdlib.h>

/* ---------------------------------------------------------------- targets and their cones */

static fv_draft *add_draft(fv_planner *p, fv_target target) {
    if (p->ndrafts == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 16;
        p->drafts = fv__realloc(p->drafts, (size_t)p->capacity * sizeof *p->drafts);
    }
    fv_draft *d = &p->drafts[p->ndrafts++];
    *d = (fv_draft){ .target = target, .cone = fv__calloc((size_t)p->graph->nnodes) };
    if (target.kind == FV_TARGET_SINK) return d;
    d->gate = p->gates[target.node->id];
    p->draft_of[target.node->id][target.kind == FV_TARGET_PASS ? 1 + target.pass : 0] = p->ndrafts - 1;
    return d;
}

void fv__planner_clear_drafts(fv_planner *p) {
    for (int d = 0; d < p->ndrafts; d++) {
        free(p->drafts[d].cone);
        free(p->drafts[d].after);
    }
    p->ndrafts = 0;
    memset(p->draft_of, -1, (size_t)p->graph->nnodes * sizeof *p->draft_of);
}

static void add_targets(fv_planner *p) {
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

static int find_draft(const fv_planner *p, fv_target_kind kind, const fv_node *node, int pass) {
    return p->draft_of[node->id][kind == FV_TARGET_PASS ? 1 + pass : 0];
}

/* What must be complete before a value of a scalar or of an operator's own earlier passes can be used. */
static void wait_for(fv_planner *p, fv_draft *d, const fv_node *node) {
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

static void visit(fv_planner *p, fv_draft *d, const fv_node *node, bool top) {
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
        if (fv__is_image(node->in[i]))
            visit(p, d, node->in[i], false);
        else
            wait_for(p, d, node->in[i]);
    }
}

static void find_cones(fv_planner *p) {
    for (int k = 0; k < p->ndrafts; k++) {
        fv_draft *d = &p->drafts[k];
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
            if (fv__is_image(t->node->in[i]))
                visit(p, d, t->node->in[i], false);
            else
                wait_for(p, d, t->node->in[i]);
        }
    }
}

static int level_of(fv_planner *p, int index) {
    fv_draft *d = &p->drafts[index];
    if (d->level) return d->level;
    int level = 1;
    for (int k = 0; k < p->ndrafts; k++)
        if (d->after[k]) level = FV_MAX(level, level_of(p, k) + 1);
    return d->level = level;
}

/* ---------------------------------------------------------------- groups: targets that share a pass over the data */

/* The image whose chunks a reducing pass walks. Without an image to walk, as in a join of tables, it is a single voxel: one task,
 * and the end of the pass does the work. */
const fv_image_type *fv__pass_space(const fv_node *node) {
    static const fv_image_type voxel = { .dtype = FV_UINT8, .ndim = 1, .shape = { 1 }, .axis = { "x" }, .spacing = { 1 } };
    return node->ninputs && fv__is_image(node->in[0]) ? &node->in[0]->type.image : &voxel;
}

/* The image whose chunks a target walks. */
const fv_image_type *fv__target_space(const fv_target *t) {
    return t->kind == FV_TARGET_PASS ? fv__pass_space(t->node) : &t->node->type.image;
}

bool fv__target_is_serial(const fv_planner *p, const fv_target *t) {
    return t->kind == FV_TARGET_STORE && fv__is_source(t->node) && p->layouts[t->node->id].sequential;
}

/* Made in chunks of its own choice. */
static bool in_slabs(const fv_planner *p, const fv_target *t) {
    return t->kind == FV_TARGET_STORE && ((t->node->op && t->node->op->slab) || fv__target_in_pieces(t, p->layouts));
}

static bool share_work(const fv_planner *p, const fv_draft *a, const fv_draft *b) {
    for (int id = 0; id < p->graph->nnodes; id++)
        if (a->cone[id] == 1 && b->cone[id] == 1)
            return true;
        else if (a->cone[id] && b->cone[id] && p->graph->nodes[id]->type.kind == FV_KIND_IMAGE)
            return true;
    return false;
}

static bool can_join(const fv_planner *p, const fv_draft *a, const fv_draft *b) {
    const fv_image_type *s = fv__target_space(&a->target), *t = fv__target_space(&b->target);
    if (a->level != b->level || !fv__gates_equal(a->gate, b->gate)) return false;
    if (s->ndim != t->ndim || memcmp(s->shape, t->shape, sizeof(int64_t) * (size_t)s->ndim)) return false;
    if (fv__target_is_serial(p, &a->target) || fv__target_is_serial(p, &b->target)) return false;
    if (in_slabs(p, &a->target) != in_slabs(p, &b->target)) return false;
    return share_work(p, a, b) && fv__pieces_fit(a->target.file, b->target.file);
}

static void make_groups(fv_planner *p) {
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

void fv__planner_draft(fv_planner *p) {
    add_targets(p);
    find_cones(p);
    for (int k = 0; k < p->ndrafts; k++) level_of(p, k);
    make_groups(p);
}
