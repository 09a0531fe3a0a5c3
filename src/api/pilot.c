/* Pilots, seen from outside: starting and stopping them, work for them, where they are. */
#include "api/cluster_request.h"
#include "base/file.h"
#include "base/host.h"
#include "cluster/job_scripts.h"
#include "cluster/pilot_book.h"
#include "cluster/slurm.h"
#include "store/lease.h"
#include "store/store_place.h"
#include "units/units_text.h"
#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fovea/pilot.h>
#include <pwd.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const double ALIVE = 30, START = 30, STOP = 60; /* seconds */

static void nap(void) { nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL); }

/* ---------------------------------------------------------------- where it is */

static bool is_name(const char *name) {
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_') return false;
    return *name && strlen(name) < 32;
}

static char *folder_of(const char *store, const char *name, bool writing) {
    char *place = fv__store_place(store, writing), *folder = fv__sprintf("%s/pilots/%s", place, name);
    free(place);
    return folder;
}

fv_status fv_pilot_find(const char *store, const char *name, char **folder, fv_error *error) {
    char *given = strchr(name, '/') ? fv__strdup(name) : folder_of(store, name, false);
    char *book = fv__path_inside(given, "pilot.db");
    *folder = fv__file_exists(book) ? realpath(given, NULL) : NULL;
    free(book);
    free(given);
    if (*folder) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE,
                   "there is no pilot %s here; `fovea pilot start %s` makes one, and from another folder it is "
                   "named by its path, as ../study/.fovea/pilots/%s",
                   name, is_name(name) ? name : "NAME", is_name(name) ? name : "NAME");
}

/* Agents that live, as far as can be told. */
static int count_agents(fv_book *book) {
    fv_book_agent *agents = NULL;
    int            count = 0, living = 0;
    if (fv__book_agents(book, fv__epoch() - ALIVE, &agents, &count, NULL) == FV_OK)
        for (int i = 0; i < count; i++) {
            bool here = !strcmp(agents[i].host, fv__host_self()->name);
            living += !here || fv__process_start(agents[i].pid) > 0;
        }
    free(agents);
    return living;
}

/* What Slurm says of its job; FV_SLURM_FAILED also if there is none. */
static fv_slurm_state slurm_state(fv_book *book) {
    char          *text = fv__book_fact(book, "slurm");
    int64_t        id = atoll(text);
    fv_slurm_jobs  jobs = { 0 };
    fv_slurm_state state = FV_SLURM_FAILED;
    free(text);
    if (id && fv__slurm_look(&id, 1, &jobs, &(fv_error){ 0 }) == FV_OK && jobs.count) state = jobs.items[jobs.count - 1].state;
    for (int i = 0; i < jobs.count; i++) /* of an array the one that has most before it counts */
        if (jobs.items[i].element >= 0 || jobs.items[i].elements > 1) state = FV_MIN(state, jobs.items[i].state);
    fv__slurm_jobs_release(&jobs);
    return state;
}

static bool is_over(fv_book *book) {
    if (count_agents(book)) return false;
    fv_slurm_state state = slurm_state(book);
    return state != FV_SLURM_PENDING && state != FV_SLURM_RUNNING;
}

/* ---------------------------------------------------------------- starting */

/* An agent that lives on when who started it is gone. */
static fv_status start_agent(const char *folder, int node, double ends, fv_error *error) {
    char *program = fv__host_program(), *log = fv__sprintf("%s/agent-%d.log", folder, node), number[16], end[32];
    snprintf(number, sizeof number, "%d", node);
    snprintf(end, sizeof end, "%.3f", ends);
    char                      *words[] = { program, "pilot", "serve", (char *)folder, end, number, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t          attributes;
    pid_t                      pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    int failure = posix_spawn(&pid, program, &actions, &attributes, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(program);
    free(log);
    return failure ? fv_fail(error, FV_ERROR_IO, "cannot start a process: %s", strerror(failure)) : FV_OK;
}

static fv_status start_here(const fv_pilot_options *o, const char *folder, fv_book *book, fv_error *error) {
    int64_t nodes = FV_MAX(o->cluster.nodes, 1);
    double  ends = o->seconds > 0 ? fv__epoch() + o->seconds : 0, until = fv__now() + START;
    for (int node = 0; node < nodes; node++) FV_TRY(start_agent(folder, node, ends, error));
    while (count_agents(book) < nodes) {
        if (fv__now() > until) return fv_fail(error, FV_ERROR_IO, "the agents do not answer; %s/agent-0.log may say why", folder);
        waitpid(-1, NULL, WNOHANG);
        nap();
    }
    return FV_OK;
}

static fv_status start_slurm(const fv_pilot_options *o, const char *folder, fv_book *book, fv_error *error) {
    fv_profile profile = fv__profile_default();
    int64_t    id;
    char       text[32], number[32];
    profile.cpus = o->once ? 1 : 0; /* 0: whole nodes, unless somebody says otherwise */
    fv_status status = fv__cluster_request(&o->cluster, &profile, error);
    snprintf(text, sizeof text, "%lld", (long long)FV_MAX((o->seconds + 59) / 60, 1)); /* minutes */
    if (o->seconds > 0) profile.time = text;
    if (o->once && !profile.memory) profile.memory = -1;
    if (status == FV_OK) status = fv__pilot_script_submit(folder, &profile, o->array, o->seconds, &id, error);
    if (status == FV_OK) {
        snprintf(number, sizeof number, "%lld", (long long)id);
        status = fv__book_set_fact(book, "slurm", number, error);
    }
    fv__profile_release(&profile);
    return status;
}

static fv_status set_number(fv_book *book, const char *name, int64_t number, fv_error *error) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return fv__book_set_fact(book, name, text, error);
}

static fv_status begin(const fv_pilot_options *o, const char *folder, bool local, fv_book *book, fv_error *error) {
    int64_t here = sysconf(_SC_NPROCESSORS_ONLN), nodes = FV_MAX(o->cluster.nodes, 1);
    if (!is_over(book))
        return fv_fail(error, FV_ERROR_BUSY, "pilot %s is there already; `fovea pilot status %s` shows it", o->name, o->name);
    int64_t cpus = o->cluster.cpus ? o->cluster.cpus : local ? FV_MAX(here / nodes, 1) : 0;
    FV_TRY(set_number(book, "cpus", local ? cpus : 0, error)); /* Slurm tells each agent what it has */
    FV_TRY(set_number(book, "memory", o->cluster.memory, error));
    FV_TRY(set_number(book, "nodes", nodes, error));
    FV_TRY(set_number(book, "once", o->once, error));
    FV_TRY(set_number(book, "local", local, error));
    FV_TRY(fv__book_set_fact(book, "slurm", "", error));
    FV_TRY(fv__book_set_fact(book, "state", "starts", error));
    return local ? start_here(o, folder, book, error) : start_slurm(o, folder, book, error);
}

fv_status fv_pilot_start(const fv_pilot_options *o, char **text, fv_error *error) {
    bool     local = o->local || fv__slurm_there(&(fv_error){ 0 }) != FV_OK;
    fv_book *book = NULL;
    *text = NULL;
    if (o->once && !o->local) FV_TRY(fv__slurm_there(error));
    if (!is_name(o->name))
        return fv_fail(error, FV_ERROR_USAGE, "a pilot's name has up to 31 letters, digits, - and _; \"%s\" is none", o->name);
    if (!local && !o->once && !(o->seconds > 0))
        return fv_fail(error, FV_ERROR_USAGE, "on Slurm a pilot needs --time, such as 2h");
    char     *made = folder_of(o->store, o->name, true), *place = fv__path_inside(made, "start");
    fv_lease *lease = NULL;
    bool      taken_over;
    fv_status status = fv__path_make_folders(made, error);
    if (status == FV_OK) status = fv__lease_acquire(place, &lease, &taken_over, error); /* whoever else starts it now finds it */
    if (status == FV_ERROR_BUSY) status = fv_fail(error, FV_ERROR_BUSY, "pilot %s is being started by another command", o->name);
    if (status == FV_OK) status = fv__book_open(made, true, &book, error);
    char *folder = status == FV_OK ? realpath(made, NULL) : NULL;
    if (status == FV_OK) status = begin(o, folder, local, book, error);
    if (status == FV_OK) {
        char *job = fv__book_fact(book, "slurm");
        *text = local ? fv__sprintf("pilot %s runs on this machine: %s\n", o->name, folder)
                      : fv__sprintf("pilot %s is job %s of Slurm: %s\n", o->name, job, folder);
        free(job);
    }
    fv__book_close(book);
    fv__lease_release(lease);
    free(folder);
    free(place);
    free(made);
    return status;
}

/* ---------------------------------------------------------------- stopping */

fv_status fv_pilot_stop(const char *folder, fv_error *error) {
    fv_book  *book;
    int64_t   id = 0;
    double    until = fv__now() + STOP;
    fv_status status = fv__book_open(folder, false, &book, error);
    if (status == FV_OK) status = fv__book_set_fact(book, "state", "stopping", error);
    while (status == FV_OK && count_agents(book) && fv__now() < until) nap();
    if (status == FV_OK) {
        char *text = fv__book_fact(book, "slurm");
        id = atoll(text);
        free(text);
        bool left = count_agents(book) > 0;
        if (id && slurm_state(book) < FV_SLURM_DONE)
            status = fv__slurm_cancel(&id, 1, error); /* it may not have begun */
        else if (left)
            status = fv_fail(error, FV_ERROR_BUSY, "the pilot does not answer; %s/agent-0.log may say why", folder);
    }
    fv__book_close(book);
    return status;
}

fv_status fv_pilot_forget(const char *folder, fv_error *error) {
    fv_book  *book;
    fv_status status = fv__book_open(folder, false, &book, error);
    bool      lives = status == FV_OK && count_agents(book);
    fv__book_close(book);
    if (lives) status = fv_fail(error, FV_ERROR_BUSY, "%s lives", folder);
    return status == FV_OK ? fv__path_remove(folder, error) : status;
}

/* ---------------------------------------------------------------- work for it */

static fv_status add(const char *folder, fv_book_job *job, int64_t *id, double *added, fv_error *error) {
    fv_book             *book;
    fv_arena             arena = { 0 };
    fv_book_job          found;
    char                *here = realpath(".", NULL), hex[33];
    const struct passwd *user = getpwuid(getuid());
    fv_hasher            hasher;
    fv__hasher_init(&hasher);
    fv__hasher_text(&hasher, here);
    fv__hasher_text(&hasher, job->what);
    fv__hash_format(fv__hasher_finish(&hasher), hex);
    job->key = hex;
    job->folder = here;
    job->user = user ? user->pw_name : "";
    job->added = fv__epoch();
    fv_status status = fv__book_open(folder, false, &book, error);
    if (status == FV_OK && is_over(book))
        status = fv_fail(error, FV_ERROR_USAGE, "pilot %s has ended; `fovea pilot start %s` starts it again",
                         fv__path_name(folder), fv__path_name(folder));
    if (status == FV_OK) status = fv__book_add(book, job, id, error);
    if (status == FV_OK) status = fv__book_job(book, *id, &arena, &found, error);
    if (status == FV_OK) *added = found.added;
    fv__book_close(book);
    fv__arena_release(&arena);
    free(here);
    return status;
}

fv_status fv_pilot_add_run(const char *folder, const char *run_folder, const fv_run_options *options, int64_t *job,
                           fv_error *error) {
    char       *run = realpath(run_folder, NULL);
    double      added;
    fv_book_job wanted = { .what = run ? run : run_folder,
                           .title = fv__path_name(run_folder),
                           .memory = options->memory,
                           .overwrite = options->overwrite };
    fv_status   status = add(folder, &wanted, job, &added, error);
    free(run);
    return status;
}

fv_status fv_pilot_add_units(const char *folder, const fv_units_options *options, int64_t *job, char session[33],
                             fv_error *error) {
    fv_units_state state;
    fv_units_needs needs;
    double         added = 0;
    FV_TRY(fv_units_check(options, &state, &needs, error));
    char       *text = fv__units_text(options);
    fv_book_job wanted = {
        .units = true, .what = text, .title = options->command, .memory = FV_MAX(options->memory_bound, needs.memory)
    };
    fv_status status = add(folder, &wanted, job, &added, error);
    snprintf(session, 33, "%lld-%.6f", (long long)*job, added);
    free(text);
    return status;
}

fv_status fv_pilot_look(const char *folder, int64_t id, fv_pilot_state *state, fv_error *error) {
    static const fv_pilot_stand stands[] = { FV_PILOT_WAITS, FV_PILOT_RUNS, FV_PILOT_DONE, FV_PILOT_FAILED, FV_PILOT_CANCELLED };
    fv_book                    *book;
    fv_book_job                 job;
    fv_arena                    arena = { 0 };
    fv_status                   status = fv__book_open(folder, false, &book, error);
    if (status == FV_OK) status = fv__book_job(book, id, &arena, &job, error);
    if (status == FV_OK) {
        *state = (fv_pilot_state){ .stand = stands[job.state] };
        snprintf(state->why, sizeof state->why, "%s", job.why);
        if (job.state <= FV_BOOK_RUNS && is_over(book)) state->stand = FV_PILOT_LEFT;
    }
    fv__book_close(book);
    fv__arena_release(&arena);
    return status;
}

fv_status fv_pilot_cancel(const char *folder, int64_t id, fv_error *error) {
    fv_book  *book;
    fv_status status = fv__book_open(folder, false, &book, error);
    if (status == FV_OK) status = fv__book_settle(book, id, FV_BOOK_CANCELLED, NULL, error);
    fv__book_close(book);
    return status;
}

/* ---------------------------------------------------------------- where it stands */

static void duration(double seconds, char text[32]) {
    long long s = (long long)FV_MAX(seconds, 0);
    snprintf(text, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

static const char *state_of(fv_book *book, int agents) {
    if (agents) return "runs";
    fv_slurm_state state = slurm_state(book);
    return state == FV_SLURM_PENDING ? "queued" : state == FV_SLURM_RUNNING ? "starts" : "ended";
}

static cJSON *agents_json(const fv_book_agent *agents, int count) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < count; i++) {
        cJSON *node = cJSON_CreateObject();
        cJSON_AddNumberToObject(node, "node", agents[i].node);
        cJSON_AddStringToObject(node, "host", agents[i].host);
        cJSON_AddNumberToObject(node, "cpus", agents[i].cpus);
        cJSON_AddNumberToObject(node, "memory", (double)agents[i].memory);
        if (agents[i].ends > 0) cJSON_AddNumberToObject(node, "ends", agents[i].ends);
        cJSON_AddItemToArray(list, node);
    }
    return list;
}

static cJSON *jobs_json(const fv_book_job *jobs, int count) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < count; i++) {
        cJSON *job = cJSON_CreateObject();
        cJSON_AddNumberToObject(job, "job", (double)jobs[i].id);
        cJSON_AddStringToObject(job, "state", fv__book_state_name(jobs[i].state));
        cJSON_AddStringToObject(job, "kind", jobs[i].units ? "each" : "run");
        cJSON_AddStringToObject(job, "title", jobs[i].title);
        cJSON_AddStringToObject(job, "user", jobs[i].user);
        cJSON_AddStringToObject(job, "folder", jobs[i].folder);
        cJSON_AddNumberToObject(job, "cpus", jobs[i].used);
        cJSON_AddNumberToObject(job, "cpu_seconds", jobs[i].served);
        if (*jobs[i].why) cJSON_AddStringToObject(job, "why", jobs[i].why);
        cJSON_AddItemToArray(list, job);
    }
    return list;
}

static char *status_json(const char *state, const fv_book_agent *agents, int nagents, const fv_book_job *jobs, int njobs) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "state", state);
    cJSON_AddItemToObject(root, "nodes", agents_json(agents, nagents));
    cJSON_AddItemToObject(root, "jobs", jobs_json(jobs, njobs));
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    return text;
}

static char *status_text(const char *name, const char *state, const fv_book_agent *agents, int nagents, const fv_book_job *jobs,
                         int njobs) {
    fv_bytes out = { 0 };
    fv__bytes_printf(&out, "pilot %s %s\n", name, state);
    for (int i = 0; i < nagents; i++) {
        char memory[24], left[32] = "";
        fv_size_format(agents[i].memory, memory);
        if (agents[i].ends > 0) duration(agents[i].ends - fv__epoch(), left);
        fv__bytes_printf(&out, "  node %d: %s, %d processor%s, %s%s%s\n", agents[i].node, agents[i].host, agents[i].cpus,
                         agents[i].cpus == 1 ? "" : "s", memory, *left ? ", time left " : "", left);
    }
    for (int i = 0; i < njobs; i++)
        fv__bytes_printf(&out, "  job %lld %s: %s %s (%s), %d processor%s now, %.1f s of processors so far%s%s\n",
                         (long long)jobs[i].id, fv__book_state_name(jobs[i].state), jobs[i].units ? "each" : "run", jobs[i].title,
                         jobs[i].user, jobs[i].used, jobs[i].used == 1 ? "" : "s", jobs[i].served, *jobs[i].why ? "; " : "",
                         jobs[i].why);
    if (!njobs) fv__bytes_printf(&out, "  nothing to do\n");
    fv__bytes_append(&out, "", 1);
    return (char *)out.data;
}

fv_status fv_pilot_status(const char *folder, fv_form form, char **text, fv_error *error) {
    fv_book       *book;
    fv_book_agent *agents = NULL;
    fv_book_job   *jobs = NULL;
    fv_arena       arena = { 0 };
    int            nagents = 0, njobs = 0;
    fv_status      status = fv__book_open(folder, false, &book, error);
    if (status == FV_OK) status = fv__book_agents(book, fv__epoch() - ALIVE, &agents, &nagents, error);
    if (status == FV_OK) status = fv__book_jobs(book, form == FV_FORM_JSON, &arena, &jobs, &njobs, error);
    if (status == FV_OK) {
        const char *state = state_of(book, count_agents(book));
        *text = form == FV_FORM_JSON ? status_json(state, agents, nagents, jobs, njobs)
                                     : status_text(fv__path_name(folder), state, agents, nagents, jobs, njobs);
    }
    fv__book_close(book);
    free(agents);
    free(jobs);
    fv__arena_release(&arena);
    return status;
}
