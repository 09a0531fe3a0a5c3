/* Work that a pilot does, while the command that asked for it waits. */
#include "piloted.h"
#include <fovea/pilot.h>
#include <fovea/ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

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
    if (!pilot) return fv_fail(error, FV_ERROR_CANCELLED, "the workers have ended before all was done; the same command goes on");
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

/* pilot: its name for the user; NULL: he knows of none. */
static fv_status bring_units(const char *folder, const char *pilot, fv_units_options *options, fv_units_state *state,
                             fv_error *error) {
    char      session[33];
    following f = { .asked = options, .wait.folder = folder };
    options->share = true; /* the pilot's processes and this one */
    fv_status status = fv_pilot_add_units(folder, options, &f.wait.job, session, error);
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
    return status;
}

fv_status fv_units_piloted(const char *pilot, fv_units_options *options, fv_units_state *state, fv_error *error) {
    char     *folder = NULL;
    fv_status status = fv_pilot_find(options->store, pilot, &folder, error);
    if (status == FV_OK) status = bring_units(folder, pilot, options, state, error);
    free(folder);
    return status;
}

/* ---------------------------------------------------------------- programs, by workers of the call's own */

enum { MOST_CPUS = 4096, MOST_JOBS = 100 };
static const int64_t SPARE = (int64_t)256 << 20; /* bytes of an agent itself */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* As many agents as are wanted, each with room for the largest unit. */
static fv_status make_request(const fv_units_engine *e, const fv_units_options *asked, fv_pilot_options *pilot, fv_error *error) {
    fv_units_options every = *asked;
    fv_units_state   state;
    fv_units_needs   needs;
    int64_t          here = sysconf(_SC_NPROCESSORS_ONLN);
    if (!pilot->local) every.workers = MOST_CPUS; /* of the other machines nothing is known here */
    fv_status status = fv_units_check(&every, &state, &needs, error);
    if (status != FV_OK) return status;
    int64_t left = larger(state.units - state.done, 1);
    pilot->cluster.cpus = needs.cpus > 1 ? needs.cpus : 0;
    pilot->cluster.nodes = smaller(asked->workers ? asked->workers : MOST_JOBS, left);
    if (pilot->local) {
        pilot->cluster.cpus = needs.cpus;
        pilot->cluster.nodes = smaller(larger((asked->workers ? asked->workers : here) / needs.cpus, 1), left);
        if (asked->memory_bound && needs.memory)
            pilot->cluster.nodes = smaller(pilot->cluster.nodes, larger(asked->memory_bound / needs.memory, 1));
        pilot->cluster.memory = asked->memory_bound / pilot->cluster.nodes;
    } else if (needs.memory)
        pilot->cluster.memory = larger(needs.memory, asked->memory_bound) + SPARE;
    pilot->cluster.pilot = e->one_job;
    return FV_OK;
}

static fv_status run_once(const fv_units_engine *e, fv_units_options *options, fv_units_state *state, fv_error *error) {
    char             name[32], *said = NULL, *folder = NULL;
    fv_error         ignored = { 0 };
    fv_pilot_options pilot = { .name = name,
                               .store = options->store,
                               .local = !strcmp(e->name, "processes"),
                               .once = true,
                               .array = !e->one_job,
                               .cluster = { .profile = e->profile } };
    snprintf(name, sizeof name, "each-%d-%06d", (int)getpid(), (int)(time(NULL) % 1000000));
    fv_status status = make_request(e, options, &pilot, error);
    if (status == FV_OK) status = fv_pilot_start(&pilot, &said, error);
    fv_status found = fv_pilot_find(options->store, name, &folder, status == FV_OK ? error : &ignored);
    if (found == FV_OK && status != FV_OK) {
        fv_pilot_stop(folder, &ignored);                     /* some of its processes may have started */
        if (!pilot.local) fv_pilot_forget(folder, &ignored); /* else the message names what they wrote */
    } else if (status == FV_OK)
        status = found;
    if (status == FV_OK) {
        if (!pilot.local) options->workers = MOST_CPUS; /* each agent knows what it has */
        if (pilot.local && options->memory_bound) options->memory_bound = pilot.cluster.memory;
        status = bring_units(folder, NULL, options, state, error);
        fv_status ended = fv_pilot_stop(folder, &ignored);
        if (ended == FV_OK && (status == FV_OK || status == FV_ERROR_CANCELLED)) fv_pilot_forget(folder, &ignored);
    }
    free(folder);
    free(said);
    return status;
}

/* Programs that units start are no ranks of ours. */
static void forget_launcher(void) {
    static const char *const names[] = { "PMI", "OMPI_", "HYDI_", "HYDRA_", "MPI_LOCAL", "MPIR_" };
    for (char **at = environ; *at;) {
        char name[128];
        bool of_launcher = false;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            of_launcher = of_launcher || !strncmp(*at, names[i], strlen(names[i]));
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (!of_launcher || unsetenv(name)) at++;
    }
}

/* Before anybody begins: later a file that exists may be of another rank. */
static fv_status check_units(const fv_units_options *options, fv_error *error) {
    fv_units_options check = *options;
    fv_units_state   state;
    fv_units_needs   needs;
    check.share = true;
    return fv_units_check(&check, &state, &needs, error);
}

/* All ranks run units, and the first one tells of all. */
static fv_status run_ranks(fv_units_options *options, fv_units_state *state, bool *speaks, fv_error *error) {
    fv_team  *team;
    float     number[3] = { (float)(getpid() % (1 << 22)), (float)(time(NULL) % (1 << 22)) }, agreed[3] = { 0 };
    char      session[33];
    fv_status checked = FV_OK, status = fv_team_join(0, &team, error);
    if (status != FV_OK) return status;
    *speaks = fv_team_rank(team) == 0;
    if (*speaks) checked = check_units(options, error);
    number[2] = checked != FV_OK;
    fv_allreduce_block own = { .index = 0, .values = number };
    status = fv_allreduce(team, &own, *speaks ? 1 : 0, 3, agreed, checked == FV_OK ? error : NULL);
    if (status == FV_OK && agreed[2] != 0) /* the first one says why */
        status = *speaks ? checked : fv_fail(error, FV_ERROR_USAGE, "the first rank has found a mistake");
    snprintf(session, sizeof session, "ranks-%.0f-%.0f", (double)agreed[0], (double)agreed[1]);
    forget_launcher();
    options->share = true;
    options->session = session;
    options->tells = true;
    if (!options->workers) options->workers = fv_team_threads(team);
    if (!*speaks) {
        options->ended = NULL;
        options->progress = NULL;
        options->results = NULL;
    }
    if (status == FV_OK) status = fv_units_run(options, state, error);
    fv_team_leave(team);
    return status;
}

fv_status fv_units_engine_run(const fv_units_engine *e, fv_units_options *options, fv_units_state *state, bool *speaks,
                              fv_error *error) {
    *speaks = true;
    return strcmp(e->name, "mpi") ? run_once(e, options, state, error) : run_ranks(options, state, speaks, error);
}
