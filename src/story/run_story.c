/* Reading the logs of a run as they grow, and what belongs together in them. */
#include "story/run_story.h"
#include "base/file.h"
#include "base/host.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { MOST_LANES = 1024, QUIET = 60 /* seconds without a word after which a process elsewhere is taken for dead */ };
#define FIRST_WIDTH 0.001

/* ---------------------------------------------------------------- bins of time */

static void halve(fv_story_log *log) {
    for (int i = 0; i < FV_STORY_BINS; i++) {
        bool second = i < FV_STORY_BINS / 2;
        for (int l = 0; l < log->nlanes; l++)
            for (int s = 0; s < FV_SPANS && log->lanes[l].spans[s]; s++) {
                float *bins = log->lanes[l].spans[s];
                bins[i] = second ? bins[2 * i] + bins[2 * i + 1] : 0;
            }
        log->planned[i] = second ? log->planned[2 * i] + log->planned[2 * i + 1] : 0;
        log->resident[i] = second ? FV_MAX(log->resident[2 * i], log->resident[2 * i + 1]) : 0;
    }
    log->width *= 2;
}

static double reach(fv_story_log *log, double time) {
    double at = FV_MAX(time - log->begin, 0);
    if (!isfinite(at) || at > 1e10) return 0; /* a clock that was wrong */
    while (at >= log->width * FV_STORY_BINS) halve(log);
    log->last = FV_MAX(log->last, log->begin + at);
    return at;
}

static fv_story_lane *lane_of(fv_story_log *log, int worker) {
    int number = FV_MAX(worker, 0) % MOST_LANES;
    if (number >= log->nlanes) {
        log->lanes = fv__realloc(log->lanes, (size_t)(number + 1) * sizeof *log->lanes);
        memset(log->lanes + log->nlanes, 0, (size_t)(number + 1 - log->nlanes) * sizeof *log->lanes);
        log->nlanes = number + 1;
    }
    fv_story_lane *lane = &log->lanes[number];
    for (int s = 0; s < FV_SPANS && !lane->spans[s]; s++) lane->spans[s] = fv__calloc(FV_STORY_BINS * sizeof(float));
    return lane;
}

/* Adds a span of time to bins; to: the place that takes so much of it. Of a million short tasks nearly every span lies in one. */
static void spread(fv_story_log *log, float *bins, double from, double to, double bytes) {
    int first = (int)(from / log->width);
    if (first < FV_STORY_BINS && to <= (first + 1) * log->width) {
        bins[first] += (float)(to - from);
        log->planned[first] += (to - from) * bytes;
        return;
    }
    for (int i = first; i < FV_STORY_BINS && i * log->width < to; i++) {
        double part = FV_MIN(to, (i + 1) * log->width) - FV_MAX(from, i * log->width);
        if (part <= 0) continue;
        bins[i] += (float)part;
        log->planned[i] += part * bytes;
    }
}

/* ---------------------------------------------------------------- what a log says */

static fv_story_stage *stage_of(fv_story_log *log, int64_t part, int64_t stage) {
    fv_story_stage *all = (fv_story_stage *)(void *)log->stages.data;
    for (size_t i = 0; i < log->stages.size / sizeof *all; i++)
        if (all[i].part == part && all[i].stage == stage) return &all[i];
    return fv__bytes_append(&log->stages, &(fv_story_stage){ .part = part, .stage = stage }, sizeof *all);
}

static double took(const fv_task_facts *f) { return f->read + f->compute + f->write; }

static void keep_slowest(fv_story_log *log, const fv__task_slot *t, double seconds) {
    int n = log->nslowest;
    if (n == FV_STORY_SLOWEST && seconds <= took(&log->slowest[n - 1])) return;
    if (n < FV_STORY_SLOWEST) log->nslowest = ++n;
    int at = n - 1;
    for (; at > 0 && took(&log->slowest[at - 1]) < seconds; at--) log->slowest[at] = log->slowest[at - 1];
    log->slowest[at] = (fv_task_facts){ .key = t->key,
                                        .item = t->item,
                                        .stage = t->stage,
                                        .task = t->task,
                                        .worker = t->worker,
                                        .start = t->start,
                                        .wait = t->wait,
                                        .read = t->read,
                                        .compute = t->compute,
                                        .write = t->write,
                                        .memory = t->memory,
                                        .status = t->status,
                                        .bytes_read = t->bytes_read,
                                        .bytes_written = t->bytes_written };
}

static void count_recent(fv_story_log *log, double end, const fv__task_slot *t) {
    int64_t second = (int64_t)end;
    int     at = (int)(second % FV_STORY_SECONDS);
    if (second <= 0) return;
    if (log->recent[at].second < second) {
        log->recent[at].second = second;
        log->recent[at].tasks = log->recent[at].read = log->recent[at].written = 0;
    }
    log->recent[at].tasks++;
    log->recent[at].read += t->bytes_read;
    log->recent[at].written += t->bytes_written;
}

static fv_status take_task(fv__visitor *v, const char *worker, const fv__task_slot *t, fv_error *error) {
    fv_story_log *log = v->context;
    const double  spans[FV_SPANS] = { t->wait, t->read, t->compute, t->write };
    double        seconds = t->read + t->compute + t->write, end = t->start + seconds;
    (void)worker;
    (void)error;
    if (!(log->begin > 0)) log->begin = t->start - spans[FV_SPAN_WAIT];
    reach(log, end);
    fv_story_lane  *lane = lane_of(log, t->worker);
    fv_story_stage *stage = stage_of(log, fv__run_graph_part(log->story->graph, t->item), t->stage);
    double          at = FV_MAX(t->start - spans[FV_SPAN_WAIT] - log->begin, 0);
    for (int s = 0; s < FV_SPANS; s++) {
        if (!(spans[s] > 0)) continue;
        spread(log, lane->spans[s], at, at + spans[s], s == FV_SPAN_WAIT ? 0 : (double)t->memory);
        at += spans[s];
        log->spans[s] += spans[s];
        stage->spans[s] += spans[s];
    }
    stage->longest = FV_MAX(stage->longest, seconds);
    *(t->status == FV_OK ? &stage->done : &stage->failed) += 1;
    *(t->status == FV_OK ? &log->tasks : &log->failed) += 1;
    log->bytes_read += t->bytes_read;
    log->bytes_written += t->bytes_written;
    count_recent(log, end, t);
    keep_slowest(log, t, seconds);
    return FV_OK;
}

static fv_story_end end_of(const char *word) {
    static const char *const words[] = { "", "well", "failed", "stopped", "part" };
    for (int i = 1; i < FV_COUNT(words); i++)
        if (!strcmp(word, words[i])) return (fv_story_end)i;
    return FV_END_NONE;
}

static fv_status take_fact(fv__visitor *v, const char *name, const char *value, fv_error *error) {
    fv_story_log *log = v->context;
    (void)error;
    if (log->nfacts == log->room) {
        log->room = FV_MAX(2 * log->room, 32);
        log->facts = fv__realloc(log->facts, (size_t)log->room * sizeof *log->facts);
    }
    log->facts[log->nfacts++] = (fv_story_fact){ fv__strdup(name), fv__strdup(value) };
    if (!strcmp(name, "begin")) log->begin = atof(value);
    if (!strcmp(name, "end")) reach(log, atof(value));
    if (!strcmp(name, "ended")) log->ended = end_of(value);
    return FV_OK;
}

static void take_memory(fv__visitor *v, const char *worker, double time, int64_t resident) {
    fv_story_log *log = v->context;
    (void)worker;
    if (!(log->begin > 0)) log->begin = time;
    int bin = (int)(reach(log, time) / log->width);
    log->resident[bin] = FV_MAX(log->resident[bin], resident);
    log->now = resident;
}

static void take_stage(fv__visitor *v, const fv_stage_facts *facts) {
    fv_story_log   *log = v->context;
    fv_stage_facts *all = (fv_stage_facts *)(void *)log->planned_stages.data;
    for (size_t i = 0; i < log->planned_stages.size / sizeof *all; i++)
        if (all[i].part == facts->part && all[i].stage == facts->stage) {
            all[i].items += facts->items;
            all[i].tasks += facts->tasks;
            all[i].found += facts->found;
            all[i].spared += facts->spared;
            return;
        }
    fv__bytes_append(&log->planned_stages, facts, sizeof *facts);
}

static void take_node(fv__visitor *v, const fv_node_spent *spent) {
    fv_story_log  *log = v->context;
    fv_node_spent *all = (fv_node_spent *)(void *)log->nodes.data;
    for (size_t i = 0; i < log->nodes.size / sizeof *all; i++)
        if (all[i].part == spent->part && all[i].node == spent->node) {
            all[i].seconds += spent->seconds;
            return;
        }
    fv__bytes_append(&log->nodes, spent, sizeof *spent);
}

static fv_story_log *new_log(fv_story *story, const char *name) {
    fv_story_log *log = fv__calloc(sizeof *log);
    log->story = story;
    log->name = fv__strdup(name);
    log->width = FIRST_WIDTH;
    log->visitor = (fv__visitor){ .task = take_task,
                                  .fact = take_fact,
                                  .memory = take_memory,
                                  .stage = take_stage,
                                  .node = take_node,
                                  .residuals = &log->residuals,
                                  .spent = log->spent,
                                  .context = log };
    return log;
}

static void free_log(fv_story_log *log) {
    for (int l = 0; l < log->nlanes; l++)
        for (int s = 0; s < FV_SPANS; s++) free(log->lanes[l].spans[s]);
    for (int i = 0; i < log->nfacts; i++) {
        free(log->facts[i].name);
        free(log->facts[i].value);
    }
    fv__bytes_release(&log->stages);
    fv__bytes_release(&log->planned_stages);
    fv__bytes_release(&log->nodes);
    fv__bytes_release(&log->residuals);
    fv__bytes_release(&log->visitor.text);
    free(log->lanes);
    free(log->facts);
    free(log->name);
    free(log);
}

/* ---------------------------------------------------------------- who lives */

static double seconds_since(const char *path) {
    struct stat     s;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return stat(path, &s) ? INFINITY : (double)(now.tv_sec - s.st_mtim.tv_sec);
}

static bool lives(const fv_story *story, const fv_story_log *log) {
    const char *process = fv__log_fact(log, "process"), *host = fv__host_self()->name;
    int         pid;
    long long   start;
    char        name[96];
    if (log->ended != FV_END_NONE) return false;
    if (process && sscanf(process, "%95s %d %lld", name, &pid, &start) == 3 && !strcmp(name, host)) {
        fv_alive alive = fv__process_alive(pid, start);
        if (alive != FV_ALIVE_UNKNOWN) return alive == FV_ALIVE;
    }
    char *path = fv__sprintf("%s/task-%s.log", story->folder, log->name);
    bool  fresh = seconds_since(path) < QUIET;
    free(path);
    return fresh;
}

/* ---------------------------------------------------------------- attempts */

static int by_begin(const void *a, const void *b) {
    const fv_story_log *x = *(fv_story_log *const *)a, *y = *(fv_story_log *const *)b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return strcmp(x->name, y->name);
}

typedef struct attempt {
    double from, to;
    int    first, count; /* logs */
    bool   well, did;    /* ended well; ran tasks */
} attempt;

static int find_attempts(const fv_story *story, attempt *attempts) {
    int             count = 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < story->nlogs; i++) {
        const fv_story_log *log = story->logs[i];
        double              last = FV_MAX(log->last, log->begin);
        if (log->alive) last = FV_MAX(last, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
        if (!count || log->begin > attempts[count - 1].to)
            attempts[count++] = (attempt){ .from = log->begin, .to = last, .first = i };
        attempt *a = &attempts[count - 1];
        a->to = FV_MAX(a->to, last);
        a->count++;
        a->well = a->well || log->ended == FV_END_WELL;
        a->did = a->did || log->tasks + log->failed > 0;
    }
    return count;
}

/* The last attempt that did something, and those that it went on with. One that only found everything done adds nothing. */
static void choose(fv_story *story) {
    attempt *attempts = fv__calloc((size_t)(story->nlogs + 1) * sizeof *attempts);
    int      count = find_attempts(story, attempts), last = count - 1;
    while (last > 0 && !attempts[last].did && attempts[last].well && attempts[last - 1].well) last--;
    int first = FV_MAX(last, 0);
    while (first > 0 && !attempts[first - 1].well) first--;
    for (int i = 0; i < story->nlogs; i++) story->logs[i]->told = false;
    free(story->attempts);
    story->attempts = fv__calloc((size_t)(count + 1) * sizeof *story->attempts);
    story->nattempts = 0;
    story->left_out = first;
    story->seconds = 0;
    for (int a = first; a <= last; a++) {
        story->attempts[story->nattempts] =
            (fv_story_attempt){ attempts[a].from, attempts[a].to, story->seconds, attempts[a].count };
        story->seconds += attempts[a].to - attempts[a].from;
        for (int k = 0; k < attempts[a].count; k++) {
            fv_story_log *log = story->logs[attempts[a].first + k];
            log->told = true;
            log->attempt = story->nattempts;
            log->place = k;
        }
        story->nattempts++;
    }
    free(attempts);
}

/* ---------------------------------------------------------------- opening and reading on */

fv_status fv__story_open(const char *run_folder, fv_story **result, fv_error *error) {
    fv_story *story = fv__calloc(sizeof *story);
    story->folder = fv__strdup(run_folder);
    story->graph = fv__run_graph_read(run_folder);
    fv_status status = fv__story_update(story, error);
    if (status != FV_OK) {
        fv__story_close(story);
        story = NULL;
    }
    *result = story;
    return status;
}

static fv_story_log *log_named(fv_story *story, const char *name) {
    for (int i = 0; i < story->nlogs; i++)
        if (!strcmp(story->logs[i]->name, name)) return story->logs[i];
    story->logs = fv__realloc(story->logs, (size_t)(story->nlogs + 1) * sizeof *story->logs);
    return story->logs[story->nlogs++] = new_log(story, name);
}

fv_status fv__story_update(fv_story *story, fv_error *error) {
    fv_arena arena = { 0 };
    char   **names;
    size_t   count;
    if (!story->graph->nparts) { /* it was looked at before it had begun */
        fv__run_graph_free(story->graph);
        story->graph = fv__run_graph_read(story->folder);
    }
    fv_status status = fv__record_logs(story->folder, &arena, &names, &count, error);
    for (size_t i = 0; status == FV_OK && i < count; i++) {
        fv_story_log *log = log_named(story, names[i]);
        status = fv__record_visit_log(fv__arena_printf(&arena, "%s/task-%s.log", story->folder, names[i]), names[i], &log->at,
                                      &log->visitor, error);
    }
    free(names);
    fv__arena_release(&arena);
    FV_TRY(status);
    for (int i = 0; i < story->nlogs; i++) story->logs[i]->alive = lives(story, story->logs[i]);
    if (story->nlogs) qsort(story->logs, (size_t)story->nlogs, sizeof(fv_story_log *), by_begin);
    choose(story);
    return FV_OK;
}

void fv__story_close(fv_story *story) {
    if (!story) return;
    for (int i = 0; i < story->nlogs; i++) free_log(story->logs[i]);
    fv__run_graph_free(story->graph);
    free(story->logs);
    free(story->attempts);
    free(story->folder);
    free(story);
}
