/* Gates: what is needed under a condition only. */
#include "plan/planner.h"
#include <stdlib.h>

/* A condition that is choose(other condition, value, 0) is never behind a closed gate of that one: such gates form a chain, and
 * the gates of a condition are the same objects wherever it stands. */
static const fv_gate *make_gate(fv_planner *p, const fv_node *condition, int input, const fv_gate *outer) {
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

bool fv__gates_equal(const fv_gate *a, const fv_gate *b) {
    for (; a && b && a != b; a = a->outer, b = b->outer)
        if (a->condition != b->condition || a->input != b->input) return false;
    return a == b;
}

/* The innermost gate that holds for both. */
static const fv_gate *common_gate(const fv_gate *a, const fv_gate *b) {
    while (a && b && !fv__gates_equal(a, b)) {
        int depth = FV_MAX(a->depth, b->depth);
        if (a->depth == depth) a = a->outer;
        if (b->depth == depth) b = b->outer;
    }
    return a && b ? a : NULL;
}

/* Readers come after what they read. What a condition itself is computed from is never behind its gate. */
void fv__planner_find_gates(fv_planner *p) {
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
