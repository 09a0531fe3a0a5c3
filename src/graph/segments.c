/* Levels of values, found from the text alone, and the units of work that follow from them. */
#include "graph/segments.h"
#include "base/file.h"
#include "base/pattern_names.h"
#include "graph/items.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct place { /* of an expression */
    enum { NEW, BUSY, KNOWN } state;
    int            list; /* one of its patterns; -1: of the run */
    int            depth;
    bool           table, wanted, exported;
    const fv_expr *expr;
    const fv_expr *chooser; /* itself, if it chooses among items */
} place;

typedef struct finder {
    const fv_bindings *bindings;
    const fv_program  *program;
    const char *const *patterns;
    int               *parent; /* of a pattern, towards the first of those that belong together */
    int                npatterns;
    place             *of; /* by expression */
    fv_arena           arena;
} finder;

/* ---------------------------------------------------------------- names */

const fv_expr *fv__meant(const fv_program *program, const fv_expr *expr) {
    for (int before = program->nstatements; expr->kind == FV_EXPR_NAME;) {
        int s = fv__program_find(program, expr->text);
        if (s < 0 || s >= before) return NULL;
        expr = program->statements[s].value;
        before = s; /* names within it were given before */
    }
    return expr;
}

const char *fv__text_named(const fv_bindings *bindings, const fv_program *program, const fv_expr *value) {
    const fv_expr *meant = fv__meant(program, value);
    if (meant && meant->kind == FV_EXPR_TEXT) return meant->text;
    for (int p = 0; !meant && p < bindings->nparameters; p++) {
        const fv_parameter *parameter = &bindings->parameters[p];
        if (!strcmp(parameter->name, value->text))
            return parameter->count == 1 && parameter->values[0].kind == FV_LITERAL_TEXT ? parameter->values[0].text : NULL;
    }
    return NULL;
}

const fv_expr *fv__argument_of(const fv_op *op, const fv_expr *call, const fv_param *param) {
    int own = fv__inputs_count(op) + (int)(param - op->params), position = 0;
    for (int a = 0; a < call->nargs; a++) {
        const fv_argument *argument = &call->args[a];
        if (argument->name ? !strcmp(argument->name, param->name) : position++ == own) return argument->value;
    }
    return NULL;
}

bool fv__call_joins(const fv_op *op, const fv_expr *call) {
    const fv_param *joins = fv__params_joining(op);
    return joins && ((joins->def && *joins->def) || fv__argument_of(op, call, joins));
}

/* ---------------------------------------------------------------- collections */

static int root_of(const finder *f, int list) {
    while (f->parent[list] != list) list = f->parent[list];
    return list;
}

static int unite(const finder *f, int a, int b) {
    if (a < 0 || b < 0) return FV_MAX(a, b);
    int x = root_of(f, a), y = root_of(f, b);
    f->parent[FV_MAX(x, y)] = FV_MIN(x, y);
    return FV_MIN(x, y);
}

/* The pattern that a call reads item by item; -1: none. */
static int pattern_of(finder *f, const fv_op *op, const fv_expr *call) {
    const fv_param *file = op && !op->sink ? fv__params_file(op) : NULL;
    const fv_expr  *given = file ? fv__argument_of(op, call, file) : NULL;
    const char     *text = given ? fv__collection_named(f->bindings, f->program, given, &f->arena) : NULL;
    if (!text || (fv__call_joins(op, call) && !fv__pattern_has_names(text))) return -1;
    for (int l = 0; l < f->npatterns; l++)
        if (!strcmp(f->patterns[l], text)) return l;
    return -1;
}

/* ---------------------------------------------------------------- levels */

static place look(finder *f, const fv_expr *expr);

static bool over_items(const finder *f, const fv_op *op, const fv_expr *call) {
    for (const fv_param *p = op->params; p && p->name; p++) {
        const fv_expr *given = p->axis ? fv__argument_of(op, call, p) : NULL;
        const char    *text = given ? fv__text_named(f->bindings, f->program, given) : p->axis ? p->def : NULL;
        if (text && !strcmp(text, "item")) return true;
    }
    return false;
}

typedef struct arguments {
    bool tables, others; /* of items */
    int  item, run;      /* greatest depths */
    int  list;
} arguments;

static arguments look_at_arguments(finder *f, const fv_expr *call) {
    arguments all = { .list = -1 };
    for (int a = 0; a < call->nargs; a++) {
        place p = look(f, call->args[a].value);
        if (p.list < 0) {
            all.run = FV_MAX(all.run, p.depth);
            continue;
        }
        *(p.table ? &all.tables : &all.others) = true;
        all.item = FV_MAX(all.item, p.depth);
    }
    return all;
}

const fv_op *fv__op_meant(const fv_op *op, bool table, bool items) {
    if (!op || !op->becomes || !op->inputs) return op;
    bool other = op->inputs[0].kind == FV_KIND_TABLE ? items && !table : table;
    return other ? fv__op_find(op->becomes(NULL)) : op;
}

static const fv_op *op_of(finder *f, const fv_expr *call) {
    if (call->kind != FV_EXPR_CALL) return NULL;
    place first = call->nargs ? look(f, call->args[0].value) : (place){ .list = -1 };
    return fv__op_meant(fv__op_find(call->text), first.table, first.list >= 0);
}

static place look_at_call(finder *f, const fv_expr *call) {
    const fv_op *op = op_of(f, call);
    arguments    all = look_at_arguments(f, call);
    place        p = { .list = pattern_of(f, op, call), .depth = all.run, .table = op && op->result == FV_KIND_TABLE };
    if (p.list >= 0) {
        p.table = p.table || fv__table_format_of_file(f->patterns[p.list]);
        return p;
    }
    if (op && fv__params_file(op) && !op->sink) {
        const fv_expr *given = fv__argument_of(op, call, fv__params_file(op));
        const char    *text = given ? fv__text_named(f->bindings, f->program, given) : NULL;
        p.table = p.table || (text && fv__table_format_of_file(text));
    }
    if (!all.tables && !all.others) return p;
    bool lifts = op && ((op->gathers && !fv__op_chooses(op)) || over_items(f, op, call) ||
                        (all.tables && !all.others && !op->rows && !op->sink && !fv__op_samples(op)));
    if (lifts) {
        p.depth = FV_MAX(all.run, all.item + 1);
        return p;
    }
    p.table = p.table || (fv__op_samples(op) && all.tables); /* an estimate is what its value is */
    p.depth = FV_MAX(all.item, all.run + all.run % 2) + (fv__op_chooses(op) ? 2 : 0);
    for (int a = 0; a < call->nargs; a++) p.list = unite(f, p.list, look(f, call->args[a].value).list);
    return p;
}

static place look_at_name(finder *f, const fv_expr *name) {
    const fv_expr *meant = fv__meant(f->program, name);
    return meant ? look(f, meant) : (place){ .list = -1 };
}

static place look(finder *f, const fv_expr *expr) {
    place *known = &f->of[expr->id];
    if (known->state == BUSY) return (place){ .list = -1 }; /* a name within its own value, which is a mistake */
    if (known->state == NEW) {
        known->state = BUSY;
        place p = expr->kind == FV_EXPR_NAME ? look_at_name(f, expr) : look_at_call(f, expr);
        p.state = KNOWN;
        for (int i = 0; i < expr->nindices; i++) {
            const fv_expr *parts[3] = { expr->indices[i].start, expr->indices[i].stop, expr->indices[i].step };
            for (int k = 0; k < 3; k++)
                if (parts[k]) look(f, parts[k]);
        }
        *known = p;
    }
    return *known;
}

static finder *begin(const fv_bindings *bindings, const fv_program *program, const char *const *patterns, int count) {
    finder *f = fv__calloc(sizeof *f);
    *f = (finder){ .bindings = bindings, .program = program, .patterns = patterns, .npatterns = count };
    f->parent = fv__calloc((size_t)(count + 1) * sizeof *f->parent);
    f->of = fv__calloc((size_t)(program->nexprs + 1) * sizeof *f->of);
    for (int l = 0; l < count; l++) f->parent[l] = l;
    for (int s = 0; s < program->nstatements; s++) look(f, program->statements[s].value);
    return f;
}

static void end(finder *f) {
    free(f->parent);
    free(f->of);
    fv__arena_release(&f->arena);
    free(f);
}

void fv__group_patterns(const fv_bindings *bindings, const fv_program *program, const char *const *patterns, int count,
                        int *group) {
    finder *f = begin(bindings, program, patterns, count);
    for (int l = 0; l < count; l++) group[l] = root_of(f, l);
    end(f);
}

/* ---------------------------------------------------------------- what is handed from unit to unit */

/* A file of the item as it is: nobody has to store it. */
static bool is_plain_read(finder *f, const fv_expr *expr) {
    return expr->kind == FV_EXPR_CALL && expr->nargs == 1 && !f->of[expr->id].table &&
           pattern_of(f, fv__op_find(expr->text), expr) >= 0;
}

static void want(finder *f, const fv_expr *expr) {
    const fv_expr *meant = fv__meant(f->program, expr);
    if (!meant || f->of[meant->id].wanted) return;
    const place *p = &f->of[meant->id];
    const fv_op *op = op_of(f, meant);
    bool         chooses = fv__op_chooses(op) && p->list >= 0;
    f->of[meant->id].wanted = true;
    f->of[meant->id].chooser = chooses ? meant : NULL;
    for (int a = 0; a < meant->nargs; a++) {
        const fv_expr *given = fv__meant(f->program, meant->args[a].value);
        if (!given) continue;
        place *from = &f->of[given->id];
        bool   gathered = p->list < 0 && from->list >= 0, used = p->list >= 0 && from->list < 0 && from->depth > 0;
        bool   chosen = chooses && from->list >= 0;
        if (((gathered || chosen) && !is_plain_read(f, given)) || used) {
            from->exported = true;
            from->expr = given;
        }
        want(f, given);
    }
}

/* ---------------------------------------------------------------- segments */

static void add_segment(fv_bindings *b, int collection, int depth) {
    for (int s = 0; s < b->nsegments; s++)
        if (b->segments[s].collection == collection && b->segments[s].depth == depth) return;
    b->segments = fv__realloc(b->segments, (size_t)(b->nsegments + 1) * sizeof *b->segments);
    b->segments[b->nsegments++] = (fv_segment){ .collection = collection, .depth = depth };
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int in_order(const void *a, const void *b) {
    const fv_segment *x = a, *y = b;
    return x->depth != y->depth ? x->depth - y->depth : x->collection - y->collection;
}

static void add_place(fv_bindings *b, const fv_level *level) {
    add_segment(b, level->collection, level->collection == FV_RUN ? FV_MAX(level->depth, 1) : level->depth);
}

static void find_segments(fv_bindings *b, const fv_program *program) {
    b->nsegments = 0;
    for (int s = 0; s < program->nstatements; s++)
        if (program->statements[s].kind == FV_STATEMENT_BARE) add_place(b, &b->levels[program->statements[s].value->id]);
    for (int k = 0; k < b->nkeeps; k++) {
        const fv_expr *meant = fv__meant(program, &(fv_expr){ .kind = FV_EXPR_NAME, .text = b->keeps[k] });
        add_place(b, meant ? &b->levels[meant->id] : &(fv_level){ .collection = FV_RUN });
    }
    for (int e = 0; e < b->nexported; e++) add_place(b, &b->levels[b->exported[e]->id]);
    for (int c = 0; c < b->nchoosers; c++) {
        const fv_level *level = &b->levels[b->choosers[c]->id];
        add_segment(b, level->collection, level->depth - 2);
    }
    if (!b->nsegments) add_segment(b, FV_RUN, 1);
    qsort(b->segments, (size_t)b->nsegments, sizeof *b->segments, in_order);
}

/* Names without folder and extension tell items best, and are what lists of samples hold. Where two items have the same, the
 * folders that differ come before. */
static void name_items(fv_bindings *b, fv_item_list *list) {
    const char **names = fv__arena_alloc(&b->arena, (size_t)(list->count + 1) * sizeof *names);
    char       **sorted = fv__alloc((size_t)(list->count + 1) * sizeof *sorted);
    size_t       common = list->count ? strlen(list->paths[0]) : 0;
    bool         twice = false;
    for (int64_t i = 0; i < list->count; i++) {
        char     stem[256];
        fv_bytes group = { 0 };
        bool     grouped = fv__pattern_has_names(list->pattern) && fv__pattern_value(list->paths[i], NULL, &group);
        if (!grouped) fv__path_stem(list->paths[i], stem, sizeof stem);
        names[i] = sorted[i] =
            grouped ? fv__arena_strndup(&b->arena, (char *)group.data, group.size) : fv__arena_strdup(&b->arena, stem);
        fv__bytes_release(&group);
        size_t same = 0;
        while (same < common && list->paths[i][same] == list->paths[0][same]) same++;
        common = same;
    }
    while (common && list->paths[0][common - 1] != '/') common--;
    qsort(sorted, (size_t)list->count, sizeof *sorted, by_text);
    for (int64_t i = 1; i < list->count; i++) twice = twice || !strcmp(sorted[i - 1], sorted[i]);
    for (int64_t i = 0; twice && i < list->count; i++) {
        const char *rest = list->paths[i] + common, *slash = strrchr(rest, '/');
        names[i] = fv__arena_printf(&b->arena, "%.*s%s", slash ? (int)(slash + 1 - rest) : 0, rest, names[i]);
    }
    free(sorted);
    list->items = (fv_item_names){ .count = list->count, .names = names, .paths = (const char *const *)list->paths, .all = true };
}

void fv__bindings_count(fv_bindings *b) {
    b->nunits = b->nitems = 0;
    b->collection = false;
    for (int s = 0; s < b->nsegments; s++) {
        fv_segment *segment = &b->segments[s];
        segment->first = b->nunits;
        segment->count = segment->collection == FV_RUN ? 1 : b->lists[segment->collection].count;
        b->nunits += segment->count;
        b->collection = b->collection || segment->collection != FV_RUN;
    }
    for (int l = 0; l < b->nlists; l++)
        if (b->lists[l].collection == l) {
            b->nitems = FV_MAX(b->nitems, b->lists[l].count);
            name_items(b, &b->lists[l]);
        }
    if (!b->nitems) b->nitems = 1;
    fv__bindings_settle(b);
}

void fv__bindings_arrange(fv_bindings *b, const fv_program *program) {
    const char **patterns = fv__calloc((size_t)(b->nlists + 1) * sizeof *patterns);
    for (int l = 0; l < b->nlists; l++) patterns[l] = b->lists[l].pattern;
    finder *f = begin(b, program, patterns, b->nlists);
    for (int s = 0; s < program->nstatements; s++)
        if (program->statements[s].kind == FV_STATEMENT_BARE) want(f, program->statements[s].value);
    for (int k = 0; k < b->nkeeps; k++) want(f, &(fv_expr){ .kind = FV_EXPR_NAME, .text = b->keeps[k] });
    b->nexported = b->nchoosers = 0;
    b->choosers = fv__arena_alloc(&b->arena, (size_t)(program->nexprs + 1) * sizeof *b->choosers);
    b->exported = fv__arena_alloc(&b->arena, (size_t)(program->nexprs + 1) * sizeof *b->exported);
    b->levels = fv__arena_alloc(&b->arena, (size_t)(program->nexprs + 1) * sizeof *b->levels);
    for (int e = 0; e < program->nexprs; e++) {
        const place *p = &f->of[e];
        b->levels[e] = (fv_level){ .collection = p->list < 0 ? FV_RUN : root_of(f, p->list),
                                   .depth = p->depth,
                                   .table = p->table,
                                   .exported = p->exported };
        if (p->exported) b->exported[b->nexported++] = p->expr;
        if (p->chooser) b->choosers[b->nchoosers++] = p->chooser;
    }
    for (int l = 0; l < b->nlists; l++) b->lists[l].collection = root_of(f, l);
    find_segments(b, program);
    end(f);
    free(patterns);
    fv__bindings_count(b);
}

/* ---------------------------------------------------------------- units */

fv_unit fv__bindings_unit(const fv_bindings *b, int64_t unit) {
    int s = 0;
    while (s + 1 < b->nsegments && unit >= b->segments[s + 1].first) s++;
    return (fv_unit){
        .segment = s, .collection = b->segments[s].collection, .depth = b->segments[s].depth, .item = unit - b->segments[s].first
    };
}

int64_t fv__bindings_number(const fv_bindings *b, int collection, int depth, int64_t item) {
    for (int s = 0; s < b->nsegments; s++)
        if (b->segments[s].collection == collection && b->segments[s].depth == depth) return b->segments[s].first + item;
    return -1;
}

int fv__bindings_list(const fv_bindings *b, const fv_item_names *items) {
    for (int l = 0; items && items->count && l < b->nlists; l++)
        for (int64_t i = 0; i < b->lists[l].items.count; i++)
            if (b->lists[l].items.paths[i] == items->paths[0]) return l;
    return -1;
}

const char *fv__bindings_item(const fv_bindings *b, int64_t unit) {
    fv_unit u = fv__bindings_unit(b, unit);
    if (u.collection != FV_RUN) return b->lists[u.collection].paths[u.item];
    return b->collection ? "all items" : "";
}
