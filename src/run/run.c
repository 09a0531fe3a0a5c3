/* A run from start to end: checks, manifest, store, engine, tables, commit. */
#include "run/run.h"
#include "base/file.h"
#include "base/host.h"
#include "base/remote.h"
#include "exec/sampled.h"
#include "run/claims_source.h"
#include "run/manifest.h"
#include "run/own_inputs.h"
#include "run/results.h"
#include "run/run_facts.h"
#include "run/scheduler.h"
#include "run/worker_threads.h"
#include "store/mirror.h"
#include "store/store_place.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- defaults */

int fv__default_workers(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : FV_MAX(CPU_COUNT(&set), 1);
}

static int64_t default_disk(const char *folder) {
    struct statvfs s;
    return statvfs(folder, &s) ? (int64_t)10 << 30 : FV_MAX((int64_t)s.f_bavail * (int64_t)s.f_frsize / 10, 1);
}

/* ---------------------------------------------------------------- checks before anything starts */

fv_status fv__run_sample(const fv_context *context, int segment, fv_instance **instance, fv_diagnostics *diagnostics,
                         fv_error *error) {
    const fv_segment *s = &context->bindings->segments[segment];
    int64_t           n = s->count, tries = FV_MIN(n, 16);
    fv_status (*open)(const fv_context *, int64_t, fv_instance **, fv_diagnostics *, fv_error *) =
        segment ? fv__instance_sample : fv__instance_open; /* units of the first segment use nothing that others make */
    for (int64_t k = 0; k < tries; k++) {
        fv_diagnostics own = { 0 };
        fv_status      status = open(context, s->first + k * n / tries, instance, &own, error);
        bool           last = status == FV_OK || k == tries - 1;
        if (last)
            fv__diagnostics_take(diagnostics, &own);
        else
            fv__diagnostics_release(&own);
        if (last) return status;
    }
    return fv_fail(error, FV_ERROR_INPUT, "there is no item");
}

/* A larger file is taken to need more in proportion. */
static double largest_over_sample(const fv_bindings *bindings, const fv_segment *segment, int64_t sample) {
    double own = (double)fv__bindings_size(bindings, sample), worst = 1;
    for (int64_t unit = segment->first; own > 0 && unit < segment->first + segment->count; unit++)
        worst = FV_MAX(worst, (double)fv__bindings_size(bindings, unit) / own);
    return worst;
}

fv_status fv__run_outlook(const fv_context *context, fv_outlook *outlook, fv_diagnostics *diagnostics, fv_error *error) {
    const fv_bindings *bindings = context->bindings;
    *outlook = (fv_outlook){ 0 };
    for (int s = 0; s < bindings->nsegments; s++) {
        const fv_segment *segment = &bindings->segments[s];
        fv_instance      *sample;
        FV_TRY(fv__run_sample(context, s, &sample, diagnostics, error));
        double scale = largest_over_sample(bindings, segment, sample->item);
        outlook->memory = FV_MAX(outlook->memory, sample->plan->memory);
        outlook->most = FV_MAX(outlook->most, (int64_t)((double)sample->plan->memory * scale));
        outlook->work += sample->plan->work * (double)segment->count;
        for (int k = 0; k < sample->plan->nstages; k++)
            outlook->tasks = FV_MAX(outlook->tasks, sample->plan->stages[k].serial ? 1 : sample->plan->stages[k].ntasks);
        fv__instance_close(sample);
    }
    return FV_OK;
}

typedef struct planned { /* a file that the run will write, or a table in one */
    char   *place, *path;
    int     table; /* statement that makes the table; -1: an image */
    int64_t item;
} planned;

static int by_place(const void *a, const void *b) {
    const planned *x = a, *y = b;
    int            order = strcmp(x->place, y->place);
    return order ? order : (x->item > y->item) - (x->item < y->item);
}

static planned image_output(char *path_take, int64_t item) {
    return (planned){ fv__outputs_place(path_take), path_take, -1, item };
}

static planned table_output(const fv_sink *sink) {
    planned p = { fv__outputs_place(sink->file), fv__strdup(sink->file), sink->statement, 0 };
    if (!fv__table_format_for(sink->file)->in_place) return p;
    char *place = fv__sprintf("%s\n%s", p.place, sink->table); /* holds many tables */
    free(p.place);
    p.place = place;
    return p;
}

typedef struct planned_list { /* of all segments */
    planned *all;
    int64_t  count, capacity;
} planned_list;

static void add_output(planned_list *p, planned output) {
    if (p->count == p->capacity) {
        p->capacity = FV_MAX(2 * p->capacity, 16);
        p->all = fv__realloc(p->all, (size_t)p->capacity * sizeof *p->all);
    }
    p->all[p->count++] = output;
}

static fv_status list_outputs(const fv_context *context, const fv_segment *segment, const fv_graph *graph, fv_outputs *outputs,
                              planned_list *files, fv_error *error) {
    for (int k = 0; k < graph->nsinks; k++) {
        const fv_sink *sink = &graph->sinks[k];
        if (sink->kind != FV_SINK_FILE) continue;
        if (sink->value->type.kind != FV_KIND_IMAGE) {
            bool replaced = !sink->append && !fv__table_format_for(sink->file)->in_place;
            if (!sink->append) add_output(files, table_output(sink));
            FV_TRY(replaced ? fv__outputs_check(outputs, sink->file, error) : fv__outputs_check_name(sink->file, error));
            continue;
        }
        for (int64_t unit = segment->first; unit < segment->first + segment->count; unit++) {
            char *path;
            FV_TRY(fv__template_fill(context->bindings, sink->file_template, unit, sink->combination, &sink->value->type.image,
                                     &path, error));
            add_output(files, image_output(path, unit));
            FV_TRY(fv__outputs_check(outputs, path, error));
        }
    }
    return FV_OK;
}

static fv_status written_twice(const fv_bindings *bindings, const planned *a, const planned *b, fv_error *error) {
    if (a->item == b->item) return fv_fail(error, FV_ERROR_USAGE, "two results would be written to %s", b->path);
    return fv_fail(error, FV_ERROR_USAGE,
                   "two results would be written to %s: those of %s and %s; {folder}, {path} or {index} in the name tells such "
                   "items apart",
                   b->path, fv__bindings_item(bindings, a->item), fv__bindings_item(bindings, b->item));
}

/* Files that hold many tables may be read and written by the same text. */
static fv_status check_inputs(const fv_context *context, const fv_graph *graph, const planned *all, int64_t count,
                              fv_error *error) {
    char  **paths = fv__alloc((size_t)(count + 1) * sizeof *paths);
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++)
        if (all[i].table < 0 || !fv__table_format_for(all[i].path)->in_place) paths[n++] = all[i].path;
    fv_error  found = { 0 };
    fv_status status = fv__check_own_inputs(context, graph, paths, n, &found);
    if (status != FV_OK && error) *error = found;
    free(paths);
    return status;
}

/* Every file that the run will write: none twice, none that is not ours. */
static fv_status check_outputs(const fv_context *context, planned_list *files, fv_error *error) {
    planned *all = files->all;
    if (files->count) qsort(all, (size_t)files->count, sizeof *all, by_place);
    for (int64_t i = 1; i < files->count; i++) {
        bool one_table = all[i].table >= 0 && all[i].table == all[i - 1].table; /* rows of a sweep */
        if (!one_table && !strcmp(all[i - 1].place, all[i].place))
            return written_twice(context->bindings, &all[i - 1], &all[i], error);
    }
    return FV_OK;
}

static void free_planned(planned_list *files) {
    for (int64_t i = 0; i < files->count; i++) {
        free(files->all[i].place);
        free(files->all[i].path);
    }
    free(files->all);
}

/* ---------------------------------------------------------------- the run */

typedef struct running {
    fv_run_settings *settings;
    const fv_engine *engine;
    const char      *folder; /* NULL: transient, nothing of it is kept on disk */
    char            *run_folder, writer[96];
    fv_context       context;
    fv_bindings     *bindings;
    bool             items_told; /* while they go on, something is told of what the run makes of all */
    fv_outputs      *outputs;
    fv_record       *record;
    fv_result       *result;
    const fv_share  *share;  /* NULL: the run is ours alone */
    fv_lease        *lease;  /* on a run that is ours alone and writes files */
    bool             writes; /* files, as far as is known before the start */
    fv_bytes         tables; /* names of the table files that it replaces, each with its 0 */
    planned_list     planned;
    fv_instance     *first; /* the unit that the text was checked with, until the scheduler takes it as an item */
    char            *graph; /* of all parts, as JSON; NULL: not known */
    fv_bytes         left;  /* names of operators that have a kernel for devices and run on the CPU all the same */
} running;

/* Whether this process ends the run: gathers tables, builds the record, keeps the store's budget. */
static bool ends_run(const running *r) { return !r->share || r->share->finish; }

/* Before anything is committed, the record of it and the pieces of files that it speaks of are safe. */
static fv_status before_commit(void *context, fv_error *error) {
    running *r = context;
    if (r->record) FV_TRY(fv__record_flush(r->record, error));
    return fv__output_list_sync(r->context.written, error);
}

static fv_status open_store(running *r, fv_error *error) {
    char            host[40] = "host";
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    gethostname(host, sizeof host - 1);
    snprintf(r->writer, sizeof r->writer, "%s-%d-%llx", host, (int)getpid(),
             (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
    char            *folder = fv__sprintf("%s/store", r->folder);
    fv_store_options options = { .folder = folder,
                                 .writer = r->writer,
                                 .memory = r->settings->budget.store,
                                 .patience = r->settings->options.patience * r->settings->options.workers,
                                 .shared = r->engine->shared || r->share,
                                 .late = r->share && r->bindings->collection }; /* an item is one process's until it is done */
    fv_status        status = fv__mirror_open(r->folder, &options.mirror, error);
    if (status == FV_OK && options.mirror && options.shared) {
        fv__mirror_close(options.mirror);
        status = fv_fail(error, FV_ERROR_USAGE, "the results of this run lie behind an address: its workers need --apart");
    }
    if (status == FV_OK) status = fv__store_open(&options, &r->context.store, error);
    if (status == FV_OK) fv__store_on_flush(r->context.store, before_commit, r);
    free(folder);
    return status;
}

static fv_status open_transient_store(running *r, fv_error *error) {
    fv_store_options options = {
        .folder = fv__temporary_place(), .writer = "transient", .memory = r->settings->budget.store, .transient = true
    };
    return fv__store_open(&options, &r->context.store, error);
}

static void trim_store(const running *r, int64_t budget) {
    char *folder = fv__sprintf("%s/store", r->folder);
    fv__store_trim(folder, budget);
    free(folder);
}

static void note_run(running *r) {
    const fv_bindings *b = r->context.bindings;
    fv__facts_begin(r->record, r->settings, r->share ? "worker" : "run");
    fv__record_fact(r->record, "engine", r->engine->name);
    if (r->engine->ranks) { /* a worker's number is that of its rank times this, and its own */
        char lanes[24];
        snprintf(lanes, sizeof lanes, "%d", fv__worker_threads_threads(r->settings->options.workers));
        fv__record_fact(r->record, "rank-lanes", lanes);
    }
    fv__record_fact(r->record, "device", b->device ? b->on.kind : "cpu");
    if (b->device_note) fv__record_fact(r->record, "device-note", b->device_note);
    if (r->left.size) fv__record_fact(r->record, "device-left", (const char *)r->left.data);
    fv__record_fact(r->record, "text", r->context.program->text);
}

static fv_status finish_tables(running *r, fv_error *error) {
    int       before = r->result->noutputs;
    fv_status status = fv__collect_finish(r->result, &r->context, r->outputs, error);
    for (int i = before; i < r->result->noutputs; i++) fv__record_output(r->record, r->result->outputs[i]);
    return status;
}

static fv_status run_items(running *r, fv_error *error) {
    fv_claims *claims = NULL;
    if (r->share) FV_TRY(fv__claims_open(r->share, r->context.store, &claims, error));
    fv_scheduler *scheduler = fv__scheduler_new(&r->context, r->settings, r->engine, r->outputs, r->record, r->result);
    fv__scheduler_begin_with(scheduler, r->first);
    fv__scheduler_tell_items(scheduler, r->items_told);
    r->first = NULL;
    if (claims) fv__claims_source_use(scheduler, claims, r->share);
    fv_status status = r->engine->run(scheduler, r->settings, r->run_folder, error);
    if (status == FV_ERROR_CANCELLED) fv__scheduler_so_far(scheduler);
    fv_error  later = { 0 };
    fv_status committed = fv__outputs_commit(r->outputs, &later);
    if (status == FV_OK && committed != FV_OK) *error = later;
    if (status == FV_OK) status = committed;
    r->result->facts.started = r->result->facts.started || status == FV_OK;
    if (status == FV_OK && ends_run(r)) status = finish_tables(r, error);
    if (status == FV_OK) status = fv__outputs_commit(r->outputs, error);
    fv_status flushed = fv__store_flush(r->context.store, &later); /* also after a failure: what is done is not lost */
    if (status == FV_OK && flushed != FV_OK) *error = later;
    if (flushed == FV_OK) fv__scheduler_settle(scheduler);
    fv__scheduler_free(scheduler);
    fv__claims_close(claims);
    return status == FV_OK ? flushed : status;
}

/* What the device does not take because of its parameters, type or size. */
static void note_left(running *r, const fv_graph *graph) {
    for (int i = 0; i < graph->nnodes; i++) {
        const fv_node *node = graph->nodes[i];
        if (!graph->device.kind || !node->op || !node->op->device || node->on_device) continue;
        bool named = r->left.size && strstr((char *)r->left.data, node->op->name);
        if (!named) fv__bytes_printf(&r->left, "%s%s", r->left.size ? ", " : "", node->op->name);
    }
}

/* A unit of each segment, so that mistakes of all of them are found before the first one begins; NULL: none could be opened,
 * which its units report themselves when it comes to it, unless they all need a file that is not there. */
static fv_status open_samples(running *r, fv_instance **samples, fv_diagnostics *diagnostics, fv_error *error) {
    const fv_bindings *bindings = r->context.bindings;
    fv_status          worst = FV_OK;
    for (int s = 0; s < bindings->nsegments; s++) {
        fv_diagnostics own = { 0 };
        fv_error       why = { 0 };
        fv_status      status = fv__run_sample(&r->context, s, &samples[s], &own, &why);
        bool           told_later = bindings->collection && status != FV_ERROR_USAGE && !own.missing;
        if (status != FV_OK) samples[s] = NULL;
        if (status != FV_OK && !told_later) {
            fv__diagnostics_take(diagnostics, &own);
            if (worst == FV_OK) *error = why;
            if (worst == FV_OK) worst = status;
        }
        fv__diagnostics_release(&own);
    }
    return worst;
}

static fv_status check_files(running *r, fv_instance **samples, planned_list *files, fv_error *error) {
    const fv_bindings *bindings = r->context.bindings;
    fv_status          status = FV_OK;
    for (int s = 0; s < bindings->nsegments && status == FV_OK; s++)
        if (samples[s]) status = list_outputs(&r->context, &bindings->segments[s], samples[s]->graph, r->outputs, files, error);
    for (int s = 0; s < bindings->nsegments; s++) { /* tells more than that a file is there already */
        fv_status own = samples[s] ? check_inputs(&r->context, samples[s]->graph, files->all, files->count, error) : FV_OK;
        if (own != FV_OK) return own;
    }
    return status == FV_OK ? check_outputs(&r->context, files, error) : status;
}

/* Programs run only if the user has said so: a pipeline may come from anybody. */
static fv_status check_programs(const running *r, fv_instance **samples, fv_error *error) {
    for (int s = 0; s < r->context.bindings->nsegments && !r->context.bindings->commands; s++)
        for (int k = 0; samples[s] && k < samples[s]->graph->nnodes; k++) {
            const fv_op *op = samples[s]->graph->nodes[k]->op;
            if (op && op->program) return fv__program_refused(op, error);
        }
    return FV_OK;
}

static bool writes_files(const fv_instance *sample) {
    bool writes = !sample; /* not known: some may be */
    for (int k = 0; !writes && k < sample->graph->nsinks; k++) writes = sample->graph->sinks[k].kind == FV_SINK_FILE;
    return writes;
}

static void keep_tables(running *r, const planned_list *files) {
    for (int64_t i = 0; i < files->count; i++) {
        const planned *file = &files->all[i];
        bool           same = i && !strcmp(file->place, files->all[i - 1].place); /* rows of a sweep */
        if (file->table < 0 || same || fv__table_format_for(file->path)->in_place) continue;
        fv__bytes_append(&r->tables, file->path, strlen(file->path) + 1);
    }
}

/* task: bytes that one task of the run needs; left alone where that differs from item to item. */
static fv_status start(running *r, int64_t *task, fv_diagnostics *diagnostics, fv_error *error) {
    int           n = r->context.bindings->nsegments;
    fv_instance **samples = fv__calloc((size_t)(n + 1) * sizeof *samples);
    fv_status     status = open_samples(r, samples, diagnostics, error);
    if (status == FV_OK) status = check_programs(r, samples, error);
    if (status == FV_OK) status = check_files(r, samples, &r->planned, error);
    if (status == FV_OK && !r->context.bindings->collection && samples[0]) *task = samples[0]->plan->memory;
    if (status == FV_OK) keep_tables(r, &r->planned);
    if (status == FV_OK) r->items_told = fv__items_survey(r->bindings, samples, &r->bindings->of_items);
    if (status == FV_OK && r->folder) r->graph = fv__facts_graph(r->context.bindings, samples);
    for (int s = 0; s < n; s++) {
        r->writes = r->writes || writes_files(samples[s]);
        if (status == FV_OK && samples[s]) note_left(r, samples[s]->graph);
        if (s) fv__instance_close(samples[s]);
    }
    r->first = samples[0];
    if (r->left.size) fv__log("fovea: on the CPU, because the device's kernel does not take it: %s", (char *)r->left.data);
    free(samples);
    return status;
}

/* A second run of the same command would take the items from this one, and another that replaces the same table would make it in
 * vain: they are refused before they begin. What else hinders a claim is told when it comes to writing, if it does. */
static fv_status claim_run(running *r, fv_error *error) {
    if (!r->writes) return FV_OK;
    char     *path = fv__sprintf("%s/run", r->run_folder);
    fv_status status = fv__lease_acquire(path, &r->lease, NULL, error);
    if (status == FV_ERROR_BUSY) fv__error_rename(error, path, "what this command makes");
    free(path);
    for (size_t at = 0; status == FV_OK && at < r->tables.size; at += strlen((char *)r->tables.data + at) + 1) {
        fv_error why = { 0 };
        status = fv__outputs_claim(r->outputs, (char *)r->tables.data + at, &why);
        if (status == FV_ERROR_BUSY)
            *error = why;
        else
            status = FV_OK;
    }
    return status;
}

/* Beside a store behind an address lies what tells of its runs. */
static fv_status send_record(const running *r, fv_error *error) {
    static const char *const names[] = { "manifest.json", "graph.json", "record.db" };
    char                    *address = fv__mirror_address(r->folder);
    fv_status                status = FV_OK;
    for (int i = 0; address && status == FV_OK && i < FV_COUNT(names); i++) {
        char *file = fv__path_inside(r->run_folder, names[i]);
        char *object = fv__sprintf("%s/runs/%s/%s", address, fv__path_name(r->run_folder), names[i]);
        if (fv__file_exists(file)) status = fv__remote_put_file(file, object, error);
        free(file);
        free(object);
    }
    free(address);
    return status;
}

static fv_status forget_samples(const running *r, fv_error *error) {
    char     *folder = fv__path_inside(r->run_folder, FV_SAMPLES_FOLDER);
    fv_status status = fv__path_remove(folder, error);
    free(folder);
    return status;
}

static fv_status run_checked(running *r, fv_diagnostics *diagnostics, fv_error *error) {
    const fv_budget *budget = &r->settings->budget;
    int64_t          task = 0;
    if (r->settings->options.fresh) trim_store(r, 0); /* not what runs that go on right now have stored */
    FV_TRY(open_store(r, error));
    FV_TRY(fv__outputs_open(r->folder, r->settings->options.overwrite, r->settings->options.fresh, &r->outputs, error));
    fv__outputs_note_patterns(r->outputs, r->context.bindings);
    if (r->share && r->context.bindings->collection) fv__outputs_yield(r->outputs);
    if (ends_run(r)) FV_TRY(start(r, &task, diagnostics, error));
    FV_TRY(fv__budget_check(budget, task, error));
    if (r->share)
        r->run_folder = fv__strdup(r->share->run_folder);
    else
        FV_TRY(fv__manifest_freeze(r->folder, r->context.program, r->bindings, &r->context.plan_options, &r->run_folder, error));
    if (!r->share) FV_TRY(claim_run(r, error));
    r->context.run_folder = r->run_folder;
    if (r->settings->options.fresh && !r->share) FV_TRY(forget_samples(r, error));
    FV_TRY(fv__facts_keep_graph(r->run_folder, r->graph, error));
    if (r->engine->shared && !r->share) FV_TRY(fv__manifest_spool(r->run_folder, r->context.bindings, error));
    FV_TRY(fv__record_open(r->run_folder, r->writer, &r->record, error));
    note_run(r);
    fv__buffer_allow(budget->buffers);
    fv_status status = run_items(r, error);
    fv__buffer_allow(-budget->buffers);
    fv__facts_end(r->record, status, error, r->result, ends_run(r));
    fv__record_close(r->record);
    r->record = NULL;
    if (ends_run(r) && (r->result->facts.tasks_run > 0 || r->share)) {
        fv_error  later = { 0 };
        fv_status built = fv__record_build(r->run_folder, &later);
        if (built == FV_OK) built = send_record(r, &later);
        if (built != FV_OK) fv__log_failure("fovea: the record of this run could not be written: %s", later.message);
    }
    return status;
}

/* The smallest bound of all is enough for most runs in memory: only those that want more ask how much is free. */
static void settle_bound(running *r) {
    const fv_run_settings *settings = r->settings;
    const fv_plan         *plan = r->first && r->context.bindings->nunits == 1 ? r->first->plan : NULL;
    if (settings->options.memory > 0) return;
    fv_demand demand = plan ? fv__plan_demand(plan, 1, settings->options.workers) : (fv_demand){ 0 };
    if (plan && fv__budget_suffices(&settings->budget, settings->options.workers, &demand)) return;
    r->settings->budget = fv__budget_divide(0, &settings->budget.sharers);
    r->settings->budget.cut_small = !fv__plan_can_shrink(&r->context.plan_options);
    fv__store_bound(r->context.store, r->settings->budget.store);
}

static fv_status run_transient(running *r, fv_diagnostics *diagnostics, fv_error *error) {
    const fv_budget *budget = &r->settings->budget;
    int64_t          task = 0;
    FV_TRY(open_transient_store(r, error));
    FV_TRY(fv__outputs_open(NULL, false, false, &r->outputs, error));
    FV_TRY(start(r, &task, diagnostics, error));
    settle_bound(r);
    FV_TRY(fv__budget_check(budget, task, error));
    fv__buffer_allow(budget->buffers);
    fv_status status = run_items(r, error);
    fv__buffer_allow(-budget->buffers);
    return status;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void name_some(const char *const *names, int64_t count, fv_bytes *out) {
    const int64_t most = 5;
    for (int64_t i = 0; i < FV_MIN(count, most); i++) fv__bytes_printf(out, "%s%s", i ? ", " : "", names[i]);
    if (count > most) fv__bytes_printf(out, " and %lld more", (long long)(count - most));
}

/* Files that the run should have written and did not, what is made of all items first. Those of an earlier run are easily taken
 * for results of this one. */
static void tell_missing(const running *r) {
    int64_t      n = 0, nold = 0;
    const char **missing = fv__alloc((size_t)(r->planned.count + 1) * sizeof *missing);
    const char **old = fv__alloc((size_t)(r->planned.count + 1) * sizeof *old);
    char       **made = r->result->outputs;
    if (r->result->noutputs) qsort(made, (size_t)r->result->noutputs, sizeof *made, by_text);
    for (int of_items = 0; of_items < 2; of_items++)
        for (int64_t i = 0; i < r->planned.count; i++) {
            const planned *p = &r->planned.all[i];
            bool           item = p->table < 0 && fv__bindings_unit(r->bindings, p->item).collection != FV_RUN;
            bool           rows = i && p->table >= 0 && !strcmp(p->path, p[-1].path); /* of a sweep */
            if (item != of_items || rows) continue;
            if (made && bsearch(&p->path, made, (size_t)r->result->noutputs, sizeof *made, by_text)) continue;
            missing[n++] = p->path;
            if (!access(p->path, F_OK)) old[nold++] = p->path;
        }
    fv_arena *arena = &r->result->arena;
    r->result->missing = fv__arena_alloc(arena, (size_t)(n + 1) * sizeof *missing);
    for (int64_t i = 0; i < n; i++) r->result->missing[r->result->nmissing++] = fv__arena_strdup(arena, missing[i]);
    fv_bytes text = { 0 };
    name_some(missing, n, &text);
    if (nold) fv__bytes_printf(&text, ". Of an earlier run, and out of date: ");
    name_some(old, nold, &text);
    if (n) fv__log_failure("fovea: not made: %s", (char *)text.data);
    fv__bytes_release(&text);
    free(missing);
    free(old);
}

static fv_status tell_failures(const running *r, fv_error *error) {
    int64_t items = 0, of_run = 0, all = 0;
    for (int i = 0; i < r->result->nfailures; i++) *(strcmp(r->result->failures[i].item, "all items") ? &items : &of_run) += 1;
    for (int l = 0; l < r->bindings->nlists; l++) all += r->bindings->lists[l].collection == l ? r->bindings->lists[l].count : 0;
    if (!items) return fv_fail(error, FV_ERROR_INPUT, "what is made of all items failed");
    return fv_fail(error, FV_ERROR_INPUT, "%lld of %lld items failed%s", (long long)items, (long long)FV_MAX(all, 1),
                   of_run ? ", and with them what needs every item" : "");
}

/* A store behind an address has a folder here, and one process that writes to both. */
static fv_status name_store(const char *folder, const fv_run_options *options, const fv_engine *engine, fv_error *error) {
    const char *store = options->store;
    if (!store || !fv__is_remote(store)) return FV_OK;
    if (!fv__remote_lists(store))
        return fv_fail(error, FV_ERROR_USAGE, "--store %s: a store is a folder, or lies behind an s3:// or hdfs:// address",
                       store);
    if (engine && engine->shared)
        return fv_fail(error, FV_ERROR_USAGE,
                       "--store %s: the workers of --engine %s need a folder that all of them see; threads can keep results "
                       "behind an address, and so can Spark and Dask with --apart",
                       store, options->engine);
    return fv__mirror_name(folder, store, options->fresh, error);
}

static fv_status settle(fv_run_settings *settings, const fv_bindings *bindings, const fv_plan_options *plan_options,
                        const fv_engine **engine, fv_error *error) {
    fv_run_options *options = &settings->options;
    if (!options->engine) options->engine = fv__engine_default();
    if (options->patience <= 0) options->patience = 2.5;
    FV_TRY(fv__engine_named(options->engine, engine, error));
    if ((*engine)->prepare) FV_TRY((*engine)->prepare(settings, error));
    if (options->workers <= 0) options->workers = fv__default_workers();
    options->transient = options->transient && !options->store && !bindings->names_files && !(*engine)->shared;
    fv_sharers sharers = fv__engine_sharers(*engine, options->workers, options->ranks, bindings);
    settings->budget =
        options->transient && options->memory <= 0 ? fv__budget_smallest(&sharers) : fv__budget_divide(options->memory, &sharers);
    settings->budget.cut_small = !fv__plan_can_shrink(plan_options);
    return FV_OK;
}

static fv_status run_kept(running *r, fv_diagnostics *diagnostics, fv_error *error) {
    FV_TRY(fv__path_make_folders(r->folder, error));
    fv_status status = run_checked(r, diagnostics, error);
    r->result->facts.peak_memory =
        FV_MAX(fv__system_number("/proc/self/status", "VmHWM:"), 0) * 1024; /* getrusage tells a parent's */
    return status;
}

static fv_status run_all(const fv_program *program, fv_bindings *bindings, const fv_plan_options *plan_options,
                         fv_run_settings settings, const fv_share *share, fv_result **out, fv_diagnostics *diagnostics,
                         fv_error *error) {
    settings.began = fv__now() - settings.options.waited;
    running r = { .settings = &settings, .bindings = bindings, .result = fv__calloc(sizeof *r.result), .share = share };
    r.context = (fv_context){ .program = program,
                              .bindings = bindings,
                              .plan_options = *plan_options,
                              .written = fv__output_list_new(),
                              .poison = settings.options.poison - 1,
                              .cancel = settings.options.cancel };
    fv_status status = settle(&settings, bindings, plan_options, &r.engine, error);
    bool      transient = settings.options.transient = settings.options.transient && !share;
    char     *folder = transient ? NULL : fv__store_place(settings.options.store, true);
    r.folder = folder;
    if (!transient && !share) fv__arrays_hash(bindings);
    if (status == FV_OK && !transient) status = name_store(folder, &settings.options, r.engine, error);
    if (status == FV_OK) status = transient ? run_transient(&r, diagnostics, error) : run_kept(&r, diagnostics, error);
    fv__instance_close(r.first);
    if (r.record) fv__record_close(r.record);
    if (r.outputs) fv__outputs_free(r.outputs);
    if (r.context.store) fv__store_close(r.context.store);
    fv__output_list_free(r.context.written);
    /* Only now: before, what is stored may be all that is left of a run that was killed and now goes on. */
    if (status == FV_OK && ends_run(&r) && !transient) trim_store(&r, default_disk(r.folder));
    if (r.lease) fv__lease_release(r.lease);
    free(r.run_folder);
    free(folder);
    free(r.graph);
    fv__bytes_release(&r.left);
    fv__bytes_release(&r.tables);
    r.result->facts.seconds = fv__now() - settings.began - settings.options.waited;
    if (status == FV_OK && r.result->nfailures) {
        tell_missing(&r);
        status = tell_failures(&r, error);
    }
    free_planned(&r.planned);
    *out = r.result;
    return status;
}

fv_status fv__run_all(const fv_program *program, fv_bindings *bindings, const fv_plan_options *plan_options,
                      const fv_run_options *options, fv_result **result, fv_diagnostics *diagnostics, fv_error *error) {
    return run_all(program, bindings, plan_options, (fv_run_settings){ .options = *options }, NULL, result, diagnostics, error);
}

static fv_status freeze(running *r, char **run_folder, fv_diagnostics *diagnostics, fv_error *error) {
    const fv_context *context = &r->context;
    int64_t           task; /* jobs have memory of their own */
    FV_TRY(fv__path_make_folders(r->folder, error));
    if (r->settings->options.fresh) trim_store(r, 0);
    FV_TRY(fv__outputs_open(r->folder, r->settings->options.overwrite, false, &r->outputs, error));
    fv_status status = start(r, &task, diagnostics, error);
    fv__instance_close(r->first);
    fv__outputs_free(r->outputs);
    fv__bytes_release(&r->left);
    fv__bytes_release(&r->tables);
    if (status == FV_OK)
        status = fv__manifest_freeze(r->folder, context->program, r->bindings, &context->plan_options, run_folder, error);
    if (status == FV_OK) status = fv__facts_keep_graph(*run_folder, r->graph, error);
    free(r->graph);
    FV_TRY(status);
    return fv__manifest_spool(*run_folder, context->bindings, error);
}

fv_status fv__run_freeze(const fv_program *program, fv_bindings *bindings, const fv_plan_options *plan_options,
                         const fv_run_options *options, char **run_folder, fv_diagnostics *diagnostics, fv_error *error) {
    char           *folder = fv__store_place(options->store, true);
    fv_run_settings settings = { .options = *options };
    running         r = { .settings = &settings, .folder = folder, .bindings = bindings };
    fv__arrays_hash(bindings);
    r.context = (fv_context){ .program = program, .bindings = bindings, .plan_options = *plan_options, .poison = -1 };
    fv_status status = name_store(folder, options, NULL, error);
    if (status == FV_OK) status = freeze(&r, run_folder, diagnostics, error);
    free_planned(&r.planned);
    free(folder);
    return status;
}

/* Whether trying again would change nothing: all is done, or what failed did so neither because workers died nor for want of
 * memory, of which the next try may have more. */
static bool final(fv_status status, const fv_result *result) {
    if (status == FV_OK) return true;
    if (status != FV_ERROR_INPUT || !result || !result->nfailures) return false;
    for (int i = 0; i < result->nfailures; i++) {
        fv_status cause = result->failures[i].error.code;
        if (cause == FV_ERROR_INTERNAL || cause == FV_ERROR_MEMORY) return false;
    }
    return true;
}

fv_status fv__run_share(const fv_share *share, bool alone, fv_order order, const fv_run_options *options, fv_result **result,
                        fv_error *error) {
    fv_run_settings settings = { .options = *options, .order = order, .allowance = share->allowance };
    fv_program     *program;
    fv_bindings     bindings;
    fv_plan_options plan_options;
    fv_diagnostics  diagnostics = { 0 };
    char           *folder = fv__strdup(share->run_folder); /* FOLDER/runs/HASH */
    for (int k = 0; k < 2; k++) {
        char *slash = strrchr(folder, '/');
        if (slash) *slash = 0;
    }
    fv_status status = fv__manifest_load(share->run_folder, &program, &bindings, &plan_options, error);
    char     *address = fv__mirror_address(folder);
    alone = alone || (share->finish && address); /* nobody else writes to such a store */
    settings.options.store = folder;
    free(address);
    *result = NULL;
    if (status == FV_OK && (share->finish || alone)) fv__claims_finished(share->run_folder, false);
    if (status == FV_OK)
        status = run_all(program, &bindings, &plan_options, settings, alone ? NULL : share, result, &diagnostics, error);
    if ((share->finish || alone) && final(status, *result)) fv__claims_finished(share->run_folder, true);
    fv__diagnostics_release(&diagnostics);
    fv__program_free(program);
    fv__bindings_release(&bindings);
    free(folder);
    return status;
}
