/* How a graph is computed: stages of independent tasks, each one chunk of a lattice.
 *
 * A stage computes one or more targets on one lattice: chunks of a node that is stored, partials of a reducing pass, pieces of
 * a file. Everything between a target and what is stored or read is fused: computed inside the task on exactly the regions that
 * are needed. All choices follow from types, parameters and file layout alone, never from memory, workers or data, so every
 * process makes the same plan.
 */
#ifndef FV_PLAN_H
#define FV_PLAN_H

#include "graph/graph.h"
#include "op/broadcast.h"

typedef enum fv_target_kind {
    FV_TARGET_STORE, /* a chunk of node goes to the store */
    FV_TARGET_PASS,  /* a partial of node's reducing pass */
    FV_TARGET_SINK,  /* a region of a file */
} fv_target_kind;

typedef struct fv_planned_file { /* an image that is written */
    int              index;      /* in the plan's list */
    const fv_sink   *sink;
    const fv_format *format;
    fv_file_layout   layout;
} fv_planned_file;

typedef struct fv_target {
    fv_target_kind         kind;
    const fv_node         *node; /* STORE, SINK: what is written; PASS: the reducing operator */
    int                    pass;
    const fv_planned_file *file; /* SINK */
} fv_target;

/* What a fused group of point-wise operators may hold; a larger expression becomes several groups. */
#define FV_POINTS_MOST 64 /* operators */
#define FV_POINTS_SCALARS 32
#define FV_POINTS_IMAGES 16 /* read by the group */

typedef enum fv_step_kind {
    FV_STEP_STORED, /* fetched from the store */
    FV_STEP_RUN,    /* the operator's last pass, or a source */
    FV_STEP_POINT,  /* a fused group of point-wise operators ending here */
    FV_STEP_INNER,  /* inside such a group: never a block of its own */
} fv_step_kind;

typedef struct fv_step {
    const fv_node *node;
    fv_step_kind   kind;
    int            last_use; /* index of the last step that reads it; number of steps if a target does */
} fv_step;

/* What is needed only if a number that the pipeline computes turns out so: branches of lazy operators, one inside another. */
typedef struct fv_gate {
    const fv_node        *condition;
    int                   input; /* of the lazy operator that must be chosen */
    const struct fv_gate *outer; /* NULL: none */
    int                   depth; /* 1 without an outer one */
} fv_gate;

typedef struct fv_stage {
    int            index;
    fv_target     *targets;
    int            ntargets;
    fv_step       *steps; /* in topological order, which is that of the nodes */
    int            nsteps;
    fv_lattice     lattice;
    int64_t        first[FV_MAX_DIMS], count[FV_MAX_DIMS]; /* box of chunks that is wanted */
    int64_t        ntasks;
    const fv_gate *gate;   /* NULL: it is needed in any case */
    bool           serial; /* a file that can only be read in order: one task stores all chunks */
    int           *needs;  /* stages that must be complete before */
    int            nneeds;
    int64_t        memory; /* of one task, at most */
    int64_t        cpus;   /* of one task: 1, or what a program takes that it runs */
    int64_t        shared; /* bytes beyond it that spare tasks to decode what their neighbours have decoded (op/kept_pieces.h) */
    double         work;   /* nanoseconds on one core, all tasks, roughly */
    double         expansion; /* work over what it would be without halos */
} fv_stage;

typedef struct fv_plan {    /* nothing of it changes once it is made */
    const fv_graph  *graph; /* borrowed */
    fv_planned_file *files; /* that are written, in the order of the graph's sinks */
    int              nfiles;
    fv_stage        *stages;
    int              nstages;
    bool            *stored;      /* by node id */
    int             *store_stage; /* by node id: stage that stores it, -1 */
    int (*pass_stage)[8];         /* by node id and pass */
    int64_t bytes_read, bytes_written;
    int64_t memory; /* most that one task needs */
    double  work;
} fv_plan;

typedef struct fv_plan_options {
    int64_t chunk[FV_MAX_DIMS]; /* lattice override for the last axes; chunk_ndim 0: none */
    int     chunk_ndim;
    bool    collection; /* small items stay whole */
    bool    divided;    /* all workers wait for the same sums and files: these are cut into more parts */
} fv_plan_options;

/* Whether tasks could be made smaller by FV_SMALL_CHUNK, which is said where memory does not suffice. */
#define FV_SMALL_CHUNK 64
static inline bool fv__plan_can_shrink(const fv_plan_options *options) {
    bool larger = options->chunk_ndim == 0;
    for (int d = 0; d < options->chunk_ndim; d++) larger = larger || options->chunk[d] > FV_SMALL_CHUNK;
    return larger;
}

#define FV_MAX_PASSES 8

/* The plan lives in the arena. */
fv_status fv__plan_make(const fv_graph *graph, const fv_plan_options *options, fv_arena *arena, const fv_plan **plan,
                        fv_error *error);

/* Number of the step that makes or fetches an image; -1: it is not in this stage. */
int fv__stage_step(const fv_stage *stage, const fv_node *node);
/* The stored image that the tasks of a stage use up: each chunk is needed by the task of the same number alone. NULL: none. */
const fv_node *fv__stage_spends(const fv_plan *plan, const fv_stage *stage);
/* Chunk of a task, and its number in the whole lattice. */
fv_region fv__stage_chunk(const fv_stage *stage, int64_t task, int64_t *index);
/* Regions that the steps must compute for a chunk; an unneeded step gets ndim 0. */
void fv__stage_regions(const fv_plan *plan, const fv_stage *stage, const fv_region *chunk, fv_region *regions);
/* The same where more is known: which input of lazy operators is needed (input() tells it, 0: neither), or that a node needs less
 * of its inputs this time than it usually does (narrow() changes the regions). Either may be NULL. */
typedef struct fv_chosen {
    int (*input)(void *context, const fv_node *node);
    void (*narrow)(void *context, const fv_node *node, fv_region *in);
    void *context;
} fv_chosen;
void fv__stage_regions_chosen(const fv_plan *plan, const fv_stage *stage, const fv_region *chunk, fv_chosen chosen,
                              fv_region *regions);
/* What a region of one step alone needs. */
void fv__stage_regions_of_step(const fv_plan *plan, const fv_stage *stage, int step, const fv_region *region, fv_chosen chosen,
                               fv_region *regions);
/* Regions of the images that a region of a point-wise node reads, by input. */
void fv__point_regions(const fv_node *node, const fv_region *region, fv_region *in);
/* How the image that a point-wise node reads lies in its result. */
fv_matching fv__point_matching(const fv_node *node, int input);
/* Facts for one pass of a node over a region. */
fv_need fv__node_need(const fv_plan *plan, const fv_node *node, int pass, const fv_region *region);
/* Bytes of files that are read to make a region of a node's image, but not of those that its inputs read. */
int64_t fv__node_reads(const fv_plan *plan, const fv_node *node, const fv_region *region);
/* Number of passes; index of the pass that makes the image (-1 where the result is a scalar or a table). */
int fv__op_passes(const fv_op *op);
int fv__op_image_pass(const fv_op *op);
/* Last reducing pass, -1 if none. */
int fv__op_last_finish(const fv_op *op);

#endif
