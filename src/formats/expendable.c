/* Child processes for work that may crash; see expendable.h. */
#include "formats/expendable.h"
#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
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
    fv_io_hooks(NULL, NULL); /* nobody here to lend a turn to */
    for (int i = 0; i < FV_COUNT(signals); i++) signal(signals[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (null >= 0) dup2(null, STDERR_FILENO);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    setrlimit(RLIMIT_CPU, &(struct rlimit){ CPU_SECONDS, CPU_SECONDS });
    bound_memory();
}

fv_status fv_expendable_run(pid_t (*forks)(void), const char *path, const char *library, void (*work)(void *context),
                            void *context, fv_error *error) {
    int   status = 0;
    pid_t child = forks();
    if (child == 0) {
        become_expendable();
        work(context);
        _exit(0);
    }
    if (child < 0) return FV_OK;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return FV_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return FV_OK;
    bool endless = WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
    return fv_fail(error, FV_ERROR_INPUT, "%s is damaged: the %s library %s", path, library,
                   endless ? "comes to no end with it" : "cannot read it without crashing");
}
