/* The worker at the other end of a pipe: `fovea task`, which an engine starts. */
#include "engines/processes/frames.h"
#include "run/manifest.h"
#include "run/wire.h"
#include <fovea/pipeline.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_OPEN = 8, MOST_POOLED = 8 << 20 };

typedef struct server {
    fv_context   context;
    fv_bindings  bindings;
    fv_program  *program;
    fv_instance *open[MOST_OPEN]; /* most recently used first */
    fv_worker   *worker;
    fv_bytes     message;
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

static void answer(const fv_job *job, fv_status status, const fv_error *error) {
    fv_bytes message = { 0 };
    fv__wire_put_answer(&message, job, 0, status, error);
    fv__frame_send(stdout, message.data, message.size);
    fv__bytes_release(&message);
}

static int serve(server *s) {
    while (fv__frame_receive(stdin, &s->message)) {
        fv_wire_job     line;
        fv_error        error = { 0 };
        struct timespec now;
        const uint8_t  *at = s->message.data, *outputs;
        if (!fv__wire_take_job(&at, at + s->message.size, &line, &outputs)) return 1;
        fv_job job = { .kind = (fv_job_kind)line.kind, .stage = line.stage, .task = line.task, .ticket = line.ticket };
        clock_gettime(CLOCK_REALTIME, &now);
        job.facts.start = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
        fv_status status = find_instance(s, line.item, &job.instance, &error);
        if (status != FV_OK) { /* the engine could open it: its inputs have changed meanwhile */
            answer(&job, status, &error);
            return 1;
        }
        if (job.stage < 0 || job.stage >= job.instance->plan->nstages) return 1;
        if (fv__wire_follow(job.instance, outputs, (size_t)line.outputs, &error) != FV_OK) return 1;
        status = fv__job_run(NULL, &job, s->worker, &error);
        if (status == FV_OK && job.kind == FV_JOB_TASK) /* another process will give the file its name */
            status = fv__output_list_sync(s->context.written, &error);
        if (fv__buffer_pooled() > MOST_POOLED) fv__buffer_trim(); /* other workers may need the memory meanwhile */
        answer(&job, status, &error);
    }
    return 0;
}

static fv_status start_server(server *s, const char *run_folder, fv_error *error) {
    fv_worker_hello hello;
    char            name[64], writer[160], host[40] = "host";
    if (!fv__frame_receive(stdin, &s->message) || s->message.size != sizeof hello)
        return fv_fail(error, FV_ERROR_USAGE, "this command is started by engines");
    memcpy(&hello, s->message.data, sizeof hello);
    FV_TRY(fv__manifest_load(run_folder, &s->program, &s->bindings, &s->context.plan_options, error));
    s->context.program = s->program;
    s->context.bindings = &s->bindings;
    s->context.poison = (int)hello.poison;
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "%s-%d-%llx", host, (int)getpid(), (unsigned long long)(fv__now() * 1e9));
    snprintf(writer, sizeof writer, "%s/../../store", run_folder);
    fv_store_options options = {
        .folder = writer, .writer = name, .memory = hello.memory, .patience = hello.patience, .shared = true
    };
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
    fv__bytes_release(&s.message);
    return code;
}
