/* Facts of a run for its record. */
#include "run/run_facts.h"
#include "base/file.h"
#include "base/host.h"
#include "plan/print.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST_NODES = 400, MOST_VALUES = 50 };

/* ---------------------------------------------------------------- begin and end */

static void note_number(fv_record *record, const char *name, long long number) {
    char text[32];
    snprintf(text, sizeof text, "%lld", number);
    fv__record_fact(record, name, text);
}

static void note_seconds(fv_record *record, const char *name, double seconds) {
    char text[32];
    snprintf(text, sizeof text, "%.6f", seconds);
    fv__record_fact(record, name, text);
}

static void note_time(fv_record *record, const char *name) {
    char            text[40];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(text, sizeof text, "%lld.%06ld", (long long)now.tv_sec, now.tv_nsec / 1000);
    fv__record_fact(record, name, text);
}

static void note_processor(fv_record *record) {
    char  line[256], *colon;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "model name", 10) && (colon = strchr(line, ':'))) {
            colon[strcspn(colon, "\n")] = 0;
            fv__record_fact(record, "processor", colon + 1 + strspn(colon + 1, " "));
            break;
        }
    if (file) fclose(file);
}

/* Of Slurm: "1234", "1234_7" of an array. */
static void note_job(fv_record *record) {
    const char *job = getenv("SLURM_JOB_ID"), *array = getenv("SLURM_ARRAY_JOB_ID"), *element = getenv("SLURM_ARRAY_TASK_ID");
    if (!job) return;
    char *text = array && element ? fv__sprintf("%s_%s", array, element) : fv__strdup(job);
    fv__record_fact(record, "job", text);
    free(text);
}

void fv__facts_begin(fv_record *record, const fv_run_settings *settings, const char *role) {
    const fv_host *host = fv__host_self();
    char           process[160], folder[4096];
    fv__record_fact(record, "version", FV_VERSION);
    fv__record_fact(record, "role", role);
    note_time(record, "begin");
    snprintf(process, sizeof process, "%s %d %lld", host->name, (int)getpid(), (long long)fv__process_start((int)getpid()));
    fv__record_fact(record, "process", process);
    fv__record_fact(record, "host", host->name);
    if (getcwd(folder, sizeof folder)) fv__record_fact(record, "folder", folder);
    note_job(record);
    note_processor(record);
    note_number(record, "cores", sysconf(_SC_NPROCESSORS_ONLN));
    note_number(record, "installed", FV_MAX(fv__system_number("/proc/meminfo", "MemTotal:"), 0) * 1024);
    fv__record_fact(record, "isa", fv__isa_name());
    note_number(record, "workers", settings->options.workers);
    note_number(record, "memory", settings->budget.memory);
}

static void note_values(fv_record *record, const fv_result *result) {
    for (int i = 0, told = 0; i < result->ntables && told < MOST_VALUES; i++) {
        const fv_table *table = &result->tables[i];
        if (!result->table_printed[i] || !result->table_is_scalar[i] || table->nrows != 1 || table->type.ncolumns != 1) continue;
        char           text[64], *name = fv__sprintf("value %s", table->type.column[0].name);
        fv_column_kind kind = table->type.column[0].kind;
        if (kind == FV_COLUMN_REAL)
            snprintf(text, sizeof text, "%.9g", table->cell[0].real);
        else
            snprintf(text, sizeof text, "%lld", (long long)table->cell[0].integer);
        if (kind != FV_COLUMN_TEXT) fv__record_fact(record, name, text);
        free(name);
        told++;
    }
}

void fv__facts_end(fv_record *record, fv_status status, const fv_error *error, const fv_result *result, bool last) {
    bool        partly = status == FV_OK && result->nfailures;
    const char *how = status == FV_ERROR_CANCELLED ? "stopped" : status != FV_OK || partly ? "failed" : last ? "well" : "part";
    if (status != FV_OK && error && error->message[0]) {
        char *message = fv__sprintf(error->op[0] ? "%s: %s" : "%s%s", error->op, error->message);
        fv__record_fact(record, "failure", message);
        free(message);
    }
    if (last && status == FV_OK) note_values(record, result);
    note_number(record, "peak", FV_MAX(fv__system_number("/proc/self/status", "VmHWM:"), 0) * 1024);
    note_seconds(record, "opening", result->facts.seconds_opening);
    note_seconds(record, "merging", result->facts.seconds_merging);
    note_number(record, "outputs-made", result->facts.outputs_made);
    note_number(record, "outputs-current", result->facts.outputs_current);
    note_number(record, "items-failed", result->nfailures);
    note_time(record, "end");
    fv__record_fact(record, "ended", how);
}

/* ---------------------------------------------------------------- graph */

static bool *used_nodes(const fv_graph *graph) {
    bool *used = fv__calloc((size_t)graph->nnodes + 1);
    for (int k = 0; k < graph->nsinks; k++) used[graph->sinks[k].value->id] = true;
    for (int id = graph->nnodes - 1; id >= 0; id--)
        for (int i = 0; used[id] && i < graph->nodes[id]->ninputs; i++)
            if (graph->nodes[id]->in[i]) used[graph->nodes[id]->in[i]->id] = true;
    return used;
}

static char *type_of(const fv_type *type) {
    if (type->kind != FV_KIND_IMAGE) return fv__strdup(fv__kind_name(type->kind));
    fv_bytes out = { 0 };
    fv__bytes_printf(&out, "%s ", fv_dtype_name(type->image.dtype));
    for (int d = 0; d < type->image.ndim; d++)
        fv__bytes_printf(&out, "%s%lld", d ? "\xc3\x97" : "", (long long)type->image.shape[d]);
    return (char *)out.data;
}

static void add_parameters(cJSON *object, const fv_node *node) {
    fv_bytes text = { 0 };
    fv__params_format(node->op, node->params, &text);
    fv__bytes_append(&text, "", 1);
    cJSON_AddStringToObject(object, "parameters", (char *)text.data);
    fv__bytes_release(&text);
}

static cJSON *node_json(const fv_node *node, bool stored) {
    cJSON       *object = cJSON_CreateObject(), *in = cJSON_CreateArray();
    const fv_op *called = node->op ? fv__node_called(node, NULL) : NULL;
    char         number[32], *type = type_of(&node->type);
    snprintf(number, sizeof number, "%.9g", node->op || node->later ? 0 : fv__scalar_number(&node->value));
    cJSON_AddNumberToObject(object, "id", node->id);
    cJSON_AddStringToObject(object, "op", node->op ? node->op->name : node->later ? node->later : number);
    if (called && called != node->op) cJSON_AddStringToObject(object, "called", called->name);
    cJSON_AddStringToObject(object, "name", node->name ? node->name : "");
    cJSON_AddBoolToObject(object, "constant", !node->op);
    cJSON_AddBoolToObject(object, "stored", stored);
    if (node->op) add_parameters(object, node);
    cJSON_AddStringToObject(object, "type", type);
    cJSON_AddNumberToObject(object, "line", node->span.line);
    for (int i = 0; i < node->ninputs; i++)
        if (node->in[i]) cJSON_AddItemToArray(in, cJSON_CreateNumber(node->in[i]->id));
    cJSON_AddItemToObject(object, "in", in);
    free(type);
    return object;
}

static cJSON *stage_json(const fv_stage *stage) {
    cJSON   *object = cJSON_CreateObject(), *needs = cJSON_CreateArray(), *nodes = cJSON_CreateArray();
    fv_bytes title = { 0 };
    fv__stage_title(stage, &title);
    fv__bytes_append(&title, "", 1);
    cJSON_AddStringToObject(object, "title", (char *)title.data);
    cJSON_AddNumberToObject(object, "tasks", stage->serial ? 1 : (double)stage->ntasks);
    cJSON_AddNumberToObject(object, "memory", (double)stage->memory);
    cJSON_AddNumberToObject(object, "work", stage->work * 1e-9);
    for (int i = 0; i < stage->nneeds; i++) cJSON_AddItemToArray(needs, cJSON_CreateNumber(stage->needs[i]));
    for (int s = 0; s < stage->nsteps; s++)
        if (stage->steps[s].kind != FV_STEP_STORED) cJSON_AddItemToArray(nodes, cJSON_CreateNumber(stage->steps[s].node->id));
    for (int t = 0; t < stage->ntargets; t++)
        if (stage->targets[t].kind == FV_TARGET_PASS) cJSON_AddItemToArray(nodes, cJSON_CreateNumber(stage->targets[t].node->id));
    cJSON_AddItemToObject(object, "needs", needs);
    cJSON_AddItemToObject(object, "nodes", nodes);
    fv__bytes_release(&title);
    return object;
}

static cJSON *sink_json(const fv_sink *sink) {
    static const char *const words[] = { "file", "print", "keep", "export" };
    cJSON                   *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "node", sink->value->id);
    cJSON_AddStringToObject(object, "what", words[sink->kind]);
    const char *name = sink->kind == FV_SINK_FILE ? sink->file_template : sink->name;
    cJSON_AddStringToObject(object, "name", name ? name : sink->file ? sink->file : "");
    if (sink->step) cJSON_AddNumberToObject(object, "step", (double)sink->step);
    if (sink->series) cJSON_AddStringToObject(object, "series", sink->series);
    return object;
}

/* A file that a node reads, as it was. */
static cJSON *file_json(const fv_node *node) {
    const fv_param *param = node->op ? fv__params_file(node->op) : NULL;
    const char     *path = param ? *(const char *const *)((const char *)node->params + param->offset) : NULL;
    fv_file_id      id = { 0 };
    char            text[64];
    if (!path || param->kind != FV_PARAM_TEXT || node->op->sink) return NULL;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "path", path);
    if (fv__file_identify(path, &id, NULL) == FV_OK) {
        snprintf(text, sizeof text, "%lld %lld", (long long)id.size, (long long)id.mtime_ns);
        cJSON_AddStringToObject(object, "identity", text);
    }
    return object;
}

static cJSON *part_json(const fv_segment *segment, const fv_instance *sample) {
    cJSON *part = cJSON_CreateObject(), *nodes, *stages, *sinks, *files;
    char   title[64] = "the whole run";
    if (segment->collection != FV_RUN) snprintf(title, sizeof title, "each of %lld items", (long long)segment->count);
    cJSON_AddStringToObject(part, "title", title);
    cJSON_AddNumberToObject(part, "first", (double)segment->first);
    cJSON_AddNumberToObject(part, "count", (double)segment->count);
    cJSON_AddBoolToObject(part, "items", segment->collection != FV_RUN);
    nodes = cJSON_AddArrayToObject(part, "nodes");
    stages = cJSON_AddArrayToObject(part, "stages");
    sinks = cJSON_AddArrayToObject(part, "sinks");
    files = cJSON_AddArrayToObject(part, "files");
    if (!sample) return part;
    bool *used = used_nodes(sample->graph);
    int   shown = 0, left = 0;
    for (int id = 0; id < sample->graph->nnodes; id++) {
        const fv_node *node = sample->graph->nodes[id];
        cJSON         *file = used[id] ? file_json(node) : NULL;
        if (file) cJSON_AddItemToArray(files, file);
        if (used[id] && shown++ < MOST_NODES)
            cJSON_AddItemToArray(nodes, node_json(node, sample->plan->stored[id]));
        else if (used[id])
            left++;
    }
    free(used);
    cJSON_AddNumberToObject(part, "left_out", left);
    for (int s = 0; s < sample->plan->nstages; s++) cJSON_AddItemToArray(stages, stage_json(&sample->plan->stages[s]));
    for (int k = 0; k < FV_MIN(sample->graph->nsinks, MOST_NODES); k++)
        cJSON_AddItemToArray(sinks, sink_json(&sample->graph->sinks[k]));
    return part;
}

char *fv__facts_graph(const fv_bindings *bindings, fv_instance *const *samples) {
    cJSON *root = cJSON_CreateObject(), *parts = cJSON_AddArrayToObject(root, "parts");
    for (int s = 0; s < bindings->nsegments; s++) cJSON_AddItemToArray(parts, part_json(&bindings->segments[s], samples[s]));
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return text;
}

fv_status fv__facts_keep_graph(const char *run_folder, const char *graph, fv_error *error) {
    if (!graph) return FV_OK;
    char     *path = fv__sprintf("%s/graph.json", run_folder);
    fv_status status = fv__file_write_all(path, graph, strlen(graph), false, error);
    free(path);
    return status;
}
