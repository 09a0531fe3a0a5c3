/* Programs that run beside us.
 *
 * 1. A child leads a process group of its own, has no descriptor of ours but its standard streams, and dies with us.
 * 2. What leaves its group is found by a mark in its environment: this process adopts orphans (PR_SET_CHILD_SUBREAPER), so they
 *    are among its children. The mark names this process too, so that what is left after it was killed can be found.
 * 3. Where control groups can be made, a child with a limit is in one of its own, and nothing that it starts can leave it.
 */
#include "base/child.h"
#include "base/cgroup.h"
#include "base/host.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT = 1 << 20 }; /* bytes of what it prints */
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

static bool is_set(char **settings, const char *variable) {
    size_t length = strcspn(variable, "=") + 1;
    while (settings && *settings && strncmp(*settings, variable, length)) settings++;
    return settings && *settings;
}

/* Our environment with the child's settings, and the mark as its last entry. The caller frees the list; the rest is borrowed. */
static char **marked_environment(char *mark, char **settings) {
    size_t n = 0, more = 0, count = 0;
    while (environ[n]) n++;
    while (settings && settings[more]) more++;
    char **list = fv__calloc((n + more + 2) * sizeof *list);
    for (size_t i = 0; i < n; i++)
        if (!is_set(settings, environ[i])) list[count++] = environ[i];
    for (size_t i = 0; i < more; i++) list[count++] = settings[i];
    list[count] = mark;
    return list;
}

typedef struct beginning {
    const char *program, *folder;
    char      **words, **environment;
    int         out, messages; /* descriptors of standard output and error */
    int         group;         /* of the control group, where it enters; -1: none */
    pid_t       parent;
} beginning;

/* In the child, which has our memory until it becomes the program: nothing of that may change. */
static void become(const beginning *b, const sigset_t *signals) {
    static const int usual[] = { SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGHUP, SIGQUIT };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != b->parent) _exit(126); /* it has died meanwhile */
    setpgid(0, 0);
    if (b->group >= 0 && write(b->group, "0", 1) < 0) close(b->group); /* then it is outside, as where there are none */
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) signal(usual[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, signals, NULL);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(b->out, 1) < 0 || dup2(b->messages, 2) < 0) _exit(126);
    if (close_range(3, ~0U, 0)) /* an old kernel */
        for (int fd = 3; fd < 1024; fd++) close(fd);
    if (b->folder && chdir(b->folder)) _exit(126);
    execve(b->program, b->words, b->environment);
    _exit(errno == ENOENT ? 127 : 126);
}

/* As fork, without a copy of our memory, which the child does not need. */
__attribute__((noinline)) static pid_t start_process(const beginning *b) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours may run in the child */
    pid_t pid = vfork();
    if (!pid) become(b, &before);
    int failure = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failure;
    return pid;
}

static fv_status open_streams(fv_child *child, const char *to, int ends[2], fv_error *error) {
    child->file = child->pipe = child->pidfd = -1;
    if (pipe2(ends, O_CLOEXEC)) return fv_fail(error, FV_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
    child->pipe = ends[0];
    if (to) child->file = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (!to || child->file >= 0) return FV_OK;
    close(ends[1]);
    return fv_fail(error, FV_ERROR_IO, "cannot write %s: %s", to, strerror(errno));
}

/* Machine and space of process ids: spaces alone have the same number on many machines. */
static unsigned long long place(void) {
    const fv_host *host = fv__host_self();
    return host->boot.low ^ host->space;
}

/* Where this process is, itself, and a number. */
static void make_mark(fv_child *child, int number) {
    snprintf(child->mark, sizeof child->mark, "FOVEA_UNIT=fovea-%llx.%d.%lld-%d", place(), (int)getpid(),
             (long long)fv__process_start(getpid()), number);
}

fv_status fv__child_start(fv_child *child, char **words, const char *folder, const char *to, fv_error *error) {
    static atomic_int number;
    int               ends[2];
    FV_TRY(open_streams(child, to, ends, error));
    char *program = fv__executable_find(words[0]);
    if (!program) {
        close(ends[1]);
        return fv_fail(error, FV_ERROR_INPUT, "there is no program %s", words[0]);
    }
    make_mark(child, atomic_fetch_add(&number, 1));
    child->group = child->limit > 0 || child->memory ? fv__cgroup_new(strchr(child->mark, '=') + 1, child->memory) : NULL;
    beginning b = { .program = program,
                    .folder = folder,
                    .words = words,
                    .environment = marked_environment(child->mark, child->settings),
                    .out = child->file >= 0 ? child->file : ends[1],
                    .messages = ends[1],
                    .group = child->group ? fv__cgroup_file(child->group) : -1,
                    .parent = getpid() };
    child->pid = start_process(&b);
    int failure = errno;
    close(ends[1]);
    if (b.group >= 0) close(b.group);
    free(b.environment);
    free(program);
    if (child->pid < 0) return fv_fail(error, FV_ERROR_IO, "cannot start a process: %s", strerror(failure));
    fcntl(child->pipe, F_SETFL, O_NONBLOCK);
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

/* Whether a mark without its name is that of a process which is dead. */
static bool owner_is_dead(const char *mark) {
    unsigned long long where;
    long long          start;
    int                owner;
    return sscanf(mark, "fovea-%llx.%d.%lld-", &where, &owner, &start) == 3 && where == place() &&
           fv__process_alive(owner, start) == FV_DEAD;
}

/* Value of a variable in an environment as the system shows it; NULL: it is not set. */
static const char *value_in(const fv_bytes *environment, const char *name) {
    size_t length = strlen(name);
    for (const char *at = (char *)environment->data, *end = at + environment->size; at < end; at += strlen(at) + 1)
        if (!strncmp(at, name, length) && at[length] == '=') return at + length + 1;
    return NULL;
}

/* Whether the first is set and says something else. */
static bool differs(const char *value, const char *own) { return value && !(own && !strcmp(value, own)); }

/* A process that a dead one of ours has started, and that lives on. A job that was handed to Slurm inherits the mark but is no
 * part of the unit, and what has the same mark as this process is what this one belongs to. */
static bool is_left(int pid, fv_bytes *text) {
    read_system(text, "environ", pid);
    const char *mark = value_in(text, "FOVEA_UNIT"), *job = value_in(text, "SLURM_JOB_ID");
    return differs(mark, getenv("FOVEA_UNIT")) && !differs(job, getenv("SLURM_JOB_ID")) && owner_is_dead(mark);
}

static bool is_above(int pid) {
    char path[64];
    int  at = getppid();
    while (at > 1 && at != pid) {
        snprintf(path, sizeof path, "/proc/%d/status", at);
        at = (int)fv__system_number(path, "PPid:");
    }
    return at == pid;
}

static void sweep(void) {
    DIR           *all = opendir("/proc");
    fv_bytes       text = { 0 };
    struct dirent *entry;
    while (all && (entry = readdir(all))) {
        int pid = atoi(entry->d_name);
        if (pid > 1 && pid != getpid() && is_left(pid, &text) && !is_above(pid)) kill(pid, SIGKILL);
    }
    if (all) closedir(all);
    fv__bytes_release(&text);
    fv__cgroups_sweep(owner_is_dead);
}

void fv__child_stop(fv_child *child, double now) {
    kill(-child->pid, child->killed > 0 ? SIGKILL : SIGTERM);
    if (child->killed > 0 && child->group) fv__cgroup_kill(child->group);
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

static bool file_is_too_large(const fv_child *child) {
    struct stat st;
    return child->file_size && child->file >= 0 && !fstat(child->file, &st) && st.st_size > child->file_size;
}

void fv__child_watch(fv_child *child, double now) {
    if (child->killed > 0) {
        if (now > child->killed + GRACE) fv__child_stop(child, now);
        return;
    }
    if (child->limit > 0 && now > child->started + child->limit) {
        child->over_time = true;
        fv__child_stop(child, now);
        return;
    }
    if (now < child->looked + LOOK) return;
    child->looked = now;
    child->over_memory = child->memory && tree_memory(child->pid) > child->memory;
    child->over_file = file_is_too_large(child);
    if (!child->over_memory && !child->over_file) return;
    child->killed = now;
    kill(-child->pid, SIGKILL); /* at once: memory and disk belong to others */
    if (child->group) fv__cgroup_kill(child->group);
}

bool fv__child_ended(fv_child *child, fv_child_end *end) {
    struct rusage usage;
    int           status;
    pid_t         pid = wait4(child->pid, &status, WNOHANG, &usage);
    if (!pid || (pid < 0 && errno == EINTR)) return false;
    kill(-child->pid, SIGKILL);
    if (child->group) {
        fv__cgroup_kill(child->group);
        child->over_memory = child->over_memory || (child->memory && fv__cgroup_ran_out(child->group));
    }
    kill_orphans(child);
    fv__child_listen(child);
    *end = (fv_child_end){ .code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                           .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                           .seconds = fv__now() - child->started,
                           .cpu_seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                                          1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
                           .memory = (int64_t)usage.ru_maxrss * 1024 };
    return true;
}

void fv__child_wait(fv_child *child, const volatile int *stop, fv_child_end *end) {
    while (!fv__child_ended(child, end)) {
        if (stop && *stop && !(child->killed > 0)) fv__child_stop(child, fv__now());
        fv__child_watch(child, fv__now());
        struct pollfd polled[] = { { .fd = child->pidfd, .events = POLLIN }, { .fd = child->pipe, .events = POLLIN } };
        poll(polled, 2, child->pidfd < 0 ? 2 : 100);
        fv__child_listen(child);
    }
}

bool fv__child_misfortune(const fv_child *child, const fv_child_end *end, char *why, size_t size) {
    char bytes[24];
    if (child->over_time) {
        snprintf(why, size, "ran longer than its limit of %g s and was ended", child->limit);
    } else if (child->over_memory) {
        fv_size_format(child->memory, bytes);
        snprintf(why, size, "used more than its %s of memory and was ended", bytes);
    } else if (child->over_file) {
        fv_size_format(child->file_size, bytes);
        snprintf(why, size, "printed more than %s and was ended", bytes);
    } else if (end->signal) {
        snprintf(why, size, "was ended by signal %d (%s)", end->signal, strsignal(end->signal));
    } else
        return false;
    return true;
}

bool fv__exit_code_among(const char *list, int code) {
    for (const char *at = list; *at;) {
        char *end;
        if (strtol(at, &end, 10) == code && end > at) return true;
        at = *end ? end + 1 : end;
    }
    return false;
}

static void close_one(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

void fv__child_release(fv_child *child) {
    close_one(&child->pipe);
    close_one(&child->pidfd);
    close_one(&child->file);
    fv__cgroup_free(child->group);
    fv__bytes_release(&child->printed);
    *child = (fv_child){ .pidfd = -1, .pipe = -1, .file = -1 };
}

void fv__children_adopt(bool on) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static int             users, before;
    static bool            swept;
    pthread_mutex_lock(&mutex);
    if (!swept) sweep();
    swept = true;
    if (on && !users++) {
        prctl(PR_GET_CHILD_SUBREAPER, &before);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    } else if (!on && !--users)
        prctl(PR_SET_CHILD_SUBREAPER, before);
    pthread_mutex_unlock(&mutex);
}
