/* The public face of a pipeline: text and arrays in, results out. */
#include "api/first_run.h"
#include "api/pipeline_parts.h"
#include "api/stage_times.h"
#include "api/trust.h"
#include "base/file.h"
#include "base/message.h"
#include "base/program.h"
#include "base/take.h"
#include "devices/device_pool.h"
#include "plan/print.h"
#include "run/claims.h"
#include "run/engine.h"
#include "run/own_inputs.h"
#include <fovea/cluster.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

fv_pipeline *fv_pipeline_new(void) {
    fv_pipeline *p = fv__calloc(sizeof *p);
    p->session = fv__session_new();
    return p;
}

/* Something about the pipeline changes: what is ready would do what it was before. */
static void forget_prepared(fv_pipeline *p) {
    if (!p->looked_at) return;
    fv_session *before = fv__session_enter(p->session);
    fv__prepared_free(p->prepared);
    p->prepared = NULL;
    p->looked_at = false;
    fv__session_enter(before);
}

void fv_pipeline_free(fv_pipeline *p) {
    if (!p) return;
    forget_prepared(p);
    fv__program_free(p->program);
    fv__bindings_release(&p->bindings);
    for (int i = 0; i < p->nsets; i++) free(p->sets[i]);
    free(p->sets);
    free(p->name);
    fv__bytes_release(&p->text);
    fv__bytes_release(&p->messages);
    fv__session_free(p->session);
    free(p);
}

/* ---------------------------------------------------------------- building */

static void clear_messages(fv_pipeline *p) {
    fv__bytes_clear(&p->messages);
    fv__bytes_printf(&p->messages, "%s", "");
}

fv_status fv__pipeline_report(fv_pipeline *p, fv_diagnostics *diagnostics, fv_status status) {
    clear_messages(p);
    if (diagnostics->count)
        fv__diagnostics_format(diagnostics, p->name ? p->name : "pipeline", (char *)p->text.data, &p->messages);
    fv__bytes_append(&p->messages, "", 1);
    fv__diagnostics_release(diagnostics);
    return status;
}

const char *fv_pipeline_messages(const fv_pipeline *p) { return p->messages.data ? (const char *)p->messages.data : ""; }

fv_status fv_pipeline_add(fv_pipeline *p, const char *name, const char *text, fv_error *error) {
    fv_diagnostics diagnostics = { 0 };
    forget_prepared(p);
    fv_session *before = fv__session_enter(p->session);
    fv_status   status = fv__bytes_need(&p->text, strlen(text) + 2, error);
    if (!p->name) p->name = fv__strdup(name);
    if (status == FV_OK) {
        if (p->text.size && p->text.data[p->text.size - 1] != '\n') fv__bytes_append(&p->text, "\n", 1);
        fv__bytes_append(&p->text, text, strlen(text) + 1);
        p->text.size--; /* the end is there, but does not count */
        fv__program_free(p->program);
        p->program = fv__program_parse(p->name, (char *)p->text.data, &diagnostics);
        if (diagnostics.count)
            status =
                fv_fail(error, p->program->incomplete ? FV_ERROR_MEMORY : FV_ERROR_USAGE, "%s", diagnostics.items[0].message);
        else
            status = fv__memory_check(error);
    }
    status = fv__pipeline_report(p, &diagnostics, status);
    fv__session_enter(before);
    return status;
}

fv_status fv_pipeline_add_file(fv_pipeline *p, const char *path, fv_error *error) {
    fv_bytes bytes = { 0 };
    FV_TRY(fv__file_read_all(path, (size_t)16 << 20, &bytes, error));
    fv_status status =
        strlen((char *)bytes.data) == bytes.size
            ? fv_pipeline_add(p, path, (char *)bytes.data, error)
            : fv_fail(error, FV_ERROR_USAGE, "%s is not a pipeline, which is a text; `fovea info` tells what a file holds", path);
    fv__bytes_release(&bytes);
    return status;
}

fv_status fv_pipeline_set(fv_pipeline *p, const char *assignment, fv_error *error) {
    fv_bindings probe = { 0 };
    fv_status   status = FV_OK;
    forget_prepared(p);
    p->sets = fv__realloc(p->sets, (size_t)(p->nsets + 1) * sizeof *p->sets);
    p->sets[p->nsets++] = fv__strdup(assignment);
    for (int i = 0; i < p->nsets && status == FV_OK; i++) status = fv__bindings_set(&probe, p->sets[i], error);
    fv__bindings_release(&probe);
    if (status != FV_OK) free(p->sets[--p->nsets]);
    return status;
}

static bool is_name(const char *name) {
    for (const char *c = name; *c; c++)
        if (!(*c == '_' || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (c > name && *c >= '0' && *c <= '9')))
            return false;
    return *name != 0;
}

fv_status fv_pipeline_array(fv_pipeline *p, const char *name, const fv_image_type *type, const void *data, fv_error *error) {
    if (!is_name(name)) return fv_fail(error, FV_ERROR_USAGE, "\"%s\" cannot be a variable: letters, digits and _ only", name);
    if (type->ndim < 1 || type->ndim > FV_MAX_DIMS || fv_image_type_bytes(type) <= 0)
        return fv_fail(error, FV_ERROR_USAGE, "array %s: 1 to %d axes of at least one voxel are needed", name, FV_MAX_DIMS);
    forget_prepared(p);
    fv_bindings *b = &p->bindings;
    for (int a = 0; a < b->narrays; a++)
        if (!strcmp(b->arrays[a].name, name)) {
            b->arrays[a].type = *type;
            b->arrays[a].data = data;
            b->arrays[a].read = NULL;
            return FV_OK;
        }
    b->arrays = fv__realloc(b->arrays, (size_t)(b->narrays + 1) * sizeof *b->arrays);
    b->arrays[b->narrays++] = (fv_array){ .name = fv__arena_strdup(&b->arena, name), .type = *type, .data = data };
    return FV_OK;
}

/* Of an image whose pixels nobody vouches for: another one each time. */
static fv_hash new_identity(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    fv__hasher_int(&hasher, getpid());
    fv__hasher_int(&hasher, now.tv_sec);
    fv__hasher_int(&hasher, now.tv_nsec);
    return fv__hasher_finish(&hasher);
}

fv_status fv_pipeline_source(fv_pipeline *p, const char *name, const fv_image_type *type, const int64_t *chunk,
                             const char *identity, fv_source_read read, void *context, fv_error *error) {
    FV_TRY(fv_pipeline_array(p, name, type, NULL, error));
    fv_array *array = p->bindings.arrays;
    while (strcmp(array->name, name)) array++;
    array->read = read;
    array->context = context;
    array->content = identity ? fv__hash_bytes(identity, strlen(identity)) : new_identity();
    for (int d = 0; d < type->ndim; d++) array->chunk[d] = chunk ? FV_MIN(FV_MAX(chunk[d], 1), type->shape[d]) : type->shape[d];
    return FV_OK;
}

fv_status fv_pipeline_keep(fv_pipeline *p, const char *name, fv_error *error) {
    if (!is_name(name)) return fv_fail(error, FV_ERROR_USAGE, "\"%s\" cannot be a variable: letters, digits and _ only", name);
    fv_bindings *b = &p->bindings;
    forget_prepared(p);
    b->keeps = fv__realloc(b->keeps, (size_t)(b->nkeeps + 1) * sizeof *b->keeps);
    b->keeps[b->nkeeps++] = fv__arena_strdup(&b->arena, name);
    return FV_OK;
}

fv_status fv_pipeline_chunk(fv_pipeline *p, const int64_t *chunk, int ndim, fv_error *error) {
    if (ndim < 0 || ndim > FV_MAX_DIMS)
        return fv_fail(error, FV_ERROR_USAGE, "chunk has %d numbers; at most %d are possible", ndim, FV_MAX_DIMS);
    for (int d = 0; d < ndim; d++)
        if (chunk[d] < 1) return fv_fail(error, FV_ERROR_USAGE, "chunk = %lld: must be at least 1", (long long)chunk[d]);
    forget_prepared(p);
    p->plan_options.chunk_ndim = ndim;
    for (int d = 0; d < ndim; d++) p->plan_options.chunk[d] = chunk[d];
    return FV_OK;
}

/* ---------------------------------------------------------------- resolving */

fv_status fv__pipeline_resolve(const fv_pipeline *p, const char *store, fv_bindings *b, fv_diagnostics *diagnostics,
                               fv_error *error) {
    *b = (fv_bindings){ 0 };
    if (!p->program) return fv_fail(error, FV_ERROR_USAGE, "the pipeline has no text");
    FV_TRY(fv__isa_check(error));
    for (int i = 0; i < p->nsets; i++) FV_TRY(fv__bindings_set(b, p->sets[i], error));
    b->arrays = fv__alloc((size_t)(p->bindings.narrays + 1) * sizeof *b->arrays);
    b->keeps = fv__alloc((size_t)(p->bindings.nkeeps + 1) * sizeof *b->keeps);
    if (p->bindings.narrays) memcpy(b->arrays, p->bindings.arrays, (size_t)p->bindings.narrays * sizeof *b->arrays);
    if (p->bindings.nkeeps) memcpy(b->keeps, p->bindings.keeps, (size_t)p->bindings.nkeeps * sizeof *b->keeps);
    b->narrays = p->bindings.narrays;
    b->nkeeps = p->bindings.nkeeps;
    for (int a = 0; a < b->narrays; a++)
        if (!b->arrays[a].read) b->arrays[a].content = (fv_hash){ .low = (uint64_t)a + 1 };
    const char *const folders[] = { ".fovea", store };
    fv_made          *made = fv__made_open(folders, store && strcmp(store, ".fovea") ? 2 : 1);
    b->made = fv__made_find;
    b->made_context = made;
    fv_status status = fv__bindings_resolve(b, p->program, diagnostics, error);
    b->made = NULL;
    fv__made_close(made);
    return status;
}

/* ---------------------------------------------------------------- running */

/* What fv__run_all gave, or a result of nothing. Names outlive the bindings. */
static fv_result *complete(fv_result *result) {
    if (!result) result = fv__calloc(sizeof *result);
    for (int i = 0; i < result->nkept; i++) result->kept[i].name = fv__arena_strdup(&result->arena, result->kept[i].name);
    return result;
}

static const fv_run_options defaults;

static void use_cpu(fv_bindings *b, const char *why) {
    fv__log("fovea: on the CPU: %s", why);
    b->device = NULL;
    b->on = (fv_graph_device){ 0 };
    b->device_note = fv__arena_printf(&b->arena, "auto: the CPU, because %s", why);
}

/* Where operators run: the same for the whole run, so that no output mixes devices. */
static fv_status resolve_device(const char *name, fv_bindings *b, fv_error *error) {
    fv_device_pool *pool;
    fv_error        why = { 0 };
    bool            automatic = name && !strcmp(name, "auto");
    if (!name || !strcmp(name, "cpu")) return FV_OK;
    fv_status status = fv__device_pool_of(automatic ? "opencl" : name, &pool, automatic ? &why : error);
    if (status != FV_OK && !automatic) return status;
    if (status != FV_OK)
        use_cpu(b, why.message);
    else if (automatic && fv__device_pool_processor(pool) && !fv__device_pool_given(pool))
        use_cpu(b, "the only device is the processor itself");
    else {
        b->device = fv__arena_strdup(&b->arena, automatic ? "opencl" : name);
        b->on = (fv_graph_device){ fv__device_pool_kind(pool), fv__device_pool_memory(pool), !automatic };
    }
    return FV_OK;
}

/* A device that fails is no reason to give up where the user left the choice to us. */
static bool device_failed(const fv_run_options *o, const fv_bindings *b, fv_status status, const fv_result *run,
                          const fv_error *error, char why[768]) {
    if (!b->device || !o->device || strcmp(o->device, "auto")) return false;
    const fv_error *cause = status == FV_ERROR_DEVICE || status == FV_ERROR_MEMORY ? error : NULL; /* drivers need much */
    for (int i = 0; run && i < run->nfailures && !cause; i++)
        if (run->failures[i].error.code == FV_ERROR_DEVICE) cause = &run->failures[i].error;
    if (cause) snprintf(why, 768, "%s", cause->message);
    return cause != NULL;
}

static fv_status check_arrays(const fv_bindings *b, fv_error *error) {
    for (int a = 0; a < b->narrays; a++)
        if (!b->arrays[a].data && !b->arrays[a].read)
            return fv_fail(error, FV_ERROR_USAGE, "array %s: its type was given, but no pixels", b->arrays[a].name);
    return FV_OK;
}

static fv_status resolve_part(const fv_pipeline *p, const fv_run_options *o, fv_bindings *bindings, fv_diagnostics *diagnostics,
                              fv_error *error) {
    FV_TRY(fv__pipeline_resolve(p, o->store, bindings, diagnostics, error));
    FV_TRY(check_arrays(bindings, error));
    if (o->into) bindings->into = fv__arena_strdup(&bindings->arena, o->into);
    bindings->commands = o->allow_commands;
    fv__programs_allow(bindings->commands);
    FV_TRY(resolve_device(o->device, bindings, error));
    if (o->items) FV_TRY(fv__bindings_take(bindings, o->items, error));
    if (o->within > 0 || o->within_error > 0) bindings->within = fv__sampling_within(o->within, o->within_error);
    return o->part ? fv__crop_parse(o->part, &bindings->part, error) : FV_OK;
}

static bool has_consent(const fv_pipeline *p, const fv_run_options *o) {
    return o->allow_commands || (p->text.size && fv__text_trusted(p->text.data, p->text.size));
}

/* A text that a first run has completed is another one than the user trusts. */
static fv_status find_types(fv_pipeline *p, fv_run_options *o, fv_result **failed, fv_error *error) {
    o->allow_commands = has_consent(p, o);
    return fv__first_run(p, o, o->allow_commands, failed, error);
}

fv_status fv_pipeline_run(fv_pipeline *p, const fv_run_options *given, fv_result **result, fv_error *error) {
    fv_diagnostics diagnostics = { 0 };
    fv_bindings    bindings;
    fv_run_options options = given ? *given : defaults;
    char           why[768];
    fv_status      found = find_types(p, &options, result, error);
    if (found != FV_OK) *result = complete(*result);
    if (found != FV_OK) return found;
    fv_session *before = fv__session_enter(p->session);
    fv_status   status = resolve_part(p, &options, &bindings, &diagnostics, error);
    if (status == FV_OK) status = fv__run_all(p->program, &bindings, &p->plan_options, &options, result, &diagnostics, error);
    if (status != FV_OK && device_failed(&options, &bindings, status, *result, error, why)) {
        use_cpu(&bindings, why);
        fv_result_free(*result);
        *result = NULL;
        fv__diagnostics_release(&diagnostics);
        diagnostics = (fv_diagnostics){ 0 };
        if (error) *error = (fv_error){ 0 };
        options.fresh = false;
        status = fv__run_all(p->program, &bindings, &p->plan_options, &options, result, &diagnostics, error);
    }
    *result = complete(*result);
    fv__bindings_release(&bindings);
    fv__session_enter(before);
    return fv__pipeline_report(p, &diagnostics, status);
}

/* ---------------------------------------------------------------- running again and again */

/* Finds out whether the pipeline can be kept ready. */
static fv_status prepare(fv_pipeline *p, fv_diagnostics *diagnostics, fv_error *error) {
    fv_bindings bindings;
    fv_status   status = resolve_part(p, &defaults, &bindings, diagnostics, error);
    if (status == FV_OK) status = fv__prepared_new(p->program, &bindings, &p->plan_options, &p->prepared, diagnostics, error);
    if (!p->prepared) fv__bindings_release(&bindings);
    p->looked_at = status == FV_OK;
    return status;
}

/* By the way of all runs. */
static fv_status run_into(fv_pipeline *p, void *const *images, volatile int *cancel, fv_diagnostics *diagnostics,
                          fv_error *error) {
    fv_run_options options = { .transient = true, .cancel = cancel };
    fv_bindings    bindings;
    fv_result     *result = NULL;
    fv_status      status = resolve_part(p, &options, &bindings, diagnostics, error);
    bindings.rooms = images;
    if (status == FV_OK) status = fv__run_all(p->program, &bindings, &p->plan_options, &options, &result, diagnostics, error);
    if (status != FV_OK && result && result->nfailures && error) *error = result->failures[0].error;
    fv_result_free(result);
    fv__bindings_release(&bindings);
    return status;
}

fv_status fv_pipeline_apply(fv_pipeline *p, const void *const *arrays, void *const *images, volatile int *cancel,
                            fv_error *error) {
    fv_diagnostics diagnostics = { 0 };
    fv_status      status = FV_OK;
    fv_session    *before = fv__session_enter(p->session);
    for (int a = 0; a < p->bindings.narrays; a++)
        if (!p->bindings.arrays[a].read) p->bindings.arrays[a].data = arrays[a];
    if (!p->looked_at) status = prepare(p, &diagnostics, error);
    if (status == FV_OK)
        status = p->prepared ? fv__prepared_run(p->prepared, arrays, images, cancel, error)
                             : run_into(p, images, cancel, &diagnostics, error);
    fv__session_enter(before);
    return diagnostics.count || p->messages.size > 1 ? fv__pipeline_report(p, &diagnostics, status) : status;
}

/* ---------------------------------------------------------------- shared runs */

fv_status fv_pipeline_freeze(fv_pipeline *p, const fv_run_options *given, char **run_folder, fv_error *error) {
    fv_diagnostics diagnostics = { 0 };
    fv_bindings    bindings;
    fv_run_options options = given ? *given : defaults;
    fv_result     *failed;
    *run_folder = NULL;
    fv_status found = find_types(p, &options, &failed, error);
    fv_result_free(failed);
    if (found != FV_OK) return found;
    fv_session *before = fv__session_enter(p->session);
    fv_status   status = resolve_part(p, &options, &bindings, &diagnostics, error);
    if (status == FV_OK)
        status = fv__run_freeze(p->program, &bindings, &p->plan_options, &options, run_folder, &diagnostics, error);
    fv__bindings_release(&bindings);
    fv__session_enter(before);
    return fv__pipeline_report(p, &diagnostics, status);
}

static fv_order order_named(const char *name) {
    if (name && !strcmp(name, "fifo")) return FV_ORDER_FIFO;
    return name && !strcmp(name, "longest") ? FV_ORDER_LONGEST : FV_ORDER_MEMORY;
}

fv_status fv_work(const char *run_folder, const fv_work_options *work, const fv_run_options *given, fv_result **result,
                  fv_error *error) {
    fv_run_options options = given ? *given : defaults;
    fv_share       share = { .run_folder = run_folder,
                             .stage = work->stage - 1,
                             .end = work->end || work->stage == 0,
                             .wait = work->wait || work->finish,
                             .finish = work->finish,
                             .place = work->place,
                             .places = work->places,
                             .level = work->level,
                             .allowance = work->allowance };
    if (!work->alone) options.engine = "threads"; /* whoever has started it: workers that claim need no ranks */
    options.fresh = false;
    fv_session *session = fv__session_new(), *before = fv__session_enter(session);
    fv_status   status = fv__run_share(&share, work->alone, order_named(work->order), &options, result, error);
    *result = complete(*result);
    fv__session_enter(before);
    fv__session_free(session);
    return status;
}

/* ---------------------------------------------------------------- plans and graphs */

static fv_status with_sample(fv_pipeline *p, const fv_run_options *options, fv_error *error,
                             void (*use)(const fv_instance *instance, const fv_bindings *bindings, void *context),
                             void *context) {
    fv_diagnostics diagnostics = { 0 };
    fv_bindings    bindings;
    fv_session    *before = fv__session_enter(p->session);
    fv_status      status = resolve_part(p, options, &bindings, &diagnostics, error);
    fv_context     sample = { .program = p->program, .bindings = &bindings, .plan_options = p->plan_options, .poison = -1 };
    for (int s = 0; status == FV_OK && s < bindings.nsegments; s++) {
        fv_instance *instance = NULL;
        status = fv__run_sample(&sample, s, &instance, &diagnostics, error);
        if (status == FV_OK) use(instance, &bindings, context);
        fv__instance_close(instance);
    }
    fv__bindings_release(&bindings);
    fv__session_enter(before);
    return fv__pipeline_report(p, &diagnostics, status);
}

typedef struct printing {
    const fv_run_options *options;
    const fv_engine      *engine;
    bool                  can_shrink; /* fv__plan_can_shrink */
    bool                  json, chunks;
    fv_bytes              text;
} printing;

/* Of which units a part of the plan is. */
static fv_plan_part part_of(const fv_instance *instance, const fv_bindings *bindings, char title[300]) {
    fv_unit unit = fv__bindings_unit(bindings, instance->item);
    if (unit.collection == FV_RUN)
        snprintf(title, 300, "once for the run");
    else
        snprintf(title, 300, "for each item of %.200s", bindings->lists[unit.collection].pattern);
    return (fv_plan_part){ .index = unit.segment, .count = bindings->nsegments, .title = title };
}

static void print_plan(const fv_instance *instance, const fv_bindings *bindings, void *context) {
    printing      *print = context;
    char           title[300];
    fv_plan_part   part = part_of(instance, bindings, title);
    int            workers = print->options->workers > 0 ? print->options->workers : fv__default_workers();
    fv_sharers     sharers = fv__engine_sharers(print->engine, workers, print->options->ranks, bindings);
    fv_budget      budget = fv__budget_divide(print->options->memory, &sharers);
    const fv_plan *plan = instance->plan;
    int            running = fv__budget_at_once(&budget, workers, plan->memory);
    fv_demand      demand = fv__plan_demand(plan, bindings->nitems, running);
    fv_plan_facts  facts = { .workers = workers,
                             .items = bindings->segments[part.index].count,
                             .part = part,
                             .memory = budget.memory,
                             .peak = fv__budget_peak(&budget, workers, &demand),
                             .least = fv__budget_least(&sharers, plan->memory),
                             .can_shrink = print->can_shrink };
    if (print->json)
        fv__plan_json(plan, &facts, &print->text);
    else
        fv__plan_text(plan, &facts, &print->text);
}

static void print_graph(const fv_instance *instance, const fv_bindings *bindings, void *context) {
    printing    *print = context;
    char         title[300];
    fv_plan_part part = part_of(instance, bindings, title);
    if (print->chunks)
        fv__plan_dot(instance->plan, &part, &print->text);
    else
        fv__graph_dot(instance->graph, instance->plan, &part, &print->text);
}

static fv_status finish_text(printing *print, fv_status status, char **text) {
    if (status == FV_OK) fv__bytes_append(&print->text, "", 1);
    *text = (char *)print->text.data;
    return status;
}

fv_status fv_pipeline_plan(fv_pipeline *p, const fv_run_options *options, fv_form form, char **text, fv_error *error) {
    printing print = { .json = form == FV_FORM_JSON,
                       .options = options ? options : &defaults,
                       .can_shrink = fv__plan_can_shrink(&p->plan_options) };
    *text = NULL;
    FV_TRY(fv__engine_named(print.options->engine ? print.options->engine : fv__engine_default(), &print.engine, error));
    return finish_text(&print, with_sample(p, print.options, error, print_plan, &print), text);
}

fv_status fv_pipeline_graph(fv_pipeline *p, bool chunks, char **dot, fv_error *error) {
    printing print = { .chunks = chunks };
    return finish_text(&print, with_sample(p, &defaults, error, print_graph, &print), dot);
}

/* ---------------------------------------------------------------- results */

const void *fv_result_array(const fv_result *result, const char *name, fv_image_type *type) {
    for (int i = 0; i < result->nkept; i++)
        if (!strcmp(result->kept[i].name, name)) {
            if (type) *type = result->kept[i].type;
            return result->kept[i].data;
        }
    return NULL;
}

const fv_table *fv_result_table(const fv_result *result, const char *name) {
    for (int i = 0; i < result->ntables; i++)
        if (!result->table_printed[i] && !strcmp(result->table_names[i], name)) return &result->tables[i];
    return NULL;
}

int fv_result_printed(const fv_result *result) {
    int n = 0;
    for (int i = 0; i < result->ntables; i++) n += result->table_printed[i];
    return n;
}

const fv_table *fv_result_printed_table(const fv_result *result, int index, bool *is_scalar) {
    for (int i = 0; i < result->ntables; i++)
        if (result->table_printed[i] && !index--) {
            *is_scalar = result->table_is_scalar[i];
            return &result->tables[i];
        }
    return NULL;
}

int fv_result_failures(const fv_result *result) { return result->nfailures; }

const char *fv_result_failure(const fv_result *result, int index, fv_error *error) {
    if (error) *error = result->failures[index].error;
    return result->failures[index].item;
}

int         fv_result_outputs(const fv_result *result) { return result->noutputs; }
const char *fv_result_output(const fv_result *result, int index) { return result->outputs[index]; }
int         fv_result_missing(const fv_result *result) { return result->nmissing; }
const char *fv_result_missing_file(const fv_result *result, int index) { return result->missing[index]; }

fv_result_facts fv_result_summary(const fv_result *result) { return result->facts; }

int fv_result_stages(const fv_result *result, fv_stage_time stages[FV_MOST_STAGES]) {
    return fv__stage_times(result->spent, result->nspent, stages);
}

fv_result *fv_result_new(void) { return complete(NULL); }

static fv_log_level level_of(int level) { return level <= 0 ? FV_LOG_QUIET : level == 1 ? FV_LOG_NORMAL : FV_LOG_VERBOSE; }

void fv_messages(int level, void (*before)(void), void (*after)(void)) {
    fv__log_set(level_of(level));
    fv__log_hook(before, after);
}

void fv_pipeline_log(fv_pipeline *p, int level, fv_message_sink sink, void *context) {
    fv_session *before = fv__session_enter(p->session);
    fv__log_sink(level_of(level), sink, context);
    fv__session_enter(before);
}
