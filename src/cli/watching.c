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

enum { TURN_MS = 500 }; /* longer than between two looks of a page */

typedef struct watching {
    fv_watch       *watch;
    volatile int   *stop;
    pthread_mutex_t mutex; /* guards what follows */
    bool            over;
    bool            seen; /* by a page, since the last turn of wait_for_end */
} watching;

/* What a page is told. */
static char *look(watching *w, bool page) {
    char    *text;
    bool     over;
    fv_error error = { 0 };
    pthread_mutex_lock(&w->mutex);
    fv_status status = fv_watch_look(w->watch, FV_FORM_JSON, 0, &text, &over, &error);
    w->over = w->over || over;
    w->seen = w->seen || page;
    pthread_mutex_unlock(&w->mutex);
    return status == FV_OK ? text : NULL;
}

static char *state(void *context) { return look(context, true); }

/* A small picture of a result, by its number. */
static void picture(void *context, const fv_view_query *query, fv_view_answer *answer) {
    watching *w = context;
    int64_t   number;
    if (!fv_view_query_integer(query, "number", 0, INT32_MAX, 0, &number)) {
        fv_view_answer_refuse(answer, 400, "number has to be a whole number");
        return;
    }
    pthread_mutex_lock(&w->mutex);
    char *path = fv_watch_output(w->watch, (int)number);
    pthread_mutex_unlock(&w->mutex);
    if (path && fv_picture(path, &answer->body, &answer->size))
        answer->type = "image/png";
    else
        fv_view_answer_refuse(answer, 404, "there is no such picture");
    free(path);
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

/* Looks itself only while no page does: reading is the same, and it would be done twice. */
static void wait_for_end(watching *w) {
    bool over = false, seen = false, ever = false;
    while (!*w->stop && !over) {
        if (!seen) free(look(w, false));
        usleep(1000 * TURN_MS);
        pthread_mutex_lock(&w->mutex);
        over = w->over;
        seen = w->seen;
        w->seen = false;
        pthread_mutex_unlock(&w->mutex);
        ever = ever || seen;
    }
    if (!*w->stop && ever) sleep(2); /* whoever looks gets the end */
}

int fv_watching_serve(const char *command, fv_watch *watch, int port, bool with_run) {
    static const fv_view_route routes[] = { { "/api/session", session }, { "/api/picture", picture }, { 0 } };
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
