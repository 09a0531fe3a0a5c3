/* What the files that make a plan know while it is made: plan.c, gates.c, drafts.c and storing.c. */
#ifndef FV_PLANNER_H
#define FV_PLANNER_H

#include "plan/plan.h"

typedef enum fv_use { FV_UNUSED, FV_COMPUTED, FV_FETCHED, FV_AWAITED } fv_use; /* fetched: from the store; awaited: a scalar */

typedef struct fv_part { /* a node that a target needs */
    int    node;         /* its id */
    fv_use use;
} fv_part;
int fv__part_compare(const void *a, const void *b); /* by node, then computed before fetched */

typedef struct fv_draft { /* a target before stages are made */
    fv_target      target;
    int            level;
    int            group;
    int            next; /* of the same group; -1: it is the last */
    const fv_gate *gate;
    int            nparts, nafter;
    fv_part       *parts; /* what it is made of, sorted: few of the nodes, in a graph of many values */
    int           *after; /* drafts that must be complete before, each once */
} fv_draft;

typedef struct fv_planner {
    fv_plan               *plan;
    fv_arena              *arena;
    const fv_graph        *graph;
    const fv_plan_options *options;
    fv_layout             *layouts; /* by node id, of sources */
    bool                  *alive;
    bool                  *sampled; /* by node id: only samples are made of it, which need a part of it */
    fv_draft              *drafts;
    int                    ndrafts, capacity;
    int                    ngroups;
    int                   *first;   /* by group: the first of its drafts */
    int                   *counted; /* by node id: the sum of costs that it was part of last */
    int                    counting;
    double                *costs;       /* by node id, of it alone */
    const fv_gate        **gates;       /* by node id; NULL: needed in any case */
    const fv_gate *(*gate_of)[2];       /* by node id of a condition and input: that has no gate of another around it */
    int (*draft_of)[1 + FV_MAX_PASSES]; /* by node id: that stores it, and of each pass; -1: none */
    uint8_t *uses;                      /* by node id: its fv_use in the draft that is being made */
    int     *makers;                    /* by node id: how many groups compute it */
    int     *maker;                     /* by node id: the last of them */
} fv_planner;

static inline bool fv__is_source(const fv_node *node) { return node->op && !node->ninputs && node->type.kind == FV_KIND_IMAGE; }
static inline bool fv__is_image(const fv_node *node) { return node && node->type.kind == FV_KIND_IMAGE; }

/* ---- gates.c ---- */
void fv__planner_find_gates(fv_planner *planner);
bool fv__gates_equal(const fv_gate *a, const fv_gate *b);

/* ---- drafts.c ---- */
/* Makes the targets that follow from what is stored, and joins those that share a stage. */
void fv__planner_draft(fv_planner *planner);
void fv__planner_clear_drafts(fv_planner *planner);
/* The image whose chunks a reducing pass walks. */
const fv_image_type *fv__pass_space(const fv_node *node);
/* The image whose chunks a target walks. */
const fv_image_type *fv__target_space(const fv_target *target);
bool                 fv__target_is_serial(const fv_planner *planner, const fv_target *target);

/* ---- storing.c ---- */
void fv__planner_find_costs(fv_planner *planner);
/* Decides what is stored, and makes the drafts. */
void fv__planner_settle(fv_planner *planner);
/* A file whose pieces the chunks of a stage cut so often that most of the work would be decoding them again goes into the store,
 * piece by piece. Whether there is one that was not stored before: what was planned so far is void then. */
bool fv__planner_store_cut_pieces(fv_planner *planner);

#endif
