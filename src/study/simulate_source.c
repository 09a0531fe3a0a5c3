/* From the record of a run to the work of a simulation. */
#include "study/simulate_source.h"
#include "api/pipeline_parts.h"
#include "api/trial.h"
#include "story/run_story.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TASKS = 4000000 };

static int by_place(const void *a, const void *b) {
    const fv_task_facts *x = a, *y = b;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

/* Each task once, in order: those who go on after a kill may do one again. */
static int64_t once(fv_task_facts *tasks, int64_t count) {
    int64_t kept = 0;
    if (count) qsort(tasks, (size_t)count, sizeof *tasks, by_place);
    for (int64_t i = 0; i < count; i++)
        if (!kept || by_place(&tasks[kept - 1], &tasks[i])) tasks[kept++] = tasks[i];
    return kept;
}

static int64_t units_of(const fv_task_facts *tasks, int64_t count) {
    int64_t units = 0;
    for (int64_t i = 0; i < count; i++) units += !i || tasks[i].item != tasks[i - 1].item;
    return units;
}

static int stages_of(const fv_run_graph *graph, int part, const fv_task_facts *tasks, int64_t count) {
    int most = part >= 0 ? graph->parts[part].nstages : 0;
    for (int64_t i = 0; i < count; i++) most = FV_MAX(most, (int)tasks[i].stage + 1);
    return most;
}

static void add_needs(fv_sim_stage *stage, const fv_graph_stage *from) {
    for (int i = 0; i < from->nneeds && stage->nneeds < FV_COUNT(stage->needs); i++)
        stage->needs[stage->nneeds++] = from->needs[i];
}

/* Copies of a task, as few that take as long together: those that one stands for follow each other on its worker. */
static void add_copies(fv_sim_work *w, const fv_task_facts *f, int64_t copies) {
    for (int64_t c = 0; c < copies; c += w->together) {
        float n = (float)FV_MIN(w->together, copies - c);
        w->tasks[w->ntasks++] = (fv_sim_task){ n * (float)f->read, n * (float)f->compute, n * (float)f->write,
                                               n * (float)(f->bytes_read + f->bytes_written) };
    }
}

/* A unit with its stages and tasks; copies: of each task. The end of a stage is said by its tasks until they are fitted. */
static void add_unit(fv_sim_work *w, const fv_run_graph *graph, const fv_task_facts *tasks, int64_t count, int64_t copies) {
    int          part = graph ? fv__run_graph_part(graph, tasks->item) : -1, nstages = stages_of(graph, part, tasks, count);
    fv_sim_unit *unit = &w->units[w->nunits++];
    *unit = (fv_sim_unit){ w->nstages, nstages, FV_MAX(part, 0) };
    w->stages = fv__realloc(w->stages, (size_t)(w->nstages + nstages + 1) * sizeof *w->stages);
    for (int s = 0; s < nstages; s++) {
        fv_sim_stage *stage = &w->stages[w->nstages++];
        *stage = (fv_sim_stage){ .first = w->ntasks };
        if (part >= 0 && s < graph->parts[part].nstages) add_needs(stage, &graph->parts[part].stages[s]);
        for (int64_t i = 0; i < count; i++) {
            if (tasks[i].stage != s) continue;
            add_copies(w, &tasks[i], copies);
            stage->end += (double)copies;
        }
        stage->count = w->ntasks - stage->first;
    }
}

typedef struct measured {
    double seconds, merging;
    int    workers;
} measured;

/* What the seconds of tasks do not explain: before and after them, beside them, and that reading goes on while others compute. */
static void fit(fv_sim_work *w, const fv_task_facts *tasks, int64_t count, const measured *m) {
    double from = INFINITY, to = 0, busy = 0;
    for (int64_t i = 0; i < count; i++) {
        double took = tasks[i].read + tasks[i].compute + tasks[i].write;
        from = fmin(from, tasks[i].start);
        to = fmax(to, tasks[i].start + took);
        busy += took;
    }
    double span = to - from, rest = span * m->workers - busy - m->merging;
    w->serial = fmax(m->seconds - span, 0);
    w->scale = 1;
    if (m->workers == 1 && rest > 0) w->each = (double)w->together * rest / (double)FV_MAX(count, 1);
    if (m->workers == 1 && rest < 0 && busy > 0) w->scale = fmax((span - m->merging) / busy, 0.1);
    for (int64_t k = 0; k < w->nstages; k++) w->stages[k].end *= m->merging / (double)FV_MAX(count, 1);
}

static fv_status make_work(fv_task_facts *tasks, int64_t count, const fv_run_graph *graph, const measured *m, fv_sim_size size,
                           fv_sim_work *w, fv_error *error) {
    count = once(tasks, count);
    int64_t units = units_of(tasks, count), copies = units > 1 ? 1 : FV_MAX(size.times, 1);
    int64_t again = FV_MAX(size.volumes, 1) * (units > 1 ? FV_MAX(size.times, 1) : 1);
    int64_t most = MOST_TASKS / FV_MAX(count * again, 1);
    *w = (fv_sim_work){ .together = most ? (copies + most - 1) / most : 1 };
    if (!most)
        return fv_fail(error, FV_ERROR_USAGE, "%lld tasks are more than the %d that can be replayed: choose a smaller --times",
                       (long long)(count * again), MOST_TASKS);
    w->tasks = fv__alloc((size_t)(count * again * ((copies + w->together - 1) / w->together) + 1) * sizeof *w->tasks);
    w->units = fv__alloc((size_t)(units * again + 1) * sizeof *w->units);
    for (int64_t c = 0; c < again; c++)
        for (int64_t i = 0, next; i < count; i = next) {
            for (next = i + 1; next < count && tasks[next].item == tasks[i].item;) next++;
            add_unit(w, graph, tasks + i, next - i, copies);
        }
    fit(w, tasks, count, m);
    return FV_OK;
}

/* ---------------------------------------------------------------- a recorded run */

static void keep_task(void *context, const char *process, const fv_task_facts *facts) {
    (void)process;
    if (facts->status == FV_OK) fv__bytes_append(context, facts, sizeof *facts);
}

static double fact(const fv_story *story, const char *name) {
    const char *text = fv__story_fact(story, name);
    return text ? atof(text) : 0;
}

fv_status fv__sim_from_run(const char *run_folder, fv_sim_size size, fv_sim_work *work, fv_simulation *told, fv_error *error) {
    fv_story *story;
    fv_bytes  tasks = { 0 };
    FV_TRY(fv__story_open(run_folder, &story, error));
    fv_status status = fv__record_each(run_folder, keep_task, &tasks, error);
    int64_t   count = (int64_t)(tasks.size / sizeof(fv_task_facts));
    if (status == FV_OK && !count)
        status = fv_fail(error, FV_ERROR_INPUT, "%s has no task: there is nothing to replay", run_folder);
    measured m = { story->seconds, fact(story, "merging"), FV_MAX((int)fact(story, "workers"), 1) };
    if (status == FV_OK) status = make_work((fv_task_facts *)(void *)tasks.data, count, story->graph, &m, size, work, error);
    told->measured = story->seconds;
    told->recorded = m.workers;
    fv__bytes_release(&tasks);
    fv__story_close(story);
    return status;
}

/* ---------------------------------------------------------------- trial runs */

static int by_elapsed(const void *a, const void *b) {
    double x = ((const fv_trial_result *)a)->elapsed, y = ((const fv_trial_result *)b)->elapsed;
    return x < y ? -1 : x > y;
}

static fv_status run_trials(fv_trials *trials, const fv_simulate_options *o, fv_trial_result *one, fv_trial_result *two, int n,
                            fv_error *error) {
    fv_status status = FV_OK;
    for (int i = 0; i < 2 * n && status == FV_OK; i++) {
        fv_trial trial = { .workers = 1 + i % 2, .memory = o->memory };
        char     what[80];
        snprintf(what, sizeof what, "run %d of %d: %d worker%s", i / 2 + 1, n, trial.workers, trial.workers == 1 ? "" : "s");
        if (o->tell) o->tell(NULL, what);
        status = fv__trial_run(trials, &trial, i % 2 ? &two[i / 2] : &one[i / 2], error);
        if (status == FV_OK && (i % 2 ? &two[i / 2] : &one[i / 2])->failures)
            status = fv_fail(error, FV_ERROR_INPUT, "items failed: their times would say nothing");
    }
    return status;
}

fv_status fv__sim_from_trials(fv_pipeline *pipeline, const fv_simulate_options *o, fv_sim_work *work, fv_simulation *told,
                              fv_error *error) {
    int              n = FV_MAX(o->repeats, 1);
    fv_trials       *trials;
    fv_trial_result *one = fv__calloc(2 * (size_t)n * sizeof *one), *two = one + n;
    fv_session      *before = fv__session_enter(pipeline->session);
    fv_status        status = fv__trials_new(pipeline, o->store, NULL, o->cancel, &trials, error);
    if (status == FV_OK) {
        status = run_trials(trials, o, one, two, n, error);
        fv__trials_free(trials);
    }
    fv__session_enter(before);
    if (status == FV_OK) {
        qsort(one, (size_t)n, sizeof *one, by_elapsed);
        qsort(two, (size_t)n, sizeof *two, by_elapsed);
        fv_trial_result *r = &one[0]; /* others only add to what it takes */
        measured         m = { r->elapsed, r->merging, 1 };
        status = make_work(r->tasks, r->ntasks, r->graph, &m, (fv_sim_size){ o->times, o->volumes }, work, error);
        told->measured = r->elapsed;
        told->recorded = 1;
        told->measured_two = two[0].elapsed;
    }
    for (int i = 0; i < 2 * n; i++) fv__trial_result_release(&one[i]);
    free(one);
    return status;
}
