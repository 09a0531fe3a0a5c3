/* Engine processes: workers are children that run `fovea task` and share nothing with this process but the run's folder and the
 * store. It keeps the seam honest: whatever runs here can run on another machine.
 *
 * A job is one line to the child's standard input, an answer one line from its standard output. A child that dies is replaced,
 * and its job is done again; a job that kills three children is an error.
 */
#include "engines/processes/wire.h"
#include "run/engine.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define LAST_SECONDS 5.0 /* that a task has to end after a request to stop */

typedef struct child {
    fv_scheduler          *scheduler;
    const fv_run_settings *settings;
    const char            *run_folder;
    pthread_t              thread;
    int                    number;
    pid_t                  pid; /* 0: none */
    FILE                  *to, *from;
} child;

static pthread_mutex_t spawn_mutex = PTHREAD_MUTEX_INITIALIZER; /* so that no child inherits another's pipe */

static fv_status start_child(child *c, fv_error *error) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC)) return fv_fail(error, FV_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
    if (pipe2(from, O_CLOEXEC)) {
        close(to[0]);
        close(to[1]);
        return fv_fail(error, FV_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
    }
    const char                *program = c->settings->program ? c->settings->program : "/proc/self/exe";
    char                      *arguments[] = { "fovea", "task", (char *)(uintptr_t)c->run_folder, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    pthread_mutex_lock(&spawn_mutex);
    int result = posix_spawn(&c->pid, program, &actions, NULL, arguments, environ);
    pthread_mutex_unlock(&spawn_mutex);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    if (result) {
        close(to[1]);
        close(from[0]);
        c->pid = 0;
        return fv_fail(error, FV_ERROR_IO, "cannot start %s: %s", program, strerror(result));
    }
    c->to = fdopen(to[1], "w");
    c->from = fdopen(from[0], "r");
    return fv__wire_greet(c->to, c->scheduler, c->settings, error);
}

static void end_child(child *c) {
    if (!c->pid) return;
    if (c->to) fclose(c->to);
    if (c->from) fclose(c->from);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    c->pid = 0;
    c->to = c->from = NULL;
}

static bool cancelled(const child *c) { return c->settings->cancel && *c->settings->cancel; }

/* After a request to stop, a task may end, unless that takes long: it is then as if the worker had been killed. */
static void await_answer(child *c) {
    struct pollfd from = { .fd = fileno(c->from), .events = POLLIN };
    double        asked = 0;
    for (;;) {
        int ready = poll(&from, 1, 200);
        if (ready > 0 || (ready < 0 && errno != EINTR)) return;
        if (!cancelled(c)) continue;
        if (asked == 0) asked = fv__now();
        if (fv__now() - asked > LAST_SECONDS) kill(c->pid, SIGKILL);
    }
}

/* Asks the child; FV_ERROR_CANCELLED if it died before it answered. */
static fv_status ask(child *c, fv_job *job, fv_error *error) {
    if (!c->pid) FV_TRY(start_child(c, error));
    if (fv__wire_send_job(c->to, job)) {
        await_answer(c);
        if (fv__wire_receive_answer(c->from, job, error)) return error->code;
    }
    end_child(c);
    return FV_ERROR_CANCELLED;
}

static fv_status run_job(child *c, fv_job *job, fv_worker *worker, fv_error *error) {
    if (job->kind == FV_JOB_OPEN) return fv__job_run(c->scheduler, job, worker, error);
    for (int strike = 0; strike < 3; strike++) {
        fv_status status = ask(c, job, error);
        if (status != FV_ERROR_CANCELLED) return status;
        if (cancelled(c)) return fv_fail(error, FV_ERROR_CANCELLED, "stopped; the same command goes on from here");
        fv__log_verbose("fovea: worker %d died; its task runs again", c->number);
    }
    return fv_fail(error, FV_ERROR_INTERNAL, "three worker processes died on stage %d, task %lld", job->stage + 1,
                   (long long)job->task);
}

static void *work(void *argument) {
    child     *c = argument;
    fv_worker *worker = fv__worker_new();
    fv_job     job;
    while (fv__scheduler_next(c->scheduler, &job)) {
        fv_error  error = { 0 };
        fv_status status = run_job(c, &job, worker, &error);
        fv__scheduler_done(c->scheduler, &job, c->number, status, &error);
    }
    end_child(c);
    fv__worker_free(worker);
    return NULL;
}

static fv_status run(fv_scheduler *scheduler, const fv_run_settings *settings, const char *run_folder, fv_error *error) {
    signal(SIGPIPE, SIG_IGN); /* a child that died is noticed by the failing write */
    child *children = fv__calloc((size_t)settings->workers * sizeof *children);
    int    count = settings->workers;
    for (int i = 0; i < count; i++) {
        children[i] = (child){ .scheduler = scheduler, .settings = settings, .run_folder = run_folder, .number = i };
        if (pthread_create(&children[i].thread, NULL, work, &children[i])) {
            fv_fail(error, FV_ERROR_IO, "cannot start a thread");
            fv__scheduler_stop(scheduler, FV_ERROR_IO, error);
            count = i;
        }
    }
    for (int i = 0; i < count; i++) pthread_join(children[i].thread, NULL);
    free(children);
    return fv__scheduler_status(scheduler, error);
}

const fv_engine fv_engine_processes = {
    .name = "processes", .brief = "worker processes that share nothing but files", .shared = true, .children = true, .run = run
};
