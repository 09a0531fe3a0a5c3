/* What the logs of a story come to. */
#include "base/remote.h"
#include "story/run_story.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *fv__log_fact(const fv_story_log *log, const char *name) {
    for (int i = log->nfacts - 1; i >= 0; i--)
        if (!strcmp(log->facts[i].name, name)) return log->facts[i].value;
    return NULL;
}

const char *fv__story_fact(const fv_story *story, const char *name) {
    for (int i = story->nlogs - 1; i >= 0; i--) {
        const char *value = story->logs[i]->told ? fv__log_fact(story->logs[i], name) : NULL;
        if (value) return value;
    }
    return NULL;
}

const fv_story_log *fv__story_last(const fv_story *story) {
    for (int i = story->nlogs - 1; i >= 0; i--)
        if (story->logs[i]->told) return story->logs[i];
    return NULL;
}

/* Of the last attempt: somebody lives, or what the last of those that ended the run said. */
fv_story_state fv__story_state(const fv_story *story) {
    fv_story_state state = FV_STORY_WAITING; /* also where those who came have done their share */
    for (int i = 0; i < story->nlogs; i++) {
        const fv_story_log *log = story->logs[i];
        if (!log->told || log->attempt != story->nattempts - 1) continue;
        if (log->alive) return FV_STORY_RUNNING;
        if (log->ended == FV_END_NONE && state == FV_STORY_WAITING) state = FV_STORY_KILLED;
        if (log->ended == FV_END_WELL) state = FV_STORY_DONE;
        if (log->ended == FV_END_FAILED) state = FV_STORY_FAILED;
        if (log->ended == FV_END_STOPPED) state = FV_STORY_STOPPED;
    }
    return state;
}

const char *fv__story_state_name(fv_story_state state) {
    static const char *const names[] = { "waiting", "running", "done", "failed", "stopped", "killed" };
    return names[state];
}

fv_story_stage fv__story_stage(const fv_story *story, int part, int stage) {
    fv_story_stage sum = { .part = part, .stage = stage };
    for (int i = 0; i < story->nlogs; i++) {
        const fv_story_stage *all = (const fv_story_stage *)(const void *)story->logs[i]->stages.data;
        for (size_t k = 0; story->logs[i]->told && k < story->logs[i]->stages.size / sizeof *all; k++) {
            if (all[k].part != part || all[k].stage != stage) continue;
            sum.done += all[k].done;
            sum.failed += all[k].failed;
            sum.longest = FV_MAX(sum.longest, all[k].longest);
            for (int s = 0; s < FV_SPANS; s++) sum.spans[s] += all[k].spans[s];
        }
    }
    return sum;
}

static bool is_worker(const fv_story_log *log) {
    const char *role = fv__log_fact(log, "role");
    return role && !strcmp(role, "worker");
}

/* As the last attempt saw it: it knows best what was left to do. Those who share a run open the same items. */
fv_stage_facts fv__story_planned(const fv_story *story, int part, int stage) {
    fv_stage_facts sum = { .part = part, .stage = stage };
    for (int i = 0; i < story->nlogs; i++) {
        const fv_story_log   *log = story->logs[i];
        const fv_stage_facts *all = (const fv_stage_facts *)(const void *)log->planned_stages.data;
        if (!log->told || log->attempt != story->nattempts - 1 || is_worker(log)) continue;
        for (size_t k = 0; k < log->planned_stages.size / sizeof *all; k++) {
            if (all[k].part != part || all[k].stage != stage) continue;
            sum.items += all[k].items;
            sum.tasks += all[k].tasks;
            sum.found += all[k].found;
            sum.spared += all[k].spared;
        }
    }
    return sum;
}

static int64_t done_in_last(const fv_story *story, int part, int stage) {
    int64_t done = 0;
    for (int i = 0; i < story->nlogs; i++) {
        const fv_story_log   *log = story->logs[i];
        const fv_story_stage *all = (const fv_story_stage *)(const void *)log->stages.data;
        if (!log->told || log->attempt != story->nattempts - 1) continue;
        for (size_t k = 0; k < log->stages.size / sizeof *all; k++)
            if (all[k].part == part && all[k].stage == stage) done += all[k].done + all[k].failed;
    }
    return done;
}

int64_t fv__story_stage_total(const fv_story *story, int part, int stage) {
    const fv_graph_part *p = &story->graph->parts[part];
    fv_stage_facts       planned = fv__story_planned(story, part, stage);
    fv_story_stage       seen = fv__story_stage(story, part, stage);
    int64_t              before = seen.done + seen.failed - done_in_last(story, part, stage);
    int64_t              closed = FV_MAX(p->count - planned.items, 0) * p->stages[stage].tasks;
    if (fv__story_state(story) != FV_STORY_RUNNING && planned.items) closed = 0; /* those are not tried any more */
    if (!planned.items) return FV_MAX(closed, seen.done + seen.failed);
    return FV_MAX(before + planned.tasks + closed, seen.done + seen.failed);
}

double fv__story_node(const fv_story *story, int part, int node) {
    double sum = 0;
    for (int i = 0; i < story->nlogs; i++) {
        const fv_node_spent *all = (const fv_node_spent *)(const void *)story->logs[i]->nodes.data;
        for (size_t k = 0; story->logs[i]->told && k < story->logs[i]->nodes.size / sizeof *all; k++)
            if (all[k].part == part && all[k].node == node) sum += all[k].seconds;
    }
    return sum;
}

int fv__story_spent(const fv_story *story, fv_spent list[FV_MOST_SPENT]) {
    int count = 0;
    for (int i = 0; i < story->nlogs; i++)
        for (int k = 0; story->logs[i]->told && k < story->logs[i]->visitor.nspent; k++)
            fv__spent_add(list, &count, story->logs[i]->spent[k].op, story->logs[i]->spent[k].seconds);
    return count;
}

fv_residual *fv__story_residuals(const fv_story *story, int64_t *count) {
    fv_bytes all = { 0 };
    for (int i = 0; i < story->nlogs; i++)
        if (story->logs[i]->told && story->logs[i]->residuals.size)
            fv__bytes_append(&all, story->logs[i]->residuals.data, story->logs[i]->residuals.size);
    fv_residual *list = (fv_residual *)(void *)all.data;
    *count = fv__residuals_once(list, (int64_t)(all.size / sizeof *list));
    return list;
}

fv_story_file *fv__story_outputs(const fv_story *story, int *count) {
    fv_story_file *files = NULL;
    const char    *folder = fv__story_fact(story, "folder");
    *count = 0;
    for (int i = 0; i < story->nlogs; i++)
        for (int k = 0; story->logs[i]->told && k < story->logs[i]->nfacts; k++) {
            const fv_story_fact *fact = &story->logs[i]->facts[k];
            bool                 known = strcmp(fact->name, "output") != 0;
            for (int j = 0; j < *count && !known; j++) known = !strcmp(files[j].name, fact->value);
            if (known) continue;
            bool whole = fact->value[0] == '/' || strstr(fact->value, "://") || !folder;
            files = fv__realloc(files, (size_t)(*count + 1) * sizeof *files);
            files[(*count)++] =
                (fv_story_file){ whole ? fv__strdup(fact->value) : fv__sprintf("%s/%s", folder, fact->value), fact->value };
        }
    return files;
}

bool fv__story_may_open(const char *path) { return !fv__is_remote(path); }

void fv__story_outputs_free(fv_story_file *files, int count) {
    for (int i = 0; i < count; i++) free(files[i].path);
    free(files);
}

fv_lease_facts fv__story_leases(const fv_story *story) {
    fv_lease_facts sum = { 0 };
    for (int i = 0; i < story->nlogs; i++) {
        if (!story->logs[i]->told) continue;
        sum.leases += story->logs[i]->visitor.leases.leases;
        sum.leased += story->logs[i]->visitor.leases.leased;
        sum.queued += story->logs[i]->visitor.leases.queued;
    }
    return sum;
}

fv_story_sums fv__story_sums(const fv_story *story) {
    fv_story_sums sums = { 0 };
    for (int i = 0; i < story->nlogs; i++) {
        const fv_story_log *log = story->logs[i];
        if (!log->told) continue;
        sums.tasks += log->tasks;
        sums.failed += log->failed;
        sums.bytes_read += log->bytes_read;
        sums.bytes_written += log->bytes_written;
        for (int s = 0; s < FV_SPANS; s++) sums.spans[s] += log->spans[s];
    }
    for (int p = 0; p < story->graph->nparts; p++) {
        const fv_graph_part *part = &story->graph->parts[p];
        int64_t              opened = 0;
        for (int s = 0; s < part->nstages; s++) {
            fv_stage_facts planned = fv__story_planned(story, p, s);
            sums.total += fv__story_stage_total(story, p, s);
            sums.found += planned.found;
            sums.spared += planned.spared;
            opened = FV_MAX(opened, planned.items);
        }
        sums.items += part->count;
        sums.opened += opened;
    }
    return sums;
}

/* ---------------------------------------------------------------- timeline */

/* Workers of all attempts: the same place and number in each is a row. Those who never did anything have none. */
typedef struct row_plan {
    int  widest, places, count;
    int *number; /* by place * widest + worker; -1: none */
} row_plan;

static row_plan plan_rows(const fv_story *story) {
    row_plan plan = { 1, 1, 0, NULL };
    for (int i = 0; i < story->nlogs; i++) {
        if (!story->logs[i]->told) continue;
        plan.widest = FV_MAX(plan.widest, story->logs[i]->nlanes);
        plan.places = FV_MAX(plan.places, story->logs[i]->place + 1);
    }
    int all = plan.widest * plan.places;
    plan.number = fv__alloc((size_t)all * sizeof *plan.number);
    for (int k = 0; k < all; k++) {
        bool did = false;
        for (int i = 0; i < story->nlogs && !did; i++) {
            const fv_story_log *log = story->logs[i];
            did = log->told && log->place == k / plan.widest && k % plan.widest < log->nlanes &&
                  log->lanes[k % plan.widest].spans[0];
        }
        plan.number[k] = did ? plan.count++ : -1;
    }
    return plan;
}

/* Adds what lies in a stretch of the story to the columns, in proportion. */
static void add_stretch(float *row, int columns, double column, double from, double width, double amount) {
    int first = (int)(from / column);
    for (int c = FV_MAX(first, 0); c < columns && c * column < from + width; c++) {
        double part = fmin(from + width, (c + 1) * column) - fmax(from, c * column);
        if (part > 0) row[c] += (float)(amount * part / width);
    }
}

static void add_log(const fv_story *story, const fv_story_log *log, fv_timeline *t, const row_plan *plan, float *planned) {
    const fv_story_attempt *attempt = &story->attempts[log->attempt];
    double                  column = t->seconds / t->columns, shift = attempt->offset + log->begin - attempt->from;
    for (int b = 0; b < FV_STORY_BINS; b++) {
        double from = shift + b * log->width;
        if (from >= t->seconds) break;
        for (int l = 0; l < log->nlanes; l++)
            for (int s = 0; s < FV_SPANS && log->lanes[l].spans[s]; s++) {
                int row = plan->number[log->place * plan->widest + l] / t->together;
                add_stretch(t->spans[s] + (size_t)row * (size_t)t->columns, t->columns, column, from, log->width,
                            (double)log->lanes[l].spans[s][b]);
            }
        add_stretch(planned, t->columns, column, from, log->width, log->planned[b]);
    }
    double known = 0;
    for (int c = 0; c < t->columns; c++) { /* the most in the column; what was known before where nothing was told */
        double from = c * column - shift, to = from + column, most = 0;
        if (to <= 0 || from >= log->last - log->begin) continue;
        for (int b = FV_MAX((int)(from / log->width), 0); b < FV_STORY_BINS && b * log->width < to; b++)
            most = FV_MAX(most, (double)log->resident[b]);
        known = most > 0 ? most : known;
        t->resident[c] += known;
    }
}

void fv__timeline_make(const fv_story *story, int columns, int most, fv_timeline *t) {
    row_plan plan = plan_rows(story);
    int      all = FV_MAX(plan.count, 1);
    *t = (fv_timeline){ .columns = columns, .seconds = FV_MAX(story->seconds, 1e-3), .together = (all + most - 1) / most };
    t->rows = (all + t->together - 1) / t->together;
    for (int s = 0; s < FV_SPANS; s++) t->spans[s] = fv__calloc((size_t)(t->rows * columns) * sizeof(float));
    t->planned = fv__calloc((size_t)columns * sizeof(double));
    t->resident = fv__calloc((size_t)columns * sizeof(double));
    t->names = fv__calloc((size_t)(t->rows + 1) * sizeof *t->names);
    float *planned = fv__calloc((size_t)columns * sizeof *planned);
    for (int i = 0; i < story->nlogs; i++)
        if (story->logs[i]->told) add_log(story, story->logs[i], t, &plan, planned);
    const char *of_rank = fv__story_fact(story, "rank-lanes");
    int         lanes = of_rank ? atoi(of_rank) : 0;
    double      column = t->seconds / columns;
    for (int c = 0; c < columns; c++) t->planned[c] = (double)planned[c] / column;
    for (int s = 0; s < FV_SPANS; s++)
        for (int i = 0; i < t->rows * columns; i++) t->spans[s][i] /= (float)(column * t->together);
    for (int k = 0; k < plan.widest * plan.places; k++) {
        int r = plan.number[k] < 0 ? -1 : plan.number[k] / t->together;
        if (r < 0 || t->names[r]) continue;
        t->names[r] = t->together > 1   ? fv__sprintf("workers %d to %d", r * t->together, FV_MIN((r + 1) * t->together, all) - 1)
                      : plan.places > 1 ? fv__sprintf("process %d, worker %d", k / plan.widest, k % plan.widest)
                      : lanes > 0       ? fv__sprintf("rank %d, worker %d", k / lanes, k % lanes)
                                        : fv__sprintf("worker %d", k);
    }
    if (!plan.count) t->names[0] = fv__strdup("");
    free(planned);
    free(plan.number);
}

void fv__timeline_release(fv_timeline *t) {
    for (int r = 0; r < t->rows; r++) free(t->names[r]);
    for (int s = 0; s < FV_SPANS; s++) free(t->spans[s]);
    free(t->names);
    free(t->planned);
    free(t->resident);
}
