/* Processes of units.
 *
 * 1. A child leads a process group of its own, has no descriptor of ours but its standard streams, and dies with us.
 * 2. What leaves its group is found by a mark in its environment: this process adopts orphans (PR_SET_CHILD_SUBREAPER, which
 *    units_run.c sets), so they are among its children.
 */
#include "units/unit_child.h"
#include "base/host.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT = 1 << 20 }; /* bytes of what a unit prints */
static const double GRACE = 5, LOOK = 0.25;

extern char **environ;

/* ---------------------------------------------------------------- start */

static bool runs(const char *path) {
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

char *fv__executable_find(const char *word) {
    if (strchr(word, '/')) return runs(word) ? fv__strdup(word) : NULL;
    const char *path = getenv("PATH");
    for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *word;) {
        size_t length = strcspn(path, ":");
        char  *full = fv__sprintf("%.*s/%s", length ? (int)length : 1, length ? path : ".", word);
        if (runs(full)) return full;
        free(full);
        if (!path[length]) break;
        path += length + 1;
    }
    return NULL;
}

/* The environment with the mark as its last entry. The caller frees the list; the mark is borrowed. */
static char **marked_environment(char *mark) {
    int n = 0;
    while (environ[n]) n++;
    char **list = fv__calloc((size_t)(n + 2) * sizeof *list);
    memcpy(list, environ, (size_t)n * sizeof *list);
    list[n] = mark;
    return list;
}

/* In the child, between fork and exec. */
static void become(const char *program, char **words, char **environment, int out, pid_t parent) {
    static const int usual[] = { SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGHUP, SIGQUIT };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126); /* it has died meanwhile */
    setpgid(0, 0);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) signal(usual[i], SIG_DFL);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(126);
    if (close_range(3, ~0U, 0)) /* an old kernel */
        for (int fd = 3; fd < 1024; fd++) close(fd);
    execve(program, words, environment);
    _exit(errno == ENOENT ? 127 : 126);
}

fv_status fv__child_start(fv_child *child, char **words, fv_error *error) {
    int   ends[2];
    char *program = fv__executable_find(words[0]);
    if (!program) return fv_fail(error, FV_ERROR_INPUT, "there is no program %s", words[0]);
    if (pipe2(ends, O_CLOEXEC)) {
        free(program);
        return fv_fail(error, FV_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
    }
    char **environment = marked_environment(child->mark);
    pid_t  parent = getpid();
    child->pid = fork();
    if (!child->pid) become(program, words, environment, ends[1], parent);
    int failure = errno;
    close(ends[1]);
    free(environment);
    free(program);
    if (child->pid < 0) {
        close(ends[0]);
        return fv_fail(error, FV_ERROR_IO, "cannot start a process: %s", strerror(failure));
    }
    setpgid(child->pid, child->pid); /* whoever comes first */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    child->pipe = ends[0];
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0); /* -1 on an old kernel: then it is asked now and then */
    child->started = fv__now();
    return FV_OK;
}

/* ---------------------------------------------------------------- what it prints */

void fv__child_listen(fv_child *child) {
    char    buffer[65536];
    ssize_t size;
    while (child->pipe >= 0 && (size = read(child->pipe, buffer, sizeof buffer)) != 0) {
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return; /* nothing more for now */
        int64_t kept = FV_MIN((int64_t)size, KEPT - (int64_t)child->printed.size);
        fv__bytes_append(&child->printed, buffer, (size_t)kept);
        child->left_out += size - kept;
    }
    if (child->pipe >= 0) close(child->pipe);
    child->pipe = -1;
}

/* ---------------------------------------------------------------- ending it, with all that it started */

/* A file of the system about a process, whose size is not known before; ended by NUL, and empty if it is gone. */
static void read_system(fv_bytes *text, const char *name, int pid) {
    char    path[64];
    ssize_t size = 1;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    fv__bytes_clear(text);
    while (fd >= 0 && size > 0) {
        fv__bytes_reserve(text, 4096);
        size = read(fd, text->data + text->size, 4096);
        if (size > 0) text->size += (size_t)size;
    }
    if (fd >= 0) close(fd);
    fv__bytes_append(text, "", 1);
}

/* Next process id in a list of them; 0: there is none. */
static int next_pid(char **at) {
    char *end;
    int   pid = (int)strtol(*at, &end, 10);
    *at = end;
    return pid;
}

static void read_children(fv_bytes *text, int pid) {
    char name[32];
    snprintf(name, sizeof name, "task/%d/children", pid);
    read_system(text, name, pid);
}

static bool has_mark(int pid, const char *mark) {
    fv_bytes text = { 0 };
    read_system(&text, "environ", pid);
    bool found = memmem(text.data, text.size, mark, strlen(mark) + 1) != NULL;
    fv__bytes_release(&text);
    return found;
}

/* Kills and reaps children of this process that have the mark: what left its group and was orphaned. */
static void kill_orphans(const fv_child *child) {
    fv_bytes text = { 0 };
    for (int round = 0, found = 1; round < 100 && found; round++) { /* the children of an orphan become orphans in turn */
        found = 0;
        read_children(&text, getpid());
        char *at = (char *)text.data;
        for (int pid; (pid = next_pid(&at));) {
            if (pid == child->pid || !has_mark(pid, child->mark)) continue;
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            found = 1;
        }
    }
    fv__bytes_release(&text);
}

void fv__child_stop(fv_child *child, double now) {
    kill(-child->pid, child->killed > 0 ? SIGKILL : SIGTERM);
    if (!(child->killed > 0)) child->killed = now;
}

/* Bytes that a process and all that it started use. */
static int64_t tree_memory(int pid) {
    fv_bytes  text = { 0 };
    long long whole, resident = 0;
    read_system(&text, "statm", pid);
    if (sscanf((char *)text.data, "%lld %lld", &whole, &resident) != 2) resident = 0;
    int64_t total = resident * sysconf(_SC_PAGESIZE);
    read_children(&text, pid);
    char *at = (char *)text.data;
    for (int child; (child = next_pid(&at));) total += tree_memory(child);
    fv__bytes_release(&text);
    return total;
}

void fv__child_watch(fv_child *child, const fv_unit *unit, double now) {
    if (child->killed > 0) {
        if (now > child->killed + GRACE) fv__child_stop(child, now);
        return;
    }
    if (unit->limit > 0 && now > child->started + unit->limit) {
        child->over_time = true;
        fv__child_stop(child, now);
        return;
    }
    if (!unit->memory || now < child->looked + LOOK) return;
    child->looked = now;
    if (tree_memory(child->pid) <= unit->memory) return;
    child->over_memory = true;
    child->killed = now;
    kill(-child->pid, SIGKILL); /* at once: the memory belongs to others */
}

bool fv__child_ended(fv_child *child, fv_unit_result *result) {
    struct rusage usage;
    int           status;
    pid_t         pid = wait4(child->pid, &status, WNOHANG, &usage);
    if (!pid || (pid < 0 && errno == EINTR)) return false;
    kill(-child->pid, SIGKILL);
    kill_orphans(child);
    fv__child_listen(child);
    if (child->pipe >= 0) close(child->pipe);
    if (child->pidfd >= 0) close(child->pidfd);
    child->pipe = child->pidfd = -1;
    result->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result->seconds = fv__now() - child->started;
    result->cpu_seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                          1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    result->memory = (int64_t)usage.ru_maxrss * 1024;
    snprintf(result->host, sizeof result->host, "%s", fv__host_self()->name);
    return true;
}

void fv__child_release(fv_child *child) {
    fv__bytes_release(&child->printed);
    free(child->output);
    free(child->temporary);
    *child = (fv_child){ .unit = -1, .pidfd = -1, .pipe = -1 };
}
