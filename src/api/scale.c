/* Scaling studies: trial runs on different numbers of workers, and what follows from their times. */
#include "api/pipeline_parts.h"
#include "api/trial.h"
#include "base/fit.h"
#include <fovea/scale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_REPEATS = 3, MOST_REPEATS = 100 };

typedef struct study {
    fv_pipeline            *pipeline;
    const fv_scale_options *options;
    fv_scaling             *s;
    fv_trials              *trials;
    fv_bindings             bindings;
    fv_crop                 axis; /* of a single image: what weak scaling cuts */
    int                     most; /* workers */
    fv_bytes                tasks;
} study;

/* ---------------------------------------------------------------- from seconds to efficiency */

static const fv_scale_row *on_one(const fv_scaling *s, bool weak) {
    for (int i = 0; i < s->nrows; i++)
        if (s->rows[i].weak == weak && s->rows[i].workers == 1) return &s->rows[i];
    return NULL;
}

void fv_scaling_derive(fv_scaling *s) {
    double *workers = fv__alloc((size_t)(s->nrows + 1) * sizeof *workers),
           *seconds = fv__alloc((size_t)(s->nrows + 1) * sizeof *seconds);
    int count = 0;
    s->noise = s->repeats == 1 ? NAN : 0;
    for (int i = 0; i < s->nrows; i++) {
        fv_scale_row       *row = &s->rows[i];
        const fv_scale_row *one = on_one(s, row->weak);
        double              ratio = one && row->seconds > 0 ? one->seconds / row->seconds : 0;
        row->speedup = row->weak ? ratio * row->workers : ratio;
        row->efficiency = row->speedup / row->workers;
        if (row->seconds > 0 && (row->most - row->least) / row->seconds > s->noise)
            s->noise = (row->most - row->least) / row->seconds;
        if (row->weak) continue;
        workers[count] = row->workers;
        seconds[count++] = row->seconds;
    }
    s->fitted = count > 1;
    if (s->fitted) {
        fv_amdahl fit = fv__fit_amdahl(workers, seconds, count);
        s->serial = fit.serial;
        s->serial_seconds = fit.seconds;
    }
    free(workers);
    free(seconds);
}

/* ---------------------------------------------------------------- what there is */

static fv_status look_around(study *s, fv_diagnostics *diagnostics, fv_error *error) {
    fv_instance *instance = NULL;
    fv_context   context = { .program = s->pipeline->program, .bindings = &s->bindings, .poison = -1 };
    context.plan_options = s->pipeline->plan_options;
    FV_TRY(fv__run_sample(&context, 0, &instance, diagnostics, error));
    s->s->nstages = instance->plan->nstages;
    fv__graph_slabs(instance->graph, &s->axis);
    fv__instance_close(instance);
    return FV_OK;
}

static fv_status check(study *s, fv_error *error) {
    const fv_scale_options *o = s->options;
    int64_t                 n = s->bindings.nitems;
    if (o->items && !s->bindings.collection)
        return fv_fail(error, FV_ERROR_USAGE, "--items %lld: the pipeline reads no collection, such as read(\"scans/*.tif\")",
                       (long long)o->items);
    if (o->items > n)
        return fv_fail(error, FV_ERROR_USAGE, "--items %lld: there are %lld items", (long long)o->items, (long long)n);
    int64_t units = s->bindings.collection ? (o->items ? o->items : n) : s->axis.length;
    if (o->weak && units < s->most)
        return fv_fail(error, FV_ERROR_USAGE, "--weak: %d workers need at least %d %s, there %s %lld", s->most, s->most,
                       s->bindings.collection ? "items" : "slices", units == 1 ? "is" : "are", (long long)units);
    return FV_OK;
}

/* ---------------------------------------------------------------- measuring */

/* The work of a row: all of it, or for weak scaling each worker's share times their number. */
static void choose_work(const study *s, fv_scale_row *row, fv_trial *trial, char part[64]) {
    int64_t units = s->bindings.collection ? (s->options->items ? s->options->items : s->bindings.nitems) : s->axis.length;
    if (row->weak) units = units / s->most * row->workers;
    row->size = (double)units;
    if (s->bindings.collection)
        trial->items = units;
    else if (row->weak) { /* also all of it as a slab: the same stages for all */
        snprintf(part, 64, "%s/%lld=%lld", s->axis.axis, (long long)s->axis.length, (long long)units);
        trial->part = part;
    }
}

static void keep_facts(study *s, fv_scale_row *row, const fv_trial_result *r) {
    double first = r->ntasks ? r->tasks[0].start : 0;
    row->tasks = r->tasks_run;
    row->memory = r->peak_memory;
    row->work[FV_COST_MERGE] = r->merging + r->opening;
    for (int64_t i = 0; i < r->ntasks; i++) first = FV_MIN(first, r->tasks[i].start);
    for (int64_t i = 0; i < r->ntasks; i++) {
        const fv_task_facts *f = &r->tasks[i];
        fv_scale_task        task = { (int)(row - s->s->rows), f->worker, (int)f->stage, f->start - first,
                                      f->read + f->compute + f->write };
        row->work[FV_COST_READ] += f->read;
        row->work[FV_COST_COMPUTE] += f->compute;
        row->work[FV_COST_WRITE] += f->write;
        if (f->stage >= 0 && f->stage < s->s->nstages) row->stages[f->stage] += task.seconds;
        fv__bytes_append(&s->tasks, &task, sizeof task);
    }
}

static int by_seconds(const void *a, const void *b) {
    double x = ((const fv_trial_result *)a)->elapsed, y = ((const fv_trial_result *)b)->elapsed;
    return x < y ? -1 : x > y;
}

/* Engines whose workers are started from outside. */
static bool launched(const fv_scale_options *o) { return o->launcher || (o->engine && !strcmp(o->engine, "mpi")); }

static fv_status measure_once(study *s, fv_scale_row *row, int number, fv_trial_result *result, fv_error *error) {
    const fv_scale_options *o = s->options;
    fv_trial                trial = { .engine = o->engine, .workers = row->workers, .memory = o->memory };
    char                    part[64], what[128], *launcher = NULL;
    choose_work(s, row, &trial, part);
    if (launched(o)) {
        launcher = fv__sprintf("%s -n %d", o->launcher ? o->launcher : "mpiexec", row->workers);
        trial.launcher = launcher;
        trial.workers = 1; /* of each rank */
    }
    snprintf(what, sizeof what, "run %d of %d: %s scaling, %.0f %s, %d worker%s", number, s->s->repeats,
             row->weak ? "weak" : "strong", row->size, s->bindings.collection ? "items" : "slices", row->workers,
             row->workers == 1 ? "" : "s");
    if (o->tell) o->tell(o->context, what);
    fv_status status = fv__trial_run(s->trials, &trial, result, error);
    if (status == FV_OK && result->failures)
        status = fv_fail(error, FV_ERROR_INPUT, "%lld items failed: their times would say nothing", (long long)result->failures);
    free(launcher);
    return status;
}

static fv_status summarize(study *s, fv_scale_row *row, fv_trial_result *results, fv_error *error) {
    int     n = s->s->repeats;
    double *seconds = fv__alloc((size_t)n * sizeof *seconds);
    qsort(results, (size_t)n, sizeof *results, by_seconds);
    for (int i = 0; i < n; i++) seconds[i] = results[i].elapsed;
    row->least = seconds[0];
    row->most = seconds[n - 1];
    row->seconds = fv__median(seconds, n);
    keep_facts(s, row, &results[n / 2]);
    free(seconds);
    for (int i = 1; i < n; i++)
        if (results[i].tasks_run != results[0].tasks_run)
            return fv_fail(error, FV_ERROR_INTERNAL, "one run executed %lld tasks and another one %lld",
                           (long long)results[0].tasks_run, (long long)results[i].tasks_run);
    return FV_OK;
}

/* Rounds over all rows, so that a machine that is busy for a while slows all of them. */
static fv_status measure(study *s, fv_error *error) {
    int              n = s->s->repeats, rows = s->s->nrows;
    fv_trial_result *results = fv__calloc((size_t)(n * rows) * sizeof *results);
    fv_status        status = FV_OK;
    for (int i = 0; i < n * rows && status == FV_OK; i++)
        status = measure_once(s, &s->s->rows[i % rows], i / rows + 1, &results[i % rows * n + i / rows], error);
    for (int i = 0; i < rows && status == FV_OK; i++) status = summarize(s, &s->s->rows[i], &results[i * n], error);
    for (int i = 0; i < n * rows; i++) fv__trial_result_release(&results[i]);
    free(results);
    return status;
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void make_rows(study *s) {
    const fv_scale_options *o = s->options;
    int                    *list = fv__alloc((size_t)(o->nworkers + 1) * sizeof *list), count = 0;
    list[count++] = 1;
    for (int i = 0; i < o->nworkers; i++) list[count++] = FV_MAX(o->workers[i], 1);
    qsort(list, (size_t)count, sizeof *list, by_number);
    s->most = list[count - 1];
    s->s->rows = fv__calloc((size_t)(2 * count) * sizeof *s->s->rows);
    for (int weak = !o->strong; weak <= (o->weak ? 1 : 0); weak++)
        for (int i = 0; i < count; i++)
            if (i == 0 || list[i] != list[i - 1]) s->s->rows[s->s->nrows++] = (fv_scale_row){ .weak = weak, .workers = list[i] };
    free(list);
}

static fv_status study_all(study *s, fv_diagnostics *diagnostics, fv_error *error) {
    FV_TRY(look_around(s, diagnostics, error));
    make_rows(s);
    FV_TRY(check(s, error));
    for (int i = 0; i < s->s->nrows; i++) s->s->rows[i].stages = fv__calloc((size_t)(s->s->nstages + 1) * sizeof(double));
    FV_TRY(fv__trials_new(s->pipeline, s->options->store, s->options->command, s->options->cancel, &s->trials, error));
    fv_status status = measure(s, error);
    fv__trials_free(s->trials);
    if (status == FV_OK) fv_scaling_derive(s->s);
    return status;
}

fv_status fv_pipeline_scale(fv_pipeline *pipeline, const fv_scale_options *options, fv_scaling **scaling, fv_error *error) {
    fv_diagnostics diagnostics = { 0 };
    study          s = { .pipeline = pipeline, .options = options, .s = fv__calloc(sizeof *s.s) };
    s.s->repeats = FV_MIN(options->repeats > 0 ? options->repeats : DEFAULT_REPEATS, MOST_REPEATS);
    fv_session *before = fv__session_enter(pipeline->session);
    fv_status   status = fv__pipeline_resolve(pipeline, NULL, &s.bindings, &diagnostics, error);
    if (status == FV_OK) status = study_all(&s, &diagnostics, error);
    fv__session_enter(before);
    fv__bindings_release(&s.bindings);
    s.s->tasks = (fv_scale_task *)(void *)s.tasks.data;
    s.s->ntasks = (int64_t)(s.tasks.size / sizeof *s.s->tasks);
    *scaling = s.s;
    return fv__pipeline_report(pipeline, &diagnostics, status);
}

void fv_scaling_free(fv_scaling *s) {
    if (!s) return;
    for (int i = 0; i < s->nrows; i++) free(s->rows[i].stages);
    free(s->rows);
    free(s->tasks);
    free(s);
}
