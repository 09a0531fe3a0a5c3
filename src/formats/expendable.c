/* Child processes for work that may crash; see expendable.h. */
#include "formats/expendable.h"
#include "base/remote.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPU_SECONDS = 8, MOST_MEMORY = 1 << 30 };

/* More than what is there already. */
static void bound_memory(void) {
    long  pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) return;
    if (fscanf(file, "%ld", &pages) == 1) {
        rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + MOST_MEMORY;
        setrlimit(RLIMIT_AS, &(struct rlimit){ most, most });
    }
    fclose(file);
}

/* A child has our signals and our standard error; it needs neither. */
static void become_expendable(void) {
    static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGTERM, SIGINT };
    sigset_t         none;
    int              null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    fv__io_hooks(NULL, NULL); /* nobody here to lend a turn to */
    for (int i = 0; i < FV_COUNT(signals); i++) signal(signals[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (null >= 0) dup2(null, STDERR_FILENO);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    setrlimit(RLIMIT_CPU, &(struct rlimit){ CPU_SECONDS, CPU_SECONDS });
    bound_memory();
}

/* ---------------------------------------------------------------- what a child wants of its parent */

enum { LOOK_MILLISECONDS = 200 };
static int line = -1; /* of the process: from a child to its parent; -1: this is no child */

typedef struct {
    int64_t offset;
    size_t  size;
    int     fd;
} wish;

bool fv__expendable_inside(void) { return line >= 0; }

bool fv__expendable_fetch(int fd, int64_t offset, size_t size) {
    wish    w = { .offset = offset, .size = size, .fd = fd };
    char    granted = 0;
    ssize_t got = -1;
    if (send(line, &w, sizeof w, MSG_NOSIGNAL) != sizeof w) return false;
    do got = read(line, &granted, 1);
    while (got < 0 && errno == EINTR);
    return got == 1 && granted;
}

/* Until the child has ended; its status. */
static int serve(pid_t child, int socket) {
    int           status = 0;
    struct pollfd look = { .fd = socket, .events = POLLIN };
    for (;;) {
        wish w;
        int  ready = poll(&look, 1, LOOK_MILLISECONDS);
        if (ready > 0 && recv(socket, &w, sizeof w, MSG_WAITALL) == sizeof w) {
            char granted = fv__remote_fetch(w.fd, w.offset, w.size, NULL) == FV_OK;
            send(socket, &granted, 1, MSG_NOSIGNAL);
            continue;
        }
        pid_t ended = waitpid(child, &status, ready > 0 ? 0 : WNOHANG); /* it hangs up when it ends */
        if (ended == child) return status;
        if (ended < 0 && errno != EINTR) return 0;
    }
}

fv_status fv__expendable_run(pid_t (*forks)(void), const char *path, const char *library, void (*work)(void *context),
                             void *context, fv_error *error) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return FV_OK;
    pid_t child = forks();
    if (child == 0) {
        line = ends[1];
        close(ends[0]);
        become_expendable();
        work(context);
        _exit(0);
    }
    close(ends[1]);
    int status = child < 0 ? 0 : serve(child, ends[0]);
    close(ends[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return FV_OK;
    bool endless = WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
    return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: the %s library %s", path, library,
                   endless ? "comes to no end with it" : "cannot read it without crashing");
}
