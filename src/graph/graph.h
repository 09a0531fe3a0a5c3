/* The typed, lazy graph of one pipeline on one item: nodes of one operator each, types known before any pixel is read.
 *
 * Nodes are kept in topological order (inputs first). Equal nodes are one node. Everything lives in the graph's arena.
 */
#ifndef FV_GRAPH_H
#define FV_GRAPH_H

#include "base/hash_table.h"
#include "lang/ast.h"
#include "op/format.h"
#include "op/op.h"
#include "op/params.h"
#include "op/sampling.h"
#include <fovea/pipeline.h>

typedef struct fv_node {
    int             id;
    const fv_op    *op;    /* NULL: a constant scalar */
    fv_scalar       value; /* constant scalar */
    const char     *later; /* a constant whose value is not known yet, because another unit makes it: what makes it; or NULL */
    void           *params;
    int             ninputs; /* slots of op->inputs, and one more if late */
    bool            late;    /* the last input is a scalar that becomes the center of the geometry among the parameters */
    struct fv_node *in[FV_MAX_INPUTS]; /* NULL: absent */
    const fv_type  *in_type[FV_MAX_INPUTS];
    fv_type         type;
    fv_dtype        compute;   /* point-wise operators */
    bool            on_device; /* made by op->device, not by op->passes; part of the key */
    fv_hash         key;       /* identity of the value: operator, version, parameters, inputs */
    bool            of_unit;   /* a source that no other unit has */
    const char     *name;      /* variable in the text that holds it, or NULL */
    fv_span         span;
    const fv_op    *called; /* what the text calls there: op, or one that is written in others; NULL: op */
    fv_hash         call;   /* identity of that call */

    const fv_sampling *sampling; /* its value is estimated; NULL: it is not */
    fv_hash            exact;    /* the key without that: partials are those of the exact value */
} fv_node;

typedef enum fv_sink_kind {
    FV_SINK_FILE,
    FV_SINK_PRINT,
    FV_SINK_KEEP,
    FV_SINK_EXPORT, /* units of later segments use it */
} fv_sink_kind;

typedef struct fv_sink {
    fv_sink_kind     kind;
    fv_node         *value;
    int              combination; /* of the sweep */
    int              statement;   /* in the text: sinks of one statement form one table */
    const char      *file;        /* FILE: path with its template filled in */
    const char      *file_template;
    int64_t          step;   /* of a solver: rounds that the value has had; 0: it is no step */
    const char      *series; /* the file that lists the steps there are; NULL: none does */
    const char      *table;  /* "" or the name given */
    bool             append;
    fv_write_options write;
    const char      *name; /* KEEP: variable; PRINT: what to call a lone scalar */
    int              expr; /* EXPORT: of the text */
    fv_span          span;
    fv_hash          key;
} fv_sink;

typedef struct fv_graph_device { /* where operators that can do so run */
    const char *kind;            /* of device; NULL: the CPU */
    int64_t     memory;          /* bytes that each has */
    bool        strict;          /* what does not fit is an error and does not run on the CPU */
} fv_graph_device;

typedef struct fv_graph {
    fv_arena        arena;
    fv_graph_device device;
    fv_node       **nodes;
    int             nnodes, capacity;
    fv_sink        *sinks;
    int             nsinks;
    fv_hash_table   table;    /* of nodes by key */
    const char     *lost;     /* why sinks are missing that need what other units failed to make; NULL: none is */
    bool            sampled;  /* some nodes are estimated */
    bool            left_out; /* sinks are missing because the item was left out on purpose */
} fv_graph;

/* ---- collections and parameters, resolved once per run ---- */

#define FV_RUN (-1) /* instead of a collection: the whole run */

typedef struct fv_item_list { /* the files of one pattern in the text; number i of each list of a collection belongs to item i */
    char         *pattern;
    char        **paths;
    int64_t       count;
    size_t        root;       /* characters of each path before its {path}: the folders without wildcards */
    int           collection; /* the first list of those that are used together */
    fv_item_names items;      /* of the first one */
} fv_item_list;

typedef struct fv_level { /* of what a value is: graph/segments.h */
    int  collection;      /* FV_RUN: of the whole run */
    int  depth;
    bool table;
    bool exported; /* units of later segments use it */
} fv_level;

/* Units of work that are made one after another by the same graph: the items of a collection, or the run itself. */
typedef struct fv_segment {
    int     collection, depth;
    int64_t first, count; /* units */
} fv_segment;

typedef struct fv_unit {
    int     segment, collection, depth;
    int64_t item; /* of the collection; 0 for the run */
} fv_unit;

typedef struct fv_parameter { /* a swept or overridden parameter */
    char       *name;
    fv_literal *values;
    char      **texts; /* as they appear in file names and table cells */
    int         count;
} fv_parameter;

typedef struct fv_array { /* an image of the calling program; borrowed */
    char          *name;
    fv_image_type  type;
    const void    *data;    /* in memory; NULL: it is read piece by piece */
    fv_hash        content; /* tells it from others: its place among those of the pipeline, or its bytes (fv__arrays_hash) */
    fv_source_read read;    /* NULL: it is data */
    void          *context;
    int64_t        chunk[FV_MAX_DIMS]; /* of what is read */
} fv_array;

typedef struct fv_live {     /* a pattern of the text that stands for one item of a stream, whatever files there are */
    const char     *pattern; /* NULL: nothing is live */
    const char     *path;    /* of the item */
    const fv_array *frame;   /* its pixels; NULL: they are in the file of that path */
    const int64_t  *there;   /* of a scan that grows: the numbers of its planes, in order; NULL: it has all */
    int64_t         nthere;
    int64_t         rounds; /* solvers end after so many at most; 0: when the text says */
    const double   *angles; /* of its planes, as its frames tell; NaN: of one that does not tell; NULL: they tell none */
    int64_t         nangles;
    bool           *asked;  /* set when the text asks for them */
    bool            shared; /* all workers work on one item at a time */
} fv_live;

/* For measuring: of every source whose axis has this name and length, only the middle `take` of it are used. */
typedef struct fv_crop {
    char    axis[8];
    int64_t length, take; /* length 0: all of everything */
} fv_crop;

typedef struct fv_bindings {
    fv_arena        arena;
    fv_item_list   *lists;
    int             nlists;
    int64_t         nitems; /* of the largest collection; 1 without any */
    char          **shared; /* files of more than one item, sorted */
    int64_t         nshared;
    fv_level       *levels; /* by expression of the text */
    const fv_expr **exported;
    int             nexported;
    const fv_expr **choosers; /* calls that choose among items, by facts that units of an earlier segment export */
    int             nchoosers;
    fv_segment     *segments;
    int             nsegments;
    int64_t         nunits;
    fv_hash         run; /* identity of text, parameters and items, once they are frozen */
    bool            collection;
    bool            names_files; /* the text reads or writes some */
    fv_parameter   *parameters;
    int             nparameters;
    int             ncombinations;
    fv_array       *arrays;
    int             narrays;
    char          **keeps; /* variables whose value is wanted back */
    int             nkeeps;
    void *const    *rooms; /* by keep: memory of the caller's for an image; NULL: whoever wants one back gets memory of its own */
    fv_live         live;
    fv_crop         part;
    fv_sampling of_items; /* items of the first segment are taken at random, since only estimates need them; 0: all are made */
    fv_sampling within;   /* printed statistics are estimated so, and no image is written; time and error 0: all is computed */
    char       *device;   /* the pool's name, as "opencl:1"; NULL: the CPU */
    fv_graph_device on;
    char           *device_note; /* for the record: why it is the CPU after all; NULL: nothing to say */
    /* Whether Fovea has made a file, pattern: in a run over that collection, NULL: in any. NULL: nobody knows. */
    bool (*made)(void *context, const char *path, const char *pattern);
    void *made_context;
    bool  commands; /* operators may run programs of the machine */
    char *into;     /* folder below which all results go instead of where the text says; NULL: none */
} fv_bindings;

/* A plain value written in the text: number, text, flag, list of numbers. */
bool fv__expr_literal(const fv_expr *expr, fv_literal *literal, fv_arena *arena);
/* Index of the value that parameter p has in a combination. */
int fv__bindings_choice(const fv_bindings *bindings, int combination, int parameter);
/* Finds what is of items and what is of the run, and the units that follow from it. Once the lists are there. */
void    fv__bindings_arrange(fv_bindings *bindings, const fv_program *program);
void    fv__bindings_count(fv_bindings *bindings); /* units again, after items were taken away */
fv_unit fv__bindings_unit(const fv_bindings *bindings, int64_t unit);
int64_t fv__bindings_number(const fv_bindings *bindings, int collection, int depth,
                            int64_t item); /* of a unit; -1: there is none */
/* What to call a unit: the path of its item by the first pattern, "all items" for the run beside items, "" without collections.
 */
const char *fv__bindings_item(const fv_bindings *bindings, int64_t unit);
/* Adds "name=value[,value...]"; values that look like lists in brackets stay whole. */
fv_status fv__bindings_set(fv_bindings *bindings, const char *assignment, fv_error *error);
/* Finds every pattern in the text, lists its files and pairs them; checks that names given by fv__bindings_set are params of the
 * text. */
fv_status fv__bindings_resolve(fv_bindings *bindings, const fv_program *program, fv_diagnostics *diagnostics, fv_error *error);
/* Makes the bytes of arrays their identity, so that a later run knows them again. */
void fv__arrays_hash(fv_bindings *bindings);
/* The lists are complete. */
void fv__bindings_settle(fv_bindings *bindings);
/* Whether a file belongs to the item of this unit and to no other. */
bool fv__bindings_alone(const fv_bindings *bindings, const char *file, int64_t unit);
/* "z/400=50". */
fv_status fv__crop_parse(const char *text, fv_crop *part, fv_error *error);
/* What a graph can be cut along: the slowest axis of its largest source; length 0: there is none. Gives that source's bytes. */
int64_t fv__graph_slabs(const fv_graph *graph, fv_crop *whole);
/* Keeps `count` of the items of each collection, spread evenly over their sizes. Fails if no collection has so many. */
fv_status fv__bindings_take(fv_bindings *bindings, int64_t count, fv_error *error);
/* Bytes of the files of the items that this would keep. */
void fv__bindings_sizes(const fv_bindings *bindings, int64_t count, double *sizes);
/* Bytes of the files of a unit's item; 0 of the run. */
int64_t fv__bindings_size(const fv_bindings *bindings, int64_t unit);
void    fv__bindings_release(fv_bindings *bindings);

/* Whether an operator chooses among items: it keeps those for which its text condition holds, or sorts them by its text by. */
static inline bool fv__op_chooses(const fv_op *op) { return op && op->gathers && op->expands; }
/* The operator that a call means, by its first argument: a table, or what is of items. */
const fv_op *fv__op_meant(const fv_op *op, bool table, bool items);
/* The list whose items these are, or some of them; -1: none. */
int fv__bindings_list(const fv_bindings *bindings, const fv_item_names *items);

/* Fills {stem} {name} {folder} {path} {index} {param} in. Axes of the image that is written stay: they become numbers of slices
 * (axes NULL: there are none). Other words in braces are an error that lists the known ones. */
fv_status fv__template_fill(const fv_bindings *bindings, const char *template, int64_t unit, int combination,
                            const fv_image_type *axes, char **path, fv_error *error);
bool      fv__template_has(const char *template, const char *word);
/* Whether it holds a word that tells items apart. */
bool fv__template_tells_items(const char *template, const fv_item_list *list);

/* ---- what units hand to those of later segments ---- */

typedef struct fv_export_form { /* of a value that is handed over: the same for most items of a collection */
    fv_kind              kind;
    int                  pass;       /* TABLE: whose results its pieces are */
    int                  collection; /* TABLE: whose items its columns item and path name; FV_RUN: it has none */
    fv_dtype             dtype;      /* SCALAR */
    fv_lattice           lattice;
    fv_image_type        image;
    const fv_table_type *table;
} fv_export_form;

typedef struct fv_export {
    const fv_export_form *form;
    fv_hash               key;    /* of the node */
    int64_t               pieces; /* TABLE */
    fv_scalar             scalar;
} fv_export;

typedef struct fv_handed {
    bool partial; /* of items that are not done yet nothing is expected: tables are of those that are there */
    /* What a unit has made of an expression; false: nothing, it failed. like: where its form may be found already; or NULL. */
    bool (*find)(const struct fv_handed *handed, int expr, int combination, int64_t unit, const fv_export_form *like,
                 fv_arena *arena, fv_export *out);
    fv_status (*fetch)(const struct fv_handed *handed, const fv_export *image, const fv_block *block, fv_error *error);
    fv_status (*piece)(const struct fv_handed *handed, const fv_export *table, int64_t piece, fv_bytes *out, fv_error *error);
} fv_handed;

/* Why an item has nothing of the run that it needs. The run has said more about it. */
extern const char fv__lost_with_run[];

/* Builds the graph of one unit, all combinations of the sweep in one. On failure *status_of_input tells whether a file was
 * at fault (FV_ERROR_INPUT, FV_ERROR_IO) or the text (FV_ERROR_USAGE); the sentences are in diagnostics. handed NULL: of what
 * other units make only the types are known, from a sample. */
fv_status fv__graph_build(const fv_program *program, const fv_bindings *bindings, int64_t unit, const fv_handed *handed,
                          fv_graph **graph, fv_diagnostics *diagnostics, fv_error *error);
void      fv__graph_free(fv_graph *graph);

/* ---- for the builder ---- */
/* The node for this call: an equal one if there is one already. Takes params (arena memory) over. Infers the type. */
fv_status fv__graph_call(fv_graph *graph, const fv_op *op, void *params, fv_node *const *inputs, fv_span span, fv_node **node,
                         fv_error *error);
/* The same where the center of its geometry is computed by the pipeline; late NULL: it is not. */
fv_status fv__graph_call_late(fv_graph *graph, const fv_op *op, void *params, fv_node *const *inputs, fv_node *late, fv_span span,
                              fv_node **node, fv_error *error);
/* The key of a call whose op, params and inputs are set. */
fv_status fv__graph_identify(const fv_graph *graph, fv_node *node, fv_error *error);
/* The node with the key of a new one: that one, if there is none yet. */
fv_node *fv__graph_share(fv_graph *graph, fv_node *node);
fv_node *fv__graph_constant(fv_graph *graph, const fv_scalar *value);
/* Whether where an image lies is known only at the end, and what is said to those who go on with it. */
static inline bool fv__placed_later(const fv_node *node) { return node && node->op && node->op->place_later; }
#define FV_PLACED_LATER                                                                                                          \
    "is known only at the end of the run: it can be written to .nii or .nii.gz; to go on with it, use transform(), or write "    \
    "the transform and name its file in a "                                                                                      \
    "second run: set_sform(image, transform = \"t.tfm\")"
/* A constant that is known only when another unit has made the expression; equal to no other one. */
fv_node *fv__graph_later(fv_graph *graph, fv_dtype dtype, const char *what, int expr, int combination);
/* The node for an array in memory. */
fv_status fv__graph_array(fv_graph *graph, const fv_array *array, fv_node **node, fv_error *error);

/* A point-wise operator on scalars. */
fv_status fv__scalar_apply(const fv_op *op, const void *params, fv_dtype compute, const fv_type *type, const fv_scalar *const *in,
                           int ninputs, fv_scalar *out, fv_error *error);

/* What the text calls to have this node, and which call of it this is. */
const fv_op *fv__node_called(const fv_node *node, fv_hash *call);
/* The variable's name, or the operator's. */
const char *fv__node_label(const fv_node *node);

#endif
