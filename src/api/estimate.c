/* Estimates: a few trial runs, and the lines through what they measured.
 *
 * Items of a collection differ in the size of their files; of a single image, slabs of different thickness are run instead. Each
 * gives a point (size, seconds), and the lines through them give the work of the whole job. How long that work takes on n
 * workers is learnt from the time of whole trial runs, on one worker and on all cores.
 */
#include "api/pipeline_parts.h"
#include "api/trial.h"
#include "base/fit.h"
#include "cluster/jobs.h"
#include <fovea/estimate.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TRIALS = 8, MOST_MEASURED = 64 };
#define DEFAULT_BUDGET 20.0
/* What makes a machine slow lasts for seconds and meets many items: however many were run, not more count as independent. */
#define APART 4

typedef struct sample { /* one item, or one slab, that was run on one worker */
    double bytes, seconds[FV_COSTS];
} sample;

typedef struct run_point { /* one whole trial run */
    int     workers;
    int64_t items;
    double  bytes, busy, seconds;
    double  memory;
} run_point;

typedef struct study {
    fv_pipeline               *pipeline;
    const fv_estimate_options *options;
    fv_estimate               *e;
    fv_trials                 *trials;
    fv_bindings                bindings;
    double                    *sizes; /* bytes of each item */
    fv_crop                    axis;  /* of a single image: which can be cut, and its length; length 0: none */
    double                     began, budget;
    sample                     samples[MOST_MEASURED + MOST_TRIALS];
    int                        nsamples;
    run_point                  runs[MOST_TRIALS];
    int                        nruns;
} study;

/* ---------------------------------------------------------------- what there is */

static fv_status look_around(study *s, fv_diagnostics *diagnostics, fv_error *error) {
    fv_instance *instance = NULL;
    fv_context   context = {
          .program = s->pipeline->program, .bindings = &s->bindings, .plan_options = s->pipeline->plan_options, .poison = -1
    };
    s->sizes = fv__calloc((size_t)s->bindings.nitems * sizeof *s->sizes);
    fv_outlook outlook;
    FV_TRY(fv__run_outlook(&context, &outlook, diagnostics, error));
    FV_TRY(fv__run_sample(&context, 0, &instance, diagnostics, error));
    if (s->bindings.collection)
        fv__bindings_sizes(&s->bindings, s->bindings.nitems, s->sizes);
    else
        s->sizes[0] = (double)fv__graph_slabs(instance->graph, &s->axis);
    s->e->job_least = fv__budget_least_job(&(fv_sharers){ .driver = fv__budget_driver(&s->bindings) }, outlook.memory);
    s->e->items_present = s->bindings.nitems;
    s->e->items = s->options->items ? s->options->items : s->bindings.nitems;
    s->e->most_workers = outlook.tasks * s->e->items;
    fv__instance_close(instance);
    return FV_OK;
}

/* ---------------------------------------------------------------- measuring */

/* Bytes of the items that a trial of so many takes: the same choice as the run makes. */
static double *sizes_of(const study *s, int64_t count) {
    double *sizes = fv__alloc((size_t)count * sizeof *sizes);
    fv__bindings_sizes(&s->bindings, count, sizes);
    return sizes;
}

static double seconds_of(const fv_task_facts *f) { return f->read + f->compute + f->write; }

/* What the items of a trial on one worker took. */
static void take_samples(study *s, const fv_trial_result *r, const double *sizes, int64_t count) {
    sample *at = fv__calloc((size_t)count * sizeof *at);
    for (int64_t i = 0; i < r->ntasks; i++) {
        const fv_task_facts *f = &r->tasks[i];
        if (f->item < 0 || f->item >= count) continue;
        at[f->item].seconds[FV_COST_READ] += f->read;
        at[f->item].seconds[FV_COST_COMPUTE] += f->compute;
        at[f->item].seconds[FV_COST_WRITE] += f->write;
    }
    for (int64_t i = 0; i < count && s->nsamples < FV_COUNT(s->samples); i++) {
        double busy = at[i].seconds[FV_COST_READ] + at[i].seconds[FV_COST_COMPUTE] + at[i].seconds[FV_COST_WRITE];
        at[i].bytes = sizes[i];
        at[i].seconds[FV_COST_MERGE] = (r->merging + r->opening) / (double)count;
        if (busy > 0) s->samples[s->nsamples++] = at[i]; /* one that failed took nothing */
    }
    free(at);
}

static void note_run(study *s, const fv_trial *trial, const fv_trial_result *r, const double *sizes, int64_t count) {
    run_point p = { .workers = trial->workers, .items = count, .seconds = r->seconds, .memory = (double)r->peak_memory };
    p.busy = r->merging + r->opening;
    for (int64_t i = 0; i < r->ntasks; i++) p.busy += seconds_of(&r->tasks[i]);
    for (int64_t i = 0; i < count; i++) p.bytes += sizes[i];
    s->runs[s->nruns++] = p;
    s->e->items_measured = FV_MAX(s->e->items_measured, count);
}

static fv_status measure_items(study *s, int workers, int64_t count, fv_error *error) {
    fv_trial        trial = { .workers = workers, .items = count, .memory = s->options->memory };
    fv_trial_result result;
    char            what[96];
    snprintf(what, sizeof what, "running %lld of %lld items with %d worker%s", (long long)count, (long long)s->bindings.nitems,
             workers, workers == 1 ? "" : "s");
    if (s->options->tell) s->options->tell(s->options->context, what);
    FV_TRY(fv__trial_run(s->trials, &trial, &result, error));
    double *sizes = sizes_of(s, count);
    if (workers == 1) take_samples(s, &result, sizes, count);
    note_run(s, &trial, &result, sizes, count);
    free(sizes);
    fv__trial_result_release(&result);
    return FV_OK;
}

static fv_status measure_slab(study *s, int workers, int64_t take, fv_error *error) {
    char            part[64], what[96];
    fv_trial        trial = { .workers = workers, .memory = s->options->memory };
    fv_trial_result result;
    double          size = s->sizes[0];
    if (take < s->axis.length) {
        snprintf(part, sizeof part, "%s/%lld=%lld", s->axis.axis, (long long)s->axis.length, (long long)take);
        trial.part = part;
        size *= (double)take / (double)s->axis.length;
        snprintf(what, sizeof what, "running %lld of %lld along %s with %d worker%s", (long long)take, (long long)s->axis.length,
                 s->axis.axis, workers, workers == 1 ? "" : "s");
    } else
        snprintf(what, sizeof what, "running all of it with %d worker%s", workers, workers == 1 ? "" : "s");
    if (s->options->tell) s->options->tell(s->options->context, what);
    FV_TRY(fv__trial_run(s->trials, &trial, &result, error));
    if (workers == 1) take_samples(s, &result, &size, 1);
    note_run(s, &trial, &result, &size, 1);
    fv__trial_result_release(&result);
    return FV_OK;
}

/* The first trial tells how long one takes, the next uses about a third of the time there is, the last as much on all cores. */
static fv_status measure_collection(study *s, fv_error *error) {
    int64_t n = s->bindings.nitems, few = FV_MIN(n, 2);
    FV_TRY(measure_items(s, 1, few, error));
    double  each = s->runs[0].seconds / (double)few, share = s->budget / 3;
    int64_t most = FV_MIN(n, MOST_MEASURED), more = FV_MAX(FV_MIN((int64_t)(share / each), most), few);
    if (more > few || n > few) FV_TRY(measure_items(s, 1, FV_MIN(FV_MAX(more, few + 1), n), error));
    if (s->e->cores < 2) return FV_OK;
    more = FV_MAX(FV_MIN((int64_t)(share / each) * s->e->cores, most), FV_MIN(2 * s->e->cores, n));
    return measure_items(s, s->e->cores, more, error);
}

static fv_status measure_image(study *s, fv_error *error) {
    int64_t length = s->axis.length, take = FV_MAX(length / 16, 1);
    if (length < 32) take = length;
    fv_status status = measure_slab(s, 1, take, error);
    if (status != FV_OK && status != FV_ERROR_CANCELLED && take < length) /* not a pipeline that works on a slab */
        status = measure_slab(s, 1, take = length, error);
    FV_TRY(status);
    double share = s->budget / 3;
    if (take < length) {
        double scale = FV_MIN(FV_MAX(share / s->runs[0].seconds, 2), 8);
        take = FV_MIN((int64_t)((double)take * scale), length);
        FV_TRY(measure_slab(s, 1, take, error));
    }
    if (take < length && s->runs[1].seconds < share / 2) {
        take = FV_MIN((int64_t)((double)take * share / s->runs[1].seconds), length);
        FV_TRY(measure_slab(s, 1, take, error));
    }
    return s->e->cores < 2 ? FV_OK : measure_slab(s, s->e->cores, take, error);
}

/* ---------------------------------------------------------------- fitting */

static double whole(const study *s, const fv_line *line) {
    double total = 0;
    for (int64_t i = 0; i < s->bindings.nitems; i++) total += fv__line_at(line, s->sizes[i]);
    return total * (double)s->e->items / (double)s->e->items_present;
}

static double predicted_busy(const study *s, const run_point *run) {
    double total = 0;
    for (int c = 0; c < FV_COSTS; c++) {
        const fv_growth *g = &s->e->growth[c];
        total += g->fixed * (double)run->items + g->per_byte * run->bytes;
    }
    return total;
}

/* Gives the relative error of the work. */
static double fit_work(study *s) {
    fv_estimate *e = s->e;
    double       x[FV_COUNT(s->samples)], y[FV_COUNT(s->samples)], all = 0;
    for (int i = 0; i < s->nsamples; i++) x[i] = s->samples[i].bytes;
    for (int c = 0; c < FV_COSTS; c++) {
        for (int i = 0; i < s->nsamples; i++) y[i] = s->samples[i].seconds[c];
        fv_line line = fv__fit_line(x, y, s->nsamples);
        e->growth[c] = (fv_growth){ line.fixed, line.slope };
        e->work[c] = whole(s, &line);
        if (e->work[c] > e->work[e->dominates]) e->dominates = (fv_cost)c;
        all += e->work[c];
    }
    for (int i = 0; i < s->nsamples; i++) {
        y[i] = 0;
        for (int c = 0; c < FV_COSTS; c++) y[i] += s->samples[i].seconds[c];
    }
    fv_line line = fv__fit_line(x, y, s->nsamples);
    double  mean = 0;
    for (int64_t i = 0; i < s->bindings.nitems; i++) {
        e->bytes += s->sizes[i] * (double)e->items / (double)e->items_present;
        mean += s->sizes[i] / (double)s->bindings.nitems;
    }
    double at = fv__line_at(&line, mean), together = sqrt((double)line.points / FV_MIN(line.points, APART));
    return at > 0 ? fv__line_error(&line, mean) * together / at : 0;
}

/* Whole runs: what is there besides the work, and how well workers share it. Gives the relative error. */
static double fit_time(study *s) {
    fv_estimate *e = s->e;
    double       x[MOST_TRIALS], y[MOST_TRIALS], squares = 0, all = 0;
    int          count = 0;
    for (int i = 0; i < s->nruns; i++)
        if (s->runs[i].workers == 1) {
            x[count] = predicted_busy(s, &s->runs[i]);
            y[count++] = s->runs[i].seconds;
        }
    fv_line line = fv__fit_line(x, y, count);
    e->start = line.fixed;
    e->factor = line.slope > 0 ? line.slope : 1;
    for (int i = 0; i < count; i++) {
        squares += pow(fv__line_at(&line, x[i]) - y[i], 2);
        all += y[i];
    }
    for (int i = 0; i < s->nruns; i++) {
        double n = s->runs[i].workers, one = e->factor * predicted_busy(s, &s->runs[i]);
        if (n < 2 || one <= 0) continue;
        double ratio = FV_MAX(s->runs[i].seconds - e->start, 0) / one; /* serial + (1 - serial) / n */
        e->serial = FV_MIN(FV_MAX((ratio - 1 / n) / (1 - 1 / n), 0), 1);
    }
    return all > 0 ? sqrt(squares) / all : 0;
}

/* The last run on one worker and the one on all cores have both lasted; the difference is what a worker takes. */
static void fit_memory(study *s) {
    fv_estimate *e = s->e;
    double       one = 0, many = 0, x[MOST_TRIALS], y[MOST_TRIALS];
    int          workers = 1, count = 0;
    for (int i = 0; i < s->nruns; i++)
        if (s->runs[i].workers == 1) {
            one = FV_MAX(one, s->runs[i].memory);
            x[count] = s->runs[i].bytes;
            y[count++] = s->runs[i].memory;
        } else {
            many = s->runs[i].memory;
            workers = s->runs[i].workers;
        }
    e->memory_worker = workers > 1 && many > one ? (many - one) / (workers - 1) : 0;
    e->memory_base = one - e->memory_worker;
    if (!s->bindings.collection && count > 1) { /* what is kept between stages grows with the image */
        fv_line line = fv__fit_line(x, y, count);
        e->memory_base = FV_MAX(fv__line_at(&line, s->sizes[0]), one) - e->memory_worker;
        e->memory_error = FV_MIN(fv__line_error(&line, s->sizes[0]) / fv__line_at(&line, s->sizes[0]), 1);
    }
    e->memory_error = FV_MAX(e->memory_error, 0.05);
}

double fv_estimate_seconds(const fv_estimate *e, int64_t workers) {
    double work = 0, n = (double)FV_MAX(FV_MIN(workers, e->most_workers), 1);
    for (int c = 0; c < FV_COSTS; c++) work += e->work[c];
    return e->start + e->factor * work * (e->serial + (1 - e->serial) / n);
}

int64_t fv_estimate_memory(const fv_estimate *e, int64_t workers) {
    double n = (double)FV_MAX(FV_MIN(workers, e->most_workers), 1);
    return (int64_t)FV_MIN(e->memory_base + n * e->memory_worker, (double)e->memory_bound);
}

static fv_estimate_point point_at(const fv_estimate *e, int workers) {
    fv_estimate_point p = { .workers = workers, .seconds = fv_estimate_seconds(e, workers) };
    p.memory = fv_estimate_memory(e, workers);
    double beyond = workers > e->cores ? 0.05 * log2((double)workers / e->cores) : 0; /* contention nobody has measured */
    double range = 2 * sqrt(e->error * e->error + beyond * beyond);
    p.low = p.seconds / (1 + range);
    p.high = p.seconds * (1 + range);
    p.memory_high = (int64_t)((double)p.memory * (1 + 2 * e->memory_error));
    return p;
}

static void fill_points(study *s) {
    fv_estimate *e = s->e;
    int          most = s->options->workers > 0 ? s->options->workers : e->cores;
    for (int n = 1; n < most && e->npoints < FV_ESTIMATE_POINTS - 1; n *= 2) e->points[e->npoints++] = point_at(e, n);
    e->points[e->npoints++] = point_at(e, most);
    for (int style = 0; style < FV_JOB_STYLES; style++) e->requests[style] = fv_estimate_request(e, (fv_job_style)style, most);
}

static fv_status study_all(study *s, fv_diagnostics *diagnostics, fv_error *error) {
    fv_estimate *e = s->e;
    FV_TRY(look_around(s, diagnostics, error));
    if (s->options->items && !s->bindings.collection)
        return fv_fail(error, FV_ERROR_USAGE, "--items %lld: the pipeline reads no collection, such as read(\"scans/*.tif\")",
                       (long long)s->options->items);
    FV_TRY(fv__trials_new(s->pipeline, s->options->store, s->options->command, s->options->cancel, &s->trials, error));
    fv_status status = s->bindings.collection ? measure_collection(s, error) : measure_image(s, error);
    fv__trials_free(s->trials);
    FV_TRY(status);
    if (!s->nsamples) return fv_fail(error, FV_ERROR_INPUT, "none of the items that were tried could be run");
    double work = fit_work(s), time = fit_time(s);
    e->error = FV_MAX(sqrt(work * work + time * time), 0.05); /* no machine repeats itself better */
    fit_memory(s);
    fill_points(s);
    e->seconds_measuring = fv__now() - s->began;
    return FV_OK;
}

fv_status fv_pipeline_estimate(fv_pipeline *pipeline, const fv_estimate_options *options, fv_estimate *estimate,
                               fv_error *error) {
    static const fv_estimate_options defaults;
    fv_diagnostics                   diagnostics = { 0 };
    study                           *s = fv__calloc(sizeof *s);
    *estimate = (fv_estimate){ 0 };
    *s = (study){ .pipeline = pipeline, .options = options ? options : &defaults, .e = estimate, .began = fv__now() };
    s->budget = s->options->budget > 0 ? s->options->budget : DEFAULT_BUDGET;
    estimate->cores = fv__default_workers();
    if (getloadavg(&estimate->load, 1) != 1) estimate->load = -1;
    estimate->memory_bound = s->options->memory > 0 ? s->options->memory : fv__budget_default();
    fv_session *before = fv__session_enter(pipeline->session);
    fv_status   status = fv__pipeline_resolve(pipeline, NULL, &s->bindings, &diagnostics, error);
    if (status == FV_OK) status = study_all(s, &diagnostics, error);
    fv__session_enter(before);
    fv__bindings_release(&s->bindings);
    free(s->sizes);
    free(s);
    return fv__pipeline_report(pipeline, &diagnostics, status);
}
