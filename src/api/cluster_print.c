/* Where a submitted run is, for people and programs. */
#include "base/file.h"
#include "cluster/overview.h"
#include <cjson/cJSON.h>
#include <fovea/cluster.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MIB = 20, COLUMNS = 60 };

/* ---------------------------------------------------------------- words */

static void size_text(int64_t bytes, char text[24]) {
    if (bytes <= 0)
        snprintf(text, 24, "?");
    else if (bytes >= (int64_t)10 << 30)
        snprintf(text, 24, "%.0f GiB", (double)bytes / (1 << 30));
    else
        snprintf(text, 24, "%lld MiB", (long long)((bytes + (1 << MIB) - 1) >> MIB));
}

static void duration_text(double seconds, char text[24]) {
    long s = (long)(seconds + 0.5);
    if (s < 100)
        snprintf(text, 24, "%ld s", s);
    else if (s < 6000)
        snprintf(text, 24, "%ld:%02ld min", s / 60, s % 60);
    else
        snprintf(text, 24, "%ld:%02ld h", s / 3600, s / 60 % 60);
}

static void clock_text(double when, char text[24]) {
    struct tm t;
    time_t    seconds = (time_t)when;
    strftime(text, 24, "%F %T", localtime_r(&seconds, &t));
}

/* What would have been enough: a fifth more memory, half more time. */
typedef struct fitting {
    int64_t memory, cpus;
    double  seconds;
} fitting;

static fitting fit(const fv_overview *o) {
    fitting f = { 0 };
    double  cpu = 0, core = 0;
    for (int i = 0; i < o->njobs; i++) {
        const fv_overview_job *j = &o->jobs[i];
        f.memory = FV_MAX(f.memory, j->memory_used + j->memory_used / 5);
        f.seconds = FV_MAX(f.seconds, j->elapsed * 1.5);
        cpu += j->cpu_seconds * (double)j->job.cpus;
        core += j->core_seconds;
    }
    f.memory =
        (FV_MAX(f.memory, o->least) + ((int64_t)64 << MIB) - 1) >> 26 << 26; /* accounting may know nothing of short jobs */
    f.seconds = FV_MAX((double)(((int64_t)f.seconds + 59) / 60 * 60), 60);
    f.cpus = core > 0 ? FV_MAX((int64_t)(cpu / core + 0.5), 1) : 1;
    return f;
}

/* ---------------------------------------------------------------- text */

static void put_count(fv_bytes *out, bool *any, int64_t count, const char *word) {
    if (!count) return;
    fv__bytes_printf(out, "%s%lld %s", *any ? ", " : "", (long long)count, word);
    *any = true;
}

static void put_job(fv_bytes *out, const fv_overview_job *j) {
    bool any = false;
    char failed[48];
    if (j->job.role == FV_ROLE_AGAIN && !j->running && !j->done) return; /* it waits for a failure that did not come */
    fv__bytes_printf(out, "  %-16s job %-8lld ", j->job.name, (long long)j->job.id);
    put_count(out, &any, j->pending, "pending");
    if (j->pending && *j->reason) fv__bytes_printf(out, " (%s)", j->reason);
    put_count(out, &any, j->running, "running");
    put_count(out, &any, j->done, "done");
    snprintf(failed, sizeof failed, "failed (%s)", j->word);
    put_count(out, &any, j->failed, failed);
    put_count(out, &any, j->requeued, "times queued again");
    fv__bytes_printf(out, any ? "\n" : j->gone ? "has left the queue\n" : "just submitted\n");
}

static void put_stage(fv_bytes *out, const fv_overview *o, int k) {
    const fv_overview_stage *s = &o->stages[k];
    bool                     any = true;
    if (o->collection)
        fv__bytes_printf(out, "  items    ");
    else
        fv__bytes_printf(out, "  stage %-2d ", k + 1);
    fv__bytes_printf(out, "%lld of %lld done", (long long)s->done, (long long)s->tasks);
    put_count(out, &any, s->running, "running");
    put_count(out, &any, s->failed, "failed");
    put_count(out, &any, s->struck, "that a worker died on");
    fv__bytes_printf(out, "\n");
}

static void put_used(fv_bytes *out, const fv_overview *o) {
    fv__bytes_printf(out, "asked and used\n  %-16s %4s %7s %10s %10s %10s %10s\n", "", "cpus", "cpu", "memory", "used", "longest",
                     "waited");
    for (int i = 0; i < o->njobs; i++) {
        const fv_overview_job *j = &o->jobs[i];
        char                   asked[24], used[24], elapsed[24], waited[24], cpu[24] = "?";
        if ((!j->done && !j->failed) || j->job.role == FV_ROLE_AGAIN) continue;
        size_text(j->memory_asked, asked);
        size_text(j->memory_used, used);
        duration_text(j->elapsed, elapsed);
        duration_text(j->waited, waited);
        if (j->core_seconds >= 1) snprintf(cpu, sizeof cpu, "%.0f %%", 100 * j->cpu_seconds / j->core_seconds);
        fv__bytes_printf(out, "  %-16s %4lld %7s %10s %10s %10s %10s\n", j->job.name, (long long)j->job.cpus, cpu, asked, used,
                         elapsed, waited);
    }
}

static void put_busy(fv_bytes *out, const fv_overview *o) {
    static const char *const bars[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    double                   most = 0, all = 0;
    char                     from[24], width[24];
    if (o->to <= o->from) return;
    for (int b = 0; b < FV_BUSY; b++) {
        most = FV_MAX(most, o->busy[b]);
        all += o->busy[b];
    }
    clock_text(o->from, from);
    duration_text(o->to - o->from, width);
    fv__bytes_printf(out, "workers busy from %s, %s, %.1f on average, %.1f at most\n  ", from, width, all / FV_BUSY, most);
    for (int b = 0; b < FV_BUSY; b++) fv__bytes_printf(out, "%s", bars[most > 0 ? (int)(o->busy[b] / most * 8 + 0.5) : 0]);
    fv__bytes_printf(out, "\n");
}

static void put_end(fv_bytes *out, const fv_overview *o) {
    double  read = 0, compute = 0, write = 0;
    fitting f = fit(o);
    for (int k = 0; k < o->nstages; k++) {
        read += o->stages[k].read;
        compute += o->stages[k].compute;
        write += o->stages[k].write;
    }
    put_used(out, o);
    fv__bytes_printf(out, "time of all workers: read %.2f s, compute %.2f s, write %.2f s\n", read, compute, write);
    put_busy(out, o);
    fv__bytes_printf(out, "would have fitted: --mem %lldM --cpus-per-task %lld --time %ld:%02ld:00\n",
                     (long long)(f.memory >> MIB), (long long)f.cpus, (long)f.seconds / 3600, (long)f.seconds / 60 % 60);
    if (!o->whole)
        fv__bytes_printf(out, "it is not complete: `fovea logs --failed` tells why, `fovea submit` does what is missing\n");
}

static char *as_text(const char *run_folder, const fv_overview *o) {
    fv_bytes out = { 0 };
    fv__bytes_printf(&out, "%s: %s", run_folder, o->whole && o->over ? "done" : o->over ? "over, not complete" : "going on");
    fv__bytes_printf(&out, o->tries > 1 ? ", submitted %d times\njobs\n" : "\njobs\n", o->tries);
    for (int i = 0; i < o->njobs; i++) put_job(&out, &o->jobs[i]);
    fv__bytes_printf(&out, "tasks\n");
    for (int k = 0; k < o->nstages; k++) put_stage(&out, o, k);
    if (o->over) put_end(&out, o);
    fv__bytes_append(&out, "", 1);
    return (char *)out.data;
}

/* ---------------------------------------------------------------- JSON */

static void number(cJSON *object, const char *name, double value) { cJSON_AddNumberToObject(object, name, value); }

static cJSON *job_json(const fv_overview_job *j) {
    cJSON *job = cJSON_CreateObject();
    cJSON_AddStringToObject(job, "name", j->job.name);
    number(job, "id", (double)j->job.id);
    number(job, "elements", (double)j->job.elements);
    number(job, "pending", j->pending);
    number(job, "running", j->running);
    number(job, "done", j->done);
    number(job, "failed", j->failed);
    number(job, "requeued", j->requeued);
    cJSON_AddStringToObject(job, "state", j->word);
    cJSON_AddStringToObject(job, "reason", j->reason);
    number(job, "cpus", (double)j->job.cpus);
    number(job, "cpu_efficiency", j->core_seconds > 0 ? j->cpu_seconds / j->core_seconds : 0);
    number(job, "memory_asked", (double)j->memory_asked);
    number(job, "memory_used", (double)j->memory_used);
    number(job, "elapsed", j->elapsed);
    number(job, "waited", j->waited);
    return job;
}

static cJSON *stage_json(const fv_overview_stage *s) {
    cJSON *stage = cJSON_CreateObject();
    number(stage, "tasks", (double)s->tasks);
    number(stage, "done", (double)s->done);
    number(stage, "running", (double)s->running);
    number(stage, "failed", (double)s->failed);
    number(stage, "struck", (double)s->struck);
    number(stage, "read", s->read);
    number(stage, "compute", s->compute);
    number(stage, "write", s->write);
    return stage;
}

static char *as_json(const char *run_folder, const fv_overview *o) {
    cJSON  *root = cJSON_CreateObject();
    fitting f = fit(o);
    cJSON_AddStringToObject(root, "run", run_folder);
    cJSON_AddBoolToObject(root, "over", o->over);
    cJSON_AddBoolToObject(root, "complete", o->over && o->whole);
    number(root, "tries", o->tries);
    number(root, "tasks_done", (double)o->tasks_done);
    number(root, "tasks_repeated", (double)o->tasks_repeated);
    cJSON *jobs = cJSON_AddArrayToObject(root, "jobs");
    for (int i = 0; i < o->njobs; i++) cJSON_AddItemToArray(jobs, job_json(&o->jobs[i]));
    cJSON *stages = cJSON_AddArrayToObject(root, o->collection ? "items" : "stages");
    for (int k = 0; k < o->nstages; k++) cJSON_AddItemToArray(stages, stage_json(&o->stages[k]));
    cJSON *busy = cJSON_AddObjectToObject(root, "busy"), *workers = cJSON_AddArrayToObject(busy, "workers");
    number(busy, "from", o->from);
    number(busy, "to", o->to);
    for (int b = 0; b < FV_BUSY; b++) cJSON_AddItemToArray(workers, cJSON_CreateNumber(o->busy[b]));
    cJSON *fits = cJSON_AddObjectToObject(root, "fits");
    number(fits, "memory", (double)f.memory);
    number(fits, "seconds", f.seconds);
    number(fits, "cpus", (double)f.cpus);
    char *text = cJSON_Print(root), *line = fv__sprintf("%s\n", text);
    free(text);
    cJSON_Delete(root);
    return line;
}

fv_status fv_cluster_status(const char *run_folder, fv_form form, char **text, fv_error *error) {
    fv_overview overview;
    fv_status   status = fv__overview_make(run_folder, &overview, error);
    *text = NULL;
    if (status == FV_OK) *text = form == FV_FORM_JSON ? as_json(run_folder, &overview) : as_text(run_folder, &overview);
    fv__overview_release(&overview);
    return status;
}

/* ---------------------------------------------------------------- logs */

/* Which jobs: all, one by name, or those of which an element failed. */
static bool wanted(const fv_overview_job *j, const char *job, bool failed) {
    if (failed && !j->failed) return false;
    return !job || !strcmp(job, j->job.name);
}

static void put_log(fv_bytes *out, const char *folder, const char *name) {
    char    *path = fv__sprintf("%s/%s.log", folder, name);
    fv_bytes text = { 0 };
    if (fv__file_exists(path) && fv__file_read_all(path, (size_t)64 << 20, &text, NULL) == FV_OK) {
        fv__bytes_printf(out, "==> %s <==\n", path);
        fv__bytes_append(out, text.data, text.size);
        if (text.size && text.data[text.size - 1] != '\n') fv__bytes_append(out, "\n", 1);
    }
    fv__bytes_release(&text);
    free(path);
}

static void put_logs(fv_bytes *out, const char *folder, const fv_overview_job *j) {
    if (j->job.role != FV_ROLE_ARRAY) {
        put_log(out, folder, j->job.name);
        return;
    }
    for (int64_t element = 0; element < j->job.elements; element++) {
        char name[64];
        snprintf(name, sizeof name, "%s-%lld", j->job.name, (long long)element);
        put_log(out, folder, name);
    }
}

fv_status fv_cluster_logs(const char *run_folder, const char *job, bool failed, char **text, fv_error *error) {
    fv_overview   overview = { 0 };
    fv_submission submission;
    fv_bytes      out = { 0 };
    bool          known = !job;
    *text = NULL;
    fv_status status = fv__jobs_read(run_folder, 0, &submission, error);
    if (status == FV_OK && failed) status = fv__overview_make(run_folder, &overview, error);
    for (int i = 0; i < submission.njobs && status == FV_OK; i++) {
        fv_overview_job one = { .job = submission.jobs[i] };
        known = known || !strcmp(job, one.job.name);
        if (wanted(failed ? &overview.jobs[i] : &one, job, failed)) put_logs(&out, submission.folder, &one);
    }
    if (status == FV_OK && !known) {
        fv_bytes names = { 0 };
        for (int i = 0; i < submission.njobs; i++) fv__bytes_printf(&names, " %s", submission.jobs[i].name);
        status = fv_fail(error, FV_ERROR_USAGE, "--job %s: there is no such job; there are%s", job, (char *)names.data);
        fv__bytes_release(&names);
    }
    fv__bytes_append(&out, "", 1);
    if (status == FV_OK)
        *text = (char *)out.data;
    else
        fv__bytes_release(&out);
    fv__submission_release(&submission);
    fv__overview_release(&overview);
    return status;
}
