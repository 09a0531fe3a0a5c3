/* From the tasks of a record to the work of a simulation. */
#include "story/simulated_work.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_TASKS = 4000000 };

static int by_place(const void *a, const void *b) {
    const fv_task_facts *x = a, *y = b;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

/* Each task once, in order: those who go on after a kill may do one again. */
static int64_t once(fv_task_facts *tasks, int64_t count) {
    int64_t kept = 0;
    if (count) qsort(tasks, (size_t)count, sizeof *tasks, by_place);
    for (int64_t i = 0; i < count; i++)
        if (!kept || by_place(&tasks[kept - 1], &tasks[i])) tasks[kept++] = tasks[i];
    return kept;
}

static int64_t units_of(const fv_task_facts *tasks, int64_t count) {
    int64_t units = 0;
    for (int64_t i = 0; i < count; i++) units += !i || tasks[i].item != tasks[i - 1].item;
    return units;
}

static int stages_of(const fv_run_graph *graph, int part, const fv_task_facts *tasks, int64_t count) {
    int most = part >= 0 ? graph->parts[part].nstages : 0;
    for (int64_t i = 0; i < count; i++) most = FV_MAX(most, (int)tasks[i].stage + 1);
    return most;
}

static void add_needs(fv_sim_stage *stage, const fv_graph_stage *from) {
    for (int i = 0; i < from->nneeds && stage->nneeds < FV_COUNT(stage->needs); i++)
        stage->needs[stage->nneeds++] = from->needs[i];
}

/* Copies of a task, added to the last batch of the stage until that is full. */
static void add_copies(fv_sim_work *w, fv_sim_stage *stage, const fv_task_facts *f, int64_t copies) {
    while (copies > 0) {
        fv_sim_task *last = w->ntasks > stage->first ? &w->tasks[w->ntasks - 1] : NULL;
        int64_t      room = last ? w->together - (int64_t)last->tasks : 0;
        if (room <= 0) {
            w->tasks[w->ntasks++] = (fv_sim_task){ 0 };
            continue;
        }
        int64_t count = FV_MIN(room, copies);
        float   n = (float)count;
        *last = (fv_sim_task){ .read = last->read + n * (float)f->read,
                               .compute = last->compute + n * (float)f->compute,
                               .write = last->write + n * (float)f->write,
                               .bytes = last->bytes + n * (float)(f->bytes_read + f->bytes_written),
                               .tasks = last->tasks + n };
        copies -= count;
    }
}

/* A unit with its stages and tasks; copies: of each task. The end of a stage is said by its tasks until they are fitted. */
static void add_unit(fv_sim_work *w, const fv_run_graph *graph, const fv_task_facts *tasks, int64_t count, int64_t copies) {
    int          part = graph ? fv__run_graph_part(graph, tasks->item) : -1, nstages = stages_of(graph, part, tasks, count);
    fv_sim_unit *unit = &w->units[w->nunits++];
    *unit = (fv_sim_unit){ w->nstages, nstages, FV_MAX(part, 0) };
    w->stages = fv__realloc(w->stages, (size_t)(w->nstages + nstages + 1) * sizeof *w->stages);
    for (int s = 0; s < nstages; s++) {
        fv_sim_stage *stage = &w->stages[w->nstages++];
        *stage = (fv_sim_stage){ .first = w->ntasks };
        if (part >= 0 && s < graph->parts[part].nstages) add_needs(stage, &graph->parts[part].stages[s]);
        for (int64_t i = 0; i < count; i++) {
            if (tasks[i].stage != s) continue;
            add_copies(w, stage, &tasks[i], copies);
            stage->end += (double)copies;
        }
        stage->count = w->ntasks - stage->first;
    }
}

/* What the seconds of tasks do not explain: before and after them, beside them, and that reading goes on while others compute. */
static void fit(fv_sim_work *w, const fv_sim_record *r) {
    double from = INFINITY, to = 0, busy = 0;
    for (int64_t i = 0; i < r->count; i++) {
        double took = r->tasks[i].read + r->tasks[i].compute + r->tasks[i].write;
        from = fmin(from, r->tasks[i].start);
        to = fmax(to, r->tasks[i].start + took);
        busy += took;
    }
    double span = to - from, rest = span * r->workers - busy - r->merging;
    w->serial = fmax(r->seconds - span, 0);
    w->scale = 1;
    if (r->workers == 1 && rest > 0) w->each = rest / (double)FV_MAX(r->count, 1);
    if (r->workers == 1 && rest < 0 && busy > 0) w->scale = fmax((span - r->merging) / busy, 0.1);
    for (int64_t k = 0; k < w->nstages; k++) w->stages[k].end *= r->merging / (double)FV_MAX(r->count, 1);
}

/* The longest batches of a unit's stages, one after another; of parts, which follow each other, the sum. A stage of equal tasks
 * ends between "all workers always busy" and a longest batch later, played in batches or one by one. */
static double longest_chain(const fv_sim_work *w) {
    double chain = 0, of_part = 0;
    for (int64_t u = 0; u < w->nunits; u++) {
        const fv_sim_unit *unit = &w->units[u];
        double             of_unit = 0;
        for (int64_t k = unit->first; k < unit->first + unit->count; k++) {
            double longest = 0;
            for (int64_t t = w->stages[k].first; t < w->stages[k].first + w->stages[k].count; t++)
                longest = fmax(longest, fv__sim_task_seconds(w, &w->tasks[t]));
            of_unit += longest;
        }
        if (u && unit->part != w->units[u - 1].part) {
            chain += of_part;
            of_part = 0;
        }
        of_part = fmax(of_part, of_unit);
    }
    return chain + of_part;
}

fv_status fv__sim_work_make(fv_sim_record *r, fv_sim_size size, fv_sim_work *w, fv_error *error) {
    r->count = once(r->tasks, r->count);
    int64_t units = units_of(r->tasks, r->count), copies = units > 1 ? 1 : FV_MAX(size.times, 1);
    int64_t again = FV_MAX(size.volumes, 1) * (units > 1 ? FV_MAX(size.times, 1) : 1),
            most = size.most > 0 ? size.most : MOST_TASKS;
    int64_t stages = 0; /* with tasks: each of them has a batch of its own */
    for (int64_t i = 0; i < r->count; i++)
        stages += !i || r->tasks[i].item != r->tasks[i - 1].item || r->tasks[i].stage != r->tasks[i - 1].stage;
    if ((double)stages * (double)again > MOST_TASKS)
        return fv_fail(error, FV_ERROR_USAGE,
                       "%.0f stages of volumes or items are more than the %d that can be replayed: choose a smaller --times or "
                       "--volumes",
                       (double)stages * (double)again, MOST_TASKS);
    double all = (double)r->count * (double)copies * (double)again;
    *w = (fv_sim_work){ .all = all, .together = (int64_t)fmax(ceil(all / (double)most), 1) };
    w->tasks = fv__alloc(((size_t)(all / (double)w->together) + (size_t)(stages * again) + 1) * sizeof *w->tasks);
    w->units = fv__alloc((size_t)(units * again + 1) * sizeof *w->units);
    for (int64_t c = 0; c < again; c++)
        for (int64_t i = 0, next; i < r->count; i = next) {
            for (next = i + 1; next < r->count && r->tasks[next].item == r->tasks[i].item;) next++;
            add_unit(w, r->graph, r->tasks + i, next - i, copies);
        }
    fit(w, r);
    if (w->together > 1) w->unsure = longest_chain(w);
    return FV_OK;
}
