/* Job scripts: readable shell, made to be looked at and changed. */
#include "cluster/job_scripts.h"
#include "base/file.h"
#include "base/host.h"
#include "cluster/slurm.h"
#include "run/claims.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A word for the shell, in single quotes where it needs them. */
static void put_word(fv_bytes *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-";
    if (*word && strspn(word, plain) == strlen(word)) {
        fv__bytes_printf(out, "%s", word);
        return;
    }
    fv__bytes_printf(out, "'");
    for (; *word; word++) fv__bytes_printf(out, *word == '\'' ? "'\\''" : "%c", *word);
    fv__bytes_printf(out, "'");
}

static void put_option(fv_bytes *out, const char *name, const char *value) {
    if (!value || !*value) return;
    fv__bytes_printf(out, "#SBATCH --%s=", name);
    put_word(out, value);
    fv__bytes_printf(out, "\n");
}

static void put_number(fv_bytes *out, const char *name, int64_t value, const char *unit) {
    fv__bytes_printf(out, "#SBATCH --%s=%lld%s\n", name, (long long)value, unit);
}

typedef struct script {
    const fv_profile     *profile;
    const fv_submission  *submission;
    const fv_cluster_job *job;
    char                 *here, *run, *program; /* absolute */
    fv_bytes              text;
} script;

static bool is_array(const fv_cluster_job *job) { return job->role == FV_ROLE_ARRAY || job->role == FV_ROLE_AGENT_ARRAY; }
static bool has_agents(const fv_cluster_job *job) { return job->role == FV_ROLE_AGENTS || job->role == FV_ROLE_AGENT_ARRAY; }

/* Seconds between the request to stop and the end of the time limit: a minute, and less for short jobs. */
static int grace(const char *time) {
    int  n = 0, days = 0;
    long parts[3] = { 0 };
    if (!time) return 60;
    const char *dash = strchr(time, '-');
    if (dash) days = atoi(time);
    for (const char *p = dash ? dash + 1 : time; n < 3; p = strchr(p, ':') + 1) {
        parts[n++] = atol(p);
        if (!strchr(p, ':')) break;
    }
    long seconds = dash     ? days * 86400L + parts[0] * 3600 + parts[1] * 60 + parts[2]
                   : n == 3 ? parts[0] * 3600 + parts[1] * 60 + parts[2]
                            : parts[0] * 60 + parts[1];
    return (int)FV_MAX(FV_MIN(seconds / 5, 60), 1);
}

/* The limit that is asked for where none was given: with much to spare, since a short one only helps to start early. Beyond a day
 * the site's own is left: what it would refuse is not known here, and a job that is cut off is queued again. */
static const char *time_limit(const fv_profile *profile, const fv_cluster_job *job, char text[32]) {
    double minutes = ceil((2 * job->seconds + 600) / 600) * 10;
    if (profile->time || job->seconds <= 0 || minutes > 24 * 60) return profile->time;
    snprintf(text, 32, "%d:%02d:00", (int)minutes / 60, (int)minutes % 60);
    return text;
}

static void put_header(script *s) {
    const fv_profile     *r = s->profile;
    const fv_cluster_job *job = s->job;
    bool                  array = is_array(job), small = job->role == FV_ROLE_AGAIN;
    char                 *log = fv__sprintf("%s/slurm/%d/%s%s.log", s->run, s->submission->number, job->name, array ? "-%a" : "");
    char                  range[64];
    fv__bytes_printf(&s->text, "#!/bin/bash\n");
    fv__bytes_printf(&s->text, "#SBATCH --job-name=fovea-%s\n", job->name);
    snprintf(range, sizeof range, r->at_once ? "0-%lld%%%lld" : "0-%lld", (long long)job->elements - 1, (long long)r->at_once);
    if (array) put_option(&s->text, "array", range);
    put_option(&s->text, "chdir", s->here);
    put_option(&s->text, "output", log);
    fv__bytes_printf(&s->text, "#SBATCH --open-mode=append\n#SBATCH --requeue\n");
    put_option(&s->text, "partition", r->partition);
    put_option(&s->text, "account", r->account);
    put_option(&s->text, "qos", r->qos);
    put_option(&s->text, "constraint", r->constraint);
    put_option(&s->text, "reservation", r->reservation);
    char        text[32];
    const char *time = time_limit(r, job, text);
    put_option(&s->text, "time", small ? "10" : time);
    if (job->role == FV_ROLE_PILOT || job->role == FV_ROLE_AGENTS) {
        put_number(&s->text, "nodes", job->elements, "");
        put_number(&s->text, "ntasks-per-node", 1, "");
    }
    if (small || job->cpus)
        put_number(&s->text, "cpus-per-task", small ? 1 : job->cpus, "");
    else
        fv__bytes_printf(&s->text, "#SBATCH --exclusive\n");
    /* The bound is kept by the workers; the rest is for the shell, the program itself and the system's caches. */
    int64_t memory = has_agents(job) ? job->memory : fv__job_memory(job);
    if (memory >= 0) put_number(&s->text, "mem", small ? 256 : (memory + (1 << 20) - 1) >> 20, "M");
    if (!small) put_option(&s->text, "gres", r->gres);
    if (r->mail_user && (job->role == FV_ROLE_FINISH || job->role == FV_ROLE_PILOT)) {
        put_option(&s->text, "mail-user", r->mail_user);
        put_option(&s->text, "mail-type", "END,FAIL");
    }
    char signal[32];
    snprintf(signal, sizeof signal, "B:TERM@%d", grace(time));
    bool knows = has_agents(job) && job->seconds > 0; /* when its time is over */
    if (!small && !knows) put_option(&s->text, "signal", signal);
    fv__bytes_printf(&s->text, "\n");
    free(log);
}

/* Words cut at blanks, each with the same text before. */
static void put_each(fv_bytes *out, const char *before, const char *words) {
    for (const char *p = words ? words : ""; *(p += strspn(p, " ")); p += strcspn(p, " "))
        fv__bytes_printf(out, "%s %.*s\n", before, (int)strcspn(p, " "), p);
}

static void put_settings(script *s) {
    fv__bytes_printf(&s->text, "unset FOVEA_UNIT\n"); /* of a program that submits: the job is no part of it */
    put_each(&s->text, "module load", s->profile->modules);
    put_each(&s->text, "export", s->profile->environment);
    if (s->profile->setup) fv__bytes_printf(&s->text, "%s\n", s->profile->setup);
    bool array = is_array(s->job);
    fv__bytes_printf(&s->text, "export FOVEA_LOG=");
    char *log = fv__sprintf("%s/slurm/%d/%s", s->submission->run_folder, s->submission->number, s->job->name);
    put_word(&s->text, log);
    fv__bytes_printf(&s->text, "%s.log\n\n", array ? "-${SLURM_ARRAY_TASK_ID}" : "");
    free(log);
}

/* fovea work RUN with everything but what is special to a kind of job. */
static void put_worker(script *s, const char *options) {
    put_word(&s->text, s->program);
    fv__bytes_printf(&s->text, " work ");
    put_word(&s->text, s->run);
    fv__bytes_printf(&s->text, "%s --workers %lld --memory %lldM", options, (long long)s->job->cpus,
                     (long long)(s->job->memory >> 20));
    if (s->profile->level) fv__bytes_printf(&s->text, " --level %lld", (long long)s->profile->level);
    if (s->profile->overwrite) fv__bytes_printf(&s->text, " --overwrite");
}

#define PUT_TRAP                                                                                                                 \
    "# Before the time limit the worker is told to stop; the job is queued again and goes on.\n"                                 \
    "trap 'kill -TERM $worker; told=1' TERM\n"
#define PUT_WAIT                                                                                                                 \
    "worker=$!\nwait $worker\nstatus=$?\n"                                                                                       \
    "if [ -n \"$told\" ]; then wait $worker; status=$?; fi # the signal ended the first wait\n"

/* A job that is being cancelled is told to stop in the same way, but is not running any more. An element of an array is named by
 * its place: the number of the last one is that of the whole array too. */
static void put_requeue(script *s) {
    const char *job = is_array(s->job) ? "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" : "$SLURM_JOB_ID";
    fv__bytes_printf(&s->text,
                     "if [ $status = 99 ] || [ -n \"$told\" ]; then\n"
                     "    [ \"$(squeue -h -j \"%s\" -o %%T)\" != RUNNING ] || scontrol requeue \"%s\"\n    exit 99\nfi\n",
                     job, job);
}

static void put_job(script *s) {
    char options[64] = "";
    switch (s->job->role) {
    case FV_ROLE_ARRAY:
        if (s->job->stage) snprintf(options, sizeof options, " --stage %d", s->job->stage);
        fv__bytes_printf(&s->text, "# One of %lld workers that claim tasks of stage %d until none is left.\n",
                         (long long)s->job->elements, FV_MAX(s->job->stage, 1));
        break;
    case FV_ROLE_MERGE:
        snprintf(options, sizeof options, " --stage %d --end", s->job->stage);
        fv__bytes_printf(&s->text, "# Everything up to the end of stage %d that is still missing: merges, small stages.\n",
                         s->job->stage);
        break;
    case FV_ROLE_FINISH:
        snprintf(options, sizeof options, " --finish");
        fv__bytes_printf(&s->text, "# Whatever is still missing, the outputs and the tables.\n");
        break;
    case FV_ROLE_PILOT:
    case FV_ROLE_AGENTS:
    case FV_ROLE_AGENT_ARRAY:
    case FV_ROLE_AGAIN: return;
    }
    fv__bytes_printf(&s->text, PUT_TRAP);
    put_worker(s, options);
    fv__bytes_printf(&s->text, " &\n" PUT_WAIT);
    put_requeue(s);
    fv__bytes_printf(&s->text, "exit $status\n");
}

/* Steps of a job do not hear what its script is told, so it is handed on. */
static void put_pilot(script *s) {
    char options[64];
    snprintf(options, sizeof options, " %s --order %s", s->profile->mpi ? "--alone" : "--wait", s->profile->order);
    fv__bytes_printf(&s->text, "# One allocation whose %s pull the tasks.\n" PUT_TRAP "srun ",
                     s->profile->mpi ? "MPI ranks" : "workers");
    if (s->profile->mpi) {
        fv__bytes_printf(&s->text, "--mpi=");
        put_word(&s->text, s->profile->mpi);
        fv__bytes_printf(&s->text, " ");
    } else
        fv__bytes_printf(&s->text, "--kill-on-bad-exit=0 --wait=0 ");
    put_worker(s, options);
    fv__bytes_printf(&s->text, " &\n" PUT_WAIT);
    put_requeue(s);
    if (!s->profile->mpi) {
        fv__bytes_printf(&s->text, "\n# Gathers tables, and does whatever is still missing.\n");
        put_worker(s, " --finish");
        fv__bytes_printf(&s->text, " &\n" PUT_WAIT);
        put_requeue(s);
    }
    fv__bytes_printf(&s->text, "exit $status\n");
}

static void put_agents(script *s) {
    bool array = is_array(s->job);
    fv__bytes_printf(&s->text,
                     array ? "# One of %lld agents, which do what `fovea each` asks for.\n"
                           : "# An agent on each of %lld nodes, which does what `fovea run` and `fovea each` bring.\n",
                     (long long)s->job->elements);
    if (s->job->seconds > 0)
        fv__bytes_printf(&s->text, "ends=$(($(date +%%s) + %lld))\n", (long long)s->job->seconds);
    else
        fv__bytes_printf(&s->text, "ends=${SLURM_JOB_END_TIME:-0}\n");
    fv__bytes_printf(&s->text, PUT_TRAP "%s", array ? "" : "srun --kill-on-bad-exit=0 --wait=0 ");
    put_word(&s->text, s->program);
    fv__bytes_printf(&s->text, " pilot serve ");
    put_word(&s->text, s->run);
    fv__bytes_printf(&s->text, " $ends%s &\n" PUT_WAIT "# What was not done when the time was over goes on in the next job.\n",
                     array ? " $SLURM_ARRAY_TASK_ID" : "");
    put_requeue(s);
    fv__bytes_printf(&s->text, "exit $status\n");
}

static void put_again(script *s) {
    fv__bytes_printf(&s->text, "# Starts only if the last job failed: submits what is missing once more.\nexec ");
    put_word(&s->text, s->program);
    fv__bytes_printf(&s->text, " submit --again ");
    put_word(&s->text, s->run);
    fv__bytes_printf(&s->text, "\n");
}

static fv_status write_script(script *s, fv_error *error) {
    fv__bytes_clear(&s->text);
    put_header(s);
    put_settings(s);
    if (s->job->role == FV_ROLE_PILOT)
        put_pilot(s);
    else if (has_agents(s->job))
        put_agents(s);
    else if (s->job->role == FV_ROLE_AGAIN)
        put_again(s);
    else
        put_job(s);
    char     *path = fv__sprintf("%s/%s.sh", s->submission->folder, s->job->name);
    fv_status status = fv__file_write_all(path, s->text.data, s->text.size, false, error);
    if (status == FV_OK) chmod(path, 0755);
    free(path);
    return status;
}

/* The shell script that hands the others to Slurm: readable, and good for doing it by hand. */
static fv_status write_submit(const fv_submission *submission, bool again, fv_error *error) {
    fv_bytes text = { 0 };
    fv__bytes_printf(&text,
                     "#!/bin/sh\n# Hands the jobs of this folder to Slurm. Each starts when the one before is over, however it "
                     "ended.\ncd \"$(dirname \"$0\")\" || exit 1\n"
                     "submit() { # SCRIPT \"NAME STAGE ELEMENTS CPUS MEMORY\" [OPTION]\n"
                     "    id=$(sbatch --parsable $3 \"$1\") || { [ ! -s jobs ] || cut -d' ' -f1 jobs | xargs scancel; exit 1; }\n"
                     "    id=${id%%%%;*}\n    echo \"$id $2\" >> jobs\n}\nrm -f jobs\n");
    for (int i = 0; i < submission->njobs; i++) {
        const fv_cluster_job *job = &submission->jobs[i];
        fv__bytes_printf(&text, "submit %s.sh \"%s %d %lld %lld %lld\"%s\n", job->name, job->name, job->stage,
                         (long long)job->elements, (long long)job->cpus, (long long)job->memory,
                         i ? " --dependency=afterany:$id" : "");
    }
    if (again)
        fv__bytes_printf(&text, "submit again.sh \"again 0 1 1 0\" \"--dependency=afternotok:$id --kill-on-invalid-dep=yes\"\n");
    char     *path = fv__sprintf("%s/submit.sh", submission->folder);
    fv_status status = fv__file_write_all(path, text.data, text.size, false, error);
    if (status == FV_OK) chmod(path, 0755);
    free(path);
    fv__bytes_release(&text);
    return status;
}

/* As a profile: what a later try starts from. */
static fv_status write_request(const fv_submission *submission, const fv_profile *profile, fv_error *error) {
    fv_bytes text = { 0 };
    char    *path = fv__sprintf("%s/request.fov", submission->folder);
    fv__profile_format(profile, &text);
    fv_status status = fv__file_write_all(path, text.data, text.size, false, error);
    fv__bytes_release(&text);
    free(path);
    return status;
}

fv_status fv__job_scripts_write(const fv_submission *submission, const fv_profile *profile, fv_error *error) {
    script    s = { .profile = profile,
                    .submission = submission,
                    .here = realpath(".", NULL),
                    .run = realpath(submission->run_folder, NULL),
                    .program = fv__host_program() };
    fv_status status = s.here && s.run ? FV_OK : fv_fail(error, FV_ERROR_IO, "cannot find %s", submission->run_folder);
    for (int i = 0; i < submission->njobs && status == FV_OK; i++) {
        s.job = &submission->jobs[i];
        status = write_script(&s, error);
    }
    bool           more = profile->level + 1 < FV_STRIKES;
    fv_cluster_job again = { .name = "again", .role = FV_ROLE_AGAIN, .elements = 1, .cpus = 1 };
    s.job = &again;
    if (status == FV_OK && more) status = write_script(&s, error);
    if (status == FV_OK) status = write_submit(submission, more, error);
    if (status == FV_OK) status = write_request(submission, profile, error);
    fv__bytes_release(&s.text);
    free(s.here);
    free(s.run);
    free(s.program);
    return status;
}

fv_status fv__pilot_script_submit(const char *folder, const fv_profile *profile, bool array, double seconds, int64_t *id,
                                  fv_error *error) {
    fv_cluster_job job = { .name = "agents",
                           .role = array ? FV_ROLE_AGENT_ARRAY : FV_ROLE_AGENTS,
                           .elements = profile->nodes,
                           .cpus = profile->cpus,
                           .memory = profile->memory,
                           .seconds = seconds };
    fv_submission  submission = { .run_folder = folder, .number = 1, .folder = fv__sprintf("%s/slurm/1", folder) };
    script         s = { .profile = profile,
                         .submission = &submission,
                         .job = &job,
                         .here = realpath(".", NULL),
                         .run = realpath(folder, NULL),
                         .program = fv__host_program() };
    char          *path = fv__sprintf("%s/agents.sh", submission.folder), *words[] = { "sbatch", "--parsable", path, NULL };
    fv_bytes       output = { 0 };
    fv_status      status = fv__path_make_folders(submission.folder, error);
    if (status == FV_OK) status = write_script(&s, error);
    if (status == FV_OK) status = fv__slurm_call(words, &output, error);
    if (status == FV_OK) *id = atoll((char *)output.data);
    fv__bytes_release(&output);
    fv__bytes_release(&s.text);
    free(s.here);
    free(s.run);
    free(s.program);
    free(path);
    free(submission.folder);
    return status;
}
