/* The jobs of a run and their scripts. */
#include "engines/jobs.h"
#include "base/file.h"
#include "engines/claims.h"
#include "engines/manifest.h"
#include "engines/slurm.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- planning the chain */

enum { SLACK = 64 }; /* MiB that a job asks beyond 5/4 of the bound that its worker keeps */

/* The bound of a worker: what it needs to run `cpus` tasks at once, or what the memory asked for leaves. */
static int64_t worker_memory(const fv_profile *request, int64_t task, int64_t cpus) {
    if (request->memory) return FV_MAX((request->memory - ((int64_t)SLACK << 20)) / 5 * 4, (int64_t)96 << 20);
    int64_t memory = (task * cpus + ((int64_t)64 << 20)) / 3 * 4;
    return FV_MAX((memory + ((int64_t)64 << 20) - 1) >> 26 << 26, (int64_t)256 << 20);
}

int64_t fv_job_memory(const fv_cluster_job *job) { return job->memory + job->memory / 4 + ((int64_t)SLACK << 20); }

/* As many that each lasts the minimum: few tiny tasks are few jobs. */
static int64_t elements_for(const fv_profile *request, const fv_stage_work *stage, int64_t most) {
    double  each = FV_MAX(request->minimum, 1e-3) * (double)request->cpus;
    int64_t wanted = stage->seconds / each >= (double)most ? most : (int64_t)(stage->seconds / each + 0.999);
    int64_t batches = (stage->tasks + fv_claims_batch(stage->tasks) - 1) / fv_claims_batch(stage->tasks);
    return FV_MAX(FV_MIN(FV_MIN(wanted, most), (batches + request->cpus - 1) / request->cpus), 1);
}

static fv_cluster_job *add_job(fv_cluster_job *jobs, int *count, const fv_profile *request, fv_job_role role, int stage,
                               int64_t task_memory) {
    fv_cluster_job *job = &jobs[(*count)++];
    *job = (fv_cluster_job){ .role = role, .stage = stage, .elements = 1, .cpus = request->cpus };
    job->memory = worker_memory(request, task_memory, request->cpus);
    switch (role) {
    case FV_ROLE_ARRAY: snprintf(job->name, sizeof job->name, stage ? "stage-%d" : "items", stage); break;
    case FV_ROLE_MERGE: snprintf(job->name, sizeof job->name, "stage-%d-merge", stage); break;
    case FV_ROLE_PILOT: snprintf(job->name, sizeof job->name, "pilot"); break;
    case FV_ROLE_FINISH: snprintf(job->name, sizeof job->name, "finish"); break;
    case FV_ROLE_AGAIN: snprintf(job->name, sizeof job->name, "again"); break;
    }
    return job;
}

/* Small stages after an array, and its merge, are one single job; those after the last array belong to the last job. */
static void add_arrays(const fv_profile *request, const fv_stage_work *stages, int nstages, bool collection, int64_t most,
                       fv_cluster_job *jobs, int *count) {
    int     waiting = 0; /* last stage of the single job to come */
    int64_t memory = 0;
    for (int k = 0; k < nstages; k++) {
        int64_t elements = elements_for(request, &stages[k], most);
        memory = FV_MAX(memory, stages[k].memory);
        if (elements == 1) {
            waiting = k + 1;
            continue;
        }
        if (waiting) add_job(jobs, count, request, FV_ROLE_MERGE, waiting, memory);
        add_job(jobs, count, request, FV_ROLE_ARRAY, collection ? 0 : k + 1, stages[k].memory)->elements = elements;
        waiting = stages[k].merges && !collection ? k + 1 : 0;
        memory = stages[k].memory;
    }
}

int fv_jobs_plan(const fv_profile *request, const fv_stage_work *stages, int nstages, bool collection, bool pilot,
                 int64_t most_elements, fv_cluster_job *jobs) {
    int     count = 0;
    int64_t memory = 0;
    for (int k = 0; k < nstages; k++) memory = FV_MAX(memory, stages[k].memory);
    if (pilot)
        add_job(jobs, &count, request, FV_ROLE_PILOT, 0, memory)->elements = request->nodes;
    else
        add_arrays(request, stages, nstages, collection, FV_MIN(request->array, most_elements), jobs, &count);
    if (!pilot) add_job(jobs, &count, request, FV_ROLE_FINISH, 0, memory);
    return count;
}

/* ---------------------------------------------------------------- what the run consists of */

static bool merges(const fv_stage *stage) {
    for (int t = 0; t < stage->ntargets; t++)
        if (stage->targets[t].kind != FV_TARGET_STORE) return true;
    return false;
}

/* The sample stands for all items; a larger file is taken to need more in proportion. */
static double largest_over_sample(const fv_bindings *bindings, int64_t sample) {
    double worst = 1;
    for (int l = 0; l < bindings->nlists; l++) {
        fv_file_id own = { 0 }, other = { 0 };
        if (fv_file_identify(bindings->lists[l].paths[sample], &own, NULL) != FV_OK || own.size <= 0) continue;
        for (int64_t i = 0; i < bindings->lists[l].count; i++)
            if (fv_file_identify(bindings->lists[l].paths[i], &other, NULL) == FV_OK)
                worst = FV_MAX(worst, (double)other.size / (double)own.size);
    }
    return worst;
}

static fv_stage_work *work_of(const fv_instance *instance, const fv_bindings *bindings, int *nstages) {
    const fv_plan *plan = instance->plan;
    fv_stage_work *work = fv_calloc((size_t)(plan->nstages + 1) * sizeof *work);
    *nstages = bindings->collection ? 1 : plan->nstages;
    if (bindings->collection)
        work[0] = (fv_stage_work){ .tasks = bindings->nitems,
                                   .memory = (int64_t)((double)plan->memory * largest_over_sample(bindings, instance->item)),
                                   .seconds = plan->work * 1e-9 * (double)bindings->nitems };
    for (int k = 0; k < *nstages && !bindings->collection; k++)
        work[k] = (fv_stage_work){ .tasks = plan->stages[k].serial ? 1 : plan->stages[k].ntasks,
                                   .memory = plan->stages[k].memory,
                                   .seconds = plan->stages[k].work * 1e-9,
                                   .merges = merges(&plan->stages[k]) };
    return work;
}

static fv_status plan_run(const char *run_folder, const fv_profile *request, bool pilot, fv_submission *submission,
                          fv_error *error) {
    fv_context     context = { .poison = -1 };
    fv_program    *program;
    fv_bindings    bindings;
    fv_instance   *instance = NULL;
    fv_diagnostics diagnostics = { 0 };
    fv_status      status = fv_manifest_load(run_folder, &program, &bindings, &context.plan_options, error);
    context.program = program;
    context.bindings = &bindings;
    if (status == FV_OK) status = fv_run_sample(&context, &instance, &diagnostics, error);
    if (status == FV_OK) {
        int            nstages;
        fv_stage_work *work = work_of(instance, &bindings, &nstages);
        submission->jobs = fv_calloc((size_t)(2 * nstages + 2) * sizeof *submission->jobs);
        submission->njobs =
            fv_jobs_plan(request, work, nstages, bindings.collection, pilot, fv_slurm_most_elements(), submission->jobs);
        free(work);
    }
    fv_instance_close(instance);
    fv_diagnostics_release(&diagnostics);
    fv_program_free(program);
    fv_bindings_release(&bindings);
    return status;
}

/* ---------------------------------------------------------------- scripts */

/* A word for the shell, in single quotes where it needs them. */
static void put_word(fv_bytes *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-";
    if (*word && strspn(word, plain) == strlen(word)) {
        fv_bytes_printf(out, "%s", word);
        return;
    }
    fv_bytes_printf(out, "'");
    for (; *word; word++) fv_bytes_printf(out, *word == '\'' ? "'\\''" : "%c", *word);
    fv_bytes_printf(out, "'");
}

static void put_option(fv_bytes *out, const char *name, const char *value) {
    if (!value || !*value) return;
    fv_bytes_printf(out, "#SBATCH --%s=", name);
    put_word(out, value);
    fv_bytes_printf(out, "\n");
}

static void put_number(fv_bytes *out, const char *name, int64_t value, const char *unit) {
    fv_bytes_printf(out, "#SBATCH --%s=%lld%s\n", name, (long long)value, unit);
}

typedef struct script {
    const fv_profile     *request;
    const fv_submission  *submission;
    const fv_cluster_job *job;
    char                 *here, *run, *program; /* absolute */
    bool                  overwrite;
    fv_bytes              text;
} script;

static void put_header(script *s) {
    const fv_profile     *r = s->request;
    const fv_cluster_job *job = s->job;
    bool                  array = job->role == FV_ROLE_ARRAY, small = job->role == FV_ROLE_AGAIN;
    char                 *log = fv_sprintf("%s/slurm/%d/%s%s.log", s->run, s->submission->number, job->name, array ? "-%a" : "");
    char                  range[64];
    fv_bytes_printf(&s->text, "#!/bin/bash\n");
    fv_bytes_printf(&s->text, "#SBATCH --job-name=fovea-%s\n", job->name);
    snprintf(range, sizeof range, r->at_once ? "0-%lld%%%lld" : "0-%lld", (long long)job->elements - 1, (long long)r->at_once);
    if (array) put_option(&s->text, "array", range);
    put_option(&s->text, "chdir", s->here);
    put_option(&s->text, "output", log);
    fv_bytes_printf(&s->text, "#SBATCH --open-mode=append\n#SBATCH --requeue\n");
    put_option(&s->text, "partition", r->partition);
    put_option(&s->text, "account", r->account);
    put_option(&s->text, "qos", r->qos);
    put_option(&s->text, "constraint", r->constraint);
    put_option(&s->text, "reservation", r->reservation);
    put_option(&s->text, "time", small ? "10" : r->time);
    if (job->role == FV_ROLE_PILOT) {
        put_number(&s->text, "nodes", job->elements, "");
        put_number(&s->text, "ntasks-per-node", 1, "");
    }
    put_number(&s->text, "cpus-per-task", small ? 1 : job->cpus, "");
    /* The bound is kept by the workers; the rest is for the shell, the program itself and the system's caches. */
    put_number(&s->text, "mem", small ? 256 : fv_job_memory(job) >> 20, "M");
    if (!small) put_option(&s->text, "gres", r->gres);
    if (r->mail_user && (job->role == FV_ROLE_FINISH || job->role == FV_ROLE_PILOT)) {
        put_option(&s->text, "mail-user", r->mail_user);
        put_option(&s->text, "mail-type", "END,FAIL");
    }
    if (!small && job->role != FV_ROLE_PILOT) put_option(&s->text, "signal", "B:TERM@60");
    fv_bytes_printf(&s->text, "\n");
    free(log);
}

/* Words cut at blanks, each with the same text before. */
static void put_each(fv_bytes *out, const char *before, const char *words) {
    for (const char *p = words ? words : ""; *(p += strspn(p, " ")); p += strcspn(p, " "))
        fv_bytes_printf(out, "%s %.*s\n", before, (int)strcspn(p, " "), p);
}

static void put_settings(script *s) {
    put_each(&s->text, "module load", s->request->modules);
    put_each(&s->text, "export", s->request->environment);
    if (s->request->setup) fv_bytes_printf(&s->text, "%s\n", s->request->setup);
    bool array = s->job->role == FV_ROLE_ARRAY;
    fv_bytes_printf(&s->text, "export FOVEA_LOG=");
    char *log = fv_sprintf("%s/slurm/%d/%s", s->submission->run_folder, s->submission->number, s->job->name);
    put_word(&s->text, log);
    fv_bytes_printf(&s->text, "%s.log\n\n", array ? "-${SLURM_ARRAY_TASK_ID}" : "");
    free(log);
}

/* fovea work RUN with everything but what is special to a kind of job. */
static void put_worker(script *s, const char *options) {
    put_word(&s->text, s->program);
    fv_bytes_printf(&s->text, " work ");
    put_word(&s->text, s->run);
    fv_bytes_printf(&s->text, "%s --workers %lld --memory %lldM", options, (long long)s->job->cpus,
                    (long long)(s->job->memory >> 20));
    if (s->request->level) fv_bytes_printf(&s->text, " --level %lld", (long long)s->request->level);
    if (s->overwrite) fv_bytes_printf(&s->text, " --overwrite");
}

static void put_job(script *s) {
    char options[64] = "";
    switch (s->job->role) {
    case FV_ROLE_ARRAY:
        if (s->job->stage) snprintf(options, sizeof options, " --stage %d", s->job->stage);
        fv_bytes_printf(&s->text, "# One of %lld workers that claim tasks of stage %d until none is left.\n",
                        (long long)s->job->elements, FV_MAX(s->job->stage, 1));
        break;
    case FV_ROLE_MERGE:
        snprintf(options, sizeof options, " --stage %d --end", s->job->stage);
        fv_bytes_printf(&s->text, "# Everything up to the end of stage %d that is still missing: merges, small stages.\n",
                        s->job->stage);
        break;
    case FV_ROLE_FINISH:
        snprintf(options, sizeof options, " --finish");
        fv_bytes_printf(&s->text, "# Whatever is still missing, the outputs and the tables.\n");
        break;
    case FV_ROLE_PILOT:
    case FV_ROLE_AGAIN: return;
    }
    fv_bytes_printf(&s->text,
                    "# A minute before the time limit the worker is told to stop; the job is queued again and goes on.\n"
                    "trap 'kill -TERM $worker; told=1' TERM\n");
    put_worker(s, options);
    fv_bytes_printf(&s->text, " &\nworker=$!\nwait $worker\nstatus=$?\n"
                              "if [ -n \"$told\" ]; then wait $worker; status=$?; fi # the signal ended the first wait\n"
                              "if [ $status = 99 ]; then scontrol requeue \"$SLURM_JOB_ID\"; fi\nexit $status\n");
}

static void put_pilot(script *s) {
    fv_bytes_printf(
        &s->text, "# One allocation whose workers pull the tasks; the last command gathers tables.\nsrun --kill-on-bad-exit=0 ");
    put_worker(s, " --wait");
    fv_bytes_printf(&s->text, "\n");
    put_worker(s, " --finish");
    fv_bytes_printf(&s->text, "\nstatus=$?\nif [ $status = 99 ]; then scontrol requeue \"$SLURM_JOB_ID\"; fi\nexit $status\n");
}

static void put_again(script *s) {
    fv_bytes_printf(&s->text, "# Starts only if the last job failed: submits what is missing once more.\nexec ");
    put_word(&s->text, s->program);
    fv_bytes_printf(&s->text, " submit --again ");
    put_word(&s->text, s->run);
    fv_bytes_printf(&s->text, "\n");
}

static fv_status write_script(script *s, fv_error *error) {
    fv_bytes_clear(&s->text);
    put_header(s);
    put_settings(s);
    if (s->job->role == FV_ROLE_PILOT)
        put_pilot(s);
    else if (s->job->role == FV_ROLE_AGAIN)
        put_again(s);
    else
        put_job(s);
    char     *path = fv_sprintf("%s/%s.sh", s->submission->folder, s->job->name);
    fv_status status = fv_file_write_all(path, s->text.data, s->text.size, false, error);
    if (status == FV_OK) chmod(path, 0755);
    free(path);
    return status;
}

/* The shell script that hands the others to Slurm: readable, and good for doing it by hand. */
static fv_status write_submit(const fv_submission *submission, bool again, fv_error *error) {
    fv_bytes text = { 0 };
    fv_bytes_printf(&text,
                    "#!/bin/sh\n# Hands the jobs of this folder to Slurm. Each starts when the one before is over, however it "
                    "ended.\ncd \"$(dirname \"$0\")\" || exit 1\n"
                    "submit() { # SCRIPT \"NAME STAGE ELEMENTS CPUS MEMORY\" [OPTION]\n"
                    "    id=$(sbatch --parsable $3 \"$1\") || { [ ! -s jobs ] || cut -d' ' -f1 jobs | xargs scancel; exit 1; }\n"
                    "    id=${id%%%%;*}\n    echo \"$id $2\" >> jobs\n}\nrm -f jobs\n");
    for (int i = 0; i < submission->njobs; i++) {
        const fv_cluster_job *job = &submission->jobs[i];
        fv_bytes_printf(&text, "submit %s.sh \"%s %d %lld %lld %lld\"%s\n", job->name, job->name, job->stage,
                        (long long)job->elements, (long long)job->cpus, (long long)job->memory,
                        i ? " --dependency=afterany:$id" : "");
    }
    if (again)
        fv_bytes_printf(&text, "submit again.sh \"again 0 1 1 0\" \"--dependency=afternotok:$id --kill-on-invalid-dep=yes\"\n");
    char     *path = fv_sprintf("%s/submit.sh", submission->folder);
    fv_status status = fv_file_write_all(path, text.data, text.size, false, error);
    if (status == FV_OK) chmod(path, 0755);
    free(path);
    fv_bytes_release(&text);
    return status;
}

/* As a profile: what a later try starts from. */
static fv_status write_request(const fv_submission *submission, const fv_profile *request, fv_error *error) {
    fv_bytes text = { 0 };
    char    *path = fv_sprintf("%s/request.fov", submission->folder);
    fv_profile_format(request, &text);
    fv_status status = fv_file_write_all(path, text.data, text.size, false, error);
    fv_bytes_release(&text);
    free(path);
    return status;
}

/* ---------------------------------------------------------------- submissions */

static int last_number(const char *run_folder) {
    int   number = 0;
    char *folder = fv_sprintf("%s/slurm", run_folder);
    DIR  *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) number = FV_MAX(number, atoi(entry->d_name));
    if (dir) closedir(dir);
    free(folder);
    return number;
}

void fv_submission_release(fv_submission *submission) {
    free(submission->jobs);
    free(submission->folder);
    *submission = (fv_submission){ 0 };
}

static char *own_program(void) {
    char    path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[FV_MAX(n, 0)] = 0;
    return fv_strdup(n > 0 ? path : "fovea");
}

fv_status fv_jobs_write(const char *run_folder, const fv_profile *request, bool pilot, bool overwrite, fv_submission *submission,
                        fv_error *error) {
    *submission = (fv_submission){ .run_folder = run_folder, .number = last_number(run_folder) + 1 };
    submission->folder = fv_sprintf("%s/slurm/%d", run_folder, submission->number);
    FV_TRY(plan_run(run_folder, request, pilot, submission, error));
    FV_TRY(fv_path_make_folders(submission->folder, error));
    script    s = { .request = request,
                    .submission = submission,
                    .overwrite = overwrite,
                    .here = realpath(".", NULL),
                    .run = realpath(run_folder, NULL),
                    .program = own_program() };
    fv_status status = s.here && s.run ? FV_OK : fv_fail(error, FV_ERROR_IO, "cannot find %s", run_folder);
    for (int i = 0; i < submission->njobs && status == FV_OK; i++) {
        s.job = &submission->jobs[i];
        status = write_script(&s, error);
    }
    bool           more = request->level + 1 < FV_STRIKES;
    fv_cluster_job again = { .name = "again", .role = FV_ROLE_AGAIN, .elements = 1, .cpus = 1 };
    s.job = &again;
    if (status == FV_OK && more) status = write_script(&s, error);
    if (status == FV_OK) status = write_submit(submission, more, error);
    if (status == FV_OK) status = write_request(submission, request, error);
    fv_bytes_release(&s.text);
    free(s.here);
    free(s.run);
    free(s.program);
    return status;
}

fv_status fv_jobs_submit(fv_submission *submission, fv_error *error) {
    char     *path = fv_sprintf("%s/submit.sh", submission->folder);
    char     *arguments[] = { "sh", path, NULL };
    fv_bytes  output = { 0 };
    fv_error  cause = { 0 };
    fv_status status = fv_slurm_call(arguments, &output, &cause);
    free(path);
    fv_bytes_release(&output);
    if (status != FV_OK) return fv_fail(error, status, "the jobs could not be submitted: %s", cause.message);
    const char *run_folder = submission->run_folder;
    int         number = submission->number;
    fv_submission_release(submission);
    return fv_jobs_read(run_folder, number, submission, error);
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
    submission->jobs = fv_realloc(submission->jobs, (size_t)(submission->njobs + 1) * sizeof *submission->jobs);
    submission->jobs[submission->njobs++] = job;
}

fv_status fv_jobs_read(const char *run_folder, int number, fv_submission *submission, fv_error *error) {
    fv_bytes text = { 0 };
    *submission = (fv_submission){ .run_folder = run_folder, .number = number ? number : last_number(run_folder) };
    submission->folder = fv_sprintf("%s/slurm/%d", run_folder, submission->number);
    char *path = fv_sprintf("%s/jobs", submission->folder);
    if (fv_file_read_all(path, 1 << 20, &text, NULL) != FV_OK) {
        free(path);
        return fv_fail(error, FV_ERROR_INPUT, "%s was not submitted to Slurm", run_folder);
    }
    free(path);
    for (char *line = (char *)text.data, *end; line && *line; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = 0;
        read_job(submission, line);
    }
    fv_bytes_release(&text);
    return FV_OK;
}

fv_status fv_jobs_request(const char *run_folder, fv_profile *request, fv_error *error) {
    char     *path = fv_sprintf("%s/slurm/%d/request.fov", run_folder, last_number(run_folder));
    fv_bytes  text = { 0 };
    fv_status status = fv_file_read_all(path, 1 << 20, &text, error);
    if (status == FV_OK) status = fv_profile_read(request, path, (char *)text.data, error);
    fv_bytes_release(&text);
    free(path);
    return status;
}
