/* The public face of runs on a cluster: submitting, finding, cancelling. */
#include "api/cluster_request.h"
#include "api/latest_run.h"
#include "base/file.h"
#include "cluster/jobs.h"
#include "cluster/slurm.h"
#include "run/claims.h"
#include "store/mirror.h"
#include "store/store_place.h"
#include <fovea/cluster.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---------------------------------------------------------------- submitting */

static void take_text(const char **field, const char *value) {
    if (value) *field = value;
}
static void take_number(int64_t *field, int64_t value) {
    if (value > 0) *field = value;
}

fv_status fv__cluster_request(const fv_cluster_options *o, fv_profile *r, fv_error *error) {
    FV_TRY(fv__profile_load(r, o->profile, error));
    take_text(&r->partition, o->partition);
    take_text(&r->account, o->account);
    take_text(&r->qos, o->qos);
    take_text(&r->constraint, o->constraint);
    take_text(&r->reservation, o->reservation);
    take_text(&r->time, o->time);
    take_text(&r->gres, o->gres);
    if (o->device && !r->gres) r->gres = "gpu:1";
    take_text(&r->mail_user, o->mail_user);
    take_text(&r->order, o->order);
    take_text(&r->mpi, o->mpi);
    take_number(&r->cpus, o->cpus);
    take_number(&r->memory, o->memory);
    take_number(&r->nodes, o->nodes);
    take_number(&r->array, o->array);
    take_number(&r->at_once, o->at_once);
    if (o->minimum > 0) r->minimum = o->minimum;
    if (o->work > 0) r->work = o->work;
    if (o->overwrite) r->overwrite = 1;
    return FV_OK;
}

static fv_status make_request(const fv_cluster_options *o, fv_profile *r, fv_error *error) {
    const char *of_pilots = o->nodes > 0 ? "--nodes" : o->mpi ? "--mpi" : o->order ? "--order" : NULL;
    *r = fv__profile_default();
    if (of_pilots && !o->pilot)
        return fv_fail(error, FV_ERROR_USAGE, "%s is for one job: add --one-job; job arrays have --array-size and --at-once",
                       of_pilots);
    return fv__cluster_request(o, r, error);
}

static void describe(const fv_submission *s, double work, bool dry, fv_bytes *out) {
    if (work > 0) fv__bytes_printf(out, "all of it should take about %.2g s of one core, by what a few tasks took\n", work);
    for (int i = 0; i < s->njobs; i++) {
        const fv_cluster_job *job = &s->jobs[i];
        if (job->role == FV_ROLE_AGAIN) continue;
        fv__bytes_printf(out, "%-16s ", job->name);
        if (!dry) fv__bytes_printf(out, "job %lld, ", (long long)job->id);
        if (job->role == FV_ROLE_ARRAY) fv__bytes_printf(out, "%lld workers of ", (long long)job->elements);
        if (job->role == FV_ROLE_PILOT) fv__bytes_printf(out, "%lld nodes of ", (long long)job->elements);
        fv__bytes_printf(out, "%lld cpu%s, %lld MiB\n", (long long)job->cpus, job->cpus == 1 ? "" : "s",
                         (long long)(fv__job_memory(job) >> 20));
    }
    fv__bytes_printf(out, dry ? "scripts are in %s; submit.sh there submits them\n" : "scripts and logs are in %s\n", s->folder);
    fv__bytes_append(out, "", 1);
}

static fv_status write_and_submit(const char *run_folder, const fv_profile *request, bool pilot, bool dry, char **text,
                                  fv_error *error) {
    fv_submission submission;
    fv_bytes      out = { 0 };
    fv_status     status = fv__jobs_write(run_folder, request, pilot, &submission, error);
    if (status == FV_OK && !dry) status = fv__jobs_submit(&submission, error);
    if (status == FV_OK) describe(&submission, request->work, dry, &out);
    *text = (char *)out.data;
    fv__submission_release(&submission);
    return status;
}

/* Whether the log of a job has a word about memory: not every site's accounting says why a job was killed. */
static bool log_tells(const fv_submission *submission, const char *name, int element) {
    static const char *const words[] = { "oom-kill", "oom_kill", "memory limit", "at least --memory" };
    char                    *path = element < 0 ? fv__sprintf("%s/%s.log", submission->folder, name)
                                                : fv__sprintf("%s/%s-%d.log", submission->folder, name, element);
    fv_bytes                 text = { 0 };
    bool                     tells = false;
    if (fv__file_exists(path) && fv__file_read_all(path, (size_t)64 << 20, &text, NULL) == FV_OK)
        for (int i = 0; i < FV_COUNT(words); i++) tells = tells || strstr((char *)text.data, words[i]);
    fv__bytes_release(&text);
    free(path);
    return tells;
}

static bool lacked(const fv_slurm_job *job, const fv_submission *submission) {
    if (job->state != FV_SLURM_FAILED) return false;
    if (!strcmp(job->word, "OUT_OF_MEMORY")) return true;
    for (int i = 0; i < submission->njobs; i++) {
        const fv_cluster_job *own = &submission->jobs[i];
        if (own->id == job->id && job->memory_used > fv__job_memory(own)) return true;
        if (own->id == job->id && log_tells(submission, own->name, job->element)) return true;
    }
    return false;
}

/* Jobs of the last submission that are not over; 0 also if nothing can be found out. */
static int live_jobs(const char *run_folder, bool *lacked_memory) {
    fv_submission last;
    fv_slurm_jobs jobs = { 0 };
    fv_error      error = { 0 };
    int           live = 0;
    if (fv__jobs_read(run_folder, 0, &last, &error) == FV_OK) {
        int64_t *ids = fv__calloc((size_t)(last.njobs + 1) * sizeof *ids);
        int      n = 0;
        for (int i = 0; i < last.njobs; i++)
            if (last.jobs[i].role != FV_ROLE_AGAIN) ids[n++] = last.jobs[i].id; /* which may be who asks */
        fv__slurm_look(ids, n, &jobs, &error);
        free(ids);
    }
    for (int i = 0; i < jobs.count; i++) {
        live += jobs.items[i].state == FV_SLURM_PENDING || jobs.items[i].state == FV_SLURM_RUNNING;
        if (lacked_memory && lacked(&jobs.items[i], &last)) *lacked_memory = true;
    }
    fv__slurm_jobs_release(&jobs);
    fv__submission_release(&last);
    return live;
}

/* Jobs find a run by its folder, FOLDER/runs/HASH. */
static fv_status check_place(const char *run_folder, fv_error *error) {
    char     *folder = fv__sprintf("%s/../..", run_folder), *address = fv__mirror_address(folder);
    fv_status status = FV_OK;
    if (address) status = fv_fail(error, FV_ERROR_USAGE, "--store %s: jobs of Slurm need a folder that all nodes see", address);
    free(address);
    free(folder);
    return status;
}

fv_status fv_cluster_submit(const char *run_folder, const fv_cluster_options *o, char **text, fv_error *error) {
    fv_profile request;
    *text = NULL;
    FV_TRY(check_place(run_folder, error));
    fv_status status = make_request(o, &request, error);
    if (status == FV_OK && !o->dry) status = fv__slurm_there(error);
    if (status == FV_OK && !o->dry) {
        int live = live_jobs(run_folder, NULL);
        if (live)
            status = fv_fail(error, FV_ERROR_BUSY,
                             "%d job%s of this run %s in the queue already; `fovea status` shows them, `fovea "
                             "cancel` ends them",
                             live, live == 1 ? "" : "s", live == 1 ? "is" : "are");
    }
    if (status == FV_OK && !o->dry) status = fv_run_renew(run_folder, error);
    if (status == FV_OK) status = write_and_submit(run_folder, &request, o->pilot, o->dry, text, error);
    fv__profile_release(&request);
    return status;
}

static bool was_pilot(const char *run_folder) {
    fv_submission last;
    bool          pilot = false;
    if (fv__jobs_read(run_folder, 0, &last, NULL) == FV_OK)
        for (int i = 0; i < last.njobs; i++) pilot = pilot || last.jobs[i].role == FV_ROLE_PILOT;
    fv__submission_release(&last);
    return pilot;
}

static int64_t largest_memory(const char *run_folder) {
    fv_submission last;
    int64_t       most = 0;
    if (fv__jobs_read(run_folder, 0, &last, NULL) == FV_OK)
        for (int i = 0; i < last.njobs; i++) most = FV_MAX(most, fv__job_memory(&last.jobs[i]));
    fv__submission_release(&last);
    return most;
}

fv_status fv_cluster_submit_again(const char *run_folder, char **text, fv_error *error) {
    fv_profile request = fv__profile_default();
    bool       lacked = false;
    *text = NULL;
    if (fv__claims_are_finished(run_folder)) {
        *text = fv__strdup("it was brought to its end; what failed would fail again\n");
        return FV_OK;
    }
    fv_status status = fv__jobs_request(run_folder, &request, error);
    if (status == FV_OK) {
        live_jobs(run_folder, &lacked);
        if (lacked) request.memory = 2 * largest_memory(run_folder);
        request.level++;
        status = write_and_submit(run_folder, &request, was_pilot(run_folder), false, text, error);
    }
    fv__profile_release(&request);
    return status;
}

/* ---------------------------------------------------------------- finding */

/* Scripts that were only written, or that Slurm refused, do not count. */
static double submitted(const char *folder) {
    struct stat   s;
    fv_submission last;
    bool          there = fv__jobs_read(folder, 0, &last, NULL) == FV_OK;
    char         *path = fv__sprintf("%s/jobs", last.folder);
    there = there && !stat(path, &s);
    free(path);
    fv__submission_release(&last);
    return there ? (double)s.st_mtim.tv_sec + 1e-9 * (double)s.st_mtim.tv_nsec : 0;
}

fv_status fv_cluster_find(const char *store, const char *name, char **run_folder, fv_error *error) {
    char *folder = fv__store_place(store, false), *runs = fv__sprintf("%s/runs", folder);
    free(folder);
    fv_status status = fv__find_run(runs, name, submitted, run_folder, error);
    if (status == FV_OK && !*run_folder)
        status = name ? fv_fail(error, FV_ERROR_USAGE, "no run in %s that was submitted begins with %s", runs, name)
                      : fv_fail(error, FV_ERROR_USAGE, "no run in %s was submitted; `fovea submit FILE` does that", runs);
    free(runs);
    return status;
}

static fv_status cancel_jobs(const fv_submission *last, fv_error *error) {
    int64_t *ids = fv__calloc((size_t)(last->njobs + 1) * sizeof *ids);
    for (int i = 0; i < last->njobs; i++)
        ids[i] = last->jobs[last->njobs - 1 - i].id; /* the last first: none of them starts meanwhile */
    fv_status status = fv__slurm_cancel(ids, last->njobs, error);
    free(ids);
    return status;
}

/* Until there are no more than those that were cancelled: the job `again` may be submitting others just now. */
fv_status fv_cluster_cancel(const char *run_folder, fv_error *error) {
    for (int number = -1, njobs = -1;;) {
        fv_submission last;
        fv_status     status = fv__jobs_read(run_folder, 0, &last, error);
        bool          same = last.number == number && last.njobs == njobs;
        number = last.number;
        njobs = last.njobs;
        if (status == FV_OK && !same) status = cancel_jobs(&last, error);
        fv__submission_release(&last);
        if (status != FV_OK || same) return status;
    }
}
