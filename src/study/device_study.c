/* A study of policies: for each one a service and workers, all of them processes, on the same list of tasks.
 *
 * Invariant: whatever happens, every process that was started has ended when a policy is over. */
#include "base/file.h"
#include "devices/broker.h"
#include "devices/device.h"
#include "op/random.h"
#include "study_worker.h"
#include <errno.h>
#include <fovea/devices.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct experiment {
    const fv_study_options *options;
    fv_device_study        *result;
    fv_study_board         *board;
    char                    folder[72]; /* of the socket */
    pid_t                   service, workers[FV_STUDY_WORKERS];
    int                     nworkers;
} experiment;

/* ---------------------------------------------------------------- processes */

/* What OpenCL is to find, unless the user has said so: as many devices as the study wants, with as much memory. */
static void set_environment(const fv_study_options *o) {
    char devices[FV_STUDY_DEVICES * 8 + 1] = "", memory[32];
    for (int d = 0; d < o->devices; d++) strcat(devices, d ? " pthread" : "pthread");
    snprintf(memory, sizeof memory, "%lld", (long long)((o->memory + ((int64_t)1 << 30) - 1) >> 30));
    setenv("POCL_DEVICES", devices, 0);
    setenv("POCL_MEMORY_LIMIT", memory, 0);
}

/* As fork; the child dies with us and does not hear Ctrl-C, which is ours to deal with. */
static pid_t start_child(const experiment *s) {
    pid_t parent = getpid(), child = fork();
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    set_environment(s->options);
    return 0;
}

static void end_child(pid_t *child, int number) {
    if (*child > 0) {
        kill(*child, number);
        while (waitpid(*child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    *child = 0;
}

/* ---------------------------------------------------------------- what the tasks are */

typedef struct answer {
    int  count;
    char text[200];
} answer;

/* A processor says what it was told to say (POCL_MEMORY_LIMIT), whether the machine has it or not. */
static int64_t memory_of(const fv_device_about *about) {
    int64_t machine = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    return about->processor ? FV_MIN(about->memory, machine) : about->memory;
}

static void look_for_devices(const experiment *s, int to) {
    fv_error        error = { 0 };
    fv_device_about about = { 0 };
    answer          a = { 0 };
    if (fv__device_count(&a.count, &error) == FV_OK && fv__device_about_of(0, &about, &error) == FV_OK)
        snprintf(a.text, sizeof a.text, "%s", about.name);
    else
        snprintf(a.text, sizeof a.text, "%.199s", error.message);
    if (a.count && a.count < s->options->devices)
        snprintf(a.text, sizeof a.text, "OpenCL finds %d device%s", a.count, a.count == 1 ? "" : "s");
    else if (a.count && memory_of(&about) < s->options->memory)
        a = (answer){ .text = "OpenCL's devices have less memory than those of the study" };
    _exit(write(to, &a, sizeof a) == (ssize_t)sizeof a ? 0 : 1);
}

/* OpenCL is looked at in a process of its own: what it starts in ours would not survive a fork. */
static void choose_work(experiment *s) {
    int    ends[2];
    answer a = { .text = "no process could be started to look for devices" };
    if (pipe(ends) == 0) {
        pid_t child = start_child(s);
        if (child == 0) look_for_devices(s, ends[1]);
        close(ends[1]);
        if (read(ends[0], &a, sizeof a) != (ssize_t)sizeof a)
            a = (answer){ .text = "OpenCL ended the process that looked for devices" };
        close(ends[0]);
        end_child(&child, SIGKILL);
    }
    fv_device_study *r = s->result;
    r->opencl = a.count >= s->options->devices;
    if (r->opencl)
        snprintf(r->work, sizeof r->work, "OpenCL kernels on %d devices (%s)", r->devices, a.text);
    else
        snprintf(r->work, sizeof r->work, "timed work without kernels: %.199s", a.text);
}

/* Needs of an eighth to three quarters of a device, lengths of a fifth to nine fifths of the mean. */
static void make_tasks(experiment *s) {
    static const double needs[] = { 0.125, 0.25, 0.375, 0.5, 0.75 };
    double              sum = 0;
    for (int t = 0; t < s->options->tasks; t++) {
        uint64_t hash = fv__place_hash(s->options->seed, 0, 0, 0, t);
        double   need = needs[(int)(fv__uniform(hash, 0) * FV_COUNT(needs))];
        double   length = s->options->seconds * (0.2 + 1.6 * fv__uniform(hash, 1));
        s->board->list[t] = (fv_study_task){ (int64_t)(need * (double)s->options->memory), length };
        sum += length;
    }
    s->result->least = sum / s->options->devices;
}

/* ---------------------------------------------------------------- one policy */

static volatile sig_atomic_t service_ends; /* of the child that serves: set by its signal handler */

static void end_service(int number) {
    (void)number;
    service_ends = 1;
}

static void say_ready(void *context, const char *socket) {
    (void)socket;
    if (write(*(const int *)context, "!", 1) != 1) _exit(1);
}

static void serve(const experiment *s, const char *policy, const char *record, int ready) {
    char        names[FV_STUDY_DEVICES][64];
    const char *devices[FV_STUDY_DEVICES];
    fv_error    error = { 0 };
    for (int d = 0; d < s->options->devices; d++) {
        snprintf(names[d], sizeof names[d], "%s%d:%lld", s->result->opencl ? "opencl" : "device", d,
                 (long long)s->options->memory);
        devices[d] = names[d];
    }
    fv_devices_options how = { .socket = s->board->socket,
                               .record = record,
                               .policy = policy,
                               .seed = s->options->seed,
                               .devices = devices,
                               .ndevices = s->options->devices,
                               .stop = &service_ends,
                               .ready = say_ready,
                               .context = &ready };
    sigaction(SIGTERM, &(struct sigaction){ .sa_handler = end_service }, NULL);
    if (fv_devices_serve(&how, &error) == FV_OK) _exit(0);
    snprintf(s->board->message, sizeof s->board->message, "%.500s", error.message);
    _exit(1);
}

static fv_status start_service(experiment *s, const char *policy, fv_error *error) {
    int       ends[2];
    char      byte;
    char     *record = s->options->folder ? fv__sprintf("%s/%s.record", s->options->folder, policy) : NULL;
    fv_status status = record ? fv__path_remove(record, error) : FV_OK;
    if (status == FV_OK && pipe(ends)) status = fv_fail(error, FV_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
    if (status == FV_OK) {
        s->service = start_child(s);
        if (s->service == 0) serve(s, policy, record, ends[1]);
        close(ends[1]);
        ssize_t got;
        while ((got = read(ends[0], &byte, 1)) < 0 && errno == EINTR) {
        }
        close(ends[0]);
        if (s->service < 0 || got != 1)
            status = fv_fail(error, FV_ERROR_IO, "cannot start a service of devices: %s",
                             s->service < 0 ? strerror(errno) : s->board->message);
    }
    free(record);
    return status;
}

static fv_status start_workers(experiment *s, int go[2], fv_error *error) {
    for (s->nworkers = 0; s->nworkers < s->options->workers; s->nworkers++) {
        pid_t child = start_child(s);
        if (child < 0) return fv_fail(error, FV_ERROR_IO, "cannot start worker %d: %s", s->nworkers, strerror(errno));
        if (child == 0) {
            close(go[1]);
            _exit(fv__study_work(s->board, s->nworkers, go[0]));
        }
        s->workers[s->nworkers] = child;
    }
    return FV_OK;
}

/* Until as many workers are ready as there are, or all have ended. */
static fv_status wait_for_workers(experiment *s, bool ready, fv_error *error) {
    for (int running = s->nworkers; running > 0;) {
        if (ready && s->board->ready == s->nworkers) return FV_OK;
        if (s->options->cancel && *s->options->cancel) return fv_fail(error, FV_ERROR_CANCELLED, "stopped");
        running = 0;
        for (int w = 0; w < s->nworkers; w++) {
            int state;
            if (s->workers[w] > 0 && waitpid(s->workers[w], &state, WNOHANG) == s->workers[w]) {
                s->workers[w] = 0;
                if (WIFSIGNALED(state))
                    return fv_fail(error, FV_ERROR_DEVICE, "worker %d was ended by signal %d", w, WTERMSIG(state));
            }
            running += s->workers[w] > 0;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
    return s->board->failed ? fv_fail(error, FV_ERROR_DEVICE, "a task failed: %s", s->board->message) : FV_OK;
}

static fv_status run_workers(experiment *s, fv_error *error) {
    int go[2];
    if (pipe(go)) return fv_fail(error, FV_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
    fv_status status = start_workers(s, go, error);
    close(go[0]);
    if (status == FV_OK) status = wait_for_workers(s, true, error);
    s->board->start = fv__now();
    close(go[1]);
    if (status == FV_OK) status = wait_for_workers(s, false, error);
    for (int w = 0; w < s->nworkers; w++) end_child(&s->workers[w], SIGKILL);
    return status;
}

static fv_status run_policy(experiment *s, int number, fv_error *error) {
    fv_device_study *r = s->result;
    fv_study_board  *b = s->board;
    const char      *policy = fv__policy_names[number];
    b->opencl = r->opencl;
    b->devices = r->devices;
    b->tasks = r->tasks;
    b->ready = b->next = b->failed = 0;
    for (int d = 0; d < FV_STUDY_DEVICES; d++) b->busy_until[d] = 0;
    fv_status status = start_service(s, policy, error);
    if (status == FV_OK) status = run_workers(s, error);
    end_child(&s->service, SIGTERM);
    if (status != FV_OK) return status;
    fv_study_row *row = &r->rows[r->nrows];
    row->policy = policy;
    r->leases = fv__realloc(r->leases, (size_t)(r->nleases + r->tasks) * sizeof *r->leases);
    for (int t = 0; t < r->tasks; t++) {
        r->leases[r->nleases + t] = b->leases[t];
        r->leases[r->nleases + t].policy = r->nrows;
    }
    fv_study_row_derive(row, r->leases + r->nleases, r->tasks, r->devices);
    r->nleases += r->tasks;
    r->nrows++;
    return FV_OK;
}

/* ---------------------------------------------------------------- figures */

static int by_grant(const void *a, const void *b) {
    const fv_study_lease *x = a, *y = b;
    return x->granted < y->granted ? -1 : x->granted > y->granted;
}

void fv_study_row_derive(fv_study_row *row, const fv_study_lease *leases, int count, int devices) {
    fv_study_lease *sorted = fv__alloc((size_t)(count + 1) * sizeof *sorted);
    double          busy_until[FV_STUDY_DEVICES] = { 0 };
    memcpy(sorted, leases, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_grant);
    row->makespan = row->wait = row->longest_wait = 0;
    for (int d = 0; d < devices; d++) row->occupancy[d] = 0, row->peak[d] = 0;
    for (int i = 0; i < count; i++) {
        const fv_study_lease *l = &sorted[i];
        int64_t               used = 0;
        for (int k = 0; k <= i; k++)
            if (sorted[k].device == l->device && sorted[k].returned > l->granted) used += sorted[k].memory;
        row->peak[l->device] = FV_MAX(row->peak[l->device], used);
        row->occupancy[l->device] += FV_MAX(0, l->returned - FV_MAX(l->granted, busy_until[l->device]));
        busy_until[l->device] = FV_MAX(busy_until[l->device], l->returned);
        row->makespan = FV_MAX(row->makespan, l->returned);
        row->wait += (l->granted - l->asked) / count;
        row->longest_wait = FV_MAX(row->longest_wait, l->granted - l->asked);
    }
    for (int d = 0; d < devices && row->makespan > 0; d++) row->occupancy[d] /= row->makespan;
    free(sorted);
}

/* ---------------------------------------------------------------- the whole */

static fv_status check(const fv_study_options *o, fv_error *error) {
    fv_policy policy;
    if (o->workers < 1 || o->workers > FV_STUDY_WORKERS)
        return fv_fail(error, FV_ERROR_USAGE, "workers = %d: must be 1 to %d", o->workers, FV_STUDY_WORKERS);
    if (o->tasks < 1 || o->tasks > FV_STUDY_TASKS)
        return fv_fail(error, FV_ERROR_USAGE, "tasks = %d: must be 1 to %d", o->tasks, FV_STUDY_TASKS);
    if (o->devices < 1 || o->devices > FV_STUDY_DEVICES)
        return fv_fail(error, FV_ERROR_USAGE, "devices = %d: must be 1 to %d", o->devices, FV_STUDY_DEVICES);
    if (o->memory < (int64_t)16 << 20) return fv_fail(error, FV_ERROR_USAGE, "memory: a device must have 16M at least");
    if (!(o->seconds > 0 && o->seconds <= 3600))
        return fv_fail(error, FV_ERROR_USAGE, "seconds = %g: must be above 0 and at most 3600", o->seconds);
    if (o->policy && !fv__policy_find(o->policy, &policy))
        return fv_fail(error, FV_ERROR_USAGE, "policy %s: must be random, round-robin, least-processes or best-fit", o->policy);
    return o->folder ? fv__path_make_folders(o->folder, error) : FV_OK;
}

static fv_status run_policies(experiment *s, fv_error *error) {
    fv_status status = FV_OK;
    choose_work(s);
    make_tasks(s);
    for (int p = 0; p < FV_POLICIES && status == FV_OK; p++) {
        char what[400];
        if (s->options->policy && strcmp(s->options->policy, fv__policy_names[p])) continue;
        snprintf(what, sizeof what, "%s: %d workers, %d tasks, %s", fv__policy_names[p], s->result->workers, s->result->tasks,
                 s->result->work);
        if (s->options->tell) s->options->tell(s->options->context, what);
        status = run_policy(s, p, error);
    }
    return status;
}

fv_status fv_device_study_run(const fv_study_options *o, fv_device_study **result, fv_error *error) {
    experiment s = { .options = o };
    *result = NULL;
    FV_TRY(check(o, error));
    const char *given = getenv("TMPDIR"); /* a long one would not leave room for the socket's name */
    snprintf(s.folder, sizeof s.folder, "%.48s/fovea-study-XXXXXX", given && *given && strlen(given) <= 48 ? given : "/tmp");
    if (!mkdtemp(s.folder)) return fv_fail(error, FV_ERROR_IO, "cannot make a folder in %s: %s", s.folder, strerror(errno));
    s.board = mmap(NULL, sizeof *s.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fv_status status = s.board != MAP_FAILED ? FV_OK : fv_fail(error, FV_ERROR_MEMORY, "no memory that processes can share");
    s.result = fv__calloc(sizeof *s.result);
    *s.result = (fv_device_study){
        .workers = o->workers, .tasks = o->tasks, .devices = o->devices, .memory = o->memory, .seed = o->seed
    };
    if (status == FV_OK) {
        snprintf(s.board->socket, sizeof s.board->socket, "%s/devices.sock", s.folder);
        status = run_policies(&s, error);
        munmap(s.board, sizeof *s.board);
    }
    fv__path_remove(s.folder, NULL);
    if (status == FV_OK)
        *result = s.result;
    else
        fv_device_study_free(s.result);
    return status;
}

void fv_device_study_free(fv_device_study *study) {
    if (!study) return;
    free(study->leases);
    free(study);
}
