/* One item of a stream after another. */
#include "stream/item_runner.h"
#include "base/session.h"
#include "op/array.h"
#include "run/results.h"
#include "store/store_place.h"
#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct fv_item_runner {
    const fv_stream_text *text;
    fv_bindings           bindings;
    fv_context            context;
    char                 *folder; /* for what does not fit into memory */
    fv_array              image;  /* what the instance was made for */
    char                 *path;   /* of the item */
    fv_instance          *instance;
    fv_array_params      *array; /* of its node; NULL: it reads a file, or the text does not use it */
    char                **files; /* by sink: its name, filled in for this item; NULL: none */
    int64_t              *there; /* that the instance was made for; NULL: for whole items */
    int64_t               nthere, rounds;
    double               *angles; /* likewise */
    int64_t               nangles;
    bool                  asked; /* the text asks for them */
    bool                  opened;
    const char           *names[1];
    char                 *name;
    fv_worker           **workers; /* one a thread */
    int                   threads;
    int64_t               store, memory; /* bytes: for what lies between stages; of a task */
};

/* ---------------------------------------------------------------- rows */

void fv__rows_put(fv_bytes *out, const fv_table_type *type, const fv_cell *cells, int64_t nrows) {
    for (int64_t i = 0; i < nrows * type->ncolumns; i++) {
        if (type->column[i % type->ncolumns].kind != FV_COLUMN_TEXT) {
            fv__bytes_append(out, &cells[i], sizeof *cells);
            continue;
        }
        int64_t length = cells[i].text ? (int64_t)strlen(cells[i].text) + 1 : 0;
        fv__bytes_append(out, &length, sizeof length);
        if (length) fv__bytes_append(out, cells[i].text, (size_t)length);
    }
}

int64_t fv__rows_get(const fv_table_type *type, const uint8_t **at, const uint8_t *end, fv_cell *cells, int64_t most) {
    int64_t rows = 0;
    for (; rows < most && *at < end; rows++)
        for (int c = 0; c < type->ncolumns; c++, cells++) {
            memcpy(cells, *at, sizeof *cells);
            *at += sizeof *cells;
            if (type->column[c].kind != FV_COLUMN_TEXT) continue;
            int64_t length = cells->integer;
            cells->text = length ? (const char *)*at : NULL;
            *at += length;
        }
    return rows;
}

void fv__made_release(fv_made *made) {
    for (int i = 0; i < made->noutputs; i++) fv__output_leave(made->outputs[i]);
    for (int i = 0; i < made->ntables; i++) {
        free(made->tables[i].file);
        free(made->tables[i].table);
        free(made->tables[i].name);
        free(made->tables[i].alert);
        fv__bytes_release(&made->tables[i].rows);
    }
    free(made->outputs);
    free(made->tables);
    fv__paths_release(&made->unsynced);
    *made = (fv_made){ 0 };
}

static void add_output(fv_made *made, fv_output *output) {
    made->outputs = fv__realloc(made->outputs, (size_t)(made->noutputs + 1) * sizeof(fv_output *));
    made->outputs[made->noutputs++] = fv__output_use(output);
}

/* ---------------------------------------------------------------- the instance */

fv_item_runner *fv__item_runner_new(const fv_stream_text *text, int threads, int runners) {
    fv_item_runner *r = fv__calloc(sizeof *r);
    r->text = text;
    r->threads = threads;
    r->store = text->budget.store / FV_MAX(runners, 1);
    r->folder = fv__strdup(fv__temporary_place());
    r->workers = fv__calloc((size_t)threads * sizeof *r->workers);
    for (int i = 0; i < threads; i++) r->workers[i] = fv__worker_new();
    return r;
}

static void forget(fv_item_runner *r) {
    int nsinks = r->instance ? r->instance->graph->nsinks : 0;
    for (int k = 0; k < nsinks; k++) free(r->files[k]);
    free(r->files);
    fv__instance_close(r->instance);
    fv__bindings_release(&r->bindings);
    fv__output_list_free(r->context.written);
    r->instance = NULL;
    free(r->there);
    free(r->angles);
    r->files = NULL;
    r->array = NULL;
    r->there = NULL;
    r->angles = NULL;
    r->nangles = 0;
    r->asked = false;
    r->context.written = NULL;
}

void fv__item_runner_free(fv_item_runner *r) {
    if (!r) return;
    forget(r);
    for (int i = 0; i < r->threads; i++) fv__worker_free(r->workers[i]);
    free(r->workers);
    free(r->folder);
    free(r->path);
    free(r->name);
    free(r);
}

static fv_status resolve(fv_item_runner *r, fv_diagnostics *diagnostics, fv_error *error) {
    const fv_stream_text *text = r->text;
    fv_bindings          *b = &r->bindings;
    for (int i = 0; i < text->nsets; i++) FV_TRY(fv__bindings_set(b, text->sets[i], error));
    b->live = (fv_live){ .pattern = text->pattern,
                         .path = r->path,
                         .frame = r->image.type.ndim ? &r->image : NULL,
                         .there = r->there,
                         .nthere = r->nthere,
                         .rounds = r->rounds,
                         .angles = r->angles,
                         .nangles = r->nangles,
                         .asked = &r->asked,
                         .shared = r->threads > 1 };
    FV_TRY(fv__bindings_resolve(b, text->program, diagnostics, error));
    if (b->ncombinations > 1)
        return fv_fail(error, FV_ERROR_USAGE, "a stream has one value for each param; --set with several is for fovea run");
    for (int s = 0; s < b->nsegments; s++)
        if (b->segments[s].collection == FV_RUN)
            return fv_fail(error, FV_ERROR_USAGE,
                           "the text has results of all items together, or of none, which a stream never "
                           "completes; take these lines out, or make windows or scans of frames with --scan");
    return b->nsegments == 1 ? FV_OK
                             : fv_fail(error, FV_ERROR_USAGE,
                                       "a stream is one collection; the text makes results of others too, or "
                                       "chooses among all items");
}

static bool tells_items(const fv_item_runner *r, const fv_sink *sink) {
    return fv__template_tells_items(sink->file_template, &r->bindings.lists[r->bindings.segments[0].collection]);
}

/* Tables that grow with the stream have to be of a kind that can. */
static fv_status check_sinks(const fv_item_runner *r, fv_error *error) {
    const fv_graph *graph = r->instance->graph;
    for (int k = 0; k < graph->nsinks; k++) {
        const fv_sink         *sink = &graph->sinks[k];
        const fv_table_format *format = sink->kind == FV_SINK_FILE ? fv__table_format_for(sink->file) : NULL;
        if (sink->kind != FV_SINK_FILE || sink->value->type.kind == FV_KIND_IMAGE || !format || tells_items(r, sink)) continue;
        if (format->in_place || strstr("csv tsv jsonl", format->name)) continue;
        return fv_fail(error, FV_ERROR_USAGE,
                       "write: %s cannot grow with a stream; SQLite (.db), .csv, .tsv and .jsonl can, or a "
                       "table for each frame, with {stem} in its name",
                       sink->file);
    }
    return FV_OK;
}

static void find_array(fv_item_runner *r) {
    const fv_graph *graph = r->instance->graph;
    for (int id = 0; id < graph->nnodes && r->image.type.ndim; id++) {
        const fv_node *node = graph->nodes[id];
        bool           given = node->op && (node->op->role == FV_OP_ARRAY || node->op->role == FV_OP_PROVIDED);
        if (given) r->array = node->params;
    }
}

static fv_status open_instance(fv_item_runner *r, fv_diagnostics *diagnostics, fv_error *error) {
    r->context = (fv_context){ .program = r->text->program,
                               .bindings = &r->bindings,
                               .plan_options = *r->text->plan_options,
                               .written = fv__output_list_new(),
                               .poison = -1 };
    FV_TRY(resolve(r, diagnostics, error));
    FV_TRY(fv__instance_sample(&r->context, 0, &r->instance, diagnostics, error));
    r->memory = r->instance->plan->memory;
    r->files = fv__calloc((size_t)(r->instance->graph->nsinks + 1) * sizeof *r->files);
    FV_TRY(fv__budget_check(&r->text->budget, r->instance->plan->memory, error));
    fv_item_list *list = &r->bindings.lists[r->bindings.segments[0].collection];
    list->items = (fv_item_names){ .count = 1, .names = r->names, .paths = (const char *const *)list->paths, .all = true };
    find_array(r);
    return check_sinks(r, error);
}

static bool has_angles(const fv_item_runner *r, const fv_live_item *item) {
    return r->nangles == item->nangles &&
           (!r->nangles || !memcmp(r->angles, item->angles, (size_t)r->nangles * sizeof *r->angles));
}

static bool is_ready(const fv_item_runner *r, const fv_live_item *item) {
    if (r->asked && !has_angles(r, item)) return false;
    return r->instance && item->image && r->image.type.ndim && !r->image.read == !item->image->read && !r->there &&
           !item->there && r->rounds == item->rounds && !memcmp(&r->image.type, &item->image->type, sizeof r->image.type);
}

static void name_item(fv_item_runner *r) {
    fv_item_list *list = &r->bindings.lists[r->bindings.segments[0].collection];
    list->paths[0] = r->path;
    free(r->name);
    r->name = fv__alloc(256);
    fv__path_stem(r->path, r->name, 256);
    r->names[0] = r->name;
}

/* Angles that are not known yet may make a half acquisition of a scan, if its axis is not in the middle. */
static bool may_turn_out_otherwise(const fv_item_runner *r) {
    const fv_graph *graph = r->instance->graph;
    for (int id = 0; id < graph->nnodes && r->asked; id++)
        for (const fv_param *p = graph->nodes[id]->op ? graph->nodes[id]->op->params : NULL; p && p->name; p++) {
            const void *field = (const char *)graph->nodes[id]->params + p->offset;
            if (p->kind == FV_PARAM_GEOMETRY && ((const fv_geometry *)field)->center.count) return true;
        }
    return false;
}

/* Sums of a scan that grows are kept where half of the store's memory holds them. */
static void use_sums(fv_item_runner *r, const fv_live_item *item) {
    int64_t bytes = item->sums ? fv__plan_sums(r->instance->plan) : 0;
    bool    fits = bytes > 0 && bytes <= r->store / 2 / FV_MAX(item->scans, 1);
    if (fits && !*item->sums && !may_turn_out_otherwise(r)) *item->sums = fv__sums_new();
    r->instance->sums = item->sums ? *item->sums : NULL;
    r->instance->planes = item->planes;
}

/* The instance for an item: that of the one before, if it is of the same type. */
static fv_status take_up(fv_item_runner *r, const fv_live_item *item, fv_diagnostics *diagnostics, fv_error *error) {
    fv_status status = FV_OK;
    free(r->path);
    r->path = fv__strdup(item->path);
    r->opened = false;
    if (!is_ready(r, item)) {
        forget(r);
        r->image = item->image ? *item->image : (fv_array){ 0 };
        r->image.name = "frame";
        r->nthere = item->there ? item->nthere : 0;
        r->rounds = item->rounds;
        if (item->there) r->there = fv__alloc((size_t)item->nthere * sizeof *r->there);
        if (item->there) memcpy(r->there, item->there, (size_t)item->nthere * sizeof *r->there);
        r->nangles = item->nangles;
        if (item->nangles) r->angles = fv__alloc((size_t)item->nangles * sizeof *r->angles);
        if (item->nangles) memcpy(r->angles, item->angles, (size_t)item->nangles * sizeof *r->angles);
        status = open_instance(r, diagnostics, error);
    }
    r->opened = status == FV_OK || r->asked; /* frames that have no angle, or a wrong one, are at fault themselves */
    if (status != FV_OK) {
        forget(r);
        return status;
    }
    name_item(r);
    r->context.cancel = item->cancel;
    use_sums(r, item);
    if (!r->array || !item->image) return FV_OK;
    r->array->data = item->image->data;
    r->array->read = item->image->read;
    r->array->context = item->image->context;
    return FV_OK;
}

/* ---------------------------------------------------------------- files */

/* An output is named after its item: the same file is never made of two. */
static fv_hash key_of(const fv_sink *sink, const char *path) {
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_add(&hasher, &sink->value->key, sizeof sink->value->key);
    fv__hasher_text(&hasher, path);
    return fv__hasher_finish(&hasher);
}

static fv_status fill_names(fv_item_runner *r, fv_error *error) {
    fv_graph *graph = r->instance->graph;
    for (int k = 0; k < graph->nsinks; k++) {
        fv_sink *sink = &graph->sinks[k];
        if (sink->kind != FV_SINK_FILE) continue;
        const fv_image_type *axes = sink->value->type.kind == FV_KIND_IMAGE ? &sink->value->type.image : NULL;
        char                *path;
        FV_TRY(fv__template_fill(&r->bindings, sink->file_template, 0, 0, axes, &path, error));
        free(r->files[k]);
        sink->file = r->files[k] = path;
        sink->key = key_of(sink, path);
    }
    return FV_OK;
}

static fv_status begin_outputs(fv_item_runner *r, fv_error *error) {
    const fv_plan *plan = r->instance->plan;
    for (int k = 0; k < plan->nfiles; k++) {
        fv__output_leave(r->instance->outputs[k]);
        fv_output *output = r->instance->outputs[k] = fv__output_of(&plan->files[k]);
        FV_TRY(fv__outputs_check(r->text->outputs, output->path, error));
        FV_TRY(fv__outputs_begin(r->text->outputs, output, FV_OUTPUT_ALONE, r->context.written, error));
        if (output->writer->layout.parallel) FV_TRY(output->writer->format->begin(output->writer, error));
    }
    return FV_OK;
}

static void end_outputs(fv_item_runner *r, fv_made *made, bool good) {
    for (int k = 0; k < r->instance->plan->nfiles; k++) {
        fv_output *output = r->instance->outputs[k];
        bool       open = output->state == FV_OUTPUT_OPEN;
        fv__output_close(output);
        if (open && good)
            add_output(made, output);
        else if (open) {
            fv__path_remove(output->temporary, NULL);
            fv__outputs_abandon(r->text->outputs, output);
        }
    }
}

/* ---------------------------------------------------------------- tasks */

typedef struct crew { /* threads that share the tasks of one stage */
    fv_item_runner *runner;
    const fv_stage *stage;
    bool            sum; /* they only add to sums */
    _Atomic int64_t next;
    _Atomic int     failed, number;
    pthread_mutex_t mutex; /* guards the error */
    fv_error        error;
} crew;

static fv_status run_task(const crew *c, int64_t task, int number, fv_task_facts *facts, fv_error *error) {
    fv_instance *instance = c->runner->instance;
    fv_worker   *worker = c->runner->workers[number];
    return c->sum ? fv__task_sum(instance, c->stage, task, worker, error)
                  : fv__task_run(instance, c->stage, task, worker, facts, error);
}

/* Read by several threads while another one may set it. */
static bool is_unwanted(const fv_item_runner *r) {
    return r->context.cancel && __atomic_load_n(r->context.cancel, __ATOMIC_RELAXED);
}

static void *work(void *context) {
    crew         *c = context;
    int           number = atomic_fetch_add(&c->number, 1);
    fv_task_facts facts = { 0 };
    for (int64_t task; !c->failed && (task = atomic_fetch_add(&c->next, 1)) < c->stage->ntasks;) {
        fv_error  error = { 0 };
        fv_status status =
            is_unwanted(c->runner) ? fv_fail(&error, FV_ERROR_CANCELLED, "stopped") : run_task(c, task, number, &facts, &error);
        if (status == FV_OK) continue;
        pthread_mutex_lock(&c->mutex);
        if (!c->failed) c->error = error;
        c->failed = 1;
        pthread_mutex_unlock(&c->mutex);
    }
    return NULL;
}

static fv_status run_tasks(fv_item_runner *r, const fv_stage *stage, bool sum, fv_error *error) {
    fv_task_facts facts = { 0 };
    int64_t       tasks = stage->serial ? 1 : stage->ntasks;
    int       threads = (int)FV_MIN(FV_MIN(r->threads, tasks), fv__budget_at_once(&r->text->budget, r->threads, stage->memory));
    crew      c = { .runner = r, .stage = stage, .sum = sum };
    pthread_t helpers[64];
    for (int64_t task = 0; task < tasks && threads <= 1; task++) {
        if (is_unwanted(r)) return fv_fail(error, FV_ERROR_CANCELLED, "stopped");
        FV_TRY(run_task(&c, task, 0, &facts, error));
    }
    if (threads <= 1) return FV_OK;
    int started = 0;
    pthread_mutex_init(&c.mutex, NULL);
    while (started < FV_MIN(threads - 1, 64) && !fv__thread_start(&helpers[started], work, &c)) started++;
    work(&c);
    for (int i = 0; i < started; i++) pthread_join(helpers[i], NULL);
    pthread_mutex_destroy(&c.mutex);
    if (!c.failed) return FV_OK;
    *error = c.error;
    return c.error.code;
}

static fv_status run_stage(fv_item_runner *r, const fv_stage *stage, fv_error *error) {
    bool closed;
    FV_TRY(fv__stage_closed(r->instance, stage, &closed, error));
    if (closed) return FV_OK;
    FV_TRY(run_tasks(r, stage, false, error));
    return fv__stage_end(r->instance, stage, error);
}

static fv_status run_stages(fv_item_runner *r, fv_error *error) {
    for (int k = 0; k < r->instance->plan->nstages; k++) FV_TRY(run_stage(r, &r->instance->plan->stages[k], error));
    return FV_OK;
}

/* ---------------------------------------------------------------- tables */

typedef struct collecting {
    fv_item_runner *runner;
    fv_made        *made;
} collecting;

static const fv_sink *sink_of(const fv_item_runner *r, const fv_collected *one) {
    const fv_graph *graph = r->instance->graph;
    for (int k = 0; k < graph->nsinks; k++)
        if (graph->sinks[k].statement == one->statement) return &graph->sinks[k];
    return NULL;
}

static fv_status write_own(fv_item_runner *r, const fv_collected *one, fv_made *made, fv_error *error) {
    const fv_table_format *format = fv__table_format_for(one->file);
    fv_table_options       options = { .table = one->table, .key = one->key };
    fv_output             *output = fv__outputs_table(r->text->outputs, one->file, one->key);
    fv_status              status = fv__outputs_check(r->text->outputs, output->path, error);
    if (status == FV_OK) status = fv__outputs_begin(r->text->outputs, output, FV_OUTPUT_ALONE, r->context.written, error);
    if (status == FV_OK) status = format->write(output->temporary, output->path, one->type, &options, one->rows, error);
    if (status == FV_OK)
        add_output(made, output);
    else if (output->state == FV_OUTPUT_OPEN) {
        fv__error_rename(error, output->temporary, output->path);
        fv__path_remove(output->temporary, NULL);
        fv__outputs_abandon(r->text->outputs, output);
    }
    fv__output_leave(output);
    return status;
}

/* What makes rows alerts, if they are (operator alert); the caller frees. */
static char *alert_of(const fv_table_type *type) {
    cJSON      *metadata = type->metadata ? cJSON_Parse(type->metadata) : NULL;
    const char *rule = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "fovea.alert"));
    char       *kept = rule ? fv__strdup(rule) : NULL;
    cJSON_Delete(metadata);
    return kept;
}

static fv_status take_rows(fv_made *made, const fv_collected *one, fv_error *error) {
    made->tables = fv__realloc(made->tables, (size_t)(made->ntables + 1) * sizeof *made->tables);
    fv_made_table *table = &made->tables[made->ntables++];
    table->file = one->kind == FV_SINK_FILE ? fv__strdup(one->file) : NULL;
    table->table = one->table ? fv__strdup(one->table) : NULL;
    table->name = fv__strdup(one->name);
    table->alert = alert_of(one->type);
    table->scalar = one->scalar;
    table->nrows = 0;
    table->rows = (fv_bytes){ 0 };
    table->type.ncolumns = one->type->ncolumns; /* its columns alone: the whole type is much larger than most rows */
    memcpy(table->type.column, one->type->column, (size_t)one->type->ncolumns * sizeof *one->type->column);
    table->type.metadata = NULL;
    for (;;) {
        const fv_cell *cells;
        int64_t        nrows;
        FV_TRY(one->rows->next(one->rows, &cells, &nrows, error));
        if (!nrows) return FV_OK;
        fv__rows_put(&table->rows, one->type, cells, nrows);
        table->nrows += nrows;
    }
}

static fv_status take_table(void *context, const fv_collected *one, fv_error *error) {
    const collecting *c = context;
    const fv_sink    *sink = sink_of(c->runner, one);
    bool own = one->kind == FV_SINK_FILE && !fv__table_format_for(one->file)->in_place && tells_items(c->runner, sink);
    return own ? write_own(c->runner, one, c->made, error) : take_rows(c->made, one, error);
}

static fv_status collect(fv_item_runner *r, fv_made *made, fv_error *error) {
    fv_result *result = fv_result_new();
    collecting c = { r, made };
    fv_status  status = fv__collect_values(result, r->instance, error);
    if (status == FV_OK) status = fv__collect_each(result, &r->context, take_table, &c, error);
    fv_result_free(result);
    return status;
}

/* ---------------------------------------------------------------- an item */

static fv_status open_store(fv_item_runner *r, fv_error *error) {
    fv_store_options options = { .folder = r->folder, .writer = "transient", .memory = r->store, .transient = true };
    FV_TRY(fv__store_open(&options, &r->context.store, error));
    memset(r->instance->scalar_known, 0, (size_t)r->instance->graph->nnodes);
    return FV_OK;
}

static void close_store(fv_item_runner *r) {
    fv__store_close(r->context.store);
    r->context.store = NULL;
}

/* Files are complete and not durable yet: who commits syncs those of many items at once. */
static void hand_over_unsynced(fv_made *made) {
    if (!made->noutputs) return;
    made->outputs[0]->unsynced = made->unsynced;
    made->unsynced = (fv_paths){ 0 };
}

fv_status fv__item_run(fv_item_runner *r, const fv_live_item *item, fv_made *made, fv_diagnostics *diagnostics, fv_error *error) {
    *made = (fv_made){ 0 };
    FV_TRY(take_up(r, item, diagnostics, error));
    FV_TRY(fill_names(r, error));
    FV_TRY(open_store(r, error));
    fv__paths_gather(&made->unsynced);
    fv_status status = begin_outputs(r, error);
    if (status == FV_OK) status = run_stages(r, error);
    if (status == FV_OK) status = collect(r, made, error);
    end_outputs(r, made, status == FV_OK);
    fv__paths_gather(NULL);
    close_store(r);
    hand_over_unsynced(made);
    if (status != FV_OK) {
        for (int i = 0; i < made->noutputs; i++) fv__outputs_abandon(r->text->outputs, made->outputs[i]);
        fv__made_release(made);
    }
    if (!item->image) forget(r); /* it is bound to its file */
    return status;
}

fv_status fv__item_sum(fv_item_runner *r, const fv_live_item *item, fv_diagnostics *diagnostics, fv_error *error) {
    fv_status status = FV_OK;
    FV_TRY(take_up(r, item, diagnostics, error));
    if (!r->instance->sums) return FV_OK;
    FV_TRY(open_store(r, error));
    const fv_plan *plan = r->instance->plan;
    for (int k = 0; k < plan->nstages && status == FV_OK; k++)
        if (fv__stage_summing(&plan->stages[k]) >= 0) status = run_tasks(r, &plan->stages[k], true, error);
    close_store(r);
    return status;
}

bool fv__item_opened(const fv_item_runner *r) { return r->opened; }

int64_t fv__item_memory(const fv_item_runner *r) { return r->memory; }
