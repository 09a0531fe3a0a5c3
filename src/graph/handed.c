/* Values of other units: what an expression stands for that is not computed here. */
#include "base/file.h"
#include "graph/build.h"
#include "graph/gathered.h"
#include "graph/items.h"
#include "graph/segments.h"
#include "op/place.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    SAMPLES = 8,
    HEADERS = 1000, /* of files that are looked at before a run begins */
    NAMED = 3,
};

const char fv__lost_with_run[] = "what is found out from all items is missing, because some failed";

/* ---------------------------------------------------------------- samples */

static bool describe(const value *v, int collection, fv_arena *arena, fv_export *out) {
    if (v->kind != NODE) return false;
    const fv_type  *type = &v->node->type;
    fv_export_form *form = fv__arena_alloc(arena, sizeof *form);
    form->kind = type->kind;
    form->image = type->image;
    form->dtype = type->dtype;
    form->collection = type->items ? collection : FV_RUN;
    if (type->kind == FV_KIND_TABLE) {
        fv_table_type *table = fv__arena_alloc(arena, sizeof *table);
        *table = *type->table;
        table->metadata = NULL;
        form->table = table;
    }
    if (type->kind == FV_KIND_IMAGE) fv__lattice_init(&form->lattice, type->image.ndim, type->image.shape, type->image.shape);
    *out = (fv_export){ .form = form, .scalar.dtype = type->dtype };
    return type->kind == FV_KIND_IMAGE || type->kind == FV_KIND_SCALAR || type->kind == FV_KIND_TABLE;
}

bool fv__sample(const builder *b, const fv_expr *expr, int64_t unit, fv_export *out) {
    fv_diagnostics own = { 0 };
    builder        inner = { .graph = fv__calloc(sizeof(fv_graph)),
                             .program = b->program,
                             .bindings = b->bindings,
                             .number = unit,
                             .unit = fv__bindings_unit(b->bindings, unit),
                             .combination = b->combination,
                             .diagnostics = &own };
    inner.graph->device = b->graph->device;
    fv__build_names(&inner);
    value v = fv__evaluate(&inner, expr);
    int   collection = inner.unit.collection;
    if (collection == FV_RUN && v.kind == NODE) collection = fv__bindings_list(b->bindings, v.node->type.items);
    bool good = describe(&v, collection, &b->graph->arena, out);
    fv__variables_release(&inner.variables);
    fv__graph_free(inner.graph);
    fv__diagnostics_release(&own);
    return good;
}

/* ---------------------------------------------------------------- finding what was made */

static value lost(builder *b, const char *why_take) {
    value v = { .kind = LOST, .why = fv__arena_strdup(&b->graph->arena, why_take) };
    free((void *)(uintptr_t)why_take);
    return v;
}

/* "a.tif and 3 others" */
static char *names_of(const fv_bindings *bindings, const int64_t *units, int64_t count) {
    fv_bytes text = { 0 };
    for (int64_t i = 0; i < FV_MIN(count, NAMED); i++)
        fv__bytes_printf(&text, "%s%s", i ? ", " : "", fv__bindings_item(bindings, units[i]));
    if (count > NAMED) fv__bytes_printf(&text, " and %lld more", (long long)(count - NAMED));
    return (char *)text.data;
}

/* Whether a value of an item needs one of the run that was not made: then the item did not fail itself. */
static bool needs_lost(const builder *b, const fv_expr *expr, bool *seen) {
    const fv_expr *meant = fv__meant(b->program, expr);
    if (!meant || seen[meant->id]) return false;
    seen[meant->id] = true;
    const fv_level *level = level_of(b, meant);
    fv_arena        arena = { 0 };
    fv_export       made;
    bool            lost = level->exported && level->collection == FV_RUN &&
                !b->handed->find(b->handed, meant->id, b->combination, fv__bindings_number(b->bindings, FV_RUN, level->depth, 0),
                                 NULL, &arena, &made);
    fv__arena_release(&arena);
    for (int a = 0; a < meant->nargs && !lost; a++) lost = needs_lost(b, meant->args[a].value, seen);
    for (int i = 0; i < meant->nindices && !lost; i++) {
        const fv_expr *parts[] = { meant->indices[i].start, meant->indices[i].stop, meant->indices[i].step };
        for (int k = 0; k < FV_COUNT(parts) && !lost; k++) lost = parts[k] && needs_lost(b, parts[k], seen);
    }
    return lost;
}

static bool lost_before(const builder *b, const fv_expr *expr) {
    bool *seen = fv__calloc((size_t)b->program->nexprs + 1);
    bool  lost = b->handed && needs_lost(b, expr, seen);
    free(seen);
    return lost;
}

/* The exports of an expression by some of the units from `first` on; false: *v tells why there are none. */
static bool find_all(builder *b, const fv_expr *expr, int64_t first, const int64_t *items, int64_t count, fv_export *all,
                     value *v) {
    int64_t *missing = fv__alloc((size_t)(count + 1) * sizeof *missing), nmissing = 0;
    bool     found = false;
    if (b->handed) {
        for (int64_t i = 0; i < count; i++)
            if (!b->handed->find(b->handed, expr->id, b->combination, first + items[i], i ? all[i - 1].form : NULL,
                                 &b->graph->arena, &all[i]))
                missing[nmissing++] = first + items[i];
        found = !nmissing;
    } else {
        for (int64_t k = 0; k < FV_MIN(count, SAMPLES) && !found; k++)
            found = fv__sample(b, expr, first + items[k * count / FV_MIN(count, SAMPLES)], &all[0]);
        for (int64_t i = 1; i < count; i++) all[i] = all[0];
        missing[nmissing++] = first;
    }
    if (!found && lost_before(b, expr)) {
        *v = (value){ .kind = LOST, .why = fv__lost_with_run };
    } else if (!found) {
        char *names = names_of(b->bindings, missing, nmissing);
        *v = lost(b, fv__sprintf("what needs every item was not made, because %s failed", names));
        free(names);
    }
    free(missing);
    return found;
}

/* ---------------------------------------------------------------- images of all items */

static void shape_text(const fv_image_type *type, char *text, size_t size) {
    size_t n = (size_t)snprintf(text, size, "%s", fv_dtype_name(type->dtype));
    for (int d = 0; d < type->ndim && n < size; d++)
        n += (size_t)snprintf(text + n, size - n, "%s%lld", d ? " x " : " ", (long long)type->shape[d]);
}

static bool same_shape(const fv_image_type *a, const fv_image_type *b) {
    return a->ndim == b->ndim && !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape);
}

static fv_status check_parts(const fv_gathered *g, bool any_shape, bool *line, fv_error *error) {
    const fv_image_type *first = g->parts[0].type;
    *line = false;
    for (int64_t i = 1; i < g->count; i++) {
        const fv_image_type *type = g->parts[i].type;
        char                 one[160], other[160];
        if (type->dtype == first->dtype && same_shape(type, first)) continue;
        *line = true;
        if (any_shape && type->dtype == first->dtype) continue;
        shape_text(first, one, sizeof one);
        shape_text(type, other, sizeof other);
        return fv_fail(error, FV_ERROR_INPUT,
                       "items that become one image must have the same shape and type, but %s is %s and %s is %s",
                       g->parts[0].path, one, g->parts[i].path, other);
    }
    return FV_OK;
}

static fv_status say_elsewhere(const fv_gathered *g, int64_t other, fv_error *error) {
    fv_bytes here = { 0 }, there = { 0 };
    fv__place_say(g->parts[0].type, &here);
    fv__place_say(g->parts[other].type, &there);
    fv_fail(error, FV_ERROR_INPUT,
            "%s does not lie where %s does: %s, not %s. Bring them to one place first, or put together(...) around the images to "
            "take them without a place",
            g->parts[other].path, g->parts[0].path, (char *)there.data, (char *)here.data);
    fv__bytes_release(&here);
    fv__bytes_release(&there);
    return FV_ERROR_INPUT;
}

/* The place of the whole: that of the items, which must agree on it. Where the first says nothing, nobody is asked. */
static fv_status take_place(fv_gathered *g, bool any_place, fv_error *error) {
    const fv_image_type *first = g->parts[0].type;
    if (!fv__place_known(first)) return FV_OK;
    for (int64_t i = 1; i < g->count; i++) {
        const fv_image_type *type = g->parts[i].type;
        if (type == g->parts[i - 1].type || fv__place_same(first, type)) continue;
        return any_place ? FV_OK : say_elsewhere(g, i, error);
    }
    fv__place_take_behind(&g->type.image, first);
    return FV_OK;
}

/* One image with an axis for the items before its own. */
static fv_status stack_type(fv_gathered *g, bool any_place, fv_error *error) {
    const fv_image_type *one = g->parts[0].type;
    fv_image_type       *type = &g->type.image;
    int64_t              shape[FV_MAX_DIMS] = { g->count };
    if (one->ndim == FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "the images have %d axes; there is no room for another one", one->ndim);
    memcpy(shape + 1, one->shape, (size_t)one->ndim * sizeof *shape);
    fv_image_type_init(type, one->dtype, one->ndim + 1, shape);
    snprintf(type->axis[0], sizeof type->axis[0], "item");
    for (int d = 0; d < one->ndim; d++) {
        if (!strcmp(one->axis[d], "item")) return fv_fail(error, FV_ERROR_USAGE, "the images have an axis item already");
        memcpy(type->axis[d + 1], one->axis[d], sizeof one->axis[d]);
    }
    memmove(g->layout.chunk + 1, g->layout.chunk, (size_t)one->ndim * sizeof *g->layout.chunk);
    g->layout.chunk[0] = 1;
    g->form = FV_GATHERED_STACK;
    return take_place(g, any_place, error);
}

/* All voxels one after another, for statistics. */
static void line_type(fv_gathered *g) {
    int64_t total = 0, plane = 0;
    for (int64_t i = 0; i < g->count; i++) {
        int64_t voxels = fv_image_type_voxels(g->parts[i].type);
        g->parts[i].start = total;
        total += voxels;
        plane = FV_MAX(plane, voxels / g->parts[i].type->shape[0]);
    }
    fv_image_type_init(&g->type.image, g->parts[0].type->dtype, 1, &total);
    snprintf(g->type.image.axis[0], sizeof g->type.image.axis[0], "voxel");
    g->layout.chunk[0] = FV_MIN(total, (int64_t)1 << 20);
    g->layout.read_memory += FV_MAX(plane, (int64_t)1 << 18) * (int64_t)fv_dtype_size(g->type.image.dtype);
    g->form = FV_GATHERED_LINE;
}

/* What a sample would have made has no key: the expression tells such apart. */
static void identify(builder *b, fv_gathered *g, const fv_expr *expr) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    bool keyless = !b->handed && g->parts[0].made;
    fv__hasher_int(&hasher, keyless ? expr->id : -1);
    fv__hasher_int(&hasher, keyless ? b->combination : -1);
    fv__hasher_int(&hasher, g->form);
    fv__hasher_int(&hasher, g->count);
    for (int64_t i = 0; i < g->count; i++) {
        const fv_gathered_part *part = &g->parts[i];
        fv_file_id              id = { 0 };
        if (part->made) {
            fv__hasher_add(&hasher, &part->made->key, sizeof part->made->key);
            fv__hasher_int(&hasher, part->made->scalar.integer);
        } else {
            fv__file_identify(part->path, &id, NULL); /* one that vanished is reported when it is opened */
            fv__hasher_int(&hasher, id.size);
            fv__hasher_int(&hasher, id.mtime_ns);
        }
        if (!part->made || g->tags) fv__hasher_text(&hasher, part->path);
        if (g->tags) fv__hasher_text(&hasher, g->items->names[i]);
    }
    g->identity = fv__hasher_finish(&hasher);
}

static fv_gathered *new_gathered(builder *b, int64_t count) {
    fv_gathered *g = fv__arena_alloc(&b->graph->arena, sizeof *g);
    g->handed = b->handed;
    g->count = count;
    g->parts = fv__arena_alloc(&b->graph->arena, (size_t)(count + 1) * sizeof *g->parts);
    return g;
}

static value finish_gathered(builder *b, fv_gathered *g, const fv_expr *expr) {
    fv_error error = { 0 };
    fv_node *node;
    identify(b, g, expr);
    if (fv__graph_gathered(b->graph, g, true, expr->span, &node, &error) != FV_OK)
        return fv__mistake(b, expr->span, error.code, NULL, "%s", error.message);
    return node_value(node);
}

static value gather_images(builder *b, fv_gathered *g, bool any_shape, const fv_expr *expr) {
    fv_error error = { 0 };
    bool     line;
    g->type.kind = FV_KIND_IMAGE;
    if (check_parts(g, any_shape, &line, &error) != FV_OK || (!line && stack_type(g, any_shape, &error) != FV_OK))
        return fv__mistake(b, expr->span, error.code, NULL, "%s", error.message);
    if (line) line_type(g);
    return finish_gathered(b, g, expr);
}

/* The files of a collection as they are. Of a sample those that were not looked at, or cannot be read, are like the others. */
static value gather_files(builder *b, const fv_item_list *list, bool any_shape, const fv_expr *expr) {
    fv_gathered         *g = new_gathered(b, list->count);
    const fv_image_type *first = NULL, *last = NULL;
    fv_error             error = { 0 };
    for (int64_t i = 0; i < list->count; i++) {
        fv_reader *reader;
        g->parts[i] = (fv_gathered_part){ .path = list->paths[i] };
        if (!b->handed && i >= HEADERS) continue;
        if (fv__reader_acquire(list->paths[i], &(fv_read_options){ 0 }, &reader, &error) != FV_OK) {
            if (!b->handed) continue;
            return lost(b, fv__sprintf("what needs every item was not made, because a file cannot be read: %s", error.message));
        }
        if (!last || memcmp(&reader->type, last, sizeof *last)) {
            fv_image_type *type = fv__arena_alloc(&b->graph->arena, sizeof *type);
            *type = reader->type;
            last = type;
        }
        g->parts[i].type = last;
        for (int d = 0; !first && d < reader->type.ndim; d++)
            g->layout.chunk[d] = reader->sequential ? reader->type.shape[d] : reader->chunk[d];
        if (!first) first = last;
        g->layout.read_memory = FV_MAX(g->layout.read_memory, reader->read_memory);
        fv__reader_release(reader);
    }
    if (!first) return lost(b, fv__sprintf("what needs every item was not made, because no file can be read: %s", error.message));
    for (int64_t i = 0; i < list->count; i++)
        if (!g->parts[i].type) g->parts[i].type = first;
    return gather_images(b, g, any_shape, expr);
}

/* ---------------------------------------------------------------- tables of all items */

static fv_status join_columns(const fv_gathered *g, fv_table_type *type, fv_error *error) {
    const fv_table_type *first = g->parts[0].made->form->table;
    int                  tags = g->tags ? FV_TAGS : 0;
    *type = *first;
    if (tags) FV_TRY(fv__table_tagged(first, type, error));
    for (int64_t i = 1; i < g->count; i++) {
        const fv_table_type *own = g->parts[i].made->form->table;
        bool                 alike = own->ncolumns == first->ncolumns;
        for (int c = 0; alike && c < own->ncolumns; c++) {
            alike = !strcmp(own->column[c].name, first->column[c].name) &&
                    (own->column[c].kind == FV_COLUMN_TEXT) == (first->column[c].kind == FV_COLUMN_TEXT);
            if (alike && own->column[c].kind != type->column[tags + c].kind) type->column[tags + c].kind = FV_COLUMN_REAL;
        }
        if (!alike)
            return fv_fail(error, FV_ERROR_INPUT, "%s: its table has other columns than that of %s (another number of axes?)",
                           g->parts[i].path, g->parts[0].path);
    }
    return FV_OK;
}

/* Names of those items whose tables are gathered. */
static const fv_item_names *names_of_chosen(builder *b, const fv_item_list *list, const int64_t *items, int64_t count) {
    bool all = count == list->count;
    for (int64_t i = 0; i < count; i++) all = all && items[i] == i;
    if (all) return &list->items;
    fv_item_names *some = fv__arena_alloc(&b->graph->arena, sizeof *some);
    const char   **names = fv__arena_alloc(&b->graph->arena, 2 * (size_t)count * sizeof *names);
    for (int64_t i = 0; i < count; i++) {
        names[i] = list->items.names[items[i]];
        names[count + i] = list->items.paths[items[i]];
    }
    *some = (fv_item_names){ count, names, names + count, true };
    return some;
}

/* Of a sample: those items that have made something, in their order. */
static int64_t keep_made(builder *b, const fv_expr *expr, int64_t first, int64_t *items, int64_t count) {
    int64_t   kept = 0;
    fv_export made;
    for (int64_t i = 0; i < count; i++)
        if (b->handed->find(b->handed, expr->id, b->combination, first + items[i], NULL, &b->graph->arena, &made))
            items[kept++] = items[i];
    return kept;
}

static value gather_tables(builder *b, fv_gathered *g, const fv_item_names *items, const fv_expr *expr) {
    fv_table_type *type = fv__arena_alloc(&b->graph->arena, sizeof *type);
    fv_error       error = { 0 };
    g->items = items;
    g->tags = g->parts[0].made->form->collection == FV_RUN;
    if (join_columns(g, type, &error) != FV_OK) return fv__mistake(b, expr->span, error.code, NULL, "%s", error.message);
    g->type = (fv_type){ .kind = FV_KIND_TABLE, .table = type, .items = g->items };
    return finish_gathered(b, g, expr);
}

APART value fv__gather(builder *b, const fv_expr *expr, bool any_shape) {
    static const fv_image_type voxel = { .dtype = FV_FLOAT64 }; /* that a scalar becomes */
    const fv_expr             *meant = fv__meant(b->program, expr);
    const fv_level            *level = level_of(b, meant);
    const fv_item_list        *list = &b->bindings->lists[level->collection];
    value                      v;
    if (!level->exported) {
        const char *text = fv__collection_named(b->bindings, b->program, meant->args[0].value, &b->graph->arena);
        for (int l = 0; l < b->bindings->nlists; l++)
            if (text && !strcmp(b->bindings->lists[l].pattern, text)) list = &b->bindings->lists[l];
        return gather_files(b, list, any_shape, expr);
    }
    int64_t *items = fv__arena_alloc(&b->graph->arena, (size_t)(list->count + 1) * sizeof *items);
    int64_t  count = fv__items_chosen(b, meant, list->count, items);
    int64_t  first = fv__bindings_number(b->bindings, level->collection, level->depth, 0);
    bool     sample = b->handed && level->table && !level->depth && !b->bindings->nchoosers &&
                  (b->handed->partial || b->bindings->of_items.confidence > 0);
    if (sample) count = keep_made(b, meant, first, items, count);
    if (!count)
        return lost(b, fv__sprintf("what is made of all items was not made, because none of the %lld items was kept",
                                   (long long)list->count));
    fv_gathered *g = new_gathered(b, count);
    fv_export   *all = fv__arena_alloc(&b->graph->arena, (size_t)(count + 1) * sizeof *all);
    if (!find_all(b, meant, first, items, count, all, &v)) return v;
    for (int64_t i = 0; i < count; i++) {
        const fv_export_form *form = all[i].form;
        g->parts[i] = (fv_gathered_part){ .made = &all[i],
                                          .path = list->paths[items[i]],
                                          .type = form->kind == FV_KIND_SCALAR ? &voxel : &form->image };
    }
    if (sample) g->of = &list->items, g->numbers = items;
    if (all[0].form->kind == FV_KIND_TABLE) return gather_tables(b, g, names_of_chosen(b, list, items, count), expr);
    memcpy(g->layout.chunk, all[0].form->lattice.chunk, sizeof all[0].form->lattice.chunk);
    return gather_images(b, g, any_shape, expr);
}

/* ---------------------------------------------------------------- what one other unit has made */

/* A table of all items is that item's beside a value of one. */
static value rows_of_item(builder *b, fv_node *table, fv_span span) {
    const fv_op *op = fv__op_of_role(FV_OP_SELECT);
    const char  *path = b->bindings->lists[b->unit.collection].paths[b->unit.item];
    char         quote = strchr(path, '\'') ? '"' : '\'';
    bool         named = false;
    for (int c = 0; c < table->type.table->ncolumns; c++) named = named || !strcmp(table->type.table->column[c].name, "path");
    if (!named) return node_value(table);
    void      *params = fv__arena_alloc(&b->graph->arena, op->params_size);
    fv_error   error = { 0 };
    fv_node   *node;
    fv_literal text = { .kind = FV_LITERAL_TEXT,
                        .text = fv__arena_printf(&b->graph->arena, "path == %c%s%c", quote, path, quote) };
    fv__params_default(op, params);
    if (fv__params_set(op, fv__params_find(op, "condition"), params, &text, &b->graph->arena, &error) != FV_OK ||
        fv__graph_call(b->graph, op, params, &table, span, &node, &error) != FV_OK)
        return fv__from_error(b, span, op, &error);
    return node_value(node);
}

static value import(builder *b, const fv_expr *expr, int64_t unit) {
    fv_export *made = fv__arena_alloc(&b->graph->arena, sizeof *made);
    bool       own = level_of(b, expr)->collection != FV_RUN, found;
    if (b->handed)
        found = b->handed->find(b->handed, expr->id, b->combination, unit, NULL, &b->graph->arena, made);
    else
        found = fv__sample(b, expr, unit, made);
    if (!found) return (value){ .kind = LOST, .why = fv__lost_with_run };
    const fv_export_form *form = made->form;
    if (form->kind == FV_KIND_SCALAR && !b->handed)
        return node_value(
            fv__graph_later(b->graph, made->scalar.dtype, expr->text ? expr->text : "value", expr->id, b->combination));
    if (form->kind == FV_KIND_SCALAR) return node_value(fv__graph_constant(b->graph, &made->scalar));
    fv_gathered *g = new_gathered(b, 1);
    g->parts[0] = (fv_gathered_part){ .made = made, .path = "", .type = &form->image };
    g->type = (fv_type){ .kind = form->kind, .image = form->image, .table = form->table };
    if (form->collection != FV_RUN) g->type.items = &b->bindings->lists[form->collection].items;
    memcpy(g->layout.chunk, form->lattice.chunk, sizeof form->lattice.chunk);
    value v = finish_gathered(b, g, expr);
    if (v.kind == NODE) v.node->of_unit = own;
    if (v.kind == NODE && form->kind == FV_KIND_TABLE && !own && form->collection == b->unit.collection)
        return rows_of_item(b, v.node, expr->span);
    return v;
}

bool fv__elsewhere(builder *b, const fv_expr *expr, value *v) {
    const fv_level *level = level_of(b, expr);
    *v = (value){ .kind = ELSEWHERE };
    if (expr->kind == FV_EXPR_NAME) return false;
    if (level->depth > b->unit.depth) return true;
    if (b->unit.collection == FV_RUN) return level->collection != FV_RUN;
    if (level->collection != FV_RUN && level->collection != b->unit.collection) return true;
    if (level->depth == b->unit.depth || (level->collection == FV_RUN && !level->depth)) return false;
    if (level->exported)
        *v = import(
            b, expr,
            fv__bindings_number(b->bindings, level->collection, level->depth, level->collection == FV_RUN ? 0 : b->unit.item));
    return level->exported || level->collection == FV_RUN;
}

APART value fv__tag(builder *b, fv_node *table, fv_span span) {
    fv_error error = { 0 };
    fv_node *node;
    if (table->type.items) return node_value(table);
    const fv_item_names *all = &b->bindings->lists[b->unit.collection].items;
    fv_item_names       *one = fv__arena_alloc(&b->graph->arena, sizeof *one);
    *one = (fv_item_names){ 1, all->names + b->unit.item, all->paths + b->unit.item, true };
    if (fv__graph_tag(b->graph, table, one, span, &node, &error) != FV_OK)
        return fv__mistake(b, span, error.code, NULL, "%s", error.message);
    return node_value(node);
}
