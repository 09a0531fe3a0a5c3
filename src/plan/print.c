/* Plans and graphs as text, JSON and DOT. */
#include "plan/print.h"
#include "graph/approximate.h"
#include "graph/gathered.h"
#include <cjson/cJSON.h>
#include <fovea/text.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- pieces of text */

static void shape_text(const int64_t *shape, int ndim, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int d = 0; d < ndim && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", d ? "x" : "", (long long)shape[d]);
}

static void target_text(const fv_target *target, char *text, size_t size) {
    switch (target->kind) {
    case FV_TARGET_STORE: snprintf(text, size, "store %s", fv__node_label(target->node)); break;
    case FV_TARGET_SINK: snprintf(text, size, "write %s", target->file->sink->file); break;
    case FV_TARGET_PASS: {
        const char *pass = target->node->op->passes[target->pass].name;
        snprintf(text, size, "%s%s%s", fv__node_label(target->node), pass ? ": " : "", pass ? pass : "");
        break;
    }
    }
}

void fv__stage_title(const fv_stage *stage, fv_bytes *out) {
    char name[256];
    int  operators = 0;
    for (int s = 0; s < stage->nsteps; s++)
        if (stage->steps[s].kind != FV_STEP_STORED)
            fv__bytes_printf(out, "%s%s", operators++ ? ", " : "", stage->steps[s].node->op->name);
    for (int t = 0; t < stage->ntargets; t++) {
        target_text(&stage->targets[t], name, sizeof name);
        fv__bytes_printf(out, "%s%s", t ? ", " : operators ? "; " : "", name);
    }
}

/* Largest number of voxels that a chunk needs before and behind itself on each axis, over all steps. */
static void halo_of(const fv_plan *plan, const fv_stage *stage, int64_t *halo) {
    int64_t index, position[FV_MAX_DIMS], task = 0;
    memset(halo, 0, sizeof *halo * FV_MAX_DIMS);
    if (!stage->ntasks) return; /* nothing of its image is needed */
    fv_region *regions = fv__alloc((size_t)(stage->nsteps + 1) * sizeof *regions);
    for (int d = 0; d < stage->lattice.ndim; d++) {
        position[d] = stage->count[d] / 2;
        task = task * stage->count[d] + position[d];
    }
    fv_region chunk = fv__stage_chunk(stage, task, &index);
    fv__stage_regions(plan, stage, &chunk, regions);
    for (int s = 0; s < stage->nsteps; s++) {
        if (regions[s].ndim != chunk.ndim) continue;
        const fv_image_type *type = &stage->steps[s].node->type.image;
        for (int d = 0; d < chunk.ndim; d++) {
            if (type->shape[d] != stage->lattice.shape[d]) continue;
            int64_t before = chunk.start[d] - regions[s].start[d],
                    after = regions[s].start[d] + regions[s].size[d] - chunk.start[d] - chunk.size[d];
            halo[d] = FV_MAX(halo[d], FV_MAX(before, after));
        }
    }
    free(regions);
}

/* Whether a sink is the first one that writes into this table. Tables and lone numbers are no targets of a stage. */
static bool begins_table(const fv_graph *graph, int k) {
    const fv_sink *sink = &graph->sinks[k], *before = graph->sinks;
    if (sink->kind != FV_SINK_FILE || sink->value->type.kind == FV_KIND_IMAGE) return false;
    for (; before < sink; before++)
        if (before->kind == FV_SINK_FILE && !strcmp(before->file, sink->file) && !strcmp(before->table, sink->table))
            return false;
    return true;
}

/* ---------------------------------------------------------------- text */

/* How many tasks an estimate to 1 % takes if chunks differ from each other by 10 %, which is a guess: nothing is read for a plan.
 */
static int64_t tasks_to_one_percent(const fv_stage *stage) {
    const double differ = 0.1, error = 0.01, sure = 1.96;
    double       many = sure * differ / error * (sure * differ / error), all = (double)stage->ntasks;
    return (int64_t)ceil(many / (1 + many / all));
}

/* The rows of items that a stage summarises; NULL: it does not. */
static const fv_gathered *items_of(const fv_stage *stage) {
    const fv_node *node = stage->targets[0].kind == FV_TARGET_PASS ? stage->targets[0].node : NULL;
    return node && node->ninputs && node->in[0] ? fv__gathered_of(node->in[0]) : NULL;
}

/* What of its values could be, or is, known from a part of the tasks; empty: nothing. */
static void sampling_text(const fv_stage *stage, int workers, fv_bytes *out) {
    const fv_gathered *items = items_of(stage);
    const int64_t      all = items ? items->count : stage->ntasks, least = fv__sampling_next(0, all);
    const char        *units = items ? "items" : "tasks";
    const fv_sampling *asked = stage->targets[0].kind == FV_TARGET_PASS ? stage->targets[0].node->sampling : NULL;
    int                found = 0;
    if (asked && asked->time)
        fv__bytes_printf(out, "%staken at random for %g s%s, %g %% sure", items ? "items " : "", asked->time,
                         asked->whole ? " of the run" : "", 100 * asked->confidence);
    else if (asked)
        fv__bytes_printf(out, "%staken at random until %s%g%s to each side, %g %% sure; from %lld %s on", items ? "items " : "",
                         asked->absolute ? "" : "within ", asked->absolute ? asked->absolute : 100 * asked->error,
                         asked->absolute ? "" : " %", 100 * asked->confidence, (long long)least, units);
    if (items && !asked && least < all && fv__can_approximate(stage->targets[0].node))
        fv__bytes_printf(out, "%s can be estimated with approx or --within, from at least %lld of %lld items",
                         fv__node_label(stage->targets[0].node), (long long)least, (long long)all);
    for (int t = 0; t < stage->ntargets && !asked && !stage->serial && least < stage->ntasks; t++) {
        const fv_target *target = &stage->targets[t];
        if (target->kind != FV_TARGET_PASS || target->pass || !fv__can_approximate(target->node)) continue;
        const fv_estimator *estimator = fv__op_estimator(target->node->op);
        fv__bytes_printf(out, "%s%s (%s%s)", found++ ? ", " : "", fv__node_label(target->node),
                         estimator->method ? estimator->method : "bootstrap-t",
                         estimator->control ? ", or control variate where the file has a pyramid" : "");
    }
    double each = stage->work * 1e-9 / (double)stage->ntasks / FV_MAX(workers, 1);
    if (found)
        fv__bytes_printf(
            out,
            " can be estimated with approx or --within: at least %lld tasks; to 1 %% about %lld, if chunks differ by "
            "10 %%, about %.2g s on %d worker%s",
            (long long)least, (long long)tasks_to_one_percent(stage), each * (double)tasks_to_one_percent(stage), workers,
            workers == 1 ? "" : "s");
}

static void stage_text(const fv_plan *plan, const fv_stage *stage, int workers, fv_bytes *out) {
    char    chunk[96], halo[96], memory[24], name[256];
    int64_t voxels[FV_MAX_DIMS];
    bool    any = false;
    halo_of(plan, stage, voxels);
    for (int d = 0; d < stage->lattice.ndim; d++) any = any || voxels[d];
    shape_text(stage->lattice.chunk, stage->lattice.ndim, chunk, sizeof chunk);
    shape_text(voxels, stage->lattice.ndim, halo, sizeof halo);
    fv_size_format(stage->memory, memory);
    fv__bytes_printf(out, "stage %d: ", stage->index + 1);
    for (int t = 0; t < stage->ntargets; t++) {
        target_text(&stage->targets[t], name, sizeof name);
        fv__bytes_printf(out, "%s%s", t ? ", " : "", name);
    }
    if (stage->nsteps) fv__bytes_printf(out, "\n    ");
    bool first = true;
    for (int s = 0; s < stage->nsteps; s++) {
        const fv_step *step = &stage->steps[s];
        if (step->kind == FV_STEP_STORED)
            fv__bytes_printf(out, "%s[%s]", first ? "" : ", ", fv__node_label(step->node));
        else
            fv__bytes_printf(out, "%s%s", first ? "" : ", ", step->node->op->name);
        first = false;
    }
    fv__bytes_printf(out, "\n    %lld task%s of %s", (long long)(stage->serial ? 1 : stage->ntasks),
                     !stage->serial && stage->ntasks != 1 ? "s" : "", chunk);
    if (stage->serial) fv__bytes_printf(out, " slabs, in order");
    if (any) fv__bytes_printf(out, ", halo %s (%.2fx work)", halo, stage->expansion);
    fv__bytes_printf(out, ", %s each", memory);
    if (stage->nneeds) {
        fv__bytes_printf(out, ", after stage ");
        for (int i = 0; i < stage->nneeds; i++) fv__bytes_printf(out, "%s%d", i ? ", " : "", stage->needs[i] + 1);
    }
    fv_bytes sampling = { 0 };
    sampling_text(stage, workers, &sampling);
    fv__bytes_printf(out, sampling.size ? "\n    %s\n" : "\n", (char *)sampling.data);
    fv__bytes_release(&sampling);
}

static void tables_text(const fv_plan *plan, const fv_plan_facts *facts, fv_bytes *out) {
    for (int k = 0; k < plan->graph->nsinks; k++) {
        const fv_sink *sink = &plan->graph->sinks[k];
        if (!begins_table(plan->graph, k)) continue;
        fv__bytes_printf(out, "write table %s%s%s%s\n", sink->table, *sink->table ? " of " : "", sink->file,
                         facts->items > 1 ? ", with the rows of all items" : "");
    }
}

void fv__plan_text(const fv_plan *plan, const fv_plan_facts *facts, fv_bytes *out) {
    char read[24], written[24], peak[24], bound[24];
    if (facts->part.count > 1) fv__bytes_printf(out, "%s%s:\n", facts->part.index ? "\n" : "", facts->part.title);
    for (int s = 0; s < plan->nstages; s++) stage_text(plan, &plan->stages[s], facts->workers, out);
    tables_text(plan, facts, out);
    fv_size_format(plan->bytes_read, read);
    fv_size_format(plan->bytes_written, written);
    fv_size_format(facts->peak, peak);
    fv_size_format(facts->memory, bound);
    if (facts->items > 1) fv__bytes_printf(out, "%lld items; the figures are for one of them\n", (long long)facts->items);
    fv__bytes_printf(out, "reads %s, writes %s (before compression)\n", read, written);
    long long least = (long long)((facts->least + (1 << 20) - 1) >> 20);
    if (facts->least > facts->memory)
        fv__bytes_printf(out, "memory: %s is too little, and the run would be refused; it needs at least --memory %lldM%s\n",
                         bound, least, facts->can_shrink ? ", or smaller tasks (--chunk 64)" : "");
    else
        fv__bytes_printf(out, "memory: at most %s with %d worker%s (bound %s); at least --memory %lldM\n", peak, facts->workers,
                         facts->workers == 1 ? "" : "s", bound, least);
    fv__bytes_printf(out, "work: about %.3g core-seconds%s\n", plan->work * 1e-9 * (double)FV_MAX(facts->items, 1),
                     facts->items > 1 ? " for all items" : "");
}

/* ---------------------------------------------------------------- JSON */

static cJSON *numbers(const int64_t *values, int count) {
    cJSON *array = cJSON_CreateArray();
    for (int i = 0; i < count; i++) cJSON_AddItemToArray(array, cJSON_CreateNumber((double)values[i]));
    return array;
}

static cJSON *stage_json(const fv_plan *plan, const fv_stage *stage, int workers) {
    cJSON *object = cJSON_CreateObject(), *targets = cJSON_CreateArray(), *steps = cJSON_CreateArray(),
          *needs = cJSON_CreateArray();
    int64_t halo[FV_MAX_DIMS];
    char    name[256];
    halo_of(plan, stage, halo);
    for (int t = 0; t < stage->ntargets; t++) {
        target_text(&stage->targets[t], name, sizeof name);
        cJSON_AddItemToArray(targets, cJSON_CreateString(name));
    }
    for (int s = 0; s < stage->nsteps; s++) {
        cJSON *step = cJSON_CreateObject();
        cJSON_AddStringToObject(step, "operator", stage->steps[s].node->op->name);
        cJSON_AddStringToObject(step, "name", fv__node_label(stage->steps[s].node));
        cJSON_AddBoolToObject(step, "stored", stage->steps[s].kind == FV_STEP_STORED);
        cJSON_AddItemToArray(steps, step);
    }
    for (int i = 0; i < stage->nneeds; i++) cJSON_AddItemToArray(needs, cJSON_CreateNumber(stage->needs[i]));
    cJSON_AddItemToObject(object, "targets", targets);
    cJSON_AddItemToObject(object, "steps", steps);
    cJSON_AddItemToObject(object, "needs", needs);
    cJSON_AddNumberToObject(object, "tasks", stage->serial ? 1 : (double)stage->ntasks);
    cJSON_AddItemToObject(object, "shape", numbers(stage->lattice.shape, stage->lattice.ndim));
    cJSON_AddItemToObject(object, "chunk", numbers(stage->lattice.chunk, stage->lattice.ndim));
    cJSON_AddItemToObject(object, "halo", numbers(halo, stage->lattice.ndim));
    fv_bytes sampling = { 0 };
    sampling_text(stage, workers, &sampling);
    if (sampling.size) cJSON_AddStringToObject(object, "sampling", (char *)sampling.data);
    fv__bytes_release(&sampling);
    cJSON_AddNumberToObject(object, "task_memory", (double)stage->memory);
    cJSON_AddNumberToObject(object, "work_seconds", stage->work * 1e-9);
    return object;
}

static cJSON *tables_json(const fv_graph *graph) {
    cJSON *tables = cJSON_CreateArray();
    for (int k = 0; k < graph->nsinks; k++) {
        if (!begins_table(graph, k)) continue;
        cJSON *table = cJSON_CreateObject();
        cJSON_AddStringToObject(table, "file", graph->sinks[k].file);
        cJSON_AddStringToObject(table, "table", graph->sinks[k].table);
        cJSON_AddItemToArray(tables, table);
    }
    return tables;
}

void fv__plan_json(const fv_plan *plan, const fv_plan_facts *facts, fv_bytes *out) {
    cJSON *root = cJSON_CreateObject();
    if (facts->part.count > 1) cJSON_AddStringToObject(root, "what", facts->part.title);
    cJSON *stages = cJSON_AddArrayToObject(root, "stages");
    for (int s = 0; s < plan->nstages; s++) cJSON_AddItemToArray(stages, stage_json(plan, &plan->stages[s], facts->workers));
    cJSON_AddItemToObject(root, "tables", tables_json(plan->graph));
    cJSON_AddNumberToObject(root, "items", (double)facts->items);
    cJSON_AddNumberToObject(root, "workers", facts->workers);
    cJSON_AddNumberToObject(root, "bytes_read", (double)plan->bytes_read);
    cJSON_AddNumberToObject(root, "bytes_written", (double)plan->bytes_written);
    cJSON_AddNumberToObject(root, "peak_memory", (double)facts->peak);
    cJSON_AddNumberToObject(root, "least_memory", (double)facts->least);
    cJSON_AddNumberToObject(root, "work_seconds", plan->work * 1e-9);
    char *text = cJSON_Print(root);
    if (facts->part.count > 1 && !facts->part.index) fv__bytes_printf(out, "{\"parts\": [\n");
    fv__bytes_printf(out, "%s%s\n", text, facts->part.index + 1 < facts->part.count ? "," : "");
    if (facts->part.count > 1 && facts->part.index + 1 == facts->part.count) fv__bytes_printf(out, "]}\n");
    free(text);
    cJSON_Delete(root);
}

/* ---------------------------------------------------------------- DOT */

static void dot_text(const char *text, fv_bytes *out) {
    for (const char *c = text; *c; c++) fv__bytes_printf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
}

/* Parts are boxes of one drawing, with names of their own for what is in them. */
static void begin_part(const fv_plan_part *part, const char *style, fv_bytes *out) {
    if (!part->index) fv__bytes_printf(out, "digraph fovea {\n  %s\n", style);
    if (part->count < 2) return;
    fv__bytes_printf(out, "  subgraph cluster_p%d { label=\"", part->index);
    dot_text(part->title, out);
    fv__bytes_printf(out, "\";\n");
}

static void end_part(const fv_plan_part *part, fv_bytes *out) {
    if (part->count > 1) fv__bytes_printf(out, "  }\n");
    if (part->index + 1 >= part->count) fv__bytes_printf(out, "}\n");
}

/* What names in a part begin with. */
static const char *mark(const fv_plan_part *part, char text[24]) {
    text[0] = 0;
    if (part->count > 1) snprintf(text, 24, "p%d", part->index);
    return text;
}

static void node_dot(const fv_node *node, bool stored, const char *own, fv_bytes *out) {
    fv_bytes params = { 0 };
    char     shape[96] = "";
    if (node->op) fv__params_format(node->op, node->params, &params);
    fv__bytes_printf(out, "  %sn%d [label=\"", own, node->id);
    if (node->name) fv__bytes_printf(out, "%s = ", node->name);
    if (node->op) {
        fv__bytes_printf(out, "%s(", node->op->name);
        char shown[64];
        fv_text_cut(params.data ? (char *)params.data : "", shown, sizeof shown);
        dot_text(shown, out);
        fv__bytes_printf(out, ")");
    } else if (node->later) {
        dot_text(node->later, out);
        fv__bytes_printf(out, "(...) made before");
    } else
        fv__bytes_printf(out, "%g", fv__scalar_number(&node->value));
    if (node->type.kind == FV_KIND_IMAGE) {
        shape_text(node->type.image.shape, node->type.image.ndim, shape, sizeof shape);
        fv__bytes_printf(out, "\\n%s %s", fv_dtype_name(node->type.image.dtype), shape);
    } else
        fv__bytes_printf(out, "\\n%s", fv__kind_name(node->type.kind));
    fv__bytes_printf(out, "\", shape=%s%s];\n", node->type.kind == FV_KIND_IMAGE ? "box" : "ellipse",
                     stored ? ", style=filled, fillcolor=lightblue" : "");
    fv__bytes_release(&params);
}

void fv__graph_dot(const fv_graph *graph, const fv_plan *plan, const fv_plan_part *part, fv_bytes *out) {
    char        text[24];
    const char *own = mark(part, text);
    begin_part(part, "rankdir=TB; node [fontname=\"sans-serif\", fontsize=11];", out);
    bool *used = fv__calloc((size_t)graph->nnodes);
    for (int k = 0; k < graph->nsinks; k++) used[graph->sinks[k].value->id] = true;
    for (int id = graph->nnodes - 1; id >= 0; id--)
        for (int i = 0; used[id] && i < graph->nodes[id]->ninputs; i++)
            if (graph->nodes[id]->in[i]) used[graph->nodes[id]->in[i]->id] = true;
    for (int id = 0; id < graph->nnodes; id++) {
        const fv_node *node = graph->nodes[id];
        if (!used[id]) continue;
        node_dot(node, plan->stored[id], own, out);
        for (int i = 0; i < node->ninputs; i++)
            if (node->in[i]) fv__bytes_printf(out, "  %sn%d -> %sn%d;\n", own, node->in[i]->id, own, id);
    }
    for (int k = 0; k < graph->nsinks; k++) {
        const fv_sink *sink = &graph->sinks[k];
        fv__bytes_printf(out, "  %ss%d [label=\"", own, k);
        dot_text(sink->kind == FV_SINK_FILE ? sink->file : sink->kind == FV_SINK_PRINT ? "print" : sink->name, out);
        fv__bytes_printf(out, "\", shape=note];\n  %sn%d -> %ss%d;\n", own, sink->value->id, own, k);
    }
    end_part(part, out);
    free(used);
}

enum { MOST_TASKS = 2000 };

/* Edges from the tasks that made what a task fetches. */
static void task_edges(const fv_plan *plan, const fv_stage *stage, int64_t task, const char *own, fv_bytes *out) {
    fv_region *regions = fv__alloc((size_t)(stage->nsteps + 1) * sizeof *regions);
    int64_t    index;
    fv_region  chunk = fv__stage_chunk(stage, task, &index);
    fv__stage_regions(plan, stage, &chunk, regions);
    for (int s = 0; s < stage->nsteps; s++) {
        if (stage->steps[s].kind != FV_STEP_STORED || !regions[s].ndim) continue;
        const fv_stage *from = &plan->stages[plan->store_stage[stage->steps[s].node->id]];
        for (int64_t k = 0; k < from->ntasks; k++) {
            fv_region made = fv__stage_chunk(from, k, &index), common = fv__region_intersect(&made, &regions[s]);
            if (!fv__region_empty(&common))
                fv__bytes_printf(out, "  %st%d_%lld -> %st%d_%lld;\n", own, from->index, (long long)(from->serial ? 0 : k), own,
                                 stage->index, (long long)task);
        }
    }
    free(regions);
}

void fv__plan_dot(const fv_plan *plan, const fv_plan_part *part, fv_bytes *out) {
    char        name[256], region[160], text[24];
    const char *own = mark(part, text);
    int64_t     index, total = 0;
    begin_part(part, "rankdir=LR; node [fontname=\"sans-serif\", fontsize=10, shape=box];", out);
    for (int s = 0; s < plan->nstages; s++) {
        const fv_stage *stage = &plan->stages[s];
        int64_t         count = stage->serial ? 1 : stage->ntasks;
        target_text(&stage->targets[0], name, sizeof name);
        fv__bytes_printf(out, "  subgraph cluster%s%d { label=\"stage %d: ", own, s, s + 1);
        dot_text(name, out);
        fv__bytes_printf(out, "\";\n");
        for (int64_t k = 0; k < count && total < MOST_TASKS; k++, total++) {
            fv_region chunk = fv__stage_chunk(stage, k, &index);
            fv__region_format(&chunk, region, sizeof region);
            fv__bytes_printf(out, "    %st%d_%lld [label=\"%s\"];\n", own, s, (long long)k,
                             stage->serial ? "all, in order" : region);
        }
        bool ends = false;
        for (int t = 0; t < stage->ntargets; t++) ends = ends || stage->targets[t].kind != FV_TARGET_STORE;
        if (ends) fv__bytes_printf(out, "    %se%d [label=\"end\", shape=ellipse];\n", own, s);
        fv__bytes_printf(out, "  }\n");
        for (int64_t k = 0; k < count && total < MOST_TASKS; k++) {
            task_edges(plan, stage, k, own, out);
            if (ends) fv__bytes_printf(out, "  %st%d_%lld -> %se%d;\n", own, s, (long long)k, own, s);
        }
        for (int i = 0; i < stage->nneeds; i++) /* a merged result is needed by every task; one edge stands for them */
            if (plan->stages[stage->needs[i]].targets[0].kind == FV_TARGET_PASS)
                fv__bytes_printf(out, "  %se%d -> %st%d_0;\n", own, stage->needs[i], own, s);
    }
    if (total >= MOST_TASKS)
        fv__bytes_printf(out, "  %smore [label=\"... more than %d tasks\", shape=plaintext];\n", own, MOST_TASKS);
    end_part(part, out);
}
