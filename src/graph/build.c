/* From statements to a graph: names, parameters, reports of mistakes. */
#include "graph/build.h"
#include "base/agreement.h"
#include "graph/segments.h"
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- reporting */

APART value fv__mistake(builder *b, fv_span span, fv_status status, const char *hint, const char *format, ...) {
    char    message[1024];
    va_list arguments;
    va_start(arguments, format);
    fv__vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    fv__diagnose(b->diagnostics, b->expanding ? *b->expanding : span, hint, "%s", message);
    if (b->worst == FV_OK) b->worst = status;
    return (value){ .kind = BAD };
}

value fv__from_error(builder *b, fv_span span, const fv_op *op, const fv_error *error) {
    return fv__mistake(b, span, error->code, NULL, "%s: %s", b->expanded ? b->expanded->name : op->name, error->message);
}

/* ---------------------------------------------------------------- statements */

static void assign(builder *b, const fv_statement *statement) {
    value v = fv__evaluate(b, statement->value);
    if (fv__variables_find(&b->variables, statement->name)) {
        fv__mistake(b, statement->name_span, FV_ERROR_USAGE, "give the new value another name",
                    "%s has a value already; a name is given once", statement->name);
        return;
    }
    if (v.kind == NODE && v.node->op && v.node->op->sink)
        v = fv__mistake(b, statement->value->span, FV_ERROR_USAGE, NULL, "write gives no value: leave out `%s =`",
                        statement->name);
    if (v.kind == NODE && !v.node->name) v.node->name = fv__arena_strdup(&b->graph->arena, statement->name);
    fv__variables_set(&b->variables, statement->name, v);
}

static void bind_parameters(builder *b) {
    for (int p = 0; p < b->bindings->nparameters; p++) {
        const fv_parameter *parameter = &b->bindings->parameters[p];
        fv__variables_set(&b->variables, parameter->name,
                          literal_value(parameter->values[fv__bindings_choice(b->bindings, b->combination, p)]));
    }
}

static void begin_names(builder *b) {
    fv__variables_clear(&b->variables);
    bind_parameters(b);
    for (int a = 0; a < b->bindings->narrays; a++) {
        fv_node *node;
        fv_error error = { 0 };
        if (fv__graph_array(b->graph, &b->bindings->arrays[a], &node, &error) != FV_OK)
            fv__mistake(b, (fv_span){ 1, 1, 1 }, error.code, NULL, "%s", error.message);
        else
            fv__variables_set(&b->variables, b->bindings->arrays[a].name, node_value(node));
    }
    fv__steps_find(b);
}

void fv__build_names(builder *b) {
    begin_names(b);
    for (int s = 0; s < b->program->nstatements; s++)
        if (b->program->statements[s].kind == FV_STATEMENT_ASSIGN) assign(b, &b->program->statements[s]);
}

/* ---------------------------------------------------------------- what is asked for */

/* Whether the results of a level are made by this unit, and not only used by it. */
static bool makes(const builder *b, const fv_level *level) {
    int depth = level->collection == FV_RUN ? FV_MAX(level->depth, 1) : level->depth;
    return level->collection == b->unit.collection && depth == b->unit.depth;
}

/* What other units failed to make takes its results with it, and no others. */
static bool usable(builder *b, const value *v) {
    if (v->kind == LOST && v->why == fv__left_out)
        b->graph->left_out = true;
    else if (v->kind == LOST && !b->graph->lost)
        b->graph->lost = v->why;
    return v->kind == LITERAL || v->kind == NODE;
}

static void add_statement(builder *b, int index) {
    const fv_statement *statement = &b->program->statements[index];
    if (!makes(b, level_of(b, statement->value))) return;
    value v = fv__evaluate(b, statement->value);
    if (usable(b, &v)) fv__add_statement_sink(b, statement, index, &v);
}

static void add_kept(builder *b, int k) {
    fv_expr        name = { .kind = FV_EXPR_NAME, .span = { 1, 1, 1 }, .text = b->bindings->keeps[k] };
    const fv_expr *meant = fv__meant(b->program, &name);
    fv_scalar      scalar;
    if (!makes(b, meant ? level_of(b, meant) : &(fv_level){ .collection = FV_RUN })) return;
    value v = fv__evaluate_name(b, &name);
    if (v.kind == LITERAL && fv__scalar_of(&v.literal, &scalar)) v = node_value(fv__graph_constant(b->graph, &scalar));
    if (v.kind == NODE && fv__placed_later(v.node))
        v = fv__mistake(b, name.span, FV_ERROR_USAGE, NULL, "where %s lies " FV_PLACED_LATER, name.text);
    if (usable(b, &v) && v.kind == NODE)
        fv__add_sink(b, FV_SINK_KEEP, v.node, b->program->nstatements + k, name.span)->name = b->bindings->keeps[k];
}

static void add_export(builder *b, int k) {
    const fv_expr *expr = b->bindings->exported[k];
    if (!makes(b, level_of(b, expr))) return;
    value v = fv__evaluate(b, expr);
    if (v.kind == NODE && fv__placed_later(v.node))
        v = fv__mistake(b, expr->span, FV_ERROR_USAGE, NULL, "where this image lies " FV_PLACED_LATER);
    if (!usable(b, &v) || v.kind != NODE) return;
    int      statement = b->program->nstatements + b->bindings->nkeeps + k;
    fv_sink *sink = fv__add_sink(b, FV_SINK_EXPORT, v.node, statement, expr->span);
    sink->name = fv__node_label(v.node);
    sink->expr = expr->id;
}

static void add_facts(builder *b, int k) {
    const fv_expr *call = b->bindings->choosers[k];
    fv_level       level = *level_of(b, call);
    level.depth -= 2;
    if (!makes(b, &level)) return;
    value v = fv__facts(b, call);
    if (!usable(b, &v) || v.kind != NODE) return;
    int      statement = b->program->nstatements + b->bindings->nkeeps + b->bindings->nexported + k;
    fv_sink *sink = fv__add_sink(b, FV_SINK_EXPORT, v.node, statement, call->span);
    sink->name = fv__node_label(v.node);
    sink->expr = fv__facts_place(call);
}

static void build_combination(builder *b) {
    begin_names(b);
    for (int s = 0; s < b->program->nstatements; s++)
        if (b->program->statements[s].kind == FV_STATEMENT_ASSIGN)
            assign(b, &b->program->statements[s]);
        else if (b->program->statements[s].kind == FV_STATEMENT_BARE)
            add_statement(b, s);
    for (int k = 0; k < b->bindings->nkeeps; k++) add_kept(b, k);
    for (int k = 0; k < b->bindings->nexported; k++) add_export(b, k);
    for (int k = 0; k < b->bindings->nchoosers; k++) add_facts(b, k);
}

fv_status fv__graph_build(const fv_program *program, const fv_bindings *bindings, int64_t unit, const fv_handed *handed,
                          fv_graph **graph, fv_diagnostics *diagnostics, fv_error *error) {
    builder b = { .graph = fv__calloc(sizeof(fv_graph)),
                  .program = program,
                  .bindings = bindings,
                  .handed = handed,
                  .number = unit,
                  .unit = fv__bindings_unit(bindings, unit),
                  .diagnostics = diagnostics };
    b.graph->device = bindings->on;
    for (b.combination = 0; b.combination < bindings->ncombinations; b.combination++) build_combination(&b);
    fv__variables_release(&b.variables);
    if (b.worst == FV_OK && !b.graph->nsinks && b.graph->lost)
        fv__mistake(&b, (fv_span){ 1, 1, 1 }, FV_ERROR_INPUT, NULL, "%s", b.graph->lost);
    if (b.worst == FV_OK && !b.graph->nsinks && !b.graph->left_out)
        fv__mistake(&b, (fv_span){ 1, 1, 1 }, FV_ERROR_USAGE, NULL,
                    "nothing is asked for: write(...) a result, or put a scalar or a table on a line of its own");
    if (b.worst != FV_OK) {
        fv__graph_free(b.graph);
        *graph = NULL;
        return fv_fail(error, b.worst, "%s", diagnostics->count ? diagnostics->items[0].message : "the pipeline has mistakes");
    }
    *graph = b.graph;
    return FV_OK;
}
