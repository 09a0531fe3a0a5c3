/* Reading the graph and the manifest of a run. */
#include "story/run_graph.h"
#include "base/file.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_BYTES = 64 << 20 };

static cJSON *read_json(const char *folder, const char *name, bool *large) {
    char      *path = fv__sprintf("%s/%s", folder, name);
    fv_file_id id = { 0 };
    fv_bytes   text = { 0 };
    cJSON     *json = NULL;
    if (fv__file_exists(path) && fv__file_identify(path, &id, NULL) == FV_OK) {
        if (id.size > MOST_BYTES)
            *large = true;
        else if (fv__file_read_all(path, MOST_BYTES, &text, NULL) == FV_OK)
            json = cJSON_Parse((char *)text.data);
    }
    fv__bytes_release(&text);
    free(path);
    return json;
}

static const char *text_of(fv_arena *arena, const cJSON *object, const char *name) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
    return fv__arena_strdup(arena, text ? text : "");
}

static double number_of(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItem(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void *room_for(fv_arena *arena, const cJSON *array, size_t size, int *count) {
    *count = cJSON_GetArraySize(array);
    return fv__arena_alloc(arena, (size_t)(*count + 1) * size);
}

static int place_of(const fv_graph_part *part, int id) {
    for (int i = 0; i < part->nnodes; i++)
        if (part->nodes[i].id == id) return i;
    return -1;
}

static int *places(fv_arena *arena, const fv_graph_part *part, const cJSON *ids, int *count) {
    int         *list = room_for(arena, ids, sizeof *list, count), n = 0;
    const cJSON *id;
    cJSON_ArrayForEach(id, ids) {
        int place = part ? place_of(part, id->valueint) : id->valueint;
        if (place >= 0) list[n++] = place;
    }
    *count = n;
    return list;
}

static void read_nodes(fv_arena *arena, fv_graph_part *part, const cJSON *nodes) {
    const cJSON *item;
    int          room;
    part->nodes = room_for(arena, nodes, sizeof *part->nodes, &room);
    cJSON_ArrayForEach(item, nodes) {
        fv_graph_node *node = &part->nodes[part->nnodes];
        *node = (fv_graph_node){ .id = (int)number_of(item, "id"),
                                 .op = text_of(arena, item, "op"),
                                 .called = text_of(arena, item, "called"),
                                 .name = text_of(arena, item, "name"),
                                 .parameters = text_of(arena, item, "parameters"),
                                 .type = text_of(arena, item, "type"),
                                 .constant = cJSON_IsTrue(cJSON_GetObjectItem(item, "constant")),
                                 .stored = cJSON_IsTrue(cJSON_GetObjectItem(item, "stored")),
                                 .line = (int)number_of(item, "line") };
        node->in = places(arena, part, cJSON_GetObjectItem(item, "in"), &node->nin); /* inputs come before */
        part->nnodes++;
    }
}

static void read_stages(fv_arena *arena, fv_graph_part *part, const cJSON *stages) {
    const cJSON *item;
    int          room;
    part->stages = room_for(arena, stages, sizeof *part->stages, &room);
    cJSON_ArrayForEach(item, stages) {
        fv_graph_stage *stage = &part->stages[part->nstages++];
        *stage = (fv_graph_stage){ .title = text_of(arena, item, "title"),
                                   .tasks = (int64_t)number_of(item, "tasks"),
                                   .memory = (int64_t)number_of(item, "memory"),
                                   .work = number_of(item, "work") };
        stage->needs = places(arena, NULL, cJSON_GetObjectItem(item, "needs"), &stage->nneeds);
        stage->nodes = places(arena, part, cJSON_GetObjectItem(item, "nodes"), &stage->nnodes);
    }
}

static void read_sinks(fv_arena *arena, fv_graph_part *part, const cJSON *sinks) {
    const cJSON *item;
    int          room;
    part->sinks = room_for(arena, sinks, sizeof *part->sinks, &room);
    cJSON_ArrayForEach(item, sinks) part->sinks[part->nsinks++] =
        (fv_graph_sink){ place_of(part, (int)number_of(item, "node")), text_of(arena, item, "what"), text_of(arena, item, "name"),
                         (int64_t)number_of(item, "step"), text_of(arena, item, "series") };
}

static fv_input_file input_of(fv_arena *arena, const char *path, const char *identity) {
    long long     size = -1, time = 0;
    fv_input_file file = { fv__arena_strdup(arena, path ? path : ""), -1, 0 };
    if (identity && sscanf(identity, "%lld %lld", &size, &time) == 2) file.size = size;
    file.mtime_ns = time;
    return file;
}

static void add_input(fv_run_graph *graph, fv_bytes *inputs, const char *path, const char *identity) {
    fv_input_file file = input_of(&graph->arena, path, identity);
    fv__bytes_append(inputs, &file, sizeof file);
}

static bool known(const fv_bytes *inputs, const char *path) {
    const fv_input_file *all = (const fv_input_file *)(const void *)inputs->data;
    for (size_t i = 0; i < inputs->size / sizeof *all; i++)
        if (!strcmp(all[i].path, path)) return true;
    return false;
}

static void read_parts(fv_run_graph *graph, const cJSON *json, fv_bytes *inputs) {
    const cJSON *parts = cJSON_GetObjectItem(json, "parts"), *item, *file;
    int          room;
    graph->parts = room_for(&graph->arena, parts, sizeof *graph->parts, &room);
    cJSON_ArrayForEach(item, parts) {
        fv_graph_part *part = &graph->parts[graph->nparts++];
        *part = (fv_graph_part){ .title = text_of(&graph->arena, item, "title"),
                                 .first = (int64_t)number_of(item, "first"),
                                 .count = (int64_t)number_of(item, "count"),
                                 .items = cJSON_IsTrue(cJSON_GetObjectItem(item, "items")),
                                 .left_out = (int)number_of(item, "left_out") };
        read_nodes(&graph->arena, part, cJSON_GetObjectItem(item, "nodes"));
        read_stages(&graph->arena, part, cJSON_GetObjectItem(item, "stages"));
        read_sinks(&graph->arena, part, cJSON_GetObjectItem(item, "sinks"));
        cJSON_ArrayForEach(file, cJSON_GetObjectItem(item, "files")) {
            const char *path = cJSON_GetStringValue(cJSON_GetObjectItem(file, "path"));
            if (path && inputs->size < (1 << 20) && !known(inputs, path))
                add_input(graph, inputs, path, cJSON_GetStringValue(cJSON_GetObjectItem(file, "identity")));
        }
    }
}

static void read_parameters(fv_run_graph *graph, const cJSON *json) {
    const cJSON *list = cJSON_GetObjectItem(json, "parameters"), *item, *value;
    int          room;
    graph->parameters = room_for(&graph->arena, list, sizeof *graph->parameters, &room);
    cJSON_ArrayForEach(item, list) {
        fv_bytes text = { 0 };
        cJSON_ArrayForEach(value, cJSON_GetObjectItem(item, "values")) {
            const char *word = cJSON_GetStringValue(cJSON_GetArrayItem(value, 0));
            fv__bytes_printf(&text, "%s%s", text.size ? "," : "", word ? word : "");
        }
        fv__bytes_append(&text, "", 1);
        graph->parameters[graph->nparameters++] =
            (fv_graph_parameter){ text_of(&graph->arena, item, "name"), fv__arena_strdup(&graph->arena, (char *)text.data) };
        fv__bytes_release(&text);
    }
}

static const char *chunk_of(fv_run_graph *graph, const cJSON *chunk) {
    const cJSON *item;
    const char  *text = NULL;
    cJSON_ArrayForEach(item, chunk) text =
        fv__arena_printf(&graph->arena, "%s%s%lld", text ? text : "", text ? "x" : "", (long long)item->valuedouble);
    return text;
}

static void read_manifest(fv_run_graph *graph, const cJSON *json, fv_bytes *inputs) {
    const cJSON *lists = cJSON_GetObjectItem(json, "items"), *list, *file;
    int          room;
    graph->file = text_of(&graph->arena, json, "file");
    graph->text = text_of(&graph->arena, json, "text");
    if (cJSON_GetObjectItem(json, "into")) graph->into = text_of(&graph->arena, json, "into");
    graph->chunk = chunk_of(graph, cJSON_GetObjectItem(json, "chunk"));
    read_parameters(graph, json);
    graph->patterns = room_for(&graph->arena, lists, sizeof *graph->patterns, &room);
    cJSON_ArrayForEach(list, lists) {
        graph->patterns[graph->npatterns++] = text_of(&graph->arena, list, "pattern");
        cJSON_ArrayForEach(file, cJSON_GetObjectItem(list, "files")) add_input(
            graph, inputs, cJSON_GetStringValue(cJSON_GetArrayItem(file, 0)), cJSON_GetStringValue(cJSON_GetArrayItem(file, 1)));
        if (graph->npatterns == 1) graph->nitems = (int64_t)(inputs->size / sizeof(fv_input_file));
    }
}

fv_run_graph *fv__run_graph_read(const char *run_folder) {
    fv_run_graph *graph = fv__calloc(sizeof *graph);
    fv_bytes      inputs = { 0 };
    bool          ignored;
    cJSON        *manifest = read_json(run_folder, "manifest.json", &graph->large);
    cJSON        *json = read_json(run_folder, "graph.json", &ignored);
    if (manifest) read_manifest(graph, manifest, &inputs);
    if (json) read_parts(graph, json, &inputs);
    cJSON_Delete(manifest);
    cJSON_Delete(json);
    graph->inputs = (fv_input_file *)(void *)inputs.data;
    graph->ninputs = (int64_t)(inputs.size / sizeof *graph->inputs);
    return graph;
}

void fv__run_graph_free(fv_run_graph *graph) {
    if (!graph) return;
    free(graph->inputs);
    fv__arena_release(&graph->arena);
    free(graph);
}

int fv__run_graph_part(const fv_run_graph *graph, int64_t unit) {
    int part = graph->nparts - 1;
    while (part > 0 && unit < graph->parts[part].first) part--;
    return part;
}

const char *fv__run_graph_item(const fv_run_graph *graph, int64_t unit) {
    int     part = fv__run_graph_part(graph, unit);
    int64_t i = part < 0 ? -1 : unit - graph->parts[part].first;
    return i >= 0 && graph->nitems == graph->parts[part].count && i < graph->nitems ? graph->inputs[i].path : NULL;
}
