/* The server of a run's page. */
#include "watching.h"
#include "cli.h"
#include "stopping.h"
#include "view_server.h"
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct watching {
    fv_watch       *watch;
    pthread_mutex_t mutex;
    volatile int   *stop;
    volatile bool   over;
} watching;

static char *state(void *context) {
    watching *w = context;
    char     *text;
    bool      over;
    fv_error  error = { 0 };
    pthread_mutex_lock(&w->mutex);
    fv_status status = fv_watch_look(w->watch, FV_FORM_JSON, 0, &text, &over, &error);
    w->over = w->over || over;
    pthread_mutex_unlock(&w->mutex);
    return status == FV_OK ? text : NULL;
}

static void session(void *context, const fv_view_query *query, fv_view_answer *answer) {
    cJSON *json = cJSON_CreateObject();
    (void)context;
    (void)query;
    cJSON_AddStringToObject(json, "version", fv_version());
    cJSON_AddStringToObject(json, "title", "fovea watch");
    cJSON_AddStringToObject(json, "mode", "watch");
    cJSON_AddArrayToObject(json, "images");
    cJSON_AddArrayToObject(json, "tables");
    fv_view_answer_json(answer, json);
}

static void wait_for_end(watching *w) {
    while (!*w->stop && !w->over) {
        char *text = state(w);
        free(text);
        usleep(300000);
    }
    if (!*w->stop) sleep(2); /* whoever looks gets the end */
}

int fv_watching_serve(const char *command, fv_watch *watch, int port, bool with_run) {
    static const fv_view_route routes[] = { { "/api/session", session }, { 0 } };
    watching                   w = { .watch = watch, .stop = fv_stopping(true) };
    fv_view_server_options     options = { .port = port, .routes = routes, .context = &w, .state = state };
    fv_view_server            *server;
    fv_error                   error = { 0 };
    pthread_mutex_init(&w.mutex, NULL);
    if (fv_view_server_start(&options, &server, &error) != FV_OK) {
        fv_complain(command, "%s", error.message);
        return FV_EXIT_REFUSED;
    }
    fprintf(with_run ? stderr : stdout, "%s\n", fv_view_server_link(server)); /* a run prints its values to standard output */
    fflush(stdout);
    fprintf(stderr,
            with_run ? "Open this link in a browser. It ends with the run.\n" : "Open this link in a browser. Ctrl-C ends it.\n");
    if (with_run)
        wait_for_end(&w);
    else
        fv_view_server_wait(server, w.stop);
    fv_view_server_stop(server);
    pthread_mutex_destroy(&w.mutex);
    return FV_EXIT_WELL;
}

int fv_watching_start(const char *command, const char *store) {
    char  own[24], *words[] = { "fovea", "watch", "--web", "--process", own, store ? "--store" : NULL, (char *)store, NULL };
    pid_t child;
    snprintf(own, sizeof own, "%d", (int)getpid());
    int failed = posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ);
    if (failed) fv_complain(command, "the run cannot be watched: %s", strerror(failed));
    return failed ? 0 : (int)child;
}

void fv_watching_end(int process) {
    if (process) waitpid(process, NULL, 0);
}
