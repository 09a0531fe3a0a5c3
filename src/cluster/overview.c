/* Where a submitted run is. */
#include "cluster/overview.h"
#include "base/file.h"
#include "run/claims.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

void fv__overview_release(fv_overview *o) {
    free(o->stages);
    free(o->jobs);
    *o = (fv_overview){ 0 };
}

/* ---------------------------------------------------------------- tasks there are */

static void count_tasks(const fv_frozen_run *run, fv_overview *o) {
    const fv_plan *plan = run->sample->plan;
    o->collection = run->bindings.collection;
    o->least = fv__budget_least_job(&(fv_sharers){ .driver = fv__budget_driver(&run->bindings) }, run->outlook.memory);
    o->nstages = o->collection ? 1 : plan->nstages;
    o->stages = fv__calloc((size_t)(o->nstages + 1) * sizeof *o->stages);
    for (int k = 0; k < o->nstages; k++)
        o->stages[k].tasks = o->collection ? run->bindings.nunits : plan->stages[k].serial ? 1 : plan->stages[k].ntasks;
}

/* ---------------------------------------------------------------- tasks that the record knows */

typedef struct line {
    fv_hash key;
    int     stage;
    bool    ok;
    double  start, seconds;
} line;

typedef struct reading {
    fv_overview *overview;
    fv_bytes     lines;
} reading;

static void take_line(void *context, const char *process, const fv_task_facts *f) {
    reading *r = context;
    (void)process;
    int stage = r->overview->collection ? 0 : (int)f->stage;
    if (stage < 0 || stage >= r->overview->nstages || f->status == FV_ERROR_CANCELLED) return;
    fv_overview_stage *s = &r->overview->stages[stage];
    s->read += f->read;
    s->compute += f->compute;
    s->write += f->write;
    line l = { f->key, stage, f->status == FV_OK, f->start, f->read + f->compute + f->write };
    fv__bytes_append(&r->lines, &l, sizeof l);
}

static int by_key(const void *a, const void *b) { /* those that went well first */
    const line *x = a, *y = b;
    int         keys = memcmp(&x->key, &y->key, sizeof x->key);
    return keys ? keys : (int)y->ok - (int)x->ok;
}

static void fill_busy(fv_overview *o, const line *lines, size_t count) {
    for (size_t i = 0; i < count; i++) {
        double end = lines[i].start + lines[i].seconds;
        o->from = i ? FV_MIN(o->from, lines[i].start) : lines[i].start;
        o->to = i ? FV_MAX(o->to, end) : end;
    }
    double width = (o->to - o->from) / FV_BUSY;
    for (size_t i = 0; i < count && width > 0; i++) {
        double from = (lines[i].start - o->from) / width, to = from + lines[i].seconds / width;
        for (int b = FV_MAX((int)from, 0); b < FV_BUSY && b < to; b++)
            o->busy[b] += FV_MIN(to, b + 1.0) - FV_MAX(from, (double)b);
    }
}

static fv_status read_record(const char *run_folder, fv_overview *o, fv_error *error) {
    reading r = { .overview = o };
    FV_TRY(fv__record_each(run_folder, take_line, &r, error));
    line  *lines = (line *)(void *)r.lines.data;
    size_t count = r.lines.size / sizeof *lines;
    if (count) qsort(lines, count, sizeof *lines, by_key);
    for (size_t i = 0; i < count; i++) {
        bool first = !i || memcmp(&lines[i].key, &lines[i - 1].key, sizeof lines[i].key);
        o->tasks_done += first && lines[i].ok;
        o->tasks_repeated += !first && lines[i].ok;
        if (first && !o->collection) o->stages[lines[i].stage].done += lines[i].ok;
        if (first) o->stages[lines[i].stage].failed += !lines[i].ok;
    }
    fill_busy(o, lines, count);
    fv__bytes_release(&r.lines);
    return FV_OK;
}

/* ---------------------------------------------------------------- what workers say of themselves */

static void read_doing(const char *folder, const char *name, fv_overview *o) {
    char    *path = fv__sprintf("%s/%s", folder, name);
    fv_bytes bytes = { 0 };
    if (fv__file_read_all(path, 1 << 20, &bytes, NULL) == FV_OK) {
        long long item, stage, task;
        for (int slot = 0; fv__claims_doing(&bytes, slot, &item, &stage, &task) >= 0; slot++) {
            if (fv__claims_doing(&bytes, slot, &item, &stage, &task) == 0) continue;
            int k = o->collection ? 0 : (int)stage;
            if (k >= 0 && k < o->nstages) o->stages[k].running++;
        }
    }
    fv__bytes_release(&bytes);
    free(path);
}

static void read_strikes(const char *folder, fv_overview *o) {
    char    *path = fv__sprintf("%s/strikes", folder);
    DIR     *dir = opendir(path);
    fv_bytes seen = { 0 };
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        long long strike[3];
        if (sscanf(entry->d_name, "%lld_%lld_%lld_", &strike[0], &strike[1], &strike[2]) != 3) continue;
        if (o->collection) strike[1] = strike[2] = 0;
        bool known = false;
        for (size_t at = 0; at < seen.size; at += sizeof strike) known = known || !memcmp(seen.data + at, strike, sizeof strike);
        if (!known) fv__bytes_append(&seen, strike, sizeof strike);
        if (!known && strike[1] >= 0 && strike[1] < o->nstages) o->stages[strike[1]].struck++;
    }
    if (dir) closedir(dir);
    fv__bytes_release(&seen);
    free(path);
}

static void read_claims(const char *run_folder, const fv_bindings *bindings, fv_overview *o) {
    char   *folder = fv__sprintf("%s/claims", run_folder);
    DIR    *dir = opendir(folder);
    int64_t first, end;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *point = strrchr(entry->d_name, '.');
        long long   batch;
        if (point && !strcmp(point, ".now")) read_doing(folder, entry->d_name, o);
        if (point && !strcmp(point, ".over") && sscanf(entry->d_name, "items-%lld", &batch) == 1 &&
            fv__lot_units(bindings, batch, &first, &end))
            o->stages[0].done += end - first;
    }
    if (dir) closedir(dir);
    read_strikes(folder, o);
    free(folder);
}

/* ---------------------------------------------------------------- jobs */

static void take_job(fv_overview_job *j, const fv_slurm_job *s, double now) {
    j->pending += s->state == FV_SLURM_PENDING ? s->elements : 0;
    j->running += s->state == FV_SLURM_RUNNING;
    j->done += s->state == FV_SLURM_DONE;
    j->failed += s->state == FV_SLURM_FAILED ? s->elements : 0;
    j->requeued += s->restarts;
    if (s->state == FV_SLURM_FAILED) snprintf(j->word, sizeof j->word, "%s", s->word);
    if (s->state == FV_SLURM_PENDING) snprintf(j->reason, sizeof j->reason, "%s", s->reason);
    double ended = s->ended > 0 ? s->ended : now, elapsed = s->started > 0 ? FV_MAX(ended - s->started, 0) : 0;
    j->elapsed = FV_MAX(j->elapsed, elapsed);
    if (s->started > 0 && s->eligible > 0) j->waited = FV_MAX(j->waited, s->started - s->eligible);
    j->cpu_seconds += s->cpu_seconds;
    j->core_seconds += elapsed * s->cpus;
    j->memory_asked = fv__job_memory(&j->job);
    j->memory_used = FV_MAX(j->memory_used, s->memory_used);
}

/* For a moment accounting knows an array that has become elements also as a whole. */
static bool is_shadow(const fv_cluster_job *job, const fv_slurm_job *found) {
    bool alive = found->state == FV_SLURM_RUNNING || found->state == FV_SLURM_DONE;
    return job->role == FV_ROLE_ARRAY && found->element < 0 && alive;
}

/* The last submission and what Slurm knows of it. One more may be made meanwhile, and then the jobs of the one before are over
 * although the run is not. */
static fv_status look(const char *run_folder, fv_submission *submission, fv_slurm_jobs *found, fv_error *error) {
    for (int number = -1, njobs = -1;;) {
        FV_TRY(fv__jobs_read(run_folder, 0, submission, error));
        if (submission->number == number && submission->njobs == njobs) return FV_OK;
        number = submission->number;
        njobs = submission->njobs;
        int64_t *ids = fv__calloc((size_t)(njobs + 1) * sizeof *ids);
        for (int i = 0; i < njobs; i++) ids[i] = submission->jobs[i].id;
        fv__slurm_jobs_release(found);
        fv_status status = fv__slurm_look(ids, njobs, found, error);
        free(ids);
        if (status != FV_OK) return status;
        fv__submission_release(submission);
    }
}

static fv_status read_jobs(const char *run_folder, fv_overview *o, fv_error *error) {
    fv_submission   submission = { 0 };
    fv_slurm_jobs   found = { 0 };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fv_status status = look(run_folder, &submission, &found, error);
    o->tries = submission.number;
    o->njobs = submission.njobs;
    o->jobs = fv__calloc((size_t)(o->njobs + 1) * sizeof *o->jobs);
    o->over = true;
    for (int i = 0; i < o->njobs; i++) {
        fv_overview_job *j = &o->jobs[i];
        bool             last = submission.jobs[i].role == FV_ROLE_FINISH || submission.jobs[i].role == FV_ROLE_PILOT;
        j->job = submission.jobs[i];
        for (int k = 0; k < found.count; k++)
            if (found.items[k].id == j->job.id && !is_shadow(&j->job, &found.items[k]))
                take_job(j, &found.items[k], (double)now.tv_sec);
        if (last) o->whole = !j->pending && !j->running && fv__claims_are_finished(run_folder);
        /* One that has left the queue and is not yet in accounting will be; where there is no accounting it is gone. */
        bool known = j->pending || j->running || j->done || j->failed;
        bool moot = j->job.role == FV_ROLE_AGAIN && o->whole && !j->running; /* the failure it waits for did not come */
        j->gone = !known && !found.accounting;
        if ((j->pending || j->running || !(known || j->gone)) && !moot) o->over = false;
    }
    fv__slurm_jobs_release(&found);
    fv__submission_release(&submission);
    return status;
}

fv_status fv__overview_tasks(const char *run_folder, const fv_frozen_run *run, fv_overview *o, fv_error *error) {
    count_tasks(run, o);
    FV_TRY(read_record(run_folder, o, error));
    read_claims(run_folder, &run->bindings, o);
    return FV_OK;
}

void fv__overview_state(const fv_overview *o, fv_run_state *state) {
    state->items = 1;
    for (int k = 0; k < o->nstages; k++) {
        state->tasks += o->stages[k].tasks;
        state->tasks_done += FV_MIN(o->stages[k].done, o->stages[k].tasks);
    }
    state->fraction = state->tasks ? (double)state->tasks_done / (double)state->tasks : 0;
    if (o->collection) {
        state->items = state->tasks;
        state->items_done = state->tasks_done;
        state->tasks = state->tasks_done = o->tasks_done;
    }
}

fv_status fv__overview_make(const char *run_folder, fv_overview *o, fv_error *error) {
    fv_frozen_run run;
    *o = (fv_overview){ 0 };
    FV_TRY(read_jobs(run_folder, o, error));
    fv_status status = fv__frozen_run_open(run_folder, &run, error);
    if (status == FV_OK) status = fv__overview_tasks(run_folder, &run, o, error);
    fv__frozen_run_close(&run);
    FV_TRY(status);
    for (int k = 0; k < o->nstages && o->over; k++) {
        o->stages[k].running = 0; /* those that were killed cannot say that they are gone */
        if (o->whole) o->stages[k].done = o->stages[k].tasks - o->stages[k].failed;
    }
    return FV_OK;
}
