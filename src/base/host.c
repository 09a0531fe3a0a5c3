/* Host, boot and process identity from /proc. */
#include "base/host.h"
#include "base/file.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static fv_host        self; /* of the process: found once, and the same for all */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_self(void) {
    const char *fake = getenv("FOVEA_HOST");
    char        boot[64] = "";
    FILE       *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(boot, sizeof boot, file)) boot[0] = 0;
        fclose(file);
    }
    if (fake && *fake)
        snprintf(self.name, sizeof self.name, "%s", fake);
    else if (gethostname(self.name, sizeof self.name - 1) || !self.name[0])
        snprintf(self.name, sizeof self.name, "unknown");
    for (char *c = self.name; *c; c++)
        if (*c <= ' ') *c = '-'; /* it is one word of a line in lease files */
    const char *identity = boot[0] && !(fake && *fake) ? boot : self.name;
    self.boot = fv__hash_bytes(identity, strlen(identity));
    struct stat s;
    if (!stat("/proc/self/ns/pid", &s)) self.space = (uint64_t)s.st_ino;
}

const fv_host *fv__host_self(void) {
    pthread_once(&once, find_self);
    return &self;
}

/* The fields of /proc/PID/stat that follow the command's name, which may itself hold blanks and brackets. */
static bool read_stat(int pid, char *state, long *threads, int64_t *start) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *rest = strrchr(text, ')');
    long long   ticks;
    if (!rest || sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %lld", state,
                        threads, &ticks) != 3)
        return false;
    *start = ticks;
    return true;
}

fv_alive fv__process_alive(int pid, int64_t start) {
    char    state;
    long    threads;
    int64_t found;
    if (pid <= 0) return FV_ALIVE_UNKNOWN;
    if (!read_stat(pid, &state, &threads, &found)) /* gone, or hidden from this user */
        return kill(pid, 0) && errno == ESRCH ? FV_DEAD : FV_ALIVE_UNKNOWN;
    if (found != start) return FV_DEAD;
    bool ended = (state == 'Z' || state == 'X') && threads <= 1; /* nobody has collected it yet, but it cannot write any more */
    return ended ? FV_DEAD : FV_ALIVE;
}

int64_t fv__process_start(int pid) {
    char    state;
    long    threads;
    int64_t start;
    return read_stat(pid, &state, &threads, &start) ? start : 0;
}

int64_t fv__system_number(const char *path, const char *name) {
    char  line[256];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        size_t length = strlen(name);
        if (strncmp(line, name, length)) continue;
        fclose(file);
        return atoll(line + length);
    }
    if (file) fclose(file);
    return -1;
}

char *fv__host_program(void) {
    char *program = realpath("/proc/self/exe", NULL);
    return program ? program : fv__strdup("fovea");
}

double fv__epoch(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
