/* Guardians. */
#include "engines/mpi/guardian.h"
#include "base/host.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOTES = 256, TEXT = 160 };

typedef struct board { /* seen by both */
    int        rank;
    char       host[65];
    atomic_int stop;
    char       last[TEXT]; /* a job that was done */
    struct {
        atomic_int busy;
        char       text[TEXT];
    } notes[NOTES];
} board;

static board *shared; /* of the process, as its rank is and as signal handlers are; NULL: no guardian */

void fv__job_describe(const fv_job *job, char *text, size_t size) {
    const fv_bindings *bindings = job->instance->context->bindings;
    bool               end = job->kind == FV_JOB_END;
    int                n = end ? snprintf(text, size, "the end of stage %d", job->stage + 1)
                               : snprintf(text, size, "stage %d, task %lld", job->stage + 1, (long long)job->task);
    if (bindings->collection && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, " of %s", fv__bindings_item(bindings, job->instance->item));
}

void fv__guardian_note(int worker, const fv_job *job) {
    if (!shared || worker >= NOTES) return;
    if (job)
        fv__job_describe(job, shared->notes[worker].text, TEXT);
    else
        memcpy(shared->last, shared->notes[worker].text, TEXT);
    atomic_store(&shared->notes[worker].busy, job != NULL);
}

bool fv__guardian_asked_to_stop(void) { return shared && atomic_load(&shared->stop); }

/* Puts texts one behind the other, up to NULL. With nothing but loops, because signal handlers may not call printf. */
static void join(char *out, size_t size, const char *const *parts) {
    size_t n = 0;
    for (; *parts; parts++)
        for (const char *p = *parts; *p && n + 1 < size; p++) out[n++] = *p;
    out[n] = 0;
}

static const char *number_text(int value, char text[12]) {
    char *p = text + 11;
    *p = 0;
    do *--p = (char)('0' + value % 10);
    while (value /= 10);
    return p;
}

/* By plain write, because it may be called by a signal. */
static void tell(const char *how) {
    char        text[768], rank[12], more[12];
    const char *first = NULL;
    int         busy = 0;
    for (int i = 0; i < NOTES; i++) {
        if (!atomic_load(&shared->notes[i].busy)) continue;
        if (!first) first = shared->notes[i].text;
        busy++;
    }
    const char *where = first ? "at " : shared->last[0] ? "after " : "before its first task";
    const char *others = busy > 1 ? " and " : "";
    const char *parts[] = { "fovea: rank ",
                            number_text(shared->rank, rank),
                            " on ",
                            shared->host,
                            " was killed (",
                            how,
                            ") ",
                            where,
                            first ? first : shared->last,
                            others,
                            busy > 1 ? number_text(busy - 1, more) : "",
                            busy > 1 ? " more" : "",
                            "; the same command, with any number of ranks or with threads, goes on from there\n",
                            NULL };
    join(text, sizeof text, parts);
    ssize_t written = write(STDERR_FILENO, text, strlen(text)); /* both are allowed in a handler */
    (void)written;
}

static void on_orphaned(int number) {
    (void)number;
    tell("signal 9, Killed");
    _exit(1);
}

static void pass_on(int number) {
    (void)number;
    atomic_store(&shared->stop, 1);
}

static void guard(pid_t child) {
    struct sigaction action = { .sa_handler = pass_on };
    int              status;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    char how[64];
    int  number = WTERMSIG(status);
    snprintf(how, sizeof how, "signal %d, %s", number, strsignal(number));
    tell(how);
    usleep(50000); /* the launcher passes on what we say before it hears that we are gone */
    signal(number, SIG_DFL);
    kill(getpid(), number);
    _exit(1);
}

void fv__guardian_start(int rank) {
    board *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    page->rank = rank;
    snprintf(page->host, sizeof page->host, "%s", fv__host_self()->name);
    shared = page;
    pid_t parent = getpid(), child = fork();
    if (child > 0) guard(child);
    if (child < 0) shared = NULL; /* then without one */
    if (child < 0) return;
    struct sigaction action = { .sa_handler = on_orphaned };
    sigaction(SIGUSR2, &action, NULL);
    prctl(PR_SET_PDEATHSIG, SIGUSR2);
    if (getppid() != parent) _exit(1);
}
