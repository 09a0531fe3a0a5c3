/* How long the user has waited for this command already. */
#include "waited.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct process {
    char      name[32];
    int       parent;
    long long start; /* clock ticks since the machine was started */
} process;

/* The name may itself hold blanks and brackets. */
static bool find(int pid, process *p) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *name = strchr(text, '('), *rest = strrchr(text, ')');
    if (!name || !rest || rest < name) return false;
    snprintf(p->name, sizeof p->name, "%.*s", (int)(rest - name - 1), name + 1);
    return sscanf(rest + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lld", &p->parent,
                  &p->start) == 2;
}

static bool starts_ranks(const char *name) {
    static const char *const known[] = { "mpiexec", "mpirun", "hydra_", "orte", "prte", "orted", "srun", "slurmstepd" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(name, known[i], strlen(known[i]))) return true;
    return false;
}

double fv_waited(void) {
    process         p;
    struct timespec now;
    if (!find((int)getpid(), &p) || clock_gettime(CLOCK_BOOTTIME, &now)) return 0;
    for (process above; p.parent > 1 && find(p.parent, &above) && starts_ranks(above.name);) p = above;
    double waited = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - (double)p.start / (double)sysconf(_SC_CLK_TCK);
    return waited > 0 ? waited : 0;
}
