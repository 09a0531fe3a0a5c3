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
    *d = (fv_draft){ .target = target };
    if (target.kind == FV_TARGET_SINK) return d;
    d->gate = p->gates[target.node->id];
    p->draft_of[target.node->id][target.kind == FV_TARGET_PASS ? 1 + target.pass : 0] = p->ndrafts - 1;
    return d;
}

void fv__planner_clear_drafts(fv_planner *p) {
    for (int d = 0; d < p->ndrafts; d++) {
        free(p->drafts[d].parts);
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

/* Room for one more. The list doubles when it holds 0, 4, 8, 16 ... entries, so it needs no capacity of its own. */
static void *room(void *list, int count, size_t size) {
    bool full = count >= 4 ? (count & (count - 1)) == 0 : count == 0;
    return full ? fv__realloc(list, (size_t)FV_MAX(2 * count, 4) * size) : list;
}

static void add_part(fv_planner *p, fv_draft *d, const fv_node *node, fv_use use) {
    p->uses[node->id] = (uint8_t)use;
    d->parts = room(d->parts, d->nparts, sizeof *d->parts);
    d->parts[d->nparts++] = (fv_part){ node->id, use };
}

static void add_after(fv_draft *d, int draft) {
    for (int i = 0; i < d->nafter; i++)
        if (d->after[i] == draft) return;
    d->after = room(d->after, d->nafter, sizeof *d->after);
    d->after[d->nafter++] = draft;
}

/* What must be complete before a value of a scalar or of an operator's own earlier passes can be used. */
static void wait_for(fv_planner *p, fv_draft *d, const fv_node *node) {
    if (!node->op || p->uses[node->id] == FV_AWAITED) return;
    int finish = fv__op_last_finish(node->op);
    if (finish >= 0) {
        add_after(d, find_draft(p, FV_TARGET_PASS, node, finish));
        return;
    }
    if (node->type.kind != FV_KIND_SCALAR) return;
    add_part(p, d, node, FV_AWAITED);
    for (int i = 0; i < node->ninputs; i++) /* point-wise on scalars */
        if (node->in[i]) wait_for(p, d, node->in[i]);
}

static void visit(fv_planner *p, fv_draft *d, const fv_node *node, bool top) {
    if (p->uses[node->id]) return;
    if (p->plan->stored[node->id] && !top) {
        add_part(p, d, node, FV_FETCHED);
        add_after(d, find_draft(p, FV_TARGET_STORE, node, 0));
        return;
    }
    add_part(p, d, node, FV_COMPUTED);
    if (fv__op_last_finish(node->op) >= 0) wait_for(p, d, node);
    for (int i = 0; i < node->ninputs; i++) {
        if (!node->in[i]) continue;
        if (fv__is_image(node->in[i]))
            visit(p, d, node->in[i], false);
        else
            wait_for(p, d, node->in[i]);
    }
}

int fv__part_compare(const void *a, const void *b) {
    const fv_part *s = a, *t = b;
    return s->node != t->node ? s->node - t->node : (int)s->use - (int)t->use;
}

static void find_parts(fv_planner *p, fv_draft *d) {
    const fv_target *t = &d->target;
    for (const fv_gate *gate = d->gate; gate; gate = gate->outer) wait_for(p, d, gate->condition);
    if (t->kind != FV_TARGET_PASS) {
        visit(p, d, t->node, t->kind == FV_TARGET_STORE);
        return;
    }
    for (int pass = t->pass - 1; pass >= 0; pass--)
        if (t->node->op->passes[pass].finish) {
            add_after(d, find_draft(p, FV_TARGET_PASS, t->node, pass));
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

static void find_all_parts(fv_planner *p) {
    for (int k = 0; k < p->ndrafts; k++) {
        fv_draft *d = &p->drafts[k];
        find_parts(p, d);
        for (int i = 0; i < d->nparts; i++) p->uses[d->parts[i].node] = FV_UNUSED;
        if (d->nparts) qsort(d->parts, (size_t)d->nparts, sizeof *d->parts, fv__part_compare);
    }
}

static int level_of(fv_planner *p, int index) {
    fv_draft *d = &p->drafts[index];
    if (d->level) return d->level;
    int level = 1;
    for (int i = 0; i < d->nafter; i++) level = FV_MAX(level, level_of(p, d->after[i]) + 1);
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
    for (int i = 0, k = 0; i < a->nparts && k < b->nparts;) {
        const fv_part *s = &a->parts[i], *t = &b->parts[k];
        if (s->node == t->node && ((s->use == FV_COMPUTED && t->use == FV_COMPUTED) || fv__is_image(p->graph->nodes[s->node])))
            return true;
        i += s->node <= t->node;
        k += t->node <= s->node;
    }
    return false;
}

static bool is_sampled(const fv_draft *d) { return d->target.kind == FV_TARGET_PASS && d->target.node->sampling; }

/* Samples that are taken alike can be one; what comes after a sample may turn out not to be needed. */
static bool sampled_alike(const fv_draft *a, const fv_draft *b) {
    if (!is_sampled(a) && !is_sampled(b)) return true;
    if (!is_sampled(a) || !is_sampled(b) || a->target.pass || b->target.pass) return false;
    const fv_sampling *s = a->target.node->sampling, *t = b->target.node->sampling;
    return s->seed == t->seed && s->time == t->time && s->whole == t->whole;
}

/* Programs run one in a task: several at once then, and each only if it has to. */
static bool runs_program(const fv_draft *d) { return d->target.kind != FV_TARGET_SINK && d->target.node->op->program; }

static bool can_join(const fv_planner *p, const fv_draft *a, const fv_draft *b) {
    const fv_image_type *s = fv__target_space(&a->target), *t = fv__target_space(&b->target);
    if (a->level != b->level || !fv__gates_equal(a->gate, b->gate) || !sampled_alike(a, b)) return false;
    if (s->ndim != t->ndim || memcmp(s->shape, t->shape, sizeof(int64_t) * (size_t)s->ndim)) return false;
    if (fv__target_is_serial(p, &a->target) || fv__target_is_serial(p, &b->target)) return false;
    if (runs_program(a) || runs_program(b)) return false;
    if (in_slabs(p, &a->target) != in_slabs(p, &b->target)) return false;
    return share_work(p, a, b) && fv__pieces_fit(a->target.file, b->target.file);
}

/* Which drafts have a node among their parts: those of node n are list[end[n]] to list[end[n + 1] - 1]. */
typedef struct fv_users {
    int *list, *end;
} fv_users;

static fv_users find_users(const fv_planner *p) {
    int      n = p->graph->nnodes;
    fv_users users = { .end = fv__calloc((size_t)(n + 2) * sizeof *users.end) };
    int     *begin = users.end + 1; /* moves up to the end while the list is filled */
    for (int k = 0; k < p->ndrafts; k++)
        for (int i = 0; i < p->drafts[k].nparts; i++) users.end[p->drafts[k].parts[i].node + 2]++;
    for (int id = 2; id < n + 2; id++) users.end[id] += users.end[id - 1];
    users.list = fv__calloc((size_t)FV_MAX(users.end[n + 1], 1) * sizeof *users.list);
    for (int k = 0; k < p->ndrafts; k++)
        for (int i = 0; i < p->drafts[k].nparts; i++) users.list[begin[p->drafts[k].parts[i].node]++] = k;
    return users;
}

static bool joins(const fv_planner *p, int group, const fv_draft *d) {
    for (int k = p->first[group]; k >= 0; k = p->drafts[k].next)
        if (!can_join(p, &p->drafts[k], d)) return false;
    return true;
}

static int by_number(const void *a, const void *b) {
    int p = *(const int *)a, q = *(const int *)b;
    return (p > q) - (p < q);
}

/* A draft joins the first group with all of which it shares work. Only those that have a part in common with its first draft, its
 * neighbours, are asked: in a sweep of thousands they are few. */
static void make_groups(fv_planner *p) {
    fv_users users = find_users(p);
    int     *near = fv__calloc((size_t)FV_MAX(p->ndrafts, 1) * sizeof *near); /* 1 + the last that it is a neighbour of */
    int     *asked = fv__calloc((size_t)FV_MAX(p->ndrafts, 1) * sizeof *asked);
    p->first = fv__realloc(p->first, (size_t)FV_MAX(p->ndrafts, 1) * sizeof *p->first);
    p->ngroups = 0;
    for (int k = 0; k < p->ndrafts; k++) p->drafts[k].group = p->drafts[k].next = -1;
    for (int k = 0; k < p->ndrafts; k++) {
        if (p->drafts[k].group >= 0) continue;
        int group = p->ngroups++, last = k, count = 0;
        p->first[group] = k;
        p->drafts[k].group = group;
        for (int i = 0; i < p->drafts[k].nparts; i++) {
            int node = p->drafts[k].parts[i].node;
            for (int u = users.end[node]; u < users.end[node + 1]; u++) {
                int m = users.list[u];
                if (m <= k || near[m] == k + 1 || p->drafts[m].group >= 0) continue;
                near[m] = k + 1;
                asked[count++] = m;
            }
        }
        qsort(asked, (size_t)count, sizeof *asked, by_number);
        for (int i = 0; i < count; i++) {
            if (!joins(p, group, &p->drafts[asked[i]])) continue;
            p->drafts[asked[i]].group = group;
            last = p->drafts[last].next = asked[i];
        }
    }
    free(users.list);
    free(users.end);
    free(near);
    free(asked);
}

/* A sample computes a part again: that is not worth storing all of it. */
static void find_makers(fv_planner *p) {
    memset(p->makers, 0, (size_t)p->graph->nnodes * sizeof *p->makers);
    memset(p->maker, -1, (size_t)p->graph->nnodes * sizeof *p->maker);
    for (int group = 0; group < p->ngroups; group++)
        for (int k = p->first[group]; k >= 0; k = p->drafts[k].next)
            for (int i = 0; i < p->drafts[k].nparts && !is_sampled(&p->drafts[k]); i++) {
                int node = p->drafts[k].parts[i].node;
                if (p->drafts[k].parts[i].use != FV_COMPUTED || p->maker[node] == group) continue;
                p->maker[node] = group;
                p->makers[node]++;
            }
}

void fv__planner_draft(fv_planner *p) {
    add_targets(p);
    find_all_parts(p);
    for (int k = 0; k < p->ndrafts; k++) level_of(p, k);
    make_groups(p);
    find_makers(p);
}
