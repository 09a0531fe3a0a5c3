/* The worker at the other end of a pipe: `fovea task`, which an engine starts. */
#include "engines/processes/task_server.h"
#include "base/file.h"
#include "run/manifest.h"
#include <fovea/pipeline.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_POOLED = 8 << 20 };

/* ---------------------------------------------------------------- instances */

static char *scratch_of(const fv_task_server *s, int64_t item) {
    return s->scratch ? fv__sprintf("%s/%lld", s->scratch, (long long)item) : NULL;
}

static void close_instance(const fv_task_server *s, fv_instance *instance) {
    char *scratch = instance ? scratch_of(s, instance->item) : NULL;
    fv__instance_close(instance);
    if (scratch) fv__path_remove(scratch, NULL);
    free(scratch);
}

static fv_status find_instance(fv_task_server *s, int64_t item, fv_instance **instance, fv_error *error) {
    int at = 0;
    while (at < FV_MOST_SERVED - 1 && s->open[at] && s->open[at]->item != item) at++;
    fv_instance *found = s->open[at] && s->open[at]->item == item ? s->open[at] : NULL;
    if (!found) {
        fv_diagnostics diagnostics = { 0 };
        fv_status      status = fv__instance_open(&s->context, item, &found, &diagnostics, error);
        fv__diagnostics_release(&diagnostics);
        if (status != FV_OK) return status;
        close_instance(s, s->open[at]);
    }
    memmove(s->open + 1, s->open, (size_t)at * sizeof *s->open);
    *instance = s->open[0] = found;
    return FV_OK;
}

/* ---------------------------------------------------------------- jobs */

static fv_status follow(fv_task_server *s, fv_instance *instance, const uint8_t *outputs, size_t size, fv_error *error) {
    char     *scratch = scratch_of(s, instance->item);
    fv_status status = scratch ? fv__path_make_folders(scratch, error) : FV_OK;
    if (status == FV_OK) status = fv__wire_follow(instance, outputs, size, scratch, error);
    free(scratch);
    return status;
}

/* Whoever sees no folder of the engine's may miss a file that is there. */
static fv_status explain(const fv_task_server *s, fv_status status, fv_error *error) {
    char     host[64] = "another machine";
    fv_error cause = *error;
    if (!s->scratch || status == FV_ERROR_CANCELLED) return status;
    gethostname(host, sizeof host - 1);
    return fv_fail(error, status,
                   "%.600s (the worker on %s shares no folder with the program that started the run: inputs must be behind "
                   "s3://, hdfs:// or http:// addresses, or lie where it sees them)",
                   cause.message, host);
}

bool fv__task_server_run(fv_task_server *s, const fv_bytes *message, fv_bytes *answer) {
    fv_wire_job     line;
    fv_error        error = { 0 };
    struct timespec now;
    const uint8_t  *at = message->data, *outputs;
    fv__bytes_clear(answer);
    if (!fv__wire_take_job(&at, at + message->size, &line, &outputs)) return false;
    fv_job job = { .kind = (fv_job_kind)line.kind, .stage = line.stage, .task = line.task, .ticket = line.ticket };
    clock_gettime(CLOCK_REALTIME, &now);
    job.facts.start = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    fv_status status = find_instance(s, line.item, &job.instance, &error);
    if (status != FV_OK) { /* the engine could open it: its inputs have changed meanwhile, or are not seen from here */
        fv__wire_put_answer(answer, &job, 0, explain(s, status, &error), &error);
        return false;
    }
    if (job.stage < 0 || job.stage >= job.instance->plan->nstages) return false;
    if (follow(s, job.instance, outputs, (size_t)line.outputs, &error) != FV_OK) return false;
    status = fv__job_run(NULL, &job, s->worker, &error);
    if (status == FV_OK && job.kind == FV_JOB_TASK && !s->scratch) /* another process will give the file its name */
        status = fv__output_list_sync(s->context.written, &error);
    if (fv__buffer_pooled() > MOST_POOLED) fv__buffer_trim(); /* other workers may need the memory meanwhile */
    fv__wire_put_answer(answer, &job, 0, status, &error);
    return true;
}

fv_status fv__task_server_open(fv_task_server *s, const char *run_folder, const fv_worker_hello *hello, fv_store_options options,
                               fv_error *error) {
    FV_TRY(fv__manifest_load(run_folder, &s->program, &s->bindings, &s->context.plan_options, error));
    s->context.program = s->program;
    s->context.bindings = &s->bindings;
    s->context.poison = (int)hello->poison;
    s->context.run_folder = fv__arena_strdup(&s->bindings.arena, run_folder);
    s->context.written = fv__output_list_new();
    s->worker = fv__worker_new();
    options.memory = hello->memory;
    options.patience = hello->patience;
    FV_TRY(fv__store_open(&options, &s->context.store, error));
    fv__store_on_flush(s->context.store, fv__output_list_sync, s->context.written);
    return FV_OK;
}

void fv__task_server_close(fv_task_server *s) {
    for (int i = 0; i < FV_MOST_SERVED; i++) close_instance(s, s->open[i]);
    if (s->context.store) fv__store_close(s->context.store);
    fv__output_list_free(s->context.written);
    fv__worker_free(s->worker);
    fv__program_free(s->program);
    fv__bindings_release(&s->bindings);
}

void fv__task_server_obey(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a worker left behind would write beside the one of the next run */
    signal(SIGINT, SIG_IGN);          /* Ctrl-C is for the engine, which lets the task end */
}

/* ---------------------------------------------------------------- by pipes */

static fv_status start(fv_task_server *s, const char *run_folder, fv_bytes *message, fv_error *error) {
    fv_worker_hello hello;
    char            name[64], folder[4096], host[40] = "host";
    if (!fv__frame_receive(stdin, message) || message->size != sizeof hello)
        return fv_fail(error, FV_ERROR_USAGE, "this command is started by engines");
    memcpy(&hello, message->data, sizeof hello);
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "%s-%d-%llx", host, (int)getpid(), (unsigned long long)(fv__now() * 1e9));
    snprintf(folder, sizeof folder, "%s/../../store", run_folder);
    return fv__task_server_open(s, run_folder, &hello, (fv_store_options){ .folder = folder, .writer = name, .shared = true },
                                error);
}

static int serve(fv_task_server *s, fv_bytes *message) {
    fv_bytes answer = { 0 };
    bool     going = true;
    while (going && fv__frame_receive(stdin, message)) {
        going = fv__task_server_run(s, message, &answer);
        if (answer.size) fv__frame_send(stdout, answer.data, answer.size);
    }
    fv__bytes_release(&answer);
    return going ? 0 : 1;
}

int fv_task_serve(const char *run_folder) {
    fv_task_server s = { 0 };
    fv_bytes       message = { 0 };
    fv_error       error = { 0 };
    int            code = 2;
    fv__task_server_obey();
    fv_status status = start(&s, run_folder, &message, &error);
    if (status == FV_OK) {
        code = serve(&s, &message);
        status = fv__store_flush(s.context.store, &error);
    }
    if (status != FV_OK) {
        fprintf(stderr, "fovea task: %s\n", error.message);
        code = 2;
    }
    fv__task_server_close(&s);
    fv__bytes_release(&message);
    return code;
}
