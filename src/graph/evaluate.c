/* Expressions of a pipeline: literals, lists, names, slices. */
#include "graph/build.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- values */

bool fv__expr_literal(const fv_expr *expr, fv_literal *literal, fv_arena *arena) {
    *literal = (fv_literal){ 0 };
    switch (expr->kind) {
    case FV_EXPR_NUMBER:
        literal->kind = FV_LITERAL_NUMBER;
        literal->number = expr->number;
        literal->integral = expr->integral;
        return true;
    case FV_EXPR_TEXT:
        literal->kind = FV_LITERAL_TEXT;
        literal->text = fv__arena_strdup(arena, expr->text);
        return true;
    case FV_EXPR_FLAG:
        literal->kind = FV_LITERAL_FLAG;
        literal->flag = expr->flag;
        return true;
    case FV_EXPR_CALL:
        if (expr->nargs != 1 || expr->args[0].value->kind != FV_EXPR_NUMBER) return false;
        if (fv__op_find(expr->text) != fv__op_of_sign("-", 1)) return false;
        fv__expr_literal(expr->args[0].value, literal, arena);
        literal->number = -literal->number;
        return true;
    case FV_EXPR_LIST:
        literal->kind = FV_LITERAL_NUMBERS;
        for (int i = 0; i < expr->nargs; i++) {
            fv_literal element;
            if (i == FV_MAX_NUMBERS || !fv__expr_literal(expr->args[i].value, &element, arena) ||
                element.kind != FV_LITERAL_NUMBER)
                return false;
            literal->numbers.value[literal->numbers.count++] = element.number;
        }
        return true;
    default: return false;
    }
}

bool fv__scalar_of(const fv_literal *literal, fv_scalar *scalar) {
    if (literal->kind == FV_LITERAL_FLAG) {
        *scalar = (fv_scalar){ .dtype = FV_BOOL, .integer = literal->flag };
        return true;
    }
    if (literal->kind != FV_LITERAL_NUMBER) return false;
    if (literal->integral && fabs(literal->number) < 0x1p53)
        *scalar = (fv_scalar){ .dtype = FV_INT64, .integer = (int64_t)literal->number };
    else
        *scalar = (fv_scalar){ .dtype = FV_FLOAT64, .real = literal->number };
    return true;
}

const char *fv__article(const value *v) { return v->kind == NODE && v->node->type.kind == FV_KIND_IMAGE ? "an" : "a"; }

const char *fv__describe(const value *v) {
    if (v->kind == NODE) return fv__kind_name(v->node->type.kind);
    switch (v->literal.kind) {
    case FV_LITERAL_NUMBER: return "number";
    case FV_LITERAL_TEXT: return "text";
    case FV_LITERAL_FLAG: return "true/false value";
    case FV_LITERAL_NUMBERS: return "list";
    case FV_LITERAL_FOOTPRINT: return "footprint";
    case FV_LITERAL_LIST: return "list";
    case FV_LITERAL_GEOMETRY: return "geometry";
    case FV_LITERAL_FILES: return "list of files";
    }
    return "value";
}

/* ---------------------------------------------------------------- slices, lists, names */

static bool index_number(builder *b, const fv_expr *expr, double *number) {
    *number = NAN;
    if (!expr) return true;
    value v = fv__evaluate(b, expr);
    if (v.kind == LITERAL && v.literal.kind == FV_LITERAL_NUMBER && v.literal.number == floor(v.literal.number)) {
        *number = v.literal.number;
        return true;
    }
    bool image = v.kind == NODE && v.node->type.kind == FV_KIND_IMAGE;
    if (v.kind != BAD)
        fv__mistake(b, expr->span, FV_ERROR_USAGE,
                    image ? "measure(mask, image) measures inside of a mask, and where(mask, image, 0) sets the rest to 0" : NULL,
                    "an index must be a whole number, not %s %s", fv__article(&v), fv__describe(&v));
    return false;
}

/* What an index takes of a list, as of an axis of an image. */
typedef struct {
    double  start, step;
    int64_t count;
} taken;

static bool take_range(builder *b, const fv_index *index, double n, double stop, taken *t) {
    if (isnan(t->step)) t->step = 1;
    if (t->step == 0) {
        fv__mistake(b, index->span, FV_ERROR_USAGE, NULL, "a step must not be 0");
        return false;
    }
    double low = t->step > 0 ? 0 : -1, high = t->step > 0 ? n : n - 1;
    if (t->start < 0) t->start += n;
    if (stop < 0) stop += n;
    t->start = isnan(t->start) ? (t->step > 0 ? low : high) : FV_MIN(FV_MAX(t->start, low), high);
    stop = isnan(stop) ? (t->step > 0 ? high : low) : FV_MIN(FV_MAX(stop, low), high);
    t->count = (int64_t)FV_MAX(ceil((stop - t->start) / t->step), 0);
    if (!t->count)
        fv__mistake(b, index->span, FV_ERROR_USAGE, NULL, "the slice takes nothing of the list, which has %g numbers", n);
    return t->count > 0;
}

static bool take_index(builder *b, const fv_index *index, int64_t length, taken *t) {
    double n = (double)length, stop;
    if (!index_number(b, index->start, &t->start) || !index_number(b, index->stop, &stop) ||
        !index_number(b, index->step, &t->step))
        return false;
    if (!index->single) return take_range(b, index, n, stop, t);
    *t = (taken){ t->start < 0 ? t->start + n : t->start, 1, 1 };
    if (t->start >= 0 && t->start < n) return true;
    fv__mistake(b, index->span, FV_ERROR_USAGE, NULL, "the index is outside the list, which has %g numbers", n);
    return false;
}

/* Part of a list: one number, or a list again. */
APART static value slice_list(builder *b, const fv_expr *expr, const fv_literal *whole) {
    bool          brief = whole->kind == FV_LITERAL_NUMBERS;
    const double *from = brief ? whole->numbers.value : whole->list.value;
    taken         t;
    if (expr->nindices != 1)
        return fv__mistake(b, expr->span, FV_ERROR_USAGE, NULL, "a list has one index, not %d", expr->nindices);
    if (!take_index(b, &expr->indices[0], brief ? whole->numbers.count : whole->list.count, &t)) return (value){ .kind = BAD };
    if (expr->indices[0].single) {
        double number = from[(int64_t)t.start];
        return literal_value((fv_literal){ .kind = FV_LITERAL_NUMBER, .number = number, .integral = number == floor(number) });
    }
    double *to = fv__arena_alloc(&b->graph->arena, (size_t)t.count * sizeof *to);
    for (int64_t i = 0; i < t.count; i++) to[i] = from[(int64_t)(t.start + (double)i * t.step)];
    fv_literal part = { .kind = FV_LITERAL_LIST, .list = { t.count, to } };
    if (t.count <= FV_MAX_NUMBERS) {
        part = (fv_literal){ .kind = FV_LITERAL_NUMBERS, .numbers.count = (int)t.count };
        memcpy(part.numbers.value, to, (size_t)t.count * sizeof *to);
    }
    return literal_value(part);
}

static bool is_list(const value *v) {
    return v->kind == LITERAL && (v->literal.kind == FV_LITERAL_LIST || v->literal.kind == FV_LITERAL_NUMBERS);
}

APART static value evaluate_slice(builder *b, const fv_expr *expr) {
    value      object = fv__evaluate(b, expr->args[0].value);
    fv_literal part[4] = { { .kind = FV_LITERAL_NUMBERS },
                           { .kind = FV_LITERAL_NUMBERS },
                           { .kind = FV_LITERAL_NUMBERS },
                           { .kind = FV_LITERAL_NUMBERS } };
    bool       good = object.kind != BAD;
    if (object.kind == LOST || object.kind == ELSEWHERE) return object;
    if (is_list(&object)) return slice_list(b, expr, &object.literal);
    if (object.kind == LITERAL || (good && object.node->type.kind != FV_KIND_IMAGE))
        return fv__mistake(b, expr->span, FV_ERROR_USAGE,
                           object.kind == NODE && object.node->type.kind == FV_KIND_TABLE
                               ? "top(table, 10) keeps the first rows, filter(table, \"volume > 100\") some of them"
                               : NULL,
                           "only an image or a list can be sliced, not a %s", fv__describe(&object));
    for (int i = 0; i < expr->nindices; i++) {
        const fv_index *index = &expr->indices[i];
        if (i >= FV_MAX_DIMS) return fv__mistake(b, index->span, FV_ERROR_USAGE, NULL, "more than %d indices", FV_MAX_DIMS);
        const fv_expr *parts[3] = { index->start, index->stop, index->step };
        for (int k = 0; k < 3; k++) {
            double number;
            good = index_number(b, parts[k], &number) && good;
            part[k].numbers.value[part[k].numbers.count++] = number;
        }
        part[3].numbers.value[part[3].numbers.count++] = index->single;
    }
    return good ? fv__slice_of(b, object.node, part, expr->span) : (value){ .kind = BAD };
}

/* How what people mean by a list of texts is written. */
/* What to write in place of a list of texts or of lists. */
static const char *instead_of_list(const value *v) {
    if (v->kind != LITERAL) return "";
    if (v->literal.kind == FV_LITERAL_TEXT)
        return "; several words are one text, \"green magenta\", and several files a pattern, \"tile_*.tif\"";
    bool list = v->literal.kind == FV_LITERAL_NUMBERS || v->literal.kind == FV_LITERAL_LIST;
    return list ? "; a matrix is written row after row, [1, 0, 0, 1]" : "";
}

APART static value evaluate_list(builder *b, const fv_expr *expr) {
    fv_literal literal = { .kind = expr->nargs > FV_MAX_NUMBERS ? FV_LITERAL_LIST : FV_LITERAL_NUMBERS };
    bool       good = true;
    double    *numbers = literal.numbers.value;
    if (literal.kind == FV_LITERAL_LIST) numbers = fv__arena_alloc(&b->graph->arena, (size_t)expr->nargs * sizeof *numbers);
    for (int i = 0; i < expr->nargs; i++) {
        value v = fv__evaluate(b, expr->args[i].value);
        if (v.kind == BAD)
            good = false;
        else if (v.kind == NODE || v.literal.kind != FV_LITERAL_NUMBER) {
            fv__mistake(b, expr->args[i].value->span, FV_ERROR_USAGE, NULL, "a list holds plain numbers, not %s %s%s",
                        fv__article(&v), fv__describe(&v), instead_of_list(&v));
            good = false;
        } else
            numbers[i] = v.literal.number;
    }
    if (literal.kind == FV_LITERAL_LIST)
        literal.list = (fv_list){ expr->nargs, numbers };
    else
        literal.numbers.count = expr->nargs;
    return good ? literal_value(literal) : (value){ .kind = BAD };
}

value fv__evaluate_name(builder *b, const fv_expr *expr) {
    value step;
    if (b->steps && !b->expanding && fv__step_name(b, expr, &step)) return step;
    const value *found = fv__variables_find(&b->variables, expr->text);
    if (found) return *found;
    int          count = b->variables.count;
    const char **names = fv__alloc((size_t)(count + 1) * sizeof *names);
    for (int i = 0; i < count; i++) names[i] = b->variables.all[i].name;
    const char *near = fv_nearest_word(expr->text, names, count);
    char       *hint = near                      ? fv__sprintf("did you mean %s?", near)
                       : fv__op_find(expr->text) ? fv__sprintf("%s is an operator: call it with (...)", expr->text)
                                                 : NULL;
    value       result = fv__mistake(b, expr->span, FV_ERROR_USAGE, hint, "there is no variable %s", expr->text);
    free(hint);
    free(names);
    return result;
}

value fv__evaluate(builder *b, const fv_expr *expr) {
    fv_literal literal;
    value      other;
    if (!b->expanding && fv__elsewhere(b, expr, &other)) return other;
    switch (expr->kind) {
    case FV_EXPR_NUMBER:
    case FV_EXPR_TEXT:
    case FV_EXPR_FLAG: fv__expr_literal(expr, &literal, &b->graph->arena); return literal_value(literal);
    case FV_EXPR_NAME: return fv__evaluate_name(b, expr);
    case FV_EXPR_LIST: return evaluate_list(b, expr);
    case FV_EXPR_SLICE: return evaluate_slice(b, expr);
    case FV_EXPR_CALL: return fv__evaluate_call(b, expr);
    }
    return (value){ .kind = BAD };
}
