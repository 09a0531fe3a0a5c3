/* The jobs of a run: planning the chain, submitting it, finding it again. */
#include "cluster/jobs.h"
#include "base/file.h"
#include "cluster/frozen_run.h"
#include "cluster/job_scripts.h"
#include "cluster/slurm.h"
#include "run/claims.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- planning the chain */

/* The bound of a worker: what it needs to run `cpus` tasks at once, or what the memory asked for leaves. */
static int64_t worker_memory(const fv_profile *profile, const fv_sharers *sharers, int64_t task, int64_t cpus) {
    return profile->memory ? fv__budget_inside(profile->memory) : fv__budget_bound(sharers, task, cpus);
}

int64_t fv__job_memory(const fv_cluster_job *job) { return fv__budget_ask(job->memory); }

/* Slurm takes a plain number as MiB, which here is one of bytes: nobody should get something else than was meant. */
static fv_status check_memory(const fv_profile *profile, const fv_sharers *sharers, int64_t task_memory, fv_error *error) {
    int64_t least = fv__budget_least_job(sharers, task_memory);
    if (!profile->memory || profile->memory >= least) return FV_OK;
    return fv_fail(error, FV_ERROR_USAGE, "%lld MiB of memory were asked for, but a job of this run needs at least %lldM",
                   (long long)(profile->memory >> 20), (long long)((least + (1 << 20) - 1) >> 20));
}

/* As many that each lasts the minimum: few tiny tasks are few jobs. */
static int64_t elements_for(const fv_profile *profile, const fv_stage_work *stage, int64_t most) {
    double  each = FV_MAX(profile->minimum, 1e-9) * (double)profile->cpus;
    int64_t wanted = stage->seconds / each >= (double)most ? most : (int64_t)(stage->seconds / each + 0.999);
    int64_t batches = (stage->tasks + fv__claims_batch(stage->tasks) - 1) / fv__claims_batch(stage->tasks);
    return FV_MAX(FV_MIN(FV_MIN(wanted, most), (batches + profile->cpus - 1) / profile->cpus), 1);
}

/* A job alone may have to do all that others should have done. */
static fv_cluster_job *add_job(fv_cluster_job *jobs, int *count, const fv_profile *profile, fv_job_role role, int stage,
                               const fv_sharers *sharers, int64_t task_memory) {
    fv_cluster_job *job = &jobs[(*count)++];
    *job = (fv_cluster_job){ .role = role, .stage = stage, .elements = 1, .cpus = profile->cpus };
    job->seconds = profile->work / (double)profile->cpus;
    job->memory = worker_memory(profile, sharers, task_memory, profile->cpus);
    switch (role) {
    case FV_ROLE_ARRAY: snprintf(job->name, sizeof job->name, stage ? "stage-%d" : "items", stage); break;
    case FV_ROLE_MERGE: snprintf(job->name, sizeof job->name, "stage-%d-merge", stage); break;
    case FV_ROLE_PILOT: snprintf(job->name, sizeof job->name, "pilot"); break;
    case FV_ROLE_FINISH: snprintf(job->name, sizeof job->name, "finish"); break;
    case FV_ROLE_AGENTS:
    case FV_ROLE_AGENT_ARRAY: snprintf(job->name, sizeof job->name, "agents"); break;
    case FV_ROLE_AGAIN: snprintf(job->name, sizeof job->name, "again"); break;
    }
    return job;
}

/* Small stages after an array, and its merge, are one single job; those after the last array belong to the last job. */
static void add_arrays(const fv_profile *profile, const fv_sharers *sharers, const fv_stage_work *stages, int nstages,
                       bool collection, int64_t most, fv_cluster_job *jobs, int *count) {
    int     waiting = 0; /* last stage of the single job to come */
    int64_t memory = 0;
    for (int k = 0; k < nstages; k++) {
        int64_t elements = elements_for(profile, &stages[k], most);
        memory = FV_MAX(memory, stages[k].memory);
        if (elements == 1) {
            waiting = k + 1;
            continue;
        }
        if (waiting) add_job(jobs, count, profile, FV_ROLE_MERGE, waiting, sharers, memory);
        fv_cluster_job *array = add_job(jobs, count, profile, FV_ROLE_ARRAY, collection ? 0 : k + 1, sharers, stages[k].memory);
        array->elements = elements;
        array->seconds /= (double)elements;
        waiting = stages[k].merges && !collection ? k + 1 : 0;
        memory = stages[k].memory;
    }
}

int fv__jobs_plan(const fv_profile *profile, const fv_sharers *sharers, const fv_stage_work *stages, int nstages, bool collection,
                  bool pilot, int64_t most_elements, fv_cluster_job *jobs) {
    int     count = 0;
    int64_t memory = 0;
    for (int k = 0; k < nstages; k++) memory = FV_MAX(memory, stages[k].memory);
    if (pilot)
        add_job(jobs, &count, profile, FV_ROLE_PILOT, 0, sharers, memory)->elements = profile->nodes;
    else
        add_arrays(profile, sharers, stages, nstages, collection, FV_MIN(profile->array, most_elements), jobs, &count);
    if (!pilot) add_job(jobs, &count, profile, FV_ROLE_FINISH, 0, sharers, memory);
    return count;
}

/* ---------------------------------------------------------------- what the run consists of */

static bool merges(const fv_stage *stage) {
    for (int t = 0; t < stage->ntargets; t++)
        if (stage->targets[t].kind != FV_TARGET_STORE) return true;
    return false;
}

static fv_stage_work *work_of(const fv_instance *instance, const fv_outlook *outlook, const fv_bindings *bindings, int *nstages) {
    const fv_plan *plan = instance->plan;
    fv_stage_work *work = fv__calloc((size_t)(plan->nstages + 1) * sizeof *work);
    *nstages = bindings->collection ? 1 : plan->nstages;
    if (bindings->collection)
        work[0] = (fv_stage_work){ .tasks = bindings->nunits, .memory = outlook->most, .seconds = outlook->work * 1e-9 };
    for (int k = 0; k < *nstages && !bindings->collection; k++)
        work[k] = (fv_stage_work){ .tasks = plan->stages[k].serial ? 1 : plan->stages[k].ntasks,
                                   .memory = plan->stages[k].memory,
                                   .seconds = plan->stages[k].work * 1e-9,
                                   .merges = merges(&plan->stages[k]) };
    return work;
}

/* What was measured is believed rather than the plan's guess; how it is spread over the stages is the plan's. */
static void scale(fv_stage_work *work, int nstages, double seconds) {
    double all = 0;
    for (int k = 0; k < nstages; k++) all += work[k].seconds;
    for (int k = 0; k < nstages && seconds > 0 && all > 0; k++) work[k].seconds *= seconds / all;
}

static fv_status plan_jobs(const fv_frozen_run *run, const fv_profile *profile, bool pilot, fv_submission *submission,
                           fv_error *error) {
    fv_sharers sharers = { .driver = fv__budget_driver(&run->bindings) };
    int        nstages;
    FV_TRY(check_memory(profile, &sharers, run->outlook.memory, error));
    fv_stage_work *work = work_of(run->sample, &run->outlook, &run->bindings, &nstages);
    scale(work, nstages, profile->work);
    submission->jobs = fv__calloc((size_t)(2 * nstages + 2) * sizeof *submission->jobs);
    submission->njobs = fv__jobs_plan(profile, &sharers, work, nstages, run->bindings.collection, pilot,
                                      fv__slurm_most_elements(), submission->jobs);
    free(work);
    return FV_OK;
}

static fv_status plan_run(const char *run_folder, const fv_profile *profile, bool pilot, fv_submission *submission,
                          fv_error *error) {
    fv_frozen_run run;
    fv_status     status = fv__frozen_run_open(run_folder, &run, error);
    if (status == FV_OK) status = plan_jobs(&run, profile, pilot, submission, error);
    fv__frozen_run_close(&run);
    return status;
}

/* ---------------------------------------------------------------- submissions */

static int last_number(const char *run_folder) {
    int   number = 0;
    char *folder = fv__sprintf("%s/slurm", run_folder);
    DIR  *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) number = FV_MAX(number, atoi(entry->d_name));
    if (dir) closedir(dir);
    free(folder);
    return number;
}

void fv__submission_release(fv_submission *submission) {
    free(submission->jobs);
    free(submission->folder);
    *submission = (fv_submission){ 0 };
}

fv_status fv__jobs_write(const char *run_folder, const fv_profile *profile, bool pilot, fv_submission *submission,
                         fv_error *error) {
    *submission = (fv_submission){ .run_folder = run_folder, .number = last_number(run_folder) + 1 };
    submission->folder = fv__sprintf("%s/slurm/%d", run_folder, submission->number);
    FV_TRY(plan_run(run_folder, profile, pilot, submission, error));
    FV_TRY(fv__path_make_folders(submission->folder, error));
    return fv__job_scripts_write(submission, profile, error);
}

fv_status fv__jobs_submit(fv_submission *submission, fv_error *error) {
    char     *path = fv__sprintf("%s/submit.sh", submission->folder);
    char     *arguments[] = { "sh", path, NULL };
    fv_bytes  output = { 0 };
    fv_error  cause = { 0 };
    fv_status status = fv__slurm_call(arguments, &output, &cause);
    free(path);
    fv__bytes_release(&output);
    if (status != FV_OK) return fv_fail(error, status, "the jobs could not be submitted: %s", cause.message);
    const char *run_folder = submission->run_folder;
    int         number = submission->number;
    fv__submission_release(submission);
    return fv__jobs_read(run_folder, number, submission, error);
}

static void read_job(fv_submission *submission, const char *line) {
    fv_cluster_job job = { 0 };
    long long      id, elements, cpus, memory;
    if (sscanf(line, "%lld %31s %d %lld %lld %lld", &id, job.name, &job.stage, &elements, &cpus, &memory) != 6) return;
    job.id = id;
    job.elements = elements;
    job.cpus = cpus;
    job.memory = memory;
    job.role = !strcmp(job.name, "finish")  ? FV_ROLE_FINISH
               : !strcmp(job.name, "again") ? FV_ROLE_AGAIN
               : !strcmp(job.name, "pilot") ? FV_ROLE_PILOT
               : strstr(job.name, "merge")  ? FV_ROLE_MERGE
                                            : FV_ROLE_ARRAY;
    submission->jobs = fv__realloc(submission->jobs, (size_t)(submission->njobs + 1) * sizeof *submission->jobs);
    submission->jobs[submission->njobs++] = job;
}

/* The last try of which a job was submitted: the next one may be on its way. */
static int last_submitted(const char *run_folder) {
    int number = last_number(run_folder);
    for (bool there = false; number > 1; number--) {
        char *path = fv__sprintf("%s/slurm/%d/jobs", run_folder, number);
        there = fv__file_exists(path);
        free(path);
        if (there) break;
    }
    return number;
}

fv_status fv__jobs_read(const char *run_folder, int number, fv_submission *submission, fv_error *error) {
    fv_bytes text = { 0 };
    *submission = (fv_submission){ .run_folder = run_folder, .number = number ? number : last_submitted(run_folder) };
    submission->folder = fv__sprintf("%s/slurm/%d", run_folder, submission->number);
    char *path = fv__sprintf("%s/jobs", submission->folder);
    if (fv__file_read_all(path, 1 << 20, &text, NULL) != FV_OK) {
        free(path);
        return fv_fail(error, FV_ERROR_INPUT, "%s was not submitted to Slurm", run_folder);
    }
    free(path);
    for (char *line = (char *)text.data, *end; line && *line; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = 0;
        read_job(submission, line);
    }
    fv__bytes_release(&text);
    return FV_OK;
}

fv_status fv__jobs_request(const char *run_folder, fv_profile *profile, fv_error *error) {
    char     *path = fv__sprintf("%s/slurm/%d/request.fov", run_folder, last_submitted(run_folder));
    fv_bytes  text = { 0 };
    fv_status status = fv__file_read_all(path, 1 << 20, &text, error);
    if (status == FV_OK) status = fv__profile_read(profile, path, (char *)text.data, error);
    fv__bytes_release(&text);
    free(path);
    return status;
}
