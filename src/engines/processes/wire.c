/* Jobs and answers as lines of text, and the worker at the other end. */
#include "engines/processes/wire.h"
#include "run/manifest.h"
#include <fovea/pipeline.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the engine's side */

fv_status fv__wire_greet(FILE *to, const fv_scheduler *scheduler, const fv_run_settings *settings, fv_error *error) {
    (void)scheduler;
    double patience = settings->patience > 0 ? settings->patience : 2.5;
    if (fprintf(to, "hello %lld %d %g\n", (long long)settings->budget.store, settings->poison, patience) < 0 || fflush(to))
        return fv_fail(error, FV_ERROR_IO, "a worker process ended before it began");
    return FV_OK;
}

bool fv__wire_send_job(FILE *to, const fv_job *job) {
    const fv_instance *instance = job->instance;
    fprintf(to, "%s %lld %d %lld\n", job->kind == FV_JOB_TASK ? "task" : "end", (long long)instance->item, job->stage,
            (long long)job->task);
    for (int k = 0; k < instance->plan->nfiles; k++) {
        const fv_output *output = instance->outputs[k];
        fprintf(to, "%016llx%016llx %s\n", (unsigned long long)output->epoch.high, (unsigned long long)output->epoch.low,
                fv__output_told(output));
    }
    return !fflush(to) && !ferror(to);
}

static char *read_line(FILE *from, char **line, size_t *capacity) {
    ssize_t n = getline(line, capacity, from);
    if (n <= 0) return NULL;
    if ((*line)[n - 1] == '\n') (*line)[n - 1] = 0;
    return *line;
}

bool fv__wire_receive_answer(FILE *from, fv_job *job, fv_error *error) {
    char          *line = NULL;
    size_t         capacity = 0;
    fv_task_facts *f = &job->facts;
    long long      read, written;
    int            code, used = 0;
    bool           good = false;
    if (!read_line(from, &line, &capacity)) goto end;
    if (sscanf(line, "ok %lf %lf %lf %lf %lld %lld%n", &f->start, &f->read, &f->compute, &f->write, &read, &written, &used) ==
        6) {
        f->bytes_read = read;
        f->bytes_written = written;
        char *at = line + used;
        for (int k = 0; k < FV_FACT_STEPS && *at; k++) f->spent[k] = strtof(at, &at);
        error->code = FV_OK;
        good = true;
    } else if (sscanf(line, "failed %d %31s %n", &code, error->op, &used) >= 2) {
        if (!strcmp(error->op, "-")) error->op[0] = 0;
        fv_fail(error, (fv_status)code, "%s", line + used);
        good = true;
    }
end:
    free(line);
    return good;
}

/* ---------------------------------------------------------------- the worker's side */

enum { PATH_AT = 33, MOST_OPEN = 8, MOST_POOLED = 8 << 20 };

typedef struct server {
    fv_context   context;
    fv_bindings  bindings;
    fv_program  *program;
    fv_instance *open[MOST_OPEN]; /* most recently used first */
    fv_worker   *worker;
    char        *line;
    size_t       capacity;
} server;

static fv_status find_instance(server *s, int64_t item, fv_instance **instance, fv_error *error) {
    int at = 0;
    while (at < MOST_OPEN - 1 && s->open[at] && s->open[at]->item != item) at++;
    fv_instance *found = s->open[at] && s->open[at]->item == item ? s->open[at] : NULL;
    if (!found) {
        fv_diagnostics diagnostics = { 0 };
        fv_status      status = fv__instance_open(&s->context, item, &found, &diagnostics, error);
        fv__diagnostics_release(&diagnostics);
        if (status != FV_OK) return status;
        fv__instance_close(s->open[at]);
    }
    memmove(s->open + 1, s->open, (size_t)at * sizeof *s->open);
    *instance = s->open[0] = found;
    return FV_OK;
}

/* The lines about outputs that follow a job. */
static bool read_outputs(server *s, fv_instance *instance) {
    for (int k = 0; k < instance->plan->nfiles; k++) {
        unsigned long long high, low;
        if (!read_line(stdin, &s->line, &s->capacity) || strlen(s->line) < PATH_AT) return false;
        if (sscanf(s->line, "%16llx%16llx", &high, &low) != 2) return false;
        fv_hash     epoch = { .high = high, .low = low };
        const char *path = s->line + PATH_AT; /* a path may begin with a blank */
        if (fv__instance_follow(instance, k, path, epoch, NULL) != FV_OK) return false;
    }
    return true;
}

static fv_status serve_job(server *s, const char *kind, fv_instance *instance, int stage, int64_t task, fv_task_facts *facts,
                           fv_error *error) {
    const fv_stage *st = &instance->plan->stages[stage];
    if (!strcmp(kind, "end")) return fv__stage_end(instance, st, error);
    FV_TRY(fv__fault_point("task", error));
    FV_TRY(fv__task_run(instance, st, task, s->worker, facts, error));
    return fv__output_list_sync(s->context.written, error); /* another process will give the file its name */
}

static void answer(fv_status status, const fv_task_facts *f, const fv_error *error) {
    if (status == FV_OK) {
        int last = FV_FACT_STEPS;
        while (last > 0 && f->spent[last - 1] <= 0) last--;
        printf("ok %.6f %.9f %.9f %.9f %lld %lld", f->start, f->read, f->compute, f->write, (long long)f->bytes_read,
               (long long)f->bytes_written);
        for (int k = 0; k < last; k++) printf(" %.7g", (double)f->spent[k]);
        printf("\n");
    } else {
        fv_error told = *error; /* names in it may hold line ends */
        for (char *c = told.message; *c; c++) *c = *c == '\n' || *c == '\r' ? ' ' : *c;
        printf("failed %d %s %s\n", (int)status, told.op[0] ? told.op : "-", told.message);
    }
    fflush(stdout);
}

static int serve(server *s) {
    while (read_line(stdin, &s->line, &s->capacity)) {
        char            kind[8];
        long long       item, task;
        int             stage;
        fv_instance    *instance;
        fv_error        error = { 0 };
        fv_task_facts   facts = { 0 };
        struct timespec now;
        if (sscanf(s->line, "%7s %lld %d %lld", kind, &item, &stage, &task) != 4) return 1;
        clock_gettime(CLOCK_REALTIME, &now);
        facts.start = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
        fv_status status = find_instance(s, item, &instance, &error);
        if (status != FV_OK) { /* the engine could open it: its inputs have changed meanwhile */
            answer(status, &facts, &error);
            return 1;
        }
        if (!read_outputs(s, instance) || stage < 0 || stage >= instance->plan->nstages) return 1;
        fv_status done = serve_job(s, kind, instance, stage, task, &facts, &error);
        if (fv__buffer_pooled() > MOST_POOLED) fv__buffer_trim(); /* other workers may need the memory meanwhile */
        answer(done, &facts, &error);
    }
    return 0;
}

static fv_status start_server(server *s, const char *run_folder, fv_error *error) {
    long long memory;
    int       poison;
    double    patience;
    char      name[64], writer[160], host[40] = "host";
    if (!read_line(stdin, &s->line, &s->capacity) || sscanf(s->line, "hello %lld %d %lf", &memory, &poison, &patience) != 3)
        return fv_fail(error, FV_ERROR_USAGE, "this command is started by engines");
    FV_TRY(fv__manifest_load(run_folder, &s->program, &s->bindings, &s->context.plan_options, error));
    s->context.program = s->program;
    s->context.bindings = &s->bindings;
    s->context.poison = poison;
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "%s-%d-%llx", host, (int)getpid(), (unsigned long long)(fv__now() * 1e9));
    snprintf(writer, sizeof writer, "%s/../../store", run_folder);
    fv_store_options options = { .folder = writer, .writer = name, .memory = memory, .patience = patience, .shared = true };
    s->context.written = fv__output_list_new();
    FV_TRY(fv__store_open(&options, &s->context.store, error));
    fv__store_on_flush(s->context.store, fv__output_list_sync, s->context.written);
    s->worker = fv__worker_new();
    return FV_OK;
}

int fv_task_serve(const char *run_folder) {
    server   s = { 0 };
    fv_error error = { 0 };
    int      code = 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a worker left behind would write beside the one of the next run */
    signal(SIGINT, SIG_IGN);          /* Ctrl-C is for the engine, which lets the task end */
    fv_status status = start_server(&s, run_folder, &error);
    if (status == FV_OK) {
        code = serve(&s);
        status = fv__store_flush(s.context.store, &error);
    }
    if (status != FV_OK) {
        fprintf(stderr, "fovea task: %s\n", error.message);
        code = 2;
    }
    for (int i = 0; i < MOST_OPEN; i++) fv__instance_close(s.open[i]);
    if (s.context.store) fv__store_close(s.context.store);
    fv__output_list_free(s.context.written);
    fv__worker_free(s.worker);
    fv__program_free(s.program);
    fv__bindings_release(&s.bindings);
    free(s.line);
    return code;
}
