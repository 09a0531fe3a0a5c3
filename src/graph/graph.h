/* The typed, lazy graph of one pipeline on one item: nodes of one operator each, types known before any pixel is read.
 *
 * Nodes are kept in topological order (inputs first). Equal nodes are one node. Everything lives in the graph's arena.
 */
#ifndef FV_GRAPH_H
#define FV_GRAPH_H

#include "lang/ast.h"
#include "op/format.h"
#include "op/op.h"
#include "op/params.h"

typedef struct fv_node {
    int             id;
    const fv_op    *op;      /* NULL: a constant scalar */
    fv_scalar       value;   /* constant scalar */
    void           *params;
    int             ninputs; /* slots of op->inputs, and one more if late */
    bool            late;    /* the last input is a scalar that becomes the center of the geometry among the parameters */
    struct fv_node *in[FV_MAX_INPUTS]; /* NULL: absent */
    const fv_type  *in_type[FV_MAX_INPUTS];
    fv_type         type;
    fv_dtype        compute; /* point-wise operators */
    bool            on_device; /* made by op->device, not by op->passes; part of the key */
    fv_hash         key;     /* identity of the value: operator, version, parameters, inputs */
    const char     *name;    /* variable in the text that holds it, or NULL */
    fv_span         span;
    const fv_op    *called;  /* what the text calls there: op, or one that is written in others; NULL: op */
    fv_hash         call;    /* identity of that call */
} fv_node;

typedef enum fv_sink_kind { FV_SINK_FILE, FV_SINK_PRINT, FV_SINK_KEEP } fv_sink_kind;

typedef struct fv_sink {
    fv_sink_kind     kind;
    fv_node         *value;
    int              combination; /* of the sweep */
    int              statement;   /* in the text: sinks of one statement form one table */
    const char      *file;        /* FILE: path with its template filled in */
    const char      *file_template;
    const char      *table;       /* "" or the name given */
    bool             append;
    fv_write_options write;
    const char      *name;        /* KEEP: variable; PRINT: what to call a lone scalar */
    fv_span          span;
    fv_hash          key;
} fv_sink;

typedef struct fv_graph_device { /* where operators that can do so run */
    const char *kind;   /* of device; NULL: the CPU */
    int64_t     memory; /* bytes that each has */
    bool        strict; /* what does not fit is an error and does not run on the CPU */
} fv_graph_device;

typedef struct fv_graph {
    fv_arena   arena;
    fv_graph_device device;
    fv_node  **nodes;
    int        nnodes, capacity;
    fv_sink   *sinks;
    int        nsinks;
    fv_node  **table; /* open hash of nodes by key */
    int        table_size;
} fv_graph;

/* ---- collections and parameters, resolved once per run ---- */

typedef struct fv_item_list { /* the files of one collection in the text; number i of each list belongs to item i */
    char   *pattern;
    char  **paths;
    int64_t count;
    size_t  root; /* characters of each path before its {path}: the folders without wildcards */
} fv_item_list;

typedef struct fv_parameter { /* a swept or overridden parameter */
    char       *name;
    fv_literal *values;
    char      **texts; /* as they appear in file names and table cells */
    int         count;
} fv_parameter;

typedef struct fv_array { /* an array fed from memory; borrowed */
    char         *name;
    fv_image_type type;
    const void   *data;
    fv_hash       content; /* of the data */
} fv_array;

/* For measuring: of every source whose axis has this name and length, only the middle `take` of it are used. */
typedef struct fv_crop {
    char    axis[8];
    int64_t length, take; /* length 0: all of everything */
} fv_crop;

typedef struct fv_bindings {
    fv_arena      arena;
    fv_item_list *lists;
    int           nlists;
    int64_t       nitems; /* 1 without collections */
    char        **shared; /* files of more than one item, sorted */
    int64_t       nshared;
    bool          collection;
    fv_parameter *parameters;
    int           nparameters;
    int           ncombinations;
    fv_array     *arrays;
    int           narrays;
    char        **keeps; /* variables whose value is wanted back */
    int           nkeeps;
    fv_crop       part;
    char         *device; /* the pool's name, as "opencl:1"; NULL: the CPU */
    fv_graph_device on;
    char         *device_note; /* for the record: why it is the CPU after all; NULL: nothing to say */
    /* Whether Fovea has made a file, pattern: in a run over that collection, NULL: in any. NULL: nobody knows. */
    bool (*made)(void *context, const char *path, const char *pattern);
    void         *made_context;
    char         *into; /* folder below which all results go instead of where the text says; NULL: none */
} fv_bindings;

/* A plain value written in the text: number, text, flag, list of numbers. */
bool fv_expr_literal(const fv_expr *expr, fv_literal *literal, fv_arena *arena);
/* Index of the value that parameter p has in a combination. */
int  fv_bindings_choice(const fv_bindings *bindings, int combination, int parameter);
/* Path of an item: of the first pattern in the text. "" without collections. */
const char *fv_bindings_item(const fv_bindings *bindings, int64_t item);
/* Adds "name=value[,value...]"; values that look like lists in brackets stay whole. */
fv_status fv_bindings_set(fv_bindings *bindings, const char *assignment, fv_error *error);
/* Finds every pattern in the text, lists its files and pairs them; checks that names given by fv_bindings_set are params of the
 * text. */
fv_status fv_bindings_resolve(fv_bindings *bindings, const fv_program *program, fv_diagnostics *diagnostics, fv_error *error);
/* The lists are complete. */
void fv_bindings_settle(fv_bindings *bindings);
/* Whether a file belongs to this item and to no other. */
bool fv_bindings_alone(const fv_bindings *bindings, const char *file, int64_t item);
/* "z/400=50". */
fv_status fv_crop_parse(const char *text, fv_crop *part, fv_error *error);
/* What a graph can be cut along: the slowest axis of its largest source; length 0: there is none. Gives that source's bytes. */
int64_t fv_graph_slabs(const fv_graph *graph, fv_crop *whole);
/* Keeps `count` of the items, spread evenly over their sizes. Fails if there are fewer. */
fv_status fv_bindings_take(fv_bindings *bindings, int64_t count, fv_error *error);
/* Bytes of the files of an item; 0 without collections. */
int64_t   fv_bindings_size(const fv_bindings *bindings, int64_t item);
void      fv_bindings_release(fv_bindings *bindings);

/* Fills {stem} {name} {folder} {path} {index} {param} in. Unknown words in braces are an error that lists the known ones. */
fv_status fv_template_fill(const fv_bindings *bindings, const char *template, int64_t item, int combination, char **path,
                           fv_error *error);
bool      fv_template_has(const char *template, const char *word);
/* Whether it holds a word that tells items apart. */
bool      fv_template_tells_items(const char *template);

/* Builds the graph of one item, all combinations of the sweep in one. On failure *status_of_input tells whether a file was
 * at fault (FV_ERROR_INPUT, FV_ERROR_IO) or the text (FV_ERROR_USAGE); the sentences are in diagnostics. */
fv_status fv_graph_build(const fv_program *program, const fv_bindings *bindings, int64_t item, fv_graph **graph,
                         fv_diagnostics *diagnostics, fv_error *error);
void      fv_graph_free(fv_graph *graph);

/* ---- for the builder ---- */
/* The node for this call: an equal one if there is one already. Takes params (arena memory) over. Infers the type. */
fv_status fv_graph_call(fv_graph *graph, const fv_op *op, void *params, fv_node *const *inputs, fv_span span, fv_node **node,
                        fv_error *error);
/* The same where the center of its geometry is computed by the pipeline; late NULL: it is not. */
fv_status fv_graph_call_late(fv_graph *graph, const fv_op *op, void *params, fv_node *const *inputs, fv_node *late, fv_span span,
                             fv_node **node, fv_error *error);
/* The key of a call whose op, params and inputs are set. */
fv_status fv_graph_identify(const fv_graph *graph, fv_node *node, fv_error *error);
fv_node *fv_graph_constant(fv_graph *graph, const fv_scalar *value);
/* The node for an array in memory. */
fv_status fv_graph_array(fv_graph *graph, const fv_array *array, fv_node **node, fv_error *error);

/* A point-wise operator on scalars. */
fv_status fv_scalar_apply(const fv_op *op, const void *params, fv_dtype compute, const fv_type *type, const fv_scalar *const *in,
                          int ninputs, fv_scalar *out, fv_error *error);

/* What the text calls to have this node, and which call of it this is. */
const fv_op *fv_node_called(const fv_node *node, fv_hash *call);
/* The variable's name, or the operator's. */
const char *fv_node_label(const fv_node *node);

#endif
