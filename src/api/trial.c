/* Trial runs in processes of their own. */
#include "api/trial.h"
#include "api/pipeline_parts.h"
#include "base/file.h"
#include "store/store_place.h"
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct fv_trials {
    const fv_pipeline  *pipeline;
    char               *folder, *text, *command;
    const volatile int *cancel;
    int                 count;
};

fv_status fv__trials_new(const fv_pipeline *pipeline, const char *folder, const char *command, const volatile int *cancel,
                         fv_trials **out, fv_error *error) {
    if (pipeline->bindings.narrays)
        return fv_fail(error, FV_ERROR_USAGE, "a pipeline with arrays in memory cannot be tried out in another process");
    char       own[4096] = "/proc/self/exe";
    ssize_t    length = readlink("/proc/self/exe", own, sizeof own - 1);
    fv_trials *t = fv__calloc(sizeof *t);
    if (length > 0) own[length] = 0;
    *t = (fv_trials){ .pipeline = pipeline, .command = fv__strdup(command ? command : own), .cancel = cancel };
    char *place = fv__store_place(folder, true);
    t->folder = fv__sprintf("%s/trial-%d-%llx", place, (int)getpid(), (unsigned long long)(fv__now() * 1e6));
    free(place);
    t->text = fv__sprintf("%s/pipeline.fov", t->folder);
    fv_status status = fv__path_make_folders(t->folder, error);
    if (status == FV_OK) status = fv__file_write_all(t->text, pipeline->text.data, pipeline->text.size, false, error);
    *out = status == FV_OK ? t : NULL;
    if (status != FV_OK) fv__trials_free(t);
    return status;
}

void fv__trials_free(fv_trials *t) {
    if (!t) return;
    fv__path_remove(t->folder, NULL);
    free(t->folder);
    free(t->text);
    free(t->command);
    free(t);
}

/* ---------------------------------------------------------------- the command */

typedef struct words {
    fv_arena arena;
    char    *list[256];
    int      count;
} words;

static void add(words *w, const char *word) {
    if (w->count + 1 < FV_COUNT(w->list)) w->list[w->count++] = fv__arena_strdup(&w->arena, word);
}
static void add_number(words *w, const char *option, int64_t number) {
    if (number <= 0) return;
    add(w, option);
    add(w, fv__arena_printf(&w->arena, "%lld", (long long)number));
}

static void make_command(const fv_trials *t, const fv_trial *trial, const char *folder, words *w) {
    const fv_plan_options *plan = &t->pipeline->plan_options;
    char                  *launcher = fv__arena_strdup(&w->arena, trial->launcher ? trial->launcher : ""), *rest = NULL;
    for (char *word = strtok_r(launcher, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) add(w, word);
    add(w, t->command);
    add(w, "run");
    add(w, t->text);
    add(w, "--json");
    add(w, "--store");
    add(w, fv__arena_printf(&w->arena, "%s/store", folder));
    add(w, "--into");
    add(w, fv__arena_printf(&w->arena, "%s/out", folder));
    if (trial->engine) {
        add(w, "--engine");
        add(w, trial->engine);
    }
    add_number(w, "--workers", trial->workers);
    add_number(w, "--items", trial->items);
    add_number(w, "--memory", trial->memory);
    for (int i = 0; i < t->pipeline->nsets; i++) {
        add(w, "--set");
        add(w, t->pipeline->sets[i]);
    }
    fv_bytes chunk = { 0 };
    for (int d = 0; d < plan->chunk_ndim; d++) fv__bytes_printf(&chunk, "%s%lld", d ? "x" : "", (long long)plan->chunk[d]);
    if (chunk.size) {
        add(w, "--chunk");
        add(w, (char *)chunk.data);
    }
    fv__bytes_release(&chunk);
}

/* The environment with the part that is to be taken. */
static char **environment_with(const char *part, fv_arena *arena) {
    size_t count = 0, kept = 0;
    while (environ[count]) count++;
    char **list = fv__arena_alloc(arena, (count + 2) * sizeof *list);
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "FOVEA_PART=", 11)) list[kept++] = environ[i];
    if (part) list[kept++] = fv__arena_printf(arena, "FOVEA_PART=%s", part);
    return list;
}

static void pause_shortly(void) { nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL); }

static fv_status await(const fv_trials *t, pid_t pid, int *code) {
    bool asked = false;
    int  state;
    for (;;) {
        pid_t done = waitpid(pid, &state, WNOHANG);
        if (done == pid) break;
        if (done < 0 && errno != EINTR) return FV_ERROR_INTERNAL;
        if (t->cancel && *t->cancel && !asked) asked = !kill(pid, SIGTERM);
        pause_shortly();
    }
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    return FV_OK;
}

static fv_status start_and_wait(const fv_trials *t, words *w, const char *part, const char *out, const char *err, int *code,
                                fv_error *error) {
    posix_spawn_file_actions_t actions;
    pid_t                      pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_addopen(&actions, 2, err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int failed = posix_spawnp(&pid, w->list[0], &actions, NULL, w->list, environment_with(part, &w->arena));
    posix_spawn_file_actions_destroy(&actions);
    if (failed) return fv_fail(error, FV_ERROR_MISSING, "cannot start %s: %s", w->list[0], strerror(failed));
    return await(t, pid, code) == FV_OK ? FV_OK : fv_fail(error, FV_ERROR_INTERNAL, "lost the process of a trial run");
}

/* ---------------------------------------------------------------- what happened */

static void take_task(void *context, const char *process, const fv_task_facts *facts) {
    (void)process;
    if (facts->status == FV_OK) fv__bytes_append(context, facts, sizeof *facts);
}

static fv_status read_record(const char *folder, fv_trial_result *result, fv_error *error) {
    char     *runs = fv__sprintf("%s/store/runs", folder);
    DIR      *dir = opendir(runs);
    fv_bytes  tasks = { 0 };
    fv_status status = FV_OK;
    for (struct dirent *entry; dir && status == FV_OK && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        char *run = fv__sprintf("%s/%s", runs, entry->d_name);
        status = fv__record_each(run, take_task, &tasks, error);
        fv__run_graph_free(result->graph);
        result->graph = fv__run_graph_read(run);
        free(run);
    }
    if (dir) closedir(dir);
    free(runs);
    result->tasks = (fv_task_facts *)(void *)tasks.data;
    result->ntasks = (int64_t)(tasks.size / sizeof *result->tasks);
    return status;
}

static double number_in(const cJSON *root, const char *name) {
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(root, name);
    return cJSON_IsNumber(field) ? field->valuedouble : 0;
}

/* The last line that the command left on standard error, without its name in front. */
static fv_status explain(const char *err, int code, fv_error *error) {
    fv_bytes text = { 0 };
    if (code == 130) return fv_fail(error, FV_ERROR_CANCELLED, "stopped");
    if (fv__file_read_all(err, (size_t)1 << 20, &text, NULL) != FV_OK) fv__bytes_printf(&text, "exit status %d", code);
    char *start = (char *)text.data;
    while (text.size && start[text.size - 1] == '\n') start[--text.size] = 0;
    char *line = strrchr(start, '\n');
    line = line ? line + 1 : start;
    if (!strncmp(line, "fovea run: ", 11)) line += 11;
    fv_status status = fv_fail(error, code == 2 ? FV_ERROR_USAGE : FV_ERROR_INPUT, "a trial run failed: %s",
                               *line ? line : "it ended without a word");
    fv__bytes_release(&text);
    return status;
}

static fv_status read_summary(const char *out, fv_trial_result *result, fv_error *error) {
    fv_bytes text = { 0 };
    FV_TRY(fv__file_read_all(out, (size_t)1 << 30, &text, error));
    cJSON *root = cJSON_Parse((char *)text.data);
    fv__bytes_release(&text);
    if (!root) return fv_fail(error, FV_ERROR_INTERNAL, "a trial run printed no summary");
    result->seconds = number_in(root, "seconds");
    result->opening = number_in(root, "seconds_opening");
    result->merging = number_in(root, "seconds_merging");
    result->peak_memory = (int64_t)number_in(root, "peak_memory");
    result->tasks_run = (int64_t)number_in(root, "tasks_run");
    result->failures = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "failures"));
    cJSON_Delete(root);
    return FV_OK;
}

static fv_status run_in(fv_trials *t, const fv_trial *trial, const char *folder, fv_trial_result *result, fv_error *error) {
    words w = { 0 };
    char *out = fv__arena_printf(&w.arena, "%s/stdout", folder), *err = fv__arena_printf(&w.arena, "%s/stderr", folder);
    int   code = 0;
    make_command(t, trial, folder, &w);
    double    start = fv__now();
    fv_status status = start_and_wait(t, &w, trial->part, out, err, &code, error);
    result->elapsed = fv__now() - start;
    if (status == FV_OK && code != 0 && code != 1) status = explain(err, code, error);
    if (status == FV_OK && read_summary(out, result, error) != FV_OK) status = explain(err, code, error);
    if (status == FV_OK && result->failures && !result->tasks_run) status = explain(err, code, error);
    if (status == FV_OK) status = read_record(folder, result, error);
    if (!result->tasks_run) result->tasks_run = result->ntasks; /* jobs ran them, not the command that waited for them */
    fv__arena_release(&w.arena);
    return status;
}

fv_status fv__trial_run(fv_trials *t, const fv_trial *trial, fv_trial_result *result, fv_error *error) {
    char     *folder = fv__sprintf("%s/%d", t->folder, t->count++);
    fv_status status = fv__path_make_folders(folder, error);
    *result = (fv_trial_result){ 0 };
    if (status == FV_OK) status = run_in(t, trial, folder, result, error);
    fv__path_remove(folder, NULL);
    free(folder);
    return status;
}

void fv__trial_result_release(fv_trial_result *result) {
    free(result->tasks);
    fv__run_graph_free(result->graph);
    *result = (fv_trial_result){ 0 };
}
