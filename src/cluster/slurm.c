/* Slurm, by its own commands. */
#include "cluster/slurm.h"
#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---------------------------------------------------------------- calling */

static bool read_pipe(int fd, fv_bytes *output) {
    char    piece[4096];
    ssize_t n;
    while ((n = read(fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) fv__bytes_append(output, piece, (size_t)n);
    return n == 0;
}

static fv_status explain(char *const *arguments, int status, const fv_bytes *said, fv_error *error) {
    fv_bytes line = { 0 };
    fv__bytes_append(&line, said->data, said->size);
    while (line.size && line.data[line.size - 1] == '\n') line.size--;
    fv__bytes_append(&line, "", 1);
    fv_fail(error, FV_ERROR_IO, "%s failed (status %d): %.600s", arguments[0], WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            (char *)line.data);
    fv__bytes_release(&line);
    return FV_ERROR_IO;
}

fv_status fv__slurm_call(char *const *arguments, fv_bytes *output, fv_error *error) {
    int                        ends[2], status = 0;
    pid_t                      pid;
    posix_spawn_file_actions_t actions;
    FILE                      *said = tmpfile(); /* what goes to standard error: a message only if it fails */
    if (!said || pipe2(ends, O_CLOEXEC)) {
        if (said) fclose(said);
        return fv_fail(error, FV_ERROR_IO, "cannot call %s: %s", arguments[0], strerror(errno));
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, fileno(said), 2);
    int cause = posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (!cause) {
        read_pipe(ends[0], output);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    close(ends[0]);
    fv__bytes_append(output, "", 1);
    output->size--;
    fv_status result = FV_OK;
    if (cause == ENOENT)
        result = fv_fail(error, FV_ERROR_USAGE, "there is no %s here: Slurm is not installed, or not on the PATH", arguments[0]);
    else if (cause)
        result = fv_fail(error, FV_ERROR_IO, "cannot start %s: %s", arguments[0], strerror(cause));
    else if (status) {
        fv_bytes text = { 0 };
        rewind(said);
        lseek(fileno(said), 0, SEEK_SET);
        read_pipe(fileno(said), &text);
        result = explain(arguments, status, &text, error);
        fv__bytes_release(&text);
    }
    fclose(said);
    return result;
}

fv_status fv__slurm_there(fv_error *error) {
    char     *arguments[] = { "sbatch", "--version", NULL };
    fv_bytes  output = { 0 };
    fv_status status = fv__slurm_call(arguments, &output, error);
    fv__bytes_release(&output);
    return status;
}

static char *id_list(const int64_t *ids, int count) {
    fv_bytes list = { 0 };
    for (int i = 0; i < count; i++) fv__bytes_printf(&list, "%s%lld", i ? "," : "", (long long)ids[i]);
    fv__bytes_append(&list, "", 1);
    return (char *)list.data;
}

fv_status fv__slurm_cancel(const int64_t *ids, int count, fv_error *error) {
    fv_status status = FV_OK;
    for (int i = 0; i < count; i++) { /* one by one: one that is over must not hinder the others */
        char     id[32];
        fv_bytes output = { 0 };
        fv_error own = { 0 };
        snprintf(id, sizeof id, "%lld", (long long)ids[i]);
        char *arguments[] = { "scancel", id, NULL };
        if (fv__slurm_call(arguments, &output, &own) != FV_OK && !strstr(own.message, "nvalid job id")) {
            *error = own;
            status = own.code;
        }
        fv__bytes_release(&output);
    }
    return status;
}

int64_t fv__slurm_most_elements(void) {
    char       *arguments[] = { "scontrol", "show", "config", NULL };
    fv_bytes    output = { 0 };
    long long   most = 1001;
    const char *line = NULL;
    if (fv__slurm_call(arguments, &output, NULL) == FV_OK) line = strstr((char *)output.data, "MaxArraySize");
    if (line) sscanf(line, "MaxArraySize%*[ =]%lld", &most);
    fv__bytes_release(&output);
    return FV_MAX(most - 1, 1);
}

/* ---------------------------------------------------------------- looking */

/* Next field of a line that is cut at |; the line is changed. */
static char *next_field(char **line) {
    char *field = *line, *bar = field ? strchr(field, '|') : NULL;
    if (bar) *bar = 0;
    *line = bar ? bar + 1 : NULL;
    return field ? field : (char *)"";
}

static double parse_time(const char *text) {
    struct tm t = { .tm_isdst = -1 };
    return strptime(text, "%Y-%m-%dT%H:%M:%S", &t) ? (double)mktime(&t) : 0;
}

/* [DD-[HH:]]MM:SS[.mmm] */
static double parse_duration(const char *text) {
    double days = 0, parts[3] = { 0 };
    char  *end;
    if (strchr(text, '-')) {
        days = strtod(text, &end);
        text = end + 1;
    }
    int n = 0;
    for (; n < 3; n++) {
        parts[n] = strtod(text, &end);
        if (*end != ':') break;
        text = end + 1;
    }
    double seconds = n == 2 ? parts[0] * 3600 + parts[1] * 60 + parts[2] : n == 1 ? parts[0] * 60 + parts[1] : parts[0];
    return days * 86400 + seconds;
}

static int64_t parse_memory(const char *text) { /* 400M, 12345K, 4Gn */
    char  *end;
    double number = strtod(text, &end);
    int    shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : *end == 'T' ? 40 : 0;
    return (int64_t)(number * (double)((int64_t)1 << shift));
}

static fv_slurm_state state_of(const char *word) {
    static const char *const pending[] = { "PENDING", "REQUEUED", "REQUEUE", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD" };
    static const char *const running[] = { "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STAGE_OUT", "RESIZING" };
    for (int i = 0; i < FV_COUNT(pending); i++)
        if (!strcmp(word, pending[i])) return FV_SLURM_PENDING;
    for (int i = 0; i < FV_COUNT(running); i++)
        if (!strcmp(word, running[i])) return FV_SLURM_RUNNING;
    return !strcmp(word, "COMPLETED") ? FV_SLURM_DONE : FV_SLURM_FAILED;
}

static void set_state(fv_slurm_job *job, const char *word) {
    snprintf(job->word, sizeof job->word, "%.*s", (int)strcspn(word, " +"), word); /* "CANCELLED by 1000" */
    job->state = state_of(job->word);
}

static fv_slurm_job *job_at(fv_slurm_jobs *jobs, int64_t id, int element) {
    for (int i = jobs->count - 1; i >= 0; i--)
        if (jobs->items[i].id == id && jobs->items[i].element == element) return &jobs->items[i];
    jobs->items = fv__realloc(jobs->items, (size_t)(jobs->count + 1) * sizeof *jobs->items);
    jobs->items[jobs->count] = (fv_slurm_job){ .id = id, .element = element, .elements = 1, .restarts = -1 };
    return &jobs->items[jobs->count++];
}

/* How many elements "0-3,7%2" names; 1 for one that cannot be read. */
static int count_elements(const char *text) {
    int count = 0;
    for (;;) {
        int first, last, used = 0;
        if (sscanf(text, "%d-%d%n", &first, &last, &used) == 2)
            count += last - first + 1;
        else if (sscanf(text, "%d%n", &first, &used) == 1)
            count++;
        else
            break;
        text += used;
        if (*text != ',') break;
        text++;
    }
    return FV_MAX(count, 1);
}

/* "17", "17_3", "17_[0-3%2]", "17_3.batch": step is what follows the point, or "". */
static fv_slurm_job *job_named(fv_slurm_jobs *jobs, const char *name, const char **step) {
    char     *end;
    long long id = strtoll(name, &end, 10);
    int       element = -1, elements = 1;
    if (*end == '_' && end[1] == '[')
        elements = count_elements(end + 2);
    else if (*end == '_')
        element = (int)strtol(end + 1, NULL, 10);
    const char *point = strchr(name, '.');
    *step = point ? point + 1 : "";
    fv_slurm_job *job = job_at(jobs, id, element);
    job->elements = elements;
    return job;
}

/* With duplicates, so that every start of a job that was queued again is seen; the last one counts. */
static void take_accounting(fv_slurm_jobs *jobs, char *line) {
    const char   *step;
    fv_slurm_job *job = job_named(jobs, next_field(&line), &step);
    const char   *state = next_field(&line), *eligible = next_field(&line), *started = next_field(&line);
    const char   *ended = next_field(&line), *cpu = next_field(&line), *used = next_field(&line);
    const char   *cpus = next_field(&line), *node = next_field(&line);
    job->memory_used = FV_MAX(job->memory_used, parse_memory(used));
    if (*step) return;
    set_state(job, state);
    job->restarts++;
    if (job->restarts == 0) job->eligible = parse_time(eligible);
    job->started = parse_time(started);
    job->ended = parse_time(ended);
    job->cpu_seconds = parse_duration(cpu);
    job->cpus = atoi(cpus);
    snprintf(job->node, sizeof job->node, "%.63s", node);
}

static void take_queue(fv_slurm_jobs *jobs, char *line) {
    const char   *step;
    fv_slurm_job *job = job_named(jobs, next_field(&line), &step);
    set_state(job, next_field(&line));
    snprintf(job->reason, sizeof job->reason, "%.63s", next_field(&line));
    snprintf(job->node, sizeof job->node, "%.63s", next_field(&line));
    job->queued = true;
}

/* Elements that waited together when accounting last heard of them, and have become jobs of their own since. */
static void drop_stale(fv_slurm_jobs *jobs) {
    int n = 0;
    for (int i = 0; i < jobs->count; i++)
        if (jobs->items[i].queued || jobs->items[i].state != FV_SLURM_PENDING) jobs->items[n++] = jobs->items[i];
    jobs->count = n;
}

static void each_line(fv_bytes *output, fv_slurm_jobs *jobs, void (*take)(fv_slurm_jobs *jobs, char *line)) {
    for (char *line = (char *)output->data, *end; line && *line; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = 0;
        if (*line) take(jobs, line);
    }
}

fv_status fv__slurm_look(const int64_t *ids, int count, fv_slurm_jobs *jobs, fv_error *error) {
    *jobs = (fv_slurm_jobs){ 0 };
    if (!count) return FV_OK;
    char    *list = id_list(ids, count);
    fv_bytes accounting = { 0 }, queue = { 0 };
    char    *sacct[] = {
           "sacct", "-n", "-P",         "-D",       "-j",
           list,    "-S", "now-90days", "--format", "JobID,State,Eligible,Start,End,TotalCPU,MaxRSS,AllocCPUS,NodeList",
           NULL
    };
    char    *squeue[] = { "squeue", "-h", "-j", list, "-t", "all", "-o", "%i|%T|%r|%N", NULL };
    fv_error unknown = { 0 };
    jobs->accounting = fv__slurm_call(sacct, &accounting, &unknown) == FV_OK;
    if (jobs->accounting) each_line(&accounting, jobs, take_accounting);
    fv_status status = fv__slurm_call(squeue, &queue, error);
    if (status == FV_OK) {
        each_line(&queue, jobs, take_queue);
        drop_stale(jobs);
    } else if (strstr(error->message, "nvalid job id"))
        status = FV_OK; /* all are long over */
    if (status != FV_OK && jobs->accounting && jobs->count) status = FV_OK;
    for (int i = 0; i < jobs->count; i++) jobs->items[i].restarts = FV_MAX(jobs->items[i].restarts, 0);
    fv__bytes_release(&accounting);
    fv__bytes_release(&queue);
    free(list);
    return status;
}

void fv__slurm_jobs_release(fv_slurm_jobs *jobs) {
    free(jobs->items);
    *jobs = (fv_slurm_jobs){ 0 };
}
