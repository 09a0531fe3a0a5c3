/* What a variable of a pipeline is, known from the text and the headers of files alone. */
#include "api/pipeline_parts.h"

static bool find_value(const fv_graph *graph, const char *name, fv_value_type *type) {
    for (int k = 0; k < graph->nsinks; k++) {
        const fv_sink *sink = &graph->sinks[k];
        const fv_type *t = &sink->value->type;
        if (sink->kind != FV_SINK_KEEP || strcmp(sink->name, name)) continue;
        *type = (fv_value_type){ .kind = t->kind == FV_KIND_IMAGE   ? FV_VALUE_IMAGE
                                         : t->kind == FV_KIND_TABLE ? FV_VALUE_TABLE
                                                                    : FV_VALUE_SCALAR,
                                 .dtype = t->kind == FV_KIND_IMAGE ? t->image.dtype : t->dtype,
                                 .image = t->image };
        if (t->kind == FV_KIND_TABLE) {
            type->table = *t->table;
            type->table.metadata = NULL;
        }
        return true;
    }
    return false;
}

fv_status fv_pipeline_type(fv_pipeline *p, const char *name, fv_value_type *type, fv_error *error) {
    fv_diagnostics diagnostics = { 0 };
    fv_bindings    bindings;
    bool           found = false;
    *type = (fv_value_type){ 0 };
    FV_TRY(fv_pipeline_keep(p, name, error));
    fv_status status = fv__pipeline_resolve(p, NULL, &bindings, &diagnostics, error);
    for (int s = 0; status == FV_OK && s < bindings.nsegments && !found; s++) {
        fv_graph *graph = NULL;
        status = fv__graph_build(p->program, &bindings, bindings.segments[s].first, NULL, &graph, &diagnostics, error);
        if (status == FV_OK) found = find_value(graph, name, type);
        if (found) type->items = bindings.segments[s].collection == FV_RUN ? 0 : bindings.segments[s].count;
        fv__graph_free(graph);
    }
    p->bindings.nkeeps--;
    if (status == FV_OK && !found) status = fv_fail(error, FV_ERROR_USAGE, "there is no value called %s", name);
    fv__bindings_release(&bindings);
    return fv__pipeline_report(p, &diagnostics, status);
}
