/* Calls that choose among the items of a collection: filter(c, "mean > 10"), sort(c, "-mean").
 *
 * What they decide by, the facts about an item, are a table that the item's unit exports two depths before the value of the call
 * itself is made. So nothing is decided while a graph is built, and everybody who works on a run decides the same.
 */
#include "graph/build.h"
#include "graph/segments.h"
#include "op/condition.h"
#include "op/row_sorter.h"
#include <stdlib.h>

const char fv__left_out[] = "the item was left out";

const fv_op *fv__op_called(const builder *b, const fv_op *op, const fv_expr *call) {
    if (b->expanding || !call->nargs) return op;
    const fv_level *level = level_of(b, call->args[0].value);
    return fv__op_meant(op, level->table, level->collection != FV_RUN);
}

/* The text by which a call chooses. */
static const char *text_of(const fv_op *op, const void *params) {
    return *(const char *const *)((const char *)params + op->params[0].offset);
}

/* Keeps some of the items; otherwise it sorts them. */
static bool is_filter(const fv_op *op) { return !strcmp(op->params[0].name, "condition"); }

static fv_status check(const fv_op *op, const void *params, const fv_table_type *facts, fv_error *error) {
    fv_condition condition;
    fv_row_keys  keys;
    const char  *name = op->params[0].name;
    if (is_filter(op)) return fv__condition_parse(&condition, name, text_of(op, params), facts, error);
    FV_TRY(fv__row_keys_parse(&keys, name, text_of(op, params), true, facts, error));
    return keys.count ? FV_OK : fv_fail(error, FV_ERROR_USAGE, "%s is empty; name something to sort by, such as \"-mean\"", name);
}

APART value fv__facts(builder *b, const fv_expr *call) {
    const fv_op *op;
    const void  *params;
    fv_error     error = { 0 };
    value        v = fv__expand_call(b, call, &op, &params);
    if (v.kind == NODE) v = fv__tag(b, v.node, call->span);
    if (v.kind == NODE && check(op, params, v.node->type.table, &error) != FV_OK)
        return fv__from_error(b, call->span, fv__op_find(call->text), &error);
    return v;
}

/* ---------------------------------------------------------------- what was found out */

typedef struct {
    fv_bytes       piece, scratch;
    fv_export      made;
    const fv_cell *row; /* NULL: there is none */
} facts;

static void release(facts *f) {
    fv__bytes_release(&f->piece);
    fv__bytes_release(&f->scratch);
}

/* The one row of an item; false: its unit has failed. */
static bool find_facts(const builder *b, const fv_expr *call, int64_t item, facts *f) {
    const fv_level *level = level_of(b, call);
    int64_t         unit = fv__bindings_number(b->bindings, level->collection, level->depth - 2, item), nrows = 0;
    *f = (facts){ 0 };
    if (!b->handed->find(b->handed, fv__facts_place(call), b->combination, unit, NULL, &b->graph->arena, &f->made)) return false;
    for (int64_t p = 0; p < f->made.pieces && !nrows; p++) {
        if (b->handed->piece(b->handed, &f->made, p, &f->piece, NULL) != FV_OK) return false;
        if (f->piece.size &&
            fv__piece_rows(f->made.form->table, f->piece.data, f->piece.size, &f->scratch, &f->row, &nrows, NULL) != FV_OK)
            return false;
    }
    return nrows > 0;
}

static bool keeps(const builder *b, const fv_expr *call, const char *text, int64_t item, bool *known) {
    facts        f;
    fv_condition condition;
    *known =
        find_facts(b, call, item, &f) && fv__condition_parse(&condition, "condition", text, f.made.form->table, NULL) == FV_OK;
    bool kept = *known && fv__condition_holds(&condition, f.made.form->table, f.row);
    release(&f);
    return kept;
}

APART value fv__choose(builder *b, const fv_expr *call, const fv_op *op, const void *params, fv_node *image) {
    if (b->expanding || level_of(b, call)->collection == FV_RUN)
        return fv__mistake(b, call->span, FV_ERROR_USAGE, NULL,
                           "%s: this is one image; a collection such as read(\"scans/*.tif\") belongs here", op->name);
    if (!b->handed || !is_filter(op)) return node_value(image);
    bool known, kept = keeps(b, call, text_of(op, params), b->unit.item, &known);
    if (!known) return (value){ .kind = LOST, .why = "what it is chosen by is missing, because that failed" };
    return kept ? node_value(image) : (value){ .kind = LOST, .why = fv__left_out };
}

/* ---------------------------------------------------------------- of all items */

/* The calls that choose among the items of an expression, those of its arguments first. */
static int find_choosers(const builder *b, const fv_expr *expr, int collection, const fv_expr **calls, int count, bool *seen) {
    const fv_expr *meant = fv__meant(b->program, expr);
    if (!meant || seen[meant->id] || level_of(b, meant)->collection != collection) return count;
    seen[meant->id] = true;
    for (int a = 0; a < meant->nargs; a++) count = find_choosers(b, meant->args[a].value, collection, calls, count, seen);
    for (int k = 0; k < b->bindings->nchoosers; k++)
        if (b->bindings->choosers[k] == meant) calls[count++] = meant;
    return count;
}

/* The text that a call chooses by, and its operator. */
static const char *chosen_by(builder *b, const fv_expr *call, const fv_op **op) {
    *op = fv__op_called(b, fv__op_find(call->text), call);
    const fv_expr *given = fv__argument_of(*op, call, &(*op)->params[0]);
    const char    *text = given ? fv__text_named(b->bindings, b->program, given) : NULL;
    const value   *swept = !text && given && given->kind == FV_EXPR_NAME ? fv__variables_find(&b->variables, given->text) : NULL;
    if (swept && swept->kind == LITERAL && swept->literal.kind == FV_LITERAL_TEXT) text = swept->literal.text;
    return text;
}

typedef struct {
    const fv_row_keys *keys;
    facts             *facts; /* by item */
} ordering;

static int by_facts(const void *a, const void *b, void *context) {
    const ordering *o = context;
    int64_t         x = *(const int64_t *)a, y = *(const int64_t *)b;
    int             order = fv__row_keys_order(o->keys, o->facts[x].row, o->facts[y].row);
    return order ? order : (x > y) - (x < y);
}

static void sort_items(builder *b, const fv_expr *call, const char *by, int64_t total, int64_t *items, int64_t count) {
    fv_row_keys keys;
    ordering    o = { &keys, fv__calloc((size_t)(total + 1) * sizeof(facts)) };
    bool        known = count > 0;
    for (int64_t i = 0; i < count && known; i++) known = find_facts(b, call, items[i], &o.facts[items[i]]);
    if (known && fv__row_keys_parse(&keys, "by", by, true, o.facts[items[0]].made.form->table, NULL) == FV_OK)
        qsort_r(items, (size_t)count, sizeof *items, by_facts, &o);
    for (int64_t i = 0; i < total; i++) release(&o.facts[i]);
    free(o.facts);
}

int64_t fv__items_chosen(builder *b, const fv_expr *expr, int64_t count, int64_t *items) {
    const fv_expr **calls = fv__calloc((size_t)(b->bindings->nchoosers + 1) * sizeof *calls);
    bool           *seen = fv__calloc((size_t)b->program->nexprs + 1), known;
    int             ncalls = b->handed ? find_choosers(b, expr, level_of(b, expr)->collection, calls, 0, seen) : 0;
    for (int64_t i = 0; i < count; i++) items[i] = i;
    for (int k = 0; k < ncalls; k++) {
        const fv_op *op;
        const char  *text = chosen_by(b, calls[k], &op);
        int64_t      kept = 0;
        if (text && !is_filter(op)) sort_items(b, calls[k], text, count, items, count);
        for (int64_t i = 0; text && is_filter(op) && i < count; i++)
            if (keeps(b, calls[k], text, items[i], &known) || !known) items[kept++] = items[i]; /* one that failed is named */
        if (text && is_filter(op)) count = kept;
    }
    free(calls);
    free(seen);
    return count;
}
