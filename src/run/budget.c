/* Dividing memory. */
#include "run/budget.h"
#include "base/host.h"
#include <stdio.h>
#include <stdlib.h>

#define MIB ((int64_t)1 << 20)
#define PROGRAM (32 * MIB)       /* of this process: program, libraries, heaps of threads */
#define CHILD (16 * MIB)         /* the same of a child, which has one thread */
#define DRIVER_LOADED (80 * MIB) /* of OpenCL, where only its devices are asked for */
#define DRIVER_USED (224 * MIB)  /* of OpenCL with its compiler, when a kernel is new */
#define MPI_LIBRARY (64 * MIB)   /* of all ranks of a host together; what each has of its own is in PROGRAM */
#define DEFAULT_LEAST (64 * MIB) /* of a run, whatever is free */
#define SMALLEST MIB             /* for tasks: no less is worth a run */
#define JOB_SLACK (64 * MIB)     /* that a job asks beyond 5/4 of its worker's bound */
#define JOB_LEAST (96 * MIB)     /* bound of a worker: less saves nothing, since nobody gets smaller shares of a node */
#define JOB_USUAL (256 * MIB)
#define JOB_STEP (64 * MIB)

static int64_t round_up(int64_t bytes, int64_t step) { return (bytes + step - 1) / step * step; }

static long long mebibytes(int64_t bytes) { return round_up(bytes, MIB) / MIB; }

/* Bytes of this node that Slurm has given to the job that we are in; 0: unknown, or all of them. */
static int64_t slurm_memory(void) {
    const char *node = getenv("SLURM_MEM_PER_NODE"), *cpu = getenv("SLURM_MEM_PER_CPU"), *cpus = getenv("SLURM_CPUS_ON_NODE");
    if (node) return FV_MAX(atoll(node), 0) * MIB;
    return cpu ? FV_MAX(atoll(cpu), 0) * FV_MAX(cpus ? atoll(cpus) : 1, 1) * MIB : 0;
}

fv_driver fv__budget_driver(const fv_bindings *bindings) {
    return bindings->device ? FV_DRIVER_USED : bindings->device_note ? FV_DRIVER_LOADED : FV_DRIVER_NONE;
}

/* What is left of the least that our control group and those around it may use, of which schedulers and containers make some:
 * found by the line of /proc/self/cgroup that begins so, below a folder, in files of these names. */
static int64_t group_memory(const char *line, const char *folder, const char *limit_file, const char *used_file) {
    char    path[1024] = "", file[1200];
    int64_t left = INT64_MAX;
    FILE   *groups = fopen("/proc/self/cgroup", "r");
    while (groups && fgets(path, sizeof path, groups)) {
        char *found = strstr(path, line);
        if (found) memmove(path, found + strlen(line), strlen(found + strlen(line)) + 1);
        if (found) break;
        *path = 0;
    }
    if (groups) fclose(groups);
    path[strcspn(path, "\n")] = 0;
    while (*path == '/') { /* in a container only the root may be there, which is its own group */
        snprintf(file, sizeof file, "%s%s/%s", folder, path, limit_file);
        int64_t limit = fv__system_number(file, "");
        snprintf(file, sizeof file, "%s%s/%s", folder, path, used_file);
        int64_t used = fv__system_number(file, "");
        if (limit > 0 && used >= 0) left = FV_MIN(left, FV_MAX(limit - used, 0)); /* "max" is no number above 0 */
        if (!path[1]) break;
        char *slash = strrchr(path, '/');
        slash[slash == path] = 0;
    }
    return left;
}

int64_t fv__budget_default(void) {
    int64_t available = fv__system_number("/proc/meminfo", "MemAvailable:") * 1024, given = slurm_memory();
    int64_t group = group_memory("0::", "/sys/fs/cgroup", "memory.max", "memory.current");
    int64_t older = group_memory(":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes");
    available = FV_MIN(available, FV_MIN(group, older)) / 2;
    if (given) available = FV_MIN(available, fv__budget_inside(given));
    return FV_MAX(available, DEFAULT_LEAST);
}

/* ---------------------------------------------------------------- dividing */

static int64_t own_memory(const fv_sharers *s) {
    int64_t driver = s->driver == FV_DRIVER_USED ? DRIVER_USED : s->driver == FV_DRIVER_LOADED ? DRIVER_LOADED : 0;
    return PROGRAM + FV_MIN(driver, s->children ? DRIVER_LOADED : driver) + s->children * (CHILD + driver);
}

static int64_t common_memory(const fv_sharers *s) { return s->ranks ? MPI_LIBRARY : 0; }

static int ranks_of(const fv_sharers *s) { return FV_MAX(s->ranks, 1); }

fv_budget fv__budget_divide(int64_t memory, const fv_sharers *sharers) {
    fv_budget b = { .memory = memory > 0 ? memory : fv__budget_default(), .own = own_memory(sharers), .sharers = *sharers };
    int64_t   rest = FV_MAX((b.memory - common_memory(sharers)) / ranks_of(sharers) - b.own, 0);
    b.store = rest / 4 / (sharers->children + 1);
    b.tasks = rest - rest / 4;
    b.buffers = rest;
    return b;
}

fv_budget fv__budget_smallest(const fv_sharers *sharers) { return fv__budget_divide(DEFAULT_LEAST, sharers); }

bool fv__budget_suffices(const fv_budget *b, int workers, const fv_demand *demand) {
    int64_t at_once = FV_MIN(demand->tasks, workers);
    return demand->kept <= b->store && demand->task <= b->tasks / FV_MAX(at_once, 1) && demand->shared == 0;
}

int64_t fv__budget_least(const fv_sharers *sharers, int64_t task) {
    int64_t less = FV_MAX(task, SMALLEST) - 1, rest = less / 3 * 4 + less % 3 * 4 / 3 + 1; /* so that rest - rest / 4 > less */
    return common_memory(sharers) + (own_memory(sharers) + rest) * ranks_of(sharers);
}

fv_status fv__budget_check(const fv_budget *b, int64_t task, fv_error *error) {
    if (b->tasks >= FV_MAX(task, SMALLEST)) return FV_OK;
    int     ranks = ranks_of(&b->sharers);
    int64_t for_driver = ranks * (b->own - own_memory(&(fv_sharers){ .children = b->sharers.children }));
    char    each[48] = "", driver[128] = "";
    if (ranks > 1) snprintf(each, sizeof each, " in each of %d ranks", ranks);
    if (b->sharers.driver == FV_DRIVER_USED)
        snprintf(driver, sizeof driver, "; %lld MiB of that are for OpenCL, whose compiler takes so much when a kernel is new",
                 mebibytes(for_driver));
    else if (b->sharers.driver == FV_DRIVER_LOADED)
        snprintf(driver, sizeof driver, "; %lld MiB of that are for OpenCL, which --device cpu does without",
                 mebibytes(for_driver));
    return fv_fail(error, FV_ERROR_MEMORY,
                   "%lld MiB of memory leave %lld MiB for tasks%s, but one needs %lld MiB; at least --memory %lldM is needed%s%s",
                   (long long)(b->memory / MIB), (long long)(FV_MAX(b->tasks, 0) / MIB), each, mebibytes(FV_MAX(task, SMALLEST)),
                   mebibytes(fv__budget_least(&b->sharers, task)), b->cut_small ? "" : ", or smaller tasks (--chunk 64)", driver);
}

int fv__budget_at_once(const fv_budget *b, int workers, int64_t task) {
    return (int)FV_MAX(FV_MIN(workers, b->tasks / FV_MAX(task, 1)), 1);
}

int64_t fv__budget_peak(const fv_budget *b, int workers, const fv_demand *demand) {
    int64_t running = FV_MIN(fv__budget_at_once(b, workers, demand->task), FV_MAX(demand->tasks, 1));
    int64_t tasks = FV_MAX(FV_MIN(demand->task * running + demand->shared, b->tasks), demand->task);
    int64_t each = b->own + FV_MIN(b->store * (b->sharers.children + 1), demand->kept) + tasks;
    return FV_MIN(common_memory(&b->sharers) + each * ranks_of(&b->sharers), b->memory);
}

/* ---------------------------------------------------------------- jobs */

int64_t fv__budget_ask(int64_t bound) { return bound + bound / 4 + JOB_SLACK; }

int64_t fv__budget_inside(int64_t asked) {
    int64_t rest = FV_MAX(asked - JOB_SLACK, 0);
    return (rest / 5 * 4 + rest % 5 * 4 / 5) / MIB * MIB;
}

int64_t fv__budget_bound(const fv_sharers *sharers, int64_t task, int64_t at_once) {
    return FV_MAX(round_up(fv__budget_least(sharers, task * at_once), JOB_STEP), JOB_USUAL);
}

int64_t fv__budget_least_job(const fv_sharers *sharers, int64_t task) {
    return fv__budget_ask(FV_MAX(round_up(fv__budget_least(sharers, task), MIB), JOB_LEAST));
}
