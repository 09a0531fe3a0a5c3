/* fovea watch: a run while it goes on. */
#include "cluster_options.h"
#include "pipeline_options.h"
#include "stopping.h"
#include "watching.h"
#include <fovea/report.h>
#include <fovea/watch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

typedef struct {
    const char *store;
    bool        once, json, web;
    int64_t     port, process;
    double      every;
} watch_options;

static const fv_option options[] = {
    FV_OPTION(watch_options, store, .argument = "FOLDER", .doc = "where runs are kept; .fovea if left out"),
    FV_OPTION(watch_options, once, .doc = "show how it is now, and end"),
    FV_OPTION(watch_options, json, .doc = "print JSON, an object on a line for each look"),
    FV_OPTION(watch_options, every, .def = "0.5", .min = 0.1, .max = 3600, .argument = "SECONDS",
              .doc = "how often to look; 0.5 if left out"),
    FV_OPTION(watch_options, web, .doc = "show it in a browser: print a link"),
    FV_OPTION(watch_options, port, .min = 0, .max = 65535, .argument = "N",
              .doc = "port of the link; one that is free if left out"),
    FV_OPTION(watch_options, process, .min = 1, .max = 1e9, .argument = "PID",
              .doc = "the run of this process of this machine: waits until it has begun, and ends with it"),
    FV_OPTION_END,
};

static int columns(void) {
    struct winsize w;
    return ioctl(1, TIOCGWINSZ, &w) || !w.ws_col ? 100 : w.ws_col - 1;
}

/* In place: back to the first line of what was shown, every line cleared to its end, and what is below it too. */
static void show(const char *text, bool in_place, int *lines) {
    if (in_place && *lines) printf("\033[%dA", *lines);
    *lines = 0;
    for (const char *p = text; *p; *lines += 1) {
        size_t length = strcspn(p, "\n");
        printf("%.*s%s\n", (int)length, p, in_place ? "\033[K" : "");
        p += length + (p[length] == '\n');
    }
    if (in_place) printf("\033[J");
}

static fv_status follow(const watch_options *o, fv_watch *watch, fv_error *error) {
    volatile int *stop = fv_stopping(true);
    bool          over = false, in_place = isatty(1) && !o->json && !o->once;
    int           lines = 0;
    while (!*stop) {
        char     *text;
        fv_status status = fv_watch_look(watch, o->json ? FV_FORM_JSON : FV_FORM_TEXT, columns(), &text, &over, error);
        if (status != FV_OK) return status;
        if (o->json)
            printf("%s\n", text);
        else if (in_place || o->once || over)
            show(text, in_place, &lines);
        free(text);
        fflush(stdout);
        if (over || o->once || ferror(stdout)) break;
        for (double waited = 0; waited < o->every && !*stop; waited += 0.1) usleep(100000);
    }
    return FV_OK;
}

/* The run of a process, once it has begun; NULL: the process has ended before. */
static char *wait_for_run(const watch_options *o) {
    volatile int *stop = fv_stopping(true);
    char         *folder = NULL;
    for (bool alive = true; alive && !folder && !*stop;) {
        alive = !kill((pid_t)o->process, 0);
        folder = fv_watch_find(o->store, (int)o->process);
        if (!folder) usleep(50000);
    }
    return folder;
}

static fv_status find_run(const watch_options *o, const char *name, char **folder, fv_error *error) {
    if (!o->process) return fv_run_find(o->store, name, folder, error);
    *folder = wait_for_run(o);
    if (*folder) return FV_OK;
    snprintf(error->message, sizeof error->message, "process %lld has begun no run here", (long long)o->process);
    return FV_ERROR_USAGE;
}

static int run(const void *options_, int nargs, char **args) {
    const watch_options *o = options_;
    fv_error             error = { 0 };
    char                *folder;
    fv_watch            *watch = NULL;
    signal(SIGPIPE, SIG_IGN);
    fv_status status = find_run(o, nargs ? args[0] : NULL, &folder, &error);
    if (status == FV_OK) status = fv_watch_open(folder, &watch, &error);
    int code = FV_EXIT_WELL;
    if (status == FV_OK && o->web)
        code = fv_watching_serve("watch", watch, (int)o->port, o->process > 0);
    else if (status == FV_OK)
        status = follow(o, watch, &error);
    fv_watch_close(watch);
    free(folder);
    return status == FV_OK ? code : fv_explain("watch", NULL, status, &error);
}

const fv_command fv_cmd_watch = {
    .name = "watch",
    .brief = "watch a run while it goes on",
    .usage = "[RUN]",
    .least = 0,
    .most = 1,
    .doc = "Shows how far each stage is, what the workers do, memory against its bound, rates, residuals, what failed and "
           "why, and how long it will still take. All of it is read from the folder of the run, so a run on a cluster can "
           "be watched from any machine that sees the folder, and the run does not notice it. It ends with the run.\n"
           "RUN is the folder of a run, or the beginning of its name. If left out, it is the one that wrote last.",
    .examples = "fovea watch\nfovea watch 0123 --once\nfovea watch --web",
    .options = options,
    .options_size = sizeof(watch_options),
    .run = run,
};
