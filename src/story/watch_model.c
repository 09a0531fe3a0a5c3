/* The model of a run while it goes on, as JSON. */
#include "story/watch_model.h"
#include "base/file.h"
#include "op/format.h"
#include "story/report_page.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COLUMNS = 128, ROWS = 32, FAILURES = 50, OUTPUTS = 24, POINTS = 200, CALLS = 8 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---------------------------------------------------------------- how far it is */

static double busy(const fv_story_stage *s) {
    return s->spans[FV_SPAN_READ] + s->spans[FV_SPAN_COMPUTE] + s->spans[FV_SPAN_WRITE];
}

/* Seconds of a task of each stage: as measured, and where none has run yet, as planned, corrected by what the others took. */
static void count_work(const fv_story *story, double *done, double *all) {
    double planned = 0, measured = 0;
    *done = *all = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int p = 0; p < story->graph->nparts; p++)
            for (int s = 0; s < story->graph->parts[p].nstages; s++) {
                const fv_graph_stage *stage = &story->graph->parts[p].stages[s];
                fv_story_stage        seen = fv__story_stage(story, p, s);
                int64_t               ran = seen.done + seen.failed;
                double                each = stage->work / (double)FV_MAX(stage->tasks, 1);
                if (!pass) {
                    planned += ran ? each * (double)ran : 0;
                    measured += ran ? busy(&seen) : 0;
                    continue;
                }
                double seconds = ran ? busy(&seen) / (double)ran : each * (planned > 0 ? measured / planned : 1);
                *done += seconds * (double)ran;
                *all += seconds * (double)fv__story_stage_total(story, p, s);
            }
}

static void find_rates(const fv_story *story, fv_outcome *o) {
    int64_t second = (int64_t)now(), tasks = 0, read = 0, written = 0;
    double  last = story->nattempts ? story->attempts[story->nattempts - 1].from : 0;
    double  span = fmin(fmax(now() - last, 1), FV_STORY_SECONDS - 2);
    for (int i = 0; i < story->nlogs; i++)
        for (int k = 0; story->logs[i]->told && k < FV_STORY_SECONDS; k++) {
            if (story->logs[i]->recent[k].second <= second - (FV_STORY_SECONDS - 2)) continue;
            tasks += story->logs[i]->recent[k].tasks;
            read += story->logs[i]->recent[k].read;
            written += story->logs[i]->recent[k].written;
        }
    o->tasks = (double)tasks / span;
    o->read = (double)read / span;
    o->written = (double)written / span;
}

fv_outcome fv__watch_outcome(const fv_story *story) {
    fv_outcome     o = { .fraction = -1, .left = -1 };
    fv_story_state state = fv__story_state(story);
    const char    *bound = fv__story_fact(story, "memory");
    double         done, all, rate = 0, since = 0;
    count_work(story, &done, &all);
    if (all > 0) o.fraction = fmin(done / all, 1);
    if (state == FV_STORY_DONE) o.fraction = 1;
    for (int i = 0; i < story->nlogs; i++) {
        const fv_story_log *log = story->logs[i];
        if (!log->told || log->attempt != story->nattempts - 1) continue;
        rate += log->spans[FV_SPAN_READ] + log->spans[FV_SPAN_COMPUTE] + log->spans[FV_SPAN_WRITE];
        since = story->attempts[log->attempt].from;
        if (log->alive) o.resident += log->now;
        int bin = (int)((log->last - log->begin) / log->width);
        if (log->alive && bin > 0 && bin <= FV_STORY_BINS) o.planned += (int64_t)(log->planned[bin - 1] / log->width);
    }
    if (state == FV_STORY_RUNNING && rate > 0 && all > done) o.left = (all - done) / (rate / fmax(now() - since, 1e-3));
    if (state == FV_STORY_RUNNING) find_rates(story, &o);
    o.bound = bound ? atoll(bound) : 0;
    return o;
}

/* ---------------------------------------------------------------- JSON */

static double rounded(double value, double step) { return round(value / step) * step; }

static void add_number(cJSON *object, const char *name, double value, double step) {
    cJSON_AddItemToObject(object, name, isfinite(value) ? cJSON_CreateNumber(rounded(value, step)) : cJSON_CreateNull());
}

static void add_fact(cJSON *object, const char *name, const char *value) {
    if (value) cJSON_AddStringToObject(object, name, value);
}

static cJSON *places(const int *list, int count) { return cJSON_CreateIntArray(list, count); }

static double stage_fraction(const fv_story *story, int part, int stage) {
    fv_story_stage seen = fv__story_stage(story, part, stage);
    int64_t        total = fv__story_stage_total(story, part, stage);
    return total > 0 ? (double)(seen.done + seen.failed) / (double)total : fv__story_planned(story, part, stage).items ? 1 : 0;
}

static cJSON *node_json(const fv_story *story, int part, int index) {
    const fv_graph_part *p = &story->graph->parts[part];
    const fv_graph_node *n = &p->nodes[index];
    cJSON               *node = cJSON_CreateObject(), *in = cJSON_CreateArray(), *stages = cJSON_CreateArray();
    const char          *op = *n->called ? n->called : n->op;
    double               fraction = 1;
    char                *text = fv__sprintf("%s(%s)", op, n->parameters);
    cJSON_AddNumberToObject(node, "id", n->id);
    cJSON_AddStringToObject(node, "op", op);
    cJSON_AddStringToObject(node, "name", n->name);
    cJSON_AddStringToObject(node, "text", n->constant ? n->op : text);
    cJSON_AddStringToObject(node, "type", n->type);
    cJSON_AddNumberToObject(node, "line", n->line);
    cJSON_AddBoolToObject(node, "constant", n->constant);
    for (int i = 0; i < n->nin; i++) cJSON_AddItemToArray(in, cJSON_CreateNumber(p->nodes[n->in[i]].id));
    for (int s = 0; s < p->nstages; s++)
        for (int i = 0; i < p->stages[s].nnodes; i++)
            if (p->stages[s].nodes[i] == index) {
                cJSON_AddItemToArray(stages, cJSON_CreateNumber(s));
                fraction = fmin(fraction, stage_fraction(story, part, s));
                break;
            }
    cJSON_AddItemToObject(node, "in", in);
    cJSON_AddItemToObject(node, "stages", stages);
    add_number(node, "seconds", fv__story_node(story, part, n->id), 1e-4);
    add_number(node, "fraction", fraction, 1e-3);
    free(text);
    return node;
}

static cJSON *stage_json(const fv_story *story, int part, int index) {
    const fv_graph_stage *s = &story->graph->parts[part].stages[index];
    fv_story_stage        seen = fv__story_stage(story, part, index);
    fv_stage_facts        planned = fv__story_planned(story, part, index);
    cJSON                *stage = cJSON_CreateObject();
    cJSON_AddNumberToObject(stage, "index", index);
    cJSON_AddStringToObject(stage, "title", s->title);
    cJSON_AddNumberToObject(stage, "tasks", (double)fv__story_stage_total(story, part, index));
    cJSON_AddNumberToObject(stage, "done", (double)seen.done);
    cJSON_AddNumberToObject(stage, "found", (double)(planned.found + planned.spared));
    cJSON_AddNumberToObject(stage, "failed", (double)seen.failed);
    add_number(stage, "seconds", busy(&seen), 1e-4);
    cJSON_AddItemToObject(stage, "needs", places(s->needs, s->nneeds));
    return stage;
}

static cJSON *parts_json(const fv_story *story) {
    cJSON *parts = cJSON_CreateArray();
    for (int p = 0; p < story->graph->nparts; p++) {
        const fv_graph_part *g = &story->graph->parts[p];
        cJSON               *part = cJSON_CreateObject(), *nodes, *stages, *sinks;
        cJSON_AddStringToObject(part, "title", g->title);
        cJSON_AddNumberToObject(part, "items", (double)g->count);
        nodes = cJSON_AddArrayToObject(part, "nodes");
        stages = cJSON_AddArrayToObject(part, "stages");
        sinks = cJSON_AddArrayToObject(part, "sinks");
        for (int i = 0; i < g->nnodes; i++) cJSON_AddItemToArray(nodes, node_json(story, p, i));
        for (int i = 0; i < g->nstages; i++) cJSON_AddItemToArray(stages, stage_json(story, p, i));
        for (int i = 0; i < g->nsinks; i++) {
            cJSON *sink = cJSON_CreateObject();
            if (g->sinks[i].node >= 0) cJSON_AddNumberToObject(sink, "node", g->nodes[g->sinks[i].node].id);
            cJSON_AddStringToObject(sink, "what", g->sinks[i].what);
            cJSON_AddStringToObject(sink, "name", g->sinks[i].name);
            cJSON_AddItemToArray(sinks, sink);
        }
        cJSON_AddItemToArray(parts, part);
    }
    return parts;
}

/* A list of whole numbers, or of thousandths: written by hand, because there are thousands of them a second. */
static void add_list(cJSON *object, const char *name, const int64_t *values, int count, bool thousandths) {
    fv_bytes text = { 0 };
    char     words[32];
    fv__bytes_append(&text, "[", 1);
    for (int i = 0; i < count; i++) {
        int64_t v = values[i];
        char   *end = words + sizeof words, *at = end;
        for (int digits = 0; v > 0 || digits == 0 || (thousandths && digits < 4); digits++, v /= 10) {
            if (thousandths && digits == 3) *--at = '.';
            *--at = (char)('0' + v % 10);
        }
        if (i) *--at = ',';
        fv__bytes_append(&text, at, (size_t)(end - at));
    }
    fv__bytes_append(&text, "]", 2);
    cJSON_AddItemToObject(object, name, cJSON_CreateRaw((char *)text.data));
    fv__bytes_release(&text);
}

static int64_t whole(double value) { return value > 0 && value < 1e15 ? (int64_t)(value + 0.5) : 0; }

static void add_timeline(cJSON *root, cJSON *memory, const fv_story *story) {
    static const char *const names[FV_SPANS] = { "wait", "read", "compute", "write" };
    fv_timeline              t;
    fv__timeline_make(story, COLUMNS, ROWS, &t);
    int64_t list[COLUMNS];
    cJSON  *timeline = cJSON_AddObjectToObject(root, "timeline"), *lanes;
    add_number(timeline, "from", story->nattempts ? story->attempts[story->nattempts - 1].to - t.seconds : 0, 1e-3);
    add_number(timeline, "to", story->nattempts ? story->attempts[story->nattempts - 1].to : 0, 1e-3);
    cJSON_AddNumberToObject(timeline, "bins", COLUMNS);
    if (t.together > 1) cJSON_AddNumberToObject(timeline, "grouped", t.together);
    lanes = cJSON_AddArrayToObject(timeline, "lanes");
    for (int r = 0; r < t.rows; r++) {
        cJSON *lane = cJSON_CreateObject();
        cJSON_AddStringToObject(lane, "name", t.names[r]);
        for (int s = 0; s < FV_SPANS; s++) {
            for (int c = 0; c < COLUMNS; c++) list[c] = whole(1e3 * (double)FV_MIN(t.spans[s][r * COLUMNS + c], 1));
            add_list(lane, names[s], list, COLUMNS, true);
        }
        cJSON_AddItemToArray(lanes, lane);
    }
    for (int c = 0; c < COLUMNS; c++) list[c] = whole(1e3 * (c + 0.5) * t.seconds / COLUMNS);
    add_list(memory, "times", list, COLUMNS, true);
    for (int c = 0; c < COLUMNS; c++) list[c] = whole(t.resident[c]);
    add_list(memory, "residents", list, COLUMNS, false);
    for (int c = 0; c < COLUMNS; c++) list[c] = whole(t.planned[c]);
    add_list(memory, "planneds", list, COLUMNS, false);
    fv__timeline_release(&t);
}

static void add_residuals(cJSON *root, const fv_story *story) {
    int64_t      count;
    fv_residual *all = fv__story_residuals(story, &count);
    cJSON       *calls = cJSON_AddArrayToObject(root, "residuals"), *points = NULL;
    int          ncalls = 0, npoints = 0;
    for (int64_t i = 0; i < count; i++) {
        const fv_residual *r = &all[i];
        if (!i || r->item != r[-1].item || r->line != r[-1].line || !fv__hash_equal(r->call, r[-1].call)) {
            if (ncalls++ == CALLS) break;
            cJSON *call = cJSON_CreateObject();
            cJSON_AddStringToObject(call, "op", r->op);
            cJSON_AddNumberToObject(call, "line", (double)r->line);
            cJSON_AddNumberToObject(call, "item", (double)r->item);
            points = cJSON_AddArrayToObject(call, "points");
            cJSON_AddItemToArray(calls, call);
            npoints = 0;
        }
        const double four[] = { (double)r->iteration, r->residual, r->least, r->most };
        if (npoints++ < POINTS) cJSON_AddItemToArray(points, cJSON_CreateDoubleArray(four, 4));
    }
    free(all);
}

static void add_told(cJSON *root, const fv_story *story) {
    cJSON *failures = cJSON_AddArrayToObject(root, "failures"), *values = cJSON_AddArrayToObject(root, "values");
    int    nfailures = 0;
    for (int i = 0; i < story->nlogs; i++)
        for (int k = 0; story->logs[i]->told && k < story->logs[i]->nfacts; k++) {
            const fv_story_fact *fact = &story->logs[i]->facts[k];
            bool                 last = story->logs[i]->attempt == story->nattempts - 1;
            if (last && !strncmp(fact->name, "error ", 6) && nfailures++ < FAILURES) {
                cJSON *failure = cJSON_CreateObject();
                cJSON_AddStringToObject(failure, "item", fact->name + 6);
                cJSON_AddStringToObject(failure, "reason", fact->value);
                cJSON_AddItemToArray(failures, failure);
            } else if (last && !strncmp(fact->name, "value ", 6)) {
                cJSON *value = cJSON_CreateObject();
                cJSON_AddStringToObject(value, "name", fact->name + 6);
                cJSON_AddStringToObject(value, "text", fact->value);
                cJSON_AddItemToArray(values, value);
            }
        }
    cJSON_AddNumberToObject(root, "failures_total", nfailures);
}

/* The last files that are complete. Which of them are pictures is judged by their names: nothing is opened here. */
static void add_outputs(cJSON *root, const fv_story *story) {
    const fv_format *format;
    int              count;
    fv_story_file   *files = fv__story_outputs(story, &count);
    cJSON           *outputs = cJSON_AddArrayToObject(root, "outputs");
    for (int i = FV_MAX(count - OUTPUTS, 0); i < count; i++) {
        cJSON *output = cJSON_CreateObject();
        cJSON_AddNumberToObject(output, "number", i);
        cJSON_AddStringToObject(output, "path", files[i].name);
        bool picture = fv__story_may_open(files[i].path) && fv__format_for_writing(files[i].path, &format, NULL) == FV_OK;
        cJSON_AddBoolToObject(output, "picture", picture);
        cJSON_AddItemToArray(outputs, output);
    }
    cJSON_AddNumberToObject(root, "outputs_total", count);
    fv__story_outputs_free(files, count);
}

static void add_leases(cJSON *root, const fv_story *story) {
    fv_lease_facts lent = fv__story_leases(story);
    if (!lent.leases) return;
    cJSON *leases = cJSON_AddObjectToObject(root, "leases");
    cJSON_AddNumberToObject(leases, "count", (double)lent.leases);
    add_number(leases, "leased", lent.leased, 1e-3);
    add_number(leases, "queued", lent.queued, 1e-3);
}

static void add_processes(cJSON *root, const fv_story *story) {
    cJSON *processes = cJSON_AddArrayToObject(root, "processes");
    for (int i = 0; i < story->nlogs; i++) {
        const fv_story_log *log = story->logs[i];
        const char         *process = fv__log_fact(log, "process"), *host = fv__log_fact(log, "host");
        const char         *pid = process ? strchr(process, ' ') : NULL;
        if (!log->told) continue;
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "name", log->name);
        add_fact(object, "host", host);
        if (pid) cJSON_AddNumberToObject(object, "pid", atoi(pid));
        add_fact(object, "job", fv__log_fact(log, "job"));
        add_fact(object, "role", fv__log_fact(log, "role"));
        cJSON_AddStringToObject(object, "state", log->alive ? "running" : log->ended == FV_END_NONE ? "killed" : "ended");
        cJSON_AddNumberToObject(object, "tasks", (double)log->tasks);
        cJSON_AddNumberToObject(object, "resident", (double)log->now);
        cJSON_AddItemToArray(processes, object);
    }
}

static void add_counts(cJSON *root, const fv_story *story) {
    fv_story_sums s = fv__story_sums(story);
    cJSON        *tasks = cJSON_AddObjectToObject(root, "tasks"), *items = cJSON_AddObjectToObject(root, "items");
    int           failed = 0;
    for (int i = 0; i < story->nlogs; i++)
        for (int k = 0; story->logs[i]->told && story->logs[i]->attempt == story->nattempts - 1 && k < story->logs[i]->nfacts;
             k++)
            failed += !strncmp(story->logs[i]->facts[k].name, "error ", 6);
    cJSON_AddNumberToObject(tasks, "done", (double)s.tasks);
    cJSON_AddNumberToObject(tasks, "total", (double)s.total);
    cJSON_AddNumberToObject(tasks, "found", (double)(s.found + s.spared));
    cJSON_AddNumberToObject(tasks, "failed", (double)s.failed);
    cJSON_AddNumberToObject(items, "opened", (double)s.opened);
    cJSON_AddNumberToObject(items, "total", (double)s.items);
    cJSON_AddNumberToObject(items, "failed", failed);
}

static void add_operators(cJSON *root, const fv_story *story) {
    fv_spent list[FV_MOST_SPENT];
    int      count = fv__story_spent(story, list);
    cJSON   *operators = cJSON_AddArrayToObject(root, "operators");
    for (int i = 0; i < count; i++) {
        cJSON *op = cJSON_CreateObject();
        cJSON_AddStringToObject(op, "op", list[i].op);
        add_number(op, "seconds", list[i].seconds, 1e-4);
        cJSON_AddItemToArray(operators, op);
    }
}

char *fv__watch_json(const fv_story *story) {
    static const char *const facts[] = { "engine", "host", "device", "text" };
    fv_outcome               o = fv__watch_outcome(story);
    const char              *workers = fv__story_fact(story, "workers");
    fv_bytes                 sentence = { 0 };
    cJSON                   *root = cJSON_CreateObject();
    fv__story_sentence(story, &sentence);
    fv__bytes_append(&sentence, "", 1);
    cJSON_AddNumberToObject(root, "version", 1);
    cJSON_AddStringToObject(root, "run", fv__path_name(story->folder));
    cJSON_AddStringToObject(root, "folder", story->folder);
    cJSON_AddStringToObject(root, "state", fv__story_state_name(fv__story_state(story)));
    cJSON_AddStringToObject(root, "sentence", (char *)sentence.data);
    add_number(root, "time", now(), 1e-3);
    if (story->nattempts) add_number(root, "started", story->attempts[0].from, 1e-3);
    add_number(root, "seconds", story->seconds, 1e-3);
    add_number(root, "left", o.left < 0 ? NAN : o.left, 0.1);
    add_number(root, "fraction", o.fraction < 0 ? NAN : o.fraction, 1e-4);
    for (int i = 0; i < FV_COUNT(facts); i++) add_fact(root, facts[i], fv__story_fact(story, facts[i]));
    add_fact(root, "fovea", fv__story_fact(story, "version"));
    add_fact(root, "program", story->graph->file);
    if (workers) cJSON_AddNumberToObject(root, "workers", atoi(workers));
    add_counts(root, story);
    cJSON *rates = cJSON_AddObjectToObject(root, "rates"), *memory = cJSON_AddObjectToObject(root, "memory");
    add_number(rates, "tasks", o.tasks, 1e-3);
    add_number(rates, "read", o.read, 1);
    add_number(rates, "written", o.written, 1);
    cJSON_AddNumberToObject(memory, "bound", (double)o.bound);
    cJSON_AddNumberToObject(memory, "resident", (double)o.resident);
    cJSON_AddNumberToObject(memory, "planned", (double)o.planned);
    cJSON_AddItemToObject(root, "parts", parts_json(story));
    add_timeline(root, memory, story);
    add_operators(root, story);
    add_residuals(root, story);
    add_told(root, story);
    add_outputs(root, story);
    add_leases(root, story);
    add_processes(root, story);
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    fv__bytes_release(&sentence);
    return text;
}
