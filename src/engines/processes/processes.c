/* Engine processes: workers are children that run `fovea task` and share nothing with this process but the run's folder and the
 * store. It keeps the seam honest: whatever runs here can run on another machine.
 *
 * A job is a message to the child's standard input, an answer one from its standard output. A child that dies is replaced, and
 * its job was lost.
 */
#include "base/session.h"
#include "engines/processes/frames.h"
#include "run/wire.h"
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
    pid_t                  pid;  /* 0: none */
    sigset_t               mask; /* of the signals of who runs the engine: the child's own */
    FILE                  *to, *from;
} child;

/* Of the process, whose descriptors a child inherits: no child shall get another's pipe. */
static pthread_mutex_t spawn_mutex = PTHREAD_MUTEX_INITIALIZER;

static fv_status start_child(child *c, fv_error *error) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC)) return fv_fail(error, FV_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
    if (pipe2(from, O_CLOEXEC)) {
        close(to[0]);
        close(to[1]);
        return fv_fail(error, FV_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
    }
    const char                *program = c->settings->options.command ? c->settings->options.command : "/proc/self/exe";
    char                      *arguments[] = { "fovea", "task", (char *)(uintptr_t)c->run_folder, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t          attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &c->mask);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    pthread_mutex_lock(&spawn_mutex);
    int result = posix_spawn(&c->pid, program, &actions, &attributes, arguments, environ);
    pthread_mutex_unlock(&spawn_mutex);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
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
    fv_worker_hello hello = { .memory = c->settings->budget.store,
                              .patience = c->settings->options.patience,
                              .poison = c->settings->options.poison - 1 };
    if (fv__frame_send(c->to, &hello, sizeof hello)) return FV_OK;
    return fv_fail(error, FV_ERROR_IO, "a worker process ended before it began");
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

static bool cancelled(const child *c) { return c->settings->options.cancel && *c->settings->options.cancel; }

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

/* What the child says of a job; false: it died before it said anything. */
static bool ask(child *c, fv_job *job, fv_status *status, fv_error *error) {
    fv_bytes       message = { 0 };
    fv_wire_answer answer;
    if (!c->pid) *status = start_child(c, error);
    if (*status != FV_OK) return true;
    fv__wire_put_job(&message, job, true);
    bool heard = fv__frame_send(c->to, message.data, message.size);
    if (heard) await_answer(c);
    heard = heard && fv__frame_receive(c->from, &message);
    const uint8_t *at = message.data;
    heard = heard && fv__wire_take_answer(&at, at + message.size, &answer);
    fv__bytes_release(&message);
    if (!heard) {
        end_child(c);
        return false;
    }
    job->facts = answer.facts;
    *error = answer.error;
    *status = (fv_status)answer.status;
    return true;
}

static void run_job(child *c, fv_job *job, fv_worker *worker) {
    fv_error  error = { 0 };
    fv_status status = FV_OK;
    bool      heard = true;
    if (job->kind == FV_JOB_OPEN)
        status = fv__job_run(c->scheduler, job, worker, &error);
    else
        heard = ask(c, job, &status, &error);
    if (!heard && cancelled(c)) {
        status = fv_fail(&error, FV_ERROR_CANCELLED, "stopped; the same command goes on from here");
        heard = true;
    }
    if (heard)
        fv__job_done(c->scheduler, job, c->number, status, &error);
    else
        fv__job_lost(c->scheduler, job, c->number);
}

static void *work(void *argument) {
    child     *c = argument;
    fv_worker *worker = fv__worker_new();
    sigset_t   pipes;
    sigemptyset(&pipes);
    sigaddset(&pipes,
              SIGPIPE); /* a child that died is noticed by the failing write; the signal goes to this thread, and with it */
    pthread_sigmask(SIG_BLOCK, &pipes, &c->mask);
    for (fv_offer offer = FV_OFFER_LATER; offer != FV_OFFER_OVER;) {
        fv_job   job;
        uint64_t seen = fv__scheduler_changes(c->scheduler);
        offer = fv__job_next(c->scheduler, 0, false, &job);
        if (offer == FV_OFFER_JOB) run_job(c, &job, worker);
        if (offer == FV_OFFER_LATER) fv__scheduler_wait(c->scheduler, seen, 0.2);
    }
    end_child(c);
    fv__worker_free(worker);
    return NULL;
}

static fv_status run(fv_scheduler *scheduler, const fv_run_settings *settings, const char *run_folder, fv_error *error) {
    child *children = fv__calloc((size_t)settings->options.workers * sizeof *children);
    int    count = settings->options.workers;
    for (int i = 0; i < count; i++) {
        children[i] = (child){ .scheduler = scheduler, .settings = settings, .run_folder = run_folder, .number = i };
        if (fv__thread_start(&children[i].thread, work, &children[i])) {
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
