/* What units hand to those of later segments: a record in the store says under which keys its values lie.
 *
 * A record is put when its unit is done, and again whenever the unit is found done, so that it never has to be kept. Its key
 * follows from the run, the expression and the unit: whoever works on the same run finds it. */
#include "exec/exports.h"
#include "base/take.h"
#include <stdlib.h>

typedef struct record { /* followed by the columns of a table */
    fv_export_form form;
    fv_hash        key;
    int64_t        pieces, ncolumns;
    fv_scalar      scalar;
} record;

static fv_hash record_key(const fv_bindings *bindings, int expr, int combination, int64_t unit) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, "export 1");
    fv__hasher_add(&hasher, &bindings->run, sizeof bindings->run);
    fv__hasher_int(&hasher, expr);
    fv__hasher_int(&hasher, combination);
    fv__hasher_int(&hasher, unit);
    return fv__hasher_finish(&hasher);
}

/* ---------------------------------------------------------------- putting */

/* Whose items a table's rows name. */
static int collection_of(const fv_instance *instance, const fv_type *type) {
    const fv_bindings *bindings = instance->context->bindings;
    int                own = fv__bindings_unit(bindings, instance->item).collection;
    int                list = own == FV_RUN ? fv__bindings_list(bindings, type->items) : own;
    return type->items ? list : FV_RUN;
}

static fv_status put_record(fv_instance *instance, const fv_sink *sink, fv_error *error) {
    const fv_node       *node = sink->value;
    const fv_table_type *table = node->type.kind == FV_KIND_TABLE ? node->type.table : NULL;
    size_t               size = sizeof(record) + (table ? (size_t)table->ncolumns * sizeof *table->column : 0);
    record               r; /* all of its bytes are compared */
    memset(&r, 0, sizeof r);
    r.form.kind = node->type.kind;
    r.form.collection = FV_RUN;
    r.key = node->key;
    if (table) {
        const fv_plan *plan = instance->plan;
        r.ncolumns = table->ncolumns;
        r.form.pass = fv__op_last_finish(node->op);
        r.form.lattice = plan->stages[plan->pass_stage[node->id][r.form.pass]].lattice;
        r.form.collection = collection_of(instance, &node->type);
        FV_TRY(fv__instance_table(instance, node, &r.pieces, error));
    } else if (node->type.kind == FV_KIND_IMAGE) {
        r.form.image = node->type.image;
        r.form.lattice = instance->plan->stages[instance->plan->store_stage[node->id]].lattice;
    } else {
        r.form.dtype = node->type.dtype;
        FV_TRY(fv__instance_scalar(instance, node, &r.scalar, error));
    }
    char *buffer;
    FV_TRY(FV_TAKE_BUFFER(buffer, size, error));
    memcpy(buffer, &r, sizeof r);
    if (table) memcpy(buffer + sizeof r, table->column, size - sizeof r);
    fv_hash key = record_key(instance->context->bindings, sink->expr, sink->combination, instance->item);
    return fv__store_put(instance->context->store, key, buffer, size, 0, true, error);
}

fv_status fv__exports_put(fv_instance *instance, fv_error *error) {
    for (int k = 0; k < instance->graph->nsinks; k++)
        if (instance->graph->sinks[k].kind == FV_SINK_EXPORT) FV_TRY(put_record(instance, &instance->graph->sinks[k], error));
    return FV_OK;
}

/* ---------------------------------------------------------------- finding */

/* The form of a record, shared with another that is the same. */
static const fv_export_form *form_of(const record *r, const fv_column *columns, const fv_export_form *like, fv_arena *arena) {
    fv_export_form known;
    if (like) known = *like;
    if (like) known.table = NULL;
    bool same = like && !memcmp(&known, &r->form, sizeof known);
    if (same && like->table)
        same =
            like->table->ncolumns == r->ncolumns && !memcmp(like->table->column, columns, (size_t)r->ncolumns * sizeof *columns);
    if (same) return like;
    fv_export_form *form = fv__arena_alloc(arena, sizeof *form);
    memcpy(form, &r->form, sizeof *form);
    if (form->kind != FV_KIND_TABLE) return form;
    fv_table_type *table = fv__arena_alloc(arena, sizeof *table);
    table->ncolumns = (int)r->ncolumns;
    memcpy(table->column, columns, (size_t)r->ncolumns * sizeof *columns);
    form->table = table;
    return form;
}

static bool find(const fv_handed *handed, int expr, int combination, int64_t unit, const fv_export_form *like, fv_arena *arena,
                 fv_export *out) {
    const fv_exports *e = (const fv_exports *)handed;
    fv_hash           key = record_key(e->bindings, expr, combination, unit);
    fv_blob           blob;
    record            r = { 0 };
    if (!fv__store_has(e->store, key) || fv__store_get(e->store, key, &blob, NULL) != FV_OK) return false;
    bool good = blob.size >= sizeof r;
    if (good) memcpy(&r, blob.data, sizeof r);
    good =
        good && r.ncolumns >= 0 && r.ncolumns <= FV_MAX_COLUMNS && blob.size == sizeof r + (size_t)r.ncolumns * sizeof(fv_column);
    if (good) {
        const fv_column *columns = (const void *)((const char *)blob.data + sizeof r);
        *out = (fv_export){ form_of(&r, columns, like, arena), r.key, r.pieces, r.scalar };
    }
    fv__store_unpin(e->store, &blob);
    return good;
}

static fv_status fetch(const fv_handed *handed, const fv_export *image, const fv_block *block, fv_error *error) {
    const fv_node node = { .key = image->key };
    return fv__store_fetch(((const fv_exports *)handed)->store, &node, &image->form->lattice, block, error);
}

static fv_status piece(const fv_handed *handed, const fv_export *table, int64_t index, fv_bytes *out, fv_error *error) {
    fv_store     *store = ((const fv_exports *)handed)->store;
    const fv_node node = { .key = table->key };
    fv_hash       key = fv__key_result(&node, table->form->pass, &table->form->lattice, index);
    fv_blob       blob;
    if (!fv__store_has(store, key)) return FV_OK; /* an empty one */
    FV_TRY(fv__store_get(store, key, &blob, error));
    fv__bytes_append(out, blob.data, blob.size);
    fv__store_unpin(store, &blob);
    return FV_OK;
}

void fv__exports_init(fv_exports *exports, const fv_bindings *bindings, fv_store *store) {
    *exports = (fv_exports){ .base = { .find = find, .fetch = fetch, .piece = piece }, .bindings = bindings, .store = store };
}
