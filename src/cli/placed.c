/* Runs whose workers another system places. */
#include "placed.h"
#include <fcntl.h>
#include <fovea/cluster.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define LOOK 0.5   /* seconds between looks at the run */
#define GRACE 30.0 /* for the program to end after its input has ended */

enum { LONGEST_WORD = 600 };

void fv_placing_add(fv_placing *p, const char *option, const char *value) {
    if (!value || p->noptions + 2 >= FV_MOST_PLACING) return;
    p->options[p->noptions++] = option;
    p->options[p->noptions++] = value;
}

/* ---------------------------------------------------------------- the program */

/* The folder of the Python package that belongs to this program: of a wheel, a checkout, an installation. */
static bool package_folder(char *folder, size_t size) {
    static const char *const places[] = { "/../..", "/../python", "/../share/fovea/python" };
    char                     program[2048], module[4096];
    ssize_t                  length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) return false;
    program[length] = 0;
    *strrchr(program, '/') = 0;
    for (int i = 0; i < (int)(sizeof places / sizeof *places); i++) {
        snprintf(module, sizeof module, "%s%s/fovea/_placed.py", program, places[i]);
        snprintf(folder, size, "%s%s", program, places[i]);
        if (!access(module, R_OK)) return true;
    }
    return false;
}

/* Whoever installed the package beside the Python that runs it needs no path. */
static void add_package(void) {
    char        folder[3072], path[8192];
    const char *before = getenv("PYTHONPATH");
    if (!package_folder(folder, sizeof folder)) return;
    snprintf(path, sizeof path, "%s%s%s", folder, before ? ":" : "", before ? before : "");
    setenv("PYTHONPATH", path, 1);
}

typedef struct program {
    pid_t pid;
    int   input, output; /* ours: it ends when we close the first, and prints to the second */
    char  said[LONGEST_WORD];
    int   length;
} program;

static fv_status start(const fv_placing *p, const char *run_folder, bool shown, program *out, fv_error *error) {
    const char *python = getenv("FOVEA_PYTHON"), *arguments[FV_MOST_PLACING + 8];
    char        module[64], log[4096];
    int         n = 0, in[2], from[2];
    if (!python) python = "python3";
    snprintf(module, sizeof module, "fovea.%s", p->engine);
    snprintf(log, sizeof log, "%s/%s.log", run_folder, p->engine);
    arguments[n++] = python;
    arguments[n++] = "-m";
    arguments[n++] = module;
    arguments[n++] = run_folder;
    for (int i = 0; i < p->noptions; i++) arguments[n++] = p->options[i];
    arguments[n] = NULL;
    if (pipe2(in, O_CLOEXEC) || pipe2(from, O_CLOEXEC)) return fv_fail(error, FV_ERROR_IO, "no pipe can be opened");
    add_package();
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t          attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP); /* Ctrl-C is ours, to end all of it in order */
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    if (!shown) posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    int result = posix_spawnp(&out->pid, python, &actions, &attributes, (char *const *)(void *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(in[0]);
    close(from[1]);
    out->input = in[1];
    out->output = from[0];
    if (!result) return FV_OK;
    close(in[1]);
    close(from[0]);
    return fv_fail(error, FV_ERROR_MISSING, "%s cannot be started (%s), and --engine %s needs it; FOVEA_PYTHON names another one",
                   python, strerror(result), p->engine);
}

/* Keeps the end of what it prints, waiting at most so many seconds for more. False: it will print nothing any more. */
static bool listen_to(program *p, double seconds) {
    char          bytes[256];
    struct pollfd ready = { .fd = p->output, .events = POLLIN };
    if (poll(&ready, 1, (int)(seconds * 1000)) <= 0) return true;
    ssize_t count = read(p->output, bytes, sizeof bytes);
    for (ssize_t i = 0; i < count; i++) {
        if (p->length == LONGEST_WORD - 1) memmove(p->said, p->said + 1, (size_t)--p->length);
        p->said[p->length++] = bytes[i];
    }
    p->said[p->length] = 0;
    return count > 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void show(const char *run_folder, const fv_run_options *options, double began) {
    fv_run_state state;
    if (!options->progress || fv_run_look(run_folder, &state, NULL) != FV_OK) return;
    state.seconds = now() - began;
    options->progress(options->context, &state);
}

/* Until it has ended. Its exit status; 130 if that was our wish. */
static int wait_for(program *p, const char *run_folder, const fv_run_options *options) {
    double began = now(), looked = began, stopped = 0;
    int    status;
    while (listen_to(p, 0.1)) {
        if (options->cancel && *options->cancel && !stopped) {
            stopped = now();
            close(p->input);
            p->input = -1;
        }
        if (stopped && now() - stopped > GRACE) kill(-p->pid, SIGKILL);
        if (now() - looked < LOOK) continue;
        looked = now();
        show(run_folder, options, began);
    }
    while (waitpid(p->pid, &status, 0) < 0) {
    }
    if (p->input >= 0) close(p->input);
    close(p->output);
    if (stopped) return FV_EXIT_INTERRUPTED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : FV_EXIT_FAILED;
}

/* ---------------------------------------------------------------- the run */

typedef struct job {
    fv_pipeline      *pipeline;
    const fv_placing *placing;
    bool              shown;
} job;

/* The last line of a log, in which a program says why it ended. */
static void last_line(const char *path, char *line, size_t size) {
    FILE *file = fopen(path, "r");
    char  read[512];
    *line = 0;
    while (file && fgets(read, sizeof read, file))
        if (strspn(read, " \t\n") < strlen(read)) snprintf(line, size, "%.*s", (int)strcspn(read, "\n"), read);
    if (file) fclose(file);
}

static fv_status explain(const job *j, const char *run_folder, const program *p, int code, fv_error *error) {
    if (code == FV_EXIT_INTERRUPTED) return fv_fail(error, FV_ERROR_CANCELLED, "interrupted; the same command goes on");
    const char *engine = j->placing->engine, *said = p->said;
    char        log[4096], line[300];
    size_t      length = strlen(said);
    while (length && strchr(" \n", said[length - 1])) length--;
    fv_status status = code == FV_EXIT_REFUSED ? FV_ERROR_USAGE : FV_ERROR_IO;
    if (length) return fv_fail(error, status, "%.*s", (int)length, said);
    if (j->shown)
        return fv_fail(error, status, "the program that places workers for --engine %s ended with status %d", engine, code);
    snprintf(log, sizeof log, "%s/%s.log", run_folder, engine);
    last_line(log, line, sizeof line);
    return fv_fail(error, status, "the program that places workers for --engine %s ended with status %d; the last line of %s: %s",
                   engine, code, log, *line ? line : "none");
}

static fv_status run_placed(void *context, const fv_run_options *given, fv_result **result, fv_error *error) {
    const job      *j = context;
    fv_run_options  here = *given;
    fv_work_options rest = { .finish = true, .level = FV_MOST_TRIES - 1 };
    char           *run_folder = NULL;
    program         p = { 0 };
    here.engine = NULL;
    fv_status status = fv_pipeline_freeze(j->pipeline, &here, &run_folder, error);
    if (status == FV_OK) status = fv_run_renew(run_folder, error);
    if (status == FV_OK) status = start(j->placing, run_folder, j->shown, &p, error);
    if (status == FV_OK) {
        int code = wait_for(&p, run_folder, &here);
        if (code) status = explain(j, run_folder, &p, code, error);
    }
    if (status == FV_OK)
        status = fv_work(run_folder, &rest, &here, result, error);
    else
        *result = fv_result_new();
    free(run_folder);
    return status;
}

int fv_execute_placed(const char *command, fv_pipeline *pipeline, const fv_placing *placing, const fv_execute *options) {
    job j = { pipeline, placing, options->verbose };
    int code = fv_execute_work(command, run_placed, &j, pipeline, options);
    fv_pipeline_free(pipeline);
    return code;
}
