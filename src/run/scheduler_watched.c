/* What is known of values while their tasks go on: of estimates that were asked for, and of statistics that are computed exactly.
 *
 * The tasks of an exact stage come in the order of neighbours, which says little about the rest of an image. In a run that takes
 * long, every fourth task is therefore the next one of a random order, and the estimate is that of the beginning of this order
 * which is done, whoever did it: nearly a simple random sample. Where this turns out to be slow, because neighbours share what
 * they read, no more are taken so. Each task is still run once, and no result depends on their order.
 */
#include "exec/sampled.h"
#include "graph/approximate.h"
#include "graph/gathered.h"
#include "run/scheduler_parts.h"
#include <stdio.h>
#include <stdlib.h>

enum { EVERY = 4, MOST_SHOWN = 16, TRIALS = 8 };
static const double PATIENCE = 1;   /* seconds that need no comment */
static const double SHARE = 0.02;   /* of the run's time that looking may take */
static const double TOO_SLOW = 1.5; /* times what a task in the usual order takes */

enum { TAKEN = 1, AT_RANDOM = 2 };

struct fv_watched {
    int64_t *order; /* of a stage that is not sampled itself; NULL: it is, or its order cannot be changed */
    uint8_t *marks; /* by task: TAKEN, AT_RANDOM */
    int64_t  next;  /* in order */
    int64_t  takes;
    double   seconds[2];
    int64_t  done[2]; /* in the usual order, and at random */
    int64_t  due;
    double   looking; /* seconds */
};

/* ---------------------------------------------------------------- which values */

/* Whether a printed number or a table of numbers is made of the node and of nothing but numbers beside it. */
static bool is_part_of(const fv_node *printed, const fv_node *node) {
    if (printed == node) return true;
    bool found = false;
    for (int i = 0; printed->op && fv__op_is_point(printed->op) && i < printed->ninputs && !found; i++)
        found = printed->in[i] && printed->in[i]->type.kind == FV_KIND_SCALAR && is_part_of(printed->in[i], node);
    return found;
}

/* The sink that tells the value; NULL: it is only used on the way to something else. */
static const fv_sink *sink_of(const fv_instance *instance, const fv_node *node) {
    for (int i = 0; i < instance->graph->nsinks; i++) {
        const fv_sink *sink = &instance->graph->sinks[i];
        bool           told = sink->kind == FV_SINK_PRINT || sink->kind == FV_SINK_FILE;
        if (told && sink->value->type.kind != FV_KIND_IMAGE && is_part_of(sink->value, node)) return sink;
    }
    return NULL;
}

static bool is_shown(const fv_instance *instance, const fv_target *target) {
    if (target->kind != FV_TARGET_PASS || target->pass) return false;
    return target->node->sampling || (sink_of(instance, target->node) && fv__can_approximate(target->node));
}

static const char *name_of(const fv_instance *instance, const fv_node *node) {
    const int      most = 48;
    const fv_sink *sink = sink_of(instance, node);
    bool           whole = sink && sink->value == node && sink->kind == FV_SINK_PRINT && sink->name;
    return whole && (int)strlen(sink->name) <= most ? sink->name : fv__node_label(node);
}

/* ---------------------------------------------------------------- tasks at random */

/* All values of a stage that are shown are of one order. */
static uint64_t seed_of(const fv_instance *instance, const fv_stage *stage) {
    int t = 0;
    while (!is_shown(instance, &stage->targets[t])) t++;
    return fv__sample_seed(instance, stage->targets[t].node);
}

void fv__watched_begin(const fv_scheduler *s, fv_item *item, int index) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    fv_stage_state *state = &item->stages[index];
    bool            any = false;
    for (int t = 0; t < stage->ntargets && !any; t++) any = is_shown(item->instance, &stage->targets[t]);
    if (!any || stage->serial || s->source->shared || (!state->sampled && stage->ntasks < 2 * FV_LEAST_SAMPLE)) return;
    state->watched = fv__calloc(sizeof *state->watched);
    if (state->sampled || state->makers) return;
    state->watched->order = fv__sampling_order(seed_of(item->instance, stage), stage->ntasks);
    state->watched->marks = fv__calloc((size_t)stage->ntasks);
}

void fv__watched_free(struct fv_watched *watched) {
    if (watched) free(watched->order);
    if (watched) free(watched->marks);
    free(watched);
}

static bool is_slow(const struct fv_watched *w) {
    if (w->done[0] < TRIALS || w->done[1] < TRIALS) return false;
    return w->seconds[1] / (double)w->done[1] > TOO_SLOW * w->seconds[0] / (double)w->done[0];
}

static bool take_at_random(const fv_scheduler *s, struct fv_watched *w, int64_t tasks, int64_t *task) {
    if (fv__now() - s->started < PATIENCE || ++w->takes % EVERY || is_slow(w)) return false;
    while (w->next < tasks && w->marks[w->order[w->next]]) w->next++;
    if (w->next == tasks) return false;
    *task = w->order[w->next++];
    w->marks[*task] = TAKEN | AT_RANDOM;
    return true;
}

bool fv__watched_take(const fv_scheduler *s, fv_item *item, int index, int place, bool help, int64_t *task) {
    fv_stage_state    *state = &item->stages[index];
    struct fv_watched *w = state->watched;
    if (!w || !w->order) return fv__task_ranges_take(state->ranges, place, help, task);
    if (take_at_random(s, w, state->limit, task)) return true;
    while (fv__task_ranges_take(state->ranges, place, help, task))
        if (!w->marks[*task]) {
            w->marks[*task] = TAKEN;
            return true;
        }
    return false;
}

/* ---------------------------------------------------------------- looking */

/* Mutex held. Looks get rarer as the sample grows, and wait where they would take a part of the run's time that matters. */
static bool is_due(const fv_scheduler *s, const fv_job *job, double took) {
    fv_stage_state    *state = &job->item->stages[job->stage];
    struct fv_watched *w = state->watched;
    double             passed = fv__now() - s->started;
    int64_t            done = state->done + 1;
    if (w->marks) w->seconds[w->marks[job->task] / AT_RANDOM] += took, w->done[w->marks[job->task] / AT_RANDOM]++;
    if (!s->settings->options.progress || done < w->due || passed < PATIENCE || w->looking > SHARE * passed) return false;
    w->due = fv__sampling_next(done, state->limit);
    return true;
}

/* The rows of items that a value is made of; NULL: it is made of an image. */
static const fv_gathered *items_of(const fv_node *node) {
    return node->ninputs && node->in[0] ? fv__gathered_of(node->in[0]) : NULL;
}

/* The columns that make the group of a row, as "large, 3"; "" where there are none. */
static void name_group(const fv_node *node, const fv_estimates *rows, int64_t row, char *text, size_t size) {
    int used = 0;
    *text = 0;
    for (int k = 0; items_of(node) && k < rows->nplain && used < (int)size; k++) {
        const fv_cell *cell = &rows->plain[row * rows->nplain + k];
        fv_column_kind kind = node->type.table->column[k].kind;
        const char    *apart = k ? ", " : "";
        if (kind == FV_COLUMN_TEXT)
            used += snprintf(text + used, size - (size_t)used, "%s%s", apart, cell->text ? cell->text : "");
        else
            used += snprintf(text + used, size - (size_t)used, "%s%g", apart, fv__cell_number(kind, *cell));
    }
}

/* Mutex held. */
static void put_one(fv_scheduler *s, const fv_item *item, const fv_node *node, const char *column, int64_t row, const char *group,
                    const fv_interval *e) {
    fv_shown_estimate *at = NULL, *shown = s->shown;
    for (int k = 0; k < s->nshown && !at; k++)
        if (shown[k].item == item->number && shown[k].node == node->id && shown[k].row == row && !strcmp(shown[k].column, column))
            at = &shown[k];
    if (!at && s->nshown == MOST_SHOWN) return;
    if (!at) at = &shown[s->nshown++];
    *at = (fv_shown_estimate){
        .item = item->number, .node = node->id, .row = row, .of_items = items_of(node) != NULL, .interval = *e
    };
    snprintf(at->group, sizeof at->group, "%s", group);
    snprintf(at->name, sizeof at->name, "%s", name_of(item->instance, node));
    snprintf(at->column, sizeof at->column, "%s", column);
}

/* Mutex held. Of a table, one for each estimated column of each row. */
static void put(fv_scheduler *s, const fv_item *item, const fv_node *node, const fv_interval *e, const fv_estimates *rows) {
    if (node->type.kind != FV_KIND_TABLE) {
        if (!isnan(e->low)) put_one(s, item, node, "", 0, "", e);
        return;
    }
    int apart = node->sampling ? 3 : 1; /* an estimated table has columns low and high behind each */
    for (int64_t k = 0; k < rows->nrows * rows->nvalues; k++) {
        const fv_column *column = &node->type.table->column[rows->nplain + apart * (int)(k % rows->nvalues)];
        char             group[40];
        name_group(node, rows, k / rows->nvalues, group, sizeof group);
        if (!isnan(rows->interval[k].low)) put_one(s, item, node, column->name, k / rows->nvalues, group, &rows->interval[k]);
    }
}

/* Without the mutex. */
static void look(fv_scheduler *s, fv_item *item, int index) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    for (int t = 0; t < stage->ntargets; t++) {
        fv_estimates rows = { 0 };
        fv_interval  e;
        if (!is_shown(item->instance, &stage->targets[t])) continue;
        bool some = fv__sample_so_far(item->instance, stage, stage->targets[t].node, &e, &rows);
        pthread_mutex_lock(&s->mutex);
        if (some) put(s, item, stage->targets[t].node, &e, &rows);
        pthread_mutex_unlock(&s->mutex);
        fv__estimates_release(&rows);
    }
}

void fv__watched_done(fv_scheduler *s, const fv_job *job) {
    struct fv_watched *w = job->item->stages[job->stage].watched;
    double             now = fv__now();
    pthread_mutex_lock(&s->mutex);
    bool due = is_due(s, job, now - job->handed);
    pthread_mutex_unlock(&s->mutex);
    if (!due) return;
    look(s, job->item, job->stage);
    pthread_mutex_lock(&s->mutex);
    w->looking += fv__now() - now;
    pthread_mutex_unlock(&s->mutex);
}

/* ---------------------------------------------------------------- telling */

/* Values that are known have no estimate any more. stage -1: the item is closed. */
void fv__watched_over(fv_scheduler *s, const fv_item *item, int stage) {
    int kept = 0;
    for (int k = 0; k < s->nshown; k++) {
        bool over = s->shown[k].item == item->number;
        if (over && stage >= 0) {
            const fv_node *node = item->instance->graph->nodes[s->shown[k].node];
            over = item->instance->plan->pass_stage[node->id][fv__op_last_finish(node->op)] == stage;
        }
        if (!over) s->shown[kept++] = s->shown[k];
    }
    s->nshown = kept;
}

void fv__watched_tell(fv_scheduler *s) {
    fv_run_state *p = &s->progress;
    int           used = 0;
    s->so_far[0] = 0;
    for (int k = 0; k < s->nshown; k++) {
        const fv_shown_estimate *shown = &s->shown[k];
        const fv_interval       *e = &shown->interval;
        bool                     many = s->context->bindings->collection;
        s->told_estimates[k] = (fv_run_estimate){ .item = many ? fv__bindings_item(s->context->bindings, shown->item) : NULL,
                                                  .name = shown->name,
                                                  .column = *shown->column ? shown->column : NULL,
                                                  .row = shown->row,
                                                  .value = e->value,
                                                  .low = e->low,
                                                  .high = e->high,
                                                  .confidence = e->confidence,
                                                  .seen = e->seen,
                                                  .chunks = e->population,
                                                  .method = e->method,
                                                  .group = *shown->group ? shown->group : NULL,
                                                  .items = shown->of_items };
        if (used < (int)sizeof s->so_far)
            used += snprintf(s->so_far + used, sizeof s->so_far - (size_t)used, "%s%s%s%s %.6g ± %.2g", k ? ", " : "",
                             *shown->column ? shown->column : shown->name, *shown->group ? " of " : "", shown->group, e->value,
                             FV_MAX(e->high - e->value, e->value - e->low));
    }
    p->estimates = s->told_estimates;
    p->nestimates = s->nshown;
    p->estimate = s->nshown ? s->so_far : NULL;
}

static void say_so_far(const char *name, const char *units, const fv_interval *e) {
    if (isnan(e->low))
        fv__log("fovea: %s so far: %g (no interval: %lld of %lld %s are too few to tell one)", name, e->value, (long long)e->seen,
                (long long)e->population, units);
    else
        fv__log("fovea: %s so far: %g, between %g and %g (%g %%, %lld of %lld %s)", name, e->value, e->low, e->high,
                100 * e->confidence, (long long)e->seen, (long long)e->population, units);
}

static void say_rows(const fv_node *node, const fv_estimates *rows) {
    int apart = node->sampling ? 3 : 1;
    for (int64_t k = 0; k < FV_MIN(rows->nrows * rows->nvalues, MOST_SHOWN); k++) {
        const char *column = node->type.table->column[rows->nplain + apart * (int)(k % rows->nvalues)].name;
        char        name[192], group[40];
        name_group(node, rows, k / rows->nvalues, group, sizeof group);
        if (*group)
            snprintf(name, sizeof name, "%s of %s", column, group);
        else
            snprintf(name, sizeof name, rows->nrows > 1 ? "%s, row %lld" : "%s", column, (long long)(k / rows->nvalues + 1));
        say_so_far(name, items_of(node) ? "items" : "chunks", &rows->interval[k]);
    }
}

static void say_stage(fv_scheduler *s, const fv_item *item, int index) {
    const fv_stage *stage = &item->instance->plan->stages[index];
    for (int t = 0; t < stage->ntargets; t++) {
        const fv_node *node = stage->targets[t].node;
        fv_estimates   rows = { 0 };
        fv_interval    e;
        if (!is_shown(item->instance, &stage->targets[t])) continue;
        bool some = fv__sample_so_far(item->instance, stage, node, &e, &rows);
        if (some && node->type.kind == FV_KIND_TABLE) say_rows(node, &rows);
        if (some && node->type.kind != FV_KIND_TABLE) say_so_far(name_of(item->instance, node), "chunks", &e);
        if (some) put(s, item, node, &e, &rows);
        fv__estimates_release(&rows);
    }
}

/* ---------------------------------------------------------------- of all items */

/* Without the mutex. The unit of the run is opened with what there is of the items, and closed again. */
static void look_at_items(fv_scheduler *s, bool say) {
    fv_diagnostics none = { 0 };
    fv_item        unit = { .number = s->context->bindings->segments[1].first };
    if (fv__instance_open_early(s->context, unit.number, &unit.instance, &none, &(fv_error){ 0 }) == FV_OK) {
        const fv_plan *plan = unit.instance->plan;
        for (int k = 0; k < plan->nstages; k++) {
            const fv_target *target = &plan->stages[k].targets[0];
            if (target->kind != FV_TARGET_PASS || !items_of(target->node)) continue;
            if (say) say_stage(s, &unit, k);
            if (!say) look(s, &unit, k);
        }
        fv__instance_close(unit.instance);
    }
    fv__diagnostics_release(&none);
}

void fv__watched_items(fv_scheduler *s) {
    double now = fv__now(), passed = now - s->started;
    pthread_mutex_lock(&s->mutex);
    bool due = s->settings->options.progress && fv__items_going(s) && !s->items_looking &&
               s->progress.items_done >= s->items_due && passed >= PATIENCE && s->items_spent <= SHARE * passed;
    if (due) s->items_looking = true;
    if (due) s->items_due = fv__sampling_next(s->progress.items_done, s->context->bindings->nunits);
    pthread_mutex_unlock(&s->mutex);
    if (!due) return;
    look_at_items(s, false);
    pthread_mutex_lock(&s->mutex);
    s->items_looking = false;
    s->items_spent += fv__now() - now;
    pthread_mutex_unlock(&s->mutex);
}

void fv__scheduler_so_far(fv_scheduler *s) {
    for (fv_item *item = s->items; item; item = item->next)
        for (int k = 0; item->ready && k < item->instance->plan->nstages; k++)
            if (item->stages[k].watched && !item->stages[k].complete) say_stage(s, item, k);
    if (fv__items_going(s)) look_at_items(s, true);
    fv__scheduler_tell(s);
}
