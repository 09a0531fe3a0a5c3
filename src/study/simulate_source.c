/* From a recorded run, or trial runs, to the work of a simulation. */
#include "study/simulate_source.h"
#include "api/pipeline_parts.h"
#include "api/trial.h"
#include "story/run_story.h"
#include <stdio.h>
#include <stdlib.h>

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
    fv_sim_record record = { .tasks = (fv_task_facts *)(void *)tasks.data,
                             .count = count,
                             .graph = story->graph,
                             .seconds = story->seconds,
                             .merging = fact(story, "merging"),
                             .workers = FV_MAX((int)fact(story, "workers"), 1) };
    if (status == FV_OK) status = fv__sim_work_make(&record, size, work, error);
    told->measured = story->seconds;
    told->recorded = record.workers;
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
        fv_sim_record    record = { r->tasks, r->ntasks, r->graph, r->elapsed, r->merging, 1 };
        status = fv__sim_work_make(&record, (fv_sim_size){ o->times, o->volumes, o->most }, work, error);
        told->measured = r->elapsed;
        told->recorded = 1;
        told->measured_two = two[0].elapsed;
    }
    for (int i = 0; i < 2 * n; i++) fv__trial_result_release(&one[i]);
    free(one);
    return status;
}
