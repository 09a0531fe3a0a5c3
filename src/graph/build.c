/* From statements to a graph: names, calls, slices, constant folding, sinks. Every mistake in the text is reported. */
#include "graph/graph.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct value {
    enum { BAD, LITERAL, NODE } kind; /* BAD: a mistake that was already reported */
    fv_literal literal;
    fv_node   *node; /* of a geometry: its center, if that is computed by the pipeline */
} value;

typedef struct variable {
    const char *name;
    value       value;
} variable;

typedef struct builder {
    fv_graph          *graph;
    const fv_bindings *bindings;
    int64_t            item;
    int                combination;
    fv_diagnostics    *diagnostics;
    fv_status          worst; /* kind of the first failure */
    variable          *variables;
    int                nvariables;
    int                depth;       /* of expansions */
    const fv_span     *expanding;   /* inside an expanded operator: where the call stands */
    const fv_op       *expanded;    /* and what is called there */
} builder;

static value evaluate(builder *b, const fv_expr *expr);

/* Expressions may be some hundred levels deep: what needs room for messages stays out of the frames of the recursion. */
#define APART __attribute__((noinline))

/* ---------------------------------------------------------------- reporting */

APART static value mistake(builder *b, fv_span span, fv_status status, const char *hint, const char *format, ...) {
    char    message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    fv_diagnose(b->diagnostics, b->expanding ? *b->expanding : span, hint, "%s", message);
    if (b->worst == FV_OK) b->worst = status;
    return (value){ .kind = BAD };
}

static value from_error(builder *b, fv_span span, const fv_op *op, const fv_error *error) {
    return mistake(b, span, error->code, NULL, "%s: %s", b->expanded ? b->expanded->name : op->name, error->message);
}

/* ---------------------------------------------------------------- values */

static value literal_value(fv_literal literal) { return (value){ .kind = LITERAL, .literal = literal }; }
static value node_value(fv_node *node) { return (value){ .kind = NODE, .node = node }; }

bool fv_expr_literal(const fv_expr *expr, fv_literal *literal, fv_arena *arena) {
    *literal = (fv_literal){ 0 };
    switch (expr->kind) {
    case FV_EXPR_NUMBER:
        literal->kind = FV_LITERAL_NUMBER;
        literal->number = expr->number;
        literal->integral = expr->integral;
        return true;
    case FV_EXPR_TEXT:
        literal->kind = FV_LITERAL_TEXT;
        literal->text = fv_arena_strdup(arena, expr->text);
        return true;
    case FV_EXPR_FLAG:
        literal->kind = FV_LITERAL_FLAG;
        literal->flag = expr->flag;
        return true;
    case FV_EXPR_CALL:
        if (strcmp(expr->text, "negative") || expr->nargs != 1 || expr->args[0].value->kind != FV_EXPR_NUMBER) return false;
        fv_expr_literal(expr->args[0].value, literal, arena);
        literal->number = -literal->number;
        return true;
    case FV_EXPR_LIST:
        literal->kind = FV_LITERAL_NUMBERS;
        for (int i = 0; i < expr->nargs; i++) {
            fv_literal element;
            if (i == FV_MAX_NUMBERS || !fv_expr_literal(expr->args[i].value, &element, arena) ||
                element.kind != FV_LITERAL_NUMBER)
                return false;
            literal->numbers.value[literal->numbers.count++] = element.number;
        }
        return true;
    default: return false;
    }
}

static bool scalar_of(const fv_literal *literal, fv_scalar *scalar) {
    if (literal->kind == FV_LITERAL_FLAG) {
        *scalar = (fv_scalar){ .dtype = FV_BOOL, .integer = literal->flag };
        return true;
    }
    if (literal->kind != FV_LITERAL_NUMBER) return false;
    if (literal->integral && fabs(literal->number) < 0x1p53)
        *scalar = (fv_scalar){ .dtype = FV_INT64, .integer = (int64_t)literal->number };
    else *scalar = (fv_scalar){ .dtype = FV_FLOAT64, .real = literal->number };
    return true;
}

static const char *describe(const value *v) {
    if (v->kind == NODE) return fv_kind_name(v->node->type.kind);
    switch (v->literal.kind) {
    case FV_LITERAL_NUMBER: return "number";
    case FV_LITERAL_TEXT: return "text";
    case FV_LITERAL_FLAG: return "true/false value";
    case FV_LITERAL_NUMBERS: return "list";
    case FV_LITERAL_FOOTPRINT: return "footprint";
    case FV_LITERAL_LIST: return "list";
    case FV_LITERAL_GEOMETRY: return "geometry";
    }
    return "value";
}

/* ---------------------------------------------------------------- calls */

typedef struct call {
    const fv_op   *op;
    const fv_expr *expr;
    void          *params;
    fv_node       *inputs[FV_MAX_INPUTS];
    const fv_literal *literals[FV_MAX_INPUTS]; /* inputs that are plain numbers */
    fv_literal     given[FV_MAX_INPUTS];
    bool           input_set[FV_MAX_INPUTS];
    uint64_t       params_set;
    fv_node       *late; /* the center of the geometry, if it is computed */
    bool           bad;
} call;

APART static const fv_op *find_op(builder *b, const fv_expr *expr) {
    const fv_op *op = fv_op_find(expr->text);
    if (op) return op;
    int          count = fv_op_count();
    const char **names = fv_alloc((size_t)count * sizeof *names);
    for (int i = 0; i < count; i++) names[i] = fv_op_at(i)->name;
    const char *near = fv_nearest_word(expr->text, names, count);
    char       *hint = near ? fv_sprintf("did you mean %s?", near) : fv_strdup("`fovea ops` lists all operators");
    mistake(b, expr->text_span, FV_ERROR_USAGE, hint, "there is no operator %s", expr->text);
    free(hint);
    free(names);
    return NULL;
}

static void set_input(builder *b, call *c, int slot, const value *v, fv_span span) {
    const fv_input *input = &c->op->inputs[slot];
    if (c->input_set[slot]) {
        mistake(b, span, FV_ERROR_USAGE, NULL, "%s: %s is given twice", c->op->name, input->name);
        c->bad = true;
        return;
    }
    c->input_set[slot] = true;
    fv_scalar scalar;
    if (v->kind == LITERAL && scalar_of(&v->literal, &scalar) && input->kind != FV_KIND_IMAGE && input->kind != FV_KIND_TABLE) {
        c->given[slot] = v->literal;
        c->literals[slot] = &c->given[slot];
        c->inputs[slot] = fv_graph_constant(b->graph, &scalar);
        return;
    }
    bool fits = v->kind == NODE && v->node->type.kind != FV_KIND_NONE &&
                (input->kind == v->node->type.kind ||
                 (input->kind == FV_KIND_NONE && (v->node->type.kind != FV_KIND_TABLE || c->op->sink)));
    if (!fits) {
        mistake(b, span, FV_ERROR_USAGE, NULL, "%s: %s must be %s, not a %s", c->op->name, input->name,
                input->kind == FV_KIND_IMAGE    ? "an image"
                : input->kind == FV_KIND_TABLE  ? "a table"
                : input->kind == FV_KIND_SCALAR ? "a number or a scalar"
                : c->op->sink                   ? "an image, a table or a scalar"
                                                : "an image or a number",
                describe(v));
        c->bad = true;
        return;
    }
    c->inputs[slot] = v->node;
}

/* A list may lie in a file: read(...) of one gives its numbers now. */
static void numbers_of_file(builder *b, const fv_param *param, value *v, fv_error *error) {
    if (v->kind != NODE || param->kind != FV_PARAM_LIST || !v->node->op) return;
    bool table = !strcmp(v->node->op->name, "read_table");
    if (!table && strcmp(v->node->op->name, "read")) return;
    const fv_op *op = fv_op_find("read_angles");
    const char  *text[2];
    for (int k = 0; k < 2; k++) {
        const fv_param *from = fv_params_find(v->node->op, k ? "path" : "file");
        text[k] = from ? *(const char *const *)((const char *)v->node->params + from->offset) : "";
    }
    char *params = fv_arena_alloc(&b->graph->arena, op->params_size);
    fv_params_default(op, params);
    memcpy(params + fv_params_find(op, "file")->offset, &text[0], sizeof text[0]);
    memcpy(params + fv_params_find(op, "path")->offset, &text[1], sizeof text[1]);
    *v = (value){ .kind = LITERAL, .literal = { .kind = FV_LITERAL_LIST } };
    op->list(params, &b->graph->arena, &v->literal.list, error);
}

static void set_param(builder *b, call *c, const fv_param *param, const value *given, fv_span span) {
    int      index = (int)(param - c->op->params);
    fv_error error = { 0 };
    value    copy = *given, *v = &copy;
    if (c->params_set >> index & 1) {
        mistake(b, span, FV_ERROR_USAGE, NULL, "%s: %s is given twice", c->op->name, param->name);
        c->bad = true;
        return;
    }
    c->params_set |= (uint64_t)1 << index;
    if (v->kind == NODE && param->late && v->node->type.kind == FV_KIND_SCALAR) {
        c->late = v->node;
        return;
    }
    numbers_of_file(b, param, v, &error);
    if (v->kind == NODE) {
        mistake(b, span, FV_ERROR_USAGE, NULL, "%s: %s must be a constant; it cannot be computed by the pipeline (%s given)",
                c->op->name, param->name, describe(v));
        c->bad = true;
        return;
    }
    if (error.code != FV_OK || fv_params_set(c->op, param, c->params, &v->literal, &b->graph->arena, &error) != FV_OK) {
        from_error(b, span, c->op, &error);
        c->bad = true;
    }
    if (v->literal.kind == FV_LITERAL_GEOMETRY) c->late = v->node;
}

static void unknown_argument(builder *b, call *c, const fv_argument *argument) {
    const char *names[FV_MAX_INPUTS + 64];
    int         count = 0;
    for (int i = 0; i < fv_inputs_count(c->op); i++) names[count++] = c->op->inputs[i].name;
    for (const fv_param *p = c->op->params; p && p->name; p++) names[count++] = p->name;
    const char *near = fv_nearest_word(argument->name, names, count);
    fv_bytes    list = { 0 };
    for (int i = 0; i < count; i++) fv_bytes_printf(&list, "%s%s", i ? ", " : "", names[i]);
    char *hint = near ? fv_sprintf("did you mean %s?", near) : NULL;
    mistake(b, argument->name_span, FV_ERROR_USAGE, hint, "%s has no argument %s; it takes %s", c->op->name, argument->name,
            count ? (char *)list.data : "none");
    free(hint);
    fv_bytes_release(&list);
    c->bad = true;
}

/* Positional arguments fill the inputs, then the parameters; an optional input is skipped by a value it cannot take. */
APART static void bind_argument(builder *b, call *c, const fv_argument *argument, const value *v, int *position) {
    int ninputs = fv_inputs_count(c->op), nparams = 0;
    while (c->op->params && c->op->params[nparams].name) nparams++;
    int             slot = argument->name ? fv_inputs_find(c->op, argument->name) : -1;
    const fv_param *param = argument->name ? fv_params_find(c->op, argument->name) : NULL;
    if (v->kind == BAD) c->bad = true;
    if (argument->name && slot < 0 && !param) {
        unknown_argument(b, c, argument);
        return;
    }
    if (!argument->name) {
        while (*position < ninputs && c->op->inputs[*position].optional && v->kind == LITERAL) ++*position;
        if (*position < ninputs) slot = (*position)++;
        else if (*position < ninputs + nparams) param = &c->op->params[(*position)++ - ninputs];
        else {
            mistake(b, argument->value->span, FV_ERROR_USAGE, NULL, "%s takes at most %d arguments", c->op->name,
                    ninputs + nparams);
            c->bad = true;
            return;
        }
    }
    if (v->kind == BAD) { /* reported already; remember that something was given */
        if (slot >= 0) c->input_set[slot] = true;
        else c->params_set |= (uint64_t)1 << (param - c->op->params);
    } else if (slot >= 0) set_input(b, c, slot, v, argument->value->span);
    else set_param(b, c, param, v, argument->value->span);
}

APART static void check_missing(builder *b, call *c) {
    for (int i = 0; i < fv_inputs_count(c->op); i++)
        if (!c->input_set[i] && !c->op->inputs[i].optional) {
            mistake(b, c->expr->text_span, FV_ERROR_USAGE, NULL, "%s needs %s: %s", c->op->name, c->op->inputs[i].name,
                    c->op->inputs[i].doc);
            c->bad = true;
        }
    for (const fv_param *p = c->op->params; p && p->name; p++)
        if (!p->def && !(c->params_set >> (p - c->op->params) & 1)) {
            mistake(b, c->expr->text_span, FV_ERROR_USAGE, NULL, "%s needs %s: %s", c->op->name, p->name, p->doc);
            c->bad = true;
        }
}

/* A point-wise operator on plain numbers is computed now, so that it can be a parameter. */
static bool fold(builder *b, call *c, value *result) {
    int ninputs = fv_inputs_count(c->op);
    if (!fv_op_is_point(c->op) || !ninputs) return false;
    for (int i = 0; i < ninputs; i++)
        if (!c->literals[i]) return false;
    fv_error         error = { 0 };
    fv_node         *node;
    const fv_scalar *in[FV_MAX_INPUTS];
    fv_scalar        out;
    if (fv_graph_call(b->graph, c->op, c->params, c->inputs, c->expr->span, &node, &error) != FV_OK) {
        *result = from_error(b, c->expr->span, c->op, &error);
        return true;
    }
    for (int i = 0; i < ninputs; i++) in[i] = &c->inputs[i]->value;
    if (fv_scalar_apply(c->op, c->params, node->compute, &node->type, in, ninputs, &out, &error) != FV_OK) {
        *result = from_error(b, c->expr->span, c->op, &error);
        return true;
    }
    fv_literal literal = { .kind = FV_LITERAL_NUMBER, .number = fv_scalar_number(&out), .integral = out.dtype != FV_FLOAT64 };
    if (out.dtype == FV_BOOL) literal = (fv_literal){ .kind = FV_LITERAL_FLAG, .flag = out.integer != 0 };
    *result = literal_value(literal);
    return true;
}

/* read("pattern") becomes the item's file. */
static fv_status choose_item(builder *b, call *c, fv_error *error) {
    const fv_param *param = fv_params_find(c->op, "file");
    const char    **file = (const char **)((char *)c->params + param->offset);
    for (int l = 0; l < b->bindings->nlists; l++)
        if (!strcmp(b->bindings->lists[l].pattern, *file)) {
            *file = b->bindings->lists[l].paths[b->item];
            return FV_OK;
        }
    if (!fv_file_exists(*file)) return fv_fail(error, FV_ERROR_INPUT, "there is no file %s", *file);
    return FV_OK;
}

static const char **text_of(call *c, const char *name) {
    return (const char **)((char *)c->params + fv_params_find(c->op, name)->offset);
}

/* The call becomes one of another operator, whose parameter `option` takes over a text. */
static void become(builder *b, call *c, const char *name, const char *option, const char *text) {
    const char *file = *text_of(c, "file");
    c->op = fv_op_find(name);
    c->params = fv_arena_alloc(&b->graph->arena, c->op->params_size + 1);
    fv_params_default(c->op, c->params);
    *text_of(c, "file") = file;
    *text_of(c, option) = text;
}

static bool is_stacked(call *c) { return *text_of(c, "stack") && **text_of(c, "stack"); }

/* read of a table file or of slices is another operator, since these are made another way than a single image. */
static void choose_reader(builder *b, call *c) {
    const fv_table_format *format = fv_table_format_of_file(*text_of(c, "file"));
    const char            *path = *text_of(c, "path");
    if (is_stacked(c)) {
        become(b, c, "read_stack", "stack", *text_of(c, "stack"));
        *text_of(c, "path") = path;
    } else if (format)
        become(b, c, "read_table", "table", path);
}

/* array("name") is the bound array itself. */
static value named_array(builder *b, const call *c) {
    const char *name = *(const char *const *)((const char *)c->params + fv_params_find(c->op, "name")->offset);
    fv_error    error = { 0 };
    fv_node    *node;
    for (int a = 0; a < b->bindings->narrays; a++)
        if (!strcmp(b->bindings->arrays[a].name, name))
            return fv_graph_array(b->graph, &b->bindings->arrays[a], &node, &error) == FV_OK
                       ? node_value(node)
                       : from_error(b, c->expr->span, c->op, &error);
    return mistake(b, c->expr->span, FV_ERROR_USAGE, NULL, "array: the program bound no array named \"%s\"", name);
}

static value expand(builder *b, call *c);

/* A footprint, a list or a geometry; false: the operator gives none of these. */
static bool plain_value(builder *b, call *c, fv_literal *literal, fv_error *error) {
    if (c->op->value) {
        literal->kind = FV_LITERAL_FOOTPRINT;
        c->op->value(c->params, &literal->footprint, error);
    } else if (c->op->list) {
        literal->kind = FV_LITERAL_LIST;
        if (fv_params_find(c->op, "file") && choose_item(b, c, error) != FV_OK) return true;
        c->op->list(c->params, &b->graph->arena, &literal->list, error);
    } else if (c->op->geometry) {
        literal->kind = FV_LITERAL_GEOMETRY;
        c->op->geometry(c->params, &literal->geometry, error);
    } else return false;
    return true;
}

/* Arguments are bound: the value. */
APART static value finish_call(builder *b, call *c) {
    fv_error error = { 0 };
    value    result;
    fv_literal literal = { 0 };
    if (plain_value(b, c, &literal, &error))
        return error.code == FV_OK ? (value){ .kind = LITERAL, .literal = literal, .node = c->late }
                                   : from_error(b, c->expr->span, c->op, &error);
    if (!strcmp(c->op->name, "array")) return named_array(b, c);
    if (c->op->expands) return expand(b, c);
    if (fold(b, c, &result)) return result;
    bool of_file = !strcmp(c->op->name, "read");
    if (of_file && !is_stacked(c) && choose_item(b, c, &error) != FV_OK) return from_error(b, c->expr->span, c->op, &error);
    if (of_file) choose_reader(b, c);
    fv_node *node;
    if (fv_graph_call_late(b->graph, c->op, c->params, c->inputs, c->late, c->expr->span, &node, &error) == FV_OK)
        return node_value(node);
    return of_file ? mistake(b, c->expr->span, error.code, NULL, "%s", error.message)
                   : from_error(b, c->expr->span, c->op, &error);
}

/* part: start, stop, step and single of each axis, as the operator takes them. */
static value slice_of(builder *b, fv_node *image, const fv_literal part[4], fv_span span) {
    static const char *const names[4] = { "start", "stop", "step", "single" };
    const fv_op *op = fv_op_find("slice");
    void        *params = fv_arena_alloc(&b->graph->arena, op->params_size);
    fv_error     error = { 0 };
    fv_node     *node;
    fv_params_default(op, params);
    for (int k = 0; k < 4; k++)
        if (fv_params_set(op, fv_params_find(op, names[k]), params, &part[k], &b->graph->arena, &error) != FV_OK)
            return from_error(b, span, op, &error);
    if (fv_graph_call(b->graph, op, params, &image, span, &node, &error) != FV_OK) return from_error(b, span, op, &error);
    return node_value(node);
}

/* What measuring uses of a source. */
static value part_of(builder *b, value source, fv_span span) {
    const fv_crop *part = &b->bindings->part;
    if (!part->length || source.kind != NODE || source.node->ninputs || source.node->type.kind != FV_KIND_IMAGE) return source;
    const fv_image_type *type = &source.node->type.image;
    for (int d = 0; d < type->ndim; d++) {
        if (strcmp(type->axis[d], part->axis) || type->shape[d] != part->length) continue;
        fv_literal range[4] = { { .kind = FV_LITERAL_NUMBERS }, { .kind = FV_LITERAL_NUMBERS }, { .kind = FV_LITERAL_NUMBERS },
                                { .kind = FV_LITERAL_NUMBERS } };
        for (int k = 0; k < 4; k++) {
            range[k].numbers.count = type->ndim;
            for (int i = 0; i < type->ndim; i++) range[k].numbers.value[i] = k < 3 ? NAN : 0;
        }
        range[0].numbers.value[d] = (double)((part->length - part->take) / 2);
        range[1].numbers.value[d] = range[0].numbers.value[d] + (double)part->take;
        return slice_of(b, source.node, range, span);
    }
    return source;
}

APART static value evaluate_call(builder *b, const fv_expr *expr) {
    call c = { .expr = expr, .op = find_op(b, expr) };
    int  position = 0;
    if (!c.op) { /* still look for mistakes in the arguments */
        for (int a = 0; a < expr->nargs; a++) evaluate(b, expr->args[a].value);
        return (value){ .kind = BAD };
    }
    c.params = fv_arena_alloc(&b->graph->arena, c.op->params_size + 1);
    fv_params_default(c.op, c.params);
    for (int a = 0; a < expr->nargs; a++) {
        value v = evaluate(b, expr->args[a].value);
        bind_argument(b, &c, &expr->args[a], &v, &position);
    }
    check_missing(b, &c);
    if (c.bad) return (value){ .kind = BAD };
    return part_of(b, finish_call(b, &c), expr->span);
}

/* ---------------------------------------------------------------- operators written in other operators */

static fv_literal param_literal(const fv_param *param, const void *params) {
    const void *field = (const char *)params + param->offset;
    fv_literal  literal = { .kind = FV_LITERAL_NUMBER };
    switch (param->kind) {
    case FV_PARAM_NUMBER: literal.number = *(const double *)field; break;
    case FV_PARAM_INTEGER:
        literal.number = (double)*(const int64_t *)field;
        literal.integral = true;
        break;
    case FV_PARAM_FLAG:
        literal.kind = FV_LITERAL_FLAG;
        literal.flag = *(const bool *)field;
        break;
    case FV_PARAM_NUMBERS:
        literal.kind = FV_LITERAL_NUMBERS;
        literal.numbers = *(const fv_numbers *)field;
        break;
    case FV_PARAM_FOOTPRINT:
        literal.kind = FV_LITERAL_FOOTPRINT;
        literal.footprint = *(const fv_footprint *)field;
        break;
    case FV_PARAM_LIST:
        literal.kind = FV_LITERAL_LIST;
        literal.list = *(const fv_list *)field;
        break;
    case FV_PARAM_GEOMETRY:
        literal.kind = FV_LITERAL_GEOMETRY;
        literal.geometry = *(const fv_geometry *)field;
        break;
    case FV_PARAM_TEXT:
        literal.kind = FV_LITERAL_TEXT;
        literal.text = *(const char *const *)field;
        break;
    case FV_PARAM_CHOICE: {
        const char *word = param->choices;
        for (int i = ((const fv_choice *)field)->index; i > 0; i--) word = strchr(word, '|') + 1;
        static _Thread_local char text[32];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(word, "|"), word);
        literal.kind = FV_LITERAL_TEXT;
        literal.text = text;
        break;
    }
    case FV_PARAM_DTYPE:
        literal.kind = FV_LITERAL_TEXT;
        literal.text = fv_dtype_name((fv_dtype)FV_MAX(((const fv_dtype_choice *)field)->dtype, 0));
        break;
    }
    return literal;
}

static value expand(builder *b, call *c) {
    fv_diagnostics none = { 0 };
    fv_program    *program = fv_program_parse(c->op->name, c->op->expands, &none);
    variable       variables[FV_MAX_INPUTS + 64];
    int            count = 0;
    for (int i = 0; i < fv_inputs_count(c->op); i++)
        if (c->inputs[i])
            variables[count++] =
                (variable){ c->op->inputs[i].name, c->literals[i] ? literal_value(*c->literals[i]) : node_value(c->inputs[i]) };
    for (const fv_param *p = c->op->params; p && p->name; p++) {
        fv_literal literal = param_literal(p, c->params);
        if (literal.kind == FV_LITERAL_TEXT) literal.text = fv_arena_strdup(&b->graph->arena, literal.text ? literal.text : "");
        variables[count++] = (variable){ p->name, literal_value(literal) };
        if (literal.kind == FV_LITERAL_GEOMETRY) variables[count - 1].value.node = c->late;
    }
    fv_span span = b->expanding ? *b->expanding : c->expr->span;
    builder inner = *b;
    inner.variables = variables;
    inner.nvariables = count;
    inner.depth++;
    inner.expanding = &span;
    if (!b->expanded) inner.expanded = c->op;
    value result = none.count || program->nstatements != 1
                       ? mistake(b, span, FV_ERROR_INTERNAL, NULL, "%s: bad expansion", c->op->name)
                       : evaluate(&inner, program->statements[0].value);
    if (b->worst == FV_OK) b->worst = inner.worst;
    fv_diagnostics_release(&none);
    fv_program_free(program);
    return result;
}

/* ---------------------------------------------------------------- slices, lists, names */

static bool index_number(builder *b, const fv_expr *expr, double *number) {
    *number = NAN;
    if (!expr) return true;
    value v = evaluate(b, expr);
    if (v.kind == LITERAL && v.literal.kind == FV_LITERAL_NUMBER && v.literal.number == floor(v.literal.number)) {
        *number = v.literal.number;
        return true;
    }
    if (v.kind != BAD) mistake(b, expr->span, FV_ERROR_USAGE, NULL, "an index must be a whole number, not a %s", describe(&v));
    return false;
}

APART static value evaluate_slice(builder *b, const fv_expr *expr) {
    value      object = evaluate(b, expr->args[0].value);
    fv_literal part[4] = { { .kind = FV_LITERAL_NUMBERS },
                           { .kind = FV_LITERAL_NUMBERS },
                           { .kind = FV_LITERAL_NUMBERS },
                           { .kind = FV_LITERAL_NUMBERS } };
    bool       good = object.kind != BAD;
    if (object.kind == LITERAL || (good && object.node->type.kind != FV_KIND_IMAGE))
        return mistake(b, expr->span, FV_ERROR_USAGE, NULL, "only an image can be sliced, not a %s", describe(&object));
    for (int i = 0; i < expr->nindices; i++) {
        const fv_index *index = &expr->indices[i];
        if (i >= FV_MAX_DIMS) return mistake(b, index->span, FV_ERROR_USAGE, NULL, "more than %d indices", FV_MAX_DIMS);
        const fv_expr *parts[3] = { index->start, index->stop, index->step };
        for (int k = 0; k < 3; k++) {
            double number;
            good = index_number(b, parts[k], &number) && good;
            part[k].numbers.value[part[k].numbers.count++] = number;
        }
        part[3].numbers.value[part[3].numbers.count++] = index->single;
    }
    return good ? slice_of(b, object.node, part, expr->span) : (value){ .kind = BAD };
}

APART static value evaluate_list(builder *b, const fv_expr *expr) {
    fv_literal literal = { .kind = expr->nargs > FV_MAX_NUMBERS ? FV_LITERAL_LIST : FV_LITERAL_NUMBERS };
    bool       good = true;
    double    *numbers = literal.numbers.value;
    if (literal.kind == FV_LITERAL_LIST) numbers = fv_arena_alloc(&b->graph->arena, (size_t)expr->nargs * sizeof *numbers);
    for (int i = 0; i < expr->nargs; i++) {
        value v = evaluate(b, expr->args[i].value);
        if (v.kind == BAD) good = false;
        else if (v.kind == NODE || v.literal.kind != FV_LITERAL_NUMBER) {
            mistake(b, expr->args[i].value->span, FV_ERROR_USAGE, NULL, "a list holds plain numbers, not a %s", describe(&v));
            good = false;
        } else numbers[i] = v.literal.number;
    }
    if (literal.kind == FV_LITERAL_LIST) literal.list = (fv_list){ expr->nargs, numbers };
    else literal.numbers.count = expr->nargs;
    return good ? literal_value(literal) : (value){ .kind = BAD };
}

static value evaluate_name(builder *b, const fv_expr *expr) {
    for (int i = b->nvariables - 1; i >= 0; i--)
        if (!strcmp(b->variables[i].name, expr->text)) return b->variables[i].value;
    const char **names = fv_alloc((size_t)(b->nvariables + 1) * sizeof *names);
    for (int i = 0; i < b->nvariables; i++) names[i] = b->variables[i].name;
    const char *near = fv_nearest_word(expr->text, names, b->nvariables);
    char       *hint = near ? fv_sprintf("did you mean %s?", near)
                            : fv_op_find(expr->text) ? fv_sprintf("%s is an operator: call it with (...)", expr->text) : NULL;
    value       result = mistake(b, expr->span, FV_ERROR_USAGE, hint, "there is no variable %s", expr->text);
    free(hint);
    free(names);
    return result;
}

static value evaluate(builder *b, const fv_expr *expr) {
    fv_literal literal;
    switch (expr->kind) {
    case FV_EXPR_NUMBER:
    case FV_EXPR_TEXT:
    case FV_EXPR_FLAG:
        fv_expr_literal(expr, &literal, &b->graph->arena);
        return literal_value(literal);
    case FV_EXPR_NAME: return evaluate_name(b, expr);
    case FV_EXPR_LIST: return evaluate_list(b, expr);
    case FV_EXPR_SLICE: return evaluate_slice(b, expr);
    case FV_EXPR_CALL: return evaluate_call(b, expr);
    }
    return (value){ .kind = BAD };
}

/* ---------------------------------------------------------------- sinks */

static fv_sink *add_sink(builder *b, fv_sink_kind kind, fv_node *node, int statement, fv_span span) {
    fv_graph *graph = b->graph;
    graph->sinks = fv_realloc(graph->sinks, (size_t)(graph->nsinks + 1) * sizeof *graph->sinks);
    fv_sink *sink = &graph->sinks[graph->nsinks++];
    *sink = (fv_sink){ .kind = kind, .value = node, .combination = b->combination, .statement = statement, .span = span };
    return sink;
}

static const void *write_field(const fv_node *write, const char *name) {
    return (const char *)write->params + fv_params_find(write->op, name)->offset;
}

/* The identity of an output: what is written and how. */
static void identify_sink(fv_sink *sink) {
    fv_hasher hasher;
    fv_hasher_init(&hasher);
    fv_hasher_text(&hasher, "write 1");
    fv_hasher_text(&hasher, sink->file);
    fv_hasher_text(&hasher, sink->table);
    fv_hasher_int(&hasher, sink->append);
    fv_hasher_text(&hasher, sink->write.compression ? sink->write.compression : "");
    fv_hasher_int(&hasher, sink->write.level);
    for (int d = 0; d < FV_MAX_DIMS; d++) fv_hasher_int(&hasher, sink->write.chunk[d]);
    for (int d = 0; d < FV_MAX_DIMS; d++) fv_hasher_int(&hasher, sink->write.shard[d]);
    fv_hasher_int(&hasher, sink->write.levels);
    fv_hasher_text(&hasher, sink->write.version ? sink->write.version : "");
    fv_hasher_add(&hasher, &sink->value->key, sizeof sink->value->key);
    sink->key = fv_hasher_finish(&hasher);
}

/* Options that only some formats follow. */
static fv_status check_options(const fv_format *format, const fv_write_options *write, fv_error *error) {
    const struct { const char *name; bool given; } options[] = {
        { "shard", write->shard_ndim > 0 }, { "levels", write->levels > 0 }, { "version", write->version != NULL },
    };
    for (int i = 0; i < FV_COUNT(options); i++)
        if (options[i].given && !(format->takes && strstr(format->takes, options[i].name)))
            return fv_fail(error, FV_ERROR_USAGE, "%s: the %s format has no such choice", options[i].name, format->name);
    return FV_OK;
}

static void check_file_sink(builder *b, fv_sink *sink) {
    const fv_bindings *bindings = b->bindings;
    fv_error           error = { 0 };
    const fv_format   *format;
    fv_kind            kind = sink->value->type.kind;
    if (kind == FV_KIND_IMAGE) {
        if (fv_format_for_writing(sink->file, &format, &error) != FV_OK) {
            bool table = fv_table_format_for(sink->file) != NULL;
            mistake(b, sink->span, FV_ERROR_USAGE, table ? "this format holds tables; measure() makes one" : NULL, "%s",
                    error.message);
            return;
        }
        fv_writer *writer;
        if (check_options(format, &sink->write, &error) != FV_OK ||
            format->create(sink->file, &sink->value->type.image, &sink->write, &writer, &error) != FV_OK)
            mistake(b, sink->span, FV_ERROR_USAGE, NULL, "write: %s", error.message);
        else
            format->free_writer(writer);
    } else if (!fv_table_format_for(sink->file)) {
        fv_bytes known = { 0 };
        for (int i = 0; i < fv_table_format_count(); i++) fv_bytes_printf(&known, " %s", fv_table_format_at(i)->extensions);
        mistake(b, sink->span, FV_ERROR_USAGE, NULL, "%s: no table format has this extension; known:%s", sink->file,
                known.data ? (char *)known.data : "");
        fv_bytes_release(&known);
    }
    if (kind != FV_KIND_IMAGE) return;
    for (int p = 0; p < bindings->nparameters; p++)
        if (bindings->parameters[p].count > 1 && !fv_template_has(sink->file_template, bindings->parameters[p].name))
            mistake(b, sink->span, FV_ERROR_USAGE, NULL,
                    "write: %s is swept, so the file name must contain {%s}; \"%s\" does not", bindings->parameters[p].name,
                    bindings->parameters[p].name, sink->file_template);
    if (bindings->collection && !fv_template_has(sink->file_template, "stem") && !fv_template_has(sink->file_template, "name") &&
        !fv_template_has(sink->file_template, "index"))
        mistake(b, sink->span, FV_ERROR_USAGE, NULL,
                "write: each item of a collection needs its own file, so the name must contain {stem}, {name} or {index}; \"%s\" "
                "does not",
                sink->file_template);
}

static bool has_control(const char *text) {
    while (*text && (unsigned char)*text >= ' ' && *text != 127) text++;
    return *text;
}

static void add_file_sink(builder *b, fv_node *write, int statement) {
    fv_sink    *sink = add_sink(b, FV_SINK_FILE, write->in[0], statement, write->span);
    fv_numbers  chunk = *(const fv_numbers *)write_field(write, "chunk");
    fv_numbers  shard = *(const fv_numbers *)write_field(write, "shard");
    const char *compression = *(const char *const *)write_field(write, "compression");
    const char *version = *(const char *const *)write_field(write, "version");
    sink->file_template = *(const char *const *)write_field(write, "file");
    sink->table = *(const char *const *)write_field(write, "table");
    if (!sink->table) sink->table = "";
    sink->append = *(const bool *)write_field(write, "append");
    sink->write.compression = compression && *compression ? compression : NULL;
    sink->write.level = *(const int64_t *)write_field(write, "level");
    sink->write.chunk_ndim = FV_MIN(chunk.count, FV_MAX_DIMS);
    for (int d = 0; d < sink->write.chunk_ndim; d++) sink->write.chunk[d] = (int64_t)chunk.value[d];
    sink->write.shard_ndim = FV_MIN(shard.count, FV_MAX_DIMS);
    for (int d = 0; d < sink->write.shard_ndim; d++) sink->write.shard[d] = (int64_t)shard.value[d];
    sink->write.levels = *(const int64_t *)write_field(write, "levels");
    sink->write.version = version && *version ? version : NULL;
    char    *path;
    fv_error error = { 0 };
    if (fv_template_fill(b->bindings, sink->file_template, b->item, b->combination, &path, &error) != FV_OK) {
        mistake(b, write->span, FV_ERROR_USAGE, NULL, "write: %s", error.message);
        b->graph->nsinks--;
        return;
    }
    sink->file = fv_arena_strdup(&b->graph->arena, path);
    free(path);
    if (has_control(sink->file))
        mistake(b, write->span, FV_ERROR_USAGE, NULL, "write: a file name must not hold line ends or other control characters");
    identify_sink(sink);
    check_file_sink(b, sink);
}

static void add_statement_sink(builder *b, const fv_statement *statement, int index, const value *v) {
    const fv_span span = statement->value->span;
    if (v->kind == LITERAL) {
        fv_scalar scalar;
        if (!scalar_of(&v->literal, &scalar)) {
            mistake(b, span, FV_ERROR_USAGE, NULL, "a %s alone does nothing", describe(v));
            return;
        }
        add_sink(b, FV_SINK_PRINT, fv_graph_constant(b->graph, &scalar), index, span)->name = "value";
        return;
    }
    if (v->node->op && v->node->op->sink) add_file_sink(b, v->node, index);
    else if (v->node->type.kind == FV_KIND_IMAGE)
        mistake(b, span, FV_ERROR_USAGE, NULL, "this image goes nowhere: write it, as in `... |> write(\"result.tif\")`");
    else
        add_sink(b, FV_SINK_PRINT, v->node, index, span)->name = fv_node_label(v->node);
}

/* ---------------------------------------------------------------- statements */

static void set_variable(builder *b, const char *name, value v) {
    for (int i = 0; i < b->nvariables; i++)
        if (!strcmp(b->variables[i].name, name)) {
            b->variables[i].value = v;
            return;
        }
    b->variables = fv_realloc(b->variables, (size_t)(b->nvariables + 1) * sizeof *b->variables);
    b->variables[b->nvariables++] = (variable){ name, v };
}

static void assign(builder *b, const fv_statement *statement) {
    value v = evaluate(b, statement->value);
    for (int i = 0; i < b->nvariables; i++)
        if (!strcmp(b->variables[i].name, statement->name)) {
            mistake(b, statement->name_span, FV_ERROR_USAGE, NULL, "%s has a value already; a name is given once",
                    statement->name);
            return;
        }
    if (v.kind == NODE && v.node->op && v.node->op->sink)
        v = mistake(b, statement->value->span, FV_ERROR_USAGE, NULL, "write gives no value: leave out `%s =`", statement->name);
    if (v.kind == NODE && !v.node->name) v.node->name = fv_arena_strdup(&b->graph->arena, statement->name);
    set_variable(b, statement->name, v);
}

static void bind_parameters(builder *b) {
    for (int p = 0; p < b->bindings->nparameters; p++) {
        const fv_parameter *parameter = &b->bindings->parameters[p];
        set_variable(b, parameter->name, literal_value(parameter->values[fv_bindings_choice(b->bindings, b->combination, p)]));
    }
}

static void build_combination(builder *b, const fv_program *program) {
    b->nvariables = 0;
    bind_parameters(b);
    for (int a = 0; a < b->bindings->narrays; a++) {
        fv_node *node;
        fv_error error = { 0 };
        if (fv_graph_array(b->graph, &b->bindings->arrays[a], &node, &error) != FV_OK)
            mistake(b, (fv_span){ 1, 1, 1 }, error.code, NULL, "%s", error.message);
        else set_variable(b, b->bindings->arrays[a].name, node_value(node));
    }
    for (int s = 0; s < program->nstatements; s++) {
        const fv_statement *statement = &program->statements[s];
        if (statement->kind == FV_STATEMENT_PARAM) continue;
        if (statement->kind == FV_STATEMENT_ASSIGN) {
            assign(b, statement);
            continue;
        }
        value v = evaluate(b, statement->value);
        if (v.kind != BAD) add_statement_sink(b, statement, s, &v);
    }
    for (int k = 0; k < b->bindings->nkeeps; k++) {
        fv_expr name = { .kind = FV_EXPR_NAME, .span = { 1, 1, 1 }, .text = b->bindings->keeps[k] };
        value   v = evaluate_name(b, &name);
        fv_scalar scalar;
        if (v.kind == LITERAL && scalar_of(&v.literal, &scalar)) v = node_value(fv_graph_constant(b->graph, &scalar));
        if (v.kind == NODE) add_sink(b, FV_SINK_KEEP, v.node, program->nstatements + k, name.span)->name = b->bindings->keeps[k];
    }
}

fv_status fv_graph_build(const fv_program *program, const fv_bindings *bindings, int64_t item, fv_graph **graph,
                         fv_diagnostics *diagnostics, fv_error *error) {
    builder b = { .graph = fv_calloc(sizeof(fv_graph)), .bindings = bindings, .item = item, .diagnostics = diagnostics };
    for (b.combination = 0; b.combination < bindings->ncombinations; b.combination++) build_combination(&b, program);
    free(b.variables);
    if (b.worst == FV_OK && !b.graph->nsinks)
        mistake(&b, (fv_span){ 1, 1, 1 }, FV_ERROR_USAGE, NULL,
                "nothing is asked for: write(...) a result, or put a scalar or a table on a line of its own");
    if (b.worst != FV_OK) {
        fv_graph_free(b.graph);
        *graph = NULL;
        return fv_fail(error, b.worst, "%s", diagnostics->count ? diagnostics->items[0].message : "the pipeline has mistakes");
    }
    *graph = b.graph;
    return FV_OK;
}
