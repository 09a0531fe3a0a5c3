/* What the files share that make a graph of statements: build.c (statements), evaluate.c (expressions), calls.c (operators),
 * handed.c (values of other units) and sinks.c (what is asked for). */
#ifndef FV_BUILD_H
#define FV_BUILD_H

#include "graph/variables.h"

extern const char fv__left_out[]; /* why a value is LOST of an item that was left out on purpose */

/* A value after some rounds of the solver that is nearest to it: steps.c. */
typedef struct fv_steps {
    int64_t      rounds; /* at most so many */
    int64_t      all;    /* what the text asks for; 0: no solver was met */
    fv_variables names;  /* of the text, with the values that they have then */
} fv_steps;

typedef struct builder {
    fv_graph          *graph;
    const fv_program  *program;
    const fv_bindings *bindings;
    const fv_handed   *handed; /* NULL: only types are wanted */
    int64_t            number;
    fv_unit            unit;
    int                combination;
    fv_diagnostics    *diagnostics;
    fv_status          worst; /* kind of the first failure */
    fv_variables       variables;
    int                depth;     /* of expansions */
    const fv_span     *expanding; /* inside an expanded operator: where the call stands */
    const fv_op       *expanded;  /* and what is called there */
    const fv_op       *within;    /* the operator whose expansion this is, maybe inside another's */
    fv_hash            call;      /* which call of it */
    int64_t            every;     /* rounds of a solver after which its value is wanted, too; 0: only at its end */
    fv_steps          *steps;     /* not NULL: a value is built as it is after some of the rounds */
} builder;

/* Expressions may be some hundred levels deep: what needs room for messages stays out of the frames of the recursion. */
#define APART __attribute__((noinline))

/* Every mistake in the text is reported. */
APART value fv__mistake(builder *b, fv_span span, fv_status status, const char *hint, const char *format, ...);
value       fv__from_error(builder *b, fv_span span, const fv_op *op, const fv_error *error);

static inline value literal_value(fv_literal literal) { return (value){ .kind = LITERAL, .literal = literal }; }
static inline value node_value(fv_node *node) { return (value){ .kind = NODE, .node = node }; }

value       fv__evaluate(builder *b, const fv_expr *expr);
APART value fv__evaluate_call(builder *b, const fv_expr *expr);
/* What the operator of a call expands to, instead of its value. */
APART value fv__expand_call(builder *b, const fv_expr *expr, const fv_op **op, const void **params);
value       fv__evaluate_name(builder *b, const fv_expr *expr);
/* part: start, stop, step and single of each axis, as the operator takes them. */
value       fv__slice_of(builder *b, fv_node *image, const fv_literal part[4], fv_span span);
bool        fv__scalar_of(const fv_literal *literal, fv_scalar *scalar);
const char *fv__describe(const value *v); /* for messages: "number", */
const char *fv__article(const value *v);  /* and "a" or "an" before it */

/* ---- handed.c: values of other units ---- */
static inline const fv_level *level_of(const builder *b, const fv_expr *expr) { return &b->bindings->levels[expr->id]; }
/* Whether an expression's value is not computed in this unit; *v: what stands for it. */
bool fv__elsewhere(builder *b, const fv_expr *expr, value *v);
/* A value of all items of a collection together. any_shape: images may differ in shape, and are one line of voxels then, or in
 * place, and have none then. */
APART value fv__gather(builder *b, const fv_expr *expr, bool any_shape);
/* ---- choosing.c: some of the items, or all in another order ---- */
/* The operator that a call means. */
const fv_op *fv__op_called(const builder *b, const fv_op *op, const fv_expr *call);
/* What is exported for a call that chooses: the facts about this unit's item. */
APART value fv__facts(builder *b, const fv_expr *call);
/* Where the facts of a call are found among the exports. */
static inline int fv__facts_place(const fv_expr *call) { return -1 - call->id; }
/* The value of such a call: that of its first argument, or nothing if the item is left out. */
APART value fv__choose(builder *b, const fv_expr *call, const fv_op *op, const void *params, fv_node *image);
/* The items whose value of an expression was not left out, in their order; gives their number. */
int64_t fv__items_chosen(builder *b, const fv_expr *expr, int64_t count, int64_t *items);

/* A table of an item with its columns item and path. */
APART value fv__tag(builder *b, fv_node *table, fv_span span);
/* The type that an expression has in a unit, without anything that other units have made. */
bool fv__sample(const builder *b, const fv_expr *expr, int64_t unit, fv_export *out);
/* Names of the text, without sinks. */
void fv__build_names(builder *b);

/* ---- steps.c: values before their solvers are done ---- */
/* Sets b->every by what the text says; parameters are bound. */
void fv__steps_find(builder *b);
/* The variable of the text while a step is built; false: it is none. */
bool fv__step_name(builder *b, const fv_expr *name, value *v);
/* A sink of each step of a value that is written every so many rounds; file: as for the whole. */
void fv__add_step_sinks(builder *b, fv_node *write, int statement, const fv_expr *call);

/* The name of the file of a step, and of the list of steps where its format has one. steps: the last one's number. */
void fv__name_step(builder *b, fv_sink *sink, int64_t step, int64_t steps);

/* The call of a sink is there; makes one of its value. step: inserted into its file's name, 0: none. */
void     fv__add_file_sink(builder *b, const fv_node *write, fv_node *written, int statement, int64_t step, int64_t steps);
fv_sink *fv__add_sink(builder *b, fv_sink_kind kind, fv_node *node, int statement, fv_span span);
void     fv__add_statement_sink(builder *b, const fv_statement *statement, int index, const value *v);

#endif
