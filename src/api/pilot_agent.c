/* The agent of a pilot on one node: starts a process for each job of the queue and divides the processors among them.
 *
 * 1. This process has one thread, so it may fork. What its children use and may use lies in memory that they share.
 * 2. Before the end of its time nothing is begun that cannot end; then the children are told to stop, and commit.
 */
#include "base/file.h"
#include "base/host.h"
#include "cluster/pilot_book.h"
#include "cluster/pilot_shares.h"
#include "units/units_text.h"
#include <errno.h>
#include <fovea/pilot.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double LOOK = 0.2, SEEN = 2, STOPPING = 3, KILL = 20, LAST_PART = 0.1, LONGEST_LAST = 60, IDLE = 60;

typedef struct common { /* with a child */
    fv_allowance allowance;
    fv_status    status;
    char         why[256];
} common;

typedef struct seat {
    int64_t job, memory;
    pid_t   pid; /* 0: it has ended */
    int     tries;
    common *shared;
    double  served, stopped; /* stopped: clock, when it was told to; 0: it was not */
    bool    units, over;     /* over: not started again here */
} seat;

typedef struct agent {
    const char   *folder;
    fv_book_agent self;
    volatile int *stop;
    seat         *seats;
    fv_share_of  *shares; /* as many */
    int           nseats;
    double        looked, seen, divided, begun; /* clock */
    double        drains;                       /* seconds before the end from which on no task of a run is begun */
    bool          stopping, asked;              /* asked: by `fovea pilot stop`, or nothing is left to do */
    bool          once;                         /* it ends when its first work is done */
} agent;

/* ---------------------------------------------------------------- in a child */

static fv_status do_units(const agent *a, const fv_book_job *job, common *shared, fv_error *error) {
    fv_arena         arena = { 0 };
    fv_units_options options;
    fv_units_state   state;
    char             session[33];
    FV_TRY(fv__units_read(job->what, &arena, &options, error));
    snprintf(session, sizeof session, "%lld-%.6f", (long long)job->id, job->added);
    options.workers = a->self.cpus;
    options.memory_bound = options.memory_bound ? FV_MIN(options.memory_bound, job->memory) : job->memory;
    options.share = true;
    options.session = session;
    options.allowance = &shared->allowance;
    options.ends = a->self.ends > 0 ? a->self.ends - STOPPING : 0;
    options.stop = a->stop;
    fv_status status = fv_units_run(&options, &state, error);
    fv__arena_release(&arena);
    return status;
}

/* Items that failed were reported by whoever asked for the run; it is done all the same. */
static fv_status do_run(const agent *a, const fv_book_job *job, int tries, common *shared, fv_error *error) {
    fv_work_options work = { .wait = true,
                             .place = a->self.node,
                             .places = a->self.node + 1,
                             .level = FV_MIN(tries, FV_MOST_TRIES - 1),
                             .allowance = &shared->allowance };
    fv_run_options  options = { .workers = a->self.cpus, .memory = job->memory, .overwrite = job->overwrite, .cancel = a->stop };
    fv_result      *result;
    fv_status       status = fv_work(job->what, &work, &options, &result, error);
    if (status == FV_ERROR_INPUT && fv_result_failures(result) > 0) status = FV_OK;
    fv_result_free(result);
    return status;
}

static void be_child(const agent *a, const fv_book_job *job, int tries, common *shared, pid_t parent) {
    fv_error error = { 0 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    shared->status = chdir(job->folder) ? fv_fail(&error, FV_ERROR_IO, "cannot go to %s: %s", job->folder, strerror(errno))
                     : job->units       ? do_units(a, job, shared, &error)
                                        : do_run(a, job, tries, shared, &error);
    snprintf(shared->why, sizeof shared->why, "%.255s", error.message);
    fflush(NULL);
    _exit(0);
}

/* ---------------------------------------------------------------- seats */

static bool start(agent *a, const fv_book_job *job, seat *s) {
    pid_t parent = getpid();
    *s->shared = (common){ .allowance = { .wanted = 1 }, .status = FV_ERROR_INTERNAL, .why = "its process died" };
    s->pid = fork();
    if (!s->pid) be_child(a, job, s->tries, s->shared, parent);
    if (s->pid < 0) s->pid = 0;
    s->tries++;
    return s->pid > 0;
}

static seat *find_seat(agent *a, int64_t job) {
    for (int i = 0; i < a->nseats; i++)
        if (a->seats[i].job == job) return &a->seats[i];
    return NULL;
}

static seat *new_seat(agent *a, int64_t job, int64_t memory) {
    common *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return NULL;
    a->seats = fv__realloc(a->seats, (size_t)(a->nseats + 1) * sizeof *a->seats);
    a->shares = fv__realloc(a->shares, (size_t)(a->nseats + 1) * sizeof *a->shares);
    a->seats[a->nseats] = (seat){ .job = job, .memory = memory, .shared = shared };
    return &a->seats[a->nseats++];
}

/* Whoever is told to stop must not wait for processors meanwhile. */
static void tell_to_stop(const agent *a, seat *s) {
    if (!s->pid) return;
    s->shared->allowance.allowed = a->self.cpus;
    if (!(s->stopped > 0)) {
        s->stopped = fv__now();
        kill(s->pid, SIGTERM);
    } else if (fv__now() > s->stopped + KILL || (a->self.ends > 0 && fv__epoch() > a->self.ends))
        kill(s->pid, SIGKILL);
}

static int64_t memory_used(const agent *a) {
    int64_t used = 0;
    for (int i = 0; i < a->nseats; i++) used += a->seats[i].pid ? a->seats[i].memory : 0;
    return used;
}

/* What a process that has ended says about its job. What cannot be written now is found out again by another one. */
static void take_end(agent *a, fv_book *book, seat *s) {
    const common *c = s->shared;
    bool          stopped = s->stopped > 0 || c->status == FV_ERROR_CANCELLED;
    s->pid = 0;
    if (c->status == FV_OK) {
        s->over = fv__book_settle(book, s->job, FV_BOOK_DONE, NULL, NULL) == FV_OK;
    } else if (!stopped && (s->tries >= FV_MOST_TRIES || c->status != FV_ERROR_INTERNAL)) { /* a mistake would be made again */
        s->over = fv__book_settle(book, s->job, FV_BOOK_FAILED, c->why, NULL) == FV_OK;
    }
    fv__book_part(book, s->job, a->self.node, false, 0, s->served, NULL);
}

static void reap(agent *a, fv_book *book) {
    int status;
    for (int i = 0; i < a->nseats; i++)
        if (a->seats[i].pid && waitpid(a->seats[i].pid, &status, WNOHANG) == a->seats[i].pid) take_end(a, book, &a->seats[i]);
}

/* ---------------------------------------------------------------- the queue */

/* Starts a process for it. It is read whole only now: lists of files may be long. */
static void begin(agent *a, seat *s, int64_t job) {
    fv_arena    arena = { 0 };
    fv_book_job whole = { 0 };
    fv_book    *book = NULL;
    fv_status   status = fv__book_open(a->folder, false, &book, NULL);
    if (status == FV_OK) status = fv__book_job(book, job, &arena, &whole, NULL);
    fv__book_close(book); /* before the fork */
    if (status == FV_OK && whole.state <= FV_BOOK_RUNS) {
        whole.memory = s->memory;
        s->stopped = 0;
        s->units = whole.units;
        if (start(a, &whole, s)) a->seen = 0; /* which is told at the next look */
    }
    fv__arena_release(&arena);
}

static void take_job(agent *a, const fv_book_job *job) {
    seat *s = find_seat(a, job->id);
    if (s && (s->pid || s->over || a->stopping)) return;
    int64_t memory = job->memory ? job->memory : a->self.memory / 4;
    if (job->units) /* that is what one of them needs */
        memory = FV_MAX(memory, FV_MIN(job->memory * a->self.cpus, a->self.memory - memory_used(a)));
    if (a->stopping || (memory_used(a) && memory_used(a) + memory > a->self.memory)) return;
    if (!s) s = new_seat(a, job->id, memory);
    if (s) begin(a, s, job->id);
}

/* Ends what is not wanted any more: others have done the rest, or who asked for it has taken it back. */
static void end_cancelled(agent *a, const fv_book_job *jobs, int count) {
    for (int i = a->nseats - 1; i >= 0; i--) {
        seat *s = &a->seats[i];
        bool  wanted = false;
        for (int k = 0; k < count; k++) wanted = wanted || jobs[k].id == s->job;
        if (wanted) continue;
        tell_to_stop(a, s);
        if (s->pid) continue;
        munmap(s->shared, sizeof *s->shared);
        *s = a->seats[--a->nseats];
    }
}

/* Whether there was work, which is done, or nobody has brought any for a while. */
static bool is_done(const agent *a, fv_book *book) {
    fv_arena     arena = { 0 };
    fv_book_job *jobs = NULL;
    int          all = 0;
    bool         known = fv__book_jobs(book, true, &arena, &jobs, &all, NULL) == FV_OK;
    free(jobs);
    fv__arena_release(&arena);
    return known && (all || fv__now() > a->begun + IDLE);
}

static fv_status look(agent *a, fv_error *error) {
    fv_arena     arena = { 0 };
    fv_book_job *jobs = NULL;
    fv_book     *book;
    int          count = 0;
    fv_status    status = fv__book_open(a->folder, false, &book, error);
    if (status == FV_OK) {
        reap(a, book);
        status = fv__book_jobs(book, false, &arena, &jobs, &count, error);
    }
    if (status == FV_OK) {
        char *wish = fv__book_fact(book, "state");
        a->asked = !strcmp(wish, "stopping") || (a->once && !count && is_done(a, book));
        free(wish);
    }
    if (status == FV_OK && fv__now() > a->seen + SEEN) {
        a->seen = fv__now();
        a->self.seen = fv__epoch();
        status = fv__book_agent(book, &a->self, error);
        for (int i = 0; i < a->nseats; i++)
            if (a->seats[i].pid)
                fv__book_part(book, a->seats[i].job, a->self.node, true, a->seats[i].shared->allowance.used, a->seats[i].served,
                              NULL);
    }
    fv__book_close(book);
    if (status == FV_OK) end_cancelled(a, jobs, count);
    for (int k = 0; k < count && status == FV_OK; k++) take_job(a, &jobs[k]); /* forks, so no database may be open */
    free(jobs);
    fv__arena_release(&arena);
    return status;
}

static void divide(agent *a) {
    double now = fv__now(), passed = a->divided > 0 ? now - a->divided : 0;
    int    n = 0;
    bool   drained = a->self.ends > 0 && fv__epoch() > a->self.ends - a->drains;
    a->divided = now;
    for (int i = 0; i < a->nseats; i++) {
        seat *s = &a->seats[i];
        if (!s->pid || s->stopped > 0) continue;
        s->served += passed * s->shared->allowance.used;
        if (drained && !s->units) { /* units know themselves what can still end */
            s->shared->allowance.allowed = 0;
            continue;
        }
        a->shares[n++] = (fv_share_of){ .allowance = &s->shared->allowance, .served = s->served };
    }
    fv__shares_divide(a->shares, n, a->self.cpus);
}

/* ---------------------------------------------------------------- all of it */

static int cpus_here(void) {
    const char *slurm = getenv("SLURM_CPUS_ON_NODE");
    cpu_set_t   set;
    if (slurm && atoi(slurm) > 0) return atoi(slurm);
    return sched_getaffinity(0, sizeof set, &set) ? (int)sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
}

static int64_t memory_here(void) {
    const char *given = getenv("SLURM_MEM_PER_NODE"); /* MiB */
    int64_t     slurm = given ? atoll(given) << 20 : 0, own = fv__system_number("/proc/meminfo", "MemTotal:") << 10;
    return slurm > 0 ? slurm : own / 10 * 9;
}

static fv_status enter(agent *a, fv_error *error) {
    fv_book  *book;
    fv_status status = fv__book_open(a->folder, false, &book, error);
    if (status == FV_OK) {
        char *cpus = fv__book_fact(book, "cpus"), *memory = fv__book_fact(book, "memory"), *once = fv__book_fact(book, "once"),
             *nodes = fv__book_fact(book, "nodes"), *local = fv__book_fact(book, "local");
        int here = atoi(local) > 0 ? FV_MAX(atoi(nodes), 1) : 1; /* agents that share this machine */
        a->once = atoi(once) > 0;
        a->self.cpus = atoi(cpus) > 0 ? atoi(cpus) : cpus_here();
        a->self.memory = atoll(memory) > 0 ? atoll(memory) : memory_here() / here;
        free(cpus);
        free(memory);
        free(once);
        free(nodes);
        free(local);
        status = fv__book_agent_leaves(book, a->self.node, error); /* what one before left */
    }
    if (status == FV_OK) status = fv__book_agent(book, &a->self, error);
    if (status == FV_OK) status = fv__book_set_fact(book, "state", "runs", error);
    fv__book_close(book);
    return status;
}

static bool somebody_works(const agent *a) {
    bool works = false;
    for (int i = 0; i < a->nseats; i++) works = works || a->seats[i].pid;
    return works;
}

static fv_status leave(agent *a, bool *left, fv_error *error) {
    fv_arena     arena = { 0 };
    fv_book_job *jobs = NULL;
    fv_book     *book;
    int          count = 0;
    fv_status    status = fv__book_open(a->folder, false, &book, error);
    if (status == FV_OK) status = fv__book_agent_leaves(book, a->self.node, error);
    if (status == FV_OK) status = fv__book_jobs(book, false, &arena, &jobs, &count, error);
    *left = count > 0 && !a->asked;
    fv__book_close(book);
    free(jobs);
    fv__arena_release(&arena);
    return status;
}

static fv_status serve(agent *a, fv_error *error) {
    for (;;) {
        bool over = *a->stop || a->asked || (a->self.ends > 0 && fv__epoch() > a->self.ends - STOPPING);
        a->stopping = a->stopping || over;
        for (int i = 0; a->stopping && i < a->nseats; i++) tell_to_stop(a, &a->seats[i]);
        if (fv__now() > a->looked + LOOK) {
            a->looked = fv__now();
            FV_TRY(look(a, error));
        }
        if (a->stopping && !somebody_works(a)) return FV_OK;
        divide(a);
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    }
}

fv_status fv_pilot_serve(const char *folder, int node, double ends, volatile int *stop, bool *left, fv_error *error) {
    agent a = { .folder = folder,
                .self = { .node = node, .pid = getpid(), .ends = ends, .seen = fv__epoch() },
                .stop = stop,
                .begun = fv__now() };
    snprintf(a.self.host, sizeof a.self.host, "%s", fv__host_self()->name);
    a.drains = ends > 0 ? FV_MIN((ends - fv__epoch()) * LAST_PART, LONGEST_LAST) + STOPPING : 0;
    *left = false;
    FV_TRY(enter(&a, error));
    fv_status status = serve(&a, error), ended = leave(&a, left, status == FV_OK ? error : NULL);
    for (int i = 0; i < a.nseats; i++) munmap(a.seats[i].shared, sizeof(common));
    free(a.seats);
    free(a.shares);
    return status == FV_OK ? ended : status;
}
