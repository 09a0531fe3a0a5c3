/* Work that a pilot does, while the command that asked for it waits. */
#include "piloted.h"
#include <fovea/pilot.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK 0.25 /* seconds between looks at the pilot */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nap(void) { nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL); }

typedef struct waiting { /* for a job of a pilot */
    const char    *folder;
    int64_t        job;
    fv_pilot_state state;
    double         looked;
} waiting;

/* Whether the pilot does no more for the job. */
static bool is_over(waiting *w) {
    fv_error ignored = { 0 };
    if (now() - w->looked < LOOK) return false;
    w->looked = now();
    if (fv_pilot_look(w->folder, w->job, &w->state, &ignored) == FV_ERROR_INPUT) w->state.stand = FV_PILOT_LEFT; /* removed */
    return w->state.stand > FV_PILOT_RUNS;
}

static fv_status explain(const waiting *w, const char *pilot, fv_error *error) {
    if (w->state.stand == FV_PILOT_FAILED) return fv_fail(error, FV_ERROR_IO, "%s", w->state.why);
    if (w->state.stand == FV_PILOT_CANCELLED)
        return fv_fail(error, FV_ERROR_CANCELLED, "taken back by somebody else; the same command goes on");
    return fv_fail(error, FV_ERROR_CANCELLED,
                   "the pilot has ended before all was done; what is left goes on with `fovea pilot start %s`, or with the same "
                   "command without --pilot",
                   pilot);
}

/* ---------------------------------------------------------------- runs */

typedef struct job {
    fv_pipeline *pipeline;
    const char  *pilot;
} job;

static void show(const char *run_folder, const fv_run_options *options, double began) {
    fv_run_state state;
    if (!options->progress || fv_run_look(run_folder, &state, NULL) != FV_OK) return;
    state.seconds = now() - began;
    options->progress(options->context, &state);
}

static fv_status wait_for(waiting *w, const char *pilot, const char *run_folder, const fv_run_options *options, fv_error *error) {
    for (double began = now(), shown = began; !is_over(w); nap()) {
        if (options->cancel && *options->cancel) {
            fv_pilot_cancel(w->folder, w->job, error);
            return fv_fail(error, FV_ERROR_CANCELLED, "interrupted; the same command goes on");
        }
        if (now() - shown < 2 * LOOK) continue;
        shown = now();
        show(run_folder, options, began);
    }
    return w->state.stand == FV_PILOT_DONE ? FV_OK : explain(w, pilot, error);
}

static fv_status run_piloted(void *context, const fv_run_options *given, fv_result **result, fv_error *error) {
    const job      *j = context;
    fv_run_options  here = *given;
    fv_work_options rest = { .finish = true, .level = FV_MOST_TRIES - 1 };
    char           *run_folder = NULL, *folder = NULL;
    waiting         w = { 0 };
    here.engine = NULL;
    fv_status status = fv_pilot_find(given->store, j->pilot, &folder, error);
    if (status == FV_OK) status = fv_pipeline_freeze(j->pipeline, &here, &run_folder, error);
    if (status == FV_OK) status = fv_run_renew(run_folder, error);
    w.folder = folder;
    if (status == FV_OK) status = fv_pilot_add_run(folder, run_folder, &here, &w.job, error);
    if (status == FV_OK) status = wait_for(&w, j->pilot, run_folder, &here, error);
    if (status == FV_OK)
        status = fv_work(run_folder, &rest, &here, result, error); /* nothing is left but to gather what is told */
    else
        *result = fv_result_new();
    free(run_folder);
    free(folder);
    return status;
}

int fv_execute_piloted(const char *command, fv_pipeline *pipeline, const char *pilot, const fv_execute *options) {
    job j = { pipeline, pilot };
    int code = fv_execute_work(command, run_piloted, &j, pipeline, options);
    fv_pipeline_free(pipeline);
    return code;
}

/* ---------------------------------------------------------------- programs */

typedef struct following {
    waiting                 wait;
    const fv_units_options *asked;
} following;

static bool units_are_over(void *context) { return is_over(&((following *)context)->wait); }
static void pass_end(void *context, const fv_unit_end *end) {
    const fv_units_options *o = ((following *)context)->asked;
    if (o->ended) o->ended(o->context, end);
}
static void pass_progress(void *context, const fv_units_state *state) {
    const fv_units_options *o = ((following *)context)->asked;
    if (o->progress) o->progress(o->context, state);
}

fv_status fv_units_piloted(const char *pilot, fv_units_options *options, fv_units_state *state, fv_error *error) {
    char      session[33], *folder = NULL;
    following f = { .asked = options };
    fv_status status = fv_pilot_find(options->store, pilot, &folder, error);
    options->share = true; /* the pilot's processes and this one */
    f.wait.folder = folder;
    if (status == FV_OK) status = fv_pilot_add_units(folder, options, &f.wait.job, session, error);
    if (status == FV_OK) {
        fv_units_options follow = *options;
        follow.session = session;
        follow.over = units_are_over;
        follow.ended = pass_end;
        follow.progress = pass_progress;
        follow.context = &f;
        status = fv_units_run(&follow, state, error);
        fv_pilot_state *s = &f.wait.state;
        while (status == FV_OK && s->stand <= FV_PILOT_RUNS && !is_over(&f.wait)) { /* its processes find out in turn */
            if (options->stop && *options->stop) break;
            nap();
        }
        if (status == FV_ERROR_CANCELLED) fv_pilot_cancel(folder, f.wait.job, &(fv_error){ 0 });
        if (status == FV_OK && s->stand > FV_PILOT_DONE) status = explain(&f.wait, pilot, error);
    }
    free(folder);
    return status;
}
