/* Engine threads: workers of this process share everything. */
#include "run/engine.h"
#include "run/worker_threads.h"

static fv_offer ask(void *context, fv_job *job) { return fv__job_next(context, 0, false, job); }
static uint64_t changes(void *context) { return fv__scheduler_changes(context); }
static void     wait_for_change(void *context, uint64_t seen) { fv__scheduler_wait(context, seen, 0.2); }

static fv_status run_job(void *context, fv_job *job, fv_worker *worker, int number, fv_error *error) {
    (void)number;
    return fv__job_run(context, job, worker, error);
}

static void done(void *context, fv_job *job, int number, fv_status status, const fv_error *error) {
    fv__job_done(context, job, number, status, error);
}

static fv_status run(fv_scheduler *scheduler, const fv_run_settings *settings, const char *run_folder, fv_error *error) {
    (void)run_folder;
    fv_thread_work     work = { .ask = ask,
                                .changes = changes,
                                .wait = wait_for_change,
                                .run = run_job,
                                .done = done,
                                .context = scheduler,
                                .allowance = settings->allowance };
    fv_worker_threads *threads;
    if (settings->options.transient && fv__scheduler_single(scheduler)) { /* starting a thread takes longer than many such runs */
        fv__worker_threads_here(&work);
        return fv__scheduler_status(scheduler, error);
    }
    FV_TRY(fv__worker_threads_start(&work, settings->options.workers, &threads, error));
    fv__worker_threads_join(threads);
    return fv__scheduler_status(scheduler, error);
}

const fv_engine fv_engine_threads = { .name = "threads", .brief = "all cores of this machine, one process", .run = run };
