/* The graph of a run as its folder keeps it (graph.json), and what the manifest says beside it. */
#ifndef FV_RUN_GRAPH_H
#define FV_RUN_GRAPH_H

#include "base/base.h"

typedef struct fv_graph_node {
    int         id;
    const char *op, *called, *name, *parameters, *type; /* called: what the text calls, if that is another; else "" */
    bool        constant, stored;
    int         line, nin, *in; /* places in the list of nodes */
} fv_graph_node;

typedef struct fv_graph_stage {
    const char *title;
    int64_t     tasks, memory; /* of one item */
    double      work;
    int         nneeds, *needs, nnodes, *nodes; /* nodes: places in the list */
} fv_graph_stage;

typedef struct fv_graph_sink {
    int         node; /* place in the list; -1: not in it */
    const char *what, *name;
    int64_t     step;   /* of a solver; 0: it is no step */
    const char *series; /* the file that lists the steps; "": none does */
} fv_graph_sink;

typedef struct fv_input_file {
    const char *path;
    int64_t     size, mtime_ns; /* when the run began; size -1: not known */
} fv_input_file;

typedef struct fv_graph_part {
    const char     *title;
    int64_t         first, count; /* units */
    bool            items;        /* they are those of a collection, not the run */
    fv_graph_node  *nodes;
    fv_graph_stage *stages;
    fv_graph_sink  *sinks;
    int             nnodes, nstages, nsinks, left_out; /* left_out: nodes that are not in the list */
} fv_graph_part;

typedef struct fv_graph_parameter {
    const char *name;
    char       *values; /* "2, 3" */
} fv_graph_parameter;

typedef struct fv_run_graph {
    fv_arena            arena;
    fv_graph_part      *parts;
    int                 nparts;
    const char         *file, *text;  /* of the pipeline; NULL: the manifest is not there */
    const char         *into, *chunk; /* NULL: none */
    fv_graph_parameter *parameters;
    int                 nparameters;
    const char        **patterns;
    int                 npatterns;
    fv_input_file      *inputs;
    int64_t             ninputs, nitems; /* nitems: of the inputs, those of the first pattern; they come first */
    bool                large;           /* too many items to list them here */
} fv_run_graph;

/* Never fails: what is not there is left out. */
fv_run_graph *fv__run_graph_read(const char *run_folder);
void          fv__run_graph_free(fv_run_graph *graph);
/* The part of a unit; -1: none. */
int fv__run_graph_part(const fv_run_graph *graph, int64_t unit);
/* What to call a unit; NULL: it has no name. */
const char *fv__run_graph_item(const fv_run_graph *graph, int64_t unit);

#endif
