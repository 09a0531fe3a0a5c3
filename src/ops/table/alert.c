/* alert: the rows of a table that somebody has to know of. */
#include "ops/table/selected_rows.h"
#include <cjson/cJSON.h>

typedef struct {
    const char *condition;
} alert;

static const fv_param params[] = {
    FV_PARAM(alert, condition, .many = true,
             .doc = "condition on a row that calls for attention, such as \"mean < 10\", as in filter"),
    FV_PARAM_END,
};
static const fv_input inputs[] = { { "table", FV_KIND_TABLE, .doc = "table to look at" }, FV_INPUT_END };

/* The rule goes with the table, in its metadata: who shows its rows knows that they are alerts. */
static const char *describe(const char *rule, fv_arena *arena) {
    cJSON *metadata = cJSON_CreateObject();
    cJSON_AddStringToObject(metadata, "fovea.alert", rule);
    char       *text = cJSON_PrintUnformatted(metadata);
    const char *kept = fv__arena_strdup(arena, text);
    cJSON_free(text);
    cJSON_Delete(metadata);
    return kept;
}

static fv_status infer(fv_infer *i, fv_error *error) {
    const char    *rule = ((alert *)i->params)->condition;
    fv_condition   condition;
    fv_table_type *type = fv__arena_alloc(i->arena, sizeof *type);
    FV_TRY(fv__condition_parse(&condition, "condition", rule, i->in[0]->table, error));
    *type = *i->in[0]->table;
    type->metadata = describe(rule, i->arena);
    i->out->table = type;
    return FV_OK;
}

static fv_status finish(fv_finish *f, fv_error *error) {
    return fv__selected_rows(f, ((const alert *)f->params)->condition, error);
}

static const fv_pass passes[] = { { .name = "rows", .run = fv__run_nothing, .finish = finish }, FV_PASS_END };

static const fv_column_doc columns[] = {
    { "<columns of table>", .doc = "unchanged" },
    FV_COLUMN_DOC_END,
};

const fv_op FV_OP(alert) = {
    .name = "alert",
    .family = "table",
    .brief = "tell the rows of a table that call for attention",
    .version = 1,
    .inputs = inputs,
    .params = params,
    .params_size = sizeof(alert),
    .result = FV_KIND_TABLE,
    .infer = infer,
    .passes = passes,
    .rows = true,
    .doc = "On a line of its own it tells every row that satisfies the condition, and nothing if there is none. fovea run "
           "prints such rows. fovea stream tells each as soon as it is durable: on standard error, as an event of --json, as a "
           "message to --to, and to the command of --on-alert. It is a table like that of filter, and can be written as well.",
    .example = "cells = label(phantom(\"cells\", [200, 200]) > 60)\n"
               "alert(measure(cells), \"voxels > 700\")",
    .see = "filter measure",
    .columns = columns,
};
