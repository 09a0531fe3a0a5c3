/* Calls of operators: arguments, constants worked out at once, files that are read, operators written in others. */
#include "base/pattern_names.h"
#include "graph/approximate.h"
#include "graph/items.h"
#include "graph/live_part.h"
#include "lang/expansion.h"
#include "op/array.h"
#include "op/axes.h"
#include "op/familiar.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- calls */

typedef struct call {
    const fv_op      *op;
    const fv_expr    *expr;
    void             *params;
    fv_node          *inputs[FV_MAX_INPUTS];
    const fv_literal *literals[FV_MAX_INPUTS]; /* inputs that are plain numbers */
    fv_literal        given[FV_MAX_INPUTS];
    bool              input_set[FV_MAX_INPUTS];
    uint64_t          params_set;
    fv_node          *late; /* the center of the geometry, if it is computed */
    bool              bad;
    const char       *lost; /* an argument is, for this reason */
} call;

APART static const fv_op *find_op(builder *b, const fv_expr *expr) {
    const fv_op *op = fv__op_find(expr->text);
    if (op) return op;
    int          count = fv__op_count();
    const char **names = fv__alloc((size_t)count * sizeof *names);
    for (int i = 0; i < count; i++) names[i] = fv__op_at(i)->name;
    const char *near = fv_nearest_word(expr->text, names, count);
    char       *hint = fv__familiar_hint(expr->text);
    if (!hint) hint = near ? fv__sprintf("did you mean %s?", near) : fv__strdup("`fovea ops` lists all operators");
    fv__mistake(b, expr->text_span, FV_ERROR_USAGE, hint, "there is no operator %s", expr->text);
    free(hint);
    free(names);
    return NULL;
}

static void set_input(builder *b, call *c, int slot, const value *v, fv_span span) {
    const fv_input *input = &c->op->inputs[slot];
    if (c->input_set[slot]) {
        fv__mistake(b, span, FV_ERROR_USAGE, NULL, "%s: %s is given twice", c->op->name, input->name);
        c->bad = true;
        return;
    }
    c->input_set[slot] = true;
    fv_scalar scalar;
    bool      plain = input->kind != FV_KIND_IMAGE && input->kind != FV_KIND_TABLE;
    if (plain && v->kind == LITERAL && fv__scalar_of(&v->literal, &scalar)) {
        c->given[slot] = v->literal;
        c->literals[slot] = &c->given[slot];
        c->inputs[slot] = fv__graph_constant(b->graph, &scalar);
        return;
    }
    bool fits = v->kind == NODE && v->node->type.kind != FV_KIND_NONE &&
                (fv__op_samples(c->op) || input->kind == v->node->type.kind ||
                 (input->kind == FV_KIND_NONE && (v->node->type.kind != FV_KIND_TABLE || c->op->sink)));
    if (!fits) {
        bool table = v->kind == NODE && v->node->type.kind == FV_KIND_TABLE;
        fv__mistake(b, span, FV_ERROR_USAGE, table ? fv__table_hint(c->op) : NULL, "%s: %s must be %s, not %s %s", c->op->name,
                    input->name,
                    input->kind == FV_KIND_IMAGE    ? "an image"
                    : input->kind == FV_KIND_TABLE  ? "a table"
                    : input->kind == FV_KIND_SCALAR ? "a number or a scalar"
                    : c->op->sink                   ? "an image, a table or a scalar"
                                                    : "an image or a number",
                    fv__article(v), fv__describe(v));
        c->bad = true;
        return;
    }
    c->inputs[slot] = v->node;
}

static size_t param_size(fv_param_kind kind) {
    switch (kind) {
    case FV_PARAM_NUMBER: return sizeof(double);
    case FV_PARAM_INTEGER: return sizeof(int64_t);
    case FV_PARAM_FLAG: return sizeof(bool);
    case FV_PARAM_TEXT: return sizeof(const char *);
    case FV_PARAM_CHOICE: return sizeof(fv_choice);
    case FV_PARAM_NUMBERS: return sizeof(fv_numbers);
    case FV_PARAM_DTYPE: return sizeof(fv_dtype_choice);
    case FV_PARAM_FOOTPRINT: return sizeof(fv_footprint);
    case FV_PARAM_LIST: return sizeof(fv_list);
    case FV_PARAM_GEOMETRY: return sizeof(fv_geometry);
    }
    return 0;
}

/* Parameters of an operator that takes over what a call of another one gave it. */
static void *take_over(builder *b, const fv_op *op, const fv_op *before, const void *given) {
    char *params = fv__arena_alloc(&b->graph->arena, op->params_size + 1);
    fv__params_default(op, params);
    for (const fv_param *to = op->params; to->name; to++) {
        const fv_param *from = fv__params_find(before, to->from ? to->from : to->name);
        if (from && from->kind == to->kind) memcpy(params + to->offset, (const char *)given + from->offset, param_size(to->kind));
    }
    return params;
}

/* A list may lie in a file: reading one gives its numbers now. */
static void numbers_of_file(builder *b, const fv_param *param, value *v, fv_error *error) {
    if (v->kind != NODE || param->kind != FV_PARAM_LIST || !v->node->op || !v->node->op->numbers) return;
    const fv_op *op = fv__op_find(v->node->op->numbers);
    const void  *params = take_over(b, op, v->node->op, v->node->params);
    *v = (value){ .kind = LITERAL, .literal = { .kind = FV_LITERAL_LIST } };
    op->list(params, &b->graph->arena, &v->literal.list, error);
}

/* The input of a call that takes what was given where only a constant is taken; NULL: there is none. */
static const fv_input *right_input(const call *c, const value *v) {
    for (int i = 0; i < fv__inputs_count(c->op); i++)
        if (c->op->inputs[i].optional && c->op->inputs[i].kind == v->node->type.kind) return &c->op->inputs[i];
    return NULL;
}

static void set_param(builder *b, call *c, const fv_param *param, const value *given, fv_span span) {
    int      index = (int)(param - c->op->params);
    fv_error error = { 0 };
    value    copy = *given, *v = &copy;
    if (c->params_set >> index & 1) {
        fv__mistake(b, span, FV_ERROR_USAGE, NULL, "%s: %s is given twice", c->op->name, param->name);
        c->bad = true;
        return;
    }
    c->params_set |= (uint64_t)1 << index;
    if (v->kind == NODE && param->late && v->node->type.kind == FV_KIND_SCALAR) {
        c->late = v->node;
        return;
    }
    if (v->kind == LITERAL && v->literal.kind == FV_LITERAL_FILES && param->many) v->literal.kind = FV_LITERAL_TEXT;
    numbers_of_file(b, param, v, &error);
    if (v->kind == NODE) {
        const fv_input *right = right_input(c, v);
        char           *hint = right ? fv__sprintf("give it as %s = ...: %s", right->name, right->doc) : NULL;
        fv__mistake(b, span, FV_ERROR_USAGE, hint, "%s: %s must be a constant; it cannot be computed by the pipeline (%s given)",
                    c->op->name, param->name, fv__describe(v));
        free(hint);
        c->bad = true;
        return;
    }
    if (error.code != FV_OK || fv__params_set(c->op, param, c->params, &v->literal, &b->graph->arena, &error) != FV_OK) {
        fv__from_error(b, span, c->op, &error);
        c->bad = true;
    }
    if (v->literal.kind == FV_LITERAL_GEOMETRY) c->late = v->node;
}

/* One of the names that the operator does not know itself: its value becomes text. */
static void set_value(builder *b, call *c, const fv_param *param, const fv_argument *argument, const value *v) {
    const char **field = (const char **)((char *)c->params + param->offset);
    fv_bytes     text = { 0 };
    if (v->kind == NODE) {
        fv__mistake(b, argument->value->span, FV_ERROR_USAGE, NULL,
                    "%s: %s must be a constant; it cannot be computed by the pipeline (%s given)", c->op->name, argument->name,
                    fv__describe(v));
        c->bad = true;
        return;
    }
    fv__literal_format(&v->literal, &text);
    *field = fv__arena_printf(&b->graph->arena, "%s%s%s = %s", *field ? *field : "", *field && **field ? ", " : "",
                              argument->name, (char *)text.data);
    fv__bytes_release(&text);
}

static void unknown_argument(builder *b, call *c, const fv_argument *argument) {
    const char *names[FV_MAX_INPUTS + 64];
    int         count = 0;
    for (int i = 0; i < fv__inputs_count(c->op); i++) names[count++] = c->op->inputs[i].name;
    for (const fv_param *p = c->op->params; p && p->name && !p->own; p++) names[count++] = p->name;
    const char *near = fv_nearest_word(argument->name, names, count);
    fv_bytes    list = { 0 };
    for (int i = 0; i < count; i++) fv__bytes_printf(&list, "%s%s", i ? ", " : "", names[i]);
    const char *known = fv__argument_hint(c->op, argument->name);
    char       *hint = near && !known ? fv__sprintf("did you mean %s?", near) : NULL;
    fv__mistake(b, argument->name_span, FV_ERROR_USAGE, known ? known : hint, "%s has no argument %s; it takes %s", c->op->name,
                argument->name, count ? (char *)list.data : "none");
    free(hint);
    fv__bytes_release(&list);
    c->bad = true;
}

/* Whether a positional value is meant for an optional input: what is typed in is not, unless it is a number, the input wants one,
 * and the first parameter does not. */
static bool meant_for(const fv_op *op, int slot, const value *v) {
    static const bool other[] = { [FV_PARAM_TEXT] = true,
                                  [FV_PARAM_CHOICE] = true,
                                  [FV_PARAM_DTYPE] = true,
                                  [FV_PARAM_FOOTPRINT] = true,
                                  [FV_PARAM_GEOMETRY] = true };
    const fv_param   *first = op->params && op->params[0].name ? &op->params[0] : NULL;
    fv_scalar         scalar;
    if (v->kind != LITERAL) return true;
    return op->inputs[slot].kind == FV_KIND_SCALAR && fv__scalar_of(&v->literal, &scalar) && (!first || other[first->kind]);
}

/* The optional input that was skipped and takes an image, which the parameter whose turn it is does not; -1: there is none. */
static int skipped_input(const call *c, const value *v, const fv_param *next) {
    bool image = v->kind == NODE && v->node->type.kind == FV_KIND_IMAGE;
    bool list = image && next->name && next->kind == FV_PARAM_LIST && v->node->op && v->node->op->numbers; /* of a file */
    for (int i = 0; i < fv__inputs_count(c->op) && image && !list; i++)
        if (c->op->inputs[i].optional && c->op->inputs[i].kind == FV_KIND_IMAGE && !c->input_set[i]) return i;
    return -1;
}

/* Positional arguments fill the inputs, then the parameters; optional inputs that they are not meant for are skipped, and filled
 * by images that come later. */
APART static void bind_argument(builder *b, call *c, const fv_argument *argument, const value *v, int *position) {
    int ninputs = fv__inputs_count(c->op), nparams = 0;
    while (c->op->params && c->op->params[nparams].name && !c->op->params[nparams].own) nparams++;
    int             slot = argument->name ? fv__inputs_find(c->op, argument->name) : -1;
    const fv_param *param = argument->name ? fv__params_find(c->op, argument->name) : NULL;
    bool            none = v->kind != LITERAL && v->kind != NODE;
    if (none) c->bad = true;
    if (v->kind == LOST) c->lost = v->why;
    const fv_param *values = argument->name && slot < 0 && !param ? fv__params_of_values(c->op) : NULL;
    if (values) {
        if (!none) set_value(b, c, values, argument, v);
        return;
    }
    if (argument->name && slot < 0 && (!param || (param->own && b->within != c->op))) {
        unknown_argument(b, c, argument);
        return;
    }
    if (!argument->name) {
        while (*position < ninputs && c->op->inputs[*position].optional && !meant_for(c->op, *position, v)) ++*position;
        slot = *position < ninputs ? (*position)++ : nparams ? skipped_input(c, v, &c->op->params[*position - ninputs]) : -1;
        if (slot < 0 && *position < ninputs + nparams)
            param = &c->op->params[(*position)++ - ninputs];
        else if (slot < 0) {
            fv__mistake(b, argument->value->span, FV_ERROR_USAGE, fv__argument_hint(c->op, NULL), "%s takes at most %d arguments",
                        c->op->name, ninputs + nparams);
            c->bad = true;
            return;
        }
    }
    if (none) { /* reported already; remember that something was given */
        if (slot >= 0)
            c->input_set[slot] = true;
        else
            c->params_set |= (uint64_t)1 << (param - c->op->params);
    } else if (slot >= 0)
        set_input(b, c, slot, v, argument->value->span);
    else
        set_param(b, c, param, v, argument->value->span);
}

APART static void check_missing(builder *b, call *c) {
    for (int i = 0; i < fv__inputs_count(c->op); i++)
        if (!c->input_set[i] && !c->op->inputs[i].optional) {
            fv__mistake(b, c->expr->text_span, FV_ERROR_USAGE, NULL, "%s needs %s: %s", c->op->name, c->op->inputs[i].name,
                        c->op->inputs[i].doc);
            c->bad = true;
        }
    for (const fv_param *p = c->op->params; p && p->name; p++)
        if (!p->def && !(c->params_set >> (p - c->op->params) & 1)) {
            fv__mistake(b, c->expr->text_span, FV_ERROR_USAGE, NULL, "%s needs %s: %s", c->op->name, p->name, p->doc);
            c->bad = true;
        }
}

/* A point-wise operator on plain numbers is computed now, so that it can be a parameter. */
static bool fold(builder *b, call *c, value *result) {
    int ninputs = fv__inputs_count(c->op);
    if (!fv__op_is_point(c->op) || !ninputs) return false;
    for (int i = 0; i < ninputs; i++)
        if (!c->literals[i]) return false;
    fv_error         error = { 0 };
    fv_node         *node;
    const fv_scalar *in[FV_MAX_INPUTS];
    fv_scalar        out;
    if (fv__graph_call(b->graph, c->op, c->params, c->inputs, c->expr->span, &node, &error) != FV_OK) {
        *result = fv__from_error(b, c->expr->span, c->op, &error);
        return true;
    }
    for (int i = 0; i < ninputs; i++) in[i] = &c->inputs[i]->value;
    if (fv__scalar_apply(c->op, c->params, node->compute, &node->type, in, ninputs, &out, &error) != FV_OK) {
        *result = fv__from_error(b, c->expr->span, c->op, &error);
        return true;
    }
    fv_literal literal = { .kind = FV_LITERAL_NUMBER, .number = fv__scalar_number(&out), .integral = out.dtype != FV_FLOAT64 };
    if (out.dtype == FV_BOOL) literal = (fv_literal){ .kind = FV_LITERAL_FLAG, .flag = out.integer != 0 };
    *result = literal_value(literal);
    return true;
}

static bool writes(const fv_program *program, const char *file) {
    for (int s = 0; s < program->nstatements; s++) {
        const fv_expr *expr = program->statements[s].value;
        const fv_op   *op = expr && expr->kind == FV_EXPR_CALL ? fv__op_find(expr->text) : NULL;
        for (int a = 0; op && op->sink && a < expr->nargs; a++)
            if (expr->args[a].value->kind == FV_EXPR_TEXT && !strcmp(expr->args[a].value->text, file)) return true;
    }
    return false;
}

/* A pattern becomes the item's file. */
static fv_status choose_item(builder *b, call *c, const fv_param *param, fv_error *error) {
    const char **file = (const char **)((char *)c->params + param->offset);
    for (int l = 0; l < b->bindings->nlists; l++)
        if (b->bindings->lists[l].collection == b->unit.collection && !strcmp(b->bindings->lists[l].pattern, *file)) {
            *file = b->bindings->lists[l].paths[b->unit.item];
            return FV_OK;
        }
    if (fv__file_exists(*file)) return FV_OK;
    b->diagnostics->missing = true;
    return fv_fail(
        error, FV_ERROR_INPUT, "there is no file %s%s", *file,
        writes(b->program, *file) ? " yet, and what this text writes it cannot read: give the value a name and use that" : "");
}

/* The call becomes one of the operator that does it for these parameters. */
static void become(builder *b, call *c) {
    const char *name = c->op->becomes ? c->op->becomes(c->params) : NULL;
    if (!name) return;
    const fv_op *before = c->op;
    c->op = fv__op_find(name);
    c->params = take_over(b, c->op, before, c->params);
}

static bool is_joined(const call *c) {
    const fv_param *joins = fv__params_joining(c->op);
    const char     *given = joins ? *(const char *const *)((const char *)c->params + joins->offset) : NULL;
    return given && *given;
}

/* Its files are items, each of which is a group of them. */
static bool is_grouped(const call *c, const fv_param *file) {
    const char *pattern = *(const char *const *)((const char *)c->params + file->offset);
    return pattern && fv__pattern_has_names(pattern);
}

/* The array that the calling program has bound to a name. */
static value named_array(builder *b, const call *c) {
    const char *name = ((const fv_array_params *)c->params)->name;
    fv_error    error = { 0 };
    fv_node    *node;
    for (int a = 0; a < b->bindings->narrays; a++)
        if (!strcmp(b->bindings->arrays[a].name, name))
            return fv__graph_array(b->graph, &b->bindings->arrays[a], &node, &error) == FV_OK
                       ? node_value(node)
                       : fv__from_error(b, c->expr->span, c->op, &error);
    return fv__mistake(b, c->expr->span, FV_ERROR_USAGE, NULL, "%s: the program bound no array named \"%s\"", c->op->name, name);
}

/* Its pattern stands for a frame of a stream that is in memory. */
static bool is_frame(const builder *b, const call *c, const fv_param *file) {
    const char *pattern = *(const char *const *)((const char *)c->params + file->offset);
    return b->bindings->live.frame && pattern && !strcmp(b->bindings->live.pattern, pattern);
}

/* The frame in the place of a file. Of the parameters of a reader, only names of axes mean something to it. */
static value live_frame(builder *b, const call *c, const fv_param *file) {
    const fv_param *axes = fv__params_find(c->op, "axes");
    fv_array        frame = *b->bindings->live.frame;
    fv_error        error = { 0 };
    fv_node        *node;
    for (int a = 0; a < c->expr->nargs; a++) {
        const char *name = c->expr->args[a].name;
        if (name && strcmp(name, file->name) && (!axes || strcmp(name, axes->name)))
            return fv__mistake(b, c->expr->span, FV_ERROR_USAGE, NULL,
                               "%s: %s is about files, and means nothing to frames that come as messages", c->op->name, name);
    }
    const char *names = axes ? *(const char *const *)((const char *)c->params + axes->offset) : NULL;
    if (names && *names && fv__axes_name(&frame.type, names, &error) != FV_OK)
        return fv__from_error(b, c->expr->span, c->op, &error);
    if (fv__graph_array(b->graph, &frame, &node, &error) != FV_OK) return fv__from_error(b, c->expr->span, c->op, &error);
    return node_value(node);
}

/* Its list is what a file of images tells of itself. */
static bool is_of_images(const fv_op *op) {
    for (int i = 0; i < fv__op_count(); i++)
        if (fv__op_at(i)->numbers && fv__op_at(i)->result == FV_KIND_IMAGE && !strcmp(fv__op_at(i)->numbers, op->name))
            return true;
    return false;
}

static value expand(builder *b, call *c, const char *text);

/* A footprint, a list, a geometry or a list of files; false: the operator gives none of these. */
static bool plain_value(builder *b, call *c, fv_literal *literal, fv_error *error) {
    const fv_param *file = fv__params_file(c->op);
    if (c->op->value) {
        literal->kind = FV_LITERAL_FOOTPRINT;
        c->op->value(c->params, &literal->footprint, error);
    } else if (c->op->list) {
        literal->kind = FV_LITERAL_LIST;
        if (file && is_frame(b, c, file) && is_of_images(c->op)) {
            fv__live_angles(&b->bindings->live, &b->graph->arena, &literal->list, error);
            return true;
        }
        if (file && choose_item(b, c, file, error) != FV_OK) return true;
        c->op->list(c->params, &b->graph->arena, &literal->list, error);
    } else if (c->op->geometry) {
        literal->kind = FV_LITERAL_GEOMETRY;
        c->op->geometry(c->params, &literal->geometry, error);
    } else if (c->op->files) {
        literal->kind = FV_LITERAL_FILES;
        literal->text = fv__files_text(c->op, c->params, &b->graph->arena);
    } else
        return false;
    return true;
}

/* The value where the operator is written in others for these parameters; false: it is not. */
APART static bool unrolled(builder *b, call *c, value *result) {
    fv_type  room = { 0 }, absent = { 0 };
    fv_bytes text = { 0 };
    fv_error error = { 0 };
    fv_infer i = { .params = c->params,
                   .params_size = c->op->params_size,
                   .ninputs = fv__inputs_count(c->op),
                   .out = &room,
                   .arena = &b->graph->arena };
    for (int k = 0; k < i.ninputs; k++) i.in[k] = c->inputs[k] ? &c->inputs[k]->type : &absent;
    fv_status status = c->op->unroll(&i, &text, &error);
    if (status != FV_OK)
        *result = fv__from_error(b, c->expr->span, c->op, &error);
    else if (text.size)
        *result = expand(b, c, (const char *)text.data);
    bool done = status != FV_OK || text.size;
    fv__bytes_release(&text);
    return done;
}

/* Arguments are bound: the value. */
APART static value finish_call(builder *b, call *c) {
    fv_error   error = { 0 };
    value      result;
    fv_literal literal = { 0 };
    if (plain_value(b, c, &literal, &error))
        return error.code == FV_OK ? (value){ .kind = LITERAL, .literal = literal, .node = c->late }
                                   : fv__from_error(b, c->expr->span, c->op, &error);
    if (c->op->role == FV_OP_ARRAY || c->op->role == FV_OP_PROVIDED) return named_array(b, c);
    if (fv__op_chooses(c->op)) return fv__choose(b, c->expr, c->op, c->params, c->inputs[0]);
    if (c->op->gathers) return node_value(c->inputs[0]);
    if (fv__op_samples(c->op)) return fv__approximate_call(b, c->expr, c->op, c->params, c->inputs[0]);
    if (c->op->expands) return expand(b, c, c->op->expands);
    if (c->op->unroll && unrolled(b, c, &result)) return result;
    if (fold(b, c, &result)) return result;
    const fv_param *file = fv__params_file(c->op);
    bool            of_file = file && file->many;
    if (of_file && is_frame(b, c, file)) return live_frame(b, c, file);
    if (of_file && (!is_joined(c) || is_grouped(c, file)) && choose_item(b, c, file, &error) != FV_OK)
        return fv__from_error(b, c->expr->span, c->op, &error);
    become(b, c);
    fv_node *node;
    fv_span  span = b->expanding ? *b->expanding : c->expr->span;
    if (fv__graph_call_late(b->graph, c->op, c->params, c->inputs, c->late, span, &node, &error) == FV_OK) {
        if (b->expanded && !node->called) {
            node->called = b->expanded;
            node->call = b->call;
        }
        return node_value(node);
    }
    return of_file ? fv__mistake(b, c->expr->span, error.code, NULL, "%s", error.message)
                   : fv__from_error(b, c->expr->span, c->op, &error);
}

value fv__slice_of(builder *b, fv_node *image, const fv_literal part[4], fv_span span) {
    static const char *const names[4] = { "start", "stop", "step", "single" };
    const fv_op             *op = fv__op_of_role(FV_OP_PART);
    void                    *params = fv__arena_alloc(&b->graph->arena, op->params_size);
    fv_error                 error = { 0 };
    fv_node                 *node;
    fv__params_default(op, params);
    for (int k = 0; k < 4; k++)
        if (fv__params_set(op, fv__params_find(op, names[k]), params, &part[k], &b->graph->arena, &error) != FV_OK)
            return fv__from_error(b, span, op, &error);
    if (fv__graph_call(b->graph, op, params, &image, span, &node, &error) != FV_OK) return fv__from_error(b, span, op, &error);
    return node_value(node);
}

/* What measuring uses of a source. */
static value part_of(builder *b, value source, fv_span span) {
    const fv_crop *part = &b->bindings->part;
    if (!part->length || source.kind != NODE || source.node->ninputs || source.node->type.kind != FV_KIND_IMAGE) return source;
    const fv_image_type *type = &source.node->type.image;
    for (int d = 0; d < type->ndim; d++) {
        if (strcmp(type->axis[d], part->axis) || type->shape[d] != part->length) continue;
        fv_literal range[4] = { { .kind = FV_LITERAL_NUMBERS },
                                { .kind = FV_LITERAL_NUMBERS },
                                { .kind = FV_LITERAL_NUMBERS },
                                { .kind = FV_LITERAL_NUMBERS } };
        for (int k = 0; k < 4; k++) {
            range[k].numbers.count = type->ndim;
            for (int i = 0; i < type->ndim; i++) range[k].numbers.value[i] = k < 3 ? NAN : 0;
        }
        range[0].numbers.value[d] = (double)((part->length - part->take) / 2);
        range[1].numbers.value[d] = range[0].numbers.value[d] + (double)part->take;
        return fv__slice_of(b, source.node, range, span);
    }
    return source;
}

/* Operators of the run take values of all items together; those that go row by row leave a table to its item. */
static value argument_value(builder *b, const call *c, int a) {
    const fv_expr *given = c->expr->args[a].value;
    if (b->expanding) return fv__evaluate(b, given);
    bool of_item = level_of(b, given)->collection != FV_RUN, of_run = level_of(b, c->expr)->collection == FV_RUN;
    if (of_item && of_run) return fv__gather(b, given, c->op->gathers);
    if (c->op->gathers && !a && !of_item)
        return fv__mistake(b, given->span, FV_ERROR_USAGE, NULL,
                           "%s: this is one value for the whole run; a collection such as read(\"scans/*.tif\") belongs here",
                           c->op->name);
    value v = fv__evaluate(b, given);
    if (c->op->rows && !a && v.kind == NODE && v.node->type.kind == FV_KIND_TABLE && of_item)
        return fv__tag(b, v.node, given->span);
    return v;
}

/* An operator that is written in its iterations is a solver: with fewer of them it gives what it has by then, and shares their
 * work. NULL: it is none. */
static const fv_param *loop_of(const fv_op *op) {
    const fv_param *found = op->unroll ? fv__params_find(op, "iterations") : NULL;
    return found && found->kind == FV_PARAM_INTEGER ? found : NULL;
}

static int64_t *rounds_of(const call *c, const fv_param *param) { return (int64_t *)(void *)((char *)c->params + param->offset); }

/* A solver that the text calls: how far it goes where a step of it is wanted. One that takes several iterations at once has a
 * parameter of its own, after how many of them it can be left. */
static void limit_rounds(const builder *b, call *c) {
    int64_t        *rounds = rounds_of(c, loop_of(c->op));
    const fv_param *parts = fv__params_find(c->op, "every");
    if (parts) *rounds_of(c, parts) = b->every;
    if (b->bindings->live.rounds) *rounds = FV_MIN(*rounds, b->bindings->live.rounds);
    if (!b->steps) return;
    b->steps->all = FV_MAX(b->steps->all, *rounds);
    *rounds = FV_MIN(*rounds, b->steps->rounds);
}

/* The input is a part of a scan that grows: lists of the text are for the whole scan. */
static void fit_part(builder *b, call *c) {
    fv_error error = { 0 };
    if (!c->inputs[0] || c->inputs[0]->type.kind != FV_KIND_IMAGE) return;
    if (fv__part_fit(&b->bindings->live, c->op, &c->inputs[0]->type.image, c->params, &b->graph->arena, &error) == FV_OK) return;
    fv__from_error(b, c->expr->span, c->op, &error);
    c->bad = true;
}

/* Finds the operator and binds the arguments; false: *v stands for the call. */
static bool bind_call(builder *b, call *c, value *v) {
    const fv_expr *expr = c->expr;
    int            position = 0;
    *v = (value){ .kind = BAD };
    c->op = fv__op_called(b, find_op(b, expr), expr);
    if (!c->op) { /* still look for mistakes in the arguments */
        for (int a = 0; a < expr->nargs; a++) fv__evaluate(b, expr->args[a].value);
        return false;
    }
    c->params = fv__arena_alloc(&b->graph->arena, c->op->params_size + 1);
    fv__params_default(c->op, c->params);
    fv_steps *steps = b->steps;
    if (loop_of(c->op)) b->steps = NULL; /* solvers before this one have done all their rounds */
    for (int a = 0; a < expr->nargs; a++) {
        value argument = argument_value(b, c, a);
        bind_argument(b, c, &expr->args[a], &argument, &position);
    }
    b->steps = steps;
    check_missing(b, c);
    if (loop_of(c->op) && !b->expanding) limit_rounds(b, c);
    if (b->bindings->live.there && !c->bad) fit_part(b, c);
    if (c->lost) *v = (value){ .kind = LOST, .why = c->lost };
    return !c->lost && !c->bad;
}

APART value fv__evaluate_call(builder *b, const fv_expr *expr) {
    call  c = { .expr = expr };
    value v;
    if (!bind_call(b, &c, &v)) return v;
    return part_of(b, finish_call(b, &c), expr->span);
}

APART value fv__expand_call(builder *b, const fv_expr *expr, const fv_op **op, const void **params) {
    call  c = { .expr = expr };
    value v;
    if (!bind_call(b, &c, &v)) return v;
    *op = c.op;
    *params = c.params;
    return expand(b, &c, c.op->expands);
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

static void name_arguments(builder *b, const call *c, fv_variables *variables) {
    for (int i = 0; i < fv__inputs_count(c->op); i++)
        if (c->inputs[i])
            fv__variables_set(variables, c->op->inputs[i].name,
                              c->literals[i] ? literal_value(*c->literals[i]) : node_value(c->inputs[i]));
    for (const fv_param *p = c->op->params; p && p->name; p++) {
        fv_literal literal = param_literal(p, c->params);
        if (literal.kind == FV_LITERAL_TEXT) literal.text = fv__arena_strdup(&b->graph->arena, literal.text ? literal.text : "");
        value v = literal_value(literal);
        if (literal.kind == FV_LITERAL_GEOMETRY) v.node = c->late;
        fv__variables_set(variables, p->name, v);
    }
}

static fv_hash identity_of(const builder *b, const call *c) {
    fv_node node = { .op = c->op, .params = c->params, .ninputs = fv__inputs_count(c->op) };
    for (int i = 0; i < node.ninputs; i++) node.in[i] = c->inputs[i];
    if (c->late && node.ninputs < FV_MAX_INPUTS) node.in[node.ninputs++] = c->late;
    fv__graph_identify(b->graph, &node, NULL);
    return node.key;
}

/* text: statements, of which the last gives the value. */
static value expand(builder *b, call *c, const char *text) {
    fv_diagnostics none = { 0 };
    fv_program    *program = fv__expansion_parse(c->op->name, text, &none);
    fv_span        span = b->expanding ? *b->expanding : c->expr->span;
    builder        inner = *b;
    value          result = { .kind = BAD };
    inner.variables = (fv_variables){ 0 };
    name_arguments(b, c, &inner.variables);
    inner.depth++;
    inner.expanding = &span;
    inner.within = c->op;
    inner.steps = NULL;
    if (!b->expanded) {
        inner.expanded = c->op;
        inner.call = identity_of(b, c);
    }
    if (program->incomplete)
        fv__mistake(b, span, FV_ERROR_MEMORY, NULL, "%s: %s", c->op->name, none.items[0].message);
    else if (none.count || !program->nstatements)
        fv__mistake(b, span, FV_ERROR_INTERNAL, NULL, "%s: bad expansion", c->op->name);
    for (int k = 0; k < program->nstatements && !none.count; k++) {
        const fv_statement *statement = &program->statements[k];
        result = fv__evaluate(&inner, statement->value);
        if (result.kind == BAD) break;
        if (statement->name) fv__variables_set(&inner.variables, statement->name, result);
    }
    if (b->worst == FV_OK) b->worst = inner.worst;
    fv__variables_release(&inner.variables);
    fv__diagnostics_release(&none);
    fv__program_free(program);
    return result;
}
